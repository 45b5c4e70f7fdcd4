"""Which run of an agent asked for a write: said in a header, kept with the revision, and a filter of the list."""

import io
import zipfile
from collections.abc import Callable
from copy import copy
from typing import Any

import pytest
from django.db import connection
from rest_framework.test import APIClient

from memsvc.contract.requests import RevisionFilter
from memsvc.tree.models import Revision
from memsvc.tree.trees import tree_of
from tenants.models import Tenant
from tenants.scopes import Scope
from tests.api.conftest import client_with
from tests.api.stores import store_named
from tests.api.support import BATCH, ENTRIES, FILES, add_entry, patch, post, problem, put, refusal
from tests.api.test_budgets import sent
from tests.people import make_key

TREE = "/v1/trees/default"
REVISIONS = f"{TREE}/revisions"
IMPORTS = f"{TREE}/imports"
UNDO = f"{TREE}:undo"
NIGHT = "night shift 7: München 🐘 100 %"
SENT = "night%20shift%207:%20M%C3%BCnchen%20%F0%9F%90%98%20100%20%25"

type Write = Callable[[APIClient, str, str], Any]


def in_run(api: APIClient, run: str) -> APIClient:
    """A client of the same key that sends this header with each request."""
    client = copy(api)
    client.defaults = {**api.defaults, "HTTP_MEMSVC_RUN_ID": run}
    return client


def runs(client: APIClient, **query: Any) -> list[tuple[int, str]]:
    return [(item["number"], item["run_id"]) for item in client.get(REVISIONS, query).json()["items"]]


def zipped(path: str) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr(path, "x")
    return archive.getvalue()


ENTRY = {"category": "facts", "body": "Berlin is the seat."}
STEPS = [{"op": "append", "path": "/a.md", "text": "x\n"}, {"op": "add_entry", **ENTRY}]
UPLOAD = [{"path": "/b.md", "content": "eA=="}]
# Each by a client, with the id of an entry and the URL of the store, on a tree whose first file says "one".
WRITES: dict[str, Write] = {
    "put": lambda api, entry, store: put(api, "b.md"),
    "edit": lambda api, entry, store: patch(api, "a.md", old_string="one", new_string="two"),
    "append": lambda api, entry, store: patch(api, "a.md", append="x"),
    "delete": lambda api, entry, store: api.delete(f"{FILES}/a.md"),
    "move": lambda api, entry, store: post(api, f"{FILES}:move", source="/a.md", destination="/b.md"),
    "upload": lambda api, entry, store: post(api, f"{FILES}:upload", files=UPLOAD),
    "add an entry": lambda api, entry, store: post(api, ENTRIES, **ENTRY),
    "supersede": lambda api, entry, store: post(api, f"{ENTRIES}/{entry}:supersede", body="Bonn is."),
    "retire": lambda api, entry, store: api.delete(f"{ENTRIES}/{entry}"),
    "batch": lambda api, entry, store: post(api, BATCH, operations=STEPS),
    "import": lambda api, entry, store: api.post(IMPORTS, zipped("b.md"), content_type="application/zip"),
    "restore": lambda api, entry, store: post(api, f"{REVISIONS}/1:restore"),
    "undo": lambda api, entry, store: post(api, UNDO, revision=2),
    "scaffold": lambda api, entry, store: post(api, f"{TREE}:scaffold"),
    "make a memory": lambda api, entry, store: post(api, f"{store}/memories", path="/b.md", content="x"),
}
every_write = pytest.mark.parametrize(
    "write", [pytest.param(write, id=name) for name, write in WRITES.items()]
)


def entry_id(api: APIClient) -> str:
    return str(api.get(ENTRIES).json()["items"][0]["id"])


@pytest.fixture
def used(api: APIClient) -> APIClient:
    put(api, "a.md", "one\n")
    add_entry(api)
    return api


@every_write
def test_every_write_keeps_its_run(used: APIClient, write: Write) -> None:
    answer = write(in_run(used, SENT), entry_id(used), store_named(used))

    assert 200 <= answer.status_code < 300, answer.content
    assert runs(used) == [(3, NIGHT), (2, ""), (1, "")]


@every_write
def test_a_name_that_is_none_is_refused_and_changes_nothing(used: APIClient, write: Write) -> None:
    answer = write(in_run(used, "x" * 201), entry_id(used), store_named(used))

    assert refusal(answer) == (400, "invalid_text")
    assert runs(used) == [(2, ""), (1, "")]


@pytest.mark.parametrize(
    "header", ["caf\xe9", "a b", "a\tb", "100%", "%4", "%00", "%0D%0A", "%C2%85", "%ff", "%ED%A0%80"]
)
def test_what_no_header_should_hold_is_refused(used: APIClient, header: str) -> None:
    answer = put(in_run(used, header), "b.md")

    assert problem(answer) == (400, "invalid_text")
    assert problem(in_run(used, header).get(REVISIONS)) == (400, "invalid_text")
    assert runs(used) == [(2, ""), (1, "")]


