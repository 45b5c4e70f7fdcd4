"""Versions of memories: one for each change, with its actor; and redaction, which leaves nothing of what it takes."""

from io import BytesIO
from typing import Any
from urllib.parse import urlencode
from zipfile import ZipFile

import pytest
from django.db import connection
from rest_framework.test import APIClient

from memsvc.recall.models import Vector
from memsvc.tree import services
from memsvc.tree.access import Access
from memsvc.tree.models import Block, File, Redaction, Revision, Tree
from memsvc.tree.retention import prune_to
from tenants.actors import Actor, ActorKind
from tenants.models import ApiKey, Tenant
from tenants.scopes import Scope
from tests.api.conftest import client_with
from tests.api.stores import (
    digest,
    error,
    every,
    make_memory,
    make_store,
    store_named,
    update,
    versions,
)
from tests.api.support import BATCH, FILES, add_entry, patch, post, put, streamed
from tests.people import make_key

CANARY = "canary-4f1d9a"


@pytest.fixture
def store(api: APIClient) -> str:
    return make_store(api)


@pytest.fixture
def owner(alice: Tenant) -> APIClient:
    """A key of Alice's with every right."""
    return client_with(make_key(alice, *Scope, name="owner")[1])


def redact(client: APIClient, store: str, version_id: str, **headers: str) -> Any:
    return client.post(f"{store}/memory_versions/{version_id}/redact", headers=headers)


