"""A deepagents backend over HTTP: a tree of a memsvc server as an agent's file system, without Django."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Final, Self

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

from memsvc.client.errors import Conflict, Forbidden, MemsvcError, NotFound
from memsvc.client.http import MemsvcClient
from memsvc.client.records import EntryRead, EntryWritten, Hit, Uploaded
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
from memsvc.contract.errors import ErrorCode
from memsvc.format.entries import Confidence, MemoryHit
from memsvc.format.indexes import IndexRow
from memsvc.format.layout import MemoryCategory, MemoryKind
from memsvc.format.paths import canonical_folder, canonical_path

_UPLOAD_FILES: Final = 100
_UPLOAD_BYTES: Final = 4 * 1024 * 1024
_DOWNLOAD_FILES: Final = 100
_SEARCH_PAGE: Final = 200
_MOST_EPISODES: Final = 1000
_MOST_LINES: Final = 2**31 - 1


class RemoteBackend(BackendProtocol):
    """The folder `root` of a tree, as "/" of an agent's file system; for a route at `/memory/` or on its own.

    Give it a MemsvcClient, or a base URL with `api_key` (and `tree`). As the protocol asks, no method raises:
    every failure is an error in the result, with a text for the model. The `memory_…` methods are what
    `memsvc.agents.MemoryStore` uses for entries; those raise ValueError. One instance serves any number of threads
    and event loops; the key's scopes and prefix decide on the server what it may do.
    """

    def __init__(
        self,
        client_or_url: MemsvcClient | str,
        *,
        api_key: str = "",
        tree: str = "default",
        root: str = "/memory/",
        root_deletable: bool = False,
    ) -> None:
        """With `root_deletable`, deleting "/" empties the mount instead of being refused; never for a whole tree."""
        if isinstance(client_or_url, MemsvcClient):
            if api_key or tree not in {"default", client_or_url.tree}:
                raise ValueError(
                    "a client has its key and its tree already; give api_key and tree with a URL only"
                )
            self._client = client_or_url
        else:
            self._client = MemsvcClient(client_or_url, api_key, tree=tree)
        self._mount = Mount(root)
        self._root_deletable = root_deletable
        self._writable = True

    def __repr__(self) -> str:
        return f"RemoteBackend({self._client!r}, root={self.root!r})"

    @property
    def root(self) -> str:
        """The folder of the tree that is this backend's "/", as a canonical path."""
        return self._mount.root

    def read_only(self) -> Self:
        """The same files through the same connections, without a way to change them."""
        copy = type(self)(self._client, tree=self._client.tree, root=self.root)
        copy._writable = False
        return copy

    def close(self) -> None:
        """Close the client's connections, also for the copies made by `read_only()`."""
        self._client.close()

    # Files

    def ls(self, path: str) -> LsResult:
        try:
            folder = canonical_folder(path)
            listed = self._client.list_folder(self._mount.to_tree(folder))
            return LsResult(entries=[file_info(item, self._mount.to_agent(item.path)) for item in listed])
        except NotFound as error:
            # The root of a mount exists before its first file does.
            if error.code == ErrorCode.PATH_NOT_FOUND and folder == "/":
                return LsResult(entries=[])
            return LsResult(error=refusal(error, path))
        except Exception as error:
            return LsResult(error=refusal(error, path))

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        try:
            path = self._existing_file(file_path)
            if is_media(path):
                return media_result(self._client.read_bytes(path).data)
            return read_result(self._client.read_lines(path, offset=_number(offset), limit=_number(limit)))
        except Exception as error:
            return ReadResult(error=refusal(_of_file(error), file_path))

    def write(self, file_path: str, content: str) -> WriteResult:
        try:
            path = canonical_path(file_path)
            self._require_write()
            written = self._client.write_file(self._mount.to_tree(path), content)
            return write_result(path, written.warnings)
        except Exception as error:
            return WriteResult(error=refusal(error, file_path))

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        try:
            path = self._existing_file(file_path)
            self._require_write()
            edited = self._client.edit_file(path, old_string, new_string, replace_all=replace_all)
            return edit_result(self._mount.to_agent(path), edited.occurrences, edited.warnings)
        except Exception as error:
            return EditResult(error=edit_refusal(_of_file(error), file_path))

    def delete(self, file_path: str) -> DeleteResult:
        try:
            path = canonical_folder(file_path)
            self._require_write()
            if path == "/" and not (self._root_deletable and self.root != "/"):
                # The key may reach further than this mount, so that the server would not know what its root is.
                raise Conflict("", code=ErrorCode.ROOT_REFUSED)
            self._client.delete(self._mount.to_tree(path), recursive=True)
            return DeleteResult(path=path)
        except Exception as error:
            return DeleteResult(error=refusal(error, file_path))

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        try:
            found = self._client.grep(
                pattern,
                path=self._mount.to_tree(canonical_folder(path)),
                glob=glob or None,
                # The server finds one at least; whoever wants none still learns whether there is any.
                max_count=None if max_count is None else max(max_count, 1),
            )
        except Exception as error:
            return GrepResult(error=refusal(error, path or "/"))
        matches = [grep_match(match, self._mount.to_agent(match.path)) for match in found.items]
        if max_count is not None and max_count < 1:
            return GrepResult(matches=[], truncated=bool(matches))
        return GrepResult(matches=matches, truncated=found.truncated)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        try:
            found = self._client.glob(pattern, path=self._mount.to_tree(canonical_folder(path)))
        except Exception as error:
            return GlobResult(error=refusal(error, path or "/"))
        return glob_result(found.items, self._mount, truncated=found.truncated)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        verdicts = [FileUploadResponse(path=path) for path, _ in files]
        for batch in _upload_batches(self._uploadable(files, verdicts)):
            try:
                uploaded = self._upload([(path, content) for _, path, content in batch])
            except Exception as error:
                for at, _, _ in batch:
                    verdicts[at].error = transfer_refusal(error, files[at][0])
                continue
            for (at, _, _), done in zip(batch, uploaded, strict=True):
                verdicts[at] = upload_response(files[at][0], done.error, done.warnings)
        return verdicts

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        answers = [FileDownloadResponse(path=path) for path in paths]
        wanted: list[tuple[int, str]] = []
        for at, path in enumerate(paths):
            try:
                wanted.append((at, self._downloadable(path)))
            except Exception as error:
                answers[at].error = transfer_refusal(error, path)
        for start in range(0, len(wanted), _DOWNLOAD_FILES):
            self._download(wanted[start : start + _DOWNLOAD_FILES], answers)
        return answers

    # Entries: what memsvc.agents.MemoryStore asks of a transactional backend. These raise ValueError.

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
        with _refusals_as_value_errors():
            self._require_write()
            return _hit(
                self._client.add_entry(
                    category,
                    body,
                    summary=summary,
                    tags=tags,
                    source=source,
                    confidence=confidence,
                    supersedes=supersedes,
                    title=title,
                    when=when,
                )
            )

    def memory_get(self, entry_id: str) -> MemoryHit | None:
        """The entry with this id, superseded or not; None when there is none."""
        if not entry_id:
            return None
        with _refusals_as_value_errors():
            try:
                return _hit(self._client.get_entry(entry_id))
            except NotFound as error:
                if error.code != ErrorCode.ENTRY_NOT_FOUND:
                    raise
                return None

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
        hits: list[MemoryHit] = []
        cursor: str | None = None
        with _refusals_as_value_errors():
            while True:
                page = self._client.search(
                    query,
                    mode="hybrid" if ranked else "words",
                    kind=kind,
                    category=category,
                    tags=tags,
                    include_superseded=include_superseded,
                    cursor=cursor,
                    limit=min(max(limit, 1) - len(hits), _SEARCH_PAGE),
                )
                hits += [_hit(found) for found in page.items]
                cursor = page.next
                if cursor is None or len(hits) >= limit:
                    return hits

    def memory_recent_episodes(self, *, since: datetime | None = None, limit: int = 100) -> list[MemoryHit]:
        """The newest `limit` active episodes, oldest first."""
        with _refusals_as_value_errors():
            wanted = min(max(limit, 1), _MOST_EPISODES)
            return [_hit(found) for found in self._client.recent_episodes(since=since, limit=wanted)]

    def memory_index(self, kind: MemoryKind | None = None) -> tuple[str, list[IndexRow]]:
        """A router index: its path and its rows, none where the index does not exist."""
        with _refusals_as_value_errors():
            index = self._client.read_index(kind)
            return index.path, list(index.rows)

    def memory_scaffold(self) -> list[str]:
        """Create the files that every memory has and this one lacks; answers their paths."""
        with _refusals_as_value_errors():
            self._require_write()
            return self._client.scaffold()

    def _existing_file(self, path: str) -> str:
        """The tree path of a file to read or edit; the root is a folder and reads as missing, like any other."""
        canonical = canonical_folder(path)
        if canonical == "/":
            raise NotFound("", code=ErrorCode.FILE_NOT_FOUND)
        return self._mount.to_tree(canonical)

    def _downloadable(self, path: str) -> str:
        canonical = canonical_folder(path)
        if canonical == "/":
            raise Conflict("", code=ErrorCode.IS_DIRECTORY)
        return self._mount.to_tree(canonical)

    def _require_write(self) -> None:
        if not self._writable:
            raise Forbidden(ErrorCode.READ_ONLY.detail, code=ErrorCode.READ_ONLY)

    def _uploadable(
        self, files: Sequence[tuple[str, bytes]], verdicts: list[FileUploadResponse]
    ) -> Iterator[tuple[int, str, bytes]]:
        """The files worth sending, with their place and tree path; the others get their verdict here."""
        for at, (path, content) in enumerate(files):
            try:
                self._require_write()
                tree_path = self._mount.to_tree(canonical_path(path))
                yield at, tree_path, bytes(memoryview(content))
            except Exception as error:
                verdicts[at].error = transfer_refusal(error, path)

    def _upload(self, files: Sequence[tuple[str, bytes]]) -> Sequence[Uploaded]:
        if len(files) == 1 and len(files[0][1]) > _UPLOAD_BYTES:
            # As it is: in base64 it might be more than the server takes.
            written = self._client.write_file(*files[0])
            return [Uploaded(written.path, None, warnings=written.warnings)]
        return self._client.upload_files(files)

    def _download(self, wanted: Sequence[tuple[int, str]], answers: list[FileDownloadResponse]) -> None:
        try:
            found = self._client.download_files([path for _, path in wanted])
        except Exception as error:
            for at, _ in wanted:
                answers[at].error = transfer_refusal(error, answers[at].path)
            return
        for (at, _), downloaded in zip(wanted, found, strict=True):
            answers[at].content, answers[at].error = downloaded.content, downloaded.error


