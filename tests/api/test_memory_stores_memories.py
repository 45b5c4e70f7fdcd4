"""Memories of a store: paths, content, listing, preconditions."""

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any

import httpx
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from memsvc.tree import services
from memsvc.tree.access import Access
from memsvc.tree.models import Block, File, Tree
from tenants.actors import SYSTEM
from tenants.models import Tenant
from tests.api.conftest import client_with
from tests.api.stores import (
    STORES,
    digest,
    error,
    every,
    expecting,
    make_memory,
    make_store,
    store_named,
    update,
    versions,
)
from tests.api.support import add_entry, post, put
from tests.people import make_key, make_tenant


@pytest.fixture
def store(api: APIClient) -> str:
    return make_store(api)


def shown(found: list[dict[str, Any]]) -> list[str]:
    return [each["path"] for each in found]


# --- one memory ------------------------------------------------------------------------------------------------------


def test_a_memory_goes_round(api: APIClient, store: str) -> None:
    made = make_memory(api, store, "/notes/a.md", "one\n")

    assert made == {
        "id": made["id"],
        "type": "memory",
        "memory_store_id": store.rpartition("/")[2],
        "memory_version_id": made["memory_version_id"],
        "path": "/notes/a.md",
        "content": None,
        "content_sha256": digest("one\n"),
        "content_size_bytes": 4,
        "created_at": made["created_at"],
        "updated_at": made["created_at"],
    }
    assert made["id"].startswith("mem_")
    assert made["memory_version_id"].startswith("memver_")
    url = f"{store}/memories/{made['id']}"
    assert api.get(url).json() == made | {"content": "one\n"}
    assert api.get(url, {"view": "basic"}).json() == made
    assert update(api, store, f"{made['id']}?view=full", content="two").json()["content"] == "two"


@pytest.mark.parametrize(
    "content",
    ["", "a\r\nb\rc", "\ufeffbom", "e\u0301 is not \u00e9", "a\0b", "   ", "no end", "---\nid: x\n---\n"],
)
def test_content_is_kept_as_it_is(api: APIClient, store: str, content: str) -> None:
    made = make_memory(api, store, "/a.md", content)

    read = api.get(f"{store}/memories/{made['id']}").json()

    assert read["content"] == content
    assert read["content_sha256"] == digest(content)
    assert read["content_size_bytes"] == len(content.encode())


def test_content_has_a_limit_in_bytes(api: APIClient, store: str) -> None:
    make_memory(api, store, "/full.md", "é" * 51_200)

    refused = post(api, f"{store}/memories", path="/more.md", content="é" * 51_200 + "x")

    assert error(refused) == (413, "request_too_large")
    assert "102,400" in refused.json()["error"]["message"]
    assert shown(every(api, f"{store}/memories")) == ["/full.md"]


@pytest.mark.parametrize(
    "path",
    [
        ("/" + "a" * 255) * 4,  # 1,024 bytes
        "/Straße/新聞.md",
        "/a b",
        "/.hidden",
        "/a%2Fb",
        "/..a",
        "/A.md",
    ],
)
def test_a_path_that_follows_the_rules_is_taken(api: APIClient, store: str, path: str) -> None:
    assert make_memory(api, store, path)["path"] == path


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "a.md",
        "/a/",
        "//a",
        "/a//b",
        "/./a",
        "/a/..",
        "/a\nb",
        "/a\tb",
        "/a\u200db",
        "/a\u2028b",
        "/a\0b",
        "/cafe\u0301",
        ("/" + "a" * 204) * 5,  # 1,025 bytes
        7,
        None,
    ],
)
def test_any_other_path_is_refused_and_not_mended(api: APIClient, store: str, path: Any) -> None:
    made = make_memory(api, store, "/kept.md")

    created = post(api, f"{store}/memories", path=path, content="x")
    assert error(created) == (400, "invalid_request_error")
    if path is not None:
        assert error(update(api, store, made["id"], path=path)) == (400, "invalid_request_error")
    assert shown(every(api, f"{store}/memories")) == ["/kept.md"]
    assert len(versions(api, store)) == 1


def test_half_a_surrogate_pair_is_refused(api: APIClient, store: str) -> None:
    for body in (rb'{"path": "/a\ud800", "content": ""}', rb'{"path": "/a", "content": "\ud800"}'):
        answer = api.generic("POST", f"{store}/memories", body, content_type="application/json")  # type: ignore[arg-type]
        assert error(answer) == (400, "invalid_request_error")


