"""The shared collection of malicious inputs, each at the doors of its group; its README has the rules."""

import gzip
import json
import logging
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from rest_framework.test import APIClient

from memsvc.format import spelt_path
from tenants.models import Tenant
from tests.api.support import BATCH, ENTRIES, FILES, SEARCH, add_entry, post, put, send
from tests.people import (
    READ,
    make_expired_key,
    make_key,
    make_key_of_suspended_tenant,
    make_revoked_key,
)

COLLECTION = Path(__file__).parents[2] / "../shared/hostile/malicious.json"
CANARY = "canary-of-another-tenant"
LIST = "/v1/trees/default/files"

if not COLLECTION.exists():
    pytest.skip("../shared/hostile is not here", allow_module_level=True)

# Read as bytes, so that the lone surrogates that the collection holds as escapes are kept.
CASES = json.loads(COLLECTION.read_bytes())["cases"]


def group(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "case", [pytest.param(case, id=case["id"]) for case in CASES if case["group"] == name]
    )


def built(value: Any) -> Any:
    """A value of the collection: objects say how it is made."""
    match value:
        case {"repeat": [text, times]}:
            return text * times
        case {"concat": parts}:
            return "".join(built(part) for part in parts)
        case {"seq": [word, count]}:
            return " ".join(f"{word}{number}" for number in range(count))
        case {"seqlines": [key, count]}:
            return "\n".join(f"{key}{number}: v" for number in range(count))
        case {"b64": text}:
            return b64decode(text)
        case {"gzip": [text, times]}:
            return gzip.compress(text.encode() * times)
        case {"literal": literal}:
            return literal
    return value


def check(case: dict[str, Any], answer: Any) -> None:
    """The rules for every answer, and the class of this one."""
    content = answer.content.decode("utf-8", "replace")
    assert answer.status_code < 500, content[:500]
    assert CANARY not in content
    if answer.status_code >= 400:
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert not any(leak in content for leak in ("Traceback", "SELECT", "site-packages", "psycopg"))
    match case["expect"]:
        case "reject":
            assert 400 <= answer.status_code < 500
        case "unauthorised":
            assert answer.status_code in (401, 403)
        case "accept":
            assert answer.status_code < 300, content[:500]


