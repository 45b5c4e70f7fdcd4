"""Memory stores as their clients know them: transport, errors, lists, and the stores themselves."""

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from rest_framework.test import APIClient

from memsvc.tree.models import Tree
from tenants.models import Tenant
from tenants.scopes import Scope
from tests.api.conftest import client_with
from tests.api.stores import STORES, error, every, make_memory, make_store, store_named
from tests.api.support import post, put
from tests.people import WRITE, make_key

MISSING = f"{STORES}/memstore_{'0' * 32}"


def update(client: APIClient, store: str, **fields: Any) -> Any:
    return post(client, store, **fields)


# --- transport -------------------------------------------------------------------------------------------------------


def test_either_header_opens_the_door_and_both_do_not(alice: Tenant) -> None:
    _, key = make_key(alice)
    bearer, alone = {"Authorization": f"Bearer {key}"}, {"x-api-key": key}

    for headers in (bearer, alone):
        assert APIClient().get(STORES, headers=headers).status_code == 200
    refused = [
        APIClient().get(STORES, headers=headers) for headers in (bearer | alone, {"x-api-key": "no"}, {})
    ]

    assert {error(answer) for answer in refused} == {(401, "authentication_error")}


def test_x_api_key_opens_no_other_door(alice: Tenant) -> None:
    assert APIClient().get("/v1/me", headers={"x-api-key": make_key(alice)[1]}).status_code == 401


def test_what_clients_of_others_add_is_ignored(api: APIClient) -> None:
    headers = {"anthropic-beta": "managed-agents-2026-04-01", "anthropic-version": "2023-06-01"}
    store = make_store(api)
    memory = make_memory(api, store)["id"]

    for url in (STORES, store, f"{store}/memories", f"{store}/memories/{memory}", f"{store}/memory_versions"):
        assert api.get(url, {"beta": "true"}, headers=headers).status_code == 200, url
    assert post(api, f"{STORES}?beta=true", name="another").status_code == 200


def test_times_have_an_offset(api: APIClient) -> None:
    made = post(api, STORES, name="notes").json()

    assert made["created_at"].endswith("Z")
    assert datetime.fromisoformat(made["created_at"]).tzinfo is not None


@pytest.mark.parametrize(
    ("method", "url", "body", "expected"),
    [
        ("get", f"{STORES}?limit=0", None, (400, "invalid_request_error")),
        ("get", f"{STORES}?colour=red", None, (400, "invalid_request_error")),
        ("get", f"{STORES}?page=page_nonsense", None, (400, "invalid_request_error")),
        ("get", f"{STORES}?created_at%5Bgte%5D=yesterday", None, (400, "invalid_request_error")),
        ("get", f"{STORES}?page=%00", None, (400, "invalid_request_error")),
        ("post", STORES, {}, (400, "invalid_request_error")),
        ("post", STORES, {"name": "a", "nmae": "b"}, (400, "invalid_request_error")),
        ("get", f"{MISSING}/nowhere", None, (404, "not_found_error")),
        ("get", MISSING, None, (404, "not_found_error")),
        ("delete", STORES, None, (405, "invalid_request_error")),
    ],
)
def test_every_error_has_the_envelope_of_this_door(
    api: APIClient, method: str, url: str, body: Any, expected: tuple[int, str]
) -> None:
    assert error(getattr(api, method)(url, body, format="json")) == expected


def test_a_body_that_is_too_large_has_it_too(api: APIClient, settings: Any) -> None:
    settings.MAX_BODY_BYTES = 50

    assert error(post(api, STORES, name="x" * 100)) == (413, "request_too_large")


