"""Interchange v1: what is written, what is taken, and that one gives the other."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memsvc.contract.imports import ImportReport, Outcome
from memsvc.contract.requests import EntryDraft
from memsvc.format import Confidence, FormatError, MemoryCategory
from memsvc.recall.accesses import Accesses, accesses_of
from memsvc.recall.models import AccessCount
from memsvc.transfer.exports import export_jsonl
from memsvc.transfer.external import import_jsonl
from memsvc.transfer.imports import import_directory
from memsvc.transfer.refusals import ImportRefused, InvalidArchive
from memsvc.tree import arrivals, reads, services
from memsvc.tree.access import Access
from memsvc.tree.errors import EntryNotFound
from memsvc.tree.reads import EntryFilter
from tests.transfer.support import everything, put
from tests.transfer.test_exports import ODD_FILES
from tests.transfer.test_round_trips import trees

HEADER = {"format": "memsvc-export", "version": 1}


def lines_of(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in (HEADER, *records))


def memory_line(entry_id: str, **fields: Any) -> dict[str, Any]:
    line = {
        "type": "memory",
        "external_id": entry_id,
        "kind": "semantic",
        "content": f"What {entry_id} says.",
        "created_at": "2026-01-02T03:04:05+00:00",
    }
    return line | fields


def take(access: Access, data: bytes, **options: Any) -> ImportReport:
    return import_jsonl(access, io.BytesIO(data), **options)


def exported(access: Access, revision: int | None = None) -> bytes:
    return b"".join(export_jsonl(access, revision))


def outcomes(report: ImportReport) -> dict[str, str]:
    return {entry.entry_id: entry.outcome for entry in report.entries}


@pytest.mark.parametrize("folder", trees(), ids=lambda folder: folder.parent.name)
def test_export_import_export_gives_the_same_bytes(memory: Access, other: Access, folder: Path) -> None:
    import_directory(memory, folder)
    put(memory, ODD_FILES)
    first = exported(memory)

    report = take(other, first)

    assert everything(other) == everything(memory)
    assert exported(other) == first
    assert report.count(Outcome.CREATED) == len(everything(memory))
    again = take(other, first)
    assert (again.revision, again.count(Outcome.UNCHANGED)) == (report.revision, len(again.files))


def test_an_export_names_each_file_and_each_entry(memory: Access) -> None:
    draft = EntryDraft(category=MemoryCategory.FACTS, body="Sky is blue", tags=("sky",), summary="Sky")
    entry = services.add_entry(memory, draft).entry
    put(memory, {"/b.bin": b"\xff"})

    header, *records = [json.loads(line) for line in exported(memory).splitlines()]

    assert header["format"] == "memsvc-export"
    assert [(r["type"], r["path"]) for r in records] == [
        ("document", "/b.bin"),
        ("document", "/memory/semantic_memory/facts.md"),
        ("memory", "/memory/semantic_memory/facts.md"),
        ("document", "/memory/semantic_memory/index.md"),
    ]
    assert (records[0]["encoding"], records[0]["content"]) == ("base64", "/w==")
    found = records[2]
    assert (found["external_id"], found["kind"], found["confidence"]) == (entry.entry_id, "semantic", 0.6)
    assert (found["content"], found["tags"], found["summary"]) == ("Sky is blue", ["sky"], "Sky")


def test_when_an_entry_disappears_goes_along(memory: Access, other: Access) -> None:
    soon = datetime.now(tz=UTC) + timedelta(hours=1)
    draft = EntryDraft(category=MemoryCategory.FACTS, body="for an hour", expires_at=soon)
    entry = services.add_entry(memory, draft).entry

    take(other, exported(memory))

    assert reads.get_entry(other, entry.entry_id).expires_at == soon


def test_memories_become_entries_with_their_ids_and_chains(memory: Access) -> None:
    report = take(
        memory,
        lines_of(
            memory_line("old", superseded_by="new"),
            memory_line("new", supersedes="old", confidence=0.93, tags=["x"], summary="New"),
            memory_line("event", kind="episodic", confidence="low"),
            memory_line("how", category="procedure", content="# Bake bread\n\nMix."),
        ),
    )

    assert set(outcomes(report).values()) == {"created"}
    assert report.revision == 1
    old, new = (reads.get_entry(memory, each).entry for each in ("old", "new"))
    assert (old.superseded_by, new.supersedes, new.confidence) == ("new", "old", Confidence.HIGH)
    assert reads.get_entry(memory, "event").path == "/memory/episodic_memory/events/2026-01.md"
    assert reads.get_entry(memory, "how").path == "/memory/procedural_memory/bake-bread.md"
    rows = reads.read_index(memory, new.kind).rows
    assert (rows[0].path, rows[0].description) == ("facts.md", "New")


def test_what_an_entry_has_no_field_for_comes_out_again(memory: Access) -> None:
    kept: dict[str, Any] = {
        "confidence": 0.0,
        "metadata": {"a": [1, "é\u2028😀"], "deep": {"b": None}, "source": 7, "x: y": True},
        "provenance": ["e1"],
        "access_count": 7,
    }
    take(memory, lines_of(memory_line("m", **kept)))

    records = [json.loads(line) for line in exported(memory).splitlines()]

    found = next(record for record in records if record.get("type") == "memory")
    assert {name: found[name] for name in kept} == kept
    assert reads.get_entry(memory, "m").entry.body == "What m says."
    assert accesses_of(memory, ["m"])["m"].count == 7
    assert reads.get_entry(memory, "m").metadata == {"a": [1, "é\u2028😀"], "x: y": True}


def test_metadata_that_an_entry_was_given_goes_out_and_comes_in(memory: Access, other: Access) -> None:
    metadata: dict[str, Any] = {"project": "apollo", "n": 1.5, "done": False, "labels": ["a", 1]}
    draft = EntryDraft(category=MemoryCategory.FACTS, body="Given.", metadata=metadata)
    entry_id = services.add_entry(memory, draft).entry.entry_id
    records = [json.loads(line) for line in exported(memory).splitlines()]
    [record] = [record for record in records if record.get("type") == "memory"]

    take(other, lines_of({**record, "path": None}))

    assert record["metadata"] == reads.get_entry(other, entry_id).metadata == metadata


@pytest.mark.parametrize("count", [0, -1, True, 1.5, "7", None, [7], {}])
@pytest.mark.parametrize("last", [None, "yesterday", 7])
def test_accesses_that_are_none_are_not_taken(memory: Access, count: object, last: object) -> None:
    take(memory, lines_of(memory_line("m", access_count=count, last_accessed=last)))

    assert accesses_of(memory, ["m"]) == {}


def test_a_rehearsal_counts_nothing(memory: Access) -> None:
    line = lines_of(memory_line("m", access_count=7, last_accessed="yesterday"))

    take(memory, line, dry_run=True)
    assert not AccessCount.objects.exists()
    take(memory, line)
    assert accesses_of(memory, ["m"]) == {"m": Accesses(7, reads.get_entry(memory, "m").entry.created)}


def test_a_second_import_changes_nothing(memory: Access) -> None:
    data = lines_of(memory_line("a"), memory_line("b", supersedes="a"))
    take(memory, data)

    again = take(memory, data)

    assert (again.revision, outcomes(again)) == (1, {"a": "unchanged", "b": "unchanged"})


def test_a_new_entry_retires_the_present_one_that_it_supersedes(memory: Access) -> None:
    take(memory, lines_of(memory_line("a")))

    take(memory, lines_of(memory_line("b", supersedes="a"), memory_line("c", supersedes="a")))

    assert reads.get_entry(memory, "a").entry.superseded_by == "b"


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_entries_that_come_in_pieces_are_the_same(
    memory: Access, other: Access, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    later = (datetime.now(tz=UTC) + timedelta(days=1)).isoformat()
    bodies = ["```\nan open fence", "Title\n---", "two\r\nlines", "a\n\n---\n\nb", "  indented", "é\u2028ü"]
    lines = [memory_line(f"mem_{n}", content=body) for n, body in enumerate(bodies)]
    lines[1]["expires_at"] = lines[4]["expires_at"] = later
    lines.append(memory_line("mem_new", supersedes="mem_2"))
    lines += [memory_line(f"mem_t{n}", path="/agents/notes.txt") for n in range(4)]
    for access in (memory, other):
        services.write_file(access, "/memory/semantic_memory/facts.md", "# Facts\nno line end")
    take(memory, lines_of(*lines))

    monkeypatch.setattr(arrivals, "_MOST_AT_ONCE", at_once)
    take(other, lines_of(*lines))

    def seen(access: Access) -> object:
        entries = [
            replace(each, etag="", written=None, changed=None)
            for each in reads.list_entries(access, EntryFilter(active=None)).items
        ]
        listed = [(file.path, file.size, file.lines) for file in reads.list_files(access).items]
        return entries, listed, everything(access)

    assert seen(other) == seen(memory)
    assert reads.list_revisions(other).items[0].number == 2


def test_an_entry_that_says_something_else_stays_as_it_is(memory: Access) -> None:
    take(memory, lines_of(memory_line("a")))

    report = take(memory, lines_of(memory_line("a", content="other")))

    assert (report.revision, outcomes(report)) == (1, {"a": "skipped"})
    assert reads.get_entry(memory, "a").entry.body == "What a says."


def test_a_dry_run_tells_the_same_and_changes_nothing(memory: Access) -> None:
    data = lines_of(memory_line("a"), {"type": "document", "path": "/n.md", "content": "x"})

    report = take(memory, data, dry_run=True)

    assert (report.revision, outcomes(report), report.files[0].outcome) == (0, {"a": "created"}, "created")
    assert everything(memory) == {}
    with pytest.raises(EntryNotFound):
        reads.get_entry(memory, "a")


BAD_LINES: list[dict[str, Any]] = [
    memory_line("x", confidence=1.7),
    memory_line("x", content="a\0b"),
    memory_line("x", content=""),
    memory_line("x", created_at=None),
    memory_line("x", created_at="yesterday"),
    memory_line("x", kind="working"),
    memory_line(""),
    memory_line("x", path="/../x.md"),
    memory_line("x", metadata={"long": "x" * 70_000}),
    memory_line("x", metadata={f"n{n}": "x" * 4_000 for n in range(20)}),
    memory_line("x", metadata=["a"]),
    {"type": "document", "path": "/a/../b.md", "content": ""},
    {"type": "document", "path": "/a.md", "content": "!", "encoding": "base64"},
    {"type": "document", "path": "/a.md", "content": "\ud800"},
    {"type": "document", "path": "/a.md"},
    {"type": "nonsense"},
]


@pytest.mark.parametrize("bad", BAD_LINES, ids=lambda line: str(line)[:60])
def test_a_bad_line_is_named_and_nothing_is_taken(memory: Access, bad: dict[str, Any]) -> None:
    data = lines_of(memory_line("good"), bad)

    with pytest.raises(ImportRefused) as refusal:
        take(memory, data)

    assert [name for name, _ in refusal.value.refused] == ["line 3"]
    assert everything(memory) == {}
    dry_run = take(memory, data, dry_run=True)
    assert sorted(entry.outcome for entry in dry_run.entries) == ["created", "refused"]


@pytest.mark.parametrize("data", [b"", b"\n\n", b"nonsense\n", b"[]\n", b'{"format": "other"}\n', b"PK\3\4"])
def test_what_is_no_export_is_refused(memory: Access, data: bytes) -> None:
    with pytest.raises(FormatError):
        take(memory, data)


def test_nesting_and_great_numbers_do_no_harm(memory: Access) -> None:
    for line in (b"[" * 100_000, b'{"a": ' + b"9" * 10_000 + b"}", b'{"a": NaN}'):
        with pytest.raises(ImportRefused):
            take(memory, lines_of() + line)
    with pytest.raises(InvalidArchive):
        take(memory, b"[" * 100_000)


def test_expired_memories_and_turns_are_left_out(memory: Access) -> None:
    report = take(
        memory, lines_of(memory_line("gone", expires_at="2020-01-01T00:00:00Z"), {"type": "turn", "tree": ""})
    )

    assert {entry.outcome for entry in report.entries} == {"skipped"}
    assert report.revision == 0


def test_of_several_trees_one_is_named(memory: Access) -> None:
    data = lines_of(memory_line("a", tree="one"), memory_line("b", tree="two"))

    with pytest.raises(ImportRefused, match="one, two"):
        take(memory, data)

    assert outcomes(take(memory, data, only="two")) == {"b": "created"}
