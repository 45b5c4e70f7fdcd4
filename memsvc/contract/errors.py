"""Every error that has a code, and what each door makes of it: one row per code.

The tree, the tenants and the REST interface raise them, a problem document shows them, memory stores have their own
words for them, the client raises them again on its side of the wire, and a backend tells them to a model. A new error
is a row here and the place that raises it. The codes of `memsvc.format` stand there, with what it refuses.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType, UnionType
from typing import Any, Final, NamedTuple, Self

from memsvc.format.globs import InvalidGlob
from memsvc.format.metadata import InvalidMetadata
from memsvc.format.refusals import (
    BODY_TOO_LARGE,
    BlankBody,
    CodedError,
    FormatError,
    InvalidEntry,
    InvalidPath,
    InvalidText,
    InvalidTitle,
    sendable,
)

_GENERAL: Final = "The memory service could not do this for '{path}' ({code})."
# For a model: the detail says it all, and names no path of the tree that the agent knows by another name.
_AS_IT_IS: Final = "{detail}"
_BUSY: Final = "The memory is being written by someone else right now; nothing was changed, try again."
_AWAY: Final = "The memory can't be reached right now; try again in a moment."

_STORE_TYPES: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


class _Row(NamedTuple):
    code: str
    status: int = 0
    members: Mapping[str, type | UnionType] = MappingProxyType({})
    detail: str = ""
    sentence: str = _GENERAL
    verdict: str | None = None
    kind: str | None = None
    store_type: str | None = None
    retryable: bool = False


class ErrorCode(StrEnum):
    """The code of an error; an error's other sides are attributes of its code."""

    status: int
    """The HTTP status, or 0 for what is no answer of a server: the client finds it, or it only wraps another."""
    members: Mapping[str, type | UnionType]
    """What an answer with this code may say besides, for programs: names and types."""
    detail: str
    """What is said where it is always the same; empty where whoever raises the error says it."""
    sentence: str
    """What a model is told, made of `path` (as the agent wrote it), `detail` and `code`: see `sentence_for`."""
    verdict: str | None
    """The code of the backend protocol for one item of an upload or download, where it has one."""
    kind: str | None
    """The code of a wider kind, for those who act on that one."""
    store_type: str
    """What clients of memory stores know it as."""
    retryable: bool
    """Whether the very same call may succeed a moment later."""

    def __new__(cls, *row: Any) -> Self:
        given = _Row(*row)
        self = str.__new__(cls, given.code)
        self._value_ = given.code
        self.status = given.status
        self.members = given.members
        self.detail = given.detail
        self.sentence = given.sentence
        self.verdict = given.verdict
        self.kind = given.kind
        by_status = "api_error" if given.status >= 500 else "invalid_request_error"
        self.store_type = given.store_type or _STORE_TYPES.get(given.status, by_status)
        self.retryable = given.retryable
        return self

    # What can't be understood or stored.
    INVALID_REQUEST = _Row("invalid_request", 400, members={"errors": list}, sentence=_AS_IT_IS)
    INVALID_JSON = _Row("invalid_json", 400)
    INVALID_FORMAT = _Row(FormatError.code, 400)
    INVALID_PATH = _Row(InvalidPath.code, 400, sentence=_AS_IT_IS, verdict="invalid_path")
    INVALID_TEXT = _Row(InvalidText.code, 400, sentence=_AS_IT_IS)
    INVALID_ENTRY = _Row(InvalidEntry.code, 400)
    BLANK_BODY = _Row(BlankBody.code, 400)
    INVALID_TITLE = _Row(InvalidTitle.code, 400)
    INVALID_GLOB = _Row(InvalidGlob.code, 400, sentence=_AS_IT_IS)
    INVALID_METADATA = _Row(InvalidMetadata.code, 400)
    EMPTY_OLD_STRING = _Row("empty_old_string", 400, sentence=_AS_IT_IS, kind="edit_refused")
    INVALID_ARCHIVE = _Row("invalid_archive", 400)
    INVALID_LINE = _Row("invalid_line", 400)
    IMPORT_REFUSED = _Row("import_refused", 400, members={"errors": list})

    # Who asks, and for what.
    UNAUTHENTICATED = _Row(
        "unauthenticated",
        401,
        sentence="permission denied: the memory service did not accept the API key",
        verdict="permission_denied",
    )
    MISSING_SCOPE = _Row(
        "missing_scope",
        403,
        sentence="permission denied: this key does not allow that for '{path}'",
        verdict="permission_denied",
    )
    FORBIDDEN = _Row(
        "forbidden",
        403,
        members={"path": str},
        sentence="permission denied: '{path}' is outside the part of the memory that is open here",
        verdict="permission_denied",
    )
    READ_ONLY = _Row(
        "read_only",
        403,
        detail="permission denied: this access may read memory but not change it",
        sentence="permission denied: '{path}' may be read here but not changed",
        verdict="permission_denied",
    )

    # What is not there.
    NOT_FOUND = _Row("not_found", 404, detail="There is nothing here.")
    TREE_NOT_FOUND = _Row(
        "tree_not_found", 404, sentence="The memory tree was not found, or is not open to this key."
    )
    FILE_NOT_FOUND = _Row(
        "file_not_found",
        404,
        members={"path": str},
        sentence="File '{path}' not found",
        verdict="file_not_found",
    )
    PATH_NOT_FOUND = _Row(
        "path_not_found",
        404,
        members={"path": str},
        sentence="Path '{path}': path_not_found",
        verdict="file_not_found",
    )
    ENTRY_NOT_FOUND = _Row("entry_not_found", 404, members={"entry_id": str})
    REVISION_NOT_FOUND = _Row("revision_not_found", 404, members={"newest": int})
    REVISION_PRUNED = _Row("revision_pruned", 410, members={"oldest": int})
    MEMORY_STORE_NOT_FOUND = _Row("memory_store_not_found", 404, detail="There is no such memory store.")
    MEMORY_NOT_FOUND = _Row("memory_not_found", 404, detail="There is no such memory.")
    MEMORY_VERSION_NOT_FOUND = _Row(
        "memory_version_not_found", 404, detail="There is no such version of a memory."
    )
    NOTHING_TO_ERASE = _Row("nothing_to_erase", 404)
    KEY_NOT_FOUND = _Row("key_not_found", 404, detail="There is no such key.")

    # How it is asked.
    METHOD_NOT_ALLOWED = _Row("method_not_allowed", 405)
    NOT_ACCEPTABLE = _Row("not_acceptable", 406)
    REQUEST_TIMEOUT = _Row("request_timeout", 408, detail="The body did not arrive.")
    LENGTH_REQUIRED = _Row(
        "length_required", 411, detail="Send the body with a Content-Length; chunked bodies are not taken."
    )
    TOO_LARGE = _Row("too_large", 413, sentence=_AS_IT_IS)
    BODY_TOO_LARGE = _Row(BODY_TOO_LARGE, 413, sentence=_AS_IT_IS)
    UNSUPPORTED_MEDIA_TYPE = _Row("unsupported_media_type", 415)
    OFFSET_BEYOND_END = _Row("offset_beyond_end", 416, members={"total_lines": int}, sentence=_AS_IT_IS)
    IDEMPOTENCY_KEY_REUSED = _Row(
        "idempotency_key_reused",
        422,
        detail="This Idempotency-Key was used for another request; take a new key for each write.",
    )
    IDEMPOTENCY_IN_FLIGHT = _Row(
        "idempotency_in_flight",
        409,
        detail="The first request with this Idempotency-Key has not ended yet; ask again in a moment.",
        retryable=True,
    )
    ANSWER_REDACTED = _Row(
        "answer_redacted",
        409,
        detail="A write with this Idempotency-Key was done and is not done again; its answer may have quoted what was "
        "redacted since, and is gone.",
    )

    # What the state of the tree, or of the server, rules out.
    CONFLICT = _Row("conflict", 409)
    IS_DIRECTORY = _Row(
        "is_directory",
        409,
        members={"path": str},
        sentence="'{path}' is a directory, not a file",
        verdict="is_directory",
    )
    NOT_A_DIRECTORY = _Row(
        "not_a_directory",
        409,
        members={"path": str},
        sentence="Path '{path}': not_a_directory",
        verdict="file_not_found",
    )
    PATH_TAKEN = _Row(
        "path_taken",
        409,
        members={"path": str},
        sentence="'{path}' can't be made: a file stands where a folder is needed, or a folder where the file",
    )
    FOLDER_NOT_EMPTY = _Row("folder_not_empty", 409, members={"path": str})
    ROOT_REFUSED = _Row(
        "root_refused",
        409,
        detail="The root folder can't be deleted or moved; name the files or folders in it one by one.",
        sentence="The root folder can't be deleted; delete the files or folders in it one by one.",
        verdict="invalid_path",
    )
    TREE_EXISTS = _Row("tree_exists", 409)
    TREE_ARCHIVED = _Row("tree_archived", 409)
    ALREADY_SUPERSEDED = _Row("already_superseded", 409, members={"entry_id": str, "successor": str})
    INVALID_SUPERSESSION = _Row("invalid_supersession", 409)
    EDIT_REFUSED = _Row("edit_refused", 409)
    STRING_NOT_FOUND = _Row("string_not_found", 409, sentence=_AS_IT_IS, kind="edit_refused")
    STRING_NOT_UNIQUE = _Row(
        "string_not_unique", 409, members={"occurrences": int}, sentence=_AS_IT_IS, kind="edit_refused"
    )
    NOT_TEXT = _Row(
        "not_text",
        409,
        detail="Error: Cannot edit binary files with text replacements.",
        sentence=_AS_IT_IS,
        kind="edit_refused",
    )
    UNDO_CONFLICT = _Row("undo_conflict", 409, members={"conflicts": list})
    PRECONDITION_FAILED = _Row("precondition_failed", 412, members={"revision": int, "etag": str | None})
    MEMORY_PRECONDITION_FAILED = _Row(
        "memory_precondition_failed",
        409,
        detail="The memory has changed since it was read; read it again and repeat the change",
        store_type="memory_precondition_failed_error",
    )
    MEMORY_PATH_CONFLICT = _Row(
        "memory_path_conflict",
        409,
        members={"conflicting_memory_id": str, "conflicting_path": str},
        store_type="memory_path_conflict_error",
    )
    CURRENT_VERSION = _Row(
        "current_version",
        409,
        detail="This is the current version of a memory; write a clean version or delete the memory, and redact then",
    )
    OUT_OF_SIGHT = _Row(
        "out_of_sight",
        409,
        detail="What this version holds lies outside the part of the tree that is open here; use a key that sees it",
    )
    NO_EMBEDDER = _Row(
        "no_embedder",
        409,
        detail="Mneme's scoring compares vectors, and this server has no embedder; use another scoring or set one up.",
    )
    KEY_ENDED = _Row("key_ended", 409, detail="This key is revoked or expired; make a new one instead.")
    BATCH_FAILED = _Row("batch_failed")

    # What passes, and what is a fault.
    RATE_LIMITED = _Row("rate_limited", 429, sentence=_AS_IT_IS, retryable=True)
    BUSY = _Row("busy", 503, detail=_BUSY, sentence=_BUSY, retryable=True)
    UNAVAILABLE = _Row("unavailable", 503, detail=_AWAY, sentence=_AWAY, retryable=True)
    INTERNAL_ERROR = _Row(
        "internal_error", 500, detail="Something went wrong here; it was logged under this request_id."
    )

    # What a client finds when no answer came, or none of memsvc's.
    CONNECTION_FAILED = _Row("connection_failed", sentence=_AWAY, retryable=True)
    ANSWER_LOST = _Row(
        "answer_lost",
        sentence="No answer came for '{path}', so a change may or may not have been made; read it before trying again.",
        retryable=True,
    )
    SERVER_FAILED = _Row("server_failed")
    UNEXPECTED_ANSWER = _Row("unexpected_answer")
    UNKNOWN = _Row("error")


class Refused(CodedError):
    """An error with a code of the table, and with its text where the code has one of its own."""

    code: ErrorCode

    def __init__(self, detail: str = "", *, code: ErrorCode | None = None) -> None:
        super().__init__(detail or (code or self.code).detail, code=code)

    @property
    def members(self) -> Mapping[str, object]:
        return {name: getattr(self, name) for name in self.code.members if hasattr(self, name)}


def sentence_for(error: CodedError, path: str) -> str:
    """What a model is told: what was wrong with `path`, by the name that the agent has for it."""
    sentence = ErrorCode(error.code).sentence if error.code in ErrorCode else _GENERAL
    return sendable(sentence.format(path=path, detail=error.detail, code=error.code))