def test_a_fault_of_ours_has_it_too(api: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("on purpose")

    monkeypatch.setattr("memsvc.tree.trees.stores_page", fail)

    assert error(api.get(STORES)) == (500, "api_error")


def test_a_key_without_the_scope_is_refused(reader: APIClient, alice: Tenant) -> None:
    writer = client_with(make_key(alice, WRITE)[1])
    store = make_store(writer)

    assert error(post(reader, STORES, name="x")) == (403, "permission_error")
    assert error(writer.get(STORES)) == (403, "permission_error")
    assert error(writer.delete(store)) == (403, "permission_error")


def test_a_foreign_id_is_answered_as_one_that_never_was(api: APIClient, stranger: APIClient) -> None:
    store = make_store(api)
    memory = make_memory(api, store)
    own = make_store(stranger)

    def said(url: str) -> tuple[int, bytes]:
        answer = stranger.get(url)
        return answer.status_code, answer.content.replace(answer.headers["X-Request-ID"].encode(), b"")

    assert said(store) == said(MISSING)
    assert said(f"{store}/memories/{memory['id']}") == said(f"{MISSING}/memories/mem_{'0' * 32}")
    assert said(f"{own}/memories/{memory['id']}") == said(f"{own}/memories/mem_{'0' * 32}")
    assert said(f"{own}/memory_versions/{memory['memory_version_id']}") == said(
        f"{own}/memory_versions/memver_{'0' * 32}_1"
    )
    assert said(store)[0] == 404


@pytest.mark.parametrize("wrong", ["x", "memstore_x", "mem_" + "0" * 32, "memstore_" + "A" * 32])
def test_an_id_that_is_none_is_one_that_never_was(api: APIClient, wrong: str) -> None:
    assert api.get(f"{STORES}/{wrong}").json()["error"] == api.get(MISSING).json()["error"]


# --- stores ----------------------------------------------------------------------------------------------------------


def test_a_store_goes_round(api: APIClient) -> None:
    made = post(api, STORES, name="Customer 42", description="Tastes", metadata={"region": "eu"}).json()

    assert made == {
        "id": made["id"],
        "type": "memory_store",
        "name": "Customer 42",
        "description": "Tastes",
        "metadata": {"region": "eu"},
        "created_at": made["created_at"],
        "updated_at": made["created_at"],
        "archived_at": None,
    }
    assert made["id"].startswith("memstore_")
    assert api.get(f"{STORES}/{made['id']}").json() == made
    assert api.get(STORES).json() == {"data": [made], "next_page": None}


def test_names_need_not_be_unique_and_unset_things_are_empty(api: APIClient) -> None:
    first, second = (post(api, STORES, name="twin").json() for _ in range(2))

    assert first["id"] != second["id"]
    assert (first["description"], first["metadata"]) == ("", {})


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": "x" * 256},
        {"name": "a\nb"},
        {"name": "a\x85b"},
        {"name": 7},
        {"name": "a", "description": "x" * 1025},
        {"name": "a", "metadata": {str(n): "v" for n in range(17)}},
        {"name": "a", "metadata": {"": "v"}},
        {"name": "a", "metadata": {"k" * 65: "v"}},
        {"name": "a", "metadata": {"k": "v" * 513}},
        {"name": "a", "metadata": {"k": 7}},
        {"name": "a", "metadata": {"k": None}},
        {"name": "a", "metadata": {"k": "\0"}},
        {"name": "a", "metadata": ["k"]},
    ],
)
def test_what_a_store_can_not_be_is_refused(api: APIClient, fields: dict[str, Any]) -> None:
    assert error(post(api, STORES, **fields)) == (400, "invalid_request_error")
    assert api.get(STORES).json()["data"] == []


def test_the_limits_count_characters_and_are_taken(api: APIClient) -> None:
    fields = {
        "name": "é" * 255,
        "description": "漢" * 1024,
        "metadata": {f"{n:064}": "🙂" * 512 for n in range(16)},
    }

    made = post(api, STORES, **fields).json()

    assert made == made | fields
    assert api.get(STORES).json()["data"] == [made]


