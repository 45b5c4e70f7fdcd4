"""Backends that refuse to change memory, whatever the rules of a graph say."""

import copy
import inspect
import unicodedata
from collections.abc import Callable
from typing import Final

from deepagents.backends import CompositeBackend, StateBackend
from deepagents.backends.protocol import (
    PERMISSION_DENIED,
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

from memsvc.agents.transactional import TransactionalMemory
from memsvc.contract.errors import ErrorCode
from memsvc.format.layout import MEMORY_ROOT
from memsvc.format.paths import canonical_folder
from memsvc.format.refusals import FormatError

_MEMORY_FOLDER: Final = MEMORY_ROOT.strip("/")


def with_read_only_memory(backend: BackendProtocol) -> BackendProtocol:
    """The same files as `backend`, where nothing under `/memory/` can be written. The shell is left out.

    A backend of memsvc is read-only as a whole, for its other folders are the tenant's tree as well.
    """
    if not isinstance(backend, CompositeBackend):
        return _read_only(backend, _is_memory)
    guarded = copy.copy(backend)
    guarded.routes = {prefix: _read_only_route(prefix, routed) for prefix, routed in backend.routes.items()}
    guarded.sorted_routes = [(prefix, guarded.routes[prefix]) for prefix, _ in backend.sorted_routes]
    # State has no shell and no other spellings of a path, and deepagents looks for it by its type.
    if type(backend.default) is not StateBackend:
        guarded.default = with_read_only_memory(backend.default)
    return guarded


def _read_only_route(prefix: str, routed: BackendProtocol) -> BackendProtocol:
    if not prefix.strip("/"):
        return with_read_only_memory(routed)
    # A backend of memsvc shows the memory of its tree under whatever name it has here.
    shows_memory = isinstance(routed, TransactionalMemory) and _is_memory(routed.root)
    return _read_only(routed, _everything) if shows_memory or _is_memory(prefix) else routed


def _read_only(backend: BackendProtocol, protected: Callable[[str], bool]) -> BackendProtocol:
    if isinstance(backend, TransactionalMemory):
        return backend.read_only()
    return ReadOnlyBackend(backend, protected)


def _everything(_: str) -> bool:
    return True


def _is_memory(path: str) -> bool:
    """Whether `path` may name the memory folder, something in it, or the root above it, on any file system."""
    try:
        folder = canonical_folder(path.replace("\\", "/"))
    except FormatError:
        return True
    first = folder.split("/")[1]
    return first == "" or unicodedata.normalize("NFKC", first).casefold().rstrip(". ") == _MEMORY_FOLDER


class ReadOnlyBackend(BackendProtocol):
    """Hands every read on, and every write but those to a path that is `protected`."""

    def __init__(self, backend: BackendProtocol, protected: Callable[[str], bool] = _everything) -> None:
        self._backend = backend
        self._protected = protected

    def ls(self, path: str) -> LsResult:
        return self._backend.ls(path)

    async def als(self, path: str) -> LsResult:
        return await self._backend.als(path)

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        return self._backend.read(file_path, offset=offset, limit=limit)

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        return await self._backend.aread(file_path, offset=offset, limit=limit)

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        if _takes_max_count(self._backend.grep):
            return self._backend.grep(pattern, path, glob, max_count=max_count)
        return _cut(self._backend.grep(pattern, path, glob), max_count)

    async def agrep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        if _takes_max_count(self._backend.agrep):
            return await self._backend.agrep(pattern, path, glob, max_count=max_count)
        return _cut(await self._backend.agrep(pattern, path, glob), max_count)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        return self._backend.glob(pattern, path=path)

    async def aglob(self, pattern: str, path: str | None = None) -> GlobResult:
        return await self._backend.aglob(pattern, path=path)

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return self._backend.download_files(paths)

    async def adownload_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return await self._backend.adownload_files(paths)

    def write(self, file_path: str, content: str) -> WriteResult:
        if self._protected(file_path):
            return WriteResult(error=_refusal(file_path))
        return self._backend.write(file_path, content)

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        if self._protected(file_path):
            return WriteResult(error=_refusal(file_path))
        return await self._backend.awrite(file_path, content)

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        if self._protected(file_path):
            return EditResult(error=_refusal(file_path))
        return self._backend.edit(file_path, old_string, new_string, replace_all=replace_all)

    async def aedit(
        self, file_path: str, old_string: str, new_string: str, replace_all: bool = False
    ) -> EditResult:
        if self._protected(file_path):
            return EditResult(error=_refusal(file_path))
        return await self._backend.aedit(file_path, old_string, new_string, replace_all=replace_all)

    def delete(self, file_path: str) -> DeleteResult:
        if self._protected(file_path):
            return DeleteResult(error=_refusal(file_path))
        try:
            return self._backend.delete(file_path)
        except NotImplementedError:
            return DeleteResult(error=f"deletion is not supported for '{file_path}'")

    async def adelete(self, file_path: str) -> DeleteResult:
        if self._protected(file_path):
            return DeleteResult(error=_refusal(file_path))
        try:
            return await self._backend.adelete(file_path)
        except NotImplementedError:
            return DeleteResult(error=f"deletion is not supported for '{file_path}'")

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return self._verdicts(files, self._backend.upload_files(self._allowed(files)))

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return self._verdicts(files, await self._backend.aupload_files(self._allowed(files)))

    def _allowed(self, files: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
        return [(path, content) for path, content in files if not self._protected(path)]

    def _verdicts(
        self, files: list[tuple[str, bytes]], allowed: list[FileUploadResponse]
    ) -> list[FileUploadResponse]:
        answers = iter(allowed)
        return [
            FileUploadResponse(path=path, error=PERMISSION_DENIED) if self._protected(path) else next(answers)
            for path, _ in files
        ]


def _refusal(path: str) -> str:
    return ErrorCode.READ_ONLY.sentence.format(path=path)


def _takes_max_count(grep: Callable[..., object]) -> bool:
    # The newest parameter of the protocol; backends of earlier releases lack it.
    return "max_count" in inspect.signature(grep).parameters


def _cut(found: GrepResult, max_count: int | None) -> GrepResult:
    if max_count is None or found.matches is None or len(found.matches) <= max_count:
        return found
    return GrepResult(matches=found.matches[: max(0, max_count)], truncated=True)
