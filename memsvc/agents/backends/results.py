"""What a backend answers to deepagents, from values that carry no database and no HTTP.

Paths are those that the agent uses: the mount's root is "/".
"""

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

from memsvc.agents.transactional import Mount
from memsvc.contract.errors import ErrorCode, Refused, sentence_for
from memsvc.contract.files import Listed, Window, WriteWarning, warnings_text
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


def file_info(listed: Listed, mount: Mount) -> FileInfo:
    """A listing row; a directory's path gets its closing slash."""
    path = mount.to_agent(listed.path)
    info = FileInfo(path=path + "/" if listed.is_dir else path, is_dir=listed.is_dir, size=listed.size)
    if listed.modified_at is not None:
        info["modified_at"] = listed.modified_at.isoformat()
    return info


def read_result(window: Window) -> ReadResult:
    """A window as deepagents reads it: of the lines of a text; anything else whole and in base64."""
    return ReadResult(
        file_data=FileData(
            content=window.content,
            encoding=window.encoding,
            created_at=window.created_at.isoformat(),
            modified_at=window.modified_at.isoformat(),
        ),
        total_lines=window.total_lines,
        start_line=window.start_line,
        end_line=window.end_line,
        next_offset=window.next_offset,
        no_lines_requested=window.no_lines_requested,
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
    warnings: tuple[WriteWarning, ...] = ()

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

    warnings: tuple[WriteWarning, ...] = ()


def write_result(path: str, warnings: Sequence[WriteWarning]) -> WriteResult:
    return ToldWriteResult(path=path, warnings=tuple(warnings)) if warnings else WriteResult(path=path)


def edit_result(path: str, occurrences: int, warnings: Sequence[WriteWarning]) -> EditResult:
    if not warnings:
        return EditResult(path=path, occurrences=occurrences)
    return ToldEditResult(path=path, occurrences=occurrences, warnings=tuple(warnings))


def upload_response(path: str, error: str | None, warnings: Sequence[WriteWarning]) -> FileUploadResponse:
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
