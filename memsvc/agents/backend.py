"""`PostgresBackend`: a tree of memsvc as deepagents sees files, in the process that has the database."""

import asyncio
import contextvars
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from typing import Final

from deepagents.backends.protocol import (
    BackendProtocol,
    DeleteResult,
    EditResult,
    FileDownloadResponse,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)

from memsvc.client.results import (
    Mount,
    edit_refusal,
    edit_result,
    file_info,
    glob_result,
    grep_match,
    is_media,
    media_result,
    read_result,
    refusal,
    transfer_refusal,
    upload_response,
    write_result,
)
from memsvc.contract.entries import EntryRead
from memsvc.contract.files import Uploaded
from memsvc.format import Confidence, FormatError, IndexRow, MemoryCategory, MemoryHit, MemoryKind
from memsvc.format.paths import canonical_folder, canonical_path
from memsvc.recall.accesses import get_entry
from memsvc.recall.search import Mode, Query, search
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.drafts import EntryDraft
from memsvc.tree.errors import Busy, EntryNotFound, FileNotFound, IsFolder, TreeError, Unavailable
from memsvc.tree.models import Tree
from memsvc.tree.reads import EntryFilter
from tenants.actors import SYSTEM, Actor

logger = logging.getLogger(__name__)

# A fault that passes by itself is tried once more: what reads as a lost file makes summarisation overwrite it.
_PAUSE_SECONDS: Final = 0.2
_PAGE_ENTRIES: Final = 200

type _Kinds = tuple[type[TreeError], ...]
_PASSING: Final[_Kinds] = (Busy, Unavailable)
# A lost connection leaves open whether a change was kept: only what comes to the same when done twice is repeated.
_UNDONE: Final[_Kinds] = (Busy,)


