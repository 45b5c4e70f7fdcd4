import json
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from memsvc.recall.accesses import ACCESS_COUNTS
from tenants.models import Tenant
from tests.api.conftest import client_with
from tests.api.support import ENTRIES, SEARCH, add_entry, paths, post, problem, put, raw
from tests.people import make_key

FACTS = "/memory/semantic_memory/facts.md"
MEMBERS = {
    *(
        "id",
        "path",
        "category",
        "kind",
        "created",
        "source",
        "confidence",
        "tags",
        "summary",
        "body",
        "supersedes",
    ),
    *("superseded_by", "is_active", "expires_at", "revision", "metadata"),
}

# What only reads tell.
AUTHORS = {"written", "changed"}


def ids(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [item["id"] for item in answer.json()["items"]]


def test_an_entry_is_stored_in_the_file_of_its_category(api: APIClient) -> None:
    made = add_entry(api, "ACME sits in Berlin.", summary="ACME's seat", tags=["acme"], confidence="high")

    assert made.keys() == MEMBERS | {"superseded", "file_created", "peer_readable", "warnings"}
    assert (made["path"], made["kind"], made["is_active"]) == (FACTS, "semantic", True)
    assert (made["file_created"], made["peer_readable"], made["superseded"]) == (True, True, None)
    assert b"ACME sits in Berlin." in raw(api, FACTS[1:])


def test_an_entry_is_found_by_its_id(api: APIClient) -> None:
    made = add_entry(
        api, "body", summary="sum", tags=["a", "b"], source="user", when="2026-03-01T12:00:00+02:00"
    )

    answer = api.get(f"{ENTRIES}/{made['id']}")
    found = answer.json()

    assert found.keys() == MEMBERS | AUTHORS
    assert {name: found[name] for name in MEMBERS} == {name: made[name] for name in MEMBERS}
    assert (found["summary"], found["tags"], found["source"]) == ("sum", ["a", "b"], "user")
    known = api.get(f"{ENTRIES}/{made['id']}", headers={"If-None-Match": answer.headers["ETag"]})
    assert known.status_code == 304


def test_an_episode_lies_in_the_file_of_its_month(api: APIClient) -> None:
    made = add_entry(api, "it rained", category="events", when="2026-03-31T23:30:00-05:00")

    assert made["path"] == "/memory/episodic_memory/events/2026-04.md"


def test_an_entry_may_expire(api: APIClient) -> None:
    made = add_entry(api, expires_at="2999-01-01T00:00:00Z")

    assert made["expires_at"] == "2999-01-01T00:00:00Z"
    assert problem(post(api, ENTRIES, category="facts", body="x", expires_at="2001-01-01")) == (
        400,
        "invalid_text",
    )


@pytest.mark.parametrize("body", ["", " \n", "\u200b", "\u00a0\ufeff"])
def test_a_body_in_which_nothing_is_to_be_seen_is_refused(api: APIClient, body: str) -> None:
    old = add_entry(api, "Berlin")["id"]
    operation = {"op": "add_entry", "category": "facts", "body": body}

    assert problem(post(api, ENTRIES, category="facts", body=body)) == (400, "blank_body")
    assert problem(post(api, f"{ENTRIES}/{old}:supersede", body=body)) == (400, "blank_body")
    assert problem(post(api, "/v1/trees/default/batch", operations=[operation])) == (400, "blank_body")


@pytest.mark.parametrize("title", ["a\0b", "a\x1b"])
@pytest.mark.parametrize("category", ["procedure", "facts"])
def test_a_control_character_in_a_title_is_refused(api: APIClient, title: str, category: str) -> None:
    assert problem(post(api, ENTRIES, category=category, body="x", title=title)) == (400, "invalid_text")


@pytest.mark.parametrize(
    "when", ["2026-03-01T10:00:00+05:30", "2026-03-01T10:00:00-08:00", "2026-03-01T10:00:00Z"]
)
def test_the_file_keeps_the_offset_of_a_time(api: APIClient, when: str) -> None:
    add_entry(api, "Berlin", when=when)
    operation = {"op": "add_entry", "category": "facts", "body": "x", "when": when}
    assert post(api, "/v1/trees/default/batch", operations=[operation]).status_code == 200

    assert raw(api, FACTS[1:]).decode().count(f"created: {when.replace('Z', '+00:00')}\n") == 2


def test_a_successor_is_as_temporary_as_the_old_entry(api: APIClient) -> None:
    until = "2099-01-01T00:00:00Z"
    ids = [add_entry(api, "x", expires_at=until)["id"] for _ in range(4)]

    answers = [
        post(api, f"{ENTRIES}/{ids[0]}:supersede", body="y"),
        post(api, f"{ENTRIES}/{ids[1]}:supersede", body="y", expires_at=None),
        post(api, ENTRIES, category="facts", body="y", supersedes=ids[2]),
        post(api, ENTRIES, category="facts", body="y", supersedes=ids[3], expires_at=None),
    ]

    assert [answer.json()["expires_at"] for answer in answers] == [until, None, until, None]


def test_a_successor_without_a_summary_gets_one_of_its_own(api: APIClient) -> None:
    old = add_entry(api, "Oslo", summary="Lives in Oslo")["id"]

    new = post(api, ENTRIES, category="facts", body="Rome", supersedes=old).json()
    none = post(api, ENTRIES, category="facts", body="Bonn", supersedes=new["id"], summary="").json()

    assert (new["summary"], none["summary"]) == ("Rome", "")


def test_a_successor_has_the_metadata_as_it_stands(api: APIClient) -> None:
    lines = "version: 1.10\nzip: 00123\nnote: 'it''s'\n"
    fact = f"---\nid: mem_x\ncreated: 2026-01-02\ncategory: facts\n{lines}---\n\nx\n"
    assert put(api, FACTS[1:], fact).status_code == 201

    new = post(api, ENTRIES, category="facts", body="y", supersedes="mem_x").json()["id"]
    post(api, f"{ENTRIES}/{new}:supersede", body="z")

    assert raw(api, FACTS[1:]).decode().count(lines) == 3


def test_a_problem_can_be_sent_whatever_it_quotes(api: APIClient) -> None:
    sent = '{"category": "facts", "body": "x", "\\ud800": 1, "supersedes": "mem_\\ud800"}'
    for body in (sent, sent.replace('"\\ud800": 1, ', "")):
        answer = api.generic("POST", ENTRIES, body, content_type="application/json")
        assert answer.status_code == 400
        assert json.dumps(answer.json(), ensure_ascii=False).encode()


def test_a_successor_takes_the_place_of_an_entry(api: APIClient) -> None:
    old = add_entry(api, "Berlin", summary="the seat", tags=["acme"])

    answer = post(api, f"{ENTRIES}/{old['id']}:supersede", body="Paris", source="user")
    new = answer.json()
    kept = api.get(f"{ENTRIES}/{old['id']}").json()

    assert answer.status_code == 201
    assert (new["supersedes"], new["superseded"], new["source"]) == (old["id"], old["id"], "user")
    assert (new["category"], new["summary"], new["tags"], new["body"]) == (
        "facts",
        "Paris",
        ["acme"],
        "Paris",
    )
    assert (kept["superseded_by"], kept["is_active"], kept["body"]) == (new["id"], False, "Berlin")
    assert ids(api.get(ENTRIES)) == [new["id"]]
    assert ids(api.get(ENTRIES, {"status": "superseded"})) == [old["id"]]
    assert ids(api.get(ENTRIES, {"status": "all"})) == [new["id"], old["id"]]


def test_a_successor_may_have_a_summary_and_tags_of_its_own(api: APIClient) -> None:
    old = add_entry(api, "Berlin", summary="the seat", tags=["acme"])

    new = post(api, f"{ENTRIES}/{old['id']}:supersede", body="Paris", summary="", tags=[]).json()

    assert (new["summary"], new["tags"]) == ("", [])


def test_the_second_of_two_rivals_is_told_who_won(api: APIClient) -> None:
    old = add_entry(api, "Berlin")
    new = post(api, f"{ENTRIES}/{old['id']}:supersede", body="Paris").json()

    late = post(api, ENTRIES, category="facts", body="Rome", supersedes=old["id"])

    assert problem(late) == (409, "already_superseded")
    assert (late.json()["successor"], late.json()["entry_id"]) == (new["id"], old["id"])
    assert ids(api.get(ENTRIES)) == [new["id"]]


def test_a_supersession_that_makes_no_sense_is_refused(api: APIClient) -> None:
    old = add_entry(api, "Berlin")

    other = post(api, f"{ENTRIES}/{old['id']}:supersede", body="x", category="rules")
    unknown = post(api, f"{ENTRIES}/mem_nobody:supersede", body="x")

    assert problem(other) == (409, "invalid_supersession")
    assert problem(unknown) == (404, "entry_not_found")
    assert len(ids(api.get(ENTRIES, {"status": "all"}))) == 1


def test_an_entry_is_retired(api: APIClient) -> None:
    kept, gone = add_entry(api, "kept"), add_entry(api, "gone")

    answer = api.delete(f"{ENTRIES}/{gone['id']}")

    assert answer.json() == {"id": gone["id"], "path": FACTS, "revision": 3, "warnings": []}
    assert problem(api.get(f"{ENTRIES}/{gone['id']}")) == (404, "entry_not_found")
    assert problem(api.delete(f"{ENTRIES}/{gone['id']}")) == (404, "entry_not_found")
    assert ids(api.get(ENTRIES)) == [kept["id"]]
    assert api.get(f"{ENTRIES}/{gone['id']}", {"revision": 2}).json()["body"] == "gone"


def test_an_entry_is_retired_only_as_one_knows_it(api: APIClient) -> None:
    made = add_entry(api, "kept")
    etag = api.get(f"{ENTRIES}/{made['id']}").headers["ETag"]

    stale = api.delete(f"{ENTRIES}/{made['id']}", headers={"If-Match": '"old"'})

    assert problem(stale) == (412, "precondition_failed")
    assert f'"{stale.json()["etag"]}"' == etag
    assert api.delete(f"{ENTRIES}/{made['id']}", headers={"If-Match": etag}).status_code == 200


def test_entries_are_listed_by_what_they_are(api: APIClient) -> None:
    fact = add_entry(api, "f", tags=["a", "b"], source="user", confidence="high")["id"]
    rule = add_entry(api, "r", category="rules", tags=["a"])["id"]
    event = add_entry(api, "e", category="events", when="2020-01-01T00:00:00Z")["id"]

    wanted: list[tuple[dict[str, Any], list[str]]] = [
        ({}, [rule, fact, event]),
        ({"kind": "semantic"}, [rule, fact]),
        ({"category": "rules"}, [rule]),
        ({"tag": ["a", "b"]}, [fact]),
        ({"tag": "A"}, [rule, fact]),
        ({"source": "user"}, [fact]),
        ({"confidence": "high"}, [fact]),
        ({"until": "2021-01-01"}, [event]),
        ({"since": "2021-01-01T00:00:00Z"}, [rule, fact]),
        ({"path_prefix": "/memory/episodic_memory"}, [event]),
        ({"revision": 1}, [fact]),
    ]
    for params, expected in wanted:
        assert ids(api.get(ENTRIES, params)) == expected, params


def test_pages_hold_every_entry_once(api: APIClient) -> None:
    made = [add_entry(api, f"fact {number}")["id"] for number in range(5)]

    found, cursor = [], None
    while True:
        page = api.get(ENTRIES, {"limit": 2} | ({"cursor": cursor} if cursor else {})).json()
        found += [item["id"] for item in page["items"]]
        if (cursor := page["next"]) is None:
            break

    assert found == made[::-1]


def test_accesses_are_counted_for_readers_too(
    api: APIClient, reader: APIClient, stranger: APIClient, alice: Tenant
) -> None:
    one, other = add_entry(api, "The cat sat."), add_entry(api, "A dog ran.")
    url = f"{ENTRIES}/{one['id']}"
    etag = reader.get(url).headers["ETag"]
    assert reader.get(url, headers={"If-None-Match": etag}).status_code == 304
    assert ids(post(reader, SEARCH, query="cat")) == [one["id"]]
    # These don't count: a list, an earlier state, a stranger's attempts.
    reader.get(ENTRIES)
    reader.get(url, {"revision": one["revision"]})
    assert stranger.get(url).status_code == 404
    post(stranger, SEARCH, query="cat")
    ACCESS_COUNTS.flush()

    found = reader.get(f"{url}/accesses").json()
    never = reader.get(f"{ENTRIES}/{other['id']}/accesses").json()

    assert (found.keys(), found["id"], found["count"]) == ({"id", "count", "last_at"}, one["id"], 3)
    assert datetime.fromisoformat(found["last_at"]) <= timezone.now()
    assert never == {"id": other["id"], "count": 0, "last_at": None}
    assert problem(stranger.get(f"{url}/accesses")) == (404, "entry_not_found")
    assert problem(reader.get(f"{ENTRIES}/mem_none/accesses")) == (404, "entry_not_found")


def test_search_finds_words_and_substrings(api: APIClient) -> None:
    one = add_entry(api, "The cat sat on the mat.", tags=["pets"])["id"]
    two = add_entry(api, "The mat is for the CAT.")["id"]

    assert ids(post(api, SEARCH, query="cat mat")) == [two, one]
    assert ids(post(api, SEARCH, query="cat sat", mode="substring")) == [one]
    assert ids(post(api, SEARCH, query="pets")) == [one]
    assert ids(post(api, SEARCH, query="mat", tags=["pets"])) == [one]
    assert ids(post(api, SEARCH)) == [two, one]
    assert ids(post(api, SEARCH, query="dog")) == []


def test_search_leaves_superseded_entries_out_unless_asked(api: APIClient) -> None:
    old = add_entry(api, "Berlin is the seat")["id"]
    new = post(api, f"{ENTRIES}/{old}:supersede", body="Paris is the seat").json()["id"]

    assert ids(post(api, SEARCH, query="seat")) == [new]
    assert set(ids(post(api, SEARCH, query="seat", include_superseded=True))) == {new, old}


def test_search_names_the_equal_entries_that_it_leaves_out(api: APIClient) -> None:
    older, newer = (add_entry(api, "Bonus for Vienna: +10%", category="rules")["id"] for _ in range(2))
    others = [
        add_entry(api, "Bonus for Vienna: -10%", category="rules")["id"],
        add_entry(api, "Bonus for Vienna: +10%", category="rules", metadata={"project": "apollo"})["id"],
    ]

    found = post(api, SEARCH, query="Vienna bonus").json()["items"]
    words = post(api, SEARCH, query="Vienna bonus", mode="words").json()["items"]

    assert {hit["id"]: hit["duplicates"] for hit in found} == {
        newer: [older],
        **{each: [] for each in others},
    }
    assert sorted(hit["id"] for hit in words) == sorted([older, newer, *others])


def test_words_about_time_are_seen_from_the_time_zone(api: APIClient) -> None:
    zone = ZoneInfo("Asia/Tokyo")
    today = timezone.now().astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    friday = next(day for back in range(1, 8) if (day := today - timedelta(days=back)).weekday() == 4)
    night = add_entry(api, "Decided: case 1", when=(friday + timedelta(minutes=1)).isoformat())["id"]
    add_entry(api, "Decided: case 2", when=(friday - timedelta(minutes=1)).isoformat())
    add_entry(api, "Decided: case 3", when=(friday + timedelta(days=1)).isoformat())
    asked = {"mode": "lexical", "timezone": "Asia/Tokyo"}
    long_ago = friday - timedelta(days=400)
    add_entry(api, "Decided: case 4", when=long_ago.isoformat())

    def of_that_time(query: str) -> list[str]:
        items = post(api, SEARCH, query=query, **asked).json()["items"]
        assert len(items) == 4
        return [item["id"] for item in items if "time" in item["parts"]]

    assert of_that_time("what was decided last Friday?") == [night]
    assert of_that_time(f"decided on {friday:%B} {friday.day}, {friday.year}") == [night]
    assert of_that_time(f"decided {friday:%Y-%m-%d}") == [night]
    assert len(of_that_time("decided before yesterday")) >= 2
    assert len(of_that_time(f"decided before {long_ago.year + 1}")) == 1
    assert of_that_time("decided by those who may go on sun days") == []


def test_search_pages(api: APIClient) -> None:
    for number in range(3):
        add_entry(api, f"seat {number}")

    for mode, bodies in (
        ("words", ["seat 2", "seat 1", "seat 0"]),
        ("lexical", ["seat 1", "seat 2", "seat 0"]),
    ):
        first = post(api, SEARCH, query="seat", mode=mode, limit=2).json()
        second = post(api, SEARCH, query="seat", mode=mode, limit=2, cursor=first["next"]).json()

        assert [item["body"] for item in first["items"] + second["items"]] == bodies
        assert second["next"] is None


def test_episodes_come_oldest_first(api: APIClient) -> None:
    for day in (1, 3, 2):
        add_entry(api, str(day), category="events", when=f"2026-01-0{day}T00:00:00Z")
    add_entry(api, "no episode")

    recent = api.get("/v1/trees/default/episodes", {"limit": 2}).json()
    since = api.get("/v1/trees/default/episodes", {"since": "2026-01-02"}).json()

    assert [item["body"] for item in recent["items"]] == ["2", "3"]
    assert [item["body"] for item in since["items"]] == ["2", "3"]


def test_the_index_has_a_row_for_each_file(api: APIClient) -> None:
    assert api.get("/v1/trees/default/index", {"kind": "semantic"}).json()["exists"] is False
    add_entry(api, "Berlin", summary="The seat", tags=["acme"])

    index = api.get("/v1/trees/default/index", {"kind": "semantic"}).json()

    assert (index["path"], index["exists"]) == ("/memory/semantic_memory/index.md", True)
    assert [row["path"] for row in index["rows"]] == ["facts.md"]
    assert "acme" in index["rows"][0]["tags"]
    assert api.get("/v1/trees/default/index").json()["path"] == "/memory/index.md"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"category": "gossip"}, "invalid_request"),
        ({"category": None}, "invalid_request"),
        ({"category": 7}, "invalid_request"),
        ({"category": ["facts"]}, "invalid_request"),
        ({"body": None}, "invalid_request"),
        ({"body": 7}, "invalid_request"),
        ({"body": "a\x00b"}, "invalid_text"),
        ({"body": "x\n\n---\nid: mem_forged\ncreated: 2026-01-01\ncategory: facts\n---\ny"}, "invalid_entry"),
        ({"summary": "a\x00"}, "invalid_text"),
        ({"tags": "acme"}, "invalid_request"),
        ({"tags": [7]}, "invalid_request"),
        ({"tags": [None]}, "invalid_request"),
        ({"tags": ["a\x00"]}, "invalid_text"),
        ({"tags": ["a"] * 200}, "invalid_request"),
        ({"confidence": "sure"}, "invalid_request"),
        ({"when": "yesterday"}, "invalid_request"),
        ({"when": 7}, "invalid_request"),
        ({"supersedes": 7}, "invalid_request"),
        ({"tag": ["typo"]}, "invalid_request"),
        ({"id": "mem_mine"}, "invalid_request"),
        ({"status": "approved", "tenant": "other"}, "invalid_request"),
    ],
)
def test_an_entry_that_cannot_be_kept_is_refused(api: APIClient, fields: dict[str, Any], code: str) -> None:
    answer = post(api, ENTRIES, **{"category": "facts", "body": "x", **fields})

    assert problem(answer) == (400, code)
    if code == "invalid_request":
        assert answer.json()["errors"][0]["field"].partition("[")[0] in fields
    assert paths(api) == []


