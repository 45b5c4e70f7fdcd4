"""One HTTP connection pool to a server, with the key, typed errors, and repeats that do nothing twice.

There are two, for threads and for an event loop. What they have in common is written once: a call is a generator of
the requests to send (`Steps`), and each connection only sends them, in its own way.
"""

import asyncio
import json
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final, TypedDict, Unpack
from urllib.parse import quote
from uuid import uuid4

import httpx

from memsvc.client.errors import (
    ConnectionFailed,
    InvalidRequest,
    MemsvcError,
    UnexpectedAnswer,
    error_for,
)
from memsvc.contract.errors import ErrorCode

DEFAULT_TIMEOUT: Final = httpx.Timeout(30.0, connect=5.0)

# Raised by httpx before the first byte of the request is on its way.
_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_PIECE_BYTES: Final = 256 * 1024
_PASSING: Final = frozenset({429, 502, 503, 504})


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
    content: bytes | Path
    """Sent as it is; a file in pieces, and from its start with each try."""
    headers: Mapping[str, str]
    patience: float
    """How many seconds the answer may take, where by its nature it takes longer than others."""
    streamed: bool
    """Whether the answer's body is left for the caller to read, piece by piece, and to close."""


@dataclass(frozen=True, slots=True)
class Try:
    """A request that is to be sent, once `wait` seconds have passed."""

    request: httpx.Request
    wait: float
    streamed: bool


type Outcome = httpx.Response | httpx.RequestError

# A call as its tries, one after the other: it gets the outcome of each and ends with the answer, or a MemsvcError.
# It waits for nothing itself, so the same steps serve a thread and an event loop.
type Steps[Answer] = Generator[Try, Outcome, Answer]


class _Exchange[Http: (httpx.Client, httpx.AsyncClient)]:
    """What requests look like, what their outcome means, and when they are sent again."""

    def __init__(self, http: Http, base_url: str, retries: RetryPolicy | None) -> None:
        """`http` has the headers of `headers_of(api_key)`."""
        self.base_url: Final = _checked_url(base_url)
        self._http: Final[Http] = http
        self._retries: Final = retries or RetryPolicy()

    def send(self, method: str, path: str, **parts: Unpack[RequestParts]) -> Steps[httpx.Response]:
        """The server's answer; every failure is raised as a MemsvcError.

        `path` is percent-encoded already. After a passing failure the request is sent again. It is done once all the
        same, because all its tries have one `Idempotency-Key`. Once a streamed answer has begun, nothing is repeated:
        a part may already be with the caller.
        """
        request = self._request(method, path, **parts)
        attempt, wait = 1, 0.0
        while True:
            try:
                return _good((yield Try(request, wait, parts.get("streamed", False))))
            except MemsvcError as failure:
                longer = self._retries.wait_after(attempt, failure) if _passing(failure) else None
                if longer is None:
                    raise
            attempt, wait = attempt + 1, longer

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
            content=None if isinstance(content, Path) else content,
            headers=headers,
        )
        if isinstance(content, Path):
            # The server takes no body without a length.
            request.headers["Content-Length"] = str(content.stat().st_size)
            request.stream = _FileBody(content)
        if "patience" in parts:
            request.extensions["timeout"] |= {"read": parts["patience"]}
        return request