@pytest.fixture(autouse=True)
def other_tenant(api: APIClient, stranger: APIClient, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A canary of Bob's that stays as it is; afterwards Alice's paths are canonical, and no log tells on anyone."""
    caplog.set_level(logging.DEBUG)
    put(stranger, "canary.md", CANARY)
    add_entry(stranger, CANARY)
    yield
    found = stranger.get(f"{FILES}/canary.md").json()
    assert (found["content"], found["revision"]) == (CANARY, 1)
    for item in api.get(LIST).json()["items"]:
        assert spelt_path(item["path"]) == item["path"]
    logged = "".join(record.getMessage() for record in caplog.records if record.name != "django.db.backends")
    assert CANARY not in logged


def stored(client: APIClient) -> list[str]:
    return [item["path"] for item in client.get(LIST).json()["items"]]


@group("path")
def test_path(api: APIClient, case: dict[str, Any]) -> None:
    path = built(case["value"])
    body = json.dumps({"operations": [{"op": "write", "path": path, "content": "x"}]})

    answer = api.post(BATCH, body, content_type="application/json")

    check(case, answer)
    if answer.status_code >= 400:
        assert stored(api) == []
    else:
        named = answer.json()["results"][0]["path"]
        assert stored(api) == [named]
        assert api.get(f"{FILES}{quote(named)}").json()["content"] == "x"


@group("path")
def test_path_in_the_url(api: APIClient, case: dict[str, Any]) -> None:
    path = built(case["value"])
    if not isinstance(path, str):
        pytest.skip("a URL holds only text")
    url = f"{FILES}/" + quote(path.removeprefix("/"), errors="surrogatepass")

    answer = api.put(url, b"x", content_type="text/plain", RAW_URI=url)

    check(case, answer)
    check(case if answer.status_code >= 400 else case | {"expect": "safe"}, api.get(url, RAW_URI=url))
    if answer.status_code >= 400:
        assert stored(api) == []


@group("body")
def test_body_of_a_file(api: APIClient, case: dict[str, Any]) -> None:
    content = built(case["value"])

    answer = api.put(
        f"{FILES}/memory/notes.md", json.dumps({"content": content}), content_type="application/json"
    )

    check(case, answer)
    if answer.status_code < 300:
        read = api.get(f"{FILES}/memory/notes.md", headers={"Accept": "text/plain"})
        assert read.content == content.encode()
        check(case | {"expect": "safe"}, api.get(f"{FILES}/memory/notes.md", {"limit": 1}))
    else:
        assert stored(api) == []


@group("body")
def test_body_of_an_entry(api: APIClient, case: dict[str, Any]) -> None:
    content = built(case["value"])

    answer = api.post(
        ENTRIES, json.dumps({"category": "facts", "body": content}), content_type="application/json"
    )

    check(case | {"expect": "safe" if case["expect"] != "reject" else "reject"}, answer)
    if answer.status_code < 300:
        assert api.get(f"{ENTRIES}/{answer.json()['id']}").json()["body"] == answer.json()["body"]
    else:
        assert stored(api) == []


@group("json")
def test_json(api: APIClient, case: dict[str, Any]) -> None:
    if case["id"] == "json-length-lie":
        pytest.skip("needs a real server: see test_http.py")
    value = built(case["value"])
    body = value.encode() if isinstance(value, str) else value
    headers = case.get("headers", {})

    for url, method in (
        (f"{FILES}/a.md", "PUT"),
        (ENTRIES, "POST"),
        (f"{FILES}:upload", "POST"),
        (BATCH, "POST"),
    ):
        check(case, send(api, method, url, body, content_type="application/json", headers=headers))

    assert stored(api) in ([], ["/a.md"])


@group("glob")
def test_glob(api: APIClient, case: dict[str, Any]) -> None:
    put(api, "memory/a.md")

    check(case, post(api, f"{FILES}:glob", pattern=built(case["value"])))
    check(case, post(api, f"{FILES}:grep", pattern="text", glob=built(case["value"])))


@group("grep")
def test_grep(api: APIClient, case: dict[str, Any]) -> None:
    put(api, "memory/a.md", built(case["corpus"]))

    check(case, post(api, f"{FILES}:grep", pattern=built(case["value"])))


@group("search")
def test_search(api: APIClient, case: dict[str, Any]) -> None:
    add_entry(api, "word")

    for mode in ("words", "substring"):
        check(case, post(api, SEARCH, query=built(case["value"]), mode=mode))


@group("param")
def test_parameters(api: APIClient, case: dict[str, Any]) -> None:
    for url in (FILES, ENTRIES, f"{FILES}/a.md", "/v1/me", "/v1/trees"):
        check(case | {"expect": "safe"}, api.get(url, built(case["value"])))


@group("key")
def test_key(alice: Tenant, api: APIClient, case: dict[str, Any]) -> None:
    own = make_key(alice)[1]
    value, url, headers, cookies = case["value"], f"{FILES}/a.md", {}, {}
    match value:
        case {"own": "[:-1]"}:
            headers["Authorization"] = f"Bearer {own[:-1]}"
        case {"own": "lower-scheme"}:
            headers["Authorization"] = f"bearer {own}"
        case {"own+header": [name, content]}:
            headers |= {"Authorization": f"Bearer {own}", name: content}
        case {"query": "own"}:
            url += f"?key={own}&access_token={own}"
        case {"cookie": name}:
            cookies[name] = own
        case {"fixture": kind}:
            headers["Authorization"] = f"Bearer {FIXTURES[kind](alice)}"
        case str(text):
            headers["Authorization"] = text
    client = APIClient(raise_request_exception=False)
    client.cookies.load(cookies)

    check(case, client.put(url, b"x", content_type="text/plain", headers=headers))

    if case["expect"] == "unauthorised":
        assert stored(api) == []


FIXTURES: dict[str, Callable[[Tenant], str]] = {
    "revoked_key": make_revoked_key,
    "expired_key": make_expired_key,
    "suspended_tenant_key": lambda tenant: make_key_of_suspended_tenant(),
    "reader_key": lambda tenant: make_key(tenant, READ)[1],
}
