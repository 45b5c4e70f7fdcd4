"""Revisions, differences, blame and an entry's history."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.differences import differences, lines_of
from memsvc.tree.errors import EntryNotFound, FileNotFound, RevisionNotFound, TooLarge
from memsvc.tree.operations import DeletePath, MovePath, WriteFile
from memsvc.tree.reads import RevisionFilter
from tests.tree.support import FACTS, AssertNumQueries, add, days_pass, entry_text, in_days, revision


def marks(access: Access, path: str) -> list[int]:
    return [line.revision for line in reads.blame(access, path).lines]


def actions(access: Access, entry_id: str) -> list[tuple[int, str]]:
    versions = reads.entry_history(access, entry_id)
    return [(v.revision.number, v.action) for v in versions if v.entry.entry_id == entry_id]


def changes(access: Access, number: int) -> tuple[dict[str, str], dict[str, str]]:
    """What a revision did, by path and by entry."""
    detail = reads.get_revision(access, number)
    return (
        {change.path: change.action for change in detail.files},
        {change.entry_id: change.action for change in detail.entries},
    )


# --- blame --------------------------------------------------------------------------------------------------------


def test_a_line_keeps_its_revision_when_an_entry_is_put_in_above_it(memory: Access) -> None:
    services.write_file(memory, FACTS, "one\ntwo\nthree\n")

    services.write_file(
        memory, FACTS, "one\n\n" + entry_text("mem_2026-01-01_aaaaaa") + "\n# Rest\ntwo\nthree\n"
    )

    blamed = reads.blame(memory, FACTS).lines
    assert {
        line.text: line.revision for line in blamed if line.text in ("one", "two", "three", "A body.")
    } == {
        "one": 1,
        "two": 1,
        "three": 1,
        "A body.": 2,
    }
    assert {line.entry_id for line in blamed} == {None, "mem_2026-01-01_aaaaaa"}


def test_only_the_line_that_changed_is_of_the_new_revision(memory: Access) -> None:
    services.write_file(memory, "/a.md", "1\n2\n3\n4\n")
    services.edit_file(memory, "/a.md", "2\n", "two\n")
    services.write_file(memory, "/a.md", "0\n1\ntwo\n3\n4\n")
    services.move(memory, "/a.md", "/b.md")

    assert marks(memory, "/b.md") == [3, 1, 2, 1, 1]
    assert [line.revision for line in reads.blame(memory, "/a.md", revision=2).lines] == [1, 2, 1, 1]


def test_the_line_that_retires_an_entry_is_of_the_revision_that_did_it(memory: Access) -> None:
    old = add(memory, "Berlin")
    add(memory, "Bonn", supersedes=old.entry.entry_id)

    blamed = reads.blame(memory, FACTS).lines

    assert [line.revision for line in blamed if line.text.startswith("superseded_by")] == [2]
    assert [line.revision for line in blamed if line.text == "Berlin"] == [1]
    assert {line.revision for line in reads.blame(memory, FACTS, revision=1).lines} == {1}


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"\x00\xff"])
def test_what_has_no_lines_has_no_blame(memory: Access, content: bytes) -> None:
    services.write_file(memory, "/a.bin", content)

    assert reads.blame(memory, "/a.bin").lines == []


def test_a_byte_order_mark_is_no_line_of_its_own(memory: Access) -> None:
    services.write_file(memory, FACTS, "\ufeff" + entry_text("mem_2026-01-01_aaaaaa"))

    lines = reads.blame(memory, FACTS).lines

    assert [line.text for line in lines] == reads.read_file(memory, FACTS).data.decode().splitlines()


# --- differences --------------------------------------------------------------------------------------------------


def test_a_file_that_went_and_came_back_does_not_differ(memory: Access) -> None:
    services.write_file(memory, "/a.md", "one\n")
    services.delete(memory, "/a.md")
    services.restore(memory, 1)

    assert reads.diff(memory, 1) == []
    assert [each.action for each in reads.diff(memory, 2)] == ["created"]
    assert changes(memory, 3)[0] == {"/a.md": "created"}


def test_only_a_line_feed_ends_a_line_of_a_difference(memory: Access) -> None:
    services.write_file(memory, "/a.md", "one\u2028two\rthree\n")
    services.write_file(memory, "/a.md", "one\u2028two\r3")

    (found,) = reads.diff(memory, 1)

    assert found.hunks[0].lines == ["-one\u2028two\rthree\n", "+one\u2028two\r3"]
    assert found.unified.endswith("+one\u2028two\r3\n\\ No newline at end of file\n")


def test_a_moved_file_is_compared_with_itself(memory: Access) -> None:
    services.write_file(memory, "/a.md", "one\ntwo\n")
    services.batch(memory, [MovePath("/a.md", "/b.md"), WriteFile("/b.md", "one\n2\n")])

    (found,) = reads.diff(memory, 1)

    assert (found.action, found.source, found.path) == ("moved", "/a.md", "/b.md")
    assert found.hunks[0].lines == [" one\n", "-two\n", "+2\n"]
    assert [each.action for each in reads.diff(memory, 1, path="/a.md")] == ["moved"]


def test_too_many_files_are_refused_and_not_cut(memory: Access) -> None:
    services.import_files(memory, [(f"/d/{number}.md", b"x") for number in range(1001)])

    with pytest.raises(TooLarge):
        reads.diff(memory, 0)
    assert len(reads.diff(memory, 0, path="/d/7.md")) == 1


def test_contents_without_a_line_in_common_are_compared_at_once() -> None:
    old, new = [b"a\n", b"b\n"] * 20_000, [b"b\n", b"a\n"] * 20_000

    assert differences(old, new)
    assert differences(old, old) == []
    assert lines_of(b"a\r\n\nb") == [b"a\r\n", b"\n", b"b"]


# --- what a revision changed --------------------------------------------------------------------------------------


def test_an_entry_that_moved_to_another_file_is_not_lost(memory: Access) -> None:
    entry = add(memory)
    services.move(memory, FACTS, "/memory/semantic_memory/rules.md")

    assert changes(memory, 2)[0][FACTS.replace("facts", "rules")] == "moved"
    assert actions(memory, entry.entry.entry_id) == [(1, "added"), (2, "moved")]


def test_a_superseded_entry_tells_its_whole_life(memory: Access) -> None:
    first = add(memory, "one").entry.entry_id
    second = add(memory, "two", supersedes=first).entry.entry_id
    services.edit_file(memory, FACTS, "two", "zwei")
    services.retire_entry(memory, second)
    services.restore_entry(memory, second, 2)

    versions = reads.entry_history(memory, second)

    assert [(v.revision.number, v.action, v.entry.entry_id) for v in versions] == [
        (1, "added", first),
        (2, "added", second),
        (2, "superseded", first),
        (3, "changed", second),
        (4, "removed", second),
        (5, "added", second),
    ]


def test_hidden_entries_are_hidden_in_history(memory: Access) -> None:
    hidden = add(memory, "canary", expires_at=in_days(0.5))
    shown = add(memory, "Berlin")
    days_pass(memory)

    assert changes(memory, 1) == ({"/memory/semantic_memory/index.md": "created"}, {})
    assert changes(memory, 2)[1] == {shown.entry.entry_id: "added"}
    assert all("canary" not in each.unified for each in reads.diff(memory, 0))
    assert all("canary" not in line.text for line in reads.blame(memory, FACTS).lines)
    with pytest.raises(FileNotFound):
        reads.diff(memory, 0, 1, path=FACTS)
    with pytest.raises(EntryNotFound):
        reads.entry_history(memory, hidden.entry.entry_id)


def test_a_folder_access_sees_an_entry_only_while_it_was_in_the_folder(memory: Access) -> None:
    entry = add(memory).entry.entry_id
    services.move(memory, FACTS, "/private/memory/facts.md")
    services.edit_file(memory, "/private/memory/facts.md", "Berlin", "canary")
    inside = replace(memory, prefix="/memory")

    assert actions(inside, entry) == [(1, "added"), (2, "removed")]
    assert [r.number for r in reads.list_revisions(inside).items] == [2, 1]
    with pytest.raises(RevisionNotFound):
        reads.get_revision(inside, 3)
    assert reads.list_revisions(inside, RevisionFilter(path="/private")).items == []


@pytest.mark.parametrize(
    ("statements", "read"),
    [
        pytest.param(2, lambda access: reads.list_revisions(access), id="revisions"),
        pytest.param(10, lambda access: reads.get_revision(access, 12), id="a revision"),
        pytest.param(12, lambda access: reads.diff(access, 11, 12), id="a difference of two files"),
        pytest.param(7, lambda access: reads.blame(access, FACTS), id="blame"),
    ],
)
def test_history_costs_what_changed_and_not_what_there_is(
    memory: Access,
    django_assert_max_num_queries: AssertNumQueries,
    statements: int,
    read: Callable[[Access], object],
) -> None:
    for number in range(12):
        add(memory, f"fact {number}")

    with django_assert_max_num_queries(statements + 2):  # begin and end of the test's inner transaction
        read(memory)


def test_a_batch_that_deletes_and_makes_a_file_changed_it(memory: Access) -> None:
    services.write_file(memory, "/a.md", "one\n")
    services.batch(memory, [DeletePath("/a.md"), WriteFile("/a.md", "two\n")])

    (found,) = reads.diff(memory, 1)

    assert (found.action, found.hunks[0].lines) == ("changed", ["-one\n", "+two\n"])
    assert revision(memory) == 2
