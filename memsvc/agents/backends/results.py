"""What a backend answers to deepagents, from values that carry no database and no HTTP.

Paths are those that the agent uses: the mount's root is "/".
"""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import ClassVar, Final

from deepagents.backends.protocol import (
    FILE_NOT_FOUND,
    INVALID_PATH,
    IS_DIRECTORY,
    PERMISSION_DENIED,
    EditResult,
    FileData,
    FileInfo,
    FileUploadResponse,
    ReadResult,
    WriteResult,
)

from memsvc.agents.backends.ports import ListedLike, PageLike
from memsvc.agents.transactional import Mount
from memsvc.format.errors import sendable
from memsvc.format.problems import WarningLike, warnings_text

# Private, but the only list of the extensions that the middleware takes for media. A release without it has ours.
try:
    from deepagents.backends.utils import _get_backend_read_file_type as _type_in_deepagents
except ImportError:
    _type_in_deepagents = None  # type: ignore[assignment]

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


class Refused(Exception):
    """What the backend itself refuses, before it asks the tree."""

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(message)
        self.code = code


# The codes of TreeError and of the REST problems, as sentences that name the path as the agent wrote it. The
# texts that deepagents and its models look for are fixed: reference/protocol.md, "Exact strings".
_SENTENCES: Final[dict[str, Callable[[str], str]]] = {
    "file_not_found": lambda path: f"File '{path}' not found",
    "path_not_found": lambda path: f"Path '{path}': path_not_found",
    "not_a_directory": lambda path: f"Path '{path}': not_a_directory",
    "is_directory": lambda path: f"'{path}' is a directory, not a file",
    "path_taken": lambda path: (
        f"'{path}' can't be made: a file stands where a folder is needed, or a folder where the file"
    ),
    "root_refused": lambda _: (
        "The root folder can't be deleted; delete the files or folders in it one by one."
    ),
    "read_only": lambda path: f"permission denied: '{path}' may be read here but not changed",
    "forbidden": lambda path: (
        f"permission denied: '{path}' is outside the part of the memory that is open here"
    ),
    "missing_scope": lambda path: f"permission denied: this key does not allow that for '{path}'",
    "unauthenticated": lambda _: "permission denied: the memory service did not accept the API key",
    "tree_not_found": lambda _: "The memory tree was not found, or is not open to this key.",
    "busy": lambda _: (
        "The memory is being written by someone else right now; nothing was changed, try again."
    ),
    "unavailable": lambda _: "The memory can't be reached right now; try again in a moment.",
    "connection_failed": lambda _: "The memory can't be reached right now; try again in a moment.",
    "answer_lost": lambda path: (
        f"No answer came for '{path}', so a change may or may not have been made; read it before trying again."
    ),
}

# Raised with a text that already says it all and names no path of the tree.
_SPEAKING: Final = frozenset(
    {
        "body_too_large",
        "empty_old_string",
        "invalid_glob",
        "invalid_path",
        "invalid_request",
        "invalid_text",
        "not_text",
        "offset_beyond_end",
        "rate_limited",
        "string_not_found",
        "string_not_unique",
        "too_large",
    }
)

_TRANSFER_CODES: Final = {
    "file_not_found": FILE_NOT_FOUND,
    "path_not_found": FILE_NOT_FOUND,
    "not_a_directory": FILE_NOT_FOUND,
    "is_directory": IS_DIRECTORY,
    "invalid_path": INVALID_PATH,
    "root_refused": INVALID_PATH,
    "read_only": PERMISSION_DENIED,
    "forbidden": PERMISSION_DENIED,
    "missing_scope": PERMISSION_DENIED,
    "unauthenticated": PERMISSION_DENIED,
}


def refusal(code: str, message: str, path: str) -> str:
    """The error text of a result: what was wrong with `path`, for a model and for strangers.

    `code` and `message` are those of the error; a message is passed on only where it can't hold a path of the
    tree that the agent doesn't know by that name.
    """
    if code in _SPEAKING:
        return sendable(message)
    if code in _SENTENCES:
        return sendable(_SENTENCES[code](path))
    return sendable(f"The memory service could not do this for '{path}' ({code}).")


def edit_refusal(code: str, message: str, path: str) -> str:
    """As `refusal`, with the "Error: " that deepagents' own edit errors begin with."""
    text = refusal(code, message, path)
    return text if text.startswith("Error: ") else f"Error: {text}"


def transfer_refusal(code: str, message: str, path: str) -> str:
    """The verdict on one item of an upload or download: a code of the protocol where there is one."""
    return _TRANSFER_CODES.get(code) or refusal(code, message, path)