class PostgresBackend(BackendProtocol):
    """The files of `tree` under `root`, which is this backend's "/".

    No method raises: whatever goes wrong is in the result, in words for a model. The `memory_*` methods, which
    `MemoryStore` uses, raise ValueError instead. Any thread may call, also one that runs an event loop, and no call
    leaves a database connection behind.
    """

    def __init__(
        self, tree: Tree, root: str = "/memory/", actor: Actor = SYSTEM, *, root_deletable: bool = False
    ) -> None:
        """With `root_deletable`, deleting "/" empties the mount instead of being refused; never for a whole tree."""
        self._mount = Mount(root)
        self._access = Access(tree=tree, actor=actor, prefix=self._mount.root)
        self._root_deletable = root_deletable

    def __repr__(self) -> str:
        return f"PostgresBackend({self._access.tree.name!r}, root={self.root!r})"

    @property
    def root(self) -> str:
        """The folder of the tree that is this backend's "/"."""
        return self._mount.root

    def read_only(self) -> "PostgresBackend":
        """The same files for one who may not change them."""
        backend = PostgresBackend(self._access.tree, self.root, self._access.actor)
        backend._access = self._access.read_only()
        return backend

    # Files.

    def ls(self, path: str) -> LsResult:
        def work() -> LsResult:
            listed = reads.list_folder(self._access, self._folder(path))
            return LsResult(entries=[file_info(item, self._mount.to_agent(item.path)) for item in listed])

        return _answer(work, lambda error: LsResult(error=refusal(error, path)))

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        def work() -> ReadResult:
            path = self._existing_file(file_path)
            if is_media(path):
                return media_result(self._whole_file(path))
            return read_result(reads.read_lines(self._access, path, offset=int(offset), limit=int(limit)))

        return _answer(work, lambda error: ReadResult(error=refusal(error, file_path)))

    def write(self, file_path: str, content: str) -> WriteResult:
        def work() -> WriteResult:
            path = canonical_path(file_path)
            written = services.write_file(self._access, self._mount.to_tree(path), content)
            return write_result(path, written.warnings)

        return _answer(work, lambda error: WriteResult(error=refusal(error, file_path)))

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        def work() -> EditResult:
            path = self._existing_file(file_path)
            edited = services.edit_file(self._access, path, old_string, new_string, replace_all=replace_all)
            return edit_result(self._mount.to_agent(edited.path), edited.occurrences, edited.warnings)

        return _answer(
            work,
            lambda error: EditResult(error=edit_refusal(error, file_path)),
            again_after=_UNDONE,
        )

    def delete(self, file_path: str) -> DeleteResult:
        def work() -> DeleteResult:
            path = self._folder(file_path)
            deletes_root = self._root_deletable and path == self.root
            # A folder that is not the access's own root can go.
            access = replace(self._access, prefix="/") if deletes_root else self._access
            deleted = services.delete(access, path)
            return DeleteResult(path=self._mount.to_agent(deleted.path))

        return _answer(work, lambda error: DeleteResult(error=refusal(error, file_path)), again_after=_UNDONE)

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        def work() -> GrepResult:
            found = reads.grep(
                self._access, pattern, folder=self._folder(path), glob=glob, max_count=max_count
            )
            matches = [grep_match(match, self._mount.to_agent(match.path)) for match in found.items]
            return GrepResult(matches=matches, truncated=found.truncated)

        return _answer(work, lambda error: GrepResult(error=refusal(error, path or "/")))

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        def work() -> GlobResult:
            found = reads.glob(self._access, pattern, folder=self._folder(path))
            return glob_result(found, self._mount, truncated=False)

        return _answer(work, lambda error: GlobResult(error=refusal(error, path or "/")))

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        def work() -> list[FileUploadResponse]:
            verdicts: list[FileUploadResponse | None] = [_bad_upload(path, data) for path, data in files]
            good = [
                (path, data) for (path, data), verdict in zip(files, verdicts, strict=True) if verdict is None
            ]
            pairs = [(self._mount.to_tree(canonical_path(path)), bytes(data)) for path, data in good]
            uploaded = iter(services.upload_files(self._access, pairs) if pairs else [])
            return [
                _verdict(path, next(uploaded)) if verdict is None else verdict
                for (path, _), verdict in zip(files, verdicts, strict=True)
            ]

        return _answer(
            work,
            lambda error: [
                FileUploadResponse(path=path, error=transfer_refusal(error, path)) for path, _ in files
            ],
        )

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return [self._download(path) for path in paths]

    def _download(self, path: str) -> FileDownloadResponse:
        def work() -> FileDownloadResponse:
            return FileDownloadResponse(
                path=path, content=reads.read_file(self._access, self._stored_file(path)).data
            )

        return _answer(
            work, lambda error: FileDownloadResponse(path=path, error=transfer_refusal(error, path))
        )

    # Entries, for `MemoryStore`.

    def memory_add(
        self,
        *,
        category: MemoryCategory,
        body: str,
        summary: str = "",
        tags: tuple[str, ...] = (),
        source: str = "agent",
        confidence: Confidence = Confidence.MEDIUM,
        supersedes: str | None = None,
        title: str | None = None,
        when: datetime | None = None,
    ) -> MemoryHit:
        """Store an entry. With `supersedes` and no `title`, a procedure stays in the file of the old one."""
        draft = EntryDraft(
            category=category,
            body=body,
            summary=summary,
            tags=tags,
            source=source,
            confidence=confidence,
            supersedes=supersedes,
            title=title,
            when=when,
            metadata=None,
        )

        def work() -> MemoryHit:
            stored = services.add_entry(self._access, draft)
            return MemoryHit(path=stored.path, entry=stored.entry)

        return _answer_or_refuse(work, again_after=_UNDONE)

    def memory_get(self, entry_id: str) -> MemoryHit | None:
        """The entry with this id, superseded or not; None when there is none."""

        def work() -> MemoryHit | None:
            try:
                return _hit(get_entry(self._access, entry_id))
            except EntryNotFound:
                return None

        return _answer_or_refuse(work)

    def memory_search(
        self,
        query: str = "",
        *,
        kind: MemoryKind | None = None,
        category: MemoryCategory | None = None,
        tags: tuple[str, ...] = (),
        include_superseded: bool = False,
        limit: int = 20,
        ranked: bool = False,
    ) -> list[MemoryHit]:
        """Entries that hold every word of `query`, newest first; `ranked`, those that answer it, best first."""
        wanted = EntryFilter(
            kind=kind, category=category, tags=tags, active=None if include_superseded else True
        )

        def page(cursor: str | None, size: int) -> tuple[list[MemoryHit], str | None]:
            asked = Query(text=query, wanted=wanted, mode=Mode.HYBRID if ranked else Mode.WORDS)
            found = search(self._access, asked, cursor=cursor, limit=size)
            return [_hit(hit, hit.duplicates) for hit in found.items], found.next

        return _answer_or_refuse(lambda: _collected(page, max(1, limit)))

    def memory_recent_episodes(self, *, since: datetime | None = None, limit: int = 100) -> list[MemoryHit]:
        """The newest `limit` active episodes, oldest first."""
        episodes = EntryFilter(kind=MemoryKind.EPISODIC, since=since)

        def page(cursor: str | None, size: int) -> tuple[list[MemoryHit], str | None]:
            found = reads.list_entries(self._access, episodes, cursor=cursor, limit=size)
            return [_hit(item) for item in found.items], found.next

        return _answer_or_refuse(lambda: _collected(page, max(1, limit))[::-1])

    def memory_index(self, kind: MemoryKind | None = None) -> tuple[str, list[IndexRow]]:
        """A router index: its path and its rows, none where the index does not exist."""

        def work() -> tuple[str, list[IndexRow]]:
            index = reads.read_index(self._access, kind)
            return index.path, [*index.rows]

        return _answer_or_refuse(work)

    def memory_scaffold(self) -> list[str]:
        """Create the files that every memory has and this one lacks; answers their paths."""
        return _answer_or_refuse(lambda: services.scaffold(self._access))

    def _folder(self, path: str | None) -> str:
        return self._mount.to_tree(canonical_folder(path))

    def _existing_file(self, path: str) -> str:
        """The tree path of a file to read or edit; the root is a folder and reads as missing, like any other."""
        canonical = canonical_folder(path)
        if canonical == "/":
            raise FileNotFound(path)
        return self._mount.to_tree(canonical)

    def _whole_file(self, path: str) -> bytes:
        try:
            return reads.read_file(self._access, path).data
        except IsFolder:
            raise FileNotFound(path) from None

    def _stored_file(self, path: str) -> str:
        if canonical_folder(path) == "/":
            raise IsFolder(path)
        return self._folder(path)


