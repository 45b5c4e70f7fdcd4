"""Whole memory files through any deepagents backend, where a failed read is not an empty file."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from deepagents.backends.protocol import (
    FILE_NOT_FOUND,
    IS_DIRECTORY,
    PERMISSION_DENIED,
    BackendProtocol,
    ReadResult,
)

from memsvc.contract.errors import ErrorCode
from memsvc.format.layout import MEMORY_ROOT
from memsvc.format.paths import canonical_path, is_memory_file

# What FilesystemBackend answers for a blank file, as if it were the content.
EMPTY_REMINDER: Final = "System reminder: File exists but has empty contents"
_PAGE_LINES: Final = 10_000


def checked_memory_path(path: str) -> str:
    """The canonical spelling of a path under `/memory/`; ValueError for any other path."""
    if not path.startswith(MEMORY_ROOT) or ".." in path.split("/"):
        raise ValueError(f"{path!r} is outside the memory tree ({MEMORY_ROOT})")
    return canonical_path(path)


def read_bytes(backend: BackendProtocol, path: str) -> bytes | None:
    """The exact bytes of a file; None when there is none."""
    return read_all(backend, [path])[0]


def read_all(backend: BackendProtocol, paths: Sequence[str]) -> list[bytes | None]:
    """As `read_bytes`, for many files in one call."""
    if type(backend).download_files is BackendProtocol.download_files:
        return [_read_by_pages(backend, path) for path in paths]
    with _faults_as_refusals("The memory could not be read"):
        answers = backend.download_files(list(paths))
    return [
        _downloaded(path, answer.content, answer.error) for path, answer in zip(paths, answers, strict=True)
    ]


def _downloaded(path: str, content: bytes | None, error: str | None) -> bytes | None:
    if error == FILE_NOT_FOUND:
        return None
    if error is not None or content is None:
        # Any other text may name folders of the host.
        reason = f" ({error})" if error in (IS_DIRECTORY, PERMISSION_DENIED) else ""
        raise ValueError(f"'{path}' could not be read{reason}")
    return content


def _read_by_pages(backend: BackendProtocol, path: str) -> bytes | None:
    parts: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = read_page(backend, path, offset, _PAGE_LINES)
        if page is None:
            return None
        parts.append(text_of(page, path))
        offset = page.next_offset
    return "".join(parts).encode()


def read_page(backend: BackendProtocol, path: str, offset: int, limit: int) -> ReadResult | None:
    """A window of lines; None when there is no such file."""
    with _faults_as_refusals("The memory could not be read"):
        page = backend.read(path, offset=offset, limit=limit)
    if page.error is None:
        return page
    if "not found" in page.error:
        return None
    if page.error.startswith("Line offset "):
        raise ValueError(page.error)
    if "codec can't decode" in page.error:
        raise ValueError(_not_text(path))
    raise ValueError(f"'{path}' could not be read")


def text_of(page: ReadResult, path: str) -> str:
    """The text of a window, without the reminder that stands for a blank file."""
    data = page.file_data
    if data is None:
        raise ValueError(f"'{path}' could not be read")
    if data["encoding"] != "utf-8":
        raise ValueError(_not_text(path))
    blank = page.start_line is None and data["content"] == EMPTY_REMINDER
    return "" if blank else data["content"]


def _not_text(path: str) -> str:
    return f"'{path}' is not a text file"


def write_bytes(backend: BackendProtocol, path: str, content: bytes) -> None:
    """Replace a text file. ValueError when the backend refuses or fails; what the file then holds is open."""
    with _faults_as_refusals(f"'{path}' could not be written"):
        error = backend.write(path, content.decode()).error
    if error is not None and ("permission denied" in error.lower() or error == PERMISSION_DENIED):
        raise ValueError(ErrorCode.READ_ONLY.sentence.format(path=path))
    if error is not None:
        raise ValueError(f"'{path}' could not be written")


def memory_files(backend: BackendProtocol) -> list[str]:
    """All files under `/memory/` that may hold entries, by path. ValueError when they can't all be listed."""
    with _faults_as_refusals("The memory could not be searched"):
        found = backend.glob("**/*.md", path=MEMORY_ROOT.rstrip("/"))
    if found.error is not None or found.truncated:
        raise ValueError(
            "The memory could not be searched: its files could not be listed completely; try again"
        )
    paths = {match["path"] for match in found.matches or []}
    return sorted(path for path in paths if path.startswith(MEMORY_ROOT) and is_memory_file(path))


@contextmanager
def _faults_as_refusals(what: str) -> Iterator[None]:
    """Backends should answer with results and some raise all the same, with texts that are not for a model."""
    try:
        yield
    except Exception as error:
        raise ValueError(f"{what}: the backend failed ({type(error).__name__})") from error
