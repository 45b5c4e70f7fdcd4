from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.api.support import BATCH, ENTRIES, add_entry, paths, post, problem, put, raw


def test_many_changes_are_one_revision(api: APIClient) -> None:
    put(api, "old.md", "one two")
    put(api, "gone.md")
    retired = add_entry(api, "to be retired")["id"]
    operations: list[dict[str, Any]] = [
        {"op": "write", "path": "/new.md", "content": "text"},
        {"op": "write", "path": "/bytes.bin", "content": "/w==", "encoding": "base64", "create_only": True},
        {"op": "edit", "path": "/old.md", "old_string": "two", "new_string": "three"},
        {"op": "append", "path": "/old.md", "text": "\n"},
        {"op": "delete", "path": "/gone.md"},
        {"op": "move", "source": "/new.md", "destination": "/moved.md"},
        {"op": "add_entry", "category": "rules", "body": "Be kind."},
        {"op": "retire_entry", "id": retired},
    ]

    answer = post(api, BATCH, operations=operations, message="all at once")
    results = answer.json()["results"]

    assert answer.status_code == 200
    assert (answer.json()["revision"], len(results)) == (4, 8)
    assert (results[0]["path"], results[2]["occurrences"], results[4]["files"]) == ("/new.md", 1, 1)
    assert (results[5]["destination"], results[6]["category"], results[7]["id"]) == (
        "/moved.md",
        "rules",
        retired,
    )
    assert (raw(api, "old.md"), raw(api, "moved.md"), raw(api, "bytes.bin")) == (
        b"one three\n",
        b"text",
        b"\xff",
    )


@pytest.mark.parametrize(
    ("operation", "status", "code"),
    [
        ({"op": "edit", "path": "/a.md", "old_string": "no", "new_string": "x"}, 409, "string_not_found"),
        ({"op": "delete", "path": "/no.md"}, 404, "file_not_found"),
        ({"op": "write", "path": "/a.md", "content": "x", "if_match": '"old"'}, 412, "precondition_failed"),
        ({"op": "write", "path": "/a.md", "content": "x", "create_only": True}, 412, "precondition_failed"),
        ({"op": "write", "path": "/../a.md", "content": "x"}, 400, "invalid_path"),
        ({"op": "add_entry", "category": "facts", "body": "a\x00"}, 400, "invalid_text"),
        (
            {"op": "add_entry", "category": "facts", "body": "x", "supersedes": "mem_no"},
            404,
            "entry_not_found",
        ),
    ],
)
def test_one_refusal_undoes_all(api: APIClient, operation: dict[str, Any], status: int, code: str) -> None:
    put(api, "a.md", "kept")

    answer = post(api, BATCH, operations=[{"op": "write", "path": "/b.md", "content": "x"}, operation])

    assert problem(answer) == (status, code)
    assert answer.json()["operation"] == 1
    assert (paths(api), raw(api, "a.md")) == (["/a.md"], b"kept")


@pytest.mark.parametrize(
    ("operation", "field"),
    [
        ({}, "op"),
        ({"op": "explode"}, "op"),
        ({"op": ["write"]}, "op"),
        ({"op": "write", "path": "/b.md"}, "content"),
        ({"op": "write", "path": "/b.md", "content": "x", "message": "mine"}, "message"),
        ({"op": "delete", "path": "/b.md", "recursive": "perhaps"}, "recursive"),
    ],
)
def test_an_operation_that_is_none_is_named(api: APIClient, operation: dict[str, Any], field: str) -> None:
    answer = post(api, BATCH, operations=[{"op": "write", "path": "/b.md", "content": "x"}, operation])

    assert problem(answer) == (400, "invalid_request")
    assert answer.json()["errors"][0]["field"] == f"operations[1].{field}"
    assert paths(api) == []


@pytest.mark.parametrize("operations", [None, [], {}, "write", [7], ["write"]])
def test_a_batch_is_a_list_of_objects(api: APIClient, operations: Any) -> None:
    assert problem(post(api, BATCH, operations=operations)) == (400, "invalid_request")


def test_a_batch_has_a_limit(api: APIClient) -> None:
    operations = [{"op": "write", "path": "/a.md", "content": "x"}] * 501

    assert problem(post(api, BATCH, operations=operations)) == (413, "too_large")
    assert post(api, BATCH, operations=operations[:500]).status_code == 200


def test_a_stranger_and_a_reader_change_nothing(
    api: APIClient, stranger: APIClient, reader: APIClient
) -> None:
    made = add_entry(api, "kept")
    operations = [{"op": "retire_entry", "id": made["id"]}]

    assert problem(post(stranger, BATCH, operations=operations)) == (404, "entry_not_found")
    assert problem(post(reader, BATCH, operations=operations)) == (403, "missing_scope")
    assert api.get(f"{ENTRIES}/{made['id']}").status_code == 200
