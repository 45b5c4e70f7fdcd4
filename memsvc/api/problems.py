"""What goes wrong, in the one shape of an error: `application/problem+json` (RFC 9457).

Every problem has a stable `code` and a `detail` for people and models. None shows a trace, SQL, a path of this
server or a key.
"""

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from django.contrib.admin.exceptions import DisallowedModelAdminLookup, DisallowedModelAdminToField
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import DatabaseError, DataError, InterfaceError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.views import defaults
from rest_framework import exceptions
from rest_framework.exceptions import APIException

from memsvc.contract.errors import ErrorCode, Refused
from memsvc.format import CodedError, sendable
from memsvc.logging import request_id
from memsvc.tree.errors import BatchFailed

MEDIA_TYPE = "application/problem+json"
API_ROOT = "/v1/"
RETRY_AFTER_SECONDS = 1

# By sqlstate and not by class: a value that is too big for its index is an OperationalError that never heals, and
# an idle transaction that was ended an InternalError. See also memsvc.tree.scope.
PASSING_STATES = ("08", "40001", "40P01", "55P03", "57014", "57P", "25P03", "53300")
IMPOSSIBLE_STATES = ("22", "54")


class InvalidRequest(Refused):
    """A request that can't be understood, outside any single field."""

    code = ErrorCode.INVALID_REQUEST


class InvalidJson(Refused):
    code = ErrorCode.INVALID_JSON


def problem(
    code: ErrorCode,
    detail: str = "",
    *,
    members: Mapping[str, object] = MappingProxyType({}),
    headers: Mapping[str, str] = MappingProxyType({}),
) -> JsonResponse:
    """The answer for one error, sendable whatever it quotes of the request; the code may have the detail."""
    body = {
        "type": "about:blank",
        "title": HTTPStatus(code.status).phrase,
        "status": code.status,
        "code": code,
        "detail": detail or code.detail,
        "request_id": request_id.get(),
        **members,
    }
    again = {"Retry-After": str(RETRY_AFTER_SECONDS)} if code.retryable else {}
    return JsonResponse(
        _sendable(body), status=code.status, content_type=MEDIA_TYPE, headers={**headers, **again}
    )


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
        case BatchFailed(cause=cause, index=index):
            members = {**cause.members, "operation": index}
            return problem(ErrorCode(cause.code), error.detail, members=members)
        case CodedError():
            return problem(ErrorCode(error.code), error.detail, members=error.members)
        case exceptions.ValidationError():
            return _invalid(error)
        case APIException():
            return _api_problem(error)
        case Http404():
            return problem(ErrorCode.NOT_FOUND)
        case UnreadablePostError():
            return problem(ErrorCode.REQUEST_TIMEOUT)
        case RequestDataTooBig():
            return problem(ErrorCode.BODY_TOO_LARGE, "The body is too large.")
        case DatabaseError() | InterfaceError():
            return _database_problem(error)
        case UnicodeError() | RecursionError() | SuspiciousOperation():
            return _unreadable()
    return None


def _invalid(error: exceptions.ValidationError) -> HttpResponse:
    found = list(_field_errors(error.get_full_details()))
    detail = (
        "; ".join(f"{item['field']}: {item['message']}" for item in found[:3]) or "The request is not valid."
    )
    return problem(ErrorCode.INVALID_REQUEST, detail, members={"errors": found})


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
    """For what the framework finds itself; but for the key, its codes are ours."""
    of_key = isinstance(error, exceptions.NotAuthenticated | exceptions.AuthenticationFailed)
    code = ErrorCode.UNAUTHENTICATED if of_key else ErrorCode(str(error.default_code))
    auth_header = getattr(error, "auth_header", None)
    headers = {"WWW-Authenticate": auth_header} if auth_header else {}
    return problem(code, str(error.detail), headers=headers)


def _database_problem(error: DatabaseError | InterfaceError) -> HttpResponse | None:
    state = getattr(error.__cause__, "sqlstate", None)
    if state is None and not isinstance(error, DataError):
        # No connection was to be had: the server is away, or the pool is empty.
        return problem(ErrorCode.UNAVAILABLE)
    if isinstance(error, DataError) or (state or "").startswith(IMPOSSIBLE_STATES):
        return problem(
            ErrorCode.INVALID_REQUEST, "The request holds a value that can't be stored or looked for."
        )
    if (state or "").startswith(PASSING_STATES):
        return problem(ErrorCode.UNAVAILABLE)
    return None


def _unreadable() -> HttpResponse:
    return problem(ErrorCode.INVALID_REQUEST, "The request holds something that can't be read.")


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
        return problem(ErrorCode.FORBIDDEN, "This is not allowed.")
    return defaults.permission_denied(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not is_for_people(request):
        return problem(ErrorCode.NOT_FOUND)
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    if not is_for_people(request):
        return problem(ErrorCode.INTERNAL_ERROR)
    return defaults.server_error(request)


def is_for_people(request: HttpRequest) -> bool:
    return request.path.startswith("/admin/")
