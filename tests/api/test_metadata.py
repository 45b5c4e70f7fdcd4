"""Metadata of entries over HTTP: given, answered, and filtered by, with nothing taken for what it isn't."""

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from tenants.models import Tenant
from tests.api.conftest import client_with
from tests.api.support import BATCH, ENTRIES, SEARCH, add_entry, post, problem, put, raw, send
from tests.people import make_key
from tests.tree.support import FACTS, entry_text

METADATA = {
    "project": "apollo",
    "priority": 3,
    "share": 0.5,
    "done": False,
    "links": ["a", 1, True],
    "naïve: x": "",
}


def searched(client: APIClient, **body: Any) -> list[str]:
    answer = post(client, SEARCH, **body)
    assert answer.status_code == 200, answer.content
    return sorted(item["body"] for item in answer.json()["items"])


def listed(client: APIClient, metadata: Any, **query: Any) -> list[str]:
    answer = client.get(ENTRIES, {"metadata": json.dumps(metadata), **query})
    assert answer.status_code == 200, answer.content
    return sorted(item["body"] for item in answer.json()["items"])


def test_what_is_given_is_answered_everywhere(api: APIClient) -> None:
    made = add_entry(api, "water", metadata=METADATA)
    plain = add_entry(api, "plain")

    found = api.get(f"{ENTRIES}/{made['id']}").json()
    hits = post(api, SEARCH, query="water").json()["items"]
    history = api.get(f"{ENTRIES}/{made['id']}/history").json()["items"]

    assert [each["metadata"] for each in (made, found, hits[0], history[0]["entry"])] == [METADATA] * 4
    assert json.dumps(found["metadata"], sort_keys=True) == json.dumps(METADATA, sort_keys=True)
    assert plain["metadata"] == {}


def test_metadata_of_a_file_is_answered_as_it_stands(api: APIClient) -> None:
    put(
        api,
        FACTS[1:],
        entry_text("mem_x", more="owner: ina\nnested: {a: [1, {b: null}]}\nstatus: approved\n"),
    )

    assert api.get(f"{ENTRIES}/mem_x").json()["metadata"] == {
        "owner": "ina",
        "nested": {"a": [1, {"b": None}]},
    }


def test_a_successor_keeps_metadata_unless_it_has_its_own(api: APIClient) -> None:
    old = add_entry(api, metadata=METADATA)["id"]

    kept = post(api, f"{ENTRIES}/{old}:supersede", body="kept").json()
    own = post(api, f"{ENTRIES}/{kept['id']}:supersede", body="own", metadata={}).json()

    assert (kept["metadata"], own["metadata"]) == (METADATA, {})


def test_an_operation_of_a_batch_takes_metadata(api: APIClient) -> None:
    steps = [{"op": "add_entry", "category": "facts", "body": "x", "metadata": METADATA}]

    assert post(api, BATCH, operations=steps).json()["results"][0]["metadata"] == METADATA

    steps.append({"op": "add_entry", "category": "facts", "body": "y", "metadata": {"trust": "high"}})
    refused = post(api, BATCH, operations=steps)
    assert problem(refused) == (400, "invalid_metadata")
    assert refused.json()["operation"] == 1


DEEP: Any = 1
for _ in range(20):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        *[(name, "invalid_request") for name in ("text", ["a"], 7, True)],
        *[
            ({name: "x"}, "invalid_metadata")
            for name in ("id", "created", "status", "trust", "author", "origin")
        ],
        *[({"k": value}, "invalid_metadata") for value in (None, {}, {"a": 1}, [None], DEEP, 10**300, -1e17)],
        *[({"": 1}, "invalid_metadata"), ({str(n): 1 for n in range(51)}, "invalid_metadata")],
        *[({"k": ["x"] * 101}, "invalid_metadata"), ({"k": "x" * 5000}, "invalid_text")],
        *[({"k" * 200: 1}, "invalid_text"), ({"k\0": 1}, "invalid_text"), ({"k": "a\0b"}, "invalid_text")],
        *[
            ({"\ud800": 1}, "invalid_text"),
            ({"k": "\udc00"}, "invalid_text"),
            ({"k": ["\udc00"]}, "invalid_text"),
        ],
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_bad_metadata_is_refused_and_changes_nothing(api: APIClient, metadata: Any, code: str) -> None:
    body = json.dumps({"category": "facts", "body": "x", "metadata": metadata}).encode()

    answer = send(api, "POST", ENTRIES, body, content_type="application/json")

    assert problem(answer) == (400, code)
    assert api.get(ENTRIES).json()["items"] == []


@pytest.mark.parametrize(
    ("value", "code"),
    [
        *[("1e400", "invalid_metadata"), ("NaN", "invalid_json"), ("-Infinity", "invalid_json")],
        *[
            ("9" * 5000, "invalid_json"),
            ("[" * 100 + "]" * 100, "invalid_json"),
            ('{"a": 1, "a": 2}', "invalid_json"),
        ],
    ],
    ids=lambda value: value[:20],
)
@pytest.mark.parametrize("url", [ENTRIES, SEARCH])
def test_numbers_that_are_none_are_refused(api: APIClient, url: str, value: str, code: str) -> None:
    fields = '"category": "facts", "body": "x", ' if url == ENTRIES else ""

    answer = send(
        api,
        "POST",
        url,
        f'{{{fields}"metadata": {{"k": {value}}}}}'.encode(),
        content_type="application/json",
    )

    assert problem(answer) == (400, code)


