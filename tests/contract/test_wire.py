import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from typing import Annotated

import pytest

from memsvc.contract.entries import EntryRead
from memsvc.contract.files import Page, Written
from memsvc.contract.history import EntryVersion, RevisionDetail, RevisionRead
from memsvc.contract.imports import ImportedFile, ImportReport, Outcome
from memsvc.contract.wire import Inside, Json, Named, Note, Wire, from_json, schema_of, to_json
from memsvc.format import MemoryCategory, MemoryEntry

ENTRY = MemoryEntry(
    "mem_1", datetime(2026, 3, 1, 9, tzinfo=UTC), MemoryCategory.FACTS, "ACME moved.", tags=("acme",)
)
SENT_ENTRY = {
    "id": "mem_1",
    "category": "facts",
    "kind": "semantic",
    "created": "2026-03-01T09:00:00Z",
    "source": "agent",
    "confidence": "medium",
    "tags": ["acme"],
    "summary": "",
    "body": "ACME moved.",
    "supersedes": None,
    "superseded_by": None,
    "is_active": True,
    "metadata": {"n": 3},
}
REVISION = RevisionRead(7, datetime(2026, 3, 2, tzinfo=UTC), "key", "k1", "an agent", "entry.add", "")
SENT_REVISION = {
    "number": 7,
    "at": "2026-03-02T00:00:00Z",
    "actor": {"kind": "key", "id": "k1", "name": "an agent"},
    "action": "entry.add",
    "message": "",
    "run_id": "",
}


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Part[Value]:
    value: Value
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Thing(Part[int]):
    colour: Colour = Colour.RED
    names: frozenset[str] = frozenset()
    numbers: Mapping[int, Sequence[float]] | None = None
    kind: Annotated[str, Named("type"), Inside("more"), Note("What it is.")] = "thing"
    secret: Annotated[str, Wire.UNSENT] = ""


def test_a_value_is_read_back_as_it_was() -> None:
    thing = Thing(3, b"\xff", Colour.RED, frozenset({"b", "a"}), {2: (0.5,)}, "other", "not sent")

    sent = to_json(thing)

    assert sent == {
        "value": 3,
        "data": "/w==",
        "colour": "red",
        "names": ["a", "b"],
        "numbers": {"2": [0.5]},
        "more": {"type": "other"},
    }
    assert from_json(Thing, sent) == replace(thing, secret="")


def test_an_entry_stands_flat_among_the_members_of_what_has_it() -> None:
    found = EntryRead(ENTRY, {"n": 3}, "/memory/facts.md", None, 7, etag="e")

    sent = to_json(found)

    assert list(sent.items()) == [
        *SENT_ENTRY.items(),
        ("path", "/memory/facts.md"),
        ("expires_at", None),
        ("revision", 7),
        ("written", None),
        ("changed", None),
    ]
    assert from_json(EntryRead, sent) == EntryRead(ENTRY, {"n": 3}, "/memory/facts.md", None, 7)


def test_what_stands_inside_an_object_stays_there_in_a_flat_part() -> None:
    detail = RevisionDetail(REVISION, (), ())
    version = EntryVersion(REVISION, "added", "/a.md", ENTRY, {"n": 3})

    assert to_json(detail) == {**SENT_REVISION, "files": [], "entries": []}
    assert to_json(version) == {
        "revision": SENT_REVISION,
        "action": "added",
        "path": "/a.md",
        "entry": SENT_ENTRY,
    }
    assert from_json(RevisionDetail, to_json(detail)) == detail
    assert from_json(EntryVersion, to_json(version)) == version


def test_what_follows_from_other_members_is_written_and_not_read() -> None:
    report = ImportReport(3, False, (ImportedFile("/a.md", Outcome.CREATED),))

    sent = json.loads(json.dumps(to_json(report)))

    assert sent["counts"] == {"created": 1, "changed": 0, "unchanged": 0, "skipped": 0, "refused": 0}
    assert from_json(ImportReport, sent | {"counts": None}) == report


def test_instants_are_sent_in_utc() -> None:
    at = datetime(2026, 3, 1, 10, tzinfo=timezone(timedelta(hours=1)))

    assert to_json(RevisionRead(1, at, "", "", "", "", ""))["at"] == "2026-03-01T09:00:00Z"


def test_a_newer_server_may_send_more_and_an_older_one_less() -> None:
    sent = {"path": "/a.md", "revision": 1, "created": True, "changed": True, "size": 3, "mood": "good"}

    assert from_json(Written, sent) == Written("/a.md", 1, True, True, 3)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ([], "is no object"),
        ({"next": None}, "'items' is no list"),
        ({"items": [3], "next": None}, "'items' is no object"),
        ({"items": [{"value": True}], "next": None}, "'value' is no whole number"),
        ({"items": [{"value": 1, "data": "?"}], "next": None}, "base64"),
        ({"items": [{"value": 1, "more": 3}], "next": None}, "'type' is no object"),
        ({"items": [{"value": 1, "colour": "blue"}], "next": None}, "blue"),
        ({"items": [], "next": 3}, "'next' is no text"),
    ],
)
def test_what_is_of_another_type_can_not_be_read(data: Json, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        from_json(Page[Thing], data)


def test_a_type_is_described_with_references_to_what_has_a_name() -> None:
    text, number = {"type": "string"}, {"type": "integer"}
    thing = schema_of(Thing, {Thing: "Thing"})

    assert schema_of(Page[Thing], {Thing: "Thing"})["properties"]["items"] == {
        "type": "array",
        "items": {"$ref": "#/components/schemas/Thing"},
    }
    assert thing["required"] == ["value", "data", "colour", "names", "numbers", "more"]
    assert thing["additionalProperties"] is False
    assert thing["properties"]["value"] == number
    assert thing["properties"]["colour"] == {"type": "string", "enum": ["red"]}
    assert thing["properties"]["more"]["properties"] == {"type": {**text, "description": "What it is."}}