def everything_stored() -> str:
    """Every row of every table as text."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_stat_user_tables")
        tables = [table for (table,) in cursor.fetchall()]
        rows: list[str] = []
        for table in tables:
            cursor.execute(f'SELECT t::text FROM "{table}" t')
            rows += [row for (row,) in cursor.fetchall()]
    return "\n".join(rows)


def is_stored(text: str) -> bool:
    stored = everything_stored()
    # Bytes are shown in hexadecimal digits.
    return text in stored or text.encode().hex() in stored


# --- versions --------------------------------------------------------------------------------------------------------


def test_a_version_for_each_change_newest_first(api: APIClient, alice: Tenant, store: str) -> None:
    made = make_memory(api, store, "/a.md", "one\n")
    update(api, store, made["id"], content="two\n")
    update(api, store, made["id"], path="/b.md")
    api.delete(f"{store}/memories/{made['id']}")

    found = versions(api, store, view="full")

    key = ApiKey.objects.get(tenant=alice)
    assert [(each["operation"], each["path"], each["content"]) for each in found] == [
        ("deleted", "/b.md", None),
        ("modified", "/b.md", "two\n"),
        ("modified", "/a.md", "two\n"),
        ("created", "/a.md", "one\n"),
    ]
    first = found[-1]
    assert first == {
        "id": made["memory_version_id"],
        "type": "memory_version",
        "memory_store_id": store.rpartition("/")[2],
        "memory_id": made["id"],
        "operation": "created",
        "path": "/a.md",
        "content": "one\n",
        "content_sha256": digest("one\n"),
        "content_size_bytes": 4,
        "created_at": first["created_at"],
        "created_by": {"type": "api_actor", "api_key_id": str(key.pk)},
        "redacted_at": None,
        "redacted_by": None,
    }
    assert (found[0]["content_sha256"], found[0]["content_size_bytes"]) == (None, None)
    for each in found:
        url = f"{store}/memory_versions/{each['id']}"
        assert api.get(url).json() == each
        assert api.get(url, {"view": "basic"}).json() == each | {"content": None}
    assert versions(api, store, limit=1) == [each | {"content": None} for each in found]


def test_the_current_version_is_the_newest_one(api: APIClient, store: str) -> None:
    made = make_memory(api, store)
    other = make_memory(api, store, "/other")
    changed = update(api, store, made["id"], content="two").json()

    newest = versions(api, store, memory_id=made["id"])[0]["id"]

    assert changed["memory_version_id"] == newest
    assert api.get(f"{store}/memories/{made['id']}").json()["memory_version_id"] == newest
    listed = {each["id"]: each["memory_version_id"] for each in every(api, f"{store}/memories")}
    assert listed == {made["id"]: newest, other["id"]: other["memory_version_id"]}


def test_changes_through_other_doors_are_versions_too(api: APIClient) -> None:
    put(api, "a.md", "one\n")
    patch(api, "a.md", append="two\n")
    old = add_entry(api, "first")
    post(api, f"/v1/trees/default/entries/{old['id']}:supersede", body="second")
    steps = [
        {"op": "write", "path": "/a.md", "content": "three"},
        {"op": "write", "path": "/b.md", "content": "b"},
    ]
    post(api, BATCH, operations=steps)
    post(api, "/v1/trees/default/revisions/1:restore", path="/a.md")
    store = store_named(api)

    found = versions(api, store, view="full")

    numbers = [int(each["id"].rpartition("_")[2]) for each in found]
    assert numbers == sorted(numbers, reverse=True)
    of_a = [each["content"] for each in found if each["path"] == "/a.md"]
    assert of_a == ["one\n", "three", "one\ntwo\n", "one\n"]
    for each in found:
        raw = api.get(
            f"{FILES}{each['path']}?revision={each['id'].rpartition('_')[2]}",
            headers={"Accept": "application/octet-stream"},
        )
        assert each["content"] == raw.content.decode()
    assert [each["content"] for each in versions(api, store, limit=1, view="full")] == [
        each["content"] for each in found
    ]


def test_what_came_and_went_in_one_batch_is_no_version(api: APIClient) -> None:
    steps = [
        {"op": "write", "path": "/passing.md", "content": "x"},
        {"op": "write", "path": "/kept.md", "content": "x"},
        {"op": "delete", "path": "/passing.md"},
    ]
    post(api, BATCH, operations=steps)

    assert [each["path"] for each in versions(api, store_named(api))] == ["/kept.md"]


def test_filters(api: APIClient, owner: APIClient, alice: Tenant, store: str) -> None:
    a, b = make_memory(api, store, "/a"), make_memory(owner, store, "/b")
    update(owner, store, a["id"], content="two")
    api.delete(f"{store}/memories/{b['id']}")
    agent = ApiKey.objects.get(tenant=alice, name="agent")

    def found(**params: Any) -> list[tuple[str, str]]:
        return [(each["operation"], each["path"]) for each in versions(api, store, limit=1, **params)]

    assert found(memory_id=a["id"]) == [("modified", "/a"), ("created", "/a")]
    assert found(memory_id=b["id"]) == [("deleted", "/b"), ("created", "/b")]
    assert found(operation="created") == [("created", "/b"), ("created", "/a")]
    assert found(operation="deleted") == [("deleted", "/b")]
    assert found(api_key_id=str(agent.pk)) == [("deleted", "/b"), ("created", "/a")]
    assert found(api_key_id=str(agent.pk), operation="created", memory_id=a["id"]) == [("created", "/a")]
    assert found(api_key_id="nobody") == []
    assert found(session_id="run-1") == []
    assert found(memory_id="mem_" + "0" * 32) == []
    assert found(memory_id="nonsense") == []
    assert error(api.get(f"{store}/memory_versions", {"operation": "moved"}))[0] == 400


def test_times_of_versions_filter_inclusively(api: APIClient, store: str) -> None:
    for n in range(3):
        make_memory(api, store, f"/{n}")
    times = {each["path"]: each["created_at"] for each in versions(api, store)}

    def found(**ends: str) -> list[str]:
        query = urlencode({f"created_at[{end}]": at for end, at in ends.items()})
        return [each["path"] for each in every(api, f"{store}/memory_versions?{query}")]

    assert found(gte=times["/1"]) == ["/2", "/1"]
    assert found(lte=times["/1"]) == ["/1", "/0"]
    assert found(gte=times["/1"], lte=times["/1"]) == ["/1"]


def test_a_person_is_a_user_actor(alice: Tenant, api: APIClient, store: str) -> None:
    tree = Tree.objects.get(tenant=alice)
    services.write_file(Access(tree, Actor(ActorKind.MEMBER, "7", "Ada")), "/a.md", "by hand")

    (only,) = versions(api, store)

    assert only["created_by"] == {"type": "user_actor", "user_id": "7"}
    assert versions(api, store, api_key_id="7") == []


def test_what_a_run_wrote_is_by_a_session(alice: Tenant, api: APIClient, store: str) -> None:
    make_memory(api, store, "/a")
    for path, run in (("/b", "run%201"), ("/c", "run-2")):
        api.post(
            f"{store}/memories", {"path": path, "content": "x"}, headers={"Memsvc-Run-Id": run}, format="json"
        )
    tree = Tree.objects.get(tenant=alice)
    person = Actor(ActorKind.MEMBER, "7", "Ada", run_id="run-2")
    services.write_file(Access(tree, person), "/d", "by hand")
    key = str(ApiKey.objects.get(tenant=alice).pk)

    assert {each["path"]: each["created_by"] for each in versions(api, store)} == {
        "/a": {"type": "api_actor", "api_key_id": key},
        "/b": {"type": "session_actor", "session_id": "run 1"},
        "/c": {"type": "session_actor", "session_id": "run-2"},
        "/d": {"type": "user_actor", "user_id": "7"},
    }
    assert [each["path"] for each in versions(api, store, session_id="run 1")] == ["/b"]
    assert [each["path"] for each in versions(api, store, session_id="run-2", limit=1)] == ["/d", "/c"]
    assert versions(api, store, session_id="run") == []
    assert [each["path"] for each in versions(api, store, api_key_id=key)] == ["/c", "/b", "/a"]


def test_more_versions_than_one_look_takes_come_every_one_once(
    api: APIClient, alice: Tenant, store: str
) -> None:
    tree = Tree.objects.get(tenant=alice)
    access = Access(tree, Actor(ActorKind.KEY, "k", "agent"))
    for n in range(130):
        services.write_file(access, f"/{n % 3}.md", str(n))
    services.upload_files(access, [(f"/{n}.txt", b"x") for n in range(30)])

    found = versions(api, store, limit=100)

    assert len(found) == len({each["id"] for each in found}) == 160
    assert len(versions(api, store, operation="created", limit=7)) == 33
    assert len(versions(api, store, memory_id=found[-1]["memory_id"], limit=30)) == 44


def test_where_old_history_was_let_go_the_oldest_version_left_is_whole(
    api: APIClient, owner: APIClient, alice: Tenant, store: str
) -> None:
    """Of each memory the version that it had then, and all later ones, just as they were."""
    lines = "x" * 1023 + "\n"
    long = make_memory(api, store, "/long.md", "first\n" + lines * 70 + "tail\n")["id"]
    update(api, store, long, content="second\n" + lines * 70 + "tail\n")
    # Takes blocks away and adds none.
    update(api, store, long, content="second\n" + lines * 63)
    moved = make_memory(api, store, "/moved.md")["id"]
    gone = make_memory(api, store, "/gone.md")["id"]
    update(api, store, moved, path="/here.md")
    api.delete(f"{store}/memories/{gone}")
    still = make_memory(api, store, "/still.md")["id"]
    before = versions(api, store, view="full")
    tree = Tree.objects.get(tenant=alice)

    prune_to(tree, tree.revision)

    left = versions(api, store, view="full")
    current = {each["id"]: each["memory_version_id"] for each in every(api, f"{store}/memories")}
    assert {each["memory_id"]: each["id"] for each in left} == current
    assert current.keys() == {long, moved, still}
    assert left == [each for each in before if each["id"] in current.values()]
    for each in before:
        found = api.get(f"{store}/memory_versions/{each['id']}")
        assert found.status_code == (200 if each in left else 404)
    update(api, store, long, content="third\n")
    assert [each["operation"] for each in versions(api, store, memory_id=long)] == ["modified", "modified"]
    assert redact(owner, store, current[long]).status_code == 200
    assert not is_stored("second")


def test_a_move_across_the_edge_of_a_key_is_a_coming_and_a_going(
    api: APIClient, owner: APIClient, alice: Tenant, store: str
) -> None:
    made = make_memory(api, store, "/team/a.md")
    update(api, store, made["id"], path="/other/a.md", content=CANARY)
    update(api, store, made["id"], path="/team/b.md")
    limited = client_with(make_key(alice, *Scope, path_prefix="/team")[1])

    found = versions(limited, store, view="full")

    assert [(each["operation"], each["path"]) for each in found] == [
        ("created", "/team/b.md"),
        ("deleted", "/team/a.md"),
        ("created", "/team/a.md"),
    ]
    assert [each["content"] for each in found] == [CANARY, None, "one\n"]
    # What lies out of its sight it can't redact.
    assert error(redact(limited, store, found[1]["id"])) == (409, "conflict_error")


# --- redaction -------------------------------------------------------------------------------------------------------


@pytest.fixture
def leaked(api: APIClient, store: str) -> list[dict[str, Any]]:
    """A memory that held a secret in its second version of three; its versions, oldest first."""
    made = make_memory(api, store, "/a.md", "one\n")
    update(api, store, f"{made['id']}?view=full", content=f"one\n{CANARY}\n")
    update(api, store, made["id"], content="three\n")
    return versions(api, store, view="full")[::-1]


def test_a_redacted_version_is_there_without_what_it_held(
    api: APIClient, owner: APIClient, alice: Tenant, store: str, leaked: list[dict[str, Any]]
) -> None:
    first, secret, current = leaked

    answer = redact(owner, store, secret["id"])

    key = ApiKey.objects.get(tenant=alice, name="owner")
    assert answer.status_code == 200
    assert answer.json() == secret | {
        "path": None,
        "content": None,
        "content_sha256": None,
        "content_size_bytes": None,
        "redacted_at": answer.json()["redacted_at"],
        "redacted_by": {"type": "api_actor", "api_key_id": str(key.pk)},
    }
    assert answer.json()["redacted_at"] > secret["created_at"]
    assert api.get(f"{store}/memory_versions/{secret['id']}").json() == answer.json()
    assert versions(api, store, view="full") == [current, answer.json(), first]
    assert versions(api, store, memory_id=secret["memory_id"], view="full")[1] == answer.json()
    assert api.get(f"{store}/memories/{secret['memory_id']}").json()["content"] == "three\n"


def test_nothing_of_it_is_left_in_the_database(
    api: APIClient, owner: APIClient, store: str, leaked: list[dict[str, Any]]
) -> None:
    hash_of_it = leaked[1]["content_sha256"]
    again = {"Idempotency-Key": "quotes-the-secret"}
    update_url = f"{store}/memories/{leaked[1]['memory_id']}?view=full"
    kept = owner.post(update_url, {"content": f"{CANARY} again"}, format="json", headers=again)
    owner.post(update_url, {"content": "clean"}, format="json")
    assert is_stored(CANARY)

    for version in (leaked[1]["id"], kept.json()["memory_version_id"]):
        assert redact(owner, store, version).status_code == 200

    assert not is_stored(CANARY)
    assert not is_stored(hash_of_it)
    assert not is_stored(kept.json()["content_sha256"])
    # The write is not done again, although its answer is gone.
    repeat = owner.post(update_url, {"content": f"{CANARY} again"}, format="json", headers=again)
    assert error(repeat) == (409, "conflict_error")
    assert repeat.json()["error"]["code"] == "answer_redacted"
    assert api.get(update_url).json()["content"] == "clean"


def test_an_entry_is_gone_from_every_column(api: APIClient, owner: APIClient) -> None:
    entry = add_entry(
        api, f"body {CANARY}", summary=f"summary {CANARY}", tags=[CANARY], source=CANARY, title=CANARY
    )
    put(api, entry["path"][1:], "clean\n")
    store = store_named(api)
    held = Block.objects.get(entry_id=entry["id"])
    Vector.objects.create(
        tenant_id=held.tenant_id, tree_id=held.tree_id, block=held, part=0, model="m", embedding=[0.5]
    )
    for each in versions(api, store, view="full"):
        if each["content"] and CANARY in each["content"]:
            memory = api.get(f"{store}/memories/{each['memory_id']}").json()
            if memory["memory_version_id"] == each["id"]:
                update(api, store, each["memory_id"], content="clean\n")

    for each in versions(api, store, view="full"):
        if each["content"] and CANARY in each["content"]:
            assert redact(owner, store, each["id"]).status_code == 200

    assert not is_stored(CANARY)
    assert not Vector.objects.exists()
    history = api.get(f"/v1/trees/default/entries/{entry['id']}/history")
    assert history.status_code == 404


def test_bytes_that_are_no_text_are_gone_too(api: APIClient, owner: APIClient) -> None:
    put(api, "a.bin", b"\xff" + CANARY.encode())
    put(api, "a.bin", b"\xfe")
    store = store_named(api)

    redact(owner, store, versions(api, store)[-1]["id"])

    assert not is_stored(CANARY)


def test_a_deleted_memory_leaves_neither_content_nor_hash(
    api: APIClient, owner: APIClient, store: str
) -> None:
    made = make_memory(api, store, "/a.md", CANARY)
    api.delete(f"{store}/memories/{made['id']}")

    answers = [redact(owner, store, each["id"]) for each in versions(api, store)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert not is_stored(CANARY)
    assert not is_stored(made["content_sha256"])
    assert [each["operation"] for each in versions(api, store)] == ["deleted", "created"]
    assert {each["path"] for each in versions(api, store)} == {None}


def test_what_other_versions_hold_too_stays_until_they_are_redacted(
    api: APIClient, owner: APIClient, store: str
) -> None:
    # Two blocks: text is cut at 64 KiB.
    shared, line = f"shared {CANARY}\n", "x" * 1023 + "\n"
    made = make_memory(api, store, "/a.md", shared + line * 80 + "end one\n")
    update(api, store, made["id"], content=shared + line * 80 + "end two\n")
    update(api, store, made["id"], content="clean\n")
    old, middle = versions(api, store)[:0:-1]
    assert Block.objects.filter(text__contains=CANARY).count() == 1

    redact(owner, store, old["id"])
    assert is_stored(CANARY)
    assert not is_stored("end one")
    assert api.get(f"{store}/memory_versions/{middle['id']}").json()["content"].startswith(shared)

    redact(owner, store, middle["id"])
    assert not is_stored(CANARY)


def test_a_rename_carries_content_that_both_versions_hold(
    api: APIClient, owner: APIClient, store: str
) -> None:
    made = make_memory(api, store, "/a.txt", CANARY)
    update(api, store, made["id"], path="/b.txt")
    update(api, store, made["id"], content="clean")
    moved, created = versions(api, store)[1:]

    redact(owner, store, created["id"])
    assert api.get(f"{store}/memory_versions/{moved['id']}").json()["content"] == CANARY

    redact(owner, store, moved["id"])
    assert not is_stored(CANARY)


def test_a_second_redaction_keeps_the_first_time(
    owner: APIClient, store: str, leaked: list[dict[str, Any]]
) -> None:
    first = redact(owner, store, leaked[1]["id"])

    assert redact(owner, store, leaked[1]["id"]).json() == first.json()
    assert Redaction.objects.count() == 1


def test_the_current_version_of_a_live_memory_is_not_redacted(
    api: APIClient, owner: APIClient, store: str, leaked: list[dict[str, Any]]
) -> None:
    refused = redact(owner, store, leaked[2]["id"])

    assert error(refused) == (409, "conflict_error")
    assert api.get(f"{store}/memory_versions/{leaked[2]['id']}").json() == leaked[2]


def test_redaction_needs_the_scope_admin_and_no_other(
    api: APIClient, alice: Tenant, store: str, leaked: list[dict[str, Any]]
) -> None:
    admin = client_with(make_key(alice, Scope.ADMIN)[1])

    assert error(redact(api, store, leaked[1]["id"])) == (403, "permission_error")
    assert redact(admin, store, leaked[1]["id"]).status_code == 200


def test_an_archived_store_can_still_be_redacted(
    api: APIClient, owner: APIClient, store: str, leaked: list[dict[str, Any]]
) -> None:
    post(api, f"{store}/archive")

    assert redact(owner, store, leaked[1]["id"]).status_code == 200
    assert not is_stored(CANARY)


def test_a_store_with_a_redaction_can_be_deleted(
    owner: APIClient, store: str, leaked: list[dict[str, Any]]
) -> None:
    redact(owner, store, leaked[1]["id"])

    assert owner.delete(store).status_code == 200
    assert not Redaction.objects.exists()


def test_a_version_that_never_was_is_not_found(
    owner: APIClient, store: str, leaked: list[dict[str, Any]]
) -> None:
    for wrong in (f"{leaked[0]['id']}9", "memver_x", f"memver_{'0' * 32}_1"):
        assert error(redact(owner, store, wrong)) == (404, "not_found_error")


def test_it_makes_no_revision(owner: APIClient, store: str, leaked: list[dict[str, Any]]) -> None:
    before = Revision.objects.count()

    redact(owner, store, leaked[1]["id"])

    assert Revision.objects.count() == before


def test_a_repeated_redaction_is_answered_as_the_first(
    owner: APIClient, store: str, leaked: list[dict[str, Any]]
) -> None:
    first, again = (redact(owner, store, leaked[1]["id"], **{"Idempotency-Key": "r"}) for _ in range(2))

    assert first.json() == again.json()
    assert again.headers["Idempotent-Replayed"] == "true"


def test_no_other_door_shows_it_or_fails(api: APIClient, owner: APIClient) -> None:
    """Reads as of a revision, exports, differences, blame, history, undo and restore, before and after."""
    put(api, "a.md", "one\n")
    put(api, "a.md", f"one\n{CANARY}\n")
    put(api, "a.md", "one\nthree\n")
    entry = add_entry(api, f"fact {CANARY}")
    facts = entry["path"]
    put(api, facts[1:], "nothing\n")
    store, tree = store_named(api), "/v1/trees/default"
    secret = [each for each in versions(api, store, view="full") if CANARY in (each["content"] or "")]
    newest = api.get(tree).json()["revision"]

    for each in secret:
        current = api.get(f"{store}/memories/{each['memory_id']}").json()["memory_version_id"]
        if current == each["id"]:
            update(api, store, each["memory_id"], content="clean\n")
        assert redact(owner, store, each["id"]).status_code == 200

    assert len(secret) >= 2
    reads = [f"files?revision={n}" for n in range(newest + 1)]
    reads += [f"files/a.md?revision={n}" for n in range(1, newest + 1)]
    reads += [f"blame?path=/a.md&revision={n}" for n in range(1, newest + 1)]
    reads += [f"revisions/{n}" for n in range(1, newest + 1)]
    reads += [
        f"revisions/{n}/diff?against={m}" for n in range(newest + 1) for m in (n + 1, newest) if m <= newest
    ]
    reads += [f"entries?revision={n}&status=all" for n in range(newest + 1)]
    reads += ["revisions", "entries", "blame?path=/a.md"]
    for read in reads:
        answer = api.get(f"{tree}/{read}")
        assert answer.status_code == 200, (read, answer.content)
        assert CANARY not in answer.content.decode(), read
    for n in range(newest + 1):
        archive = streamed(api.get(f"{tree}/export.zip?revision={n}"))
        with ZipFile(BytesIO(archive)) as files:
            assert not any(CANARY.encode() in files.read(name) for name in files.namelist())
            assert files.testzip() is None
        assert CANARY.encode() not in streamed(api.get(f"{tree}/export.jsonl?revision={n}"))
    bundle = api.get(f"{tree}/export.bundle")
    assert bundle.status_code == 200
    assert (streamed(bundle) if bundle.streaming else bundle.content).startswith(b"# v")
    undone = post(api, f"{tree}:undo", revision=2, dry_run=True).json()
    assert [each["path"] for each in undone["conflicts"]] == ["/a.md"]
    assert "redacted" in undone["conflicts"][0]["reason"]
    restored = post(api, f"{tree}/revisions/2:restore")
    assert restored.status_code == 200
    cloned = post(api, f"{tree}:clone", name="copy", revision=2)
    assert cloned.status_code == 201
    assert put(client=api, path="a.md", content="four\n").status_code == 200
    assert not is_stored(CANARY)


def test_lines_of_a_window_are_found_behind_what_was_redacted(api: APIClient, owner: APIClient) -> None:
    """An entry in each of many blocks, of which the first ones are gone from an old revision."""
    for n in range(6):
        add_entry(api, f"{CANARY} {n}")
    store = store_named(api)
    path = next(m["path"] for m in every(api, f"{store}/memories") if m["path"].endswith("facts.md"))
    *_, last = api.get(f"{FILES}{path}").json()["content"].split("\n---\nid:")
    # With the blank line above it, which is a part of its block.
    put(api, path[1:], "\n---\nid:" + last)
    number = api.get("/v1/trees/default").json()["revision"]
    memory = next(m["id"] for m in every(api, f"{store}/memories") if m["path"] == path)

    for each in versions(api, store, memory_id=memory)[1:]:
        assert redact(owner, store, each["id"]).status_code == 200

    window = api.get(f"{FILES}{path}?revision={number - 1}&limit=2").json()
    whole = api.get(
        f"{FILES}{path}?revision={number - 1}", headers={"Accept": "application/octet-stream"}
    ).content.decode()
    assert whole.endswith("\n---\nid:" + last)
    assert window["content"] == "".join(whole.splitlines(keepends=True)[:2])
    assert f"{CANARY} 0" not in whole
    assert File.objects.filter(path=path).count() == 1
