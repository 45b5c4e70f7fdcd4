"""Entries in the files of any deepagents backend: on disk, in graph state, in a store.

There are no transactions here. What can be done without them is done: everything is validated before the first
write, unchanged bytes stay, a failed write is taken back, and writers of one process wait for each other. Several
processes, or a crash between two files, need the service (`PostgresBackend`, `RemoteBackend`).
"""

import threading
from collections.abc import Iterator
from datetime import datetime
from typing import Final
from weakref import WeakKeyDictionary

from deepagents.backends import FilesystemBackend
from deepagents.backends.protocol import BackendProtocol

from memsvc.agents.files import memory_files, read_all, read_bytes, write_bytes
from memsvc.agents.indexes import read_index_rows, with_file_recorded
from memsvc.agents.transactional import EntrySearch, route_to
from memsvc.format import (
    SCAFFOLD,
    BlankBody,
    EntryDraft,
    IndexRow,
    MemoryCategory,
    MemoryEntry,
    MemoryHit,
    MemoryKind,
    appended,
    carried_lines,
    checked_title,
    compose_entry,
    cut,
    entry_path,
    index_path,
    index_target,
    new_entry_id,
    parse_entries,
    says_something,
    summary_after,
    with_superseded,
)
from memsvc.format.layout import MEMORY_ROOT, in_utc
from memsvc.format.terms import search_text, tag_keys
from memsvc.format.text import folded

_guard: Final = threading.Lock()
_lock_by_directory: Final[dict[str, threading.RLock]] = {}
_lock_by_backend: Final[WeakKeyDictionary[BackendProtocol, threading.RLock]] = WeakKeyDictionary()


class FileMemory:
    """The entries under `/memory/` of a backend. Raises ValueError for whatever can't be done.

    Expiry and metadata of a draft are for the service. Here a successor has the lines of the entry that it supersedes.
    """

    def __init__(self, backend: BackendProtocol) -> None:
        self._backend = backend
        self._lock = _lock_of(route_to(backend, MEMORY_ROOT)[0])

    def memory_add(self, draft: EntryDraft) -> MemoryHit:
        if not says_something(draft.body):
            raise BlankBody
        category, supersedes = draft.category, draft.supersedes
        title = checked_title(draft.title)
        instant = in_utc(draft.when)
        written = MemoryEntry(
            entry_id=new_entry_id(instant),
            created=instant,
            category=category,
            body=draft.body,
            summary=draft.summary or "",
            source=draft.source,
            confidence=draft.confidence,
            tags=draft.tags,
            supersedes=supersedes,
        )
        text = compose_entry(written)
        with self._lock:
            old = self._to_supersede(supersedes, category) if supersedes is not None else None
            if old is not None:
                # The metadata of the one that it supersedes stays just as it stands there.
                lines, metadata = carried_lines(self._head_of(old))
                text = compose_entry(written, metadata, written=lines)
            (entry,) = parse_entries(text)
            keeps_file = old is not None and title is None and category is MemoryCategory.PROCEDURE
            path = (
                old.path
                if old is not None and keeps_file
                else entry_path(category, when=instant, title=title)
            )
            changes = _Changes(self._backend)
            changes.append_entry(path, text)
            if old is not None:
                changes.retire_entry(old.path, old.entry.entry_id, by=entry.entry_id)
            # Without a summary the row would go on to tell of the old one.
            told = entry.summary or (summary_after(old.entry, draft.body) if old else "")
            changes.record_in_index(category, path, entry, description=told)
            changes.apply()
        return MemoryHit(path=path, entry=entry)

    def _to_supersede(self, entry_id: str, category: MemoryCategory) -> MemoryHit:
        hit = self.memory_get(entry_id)
        if hit is None:
            raise ValueError(f"no memory entry with id {entry_id!r}; nothing was stored")
        if hit.entry.superseded_by is not None:
            raise ValueError(
                f"{entry_id} is already superseded by {hit.entry.superseded_by}; update that entry instead"
            )
        if hit.entry.category is not category:
            raise ValueError(
                f"{entry_id} is one of the {hit.entry.category.value} and can't be superseded by an entry of "
                f"{category.value}"
            )
        return hit

    def _head_of(self, hit: MemoryHit) -> str:
        """All that stands above the body of an entry."""
        data = read_bytes(self._backend, hit.path) or b""
        blocks = (block for block in cut(data) if block.entry and block.entry.entry_id == hit.entry.entry_id)
        return next((block.raw[: block.meta_end].decode(errors="replace") for block in blocks), "")

    def memory_get(self, entry_id: str) -> MemoryHit | None:
        return next((hit for hit in self._entries() if hit.entry.entry_id == entry_id), None)

    def memory_search(self, wanted: EntrySearch, limit: int) -> list[MemoryHit]:
        words = folded(wanted.query).split()
        least = min(1, len(words)) if wanted.ranked else len(words)
        hits = [
            hit
            for hit in self._entries(newest_first=True)
            if _passes(hit.entry, wanted) and _holds(hit.entry, words) >= least
        ]
        hits.sort(key=lambda hit: (_holds(hit.entry, words), hit.entry.created), reverse=True)
        return hits[: max(1, limit)]

    def memory_recent_episodes(self, *, since: datetime | None = None, limit: int = 100) -> list[MemoryHit]:
        wanted = EntrySearch(kind=MemoryKind.EPISODIC, since=since)
        episodes = [hit for hit in self._entries() if _passes(hit.entry, wanted)]
        episodes.sort(key=lambda hit: hit.entry.created)
        return episodes[-max(1, limit) :]

    def memory_index(self, kind: MemoryKind | None = None) -> tuple[str, list[IndexRow]]:
        path = index_path(kind)
        return path, list(read_index_rows(self._backend, path).values())

    def memory_scaffold(self) -> list[str]:
        with self._lock:
            present = read_all(self._backend, list(SCAFFOLD))
            missing = [path for path, content in zip(SCAFFOLD, present, strict=True) if content is None]
            for path in missing:
                write_bytes(self._backend, path, SCAFFOLD[path].encode())
        return missing

    def _entries(self, *, newest_first: bool = False) -> Iterator[MemoryHit]:
        """All entries by path and place in the file; `newest_first` begins at the end of each file."""
        paths = memory_files(self._backend)
        for path, data in zip(paths, read_all(self._backend, paths), strict=True):
            # A file may have gone between the listing and the reading.
            blocks = cut(data or b"")
            for block in reversed(blocks) if newest_first else blocks:
                if block.entry is not None:
                    yield MemoryHit(path=path, entry=block.entry)


