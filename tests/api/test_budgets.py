"""What each endpoint costs in queries, each named: one more is either a mistake or a decision."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from tests.api.support import BATCH, ENTRIES, FILES, SEARCH, add_entry, patch, post, put

# Begin and end of the service's transaction inside the test's own: not sent when there is no outer one.
NOT_COUNTED = ("SAVEPOINT", "RELEASE SAVEPOINT")
KEY, TREE, SCOPE = "key and tenant", "tree", "tenant of the transaction"
READ = (KEY, TREE, SCOPE)


@contextmanager
def sent() -> Iterator[list[str]]:
    """The statements that are sent inside."""
    found: list[str] = []
    with CaptureQueriesContext(connection) as captured:
        yield found
    found += [query["sql"] for query in captured.captured_queries if not query["sql"].startswith(NOT_COUNTED)]


@pytest.fixture
def entry(api: APIClient) -> dict[str, Any]:
    """One of the 20 entries of a tree in use."""
    post(api, "/v1/trees/default:scaffold")
    put(api, "d/notes.md", "one\ntwo\n")
    return [add_entry(api, f"fact {number}") for number in range(20)][10]


def reads(api: APIClient, entry: dict[str, Any]) -> dict[str, tuple[Callable[[], Any], tuple[str, ...]]]:
    notes = f"{FILES}/d/notes.md"
    octets = {"Accept": "application/octet-stream"}
    return {
        "me": (lambda: api.get("/v1/me"), (KEY,)),
        "trees": (lambda: api.get("/v1/trees"), (KEY, SCOPE, "trees")),
        "tree": (
            lambda: api.get("/v1/trees/default"),
            (*READ, "files that may be hidden", "files", "entries"),
        ),
        "files": (lambda: api.get(FILES), (*READ, "files")),
        "folder": (
            lambda: api.get(FILES, {"depth": 1}),
            (*READ, "files", "folders", "files below that may expire"),
        ),
        "window": (lambda: api.get(notes), (*READ, "file", "lines of each block", "blocks of the window")),
        "bytes": (lambda: api.get(notes, headers=octets), (*READ, "file", "blocks")),
        "glob": (lambda: post(api, f"{FILES}:glob", pattern="**"), (*READ, "files")),
        "entries": (lambda: api.get(ENTRIES), (*READ, "entries with their files")),
        "entry": (lambda: api.get(f"{ENTRIES}/{entry['id']}"), (*READ, "entry with its file")),
        "search": (
            lambda: post(api, SEARCH, query="fact"),
            (*READ, "tree of the moment", "ranking", "entries of the page with their files", "lines"),
        ),
        "browse": (lambda: post(api, SEARCH), (*READ, "entries with their files")),
        "episodes": (lambda: api.get("/v1/trees/default/episodes"), (*READ, "entries with their files")),
        "index": (lambda: api.get("/v1/trees/default/index"), (*READ, "file", "blocks")),
    }


def test_every_read_costs_what_is_named(api: APIClient, entry: dict[str, Any]) -> None:
    for name, (read, statements) in reads(api, entry).items():
        with sent() as found:
            assert read().status_code == 200, name
        told = "\n".join(f"{number}. {sql[:300]}" for number, sql in enumerate(found, start=1))
        assert len(found) == len(statements), f"{name}: {len(statements)} are named, sent were:\n{told}"


def writes(api: APIClient, entry: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    return {
        "put": lambda: put(api, "d/notes.md", "three"),
        "edit": lambda: patch(api, "d/notes.md", old_string="three", new_string="four"),
        "append": lambda: patch(api, "d/notes.md", append="five"),
        "add an entry": lambda: post(api, ENTRIES, category="facts", body="x"),
        "batch": lambda: post(api, BATCH, operations=[{"op": "delete", "path": "/d/notes.md"}]),
        "retire": lambda: api.delete(f"{ENTRIES}/{entry['id']}"),
    }


def test_a_write_costs_two_statements_more_than_its_service(api: APIClient, entry: dict[str, Any]) -> None:
    """Key and tree; what the services send is counted where they are tested, and begins with the tree's lock."""
    for name, write in writes(api, entry).items():
        with sent() as found:
            assert write().status_code in (200, 201), name
        assert ["memsvc_key" in found[0], "tree_tree" in found[1], "FOR NO KEY UPDATE" in found[2]] == [
            True
        ] * 3
        of_door = [
            sql for sql in found if "memsvc_key" in sql or ("tree_tree" in sql and " AND name = " in sql)
        ]
        assert len(of_door) == 2, name


def test_a_write_with_a_key_of_its_own_is_one_transaction(api: APIClient, entry: dict[str, Any]) -> None:
    """All of it fails together, so that its service needs no savepoint. The one that is sent lies in the test's own."""
    body = {"body": "x", "summary": "y"}
    with CaptureQueriesContext(connection) as captured:
        answer = api.post(
            f"{ENTRIES}/{entry['id']}:supersede", body, format="json", headers={"Idempotency-Key": "k"}
        )
    assert answer.status_code == 201
    # 1 key and tenant  2 begin  3 claim  4 tree  5 tenant and lock  6 the old entry  7 id, file and its end
    # 8 block  9 supersession and file  10 index and row  11 old row, new row and index file  12 revision
    # and event  13 answer  14 end
    # One claim in 16 lets the tenant's old answers go as well.
    sent = [
        sql for query in captured.captured_queries if not (sql := query["sql"].strip()).startswith("DELETE")
    ]
    told = "\n".join(sql[:100] for sql in sent)
    assert len(sent) <= 14, told
    assert told.count("SAVEPOINT") == 2, told