def test_a_body_that_is_too_long_says_so(api: APIClient) -> None:
    answer = post(api, ENTRIES, category="facts", body="x" * 300_000)

    assert problem(answer) == (413, "body_too_large")


def test_a_stranger_sees_no_entry(api: APIClient, stranger: APIClient) -> None:
    made = add_entry(api, "canary")
    url = f"{ENTRIES}/{made['id']}"

    for answer in (
        stranger.get(url),
        stranger.delete(url),
        post(stranger, f"{url}:supersede", body="x"),
        post(stranger, ENTRIES, category="facts", body="x", supersedes=made["id"]),
    ):
        assert problem(answer) == (404, "entry_not_found")
    assert ids(stranger.get(ENTRIES)) == []
    assert ids(post(stranger, SEARCH, query="canary")) == []
    assert stranger.get("/v1/trees/default/index", {"kind": "semantic"}).json()["exists"] is False
    assert api.get(url).json()["is_active"] is True


def test_a_foreign_and_a_missing_entry_look_alike(api: APIClient, stranger: APIClient) -> None:
    made = add_entry(api, "canary")

    foreign = stranger.get(f"{ENTRIES}/{made['id']}").json()
    missing = stranger.get(f"{ENTRIES}/mem_2020-01-01_0123456789abcdef").json()

    for answer in (foreign, missing):
        answer.pop("request_id")
    assert str(foreign).replace(made["id"], "") == str(missing).replace("mem_2020-01-01_0123456789abcdef", "")


