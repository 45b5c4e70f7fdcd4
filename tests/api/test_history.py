"""History over REST: reads of another moment, revisions, differences, blame, restoring and undoing."""

from datetime import UTC, datetime
from typing import Any

import pytest
from rest_framework.test import APIClient

from memsvc.tree.models import Revision
from memsvc.tree.retention import prune_to
from memsvc.tree.trees import tree_of
from tenants.models import Tenant
from tenants.services import keep_history
from tests.api.conftest import client_with
from tests.api.support import (
    BATCH,
    ENTRIES,
    FILES,
    SEARCH,
    add_entry,
    patch,
    post,
    problem,
    put,
    raw,
    streamed,
)
from tests.people import make_key

TREE = "/v1/trees/default"
REVISIONS = f"{TREE}/revisions"
UNDO = f"{TREE}:undo"
BLAME = f"{TREE}/blame"


def numbers(client: APIClient, **query: Any) -> list[int]:
    return [item["number"] for item in client.get(REVISIONS, query).json()["items"]]


def diff(client: APIClient, number: int, **query: Any) -> list[dict[str, Any]]:
    answer = client.get(f"{REVISIONS}/{number}/diff", query)
    assert answer.status_code == 200, answer.content
    return list(answer.json()["items"])


@pytest.fixture
def days(api: APIClient) -> list[str]:
    """A file that was "one" on the first of a month and "two" on the second; the instants of noon on both days."""
    put(api, "a/a.md", "one\n")
    put(api, "a/a.md", "two\n")
    for number in (1, 2):
        Revision.objects.filter(number=number).update(at=datetime(2026, 1, number, tzinfo=UTC))
    return ["2026-01-01T12:00:00Z", "2026-01-02T12:00:00Z"]


# --- as of --------------------------------------------------------------------------------------------------------


def test_a_read_is_as_of_a_revision_or_an_instant(api: APIClient, days: list[str]) -> None:
    octets = {"Accept": "application/octet-stream"}
    cases: list[tuple[dict[str, Any], bytes]] = [
        ({"revision": 1}, b"one\n"),
        ({"at": days[0]}, b"one\n"),
        ({"at": days[1]}, b"two\n"),
    ]
    for query, expected in cases:
        assert api.get(f"{FILES}/a/a.md", query, headers=octets).content == expected
        assert api.get(f"{FILES}/a/a.md", query).json()["content"] == expected.decode()


def test_before_the_first_revision_there_is_nothing(api: APIClient, days: list[str]) -> None:
    assert api.get(FILES, {"at": "2025-01-01T00:00:00Z"}).json()["items"] == []
    assert problem(api.get(f"{FILES}/a/a.md", {"at": "2025-01-01T00:00:00Z"})) == (404, "file_not_found")


def test_every_read_of_a_tree_takes_an_instant(api: APIClient, days: list[str]) -> None:
    entry = add_entry(api, "Berlin")
    then: dict[str, Any] = {"at": days[1]}

    assert [item["path"] for item in api.get(FILES, then).json()["items"]] == ["/a/a.md"]
    assert [item["path"] for item in api.get(FILES, {**then, "depth": 1}).json()["items"]] == ["/a"]
    assert api.get(ENTRIES, then).json()["items"] == []
    assert problem(api.get(f"{ENTRIES}/{entry['id']}", then)) == (404, "entry_not_found")
    assert post(api, SEARCH, query="Berlin", **then).json()["items"] == []
    assert post(api, SEARCH, query="Berlin", revision=2).json()["items"] == []
    assert api.get(f"{TREE}/index", {**then, "kind": "semantic"}).json()["exists"] is False
    assert post(api, f"{FILES}:grep", pattern="Berlin", **then).json()["items"] == []
    assert [item["path"] for item in post(api, f"{FILES}:glob", pattern="**", **then).json()["items"]] == [
        "/a/a.md"
    ]
    assert b"facts.md" not in streamed(api.get(f"{TREE}/export.zip", then))


def test_both_a_revision_and_an_instant_are_refused(api: APIClient, days: list[str]) -> None:
    both: dict[str, Any] = {"revision": 1, "at": days[0]}

    for answer in (
        api.get(FILES, both),
        api.get(f"{FILES}/a/a.md", both),
        api.get(ENTRIES, both),
        api.get(BLAME, {**both, "path": "/a/a.md"}),
        post(api, SEARCH, **both),
        post(api, f"{FILES}:glob", pattern="**", **both),
    ):
        assert problem(answer) == (400, "invalid_request")


