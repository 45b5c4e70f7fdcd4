"""SQLite files of Mneme, good ones and such as were made to do harm."""

import json
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memsvc.format import Confidence, FormatError, MemoryCategory
from memsvc.recall.accesses import Accesses, accesses_of
from memsvc.transfer.exports import export_jsonl
from memsvc.transfer.mneme import import_mneme
from memsvc.transfer.refusals import ImportRefused, InvalidArchive
from memsvc.tree import reads
from memsvc.tree.access import Access
from memsvc.tree.reads import EntryFilter
from tests.transfer.support import everything

SCHEMA = """
CREATE TABLE records (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, agent_id TEXT NOT NULL, tier TEXT NOT NULL,
    content TEXT NOT NULL, created_at TEXT NOT NULL, last_accessed TEXT, access_count INTEGER NOT NULL DEFAULT 0,
    expires_at TEXT, metadata TEXT NOT NULL, confidence REAL, provenance TEXT, role TEXT
);
CREATE INDEX idx_records_agent_tier ON records (agent_id, tier);
"""


def database(folder: Path, *records: dict[str, Any], script: str = SCHEMA) -> Path:
    path = folder / "memory.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
        for record in records:
            names = ", ".join(record)
            marks = ", ".join("?" * len(record))
            connection.execute(f"INSERT INTO records ({names}) VALUES ({marks})", list(record.values()))
        connection.commit()
    return path


def record(record_id: str, **fields: Any) -> dict[str, Any]:
    plain = {
        "id": record_id,
        "agent_id": "bot",
        "tier": "semantic",
        "content": f"What {record_id} says.",
        "created_at": "2026-03-04T05:06:07+00:00",
        "metadata": "{}",
        "confidence": 1.0,
        "provenance": "[]",
    }
    return plain | fields


def test_episodes_and_facts_become_entries(memory: Access, tmp_path: Path) -> None:
    path = database(
        tmp_path,
        record(
            "e1", tier="episodic", confidence=None, provenance=None, content="We met.\n\n[id=x] not a record"
        ),
        record(
            "f1", confidence=0.83, provenance='["e1"]', metadata='{"tags": ["a"], "k": 1}', access_count=3
        ),
        record("f2", confidence=0.0),
    )

    report = import_mneme(memory, path)

    assert [(entry.entry_id, entry.outcome) for entry in report.entries] == [
        ("e1", "created"),
        ("f1", "created"),
        ("f2", "created"),
    ]
    event = reads.get_entry(memory, "e1")
    assert event.path == "/memory/episodic_memory/events/2026-03.md"
    assert event.entry.body == "We met.\n\n[id=x] not a record"
    fact = reads.get_entry(memory, "f1").entry
    assert (fact.category, fact.confidence, fact.tags) == (MemoryCategory.FACTS, Confidence.HIGH, ("a",))
    assert fact.created == datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
    lines = [json.loads(line) for line in b"".join(export_jsonl(memory)).splitlines()]
    found = {line["external_id"]: line for line in lines if line.get("type") == "memory"}
    assert (found["f1"]["confidence"], found["f2"]["confidence"]) == (0.83, 0.0)
    assert (found["f1"]["provenance"], found["f1"]["access_count"]) == (["e1"], 3)
    assert found["f1"]["metadata"] == {"tags": ["a"], "k": 1}
    # Without a time of the last access that of the creation counts.
    assert accesses_of(memory, ["f1", "f2"]) == {"f1": Accesses(3, fact.created)}


def test_metadata_can_be_filtered_by(memory: Access, tmp_path: Path) -> None:
    given = {
        "role": "user",
        "turn": 3,
        "source": "langchain",
        "deep": {"a": [1]},
        "none": None,
        "big": 10**20,
    }
    import_mneme(memory, database(tmp_path, record("a", metadata=json.dumps(given)), record("b")))

    wanted = EntryFilter(metadata={"role": "user", "turn": {"gt": 2}})
    [found] = reads.list_entries(memory, wanted).items

    assert (found.entry.entry_id, found.metadata) == ("a", {"role": "user", "turn": 3})
    lines = [json.loads(line) for line in b"".join(export_jsonl(memory)).splitlines()]
    assert {line["external_id"]: line["metadata"] for line in lines if line.get("type") == "memory"} == {
        "a": given,
        "b": {},
    }