def test_an_update_keeps_what_it_does_not_name(api: APIClient) -> None:
    store = make_store(api, "old", description="kept", metadata={"a": "1", "b": "2"})

    named = update(api, store, name="new").json()
    patched = update(api, store, metadata={"a": None, "c": "3"}).json()

    assert (named["name"], named["description"], named["metadata"]) == ("new", "kept", {"a": "1", "b": "2"})
    assert patched["metadata"] == {"b": "2", "c": "3"}
    assert patched["updated_at"] > patched["created_at"]
    assert update(api, store, description="").json()["description"] == ""
    too_many = {str(n): "v" for n in range(16)}
    assert error(update(api, store, metadata=too_many)) == (400, "invalid_request_error")
    assert api.get(store).json()["metadata"] == {"b": "2", "c": "3"}


def test_an_update_that_changes_nothing_is_no_update(api: APIClient) -> None:
    store = make_store(api, "same", metadata={"a": "1"})

    assert update(api, store, name="same", metadata={"a": "1", "b": None}).json() == api.get(store).json()
    assert api.get(store).json()["updated_at"] == api.get(store).json()["created_at"]


def test_an_archived_store_is_read_only_for_good(api: APIClient) -> None:
    store = make_store(api)
    memory = make_memory(api, store)

    archived = post(api, f"{store}/archive").json()

    assert archived["archived_at"] is not None
    assert post(api, f"{store}/archive").json()["archived_at"] == archived["archived_at"]
    refused = [
        update(api, store, name="new"),
        post(api, f"{store}/memories", path="/b.md", content=""),
        post(api, f"{store}/memories/{memory['id']}", content="two"),
        api.delete(f"{store}/memories/{memory['id']}"),
    ]
    assert {error(answer) for answer in refused} == {(409, "conflict_error")}
    assert api.get(f"{store}/memories/{memory['id']}").json()["content"] == "one\n"
    assert api.get(STORES).json()["data"] == []
    assert [each["id"] for each in api.get(STORES, {"include_archived": "true"}).json()["data"]] == [
        archived["id"]
    ]


def test_a_deleted_store_is_gone_with_everything(api: APIClient, alice: Tenant) -> None:
    owner = client_with(make_key(alice, *Scope)[1])
    store = make_store(api)
    memory = make_memory(api, store)

    deleted = owner.delete(store)

    assert deleted.json() == {"id": store.rpartition("/")[2], "type": "memory_store_deleted"}
    for url in (store, f"{store}/memories/{memory['id']}", f"{store}/memory_versions"):
        assert error(api.get(url)) == (404, "not_found_error")
    assert error(owner.delete(store)) == (404, "not_found_error")


def test_stores_come_newest_first_every_one_once(api: APIClient) -> None:
    made = [make_store(api, f"store {n}").rpartition("/")[2] for n in range(7)]

    assert [each["id"] for each in every(api, STORES, limit=2)] == made[::-1]
    assert [each["id"] for each in every(api, STORES, limit=1000)] == made[::-1]


def test_stores_of_one_instant_come_once_too(api: APIClient, alice: Tenant) -> None:
    made = {make_store(api).rpartition("/")[2] for _ in range(5)}
    Tree.objects.filter(tenant=alice).update(created_at=datetime.fromisoformat("2026-01-01T00:00:00Z"))

    found = [each["id"] for each in every(api, STORES, limit=2)]

    assert (len(found), set(found)) == (5, made)


def test_times_filter_inclusively(api: APIClient, alice: Tenant) -> None:
    start = datetime.fromisoformat("2026-01-01T00:00:00Z")
    for day in range(3):
        tree = make_store(api, f"day {day}").removeprefix(f"{STORES}/memstore_")
        Tree.objects.filter(pk=tree).update(created_at=start + timedelta(days=day))

    def named(**params: str) -> list[str]:
        query = {f"created_at[{end}]": at for end, at in params.items()}
        return [each["name"] for each in every(api, f"{STORES}?{urlencode(query)}")]

    assert named(gte="2026-01-02T00:00:00Z") == ["day 2", "day 1"]
    assert named(lte="2026-01-02T00:00:00Z") == ["day 1", "day 0"]
    assert named(gte="2026-01-02T01:00:00+01:00", lte="2026-01-02T00:00:00Z") == ["day 1"]