def _bad_upload(path: str, content: object) -> FileUploadResponse | None:
    try:
        canonical_path(path)
    except FormatError as error:
        return FileUploadResponse(path=path, error=transfer_refusal(error, path))
    if not isinstance(content, bytes | bytearray | memoryview):
        return FileUploadResponse(path=path, error="the content must be bytes")
    return None


def _verdict(path: str, uploaded: Uploaded) -> FileUploadResponse:
    return upload_response(path, uploaded.error, uploaded.warnings)


def _hit(found: EntryRead, duplicates: Sequence[str] = ()) -> MemoryHit:
    return MemoryHit(path=found.path, entry=found.entry, duplicates=tuple(duplicates))


def _collected(
    page: Callable[[str | None, int], tuple[list[MemoryHit], str | None]], limit: int
) -> list[MemoryHit]:
    hits: list[MemoryHit] = []
    cursor: str | None = None
    while True:
        found, cursor = page(cursor, min(limit - len(hits), _PAGE_ENTRIES))
        hits += found
        if cursor is None or len(hits) >= limit:
            return hits


def _answer[R](
    work: Callable[[], R], failed: Callable[[Exception], R], *, again_after: _Kinds = _PASSING
) -> R:
    try:
        return _off_loop(lambda: _tried(work, again_after))
    except Exception as error:
        return failed(error)


def _answer_or_refuse[R](work: Callable[[], R], *, again_after: _Kinds = _PASSING) -> R:
    try:
        return _off_loop(lambda: _tried(work, again_after))
    except FormatError:
        raise
    except TreeError as error:
        raise ValueError(str(error)) from error
    except Exception as error:
        logger.exception("a memory call failed")
        raise ValueError(
            "The memory could not be used because of an internal fault; try again later."
        ) from error


def _tried[R](work: Callable[[], R], again_after: _Kinds) -> R:
    try:
        return work()
    except again_after:
        time.sleep(_PAUSE_SECONDS)
        return work()


def _off_loop[R](work: Callable[[], R]) -> R:
    """Do the work here, or on another thread where an event loop runs on this one.

    `agent.invoke()` inside async code calls sync methods right there, and Django's database calls refuse that.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(contextvars.copy_context().run, work).result()