class _Changes:
    """New contents of some files, made in memory and then written together as far as a backend allows."""

    def __init__(self, backend: BackendProtocol) -> None:
        self._backend = backend
        self._before: dict[str, bytes | None] = {}
        self._after: dict[str, bytes] = {}

    def append_entry(self, path: str, text: str) -> None:
        data = self._current(path)
        self._after[path] = appended(data, text) if data.strip() else text.encode()

    def retire_entry(self, path: str, entry_id: str, *, by: str) -> None:
        self._after[path] = with_superseded(self._current(path), entry_id, by)

    def record_in_index(
        self, category: MemoryCategory, path: str, entry: MemoryEntry, *, description: str
    ) -> None:
        index, relative = index_target(category, path)
        self._current(index)
        self._after[index] = with_file_recorded(
            index,
            self._before[index],
            relative,
            description=description,
            tags=entry.tags,
            on=in_utc(entry.created).date(),
        )

    def apply(self) -> None:
        """Write every file. When one can't be written, those before it get their old content back."""
        written: list[str] = []
        for path, content in self._after.items():
            written.append(path)
            try:
                write_bytes(self._backend, path, content)
            except ValueError:
                for done in reversed(written):
                    self._restore(done)
                raise

    def _current(self, path: str) -> bytes:
        if path not in self._before:
            self._before[path] = data = read_bytes(self._backend, path)
            try:
                (data or b"").decode()
            except UnicodeDecodeError:
                raise ValueError(
                    f"'{path}' is not valid UTF-8, so nothing was written; repair the file first"
                ) from None
            self._after[path] = data or b""
        return self._after[path]

    def _restore(self, path: str) -> None:
        before = self._before[path]
        try:
            if before is not None:
                write_bytes(self._backend, path, before)
            elif type(self._backend).delete is not BackendProtocol.delete:
                self._backend.delete(path)
        except Exception:
            # The first failure is the one to report; a backend that can't write can't restore either.
            return


def _lock_of(backend: BackendProtocol) -> threading.RLock:
    """The lock of the storage behind `backend`; two backends on one directory share theirs.

    It keeps writers of this process apart and no others: several processes need the service.
    """
    with _guard:
        if isinstance(backend, FilesystemBackend):
            return _lock_by_directory.setdefault(str(backend.cwd), threading.RLock())
        return _lock_by_backend.setdefault(backend, threading.RLock())


def _passes(entry: MemoryEntry, wanted: EntrySearch) -> bool:
    """Whether an entry is of those that are wanted, whatever the query."""
    return (
        (wanted.include_superseded or entry.is_active)
        and wanted.kind in (None, entry.kind)
        and wanted.category in (None, entry.category)
        and set(tag_keys(wanted.tags)) <= set(tag_keys(entry.tags))
        and (wanted.since is None or entry.created >= in_utc(wanted.since))
    )


def _holds(entry: MemoryEntry, words: list[str]) -> int:
    """How many of the words an entry holds."""
    text = search_text(entry) if words else ""
    return sum(word in text for word in words)