def _hit(found: EntryRead | EntryWritten) -> MemoryHit:
    return MemoryHit(found.path, found.entry, found.duplicates if isinstance(found, Hit) else ())


def _number(value: int) -> int:
    """A bound of a window as the server takes it."""
    return min(max(int(value), 0), _MOST_LINES)


def _of_file(error: Exception) -> Exception:
    """To an agent that reads or edits, a folder is a file that is not there."""
    if isinstance(error, Conflict) and error.code == ErrorCode.IS_DIRECTORY:
        return NotFound("", code=ErrorCode.FILE_NOT_FOUND)
    return error


@contextmanager
def _refusals_as_value_errors() -> Iterator[None]:
    try:
        yield
    except Forbidden as error:
        denied = "" if str(error).startswith("permission denied") else "permission denied: "
        raise ValueError(f"{denied}{error}") from error
    except MemsvcError as error:
        raise ValueError(str(error)) from error


def _upload_batches(files: Iterable[tuple[int, str, bytes]]) -> Iterator[list[tuple[int, str, bytes]]]:
    """The files in requests of a size that a server takes, in order."""
    batch: list[tuple[int, str, bytes]] = []
    size = 0
    for item in files:
        if batch and (len(batch) == _UPLOAD_FILES or size + len(item[2]) > _UPLOAD_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += len(item[2])
    if batch:
        yield batch
