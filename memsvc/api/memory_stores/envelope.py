"""Errors in the shape that clients of memory stores read."""

import json
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponse, HttpResponseBase

from memsvc.api import problems
from memsvc.api.memory_stores.ids import memory_id
from memsvc.api.problems import API_ROOT, MEDIA_TYPE
from memsvc.contract.errors import ErrorCode
from memsvc.tree.errors import MemoryPathConflict

ROOT = f"{API_ROOT}memory_stores"

# What a problem says of itself, which the envelope says in its own way.
_OWN_MEMBERS = ("type", "title", "status", "code", "detail", "request_id")


def handle(error: Exception, context: object = None) -> HttpResponse | None:
    """As everywhere; a conflict names the other memory as this door does, or by nothing."""
    if isinstance(error, MemoryPathConflict):
        other = memory_id(error.conflicting_id) if error.conflicting_id else ""
        members = {"conflicting_memory_id": other, **error.members}
        return problems.problem(error.code, error.detail, members=members)
    return problems.handle(error, context)


class EnvelopeMiddleware:
    """Puts every problem of this door, whoever found it, into `{type: "error", error: {…}, request_id}`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        is_problem = response.headers.get("Content-Type") == MEDIA_TYPE
        if is_problem and isinstance(response, HttpResponse) and _is_of_this_door(request.path):
            return _in_envelope(response)
        return response


def _is_of_this_door(path: str) -> bool:
    return path == ROOT or path.startswith(f"{ROOT}/")


def _in_envelope(response: HttpResponse) -> HttpResponse:
    problem = json.loads(response.content)
    headers = {name: value for name, value in response.headers.items() if name != "Content-Type"}
    headers.pop("Content-Length", None)
    return JsonResponse(envelope(problem), status=response.status_code, headers=headers)


def envelope(problem: dict[str, Any]) -> dict[str, Any]:
    """The error of a problem; `code` is the one that memsvc's own interface has for it."""
    members = {name: value for name, value in problem.items() if name not in _OWN_MEMBERS}
    code = ErrorCode(problem["code"])
    error = {"type": code.store_type, "message": problem["detail"], "code": code, **members}
    return {"type": "error", "error": error, "request_id": problem["request_id"]}
