"""What is repeated, what is not, and what an error says. The answers are made up: no server fails on demand."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import pytest

from memsvc.client import MemsvcClient, RetryPolicy
from memsvc.client.errors import (
    AlreadySuperseded,
    Busy,
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
}
LISTING: dict[str, object] = {"items": [], "next": None}

type Answer = httpx.Response | Exception


class Script(httpx.BaseTransport):
    """Gives the answers in order, and remembers the requests."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def client_of(*answers: Answer, retries: RetryPolicy = AT_ONCE) -> tuple[MemsvcClient, Script]:
    script = Script(answers)
    return MemsvcClient("http://memory.test", KEY, retries=retries, transport=script), script


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
def test_what_did_nothing_is_tried_again(call: Callable[[MemsvcClient], object], passing: Answer) -> None:
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
def test_what_may_have_been_done_is_repeated_under_the_same_key(ambiguous: Answer) -> None:
    reader, read_script = client_of(ambiguous, ok(LISTING))
    writer, write_script = client_of(ambiguous, ok(ENTRY), ok(ENTRY))

    read(reader)
    add(writer)
    add(writer)

    assert not any("Idempotency-Key" in request.headers for request in read_script.requests)
    first, again, other = [request.headers["Idempotency-Key"] for request in write_script.requests]
    assert first == again != other


def test_a_first_try_that_has_not_ended_is_waited_for() -> None:
    client, script = client_of(failure(409, "idempotency_in_flight", {"Retry-After": "0"}), ok(ENTRY))

    add(client)

    assert len(script.requests) == 2


def test_an_end_comes_to_every_series_of_tries() -> None:
    client, script = client_of(*[failure(503, "busy") for _ in range(5)])

    with pytest.raises(Busy):
        add(client)

    assert len(script.requests) == AT_ONCE.attempts


def test_a_server_that_asks_for_too_much_patience_is_not_waited_for() -> None:
    client, script = client_of(failure(429, "rate_limited", {"Retry-After": "3600"}))

    with pytest.raises(RateLimited) as caught:
        read(client)

    assert (caught.value.retry_after, len(script.requests)) == (3600, 1)


def test_retry_after_may_be_a_date() -> None:
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
def test_an_error_has_the_type_of_its_code(status: int, code: str, kind: type[MemsvcError]) -> None:
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


def test_what_an_error_says_besides_can_be_read() -> None:
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
def test_an_answer_of_somebody_else_is_called_that(answer: httpx.Response) -> None:
    client, script = client_of(answer)

    with pytest.raises(UnexpectedAnswer):
        read(client)

    assert len(script.requests) == 1


@pytest.mark.parametrize(
    "address", ["memory.test", "ftp://memory.test", "http://", "http://u:p@memory.test", "http://m.test?a=b"]
)
def test_a_base_url_that_is_none_is_refused_at_once(address: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        MemsvcClient(address, KEY)


@pytest.mark.parametrize("key", ["", "with blank", "line\nbreak", "schlüssel"])
def test_a_key_that_is_none_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ValueError, match="api_key must be") as caught:
        MemsvcClient("http://memory.test", key)

    assert not key or key not in str(caught.value)


def test_the_key_is_in_no_text() -> None:
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


def test_a_path_can_not_leave_the_files() -> None:
    client, script = client_of()

    for path in ("/../../me", "/memory/../x.md", "", "/", "/a\0b", "/\ud800"):
        with pytest.raises(InvalidRequest):
            client.read_lines(path)

    assert script.requests == []


def test_names_are_encoded_once_and_whole() -> None:
    client, script = client_of(failure(404, "file_not_found"), failure(404, "entry_not_found"))

    with pytest.raises(NotFound):
        client.read_bytes("/50%/a b?#%2e.md")
    with pytest.raises(NotFound):
        client.get_entry("..")

    assert [request.url.raw_path for request in script.requests] == [
        b"/v1/trees/default/files/50%25/a%20b%3F%23%252e.md",
        b"/v1/trees/default/entries/%2E%2E",
    ]


def test_text_that_is_no_text_is_not_sent() -> None:
    client, script = client_of()

    for call in (
        lambda: client.write_file("/a.md", "\ud800"),
        lambda: client.edit_file("/a.md", "x", "\ud800"),
        lambda: client.grep("\ud800"),
    ):
        with pytest.raises(InvalidRequest, match="surrogate"):
            call()

    assert script.requests == []


def test_threads_share_one_client() -> None:
    client, script = client_of(*[ok(LISTING) for _ in range(40)])
    threads = [threading.Thread(target=lambda: [read(client) for _ in range(5)]) for _ in range(8)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(script.requests) == 40
