"""What is repeated, what is not, and what an error says. The answers are made up: no server fails on demand.

Each test runs with both clients.
"""

import asyncio
import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from memsvc.client import AsyncMemsvcClient, MemsvcClient, RetryPolicy
from memsvc.client.errors import (
    AlreadySuperseded,
    Busy,
    ConnectionFailed,
    InvalidRequest,
    MemsvcError,
    NotFound,
    PreconditionFailed,
    RateLimited,
    ServerFailed,
    Unauthenticated,
    UnexpectedAnswer,
)
from memsvc.format import MemoryCategory

KEY = "msk_12345678_secret"
AT_ONCE = RetryPolicy(attempts=3, first_wait=0.0)
ENTRY = {
    "id": "mem_1",
    "path": "/memory/semantic_memory/facts.md",
    "category": "facts",
    "created": "2026-05-01T00:00:00Z",
    "source": "agent",
    "confidence": "medium",
    "tags": [],
    "summary": "",
    "body": "b",
    "revision": 1,
    "file_created": True,
    "peer_readable": True,
    "metadata": {},
}
WRITTEN = {"path": "/big.bin", "revision": 1, "created": True, "changed": True, "size": 2**20}
LISTING: dict[str, object] = {"items": [], "next": None}

type Answer = httpx.Response | Exception