@pytest.mark.parametrize(
    ("there", "wanted"), [("/a", "/a"), ("/a", "/a/b"), ("/a/b/c", "/a"), ("/a/b/c", "/a/b")]
)
def test_a_memory_is_in_the_way_at_above_and_below(
    api: APIClient, store: str, there: str, wanted: str
) -> None:
    first, second = make_memory(api, store, there), make_memory(api, store, "/other")

    answers = [
        post(api, f"{store}/memories", path=wanted, content="new"),
        update(api, store, second["id"], path=wanted),
    ]

    for answer in answers:
        assert error(answer) == (409, "memory_path_conflict_error")
        assert answer.json()["error"]["conflicting_memory_id"] == first["id"]
        assert answer.json()["error"]["conflicting_path"] == there
    assert api.get(f"{store}/memories/{first['id']}").json()["content"] == "one\n"


def test_paths_are_told_apart_by_case_and_a_beginning_is_no_folder(api: APIClient, store: str) -> None:
    for path in ("/a", "/A", "/ab", "/a.md"):
        make_memory(api, store, path)

    assert shown(every(api, f"{store}/memories")) == ["/A", "/a", "/a.md", "/ab"]


def test_a_conflict_out_of_sight_is_not_named(api: APIClient, alice: Tenant, store: str) -> None:
    make_memory(api, store, "/team", "a file where a folder is wanted")
    limited = client_with(make_key(alice, path_prefix="/team/notes")[1])

    refused = post(limited, f"{store}/memories", path="/team/notes/a.md", content="")

    assert error(refused) == (409, "memory_path_conflict_error")
    told = refused.json()["error"]
    assert (told["conflicting_memory_id"], told["conflicting_path"]) == ("", "")


def test_the_id_is_kept_over_renames(api: APIClient, store: str) -> None:
    made = make_memory(api, store, "/a.md")

    moved = update(api, store, made["id"], path="/folder/b.md").json()

    assert (moved["id"], moved["path"]) == (made["id"], "/folder/b.md")
    assert moved["content_sha256"] == made["content_sha256"]
    assert moved["memory_version_id"] != made["memory_version_id"]
    assert shown(every(api, f"{store}/memories")) == ["/folder/b.md"]


def test_a_memory_may_move_below_its_own_name(api: APIClient, store: str) -> None:
    made = make_memory(api, store, "/a")

    assert update(api, store, made["id"], path="/a/b").json()["path"] == "/a/b"
    assert update(api, store, made["id"], path="/a").json()["path"] == "/a"


def test_patch_is_the_same_as_post(api: APIClient, store: str) -> None:
    made = make_memory(api, store)

    answer = api.patch(f"{store}/memories/{made['id']}", {"content": "two"}, format="json")

    assert answer.json()["content_sha256"] == digest("two")


def test_path_and_content_change_in_one_version(api: APIClient, store: str) -> None:
    made = make_memory(api, store)

    update(api, store, made["id"], path="/b.md", content="two", precondition=expecting("one\n"))

    newest, *_ = versions(api, store, view="full")
    assert (newest["path"], newest["content"], newest["operation"]) == ("/b.md", "two", "modified")
    assert len(versions(api, store)) == 2


def test_what_changes_nothing_makes_no_version(api: APIClient, store: str) -> None:
    made = make_memory(api, store)

    for fields in ({"content": "one\n"}, {"path": "/a.md"}, {}, {"content": "one\n", "path": "/a.md"}):
        assert update(api, store, made["id"], **fields).json() == made
    assert len(versions(api, store)) == 1


def test_a_deleted_memory_is_gone_and_its_path_free(api: APIClient, store: str) -> None:
    made = make_memory(api, store)

    deleted = api.delete(f"{store}/memories/{made['id']}")

    assert deleted.json() == {"id": made["id"], "type": "memory_deleted"}
    assert error(api.get(f"{store}/memories/{made['id']}")) == (404, "not_found_error")
    assert error(api.delete(f"{store}/memories/{made['id']}")) == (404, "not_found_error")
    assert error(update(api, store, made["id"], content="x")) == (404, "not_found_error")
    assert make_memory(api, store)["id"] != made["id"]