def test_a_cursor_of_another_tenant_opens_nothing(api: APIClient, stranger: APIClient) -> None:
    for number in range(3):
        add_entry(api, f"canary {number}")
    cursor = api.get(ENTRIES, {"limit": 1}).json()["next"]

    assert ids(stranger.get(ENTRIES, {"cursor": cursor})) == []


def test_a_reader_adds_and_retires_nothing(api: APIClient, reader: APIClient) -> None:
    made = add_entry(api, "kept")

    for answer in (
        post(reader, ENTRIES, category="facts", body="x"),
        post(reader, f"{ENTRIES}/{made['id']}:supersede", body="x"),
        reader.delete(f"{ENTRIES}/{made['id']}"),
    ):
        assert problem(answer) == (403, "missing_scope")
    assert ids(reader.get(ENTRIES)) == [made["id"]]


def test_a_key_for_a_folder_knows_no_entry_outside(api: APIClient, alice: Tenant) -> None:
    made = add_entry(api, "outside")
    put(api, "agents/a.md")
    inside = client_with(make_key(alice, path_prefix="/agents")[1])

    assert ids(inside.get(ENTRIES)) == []
    assert problem(inside.get(f"{ENTRIES}/{made['id']}")) == (404, "entry_not_found")
    assert problem(post(inside, ENTRIES, category="facts", body="x")) == (403, "forbidden")
    assert ids(post(inside, SEARCH, query="outside")) == []


