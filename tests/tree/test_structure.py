"""Entries beside code blocks and unusual frontmatter: each one that was added is found, whatever stands around it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memsvc.contract.requests import SuccessorRequest
from memsvc.format import cut_file, normal_entry
from memsvc.format.entries import closed_body
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.errors import EntryNotFound
from memsvc.tree.models import Block
from memsvc.tree.operations import AppendFile, Operation, WriteFile
from tests.tree.support import FACTS, add, text

pytestmark = pytest.mark.django_db

KEYS = "id: mem_raw\ncreated: 2026-01-01\ncategory: facts\n"
RAW = f"---\n{KEYS}---\n\nBody.\n"


def codes(told: Any) -> list[tuple[int, str]]:
    return [(each.line, each.code) for each in told.warnings]


def found(memory: Access, entry_id: str) -> str | None:
    try:
        return reads.get_entry(memory, entry_id).entry.body
    except EntryNotFound:
        return None


def test_an_example_in_a_note_is_no_memory(memory: Access) -> None:
    written = services.write_file(memory, "/memory/note.md", f"# How\n\n```yaml\n{RAW}```\n")
    assert found(memory, "mem_raw") is None
    assert codes(written) == []

    kept = add(memory, f"Write it so:\n\n~~~\n{RAW}~~~\n\nDone.")
    assert found(memory, kept.entry.entry_id) == kept.entry.body
    assert found(memory, "mem_raw") is None


def test_a_body_that_leaves_code_open_is_closed_and_its_writer_told(memory: Access) -> None:
    first = add(memory, "Run it:\n\n```sh\nmake")
    assert first.entry.body == "Run it:\n\n```sh\nmake\n```"
    assert codes(first) == [(text(memory, FACTS).count("\n"), "code_fence_closed")]

    second = services.supersede_entry(memory, SuccessorRequest(first.entry.entry_id, "~~~~\nx"))
    assert codes(second) == [(text(memory, FACTS).count("\n"), "code_fence_closed")]
    assert codes(add(memory, "```\nx\n```")) == []
    for written in (first, second):
        assert found(memory, written.entry.entry_id) == written.entry.body


@pytest.mark.parametrize("above", ["# Facts\n\n```sh\nmake", RAW + "\n~~~\n", "```\n" + "x\n" * 70_000])
def test_what_is_added_below_open_code_is_found(memory: Access, above: str) -> None:
    services.write_file(memory, FACTS, above)

    written = add(memory, "Berlin.")

    now = text(memory, FACTS)
    assert now.startswith(above)
    assert [code for _, code in codes(written)] == ["code_fence_closed"]
    assert found(memory, written.entry.entry_id) == "Berlin."
    services.edit_file(memory, FACTS, "Berlin.", "Bonn.")
    assert found(memory, written.entry.entry_id) == "Bonn."


def test_a_successor_goes_where_the_frontmatter_ends(memory: Access) -> None:
    note = RAW.replace("category", "note: |\n  a\n  ---\n  id: b\n\n  ---\ncategory")
    services.write_file(memory, FACTS, note)

    written = services.supersede_entry(memory, SuccessorRequest("mem_raw", "New."))

    line = f"superseded_by: {written.entry.entry_id}\n"
    assert text(memory, FACTS).startswith(note.replace("facts\n---", f"facts\n{line}---"))


def test_an_edit_that_makes_an_entry_unusable_is_told(memory: Access) -> None:
    written = add(memory, "Berlin.", tags=("two",))

    edited = services.edit_file(memory, FACTS, "tags: [two]", "tags: two: three")
    assert codes(edited) == []
    assert reads.get_entry(memory, written.entry.entry_id).entry.tags == ("two: three",)

    broken = services.edit_file(memory, FACTS, "two: three", "[two")
    assert codes(broken) == [(1, "unusable_entry")]
    assert found(memory, written.entry.entry_id) is None


def test_an_edit_that_lets_code_swallow_an_entry_is_told(memory: Access) -> None:
    services.write_file(memory, FACTS, f"# Facts\n\nx\n\n{RAW}")
    assert codes(services.edit_file(memory, FACTS, "x\n", "```\n")) == [(3, "unclosed_code_fence")]
    assert codes(services.append_file(memory, FACTS, "```\n")) == []
    services.write_file(memory, FACTS, RAW)
    assert codes(services.write_file(memory, FACTS, f"```\n{RAW}```\n")) == [(3, "entry_lost")]


def test_batches_uploads_moves_and_restores_tell_what_is_theirs(memory: Access) -> None:
    broken = RAW.replace("facts", "fact")
    written: list[Operation] = [
        WriteFile("/memory/a.md", broken),
        WriteFile("/memory/b.md", RAW),
        AppendFile("/memory/b.md", RAW),
    ]
    done = services.batch(memory, written)
    assert [codes(each) for each in done.results] == [
        [(1, "unusable_entry")],
        [],
        [(8, "swallowed_entry")],
    ]
    uploaded = services.upload_files(memory, [("/memory/c.md", b"x"), ("/memory/d.md", broken.encode())])
    assert [codes(each) for each in uploaded] == [[], [(1, "unusable_entry")]]
    services.write_file(memory, "/memory/e.txt", broken)
    moved = services.move(memory, "/memory/e.txt", "/memory/e.md")
    assert codes(moved) == [(1, "unusable_entry")]
    gone = services.delete(memory, "/memory/e.md")
    assert codes(services.undo(memory, revision=gone.revision)) == [(1, "unusable_entry")]
    services.delete(memory, "/memory/e.md")
    assert codes(services.restore(memory, moved.revision)) == [(1, "unusable_entry")]


def test_two_entries_with_one_id_are_told(memory: Access) -> None:
    services.write_file(memory, "/memory/a.md", RAW)
    assert codes(services.write_file(memory, "/memory/b.md", f"# B\n\n{RAW}")) == [(3, "duplicate_id")]


def test_only_what_a_write_touches_is_told(memory: Access) -> None:
    services.write_file(
        memory, FACTS, RAW.replace("facts", "fact") + "\n" + RAW.replace("Body", "Second body")
    )
    assert codes(services.edit_file(memory, FACTS, "Second body", "Text")) == []
    assert codes(add(memory, "Berlin.")) == []


def test_rows_that_older_rules_cut_read_as_they_were(memory: Access) -> None:
    services.write_file(memory, FACTS, RAW)
    old = RAW.replace("facts\n---", "facts\n  ---")
    head, body = old.split("\n\n", 1)
    Block.objects.filter(entry_id="mem_raw").update(head=head + "\n", text="\n" + body, size=len(old))

    added = add(memory, "New.", supersedes="mem_raw")

    assert text(memory, FACTS).startswith(
        old.replace("facts\n", f"facts\nsuperseded_by: {added.entry.entry_id}\n")
    )


def test_a_block_scalar_that_older_rules_cut_is_superseded_below_it(memory: Access) -> None:
    scalar = "note: |\n  a\n  ---\n  b\n"
    services.write_file(memory, "/memory/raw.md", RAW.replace("facts\n---", f"facts\n{scalar}---"))
    row = Block.objects.get(entry_id="mem_raw")
    head, dashes, below = (row.head + row.text).partition("  ---\n")
    Block.objects.filter(pk=row.pk).update(head=head + dashes, text=below)

    added = add(memory, "New.", supersedes="mem_raw")

    assert scalar in text(memory, "/memory/raw.md")
    superseded = reads.get_entry(memory, "mem_raw").entry
    assert (superseded.superseded_by, superseded.body) == (added.entry.entry_id, "Body.")


LINES = [
    "",
    "text",
    "```",
    "~~~",
    "```py",
    "  ```",
    "- ```",
    "  - x",
    "````",
    "---",
    "id: x",
    "> ```",
    "    ```",
]
bodies = st.lists(st.sampled_from(LINES), min_size=1, max_size=7).map("\n".join)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "supersede", "retire", "raw", "expiring", "restore"]), bodies),
        min_size=2,
        max_size=8,
    )
)
def test_every_added_entry_is_found_and_reads_as_it_was_stored(
    memory: Access, steps: list[tuple[str, str]]
) -> None:
    services.write_file(memory, FACTS, "# Facts\n")
    live: dict[str, str] = {}
    for step, body in steps:
        if step == "raw":
            # Whoever writes text below an entry writes into it: the last one may read otherwise now.
            services.append_file(memory, FACTS, "\n" + body)
            live = {entry_id: now for entry_id in live if (now := found(memory, entry_id)) is not None}
            continue
        if step == "retire" and live:
            services.retire_entry(memory, live.popitem()[0])
            continue
        try:
            more: dict[str, Any] = (
                {"expires_at": datetime.now(tz=UTC) + timedelta(days=1)} if step == "expiring" else {}
            )
            old = next(iter(live), None) if step == "supersede" else None
            written = add(memory, body or "x", supersedes=old, **more)
        except ValueError:
            continue
        live[written.entry.entry_id] = normal_entry(written.entry).body
        if old:
            del live[old]
        if step == "restore":
            services.restore_entry(memory, written.entry.entry_id, written.revision)
    # Text that leaves code open is closed by what is added below it.
    live = {entry_id: closed_body(body) for entry_id, body in live.items()}
    assert {entry_id: closed_body(found(memory, entry_id) or "") for entry_id in live} == live
    data = reads.read_file(memory, FACTS).data if live else b""
    entries = [block.entry for block in cut_file(FACTS, data) if block.entry]
    read = {entry.entry_id: closed_body(entry.body) for entry in entries}
    assert live.items() <= read.items()
