"""What the tests of the API ask for again and again."""

from typing import Any

from rest_framework.test import APIClient

FILES = "/v1/trees/default/files"
ENTRIES = "/v1/trees/default/entries"
SEARCH = "/v1/trees/default/search"
BATCH = "/v1/trees/default/batch"


def put(client: APIClient, path: str, content: str | bytes = "text\n", **headers: str) -> Any:
    """Write a file as raw bytes; `path` without its first slash."""
    data = content.encode() if isinstance(content, str) else content
    return client.put(f"{FILES}/{path}", data, content_type="application/octet-stream", headers=headers)


def send(client: APIClient, method: str, url: str, body: bytes, **options: Any) -> Any:
    """A request with just these bytes as its body."""
    return client.generic(method, url, body, **options)  # type: ignore[arg-type]  # the stubs want text


def streamed(answer: Any) -> bytes:
    return b"".join(answer.streaming_content)


def raw(client: APIClient, path: str) -> bytes:
    answer = client.get(f"{FILES}/{path}", headers={"Accept": "application/octet-stream"})
    assert answer.status_code == 200, answer.content
    return bytes(answer.content)


def post(client: APIClient, url: str, **body: Any) -> Any:
    return client.post(url, body, format="json")


def patch(client: APIClient, path: str, headers: dict[str, str] | None = None, **body: Any) -> Any:
    return client.patch(f"{FILES}/{path}", body, format="json", headers=headers)


def add_entry(client: APIClient, body: str = "Berlin is the seat.", **fields: Any) -> dict[str, Any]:
    answer = post(client, ENTRIES, **{"category": "facts", "body": body, **fields})
    assert answer.status_code == 201, answer.content
    return dict(answer.json())


def paths(client: APIClient) -> list[str]:
    return [item["path"] for item in client.get(FILES).json()["items"]]


def refusal(answer: Any) -> tuple[int, str]:
    """Status and code of an error in the shape of its door."""
    if answer.headers["Content-Type"] != "application/json":
        return problem(answer)
    body = answer.json()
    assert body.keys() == {"type", "error", "request_id"}
    assert body["type"] == "error"
    assert {"type", "message", "code"} <= body["error"].keys()
    return answer.status_code, body["error"]["code"]


def problem(answer: Any) -> tuple[int, str]:
    """Status and code of an error, after a look at its shape."""
    assert answer.headers["Content-Type"] == "application/problem+json", (
        answer.status_code,
        answer.content[:300],
    )
    body = answer.json()
    assert body["status"] == answer.status_code
    assert {"type", "title", "status", "detail", "code", "request_id"} <= body.keys()
    return answer.status_code, body["code"]