def test_a_page_belongs_to_its_list_and_filters(api: APIClient) -> None:
    for n in range(3):
        make_store(api, f"store {n}")
    page = api.get(STORES, {"limit": 1}).json()["next_page"]

    assert page.startswith("page_")
    assert api.get(STORES, {"limit": 2, "page": page}).status_code == 200
    other = api.get(STORES, {"page": page, "include_archived": "true"})
    elsewhere = api.get(f"{store_named(api, 'store 0')}/memories", {"page": page})
    assert {error(answer) for answer in (other, elsewhere)} == {(400, "invalid_request_error")}


def test_stores_are_trees_and_trees_are_stores(api: APIClient) -> None:
    put(api, "notes.md", "from the file door\n")
    store = make_store(api, "shown")
    tree = store.rpartition("/")[2]
    make_memory(api, store, "/memory/a.md", "from the store door\n")

    default = store_named(api, "default")
    assert [each["path"] for each in every(api, f"{default}/memories")] == ["/notes.md"]
    files = [item["path"] for item in api.get(f"/v1/trees/{tree}/files").json()["items"]]
    assert "/memory/a.md" in files
    described = update(api, default, name="Main", description="Everything").json()
    assert (described["name"], described["description"]) == ("Main", "Everything")
    assert api.get("/v1/trees/default").json()["description"] == "Everything"


def test_a_key_for_one_tree_sees_one_store_and_makes_none(api: APIClient, alice: Tenant) -> None:
    store, other = make_store(api), make_store(api, "other")
    limited = client_with(make_key(alice, *Scope, tree=store.rpartition("/")[2])[1])

    assert [each["id"] for each in limited.get(STORES).json()["data"]] == [store.rpartition("/")[2]]
    assert error(limited.get(other)) == (404, "not_found_error")
    assert error(post(limited, STORES, name="new")) == (403, "permission_error")


def test_a_key_for_a_folder_sees_that_of_a_store(api: APIClient, alice: Tenant) -> None:
    store = make_store(api)
    inside, outside = make_memory(api, store, "/team/a.md"), make_memory(api, store, "/other/b.md")
    limited = client_with(make_key(alice, *Scope, path_prefix="/team")[1])

    assert [each["id"] for each in every(limited, f"{store}/memories")] == [inside["id"]]
    assert [each["memory_id"] for each in every(limited, f"{store}/memory_versions")] == [inside["id"]]
    hidden = [
        limited.get(f"{store}/memories/{outside['id']}"),
        limited.get(f"{store}/memory_versions/{outside['memory_version_id']}"),
        limited.delete(f"{store}/memories/{outside['id']}"),
    ]
    assert {error(answer) for answer in hidden} == {(404, "not_found_error")}
    forbidden = [
        post(limited, f"{store}/memories", path="/other/c.md", content=""),
        post(limited, f"{store}/memories/{inside['id']}", path="/other/c.md"),
        update(limited, store, name="mine"),
        post(limited, f"{store}/archive"),
        limited.delete(store),
    ]
    assert {error(answer) for answer in forbidden} == {(403, "permission_error")}


def test_a_repeat_with_an_idempotency_key_makes_one_store(api: APIClient) -> None:
    headers = {"Idempotency-Key": "once"}

    first, again = (api.post(STORES, {"name": "a"}, format="json", headers=headers) for _ in range(2))
    other = api.post(STORES, {"name": "b"}, format="json", headers=headers)

    assert first.json() == again.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    assert error(other) == (422, "invalid_request_error")
    assert len(api.get(STORES).json()["data"]) == 1
