"""What can go wrong when talking to a memsvc server, as types to catch.

Every error of this client is a `MemsvcError`. One that the server answered carries its stable `code` (what to
decide on), `detail` (what to show), the HTTP `status` and the `request_id` (what to quote to whoever runs the
server). No error ever holds the API key.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Final

from memsvc.contract.errors import ErrorCode
from memsvc.format.refusals import CodedError


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """What was wrong with one field of a request."""

    field: str
    message: str
    code: str = ""


class MemsvcError(CodedError):
    """Something that was asked of the server was not done.

    `status` is None when no answer came. `members` are further facts of the answer (revision, etag, successor …).
    """

    default_code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN

    def __init__(
        self,
        detail: str,
        *,
        code: str = "",
        status: int | None = None,
        request_id: str | None = None,
        problems: Sequence[FieldProblem] = (),
        members: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        super().__init__(detail, code=code or self.default_code)
        self.status = status
        self.request_id = request_id
        self.problems = tuple(problems)
        self._members = members

    @property
    def members(self) -> Mapping[str, object]:
        return self._members


class InvalidRequest(MemsvcError):
    """The request itself can't be carried out as it is (400 and kin); `problems` names the fields."""

    default_code = ErrorCode.INVALID_REQUEST


class OffsetBeyondEnd(InvalidRequest):
    """The window starts after the file's last line."""

    default_code = ErrorCode.OFFSET_BEYOND_END


class TooLarge(MemsvcError):
    """More than the server takes."""

    default_code = ErrorCode.TOO_LARGE


class Unauthenticated(MemsvcError):
    """The key is missing, unknown, expired or revoked; the server doesn't say which."""

    default_code = ErrorCode.UNAUTHENTICATED


class Forbidden(MemsvcError):
    """The key is good but not for this: its scopes, its path prefix or a read-only tree."""

    default_code = ErrorCode.FORBIDDEN


class NotFound(MemsvcError):
    """There is no such tree, file, folder, entry or revision, or it is not open to this key."""

    default_code = ErrorCode.NOT_FOUND


class RevisionPruned(MemsvcError):
    """The revision is older than the history that is kept; `oldest` is the first that can be read."""

    default_code = ErrorCode.REVISION_PRUNED

    @property
    def oldest(self) -> int | None:
        return _number(self.members.get("oldest"))


class Conflict(MemsvcError):
    """The tree is in a state in which this can't be done."""

    default_code = ErrorCode.CONFLICT


class AlreadySuperseded(Conflict):
    """Somebody was faster: the entry has a `successor` (its id); supersede that one instead."""

    default_code = ErrorCode.ALREADY_SUPERSEDED

    @property
    def successor(self) -> str | None:
        return _text(self.members.get("successor"))


class InFlight(Conflict):
    """An earlier try of the same call has not ended yet; `retry_after` is in seconds."""

    default_code = ErrorCode.IDEMPOTENCY_IN_FLIGHT
    retry_after: float | None = None


class UndoRefused(Conflict):
    """Something has changed since in the same place, so nothing was undone; `conflicts` says what and where."""

    default_code = ErrorCode.UNDO_CONFLICT

    @property
    def conflicts(self) -> tuple[Mapping[str, object], ...]:
        """Each with `revision`, `path` and `reason`."""
        found = self.members.get("conflicts")
        return tuple(each for each in found if isinstance(each, dict)) if isinstance(found, list) else ()


class EditRefused(Conflict):
    """The text to replace is not there, or is there more often than once; nothing was changed."""

    default_code = ErrorCode.EDIT_REFUSED

    @property
    def occurrences(self) -> int | None:
        return _number(self.members.get("occurrences"))


class PreconditionFailed(MemsvcError):
    """What was to be changed is no longer as the caller knew it; nothing was changed.

    `revision` is the tree's current one; `etag` validates what is there now, or is None when nothing is.
    """

    default_code = ErrorCode.PRECONDITION_FAILED

    @property
    def revision(self) -> int | None:
        return _number(self.members.get("revision"))

    @property
    def etag(self) -> str | None:
        return _text(self.members.get("etag"))


class RateLimited(MemsvcError):
    """Too many requests for this key; nothing was done. `retry_after` is in seconds, where the server said it."""

    default_code = ErrorCode.RATE_LIMITED
    retry_after: float | None = None


class Unavailable(MemsvcError):
    """The server can't answer right now; nothing was done. `retry_after` is in seconds, where the server said it."""

    default_code = ErrorCode.UNAVAILABLE
    retry_after: float | None = None


class Busy(Unavailable):
    """Another writer held the tree for too long; nothing was changed, the same call may be repeated."""

    default_code = ErrorCode.BUSY


class ServerFailed(MemsvcError):
    """The server, or a proxy before it, failed. Whether a change was made is not known."""

    default_code = ErrorCode.SERVER_FAILED


class ConnectionFailed(MemsvcError):
    """No answer came. `sent` says whether the request may have reached the server: then a change may be made."""

    default_code = ErrorCode.CONNECTION_FAILED

    def __init__(self, detail: str, *, sent: bool) -> None:
        super().__init__(detail, code=ErrorCode.ANSWER_LOST if sent else ErrorCode.CONNECTION_FAILED)
        self.sent = sent


class UnexpectedAnswer(MemsvcError):
    """The answer is not one of memsvc: a wrong address, a proxy's page, or another version of the server."""

    default_code = ErrorCode.UNEXPECTED_ANSWER


# Those that are told apart by their code; the others, and codes of a later server, by the status.
_BY_CODE: Final[dict[str, type[MemsvcError]]] = {
    kind.default_code: kind
    for kind in (AlreadySuperseded, Busy, EditRefused, InFlight, OffsetBeyondEnd, RevisionPruned, UndoRefused)
}

_BY_STATUS: Final[dict[int, type[MemsvcError]]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: PreconditionFailed,
    413: TooLarge,
    416: OffsetBeyondEnd,
    429: RateLimited,
}


def error_for(
    status: int,
    *,
    problem: Mapping[str, object],
    request_id: str | None = None,
    retry_after: float | None = None,
) -> MemsvcError:
    """The typed error for an answer that reports a failure; `problem` is its problem document, or empty."""
    code = _text(problem.get("code")) or ""
    kind = _kind(status, code)
    error = kind(
        _text(problem.get("detail"))
        or _text(problem.get("title"))
        or f"The server answered with status {status}.",
        code=code,
        status=status,
        request_id=_text(problem.get("request_id")) or request_id,
        problems=_field_problems(problem.get("errors")),
        members=MappingProxyType(dict(problem)),
    )
    if isinstance(error, RateLimited | Unavailable | InFlight):
        error.retry_after = retry_after
    return error


def _kind(status: int, code: str) -> type[MemsvcError]:
    known = (ErrorCode(code).kind or code) if code in ErrorCode else code
    if known in _BY_CODE:
        return _BY_CODE[known]
    if status == 503 and code:
        return Unavailable
    if status >= 500:
        return ServerFailed
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return InvalidRequest if status >= 400 else UnexpectedAnswer


def _field_problems(errors: object) -> list[FieldProblem]:
    if not isinstance(errors, list):
        return []
    return [
        FieldProblem(str(error.get("field", "")), str(error.get("message", "")), str(error.get("code", "")))
        for error in errors
        if isinstance(error, dict)
    ]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None