def test_a_second_import_changes_nothing(memory: Access, tmp_path: Path) -> None:
    path = database(
        tmp_path,
        record("a", access_count=2**62, last_accessed="2026-05-01T14:00:00+02:00"),
        record("b", access_count=-1),
    )
    import_mneme(memory, path)
    before = everything(memory)

    again = import_mneme(memory, path)

    assert accesses_of(memory, ["a", "b"]) == {"a": Accesses(2**53, datetime(2026, 5, 1, 12, tzinfo=UTC))}
    assert (again.revision, {entry.outcome for entry in again.entries}) == (1, {"unchanged"})
    assert everything(memory) == before


def test_a_dry_run_changes_nothing(memory: Access, tmp_path: Path) -> None:
    report = import_mneme(memory, database(tmp_path, record("a"), record("b", tier="odd")), dry_run=True)

    assert sorted(entry.outcome for entry in report.entries) == ["created", "refused"]
    assert everything(memory) == {}


def test_what_had_to_be_mended_is_told(memory: Access, tmp_path: Path) -> None:
    path = database(
        tmp_path,
        record("naive", created_at="2026-03-04T05:06:07"),
        record("nul", content="a\0b"),
        record("high", confidence=1.7),
        record("meta", metadata="nonsense"),
        record("same", content="twice"),
        record("same again", content="twice"),
        record("gone", expires_at="2020-01-01T00:00:00+00:00"),
        record("turn", tier="working", role="user"),
    )

    report = import_mneme(memory, path)

    assert len(report.warnings) == 5
    assert {entry.entry_id for entry in report.entries if entry.outcome == "skipped"} == {"gone", "turn"}
    assert reads.get_entry(memory, "nul").entry.body == "ab"
    assert reads.get_entry(memory, "naive").entry.created.tzinfo is not None


def test_of_several_agents_one_is_named(memory: Access, tmp_path: Path) -> None:
    path = database(tmp_path, record("a"), record("b", agent_id="other' OR 1=1"))

    with pytest.raises(ImportRefused, match="several agents"):
        import_mneme(memory, path)

    report = import_mneme(memory, path, only="other' OR 1=1")
    assert [entry.entry_id for entry in report.entries] == ["b"]


def test_a_record_that_cannot_be_kept_is_named_and_nothing_is_taken(memory: Access, tmp_path: Path) -> None:
    with pytest.raises(ImportRefused) as refusal:
        import_mneme(memory, database(tmp_path, record("good"), record("empty", content=" ")))

    assert [name for name, _ in refusal.value.refused] == ["record 2"]
    assert everything(memory) == {}


VIEW = "CREATE VIEW records AS SELECT 1 AS id"
ENDLESS = """
CREATE VIEW records AS
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
SELECT x AS id, 'a' AS agent_id, 'semantic' AS tier, 'c' AS content, '2026-01-01' AS created_at, NULL AS last_accessed,
       0 AS access_count, NULL AS expires_at, '{}' AS metadata, 1 AS confidence, '[]' AS provenance FROM n
"""
HUGE = (
    SCHEMA
    + "INSERT INTO records VALUES (1, 'a', 'b', 'semantic', zeroblob(9000000), '', '', 0, '', '', 1, '', '')"
)
VIRTUAL = "CREATE VIRTUAL TABLE records USING fts5(id, agent_id)"


@pytest.mark.parametrize(
    "script", ["", VIEW, ENDLESS, HUGE, VIRTUAL], ids=["none", "view", "endless", "huge", "virtual"]
)
def test_a_schema_that_is_not_mnemes_is_refused(memory: Access, tmp_path: Path, script: str) -> None:
    with pytest.raises(FormatError):
        import_mneme(memory, database(tmp_path, script=script or "CREATE TABLE other (x)"))
    assert everything(memory) == {}


@pytest.mark.parametrize("data", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 5000])
def test_what_is_no_database_is_refused(memory: Access, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(data)

    with pytest.raises(InvalidArchive):
        import_mneme(memory, path)


def test_a_damaged_file_is_refused_or_read_but_never_changed(memory: Access, tmp_path: Path) -> None:
    path = database(tmp_path, *(record(f"r{number}") for number in range(40)))
    whole = path.read_bytes()
    for at in range(100, len(whole), len(whole) // 40):
        damaged = whole[:at] + b"\xff" * 16 + whole[at + 16 :]
        path.write_bytes(damaged)
        with suppress(FormatError):
            import_mneme(memory, path, dry_run=True)
        assert path.read_bytes() == damaged
    assert sorted(each.name for each in tmp_path.iterdir()) == ["memory.db"]