@pytest.mark.parametrize("at", ["yesterday", "2026-13-01T00:00:00Z", "9999-12-31T23:59:59-14:00", ""])
def test_an_instant_that_is_none_is_refused(api: APIClient, days: list[str], at: str) -> None:
    assert api.get(FILES, {"at": at}).status_code == 400


# --- revisions ----------------------------------------------------------------------------------------------------


def test_revisions_are_listed_newest_first(api: APIClient, alice: Tenant) -> None:
    put(api, "a.md", "one")
    api.put(f"{FILES}/b.md", {"content": "two", "message": "because"}, format="json")

    newest, oldest = api.get(REVISIONS).json()["items"]

    assert (newest["number"], newest["action"], newest["message"]) == (2, "file.write", "because")
    assert (newest["actor"]["kind"], newest["actor"]["name"]) == ("key", "agent")
    assert oldest["number"] == 1


def test_revisions_are_filtered_by_actor_path_and_time(
    api: APIClient, alice: Tenant, days: list[str]
) -> None:
    key, text = make_key(alice, name="other")
    put(client_with(text), "b.md", "three")

    assert numbers(api, actor=str(key.pk)) == [3]
    assert numbers(api, path="/a") == [2, 1]
    assert numbers(api, path="/b.md") == [3]
    assert numbers(api, path="/none") == []
    assert numbers(api, since=days[0]) == [3, 2]
    assert numbers(api, until=days[0]) == [1]


