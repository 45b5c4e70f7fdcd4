"""What a backend of memsvc answers to deepagents, from values that carry no database and no HTTP.

`PostgresBackend` and `RemoteBackend` build every result and every refusal here, so that an agent can't tell which
of the two it is talking to. Paths are those that the agent uses: the mount's root is "/".
"""

import base64
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Final, Protocol

from deepagents.backends.protocol import (
    EditResult,
    FileData,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    ReadResult,
    WriteResult,
)

from memsvc.contract.errors import ErrorCode, Refused, sentence_for
from memsvc.format.paths import canonical_folder
from memsvc.format.refusals import CodedError

# Private, but the only list of the extensions that the middleware takes for media. A release without it has ours.
try:
    from deepagents.backends.utils import _get_backend_read_file_type as _type_in_deepagents
except ImportError:
    _type_in_deepagents = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

MEDIA_SUFFIXES: Final = frozenset(
    (
        *(".png", ".jpg", ".jpeg", ".webp", ".gif", ".heic", ".heif"),
        *(".mp4", ".mpeg", ".mov", ".avi", ".flv", ".mpg", ".webm", ".wmv", ".3gpp", ".mkv"),
        *(".wav", ".mp3", ".aiff", ".aac", ".ogg", ".flac"),
        *(".pdf", ".ppt", ".pptx"),
    )
)


class ListedLike(Protocol):
    @property
    def path(self) -> str: ...
    @property
    def is_dir(self) -> bool: ...
    @property
    def size(self) -> int: ...
    @property
    def modified_at(self) -> datetime | None: ...