def test_an_entry_tells_who_wrote_it_and_when(api: APIClient, alice: Tenant) -> None:
    other = client_with(make_key(alice)[1])
    made = add_entry(api, when="2126-01-01T00:00:00Z", metadata={"written": "by somebody else"})
    put(other, FACTS[1:], raw(api, FACTS[1:]).decode().replace("Berlin", "Bonn"))

    found = api.get(f"{ENTRIES}/{made['id']}").json()

    revisions = {each["number"]: each for each in api.get("/v1/trees/default/revisions").json()["items"]}
    for name, number in (("written", 1), ("changed", 2)):
        made_by = revisions[number]
        assert found[name] == {"revision": number} | {key: made_by[key] for key in ("at", "actor", "run_id")}
    assert found["written"]["actor"] != found["changed"]["actor"]
    assert found["metadata"] == {"written": "by somebody else"}
    assert found["created"] == "2126-01-01T00:00:00Z"


def test_a_time_to_come_is_listed_as_of_now(api: APIClient) -> None:
    bodies = {"one": None, "two": "2126-01-01T00:00:00Z", "three": None}
    made = [add_entry(api, body, **({"when": when} if when else {}))["id"] for body, when in bodies.items()]

    assert ids(api.get(ENTRIES)) == made[::-1]
    assert ids(api.get(ENTRIES, {"until": "2125-01-01T00:00:00Z"})) == made[::-1]
    assert ids(api.get(ENTRIES, {"since": "2125-01-01T00:00:00Z"})) == []
    page = api.get(ENTRIES, {"limit": 2}).json()
    assert ids(api.get(ENTRIES, {"limit": 2, "cursor": page["next"]})) == made[:1]