def test_a_bad_header_makes_no_tree_and_no_key(alice: Tenant) -> None:
    owner = client_with(make_key(alice, *Scope)[1])
    bad = in_run(owner, "100%")

    assert problem(post(bad, "/v1/trees", name="more")) == (400, "invalid_text")
    assert problem(post(bad, "/v1/keys", name="more", scopes=["read"])) == (400, "invalid_text")
    assert problem(post(bad, f"{TREE}:clone", name="more")) == (400, "invalid_text")
    assert [each["name"] for each in owner.get("/v1/trees").json()["items"]] == []
    assert len(owner.get("/v1/keys").json()["items"]) == 1


def test_an_unknown_key_learns_nothing_of_it(db: None) -> None:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION="Bearer msk_no", HTTP_MEMSVC_RUN_ID="100%")

    assert problem(client.get(REVISIONS)) == (401, "unauthenticated")


def test_it_is_shown_wherever_a_revision_is(used: APIClient) -> None:
    agent = in_run(used, SENT)
    patch(agent, "a.md", append="two\n")
    entry = entry_id(used)
    post(agent, f"{ENTRIES}/{entry}:supersede", body="Bonn is.")

    assert used.get(f"{REVISIONS}/3").json()["run_id"] == NIGHT
    blame = used.get(f"{TREE}/blame", {"path": "/a.md"}).json()
    assert {number: each["run_id"] for number, each in blame["revisions"].items()} == {"1": "", "3": NIGHT}
    history = used.get(f"{ENTRIES}/{entry}/history").json()["items"]
    assert [each["revision"]["run_id"] for each in history] == ["", NIGHT]


def test_the_list_is_filtered_by_it_page_after_page(used: APIClient) -> None:
    one, other = in_run(used, "run-1"), in_run(used, "run-2")
    for number in range(5):
        put(one, f"{number}.md")
        put(other, f"folder/{number}.md")

    found: list[int] = []
    cursor: dict[str, str] = {}
    while True:
        page = used.get(REVISIONS, {"run_id": "run-1", "limit": "2", **cursor}).json()
        found += [item["number"] for item in page["items"]]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}

    assert found == [11, 9, 7, 5, 3]
    assert runs(used, run_id="run-2", path="/folder/3.md") == [(10, "run-2")]
    assert runs(used, run_id="run-1", path="/folder") == []
    assert runs(used, run_id="") == [(2, ""), (1, "")]
    assert runs(used, run_id="run") == runs(used, run_id="x" * 300) == []
    assert problem(used.get(REVISIONS, {"run_id": ["a", "b"]})) == (400, "invalid_request")


def test_the_filter_goes_by_an_index(used: APIClient, alice: Tenant) -> None:
    tree = tree_of(alice)
    Revision.objects.bulk_create(
        Revision(
            tenant=alice,
            tree=tree,
            number=number,
            at="2026-01-01T00:00Z",
            actor_kind="key",
            run_id=f"run-{number}",
        )
        for number in range(100, 3100)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE tree_revision")

    plan = Revision.objects.of(tree).matching(RevisionFilter(run_id="run-200")).order_by("-number").explain()

    assert "revision_of_run" in plan, plan


def test_a_repeat_in_another_run_gets_the_first_answer(used: APIClient) -> None:
    once = {"Idempotency-Key": "step-1"}
    first = put(in_run(used, "run-1"), "b.md", **once)
    again = put(in_run(used, "run-2"), "b.md", **once)

    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.content == first.content
    assert problem(put(in_run(used, "100%"), "b.md", **once)) == (400, "invalid_text")
    assert runs(used)[0] == (3, "run-1")
    assert len(runs(used)) == 3


def test_a_clone_and_a_restore_are_of_the_run_that_asks_for_them(used: APIClient) -> None:
    put(in_run(used, "run-1"), "a.md", "two\n")
    post(in_run(used, "run-2"), f"{REVISIONS}/1:restore")
    assert post(in_run(used, "run-3"), f"{TREE}:clone", name="copy").status_code == 201

    assert runs(used)[:2] == [(4, "run-2"), (3, "run-1")]
    copied = used.get("/v1/trees/copy/revisions").json()["items"]
    assert [(item["number"], item["run_id"]) for item in copied] == [(1, "run-3")]


def test_a_run_costs_no_statement(used: APIClient) -> None:
    counts: list[int] = []
    for client in (used, in_run(used, "run-1")):
        with sent() as found:
            put(client, "a.md", f"{len(counts)}\n")
        counts.append(len(found))

    assert counts[0] == counts[1]


def test_a_row_of_an_earlier_release_shows_no_run(used: APIClient, alice: Tenant) -> None:
    """As the release before this one writes it, which doesn't know the column."""
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO tree_revision (id, tenant_id, tree_id, number, at, actor_kind, actor_id, actor_name, action,
            message) VALUES (gen_random_uuid(), %s, %s, 9, now(), 'key', 'k', 'agent', 'file.write', '')""",
            [alice.pk, tree_of(alice).pk],
        )

    assert runs(used)[0] == (9, "")
