"""Files as memories: known by an id that they keep, listed like a folder or like `find`, with hash and size."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

from memsvc.contract.files import Listed
from memsvc.tree.access import Access
from memsvc.tree.cursors import after_text, cursor_of_text
from memsvc.tree.errors import MemoryNotFound
from memsvc.tree.files import MAX_FILE_BYTES
from memsvc.tree.history.memory_versions import MAX_CONTENT_BYTES, Held, current_versions, held_by
from memsvc.tree.models import File, FileQuerySet
from memsvc.tree.results import MemoriesPage, Memory
from memsvc.tree.snapshot import Snapshot, snapshot


def list_memories(
    access: Access,
    folder: str = "/",
    *,
    direct: bool = False,
    with_content: bool = False,
    cursor: str | None = None,
    limit: int = 20,
) -> MemoriesPage:
    """The memories below a folder in code-point order of their paths, up to `limit` a page.

    With `direct` only those right in it, and in their place among them the folders that hold deeper ones. Of content
    that is larger than a memory may be made, lists tell hash and size only.
    """
    with snapshot(access) as now:
        place = _Place(after_text(cursor)) if cursor is not None else None
        found = list(islice(_walk(now, folder, place, direct=direct, at_once=limit + 1), limit + 1))
        page = found[:limit]
        files = [(file, listed) for file, listed in page if file is not None]
        memories = _described(now, files, up_to=MAX_CONTENT_BYTES if with_content else None)
        items: list[Memory | str] = [memories[file.pk] if file else listed.path for file, listed in page]
    return MemoriesPage(items, cursor_of_text(page[-1][1].path) if len(found) > limit else None)


def read_memory(access: Access, memory_id: UUID, *, with_content: bool = True) -> Memory:
    """One memory as it stands now. Raises `MemoryNotFound`."""
    with snapshot(access) as now:
        file = now.files().filter(pk=memory_id).first()
        listed = now.listed([file]) if file else []
        if file is None or not listed:
            raise MemoryNotFound
        found = _described(now, [(file, listed[0])], up_to=MAX_FILE_BYTES if with_content else None)
    return found[memory_id]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a walk goes on: behind a file, or behind all that lies in a folder, whose path has a slash at its end."""

    path: str

    def behind(self, files: FileQuerySet) -> FileQuerySet:
        if self.path.endswith("/"):
            # "0" is the character after "/".
            return files.filter(path__gte=self.path[:-1] + "0")
        return files.filter(path__gt=self.path)


type _Step = tuple[File | None, Listed]


def _walk(now: Snapshot, folder: str, place: _Place | None, *, direct: bool, at_once: int) -> Iterator[_Step]:
    """The visible files below a folder from a place on; folders in it stand for what they hold, with `direct`."""
    base = folder.rstrip("/") + "/"
    files = now.files().under(folder).order_by("path")
    passed = place.path if place and place.path.endswith("/") else ""
    while True:
        rows = list((place.behind(files) if place else files)[:at_once])
        by_path = {listed.path: listed for listed in now.listed(rows)}
        for row in rows:
            if row.path not in by_path or (passed and row.path.startswith(passed)):
                continue
            if direct and row.parent != folder:
                passed = base + row.path.removeprefix(base).split("/", 1)[0] + "/"
                yield None, Listed(path=passed, is_dir=True)
            else:
                yield row, by_path[row.path]
        if len(rows) < at_once:
            return
        last = rows[-1].path
        place = _Place(passed if passed and last.startswith(passed) else last)


def _described(
    now: Snapshot, files: Sequence[tuple[File, Listed]], *, up_to: int | None
) -> dict[UUID, Memory]:
    """Memories by id, with text of up to `up_to` bytes; None asks for no text."""
    versions = current_versions(now, [file for file, _ in files])
    return {file.pk: _memory(now, file, listed, versions[file.pk], up_to) for file, listed in files}


def _memory(now: Snapshot, file: File, listed: Listed, version: int, up_to: int | None) -> Memory:
    if up_to is None and file.sha256 and file.next_expiry is None:
        held = Held(None, file.sha256, listed.size)
    else:
        held = held_by(now.blocks_of(file), None, up_to=up_to)
    return Memory(
        id=file.pk,
        version=version,
        path=file.path,
        text=held.text,
        sha256=held.sha256,
        size=held.size,
        created_at=file.created_at,
        updated_at=listed.modified_at or file.modified_at,
    )