def test_what_other_doors_name_is_read_and_deleted_but_not_made(api: APIClient, alice: Tenant) -> None:
    put(api, "notes.md", "text")
    store = store_named(api)
    File.objects.filter(tenant=alice).update(path="/odd\tname")
    listed = every(api, f"{store}/memories")

    assert shown(listed) == ["/odd\tname"]
    assert api.get(f"{store}/memories/{listed[0]['id']}").json()["content"] == "text"
    assert api.delete(f"{store}/memories/{listed[0]['id']}").status_code == 200


def test_what_is_no_text_has_no_content_but_hash_and_size(api: APIClient) -> None:
    put(api, "picture.png", b"\xff\xfe")
    store = store_named(api)
    memory = every(api, f"{store}/memories", view="full")[0]

    read = api.get(f"{store}/memories/{memory['id']}").json()

    assert read == memory
    assert (read["content"], read["content_size_bytes"]) == (None, 2)
    assert read["content_sha256"] == sha256(b"\xff\xfe").hexdigest()


def test_hash_and_size_are_those_of_what_entries_made(api: APIClient) -> None:
    for body in ("first", "second"):
        add_entry(api, body)
    store = store_named(api)

    for memory in every(api, f"{store}/memories"):
        content = api.get(f"{store}/memories/{memory['id']}").json()["content"]
        assert (memory["content_sha256"], memory["content_size_bytes"]) == (
            digest(content),
            len(content.encode()),
        )
        newest = versions(api, store, memory_id=memory["id"], view="full")[0]
        assert newest["id"] == memory["memory_version_id"]
        assert newest["content"] == content


# --- listing ---------------------------------------------------------------------------------------------------------

PATHS = ["/a", "/b/1", "/b/2/x", "/b.md", "/notes/a", "/notes_backup/a", "/é/x"]


@pytest.fixture
def filled(api: APIClient, store: str) -> str:
    for path in PATHS:
        make_memory(api, store, path, f"at {path}")
    return store


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, sorted(PATHS)),
        ({"depth": 0}, sorted(PATHS)),
        ({"path_prefix": "/"}, sorted(PATHS)),
        ({"depth": 1}, ["/a", "/b.md", "/b/", "/notes/", "/notes_backup/", "/é/"]),
        ({"path_prefix": "/notes/"}, ["/notes/a"]),
        ({"path_prefix": "/b/"}, ["/b/1", "/b/2/x"]),
        ({"path_prefix": "/b/", "depth": 1}, ["/b/1", "/b/2/"]),
        ({"path_prefix": "/nowhere/"}, []),
        ({"path_prefix": "/nowhere/", "depth": 1}, []),
    ],
)
def test_listing_like_find_and_like_ls(
    api: APIClient, filled: str, params: dict[str, Any], expected: list[str], limit: int
) -> None:
    found = every(api, f"{filled}/memories", limit=limit, **params)

    assert shown(found) == expected
    assert [each["type"] == "memory_prefix" for each in found] == [path.endswith("/") for path in expected]
    assert all(each.keys() == {"type", "path"} for each in found if each["type"] == "memory_prefix")


@pytest.mark.parametrize(
    "params",
    [
        {"path_prefix": "/notes"},
        {"path_prefix": "notes/"},
        {"path_prefix": ""},
        {"path_prefix": "//"},
        {"path_prefix": "/a/../"},
        {"depth": 2},
        {"depth": -1},
        {"depth": "all"},
        {"limit": 0},
        {"view": "most"},
    ],
)
def test_a_listing_that_means_nothing_is_refused(api: APIClient, store: str, params: dict[str, Any]) -> None:
    assert error(api.get(f"{store}/memories", params)) == (400, "invalid_request_error")


def test_a_page_with_content_is_shorter_and_never_refused(api: APIClient, store: str) -> None:
    for n in range(25):
        make_memory(api, store, f"/{n:02}", str(n))

    basic = api.get(f"{store}/memories", {"limit": 1000}).json()
    full = api.get(f"{store}/memories", [("limit", 100), ("view", "full")]).json()

    assert (len(basic["data"]), basic["next_page"]) == (25, None)
    assert len(api.get(f"{store}/memories").json()["data"]) == 20
    assert [each["content"] for each in full["data"]] == [str(n) for n in range(20)]
    assert full["next_page"]
    assert all(each["content"] is None for each in basic["data"])