class MatchLike(Protocol):
    @property
    def path(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def text(self) -> str: ...


class WarningLike(Protocol):
    @property
    def line(self) -> int: ...
    @property
    def code(self) -> str: ...
    @property
    def reason(self) -> str: ...


class PageLike(Protocol):
    @property
    def text(self) -> str: ...
    @property
    def binary(self) -> bytes | None: ...
    @property
    def total_lines(self) -> int | None: ...
    @property
    def start_line(self) -> int | None: ...
    @property
    def end_line(self) -> int | None: ...
    @property
    def next_offset(self) -> int | None: ...
    @property
    def no_lines_requested(self) -> bool: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def modified_at(self) -> datetime: ...


class Mount:
    """Where a backend's "/" lies in the tree: the agent's "/a.md" is the tree's "/memory/a.md"."""

    def __init__(self, root: str) -> None:
        self.root: Final = canonical_folder(root)

    def to_tree(self, path: str) -> str:
        """The tree path of a canonical path as the agent writes it."""
        if self.root == "/":
            return path
        return self.root if path == "/" else self.root + path

    def to_agent(self, path: str) -> str:
        """The agent's path of a tree path below the root."""
        return path if self.root == "/" else path.removeprefix(self.root) or "/"


def file_info(listed: ListedLike, path: str) -> FileInfo:
    """A listing row under `path`, the agent's path of it; a directory's gets its closing slash."""
    info = FileInfo(path=path + "/" if listed.is_dir else path, is_dir=listed.is_dir, size=listed.size)
    if listed.modified_at is not None:
        info["modified_at"] = listed.modified_at.isoformat()
    return info


def grep_match(match: MatchLike, path: str) -> GrepMatch:
    return GrepMatch(path=path, line=match.line, text=match.text)


def glob_result(found: Iterable[ListedLike], mount: Mount, *, truncated: bool) -> GlobResult:
    """Files by name. What the caller may not see is no part of the tree for it, so only a limit cuts them short."""
    return GlobResult(
        matches=[file_info(item, mount.to_agent(item.path)) for item in found],
        truncated=truncated,
        truncation_reason="budget" if truncated else None,
    )


def read_result(page: PageLike) -> ReadResult:
    """A page as deepagents reads it: text in a window of lines, anything else whole and in base64."""
    binary = page.binary is not None
    return ReadResult(
        file_data=FileData(
            content=page.text if page.binary is None else base64.b64encode(page.binary).decode("ascii"),
            encoding="base64" if binary else "utf-8",
            created_at=page.created_at.isoformat(),
            modified_at=page.modified_at.isoformat(),
        ),
        total_lines=page.total_lines,
        start_line=page.start_line,
        end_line=page.end_line,
        next_offset=page.next_offset,
        no_lines_requested=page.no_lines_requested,
    )


class _ToldPath(str):
    """The path of a file, which the text of a tool shows with what its writer has to know."""

    __slots__ = ("told",)
    told: str

    def __format__(self, spec: str) -> str:
        return format(str(self), spec) + self.told


# A result of the protocol has no field for it, an error would say that nothing was done, and a composite backend
# puts its own path in. The tools print the path, so that it is where a model gets to read it.
def _path_told(path: str, warnings: Sequence[WarningLike], *, quoted: bool) -> str:
    shown = _ToldPath(path)
    told = warnings_text(warnings)
    shown.told = f"', but take care:\n{told}\nMend it in '{path}" if quoted else f", but take care:\n{told}"
    return shown


def warnings_text(warnings: Sequence[WarningLike]) -> str:
    """Warnings for a model, a line for each."""
    return "\n".join(f"- line {each.line}: {each.reason}" for each in warnings)


@dataclass
class ToldWriteResult(WriteResult):
    """A write that was done, and what its writer has to know: in `warnings`, and in the tool's text."""

    warnings: tuple[WarningLike, ...] = ()

    def __post_init__(self) -> None:
        self.path = self.path

    def __setattr__(self, name: str, value: object) -> None:
        if name == "path" and isinstance(value, str) and self.warnings:
            value = _path_told(str(value), self.warnings, quoted=False)
        super().__setattr__(name, value)


@dataclass
class ToldEditResult(EditResult):
    """An edit that was done, and what its writer has to know: in `warnings`, and in the tool's text."""

    warnings: tuple[WarningLike, ...] = ()

    def __post_init__(self) -> None:
        self.path = self.path

    def __setattr__(self, name: str, value: object) -> None:
        if name == "path" and isinstance(value, str) and self.warnings:
            value = _path_told(str(value), self.warnings, quoted=True)
        super().__setattr__(name, value)


@dataclass
class ToldUploadResponse(FileUploadResponse):
    """A file that was stored, and what its writer has to know."""

    warnings: tuple[WarningLike, ...] = ()


def write_result(path: str, warnings: Sequence[WarningLike]) -> WriteResult:
    return ToldWriteResult(path=path, warnings=tuple(warnings)) if warnings else WriteResult(path=path)


def edit_result(path: str, occurrences: int, warnings: Sequence[WarningLike]) -> EditResult:
    if not warnings:
        return EditResult(path=path, occurrences=occurrences)
    return ToldEditResult(path=path, occurrences=occurrences, warnings=tuple(warnings))


def upload_response(path: str, error: str | None, warnings: Sequence[WarningLike]) -> FileUploadResponse:
    if not warnings:
        return FileUploadResponse(path=path, error=error)
    return ToldUploadResponse(path=path, error=error, warnings=tuple(warnings))


def is_media(path: str) -> bool:
    """Whether deepagents shows a file of this name as a picture, a sound, a film or a document, whatever it holds."""
    if _type_in_deepagents is not None:
        return _type_in_deepagents(path) != "text"
    return PurePosixPath(path).suffix.lower() in MEDIA_SUFFIXES


def media_result(data: bytes) -> ReadResult:
    """The whole file in base64, as deepagents wants media."""
    return ReadResult(file_data=FileData(content=base64.b64encode(data).decode("ascii"), encoding="base64"))


def refusal(error: Exception, path: str) -> str:
    """The error text of a result: what was wrong with `path`, for a model and for strangers."""
    return sentence_for(_coded(error), path)


def edit_refusal(error: Exception, path: str) -> str:
    """As `refusal`, with the "Error: " that deepagents' own edit errors begin with."""
    text = refusal(error, path)
    return text if text.startswith("Error: ") else f"Error: {text}"


def transfer_refusal(error: Exception, path: str) -> str:
    """The verdict on one item of an upload or download: a code of the protocol where there is one."""
    coded = _coded(error)
    verdict = ErrorCode(coded.code).verdict if coded.code in ErrorCode else None
    return verdict or sentence_for(coded, path)


def _coded(error: Exception) -> CodedError:
    """The error itself, or what strangers may know of one that nobody raised on purpose."""
    if isinstance(error, CodedError):
        return error
    logger.error("a backend call failed: %s", type(error).__name__, exc_info=error)
    return Refused(code=ErrorCode.INTERNAL_ERROR)
