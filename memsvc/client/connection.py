"""One HTTP connection pool to a server, with the key, typed errors, and repeats that do nothing twice."""

import json
import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, TypedDict, Unpack
from urllib.parse import quote
from uuid import uuid4

import httpx

from memsvc.client.errors import (
    Busy,
    ConnectionFailed,
    InFlight,
    InvalidRequest,
    MemsvcError,
    RateLimited,
    ServerFailed,
    Unavailable,
    UnexpectedAnswer,
    error_for,
)

DEFAULT_TIMEOUT: Final = httpx.Timeout(30.0, connect=5.0)

# Raised by httpx before the first byte of the request is on its way.
_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_GATEWAY: Final = frozenset({502, 503, 504})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently a call is repeated.

    `attempts` counts the first one. Waits grow from `first_wait` by doubling and are drawn at random below that, so
    that clients that failed together don't come back together. A server that asks for more than `longest_wait`
    seconds is not waited for: the error is raised and says how long it would take.
    """

    attempts: int = 4
    first_wait: float = 0.2
    longest_wait: float = 10.0

    def wait_after(self, attempt: int, failure: MemsvcError) -> float | None:
        """Seconds to wait after the failed attempt number `attempt` (from 1), or None to give up."""
        if attempt >= self.attempts:
            return None
        drawn = random.uniform(0, min(self.longest_wait, self.first_wait * 2 ** (attempt - 1)))
        asked = getattr(failure, "retry_after", None)
        if asked is None:
            return drawn
        return asked + drawn if asked <= self.longest_wait else None


class RequestParts(TypedDict, total=False):
    """What a request may have besides its method and path."""

    query: Mapping[str, object]
    """Those that are None are left out."""
    body: object
    """Sent as JSON."""
    content: bytes
    """Sent as it is."""
    headers: Mapping[str, str]
    patience: float
    """How many seconds the answer may take, where by its nature it takes longer than others."""


class Connection:
    """Sends requests below `<base_url>/v1`. Safe to share between threads; close it when done."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: float | httpx.Timeout = DEFAULT_TIMEOUT,
        retries: RetryPolicy | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.base_url = _checked_url(base_url)
        self._retries = retries or RetryPolicy()
        self._http = httpx.Client(
            headers={
                "Authorization": f"Bearer {_checked_key(api_key)}",
                "Accept": "application/json",
                "User-Agent": "memsvc-python",
            },
            timeout=timeout,
            transport=transport,
        )

    def close(self) -> None:
        self._http.close()

    def send(self, method: str, path: str, **parts: Unpack[RequestParts]) -> httpx.Response:
        """The server's answer, read whole; every failure is raised as a MemsvcError.

        `path` is percent-encoded already. After a passing failure the request is sent again. It is done once all the
        same, because all its tries have one `Idempotency-Key`.
        """
        request = self._request(method, path, **parts)
        attempt = 1
        while True:
            try:
                return self._send_once(request)
            except MemsvcError as failure:
                wait = self._retries.wait_after(attempt, failure) if _passing(failure) else None
                if wait is None:
                    raise
            time.sleep(wait)
            attempt += 1

    @contextmanager
    def stream(self, path: str, *, query: Mapping[str, object], accept: str) -> Iterator[Iterator[bytes]]:
        """The body of a GET in pieces, as they come. Not repeated: a part may already be with the caller."""
        request = self._request("GET", path, query=query, headers={"Accept": accept})
        with _as_memsvc_errors():
            response = self._http.send(request, stream=True)
        try:
            if not response.is_success:
                with _as_memsvc_errors():
                    response.read()
                raise _failure(response)
            yield _pieces(response)
        finally:
            response.close()

    def _request(self, method: str, path: str, **parts: Unpack[RequestParts]) -> httpx.Request:
        headers, content = dict(parts.get("headers", {})), parts.get("content")
        if method != "GET":
            headers["Idempotency-Key"] = str(uuid4())
        if "body" in parts:
            content = json_bytes(parts["body"])
            headers["Content-Type"] = "application/json"
        request = self._http.build_request(
            method,
            f"{self.base_url}/v1{path}",
            params=_query(parts.get("query", {})),
            content=content,
            headers=headers,
        )
        if "patience" in parts:
            request.extensions["timeout"] |= {"read": parts["patience"]}
        return request

    def _send_once(self, request: httpx.Request) -> httpx.Response:
        with _as_memsvc_errors():
            response = self._http.send(request)
        if response.is_success or response.status_code == httpx.codes.NOT_MODIFIED:
            return response
        raise _failure(response)


def json_object(response: httpx.Response) -> Mapping[str, object]:
    try:
        data = response.json()
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise UnexpectedAnswer(
            "The answer is not from a memsvc server (or from another version): check the base_url.",
            status=response.status_code,
        )
    return data


def json_bytes(body: object) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            "the request holds half of a surrogate pair; send whole characters", code="invalid_text"
        ) from error


def segment(text: str) -> str:
    """`text` as one segment of a URL's path."""
    # A segment of dots would be taken as a step in the path by every URL library on the way.
    return text.replace(".", "%2E") if text in {".", ".."} else quote(text, safe="")


def _passing(failure: MemsvcError) -> bool:
    """Whether sending again may help."""
    match failure:
        case Busy() | Unavailable() | RateLimited() | InFlight() | ConnectionFailed():
            return True
        case ServerFailed(status=status):
            return status in _GATEWAY
    return False


@contextmanager
def _as_memsvc_errors() -> Iterator[None]:
    """Turns what httpx raises into ConnectionFailed, in words without headers or keys."""
    try:
        yield
    except httpx.RequestError as error:
        sent = not isinstance(error, _NOT_SENT)
        what = "The memory service did not answer" if sent else "The memory service can't be reached"
        raise ConnectionFailed(f"{what} ({type(error).__name__}).", sent=sent) from error


def _failure(response: httpx.Response) -> MemsvcError:
    try:
        problem = response.json()
    except ValueError:
        problem = None
    return error_for(
        response.status_code,
        problem=problem if isinstance(problem, dict) else {},
        request_id=response.headers.get("X-Request-Id"),
        retry_after=_retry_after(response.headers.get("Retry-After", "")),
    )


def _retry_after(value: str) -> float | None:
    """Seconds from a Retry-After header, which holds a number or a date."""
    if value.strip().isdecimal():
        return float(value)
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (at.astimezone(UTC) - datetime.now(UTC)).total_seconds())


def _pieces(response: httpx.Response) -> Iterator[bytes]:
    with _as_memsvc_errors():
        yield from response.iter_bytes()


def _query(query: Mapping[str, object]) -> dict[str, str | list[str]]:
    """Query parameters as text; those that are None are left out."""
    return {
        name: [str(one) for one in value] if isinstance(value, list | tuple) else _query_text(value)
        for name, value in query.items()
        if value is not None
    }


def _query_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _checked_url(base_url: str) -> str:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise ValueError("base_url is no URL; it looks like https://memory.example.com") from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise ValueError("base_url must be an http or https address, such as https://memory.example.com")
    if url.userinfo or url.query or url.fragment:
        raise ValueError("base_url must hold neither a login nor a query; the key goes into api_key")
    return str(url).rstrip("/")


def _checked_key(api_key: str) -> str:
    # httpx would name the whole header in its error.
    if not api_key or not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        raise ValueError("api_key must be the key as it was shown, msk_…, without blanks or line breaks")
    return api_key