@pytest.fixture
def filled(api: APIClient) -> APIClient:
    add_entry(api, "the first kettle", metadata={"n": 1, "project": "apollo", "flag": True})
    add_entry(api, "the second kettle", metadata={"n": 12.5, "project": ["apollo", "gemini"]})
    add_entry(api, "the third kettle", category="rules", metadata={"n": "1"})
    return api


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"n": 1}, ["first"]),
        ({"n": "1"}, ["third"]),
        ({"n": True}, []),
        ({"flag": True, "n": 1}, ["first"]),
        ({"project": "apollo"}, ["first", "second"]),
        ({"project": ["gemini"]}, ["second"]),
        ({"project": {"ne": "gemini"}}, ["first", "third"]),
        ({"n": {"in": ["1", 12.5]}}, ["second", "third"]),
        ({"n": {"gt": 1, "lte": 12.5}}, ["second"]),
        ({"flag": {"exists": False}}, ["second", "third"]),
        ({"n') OR 1=1; --": 1}, []),
        ({}, ["first", "second", "third"]),
    ],
    ids=str,
)
def test_the_filter_is_the_same_in_lists_and_every_search(
    filled: APIClient, metadata: dict[str, Any], expected: list[str]
) -> None:
    bodies = [f"the {number} kettle" for number in expected]

    assert listed(filled, metadata) == bodies
    assert searched(filled, metadata=metadata) == bodies
    for mode in ("hybrid", "lexical", "words", "substring"):
        assert searched(filled, query="kettle", mode=mode, metadata=metadata) == bodies, mode
    # Once all are gone, an earlier revision still holds them.
    for each in filled.get(ENTRIES).json()["items"]:
        filled.delete(f"{ENTRIES}/{each['id']}")
    assert listed(filled, metadata) == searched(filled, query="kettle", metadata=metadata) == []
    assert listed(filled, metadata, revision=3) == bodies
    assert searched(filled, query="kettle", metadata=metadata, revision=3) == bodies


def test_pages_of_a_filter_are_full(api: APIClient) -> None:
    for n in range(40):
        add_entry(api, f"kettle {'abcdefghij'[n % 10]}{'klmn'[n // 10]}", metadata={"even": n % 2 == 0})

    first = post(api, SEARCH, query="kettle", metadata={"even": True}, limit=10).json()
    second = post(api, SEARCH, query="kettle", metadata={"even": True}, limit=10, cursor=first["next"]).json()
    other = post(api, SEARCH, query="kettle", metadata={"even": False}, limit=10, cursor=first["next"])

    found = first["items"] + second["items"]
    assert len({item["id"] for item in found}) == 20
    assert all(item["metadata"] == {"even": True} for item in found)
    assert problem(other) == (400, "invalid_text")


@pytest.mark.parametrize(
    "metadata",
    [
        *[
            {"n": None},
            {"n": {}},
            {"n": {"like": "x"}},
            {"id": "x"},
            {"n": {"in": []}},
            {"n": {"exists": "yes"}},
        ],
        *[{"n": {"gt": True}}, {"n": {"eq": {}}}, {"n": DEEP}, {"n": {"gte": 1e300}}, {"n": {"in": [[1]]}}],
        *[{"n": {"in": [1] * 101}}, {"\0": 1}, {"n": "\ud800"}, {"\ud800": {}}, {"k" * 200: {}}, [], 7],
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_a_filter_that_makes_no_sense_is_refused(api: APIClient, metadata: Any) -> None:
    body = json.dumps({"query": "x", "metadata": metadata}).encode()

    for answer in (
        send(api, "POST", SEARCH, body, content_type="application/json"),
        api.get(ENTRIES, {"metadata": json.dumps(metadata)}),
    ):
        status, code = problem(answer)
        assert (status, code.partition("_")[0]) == (400, "invalid")


@pytest.mark.parametrize(
    "text", ["", "x", "[1]", "{", '{"a": NaN}', "[" * 5000, '{"a": 1, "a": 2}', "{" + " " * 20_000]
)
def test_the_filter_of_a_list_is_a_json_object(api: APIClient, text: str) -> None:
    status, code = problem(api.get(ENTRIES, {"metadata": text}))

    assert (status, code) in [(400, "invalid_request"), (400, "invalid_text")]


def test_a_stranger_and_a_key_of_a_folder_find_nothing_of_others(
    filled: APIClient, alice: Tenant, bob: Tenant
) -> None:
    stranger = client_with(make_key(bob)[1])
    inside = client_with(make_key(alice, path_prefix="/memory/semantic_memory/rules.md")[1])

    assert listed(stranger, {"project": "apollo"}) == searched(stranger, metadata={"project": "apollo"}) == []
    assert listed(inside, {"n": {"exists": True}}) == ["the third kettle"]
    assert searched(inside, query="kettle", metadata={"n": {"exists": True}}) == ["the third kettle"]


def test_metadata_stands_in_the_file(api: APIClient) -> None:
    add_entry(api, "water", metadata=METADATA)

    assert b'\nproject: apollo\npriority: 3\nshare: 0.5\ndone: false\nlinks: [a, 1, true]\n"na' in raw(
        api, FACTS[1:]
    )
