"""What only a real server shows: raw URLs, lengths that lie, connections that stay, keys in no log."""

import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from tenants.models import ApiKey
from tenants.services import revoke_key
from tests.people import make_key, make_tenant

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def key(transactional_db: None) -> tuple[ApiKey, str]:
    return make_key(make_tenant())


@pytest.fixture
def http(live_url: str, key: tuple[ApiKey, str]) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {key[1]}"}
    with httpx.Client(base_url=f"{live_url}/v1/trees/default", headers=headers, timeout=30) as client:
        yield client


def send_raw(live_url: str, request: bytes, *, finish: bool = True) -> tuple[int, bytes]:
    """Status and body of the answer to a request sent byte for byte; `finish` says that nothing more comes."""
    address = urlsplit(live_url)
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=40) as connection:
        connection.sendall(request)
        if finish:
            connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def request_line(live_url: str, key: str, target: str, method: str = "GET", *headers: str) -> bytes:
    host = urlsplit(live_url).netloc
    lines = [
        f"{method} {target} HTTP/1.1",
        f"Host: {host}",
        f"Authorization: Bearer {key}",
        "Connection: close",
    ]
    return ("\r\n".join([*lines, *headers]) + "\r\n\r\n").encode("latin-1")


def test_a_file_goes_round(http: httpx.Client) -> None:
    content = "Ä\r\n\x00".encode()

    assert http.put("/files/a%20b/%C3%A9.md", content=content).status_code == 201
    answer = http.get("/files/a%20b/%C3%A9.md", headers={"Accept": "application/octet-stream"})

    assert answer.content == content
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "private" in answer.headers["Cache-Control"]


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("/v1/trees/default/files/%00", "invalid_request"),
        ("/v1/trees/default/files/%FF.md", "invalid_request"),
        ("/v1/trees/default/files/%ED%A0%80", "invalid_request"),
        ("/v1/trees/%C0%AE/files", "invalid_request"),
        ("/v1/trees/a%2Fb/files", "tree_not_found"),
        ("/v1/trees/default/entries/a%2Fb", "invalid_request"),
        ("/v1/me?q=%00", "invalid_request"),
        ("/v1/me?q=%FF", "invalid_request"),
        ("/v1/trees/default/files/a/../b.md", "invalid_path"),
        ("/v1/trees/default/files/a//b.md", "invalid_path"),
        ("/v1/trees/default/files/%2e%2e/b.md", "invalid_path"),
        ("/../../etc/passwd", "not_found"),
        ("//evil.example/x", "not_found"),
        ("/v1/" + "a" * 3000, "not_found"),
    ],
)
def test_a_url_that_means_nothing_is_a_problem(
    live_url: str, key: tuple[ApiKey, str], target: str, code: str
) -> None:
    status, body = send_raw(live_url, request_line(live_url, key[1], target))

    problem = json.loads(body)
    assert (problem["status"], problem["code"]) == (status, code)
    assert status in (400, 404)


@pytest.mark.parametrize("header", ["Bearer \xe9\xe8", "Bearer a", "Bearer " + "x" * 5000])
def test_a_key_that_is_none_is_refused(live_url: str, key: tuple[ApiKey, str], header: str) -> None:
    request = request_line(live_url, "", "/v1/me").replace(b"Bearer ", header.encode("latin-1"))

    assert send_raw(live_url, request)[0] == 401


def test_two_keys_are_none(live_url: str, key: tuple[ApiKey, str]) -> None:
    request = request_line(live_url, key[1], "/v1/me", "GET", f"Authorization: Bearer {key[1]}")

    assert send_raw(live_url, request)[0] in (400, 401)


def test_a_chunked_body_is_refused_and_not_taken_for_an_empty_file(http: httpx.Client) -> None:
    answer = http.put("/files/a.md", content=iter([b"some", b"text"]))

    assert (answer.status_code, answer.json()["code"]) == (411, "length_required")
    assert http.get("/files").json()["items"] == []


def test_a_body_that_ends_early_is_not_stored(
    http: httpx.Client, live_url: str, key: tuple[ApiKey, str]
) -> None:
    target = "/v1/trees/default/files/a.md"
    request = request_line(live_url, key[1], target, "PUT", "Content-Length: 100") + b"half a file"

    status, body = send_raw(live_url, request)

    assert (status, json.loads(body)["code"]) == (400, "invalid_request")
    assert http.get("/files").json()["items"] == []


def test_a_body_over_the_limit_is_refused_before_it_is_sent(live_url: str, key: tuple[ApiKey, str]) -> None:
    target = "/v1/trees/default/files/a.md"
    request = request_line(live_url, key[1], target, "PUT", "Content-Length: 99999999999")

    status, body = send_raw(live_url, request)

    assert (status, json.loads(body)["code"]) == (413, "body_too_large")


def test_revoking_a_key_holds_from_the_next_request(http: httpx.Client, key: tuple[ApiKey, str]) -> None:
    assert http.get("/files").status_code == 200

    revoke_key(key=key[0])

    assert http.get("/files").status_code == 401


def test_an_export_is_streamed(http: httpx.Client) -> None:
    http.put("/files/memory/a.md", content=b"text")

    with http.stream("GET", "/export.zip") as answer:
        assert answer.headers["Content-Type"] == "application/zip"
        assert b"".join(answer.iter_bytes()).startswith(b"PK")