def test_a_folder_of_many_counts_once_and_pages_are_stable(api: APIClient, store: str) -> None:
    for n in range(9):
        make_memory(api, store, f"/deep/{n}/x", "")
    make_memory(api, store, "/z", "")

    first = api.get(f"{store}/memories", {"depth": 1, "limit": 1}).json()
    make_memory(api, store, "/a", "")
    rest = every(api, f"{store}/memories", depth=1, page=first["next_page"])

    assert shown(first["data"]) == ["/deep/"]
    assert shown(rest) == ["/z"]


@pytest.mark.parametrize("depth", [0, 1])
def test_a_page_of_many_costs_as_many_queries_as_one_of_few(
    api: APIClient, alice: Tenant, store: str, depth: int
) -> None:
    files = [(f"/{n:02}/x", b"") for n in range(30)] + [(f"/{n:02}.md", b"text") for n in range(30)]
    services.import_files(Access(Tree.objects.get(tenant=alice), SYSTEM), files)

    def queries(limit: int) -> int:
        with CaptureQueriesContext(connection) as sent:
            assert len(api.get(f"{store}/memories", {"depth": depth, "limit": limit}).json()["data"]) == limit
        return len(sent)

    assert queries(50) == queries(2) <= 12


def test_what_has_expired_is_no_memory(api: APIClient, alice: Tenant) -> None:
    made = add_entry(api, "soon gone", expires_at="2100-01-01T00:00:00Z")
    put(api, "zz.md", "stays")
    store = store_named(api)
    Block.objects.filter(tenant=alice, expires_at__isnull=False).update(expires_at="2020-01-01T00:00:00Z")
    File.objects.filter(tenant=alice, next_expiry__isnull=False).update(next_expiry="2020-01-01T00:00:00Z")

    folder = made["path"].rpartition("/")[0] + "/"
    for depth in (0, 1):
        found = shown(every(api, f"{store}/memories", depth=depth, path_prefix=folder, limit=1))
        assert found == [f"{folder}index.md"]
    assert made["path"] not in {each["path"] for each in versions(api, store)}


# --- preconditions ---------------------------------------------------------------------------------------------------


def test_a_change_of_what_was_read_is_made_and_of_anything_else_refused(api: APIClient, store: str) -> None:
    made = make_memory(api, store)

    assert update(api, store, made["id"], content="two", precondition=expecting("one\n")).status_code == 200
    stale = update(api, store, made["id"], content="three", precondition=expecting("one\n"))
    moved = update(api, store, made["id"], path="/b.md", precondition=expecting("one\n"))
    gone = api.delete(f"{store}/memories/{made['id']}?expected_content_sha256={digest('one' + chr(10))}")

    assert {error(answer) for answer in (stale, moved, gone)} == {(409, "memory_precondition_failed_error")}
    read = api.get(f"{store}/memories/{made['id']}").json()
    assert (read["content"], read["path"]) == ("two", "/a.md")
    assert len(versions(api, store)) == 2


def test_a_repeat_whose_answer_was_lost_is_done_already(api: APIClient, store: str) -> None:
    made = make_memory(api, store)
    asked = {"content": "two", "path": "/b.md", "precondition": expecting("one\n")}
    first = update(api, store, made["id"], **asked)

    again = update(api, store, made["id"], **asked)

    assert again.status_code == 200
    assert again.json() == first.json()
    half = update(api, store, made["id"], content="two", path="/c.md", precondition=expecting("one\n"))
    assert error(half) == (409, "memory_precondition_failed_error")
    bare = update(api, store, made["id"], precondition=expecting("one\n"))
    assert error(bare) == (409, "memory_precondition_failed_error")
    assert len(versions(api, store)) == 2


def test_a_precondition_holds_after_an_append_too(api: APIClient) -> None:
    add_entry(api, "first")
    store = store_named(api)
    memory = next(m for m in every(api, f"{store}/memories") if m["path"].endswith("facts.md"))
    add_entry(api, "second")
    current = api.get(f"{store}/memories/{memory['id']}").json()

    stale = {"type": "content_sha256", "content_sha256": memory["content_sha256"]}
    fresh = {"type": "content_sha256", "content_sha256": current["content_sha256"].upper()}
    assert error(update(api, store, memory["id"], content="x", precondition=stale))[0] == 409
    assert update(api, store, memory["id"], content="x", precondition=fresh).status_code == 200