def test_every_revision_is_on_one_page(api: APIClient) -> None:
    for number in range(7):
        put(api, "a.md", str(number))
    found: list[int] = []
    cursor = None
    while True:
        asked: dict[str, Any] = {"cursor": cursor} if cursor else {}
        page = api.get(REVISIONS, {"limit": 3, **asked}).json()
        found += [item["number"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert found == [7, 6, 5, 4, 3, 2, 1]


def test_a_revision_says_what_it_changed(api: APIClient) -> None:
    old = add_entry(api, "Berlin")
    new = post(api, f"{ENTRIES}/{old['id']}:supersede", body="Bonn").json()

    detail = api.get(f"{REVISIONS}/2").json()

    facts = "/memory/semantic_memory/facts.md"
    assert {"path": facts, "action": "changed", "source": None} in detail["files"]
    assert sorted((entry["id"], entry["action"]) for entry in detail["entries"]) == sorted(
        [(old["id"], "superseded"), (new["id"], "added")]
    )


@pytest.mark.parametrize("number", ["9", "0", "999999999999999999", "9999999999999999999999"])
def test_a_revision_that_is_not_there_is_not_found(api: APIClient, number: str) -> None:
    put(api, "a.md")

    assert api.get(f"{REVISIONS}/{number}").status_code == 404
    assert api.get(f"{REVISIONS}/{number}/diff", {"against": "8"}).status_code == 404
    assert post(api, f"{REVISIONS}/{number}:restore", path="/none").status_code == 404


# --- differences --------------------------------------------------------------------------------------------------


def test_a_diff_has_hunks_and_text(api: APIClient) -> None:
    put(api, "a.md", "one\ntwo\nthree\n")
    put(api, "a.md", "one\n2\nthree\n")

    (found,) = diff(api, 1)

    assert (found["path"], found["action"], found["source"]) == ("/a.md", "changed", None)
    assert found["hunks"] == [
        {
            "old_start": 1,
            "old_lines": 3,
            "new_start": 1,
            "new_lines": 3,
            "lines": [" one\n", "-two\n", "+2\n", " three\n"],
        }
    ]
    assert found["unified"].endswith("--- a/a.md\n+++ b/a.md\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n")
    assert found["old_sha256"] != found["new_sha256"]


def test_a_diff_is_between_any_two_revisions_and_of_any_folder(api: APIClient) -> None:
    put(api, "a/a.md", "one\n")
    put(api, "b/b.md", "two\n")
    put(api, "a/a.md", "three\n")

    assert [item["path"] for item in diff(api, 0, against=2)] == ["/a/a.md", "/b/b.md"]
    assert [item["path"] for item in diff(api, 1)] == ["/a/a.md", "/b/b.md"]
    assert [item["path"] for item in diff(api, 0, path="/b")] == ["/b/b.md"]
    assert [(item["path"], item["action"]) for item in diff(api, 3, against=0, path="/b/b.md")] == [
        ("/b/b.md", "deleted")
    ]
    assert diff(api, 2, against=2) == []
    assert problem(api.get(f"{REVISIONS}/1/diff", {"path": "/none"})) == (404, "file_not_found")


def test_all_differences_come_as_one_text_when_asked(api: APIClient) -> None:
    put(api, "a.md", "one\n")
    put(api, "b.bin", b"\xff\x00")

    answer = api.get(f"{REVISIONS}/0/diff", headers={"Accept": "text/x-diff"})

    assert answer.headers["Content-Type"] == "text/x-diff; charset=utf-8"
    assert "+++ b/a.md\n@@ -0,0 +1,1 @@\n+one\n" in answer.content.decode()
    assert "Binary files /dev/null and b/b.bin differ\n" in answer.content.decode()


# --- blame and an entry's history ---------------------------------------------------------------------------------


def test_blame_says_who_wrote_each_line(api: APIClient, alice: Tenant) -> None:
    put(api, "a.md", "one\ntwo\n")
    patch(client_with(make_key(alice, name="other")[1]), "a.md", old_string="two", new_string="2")

    found = api.get(BLAME, {"path": "/a.md"}).json()

    assert [(line["line"], line["text"], line["revision"]) for line in found["lines"]] == [
        (1, "one", 1),
        (2, "2", 2),
    ]
    assert found["revisions"]["2"]["actor"]["name"] == "other"
    asked: dict[str, Any] = {"path": "/a.md", "revision": 1}
    then = api.get(BLAME, asked).json()
    assert [line["revision"] for line in then["lines"]] == [1, 1]
    assert problem(api.get(BLAME, {"path": "/none.md"})) == (404, "file_not_found")
    assert problem(api.get(BLAME)) == (400, "invalid_request")


def test_an_entry_has_a_history(api: APIClient) -> None:
    old = add_entry(api, "Berlin")
    new = post(api, f"{ENTRIES}/{old['id']}:supersede", body="Bonn").json()
    api.delete(f"{ENTRIES}/{new['id']}")

    items = api.get(f"{ENTRIES}/{new['id']}/history").json()["items"]

    assert [(item["revision"]["number"], item["action"], item["entry"]["id"]) for item in items] == [
        (1, "added", old["id"]),
        (2, "added", new["id"]),
        (2, "superseded", old["id"]),
        (3, "removed", new["id"]),
    ]
    assert items[2]["entry"]["superseded_by"] == new["id"]
    assert problem(api.get(f"{ENTRIES}/mem_none/history")) == (404, "entry_not_found")


# --- restoring and undoing ----------------------------------------------------------------------------------------


def test_a_file_an_entry_or_the_tree_is_restored(api: APIClient) -> None:
    put(api, "a.md", "one")
    put(api, "a.md", "two")
    entry = add_entry(api, "Berlin")
    api.delete(f"{ENTRIES}/{entry['id']}")

    file = post(api, f"{REVISIONS}/1:restore", path="/a.md", message="back").json()
    brought_back = post(api, f"{REVISIONS}/3:restore", entry=entry["id"]).json()
    same = post(api, f"{REVISIONS}/3:restore", entry=entry["id"]).json()

    assert (file, raw(api, "a.md")) == ({"revision": 5, "paths": ["/a.md"], "warnings": []}, b"one")
    assert brought_back == {"revision": 6, "paths": ["/memory/semantic_memory/facts.md"], "warnings": []}
    assert api.get(f"{ENTRIES}/{entry['id']}").json()["body"] == "Berlin"
    assert same == {"revision": 6, "paths": [], "warnings": []}
    everything = post(api, f"{REVISIONS}/2:restore").json()
    assert everything["revision"] == 7
    assert [item["path"] for item in api.get(FILES).json()["items"]] == ["/a.md"]
    assert raw(api, "a.md") == b"two"


def test_what_cannot_be_restored_is_refused(api: APIClient) -> None:
    put(api, "a.md", "one")

    assert problem(post(api, f"{REVISIONS}/1:restore", path="/none")) == (404, "file_not_found")
    assert problem(post(api, f"{REVISIONS}/1:restore", entry="mem_none")) == (404, "entry_not_found")
    assert problem(post(api, f"{REVISIONS}/7:restore")) == (404, "revision_not_found")
    assert problem(post(api, f"{REVISIONS}/1:restore", path="/a.md", entry="mem_none")) == (
        400,
        "invalid_request",
    )


def test_a_revision_is_undone_and_what_others_did_stays(api: APIClient) -> None:
    put(api, "a.md", "one\ntwo\nthree\n")
    patch(api, "a.md", old_string="two", new_string="2")
    patch(api, "a.md", old_string="three", new_string="3")

    undone = post(api, UNDO, revision=2).json()

    assert undone == {"revision": 4, "undone": [2], "paths": ["/a.md"], "conflicts": [], "warnings": []}
    assert raw(api, "a.md") == b"one\ntwo\n3\n"


def test_all_that_an_actor_did_is_undone(api: APIClient, alice: Tenant) -> None:
    key, text = make_key(alice, name="vandal")
    vandal = client_with(text)
    put(api, "a.md", "one\ntwo\n")
    patch(vandal, "a.md", old_string="one", new_string="1")
    patch(api, "a.md", append="three\n")
    vandal.delete(f"{FILES}/a.md")
    put(vandal, "b.md", "spam")

    undone = post(api, UNDO, actor=str(key.pk)).json()

    assert undone["undone"] == [5, 4, 2]
    assert raw(api, "a.md") == b"one\ntwo\nthree\n"
    assert [item["path"] for item in api.get(FILES).json()["items"]] == ["/a.md"]
    assert post(api, UNDO, actor=str(key.pk), since=6).json()["undone"] == []


def test_a_conflict_is_told_and_may_be_skipped(api: APIClient) -> None:
    post(api, BATCH, operations=[{"op": "write", "path": f"/{name}.md", "content": "1"} for name in "ab"])
    put(api, "a.md", "2")

    refused = post(api, UNDO, revision=1)
    dry = post(api, UNDO, revision=1, dry_run=True).json()
    skipped = post(api, UNDO, revision=1, skip_conflicts=True).json()

    conflict = {"revision": 1, "path": "/a.md", "reason": "the file has changed since it was created"}
    assert problem(refused) == (409, "undo_conflict")
    assert refused.json()["conflicts"] == [conflict]
    assert dry == {"revision": 2, "undone": [1], "paths": ["/b.md"], "conflicts": [conflict], "warnings": []}
    assert skipped == {
        "revision": 3,
        "undone": [1],
        "paths": ["/b.md"],
        "conflicts": [conflict],
        "warnings": [],
    }
    assert [item["path"] for item in api.get(FILES).json()["items"]] == ["/a.md"]


@pytest.mark.parametrize(
    "body", [{}, {"revision": 1, "actor": "x"}, {"revision": 1, "since": 1}, {"revision": 0}, {"actor": 3}]
)
def test_an_undo_names_a_revision_or_an_actor(api: APIClient, body: dict[str, Any]) -> None:
    assert problem(post(api, UNDO, **body)) == (400, "invalid_request")


# --- preconditions ------------------------------------------------------------------------------------------------


def test_a_stale_write_is_told_what_is_there_now(api: APIClient) -> None:
    stale = put(api, "a.md", "one").headers["ETag"]
    now = put(api, "a.md", "two").headers["ETag"]

    refused = put(api, "a.md", "three", **{"If-Match": stale})

    assert problem(refused) == (412, "precondition_failed")
    assert (refused.json()["revision"], refused.json()["etag"]) == (2, now.strip('"'))


def test_a_stale_write_whose_result_holds_is_done(api: APIClient) -> None:
    stale = put(api, "a.md", "one").headers["ETag"]
    put(api, "a.md", "two", **{"If-Match": stale})

    repeated = put(api, "a.md", "two", **{"If-Match": stale})

    assert (repeated.status_code, repeated.json()["changed"], repeated.json()["revision"]) == (200, False, 2)
    assert problem(patch(api, "a.md", headers={"If-Match": stale}, append="x")) == (
        412,
        "precondition_failed",
    )
    api.delete(f"{FILES}/a.md")
    assert problem(put(api, "a.md", "two", **{"If-Match": stale})) == (412, "precondition_failed")
    assert problem(api.delete(f"{FILES}/a.md", headers={"If-Match": stale}))[0] in (404, 412)


# --- walls --------------------------------------------------------------------------------------------------------


@pytest.fixture
def inside(api: APIClient, alice: Tenant) -> APIClient:
    """A key for the folder /in, in a tree with more than that: file by file, what the other folder did is canary."""
    put(api, "in/a.md", "one\n")
    put(api, "out/b.md", "canary\n")
    api.put(f"{FILES}/out/b.md", {"content": "canary\n2\n", "message": "canary"}, format="json")
    post(api, f"{FILES}:move", source="/out/b.md", destination="/in/b.md", message="moved")
    put(api, "in/a.md", "two\n")
    put(api, "out/c.md", "canary\n")
    return client_with(make_key(alice, path_prefix="/in")[1])


def test_a_key_for_a_folder_is_told_of_the_folder_only(inside: APIClient) -> None:
    assert numbers(inside) == [5, 4, 1]
    assert numbers(inside, path="/out") == []
    assert numbers(inside, path="/in/a.md") == [5, 1]
    for number in (2, 3, 6):
        assert problem(inside.get(f"{REVISIONS}/{number}")) == (404, "revision_not_found")
    assert inside.get(f"{REVISIONS}/4").json()["files"] == [
        {"path": "/in/b.md", "action": "created", "source": None}
    ]
    assert [item["path"] for item in diff(inside, 0)] == ["/in/a.md", "/in/b.md"]
    assert diff(inside, 2, against=3) == []
    assert problem(inside.get(f"{REVISIONS}/0/diff", {"path": "/out/c.md"})) == (404, "file_not_found")
    blamed = inside.get(BLAME, {"path": "/in/b.md"}).json()
    assert [line["revision"] for line in blamed["lines"]] == [4, 4]
    assert list(blamed["revisions"]) == ["4"]
    assert problem(inside.get(BLAME, {"path": "/out/c.md"})) == (404, "file_not_found")


def test_a_key_for_a_folder_changes_the_folder_only(inside: APIClient, api: APIClient) -> None:
    assert problem(post(inside, f"{REVISIONS}/1:restore", path="/out/b.md")) == (403, "forbidden")
    assert problem(post(inside, f"{REVISIONS}/1:restore", path="/")) == (403, "forbidden")
    assert post(inside, UNDO, revision=6).json() == {
        "revision": 6,
        "undone": [],
        "paths": [],
        "conflicts": [],
        "warnings": [],
    }

    restored = post(inside, f"{REVISIONS}/1:restore").json()

    assert restored["paths"] == ["/in/a.md", "/in/b.md"]
    assert [item["path"] for item in api.get(FILES).json()["items"]] == ["/in/a.md", "/out/c.md"]


def test_a_reader_reads_history_and_changes_nothing(api: APIClient, reader: APIClient) -> None:
    put(api, "a.md", "one")

    assert numbers(reader) == [1]
    assert problem(post(reader, f"{REVISIONS}/0:restore")) == (403, "missing_scope")
    assert problem(post(reader, UNDO, revision=1, dry_run=True)) == (403, "missing_scope")


def test_a_stranger_sees_a_history_of_their_own(api: APIClient, stranger: APIClient) -> None:
    put(api, "a.md", "canary")
    entry = add_entry(api, "canary")

    assert numbers(stranger) == []
    assert problem(stranger.get(f"{REVISIONS}/1")) == (404, "revision_not_found")
    assert problem(stranger.get(f"{ENTRIES}/{entry['id']}/history")) == (404, "entry_not_found")
    assert problem(post(stranger, UNDO, revision=1)) == (404, "revision_not_found")


# --- what is no longer kept -----------------------------------------------------------------------------------------


def test_a_revision_that_is_no_longer_kept_is_gone_and_the_oldest_is_named(
    api: APIClient, stranger: APIClient, alice: Tenant
) -> None:
    put(api, "a.md", "one\n")
    put(api, "a.md", "two\n")
    put(api, "a.md", "three\n")
    prune_to(tree_of(alice), 2)
    refusals = [
        api.get(f"{FILES}/a.md", {"revision": 1}),
        api.get(f"{FILES}/a.md", {"at": "2020-01-01T00:00:00Z"}),
        api.get(FILES, {"revision": 1}),
        api.get(ENTRIES, {"revision": 1}),
        post(api, SEARCH, query="one", revision=1),
        api.get(f"{REVISIONS}/1"),
        api.get(f"{REVISIONS}/2"),
        api.get(f"{REVISIONS}/1/diff"),
        api.get(f"{REVISIONS}/3/diff", {"against": 1}),
        api.get(f"{BLAME}?path=/a.md&revision=1"),
        post(api, f"{REVISIONS}/1:restore"),
        post(api, UNDO, revision=2),
        post(api, f"{TREE}:clone", name="copy", revision=1),
        *(api.get(f"{TREE}/export.{kind}", {"revision": 1}) for kind in ("zip", "jsonl", "bundle")),
    ]

    for answer in refusals:
        assert problem(answer) == (410, "revision_pruned")
        assert answer.json()["oldest"] == 2
    assert raw(api, "a.md") == b"three\n"
    assert diff(api, 2)[0]["hunks"][0]["lines"] == ["-two\n", "+three\n"]
    assert numbers(api) == [3, 2, 1]
    assert api.get(TREE).json()["history_from"] == 2
    assert problem(stranger.get(f"{FILES}/a.md", {"revision": 1})) == (404, "revision_not_found")


def test_the_limits_say_how_long_history_is_kept(api: APIClient, alice: Tenant) -> None:
    keep_history(tenant=alice, days=30)

    assert api.get("/v1/me").json()["limits"]["history_days"] == 30
