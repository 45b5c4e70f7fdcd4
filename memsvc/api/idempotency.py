"""Writes with an `Idempotency-Key` are done once, however often they are sent.

The key is claimed, the write done and its answer stored in one transaction, so a worker that dies after the commit
leaves the answer for the repeat, and one that dies before leaves nothing. Only what was done is stored: after a
refusal the same key may be used again.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import wraps
from hashlib import file_digest, sha256
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api.problems import InvalidRequest
from memsvc.contract.errors import ErrorCode, Refused
from memsvc.tree.scope import JoinedAtomic
from tenants import idempotency

if TYPE_CHECKING:
    from memsvc.api.views import TenantView

HEADER = "Idempotency-Key"
KEPT_HEADERS = ("ETag", "Location")
# Visible ASCII, as the header's length allows.
PATTERN = "[!-~]{1,255}"

type Write = Callable[..., HttpResponse]


def done_once(write: Write) -> Write:
    """A method of a view that changes something, as one that may be repeated with an `Idempotency-Key`."""

    @wraps(write)
    def method(view: "TenantView", request: Request, **names: str) -> HttpResponse:
        key = request.headers.get(HEADER)
        if key is None:
            return write(view, request, **names)
        if not re.fullmatch(PATTERN, key):
            raise InvalidRequest(f"{HEADER} must be 1 to 255 visible ASCII characters.")
        return _done_once(view, request, key, lambda: write(view, request, **names))

    return method


def _done_once(view: "TenantView", request: Request, key: str, write: Callable[[], Any]) -> HttpResponse:
    # Reads the body before the transaction begins: a slow client must hold nothing.
    fingerprint = _fingerprint(view, request)
    try:
        with JoinedAtomic():
            claim = idempotency.claim(view.caller.tenant, key, fingerprint)
            if view.long_running:
                idempotency.allow_idling()
            if claim is not None:
                return _stored(view, claim, write())
    except idempotency.StillInFlight:
        raise Refused(code=ErrorCode.IDEMPOTENCY_IN_FLIGHT) from None
    return _replayed(view, key, fingerprint)


def _stored(view: "TenantView", claim: Any, response: Response) -> HttpResponse:
    headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
    idempotency.keep(
        view.caller.tenant,
        claim,
        tree_id=view.tree_in_answer(),
        status=response.status_code,
        headers=headers,
        body=JSONRenderer().render(view.storable(response.data)),
    )
    return response


def _replayed(view: "TenantView", key: str, fingerprint: str) -> HttpResponse:
    first = idempotency.stored(view.caller.tenant, key)
    if first is None:
        # It was there a moment ago and has come of age since.
        raise Refused(code=ErrorCode.IDEMPOTENCY_IN_FLIGHT)
    if not first.body:
        raise Refused(code=ErrorCode.ANSWER_REDACTED)
    if not idempotency.is_of(first, fingerprint):
        raise Refused(code=ErrorCode.IDEMPOTENCY_KEY_REUSED)
    headers = {**first.headers, "Idempotent-Replayed": "true"}
    return HttpResponse(
        bytes(first.body), status=first.status, content_type=JSONRenderer.media_type, headers=headers
    )


def _fingerprint(view: "TenantView", request: Request) -> str:
    """What makes two requests the same: who asks, method, URL and body.

    The API key is part of it, because an answer is for the one that it was given to: another key of the tenant may
    not be allowed to see it.
    """
    url = [request.path_info, request.META.get("QUERY_STRING", "")]
    parts = [str(view.caller.key.pk), request.method, *url, _digest(request.data)]
    return sha256(json.dumps(parts).encode()).hexdigest()


def _digest(data: Any) -> str:
    if isinstance(data, Mapping):
        return sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
    if isinstance(data, bytes):
        return f"bytes {sha256(data).hexdigest()}"
    digest = file_digest(data, "sha256").hexdigest()
    data.seek(0)
    return f"bytes {digest}"
