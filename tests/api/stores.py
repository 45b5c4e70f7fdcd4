"""What the tests of memory stores ask for again and again."""

from hashlib import sha256
from typing import Any

from rest_framework.test import APIClient

from tests.api.support import post

STORES = "/v1/memory_stores"


def make_store(client: APIClient, name: str = "notes", **fields: Any) -> str:
    """The URL of a new store."""
    answer = post(client, STORES, name=name, **fields)
    assert answer.status_code == 200, answer.content
    return f"{STORES}/{answer.json()['id']}"


def store_named(client: APIClient, name: str = "default") -> str:
    """The URL of a store that is there."""
    found = client.get(STORES, {"limit": 100}).json()["data"]
    return next(f"{STORES}/{each['id']}" for each in found if each["name"] == name)


def make_memory(client: APIClient, store: str, path: str = "/a.md", content: str = "one\n") -> dict[str, Any]:
    answer = post(client, f"{store}/memories", path=path, content=content)
    assert answer.status_code == 200, answer.content
    return dict(answer.json())


def update(client: APIClient, store: str, memory_id: str, **fields: Any) -> Any:
    return post(client, f"{store}/memories/{memory_id}", **fields)


def expecting(content: str) -> dict[str, str]:
    return {"type": "content_sha256", "content_sha256": digest(content)}


def digest(content: str) -> str:
    return sha256(content.encode()).hexdigest()


def every(client: APIClient, url: str, **params: Any) -> list[dict[str, Any]]:
    """All items of a list, page by page, as clients read them: until there is no next page, or an empty one."""
    found: list[dict[str, Any]] = []
    page: dict[str, str] = {}
    while True:
        answer = client.get(url, {**params, **page})
        assert answer.status_code == 200, answer.content
        body = answer.json()
        found += body["data"]
        if not body["next_page"]:
            return found
        assert body["data"]
        page = {"page": body["next_page"]}


def versions(client: APIClient, store: str, **params: Any) -> list[dict[str, Any]]:
    return every(client, f"{store}/memory_versions", **params)


def error(answer: Any) -> tuple[int, str]:
    """Status and type of an error, after a look at its shape."""
    assert answer.headers["Content-Type"] == "application/json", answer.content[:300]
    body = answer.json()
    assert body.keys() == {"type", "error", "request_id"}
    assert body["type"] == "error"
    assert body["error"]["message"]
    assert body["request_id"] == answer.headers["X-Request-ID"]
    return answer.status_code, body["error"]["type"]
