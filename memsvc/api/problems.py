"""What goes wrong, in the one shape of an error: `application/problem+json` (RFC 9457).

Every problem has a stable `code` and a `detail` for people and models. None shows a trace, SQL, a path of this
server or a key.
"""

from collections.abc import Mapping
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

from django.contrib.admin.exceptions import DisallowedModelAdminLookup, DisallowedModelAdminToField
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import DatabaseError, DataError, InterfaceError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.views import defaults
from rest_framework import exceptions
from rest_framework.exceptions import APIException

from memsvc.format import FormatError, sendable
from memsvc.logging import request_id
from memsvc.transfer.errors import ImportRefused
from memsvc.tree import errors
from tenants.errors import BeyondOwnKey, InvalidKey, KeyEnded, KeyNotFound, TenantError

MEDIA_TYPE = "application/problem+json"
API_ROOT = "/v1/"
RETRY_AFTER_SECONDS = 1
MAX_SHOWN_ERRORS = 100

# The first class that fits counts.
TREE_STATUSES: tuple[tuple[type[errors.TreeError], int], ...] = (
    (errors.NotFound, 404),
    (errors.RevisionPruned, 410),
    (errors.IsFolder, 409),
    (errors.NotFolder, 409),
    (errors.Conflict, 409),
    (errors.FolderNeedsRecursive, 409),
    (errors.RootRefused, 409),
    (errors.PreconditionFailed, 412),
    (errors.EmptyOldString, 400),
    (errors.EditRefused, 409),
    (errors.OffsetBeyondEnd, 416),
    (errors.TooLarge, 413),
    (errors.ReadOnly, 403),
    (errors.Forbidden, 403),
    (errors.Busy, 503),
    (errors.Unavailable, 503),
)
# What a client may want to act on, besides the code.
MEMBERS = (
    "path",
    "entry_id",
    "successor",
    "revision",
    "etag",
    "occurrences",
    "total_lines",
    "newest",
    "oldest",
)

# By sqlstate and not by class: a value that is too big for its index is an OperationalError that never heals, and
# an idle transaction that was ended an InternalError. See also memsvc.tree.scope.
PASSING_STATES = ("08", "40001", "40P01", "55P03", "57014", "57P", "25P03", "53300")
IMPOSSIBLE_STATES = ("22", "54")


class MissingScope(exceptions.PermissionDenied):
    """A good key that may not do this."""

    default_code = "missing_scope"


class InvalidJson(exceptions.ParseError):
    default_code = "invalid_json"


class InvalidRequest(exceptions.ParseError):
    """A request that can't be understood, outside any single field."""

    default_code = "invalid_request"


class BodyTooLarge(APIException):
    status_code = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    default_code = "body_too_large"


class LengthRequired(APIException):
    status_code = HTTPStatus.LENGTH_REQUIRED
    default_code = "length_required"
    default_detail = "Send the body with a Content-Length; chunked bodies are not taken."


class IdempotencyInFlight(APIException):
    status_code = HTTPStatus.CONFLICT
    default_code = "idempotency_in_flight"
    default_detail = "The first request with this Idempotency-Key has not ended yet; ask again in a moment."
    wait = RETRY_AFTER_SECONDS


class IdempotencyKeyReused(APIException):
    status_code = HTTPStatus.UNPROCESSABLE_ENTITY
    default_code = "idempotency_key_reused"
    default_detail = "This Idempotency-Key was used for another request; take a new key for each write."


class AnswerRedacted(APIException):
    status_code = HTTPStatus.CONFLICT
    default_code = "answer_redacted"
    default_detail = (
        "A write with this Idempotency-Key was done and is not done again; its answer may have quoted what was "
        "redacted since, and is gone."
    )


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    members: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
) -> JsonResponse:
    """The answer for one error, sendable whatever it quotes of the request."""
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "code": code,
        "detail": detail,
        "request_id": request_id.get(),
        **(members or {}),
    }
    return JsonResponse(_sendable(body), status=status, content_type=MEDIA_TYPE, headers=dict(headers or {}))