@pytest.mark.parametrize(
    "precondition",
    [
        {},
        {"type": "content_sha256"},
        {"type": "etag", "content_sha256": "0" * 64},
        {"type": "content_sha256", "content_sha256": "0" * 63},
        "0" * 64,
    ],
)
def test_a_precondition_that_is_none_is_refused(api: APIClient, store: str, precondition: Any) -> None:
    made = make_memory(api, store)

    answer = update(api, store, made["id"], content="x", precondition=precondition)

    assert error(answer) == (400, "invalid_request_error")


def test_a_header_that_would_not_guard_is_refused(api: APIClient, store: str) -> None:
    made = make_memory(api, store)
    url, headers = f"{store}/memories/{made['id']}", {"If-Match": f'"{digest("other")}"'}

    answers = [
        api.post(url, {"content": "x"}, format="json", headers=headers),
        api.delete(url, headers=headers),
    ]

    assert {error(answer) for answer in answers} == {(400, "invalid_request_error")}
    assert api.get(url).json()["content"] == "one\n"


def test_a_delete_of_what_was_read_is_done(api: APIClient, store: str) -> None:
    made = make_memory(api, store)

    answer = api.delete(f"{store}/memories/{made['id']}?expected_content_sha256={made['content_sha256']}")

    assert answer.status_code == 200


@pytest.mark.django_db(transaction=True)
def test_of_two_updates_of_one_state_one_wins(live_url: str) -> None:
    _, key = make_key(make_tenant())
    with httpx.Client(base_url=live_url, headers={"x-api-key": key}, timeout=30) as client:
        store = client.post(STORES, json={"name": "race"}).json()["id"]
        url = f"{STORES}/{store}/memories"
        memory = client.post(url, json={"path": "/a.md", "content": "one\n"}).json()["id"]

        def write(content: str) -> httpx.Response:
            body = {"content": content, "precondition": expecting("one\n")}
            return client.post(f"{url}/{memory}", json=body)

        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(write, [f"writer {n}" for n in range(8)]))

        won = [answer for answer in answers if answer.status_code == 200]
        lost = {answer.json()["error"]["type"] for answer in answers if answer.status_code == 409}
        assert len(won) == 1
        assert len(answers) == 8
        assert lost == {"memory_precondition_failed_error"}
        current = client.get(f"{url}/{memory}").json()
        assert current["content_sha256"] == won[0].json()["content_sha256"]
        found = client.get(f"{STORES}/{store}/memory_versions").json()["data"]
        assert [version["operation"] for version in found] == ["modified", "created"]


@pytest.mark.django_db(transaction=True)
def test_of_two_creations_at_one_path_one_wins(live_url: str) -> None:
    _, key = make_key(make_tenant())
    with httpx.Client(base_url=live_url, headers={"x-api-key": key}, timeout=30) as client:
        store = client.post(STORES, json={"name": "race"}).json()["id"]
        url = f"{STORES}/{store}/memories"

        def create(path: str) -> httpx.Response:
            return client.post(url, json={"path": path, "content": path})

        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(create, ["/a", "/a/b"] * 4))

        winner = next(answer.json() for answer in answers if answer.status_code == 200)
        refused = [answer.json()["error"] for answer in answers if answer.status_code == 409]
        assert len(refused) == 7
        assert {each["type"] for each in refused} == {"memory_path_conflict_error"}
        assert {each["conflicting_memory_id"] for each in refused} == {winner["id"]}


def test_a_repeat_with_an_idempotency_key_makes_one_memory(api: APIClient, store: str) -> None:
    body, headers = {"path": "/a.md", "content": "one"}, {"Idempotency-Key": "once"}

    first, again = (api.post(f"{store}/memories", body, format="json", headers=headers) for _ in range(2))

    assert first.json() == again.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    assert len(versions(api, store)) == 1


def test_what_can_not_be_found_as_an_entry_is_told_in_a_header(api: APIClient, store: str) -> None:
    entry = "---\nid: mem_1\ncreated: 2026-01-01\ncategory: facts\n---\n\nBody.\n"
    broken = f"# A\n{entry}\n{entry.replace('facts', 'fact')}"
    made = post(api, f"{store}/memories", path="/memory/a.md", content=broken)
    assert made.headers["Memsvc-Warnings"] == "2 swallowed_entry, 10 unusable_entry"
    url = f"{store}/memories/{made.json()['id']}"
    assert "Memsvc-Warnings" not in post(api, url, content=f"# A\n\n{entry}").headers
    assert post(api, url, content=broken).headers["Memsvc-Warnings"].startswith("2 swallowed_entry")
