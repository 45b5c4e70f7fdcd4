"""The backend: what a tree looks like to deepagents and to `MemoryStore`, whichever port it is reached by."""

import base64
import copy
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import batched
from typing import Final, Self

from deepagents.backends.protocol import (
    BackendProtocol,
    DeleteResult,
    EditResult,
    FileData,
    FileDownloadResponse,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)

from memsvc.agents.backends.ports import Port, Upload
from memsvc.agents.backends.results import (
    edit_refusal,
    edit_result,
    file_info,
    is_media,
    read_result,
    refusal,
    transfer_refusal,
    upload_response,
    write_result,
)
from memsvc.agents.transactional import EntrySearch, Mount
from memsvc.contract.errors import ErrorCode, Refused
from memsvc.format import CodedError, EntryDraft, FormatError, IndexRow, MemoryHit, MemoryKind
from memsvc.format.paths import canonical_folder, canonical_path

logger = logging.getLogger(__name__)

_PAGE_ENTRIES: Final = 200


class TreeBackend(BackendProtocol):
    """The files of a tree under `root`, which is this backend's "/".

    No method raises: whatever goes wrong is in the result, in words for a model. The `memory_*` methods, which
    `MemoryStore` uses, raise ValueError instead. One instance serves any number of threads and event loops.
    """

    def __init__(self, port: Port, root: str, *, root_deletable: bool) -> None:
        self._port = port
        self._mount = Mount(root)
        self._root_deletable = root_deletable
        self._writable = True

    @property
    def root(self) -> str:
        """The folder of the tree that is this backend's "/", as a canonical path."""
        return self._mount.root

    def read_only(self) -> Self:
        """The same files for one who may not change them."""
        backend = copy.copy(self)
        backend._writable = False
        return backend

    # Files

    def ls(self, path: str) -> LsResult:
        try:
            listed = self._port.list_folder(self._folder(path))
            return LsResult(entries=[file_info(item, self._mount) for item in listed])
        except Exception as error:
            return LsResult(error=refusal(error, path))

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        try:
            path = self._existing_file(file_path)
            if is_media(path):
                data = base64.b64encode(self._port.read_file(path)).decode("ascii")
                return ReadResult(file_data=FileData(content=data, encoding="base64"))
            return read_result(self._port.read_lines(path, int(offset), int(limit)))
        except Exception as error:
            return ReadResult(error=refusal(_of_file(error), file_path))

    def write(self, file_path: str, content: str) -> WriteResult:
        try:
            path = canonical_path(file_path)
            if not isinstance(content, str | bytes):
                raise Refused("the content must be text", code=ErrorCode.INVALID_TEXT)
            return write_result(path, self._changing().write_file(self._mount.to_tree(path), content))
        except Exception as error:
            return WriteResult(error=refusal(error, file_path))

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        try:
            path = self._existing_file(file_path)
            edited = self._changing().edit_file(path, old_string, new_string, replace_all=replace_all)
            return edit_result(self._mount.to_agent(path), edited.occurrences, edited.warnings)
        except Exception as error:
            return EditResult(error=edit_refusal(_of_file(error), file_path))

    def delete(self, file_path: str) -> DeleteResult:
        try:
            path = canonical_folder(file_path)
            port = self._changing()
            if path == "/" and not (self._root_deletable and self.root != "/"):
                # A key may reach further than this mount, so that the server would not know what its root is.
                raise Refused(code=ErrorCode.ROOT_REFUSED)
            port.delete(self._mount.to_tree(path))
            return DeleteResult(path=path)
        except Exception as error:
            return DeleteResult(error=refusal(error, file_path))

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        try:
            found, truncated = self._port.grep(pattern, self._folder(path), glob or None, max_count)
            matches = [
                GrepMatch(path=self._mount.to_agent(match.path), line=match.line, text=match.text)
                for match in found
            ]
            return GrepResult(matches=matches, truncated=truncated)
        except Exception as error:
            return GrepResult(error=refusal(error, path or "/"))

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        try:
            found, truncated = self._port.glob(pattern, self._folder(path))
            return GlobResult(
                matches=[file_info(item, self._mount) for item in found],
                truncated=truncated,
                # What the caller may not see is no part of the tree for it, so only a limit cuts them short.
                truncation_reason="budget" if truncated else None,
            )
        except Exception as error:
            return GlobResult(error=refusal(error, path or "/"))

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        answers = [FileUploadResponse(path=path) for path, _ in files]
        good: list[Upload] = []
        for at, (path, content) in enumerate(files):
            try:
                self._changing()
                tree_path = self._mount.to_tree(canonical_path(path))
            except Exception as error:
                answers[at].error = transfer_refusal(error, path)
                continue
            if isinstance(content, bytes | bytearray | memoryview):
                good.append((at, tree_path, bytes(content)))
            else:
                answers[at].error = "the content must be bytes"
        for batch in self._port.upload_batches(good):
            try:
                verdicts = self._port.upload_files([(path, content) for _, path, content in batch])
            except Exception as error:
                for at, _, _ in batch:
                    answers[at].error = transfer_refusal(error, files[at][0])
                continue
            for (at, _, _), verdict in zip(batch, verdicts, strict=True):
                answers[at] = upload_response(files[at][0], verdict.error, verdict.warnings)
        return answers

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        answers = [FileDownloadResponse(path=path) for path in paths]
        wanted: list[tuple[FileDownloadResponse, str]] = []
        for answer in answers:
            try:
                folder = self._folder(answer.path)
                if folder == self.root:
                    raise Refused(code=ErrorCode.IS_DIRECTORY)
                wanted.append((answer, folder))
            except Exception as error:
                answer.error = transfer_refusal(error, answer.path)
        for batch in batched(wanted, self._port.downloads_at_once, strict=False):
            try:
                found = self._port.download_files([path for _, path in batch])
            except Exception as error:
                for answer, _ in batch:
                    answer.error = transfer_refusal(error, answer.path)
                continue
            for (answer, _), downloaded in zip(batch, found, strict=True):
                answer.content, answer.error = downloaded.content, downloaded.error
        return answers

    # Entries, for `MemoryStore`

    def memory_add(self, draft: EntryDraft) -> MemoryHit:
        """Store an entry. With `supersedes` and no `title`, a procedure stays in the file of the old one."""
        with _refusals_as_value_errors():
            return self._changing().add_entry(draft)

    def memory_get(self, entry_id: str) -> MemoryHit | None:
        """The entry with this id, superseded or not; None when there is none."""
        if not entry_id:
            return None
        with _refusals_as_value_errors():
            try:
                return self._port.get_entry(entry_id)
            except CodedError as error:
                if error.code != ErrorCode.ENTRY_NOT_FOUND:
                    raise
                return None

    def memory_search(self, wanted: EntrySearch, limit: int = 20) -> list[MemoryHit]:
        """At least one and at most `limit` entries, newest first, or best first where they are ranked."""
        hits: list[MemoryHit] = []
        cursor: str | None = None
        with _refusals_as_value_errors():
            while True:
                size = min(max(limit, 1) - len(hits), _PAGE_ENTRIES)
                found, cursor = self._port.search(wanted, cursor, size)
                hits += found
                if cursor is None or len(hits) >= limit:
                    return hits

    def memory_recent_episodes(self, *, since: datetime | None = None, limit: int = 100) -> list[MemoryHit]:
        """The newest `limit` active episodes, oldest first."""
        return self.memory_search(EntrySearch(kind=MemoryKind.EPISODIC, since=since), limit)[::-1]

    def memory_index(self, kind: MemoryKind | None = None) -> tuple[str, list[IndexRow]]:
        """A router index: its path and its rows, none where the index does not exist."""
        with _refusals_as_value_errors():
            path, rows = self._port.read_index(kind)
            return path, list(rows)

    def memory_scaffold(self) -> list[str]:
        """Create the files that every memory has and this one lacks; answers their paths."""
        with _refusals_as_value_errors():
            return self._changing().scaffold()

    def _changing(self) -> Port:
        """The port, for a change."""
        if not self._writable:
            raise Refused(code=ErrorCode.READ_ONLY)
        return self._port

    def _folder(self, path: str | None) -> str:
        return self._mount.to_tree(canonical_folder(path))

    def _existing_file(self, path: str) -> str:
        """The tree path of a file to read or edit; the root is a folder and reads as missing, like any other."""
        canonical = canonical_folder(path)
        if canonical == "/":
            raise Refused(code=ErrorCode.FILE_NOT_FOUND)
        return self._mount.to_tree(canonical)


def _of_file(error: Exception) -> Exception:
    """To an agent that reads or edits, a folder is a file that is not there."""
    if isinstance(error, CodedError) and error.code == ErrorCode.IS_DIRECTORY:
        return Refused(code=ErrorCode.FILE_NOT_FOUND)
    return error


@contextmanager
def _refusals_as_value_errors() -> Iterator[None]:
    try:
        yield
    except FormatError:
        raise
    except CodedError as error:
        code, text = error.code, error.detail
        if code in (ErrorCode.FORBIDDEN, ErrorCode.MISSING_SCOPE) and not text.startswith(
            "permission denied"
        ):
            text = f"permission denied: {text}"
        raise ValueError(text) from error
    except Exception as error:
        logger.exception("a memory call failed")
        raise ValueError(
            "The memory could not be used because of an internal fault; try again later."
        ) from error