def _sendable(value: object) -> Any:
    match value:
        case str():
            return sendable(value)
        case Mapping():
            return {_sendable(key): _sendable(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_sendable(inner) for inner in value]
    return value


def handle(error: Exception, context: object = None) -> HttpResponse | None:
    """DRF's exception handler for every view of the API; None is a fault of ours, logged and answered with a 500."""
    match error:
        case errors.TreeError():
            return _tree_problem(error)
        case TenantError():
            return _tenant_problem(error)
        case ImportRefused():
            return _import_problem(error)
        case FormatError():
            return problem(_format_status(error), error.code, str(error))
        case exceptions.ValidationError():
            return _invalid(error)
        case APIException():
            return _api_problem(error)
        case Http404():
            return problem(404, "not_found", "There is nothing here.")
        case UnreadablePostError():
            return problem(408, "request_timeout", "The body did not arrive.")
        case RequestDataTooBig():
            return problem(413, "body_too_large", "The body is too large.")
        case DatabaseError() | InterfaceError():
            return _database_problem(error)
        case UnicodeError() | RecursionError() | SuspiciousOperation():
            return _unreadable()
    return None


def _tree_problem(error: errors.TreeError) -> HttpResponse | None:
    if isinstance(error, errors.BatchFailed):
        return _batch_problem(error)
    status = next((status for kind, status in TREE_STATUSES if isinstance(error, kind)), None)
    if status is None:
        return None
    members = {name: getattr(error, name) for name in MEMBERS if hasattr(error, name)}
    if isinstance(error, errors.UndoRefused):
        members["conflicts"] = [asdict(conflict) for conflict in error.conflicts]
    return problem(status, error.code, str(error), members=members, headers=_retry_after(status))


def _tenant_problem(error: TenantError) -> HttpResponse | None:
    match error:
        case InvalidKey():
            return problem(400, "invalid_request", str(error))
        case BeyondOwnKey():
            return problem(403, "forbidden", str(error))
        case KeyNotFound():
            return problem(404, "key_not_found", str(error))
        case KeyEnded():
            return problem(409, "key_ended", str(error))
    return None


def _batch_problem(error: errors.BatchFailed) -> HttpResponse | None:
    """The problem of the operation that was refused, with its place in the batch."""
    cause = error.cause
    if isinstance(cause, FormatError):
        return problem(_format_status(cause), cause.code, str(error), members={"operation": error.index})
    status = next((status for kind, status in TREE_STATUSES if isinstance(cause, kind)), None)
    if status is None or not isinstance(cause, errors.TreeError):
        return None
    members = {name: getattr(cause, name) for name in MEMBERS if hasattr(cause, name)}
    members["operation"] = error.index
    return problem(status, cause.code, str(error), members=members, headers=_retry_after(status))


def _import_problem(error: ImportRefused) -> HttpResponse:
    shown = [
        {"field": name, "message": reason, "code": error.code}
        for name, reason in error.refused[:MAX_SHOWN_ERRORS]
    ]
    return problem(400, error.code, str(error), members={"errors": shown})


def _format_status(error: FormatError) -> int:
    return 413 if error.code == "body_too_large" else 400


def _retry_after(status: int) -> dict[str, str]:
    return {"Retry-After": str(RETRY_AFTER_SECONDS)} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}


def _invalid(error: exceptions.ValidationError) -> HttpResponse:
    found = list(_field_errors(error.get_full_details()))
    detail = (
        "; ".join(f"{item['field']}: {item['message']}" for item in found[:3]) or "The request is not valid."
    )
    return problem(400, "invalid_request", detail, members={"errors": found})


def _field_errors(details: Any, field: str = "") -> Any:
    """DRF's nested details as a flat list of {field, message, code}."""
    if isinstance(details, dict) and "message" in details and not isinstance(details["message"], dict | list):
        yield {"field": field, "message": str(details["message"]), "code": str(details["code"])}
    elif isinstance(details, dict):
        for name, inner in details.items():
            yield from _field_errors(inner, _joined(field, name))
    elif isinstance(details, list):
        for inner in details:
            yield from _field_errors(inner, field)


def _joined(field: str, name: object) -> str:
    if isinstance(name, int):
        return f"{field}[{name}]"
    return f"{field}.{name}" if field else str(name)


def _api_problem(error: APIException) -> HttpResponse:
    codes = {
        exceptions.NotAuthenticated: "unauthenticated",
        exceptions.AuthenticationFailed: "unauthenticated",
        exceptions.UnsupportedMediaType: "unsupported_media_type",
    }
    code = codes.get(type(error)) or str(error.default_code)
    headers = {}
    if auth_header := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = auth_header
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(wait)
    return problem(error.status_code, code, str(error.detail), headers=headers)


def _database_problem(error: DatabaseError | InterfaceError) -> HttpResponse | None:
    state = getattr(error.__cause__, "sqlstate", None)
    if state is None and not isinstance(error, DataError):
        # No connection was to be had: the server is away, or the pool is empty.
        return _unavailable()
    if isinstance(error, DataError) or (state or "").startswith(IMPOSSIBLE_STATES):
        return problem(
            400, "invalid_request", "The request holds a value that can't be stored or looked for."
        )
    if (state or "").startswith(PASSING_STATES):
        return _unavailable()
    return None


def _unavailable() -> HttpResponse:
    return problem(503, errors.Unavailable.code, str(errors.Unavailable()), headers=_retry_after(503))


def _unreadable() -> HttpResponse:
    return problem(400, "invalid_request", "The request holds something that can't be read.")


# Django's own handlers, for what happens outside any view (memsvc/urls.py names them). People in the admin get pages.


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not is_for_people(request):
        return handle(exception) or _unreadable()
    if isinstance(exception, DisallowedModelAdminLookup | DisallowedModelAdminToField):
        # A list by a column that can't be asked for is not there, as a row that may not be seen isn't.
        return not_found(request, exception)
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not is_for_people(request):
        return problem(403, "forbidden", "This is not allowed.")
    return defaults.permission_denied(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not is_for_people(request):
        return problem(404, "not_found", "There is nothing here.")
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    if not is_for_people(request):
        return problem(
            500, "internal_error", "Something went wrong here; it was logged under this request_id."
        )
    return defaults.server_error(request)


def is_for_people(request: HttpRequest) -> bool:
    return request.path.startswith("/admin/")