class Connection(_Exchange[httpx.Client]):
    """Carries out calls below `<base_url>/v1`. Safe to share between threads; close it when done."""

    def close(self) -> None:
        self._http.close()

    def run[**Parameters, Answer](
        self,
        call: Callable[Parameters, Steps[Answer]],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Answer:
        """The answer of a call with these arguments."""
        steps = call(*args, **kwargs)
        try:
            step = next(steps)
            while True:
                time.sleep(step.wait)
                step = steps.send(self._outcome(step))
        except StopIteration as done:
            answer: Answer = done.value
            return answer

    def pieces[**Parameters](
        self,
        call: Callable[Parameters, Steps[httpx.Response]],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Iterator[bytes]:
        """The body of the streamed answer of a call, in pieces, as they come."""
        response = self.run(call, *args, **kwargs)
        try:
            with _as_memsvc_errors():
                yield from response.iter_bytes()
        finally:
            response.close()

    def _outcome(self, step: Try) -> Outcome:
        try:
            response = self._http.send(step.request, stream=step.streamed)
            if not response.is_success:
                response.read()
        except httpx.RequestError as error:
            return error
        return response


class AsyncConnection(_Exchange[httpx.AsyncClient]):
    """As `Connection`, for the tasks of one event loop."""

    def __init__(self, http: httpx.AsyncClient, base_url: str, retries: RetryPolicy | None) -> None:
        super().__init__(http, base_url, retries)
        self._ends: Final[set[asyncio.Task[None]]] = set()

    async def aclose(self) -> None:
        for end in self._ends:
            end.cancel()
        await asyncio.gather(*self._ends, return_exceptions=True)
        await self._http.aclose()

    async def run[**Parameters, Answer](
        self,
        call: Callable[Parameters, Steps[Answer]],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Answer:
        """The answer of a call with these arguments."""
        steps = call(*args, **kwargs)
        try:
            step = next(steps)
            while True:
                await asyncio.sleep(step.wait)
                step = steps.send(await self._outcome(step))
        except StopIteration as done:
            answer: Answer = done.value
            return answer

    async def pieces[**Parameters](
        self,
        call: Callable[Parameters, Steps[httpx.Response]],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> AsyncGenerator[bytes]:
        """The body of the streamed answer of a call, in pieces, as they come."""
        response = await self.run(call, *args, **kwargs)
        # The one that fetched it, and goes on with it.
        errand: _Errand = response.request.extensions["trace"]
        async with aclosing(errand.pieces(response)) as pieces:
            with _as_memsvc_errors():
                async for piece in pieces:
                    yield piece

    async def _outcome(self, step: Try) -> Outcome:
        try:
            return await _Errand(self._http, self._ends).send(step)
        except httpx.RequestError as error:
            return error


class _Errand:
    """A request and its answer, in tasks of their own: a caller who is cancelled leaves, and they end where it is safe.

    httpcore 1.0.9 takes a connection for busy ever after when its request is cancelled before the first byte is sent,
    or while its answer is being put away (encode/httpcore#1093). It tells by its "trace" how far it has come. When it
    is mended, `httpx.AsyncClient` alone will do.
    """

    def __init__(self, http: httpx.AsyncClient, ends: set[asyncio.Task[None]]) -> None:
        """`ends` holds those who put away what was left, until they are done."""
        self._http = http
        self._ends = ends
        self._stoppable = False
        self._left = False
        self._last: asyncio.Task[Any] | None = None
        self._response: httpx.Response | None = None

    async def __call__(self, event: str, info: object) -> None:
        """Hear from httpcore how far it has come."""
        if event.endswith("send_request_headers.started"):
            if self._left:
                raise asyncio.CancelledError
            self._stoppable = True
        elif event.endswith("response_closed.started"):
            self._stoppable = False

    async def send(self, step: Try) -> httpx.Response:
        step.request.extensions["trace"] = self
        try:
            return await self._apart(self._send(step))
        except asyncio.CancelledError:
            self._end()
            raise

    async def pieces(self, response: httpx.Response) -> AsyncGenerator[bytes]:
        parts = response.aiter_bytes()
        try:
            while piece := await self._apart(_next(parts)):
                yield piece
        finally:
            await asyncio.wait([self._end()])

    async def _send(self, step: Try) -> httpx.Response:
        self._response = await self._http.send(step.request, stream=step.streamed)
        if not self._response.is_success:
            await self._response.aread()
        return self._response

    # A caller that is cancelled doesn't wait: an orderly end may take as long as connecting does.
    async def _apart[Result](self, work: Coroutine[Any, Any, Result]) -> Result:
        self._last = task = asyncio.create_task(work)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            self._left = True
            if self._stoppable:
                task.cancel()
            raise
        return task.result()

    def _end(self) -> asyncio.Task[None]:
        end = asyncio.create_task(self._put_away())
        self._ends.add(end)
        end.add_done_callback(self._ends.discard)
        return end

    async def _put_away(self) -> None:
        if self._last is not None:
            await asyncio.gather(self._last, return_exceptions=True)
        if self._response is not None:
            with suppress(httpx.RequestError):
                await self._response.aclose()


async def _next(pieces: AsyncIterator[bytes]) -> bytes:
    """The next piece, which is never empty, or nothing at the end."""
    return await anext(pieces, b"")


class _FileBody(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A file as the body of a request, never whole in memory; each try reads it anew."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[bytes]:
        with self._path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with self._path.open("rb") as file:
            while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
                yield piece


def headers_of(api_key: str) -> dict[str, str]:
    """What every request says of itself."""
    return {
        "Authorization": f"Bearer {_checked_key(api_key)}",
        "Accept": "application/json",
        "User-Agent": "memsvc-python",
    }


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
            "the request holds half of a surrogate pair; send whole characters", code=ErrorCode.INVALID_TEXT
        ) from error


def segment(text: str) -> str:
    """`text` as one segment of a URL's path."""
    # A segment of dots would be taken as a step in the path by every URL library on the way.
    return text.replace(".", "%2E") if text in {".", ".."} else quote(text, safe="")


def _passing(failure: MemsvcError) -> bool:
    """Whether sending again may help."""
    return failure.status in _PASSING or (failure.code in ErrorCode and ErrorCode(failure.code).retryable)


def _good(outcome: Outcome) -> httpx.Response:
    if isinstance(outcome, httpx.RequestError):
        raise _lost(outcome) from outcome
    if outcome.is_success or outcome.status_code == httpx.codes.NOT_MODIFIED:
        return outcome
    raise _failure(outcome)


@contextmanager
def _as_memsvc_errors() -> Iterator[None]:
    try:
        yield
    except httpx.RequestError as error:
        raise _lost(error) from error


def _lost(error: httpx.RequestError) -> ConnectionFailed:
    """What httpx raised, in words without headers or keys."""
    sent = not isinstance(error, _NOT_SENT)
    what = "The memory service did not answer" if sent else "The memory service can't be reached"
    return ConnectionFailed(f"{what} ({type(error).__name__}).", sent=sent)


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
