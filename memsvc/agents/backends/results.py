"""What a backend answers to deepagents, from values that carry no database and no HTTP.

Paths are those that the agent uses: the mount's root is "/".
"""

import base64
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import ClassVar, Final

from deepagents.backends.protocol import (
    EditResult,
    FileData,
    FileInfo,
    FileUploadResponse,
    ReadResult,
    WriteResult,
)

from memsvc.agents.backends.ports import ListedLike, PageLike
from memsvc.agents.transactional import Mount
from memsvc.contract.errors import ErrorCode, Refused, sentence_for
from memsvc.format.problems import WarningLike, warnings_text
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


def file_info(listed: ListedLike, mount: Mount) -> FileInfo:
    """A listing row; a directory's path gets its closing slash."""
    path = mount.to_agent(listed.path)
    info = FileInfo(path=path + "/" if listed.is_dir else path, is_dir=listed.is_dir, size=listed.size)
    if listed.modified_at is not None:
        info["modified_at"] = listed.modified_at.isoformat()
    return info


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
@dataclass
class _Told:
    _shown: ClassVar[str]
    path: str | None = None
    warnings: tuple[WarningLike, ...] = ()

    def __post_init__(self) -> None:
        self.path = self.path

    def __setattr__(self, name: str, value: object) -> None:
        if name == "path" and isinstance(value, str) and self.warnings:
            plain, value = str(value), _ToldPath(value)
            value.told = self._shown.format(warnings=warnings_text(self.warnings), path=plain)
        super().__setattr__(name, value)


@dataclass
class ToldWriteResult(_Told, WriteResult):
    """A write that was done, and what its writer has to know: in `warnings`, and in the tool's text."""

    _shown = ", but take care:\n{warnings}"


@dataclass
class ToldEditResult(_Told, EditResult):
    """An edit that was done, and what its writer has to know: in `warnings`, and in the tool's text."""

    _shown = "', but take care:\n{warnings}\nMend it in '{path}"


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
