"""What a tree should hold, told with a dict: written from the format's rules, not from the services' code."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field

from memsvc.contract.entries import EntryWritten
from memsvc.contract.requests import EntryDraft
from memsvc.format import (
    SCAFFOLD,
    BlockKind,
    MemoryCategory,
    MemoryEntry,
    MemoryKind,
    ancestors_of,
    append_to,
    compose_entry,
    cut_file,
    dominant_newline,
    entry_path,
    in_utc,
    index_path,
    new_entry_id,
    parent_of,
    parse_index,
    router_of,
    with_superseded,
    without_row,
)
from memsvc.tree.errors import (
    AlreadySuperseded,
    EntryNotFound,
    FileNotFound,
    FolderNeedsRecursive,
    InvalidSupersession,
    IsFolder,
    PathTaken,
    RootRefused,
)
from memsvc.tree.operations import (
    AddEntry,
    AppendFile,
    DeletePath,
    MovePath,
    Operation,
    RetireEntry,
    WriteFile,
)

ROUTERS = [index_path(None), *(index_path(kind) for kind in MemoryKind)]


@dataclass
class Model:
    """Paths and their bytes. What stands in a router is taken from the tree, after a look at what must hold there."""

    files: dict[str, bytes] = field(default_factory=dict)
    # The line end that an entry gets: the one that most lines had when the file was last written as a whole.
    newlines: dict[str, str] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)
    # Files that were routers until they were moved: with what a batch had done to their rows before.
    former_routers: set[str] = field(default_factory=set)
    # Files in which blank lines, and the mark below an open frontmatter, may be an entry's or its neighbour's.
    thinned: set[str] = field(default_factory=set)

    def copy(self) -> "Model":
        return deepcopy(self)

    def apply(self, operation: Operation, result: object = None) -> None:
        """Do what a service does, or raise what it raises. An added entry takes its id from the service's answer."""
        match operation:
            case WriteFile(path, content):
                self.write(path, content.encode() if isinstance(content, str) else content)
            case AppendFile(path, text):
                self.write(path, self.files.get(path, b"") + text.encode())
            case DeletePath(path, recursive):
                self.delete(path, recursive=recursive)
            case MovePath(source, destination, overwrite):
                self.move(source, destination, overwrite=overwrite)
            case AddEntry(draft):
                self.add_entry(draft, result if isinstance(result, EntryWritten) else None)
            case RetireEntry(entry_id):
                self.retire(entry_id)
            case _:
                raise NotImplementedError(operation)

    def write(self, path: str, data: bytes) -> None:
        if path not in self.files:
            self.require_free(path)
        self._put(path, data)
        self.newlines[path] = dominant_newline(data)

    def scaffold(self) -> list[str]:
        missing = [path for path in SCAFFOLD if path not in self.files]
        for path in missing:
            self.write(path, SCAFFOLD[path].encode())
            # Of a file that was there already a new index says what that says.
            listed = (
                {f"{parent_of(path)}/{row}" for row in parse_index(SCAFFOLD[path])[1]}
                if path in ROUTERS
                else set()
            )
            self.touched |= listed & self.files.keys()
        return missing

    def delete(self, path: str, *, recursive: bool) -> None:
        if path == "/":
            raise RootRefused
        gone = self._at_or_under(path)
        if path not in self.files and not recursive:
            raise FolderNeedsRecursive(path)
        for each in gone:
            self._remove(each)

    def move(self, source: str, destination: str, *, overwrite: bool) -> None:
        if "/" in (source, destination):
            raise RootRefused
        if destination.startswith(source + "/"):
            raise PathTaken(destination, "")
        moving = self._at_or_under(source)
        if source == destination:
            return
        if destination in self.files:
            if not (overwrite and source in self.files):
                raise PathTaken(destination, "")
            self._remove(destination)
        self.require_free(destination)
        data = {path: (self.files[path], self.newlines[path]) for path in moving}
        for path in moving:
            self._remove(path)
        for path, (content, newline) in data.items():
            place = destination + path.removeprefix(source)
            self._put(place, content)
            self.newlines[place] = newline
            if path in ROUTERS or path in self.former_routers:
                self.former_routers.add(place)

    def add_entry(self, draft: EntryDraft, written: EntryWritten | None) -> None:
        target = self._target(draft)
        follows = draft.category is MemoryCategory.PROCEDURE and draft.title is None and target is not None
        path = (
            target[0]
            if follows and target
            else entry_path(draft.category, when=draft.when, title=draft.title)
        )
        entry = written.entry if written else _as_entry(draft)
        before = self.files.get(path, b"")
        if path not in self.files:
            self.require_free(path)
            self.newlines[path] = "\n"
        self._put(path, _appended(before, compose_entry(entry), self.newlines[path]))
        if before.endswith((b"\n\n", b"\r\n\r\n")):
            self.thinned.add(path)
        if target is not None:
            old_path, old = target
            self._put(old_path, with_superseded(self.files[old_path], old.entry_id, entry.entry_id))
        router, _ = router_of(path) or (path, "")
        if router not in self.files:
            self.write(router, self._scaffold_of(router))

    def _scaffold_of(self, router: str) -> bytes:
        """A new router, without rows of files that aren't there."""
        text = SCAFFOLD[router].encode()
        for row in parse_index(text.decode())[1]:
            if f"{parent_of(router)}/{row}" not in self.files:
                text = without_row(text, row)
        return text

    def _target(self, draft: EntryDraft) -> tuple[str, MemoryEntry] | None:
        if draft.supersedes is None:
            return None
        path, entry = self._first(draft.supersedes)
        if entry.superseded_by:
            raise AlreadySuperseded(entry.entry_id, entry.superseded_by)
        if entry.category is not draft.category:
            raise InvalidSupersession
        return path, entry

    def retire(self, entry_id: str) -> None:
        path, _ = self._first(entry_id)
        blocks = cut_file(path, self.files[path])
        gone = next(i for i, b in enumerate(blocks) if b.entry and b.entry.entry_id == entry_id)
        rest = b"".join(block.raw for i, block in enumerate(blocks) if i != gone)
        if len(blocks) > 1:
            self._put(path, rest)
            self.thinned.add(path)
        else:
            self._remove(path)

    def entries(self) -> Iterator[tuple[str, MemoryEntry]]:
        """Every entry by path and place."""
        for path in sorted(self.files):
            for block in cut_file(path, self.files[path]):
                if block.kind is BlockKind.ENTRY and block.entry is not None:
                    yield path, block.entry

    def require_free(self, path: str) -> None:
        if any(other.startswith(path + "/") for other in self.files):
            raise IsFolder(path)
        if any(above in self.files for above in ancestors_of(path)):
            raise PathTaken(path, "")

    def _first(self, entry_id: str) -> tuple[str, MemoryEntry]:
        found = next(((path, entry) for path, entry in self.entries() if entry.entry_id == entry_id), None)
        if found is None:
            raise EntryNotFound(entry_id)
        return found

    def _at_or_under(self, path: str) -> list[str]:
        found = [path] if path in self.files else [each for each in self.files if each.startswith(path + "/")]
        if not found:
            raise FileNotFound(path)
        return found

    def _put(self, path: str, data: bytes) -> None:
        self.files[path] = data
        self.touched.add(path)

    def _remove(self, path: str) -> None:
        del self.files[path], self.newlines[path]
        self.touched.add(path)


def _appended(data: bytes, entry: str, newline: str) -> bytes:
    blocks = cut_file("/any.md", data)
    return data + append_to(blocks[-1].raw if blocks else b"", entry, newline=newline)


def _as_entry(draft: EntryDraft) -> MemoryEntry:
    when = in_utc(draft.when)
    return MemoryEntry(
        entry_id=new_entry_id(when), created=when, category=draft.category, body=draft.body,
        summary=draft.summary or "", tags=tuple(draft.tags), supersedes=draft.supersedes,
    )  # fmt: skip
