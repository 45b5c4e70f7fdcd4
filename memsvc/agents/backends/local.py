"""`PostgresBackend`: a tree of memsvc as deepagents sees files, in the process that has the database."""

import asyncio
import contextvars
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from memsvc.agents.backends.base import TreeBackend
from memsvc.agents.backends.ports import Upload
from memsvc.agents.transactional import EntrySearch
from memsvc.contract.files import Downloaded, Edited, Listed, Match, Uploaded, Window, WriteWarning
from memsvc.format import EntryDraft, IndexRow, MemoryHit, MemoryKind
from memsvc.format.paths import canonical_folder
from memsvc.recall.accesses import get_entry
from memsvc.recall.search import Mode, Query, search
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.errors import Busy, TreeError, Unavailable
from memsvc.tree.models import Tree
from memsvc.tree.reads import EntryFilter
from tenants.actors import SYSTEM, Actor

# A fault that passes by itself is tried once more: what reads as a lost file makes summarisation overwrite it.
_PAUSE_SECONDS: Final = 0.2

type _Kinds = tuple[type[TreeError], ...]
_PASSING: Final[_Kinds] = (Busy, Unavailable)
# A lost connection leaves open whether a change was kept: only what comes to the same when done twice is repeated.
_UNDONE: Final[_Kinds] = (Busy,)


class PostgresBackend(TreeBackend):
    """The files of `tree` under `root`, which is this backend's "/". No call leaves a database connection behind."""

    def __init__(
        self, tree: Tree, root: str = "/memory/", actor: Actor = SYSTEM, *, root_deletable: bool = False
    ) -> None:
        """With `root_deletable`, deleting "/" empties the mount instead of being refused; never for a whole tree."""
        access = Access(tree=tree, actor=actor, prefix=canonical_folder(root))
        super().__init__(LocalPort(access), root, root_deletable=root_deletable)
        self._tree_name = tree.name

    def __repr__(self) -> str:
        return f"PostgresBackend({self._tree_name!r}, root={self.root!r})"


class LocalPort:
    """The part of a tree that an access sees, by its services and reads."""

    downloads_at_once: Final = 1

    def __init__(self, access: Access) -> None:
        self._access = access

    def list_folder(self, folder: str) -> list[Listed]:
        return _done(lambda: reads.list_folder(self._access, folder))

    def read_lines(self, path: str, offset: int, limit: int) -> Window:
        return _done(lambda: reads.read_lines(self._access, path, offset=offset, limit=limit))

    def read_file(self, path: str) -> bytes:
        return _done(lambda: reads.read_file(self._access, path)).data

    def write_file(self, path: str, content: str) -> Sequence[WriteWarning]:
        return _done(lambda: services.write_file(self._access, path, content)).warnings

    def edit_file(self, path: str, old: str, new: str, *, replace_all: bool) -> Edited:
        return _done(
            lambda: services.edit_file(self._access, path, old, new, replace_all=replace_all),
            again_after=_UNDONE,
        )

    def delete(self, path: str) -> None:
        # A folder that is not the access's own root can go.
        access = replace(self._access, prefix="/") if path == self._access.prefix else self._access
        _done(lambda: services.delete(access, path), again_after=_UNDONE)

    def grep(
        self, pattern: str, folder: str, glob: str | None, max_count: int | None
    ) -> tuple[Sequence[Match], bool]:
        found = _done(
            lambda: reads.grep(self._access, pattern, folder=folder, glob=glob, max_count=max_count)
        )
        return found.items, found.truncated

    def glob(self, pattern: str, folder: str) -> tuple[Sequence[Listed], bool]:
        return _done(lambda: reads.glob(self._access, pattern, folder=folder)), False

    def upload_batches(self, files: Sequence[Upload]) -> Iterable[Sequence[Upload]]:
        return [files] if files else []

    def upload_files(self, files: Sequence[tuple[str, bytes]]) -> list[Uploaded]:
        return _done(lambda: services.upload_files(self._access, files))

    def download_files(self, paths: Sequence[str]) -> list[Downloaded]:
        return [Downloaded(path, self.read_file(path), None) for path in paths]

    def add_entry(self, draft: EntryDraft) -> MemoryHit:
        stored = _done(lambda: services.add_entry(self._access, draft), again_after=_UNDONE)
        return MemoryHit(stored.path, stored.entry)

    def get_entry(self, entry_id: str) -> MemoryHit:
        found = _done(lambda: get_entry(self._access, entry_id))
        return MemoryHit(found.path, found.entry)

    def search(
        self, wanted: EntrySearch, cursor: str | None, limit: int
    ) -> tuple[list[MemoryHit], str | None]:
        query = Query(
            text=wanted.query,
            mode=Mode.HYBRID if wanted.ranked else Mode.WORDS,
            wanted=EntryFilter(
                kind=wanted.kind,
                category=wanted.category,
                tags=wanted.tags,
                since=wanted.since,
                active=None if wanted.include_superseded else True,
            ),
        )
        page = _done(lambda: search(self._access, query, cursor=cursor, limit=limit))
        hits = [MemoryHit(hit.path, hit.entry, tuple(hit.duplicates)) for hit in page.items]
        return hits, page.next

    def read_index(self, kind: MemoryKind | None) -> tuple[str, Sequence[IndexRow]]:
        index = _done(lambda: reads.read_index(self._access, kind))
        return index.path, index.rows

    def scaffold(self) -> list[str]:
        return _done(lambda: services.scaffold(self._access))


def _done[R](work: Callable[[], R], *, again_after: _Kinds = _PASSING) -> R:
    """Do the work here, or on another thread where an event loop runs on this one; once more after a passing fault.

    `agent.invoke()` inside async code calls sync methods right there, and Django's database calls refuse that.
    """

    def tried() -> R:
        try:
            return work()
        except again_after:
            time.sleep(_PAUSE_SECONDS)
            return work()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return tried()
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(contextvars.copy_context().run, tried).result()