class BreaksOff(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body whose connection is lost after the first piece."""

    def __iter__(self) -> Iterator[bytes]:
        yield b"PK"
        raise httpx.ReadError("reset")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece


class Script(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Gives the answers in order, and remembers the requests and their bodies."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.bodies: list[bytes] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, Iterable)
        return self._answer(request, b"".join(request.stream))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, AsyncIterable)
        return self._answer(request, b"".join([piece async for piece in request.stream]))

    def _answer(self, request: httpx.Request, body: bytes) -> httpx.Response:
        self.requests.append(request)
        self.bodies.append(body)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer.stream, BreaksOff):
            return answer
        # A copy: a response that was read by one client is none for the other.
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


class Awaited:
    """An async client whose calls are awaited, each in an event loop of its own, so that the tests need not."""

    def __init__(self, client: AsyncMemsvcClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: asyncio.run(self._answer(name, *args, **kwargs))

    async def _answer(self, name: str, *args: Any, **kwargs: Any) -> Any:
        answer = getattr(self._client, name)(*args, **kwargs)
        return [each async for each in answer] if isinstance(answer, AsyncIterator) else await answer

    def __repr__(self) -> str:
        return repr(self._client)


type ClientOf = Callable[..., tuple[MemsvcClient, Script]]


@pytest.fixture(params=["sync", "async"])
def client_of(request: pytest.FixtureRequest) -> ClientOf:
    """Makes a client of a server that gives these answers."""

    def open_client(*answers: Answer, retries: RetryPolicy = AT_ONCE) -> tuple[MemsvcClient, Script]:
        script = Script(answers)
        if request.param == "sync":
            return MemsvcClient("http://memory.test", KEY, retries=retries, transport=script), script
        client = AsyncMemsvcClient("http://memory.test", KEY, retries=retries, transport=script)
        return cast(MemsvcClient, Awaited(client)), script

    return open_client


def ok(data: Any) -> httpx.Response:
    return httpx.Response(200, json=data)


def failure(
    status: int, code: str = "", headers: dict[str, str] | None = None, **members: object
) -> httpx.Response:
    problem = {"detail": "what was wrong", "code": code, "request_id": "req-1", **members}
    return httpx.Response(status, json=problem if code else None, headers=headers)


def add(client: MemsvcClient) -> object:
    return client.add_entry(MemoryCategory.FACTS, "b")


def read(client: MemsvcClient) -> object:
    return client.list_files()


@pytest.mark.parametrize("call", [add, read])
@pytest.mark.parametrize(
    "passing",
    [
        httpx.ConnectError("refused"),
        httpx.ConnectTimeout("slow"),
        failure(503, "busy"),
        failure(503, "unavailable"),
        failure(429, "rate_limited", {"Retry-After": "0"}),
    ],
    ids=str,
)
def test_what_did_nothing_is_tried_again(
    client_of: ClientOf, call: Callable[[MemsvcClient], object], passing: Answer
) -> None:
    good = ok(ENTRY if call is add else LISTING)
    client, script = client_of(passing, good)

    call(client)

    assert len(script.requests) == 2


@pytest.mark.parametrize(
    "ambiguous",
    [
        httpx.ReadTimeout("slow"),
        httpx.ReadError("reset"),
        httpx.RemoteProtocolError("gone"),
        failure(502),
        failure(504),
    ],
    ids=str,
)
def test_what_may_have_been_done_is_repeated_under_the_same_key(
    client_of: ClientOf, ambiguous: Answer
) -> None:
    reader, read_script = client_of(ambiguous, ok(LISTING))
    writer, write_script = client_of(ambiguous, ok(ENTRY), ok(ENTRY))

    read(reader)
    add(writer)
    add(writer)

    assert not any("Idempotency-Key" in request.headers for request in read_script.requests)
    first, again, other = [request.headers["Idempotency-Key"] for request in write_script.requests]
    assert first == again != other


def test_a_first_try_that_has_not_ended_is_waited_for(client_of: ClientOf) -> None:
    client, script = client_of(failure(409, "idempotency_in_flight", {"Retry-After": "0"}), ok(ENTRY))

    add(client)

    assert len(script.requests) == 2


def test_a_file_is_sent_anew_with_each_try(client_of: ClientOf, tmp_path: Path) -> None:
    path = tmp_path / "big"
    path.write_bytes(bytes(range(256)) * 4096)
    client, script = client_of(httpx.ReadError("reset"), failure(503, "busy"), ok(WRITTEN))

    client.write_file("/big.bin", path)

    assert script.bodies == [path.read_bytes()] * 3
    assert {request.headers["Content-Length"] for request in script.requests} == {str(2**20)}
    assert len({request.headers["Idempotency-Key"] for request in script.requests}) == 1


def test_an_export_is_repeated_until_it_begins(client_of: ClientOf) -> None:
    client, script = client_of(
        failure(503, "busy"), httpx.ConnectError("refused"), httpx.Response(200, content=b"PK\x05\x06")
    )

    assert b"".join(client.export_zip()) == b"PK\x05\x06"
    assert len(script.requests) == 3


def test_an_export_that_breaks_off_is_an_error(client_of: ClientOf) -> None:
    client, script = client_of(httpx.Response(200, stream=BreaksOff()), ok(LISTING))

    with pytest.raises(ConnectionFailed) as caught:
        list(client.export_zip())

    assert (caught.value.sent, len(script.requests)) == (True, 1)


def test_an_end_comes_to_every_series_of_tries(client_of: ClientOf) -> None:
    client, script = client_of(*[failure(503, "busy") for _ in range(5)])

    with pytest.raises(Busy):
        add(client)

    assert len(script.requests) == AT_ONCE.attempts


def test_a_server_that_asks_for_too_much_patience_is_not_waited_for(client_of: ClientOf) -> None:
    client, script = client_of(failure(429, "rate_limited", {"Retry-After": "3600"}))

    with pytest.raises(RateLimited) as caught:
        read(client)

    assert (caught.value.retry_after, len(script.requests)) == (3600, 1)


def test_retry_after_may_be_a_date(client_of: ClientOf) -> None:
    client, _ = client_of(failure(503, "busy", {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}), ok(LISTING))

    read(client)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "invalid_path", InvalidRequest),
        (401, "unauthenticated", Unauthenticated),
        (404, "file_not_found", NotFound),
        (405, "method_not_allowed", InvalidRequest),
        (409, "already_superseded", AlreadySuperseded),
        (412, "precondition_failed", PreconditionFailed),
        (500, "internal_error", ServerFailed),
    ],
)
def test_an_error_has_the_type_of_its_code(
    client_of: ClientOf, status: int, code: str, kind: type[MemsvcError]
) -> None:
    client, script = client_of(failure(status, code))

    with pytest.raises(kind) as caught:
        add(client)

    error = caught.value
    assert type(error) is kind
    assert (error.status, error.code, str(error), error.request_id) == (
        status,
        code,
        "what was wrong",
        "req-1",
    )
    assert len(script.requests) == 1


def test_what_an_error_says_besides_can_be_read(client_of: ClientOf) -> None:
    client, _ = client_of(
        failure(409, "already_superseded", successor="mem_2"),
        failure(412, "precondition_failed", revision=7, etag="abc"),
        failure(
            400, "invalid_request", errors=[{"field": "body", "message": "is missing", "code": "required"}]
        ),
    )

    with pytest.raises(AlreadySuperseded) as superseded:
        add(client)
    with pytest.raises(PreconditionFailed) as stale:
        add(client)
    with pytest.raises(InvalidRequest) as invalid:
        add(client)

    assert superseded.value.successor == "mem_2"
    assert (stale.value.revision, stale.value.etag) == (7, "abc")
    assert [(problem.field, problem.code) for problem in invalid.value.problems] == [("body", "required")]


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="<html>a proxy's page</html>"),
        httpx.Response(200, json=[1]),
        httpx.Response(200, json={"items": [{"path": 1}], "next": None}),
        httpx.Response(302, headers={"Location": "http://elsewhere.test/"}),
    ],
)
def test_an_answer_of_somebody_else_is_called_that(client_of: ClientOf, answer: httpx.Response) -> None:
    client, script = client_of(answer)

    with pytest.raises(UnexpectedAnswer):
        read(client)

    assert len(script.requests) == 1


@pytest.mark.parametrize("kind", [MemsvcClient, AsyncMemsvcClient])
@pytest.mark.parametrize(
    "address", ["memory.test", "ftp://memory.test", "http://", "http://u:p@memory.test", "http://m.test?a=b"]
)
def test_a_base_url_that_is_none_is_refused_at_once(kind: type, address: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        kind(address, KEY)


@pytest.mark.parametrize("kind", [MemsvcClient, AsyncMemsvcClient])
@pytest.mark.parametrize("key", ["", "with blank", "line\nbreak", "schlüssel"])
def test_a_key_that_is_none_is_refused_without_showing_it(kind: type, key: str) -> None:
    with pytest.raises(ValueError, match="api_key must be") as caught:
        kind("http://memory.test", key)

    assert not key or key not in str(caught.value)


def test_the_key_is_in_no_text(client_of: ClientOf) -> None:
    client, _ = client_of(*[httpx.ReadError("reset")] * AT_ONCE.attempts, failure(401, "unauthenticated"))
    texts = [repr(client)]

    for _ in range(2):
        with pytest.raises(MemsvcError) as caught:
            add(client)
        error: BaseException | None = caught.value
        while error is not None:
            texts += [str(error), repr(error)]
            error = error.__cause__

    assert not any("secret" in text for text in texts)


def test_a_path_can_not_leave_the_files(client_of: ClientOf) -> None:
    client, script = client_of()

    for path in ("/../../me", "/memory/../x.md", "", "/", "/a\0b", "/\ud800"):
        with pytest.raises(InvalidRequest):
            client.read_lines(path)

    assert script.requests == []


def test_names_are_encoded_once_and_whole(client_of: ClientOf) -> None:
    client, script = client_of(failure(404, "file_not_found"), failure(404, "entry_not_found"))

    with pytest.raises(NotFound):
        client.read_bytes("/50%/a b?#%2e.md")
    with pytest.raises(NotFound):
        client.get_entry("..")

    assert [request.url.raw_path for request in script.requests] == [
        b"/v1/trees/default/files/50%25/a%20b%3F%23%252e.md",
        b"/v1/trees/default/entries/%2E%2E",
    ]


def test_text_that_is_no_text_is_not_sent(client_of: ClientOf) -> None:
    client, script = client_of()

    for call in (
        lambda: client.write_file("/a.md", "\ud800"),
        lambda: client.edit_file("/a.md", "x", "\ud800"),
        lambda: client.grep("\ud800"),
    ):
        with pytest.raises(InvalidRequest, match="surrogate"):
            call()

    assert script.requests == []


def test_threads_share_one_client(client_of: ClientOf) -> None:
    client, script = client_of(*[ok(LISTING) for _ in range(40)])
    threads = [threading.Thread(target=lambda: [read(client) for _ in range(5)]) for _ in range(8)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(script.requests) == 40
