from dataclasses import replace

import pytest

from memsvc.format import InvalidText
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.errors import ReadOnly, RevisionNotFound, UndoRefused
from memsvc.tree.history.undo import merge
from memsvc.tree.operations import DeletePath, MovePath, WriteFile
from tenants.actors import Actor, ActorKind
from tests.tree.support import FACTS, SEMANTIC_INDEX, add, contents, paths, revision, text

OTHER = Actor(ActorKind.KEY, "other", "another agent")


def test_what_others_did_stays(memory: Access) -> None:
    services.write_file(memory, "/a.md", "1\n2\n3\n4\n5\n")
    services.edit_file(memory, "/a.md", "2\n", "two\nzwei\n")
    services.edit_file(memory, "/a.md", "4\n", "")
    services.append_file(memory, "/a.md", "6\n")

    undone = services.undo(memory, revision=2)

    assert (undone.undone, undone.paths, undone.conflicts) == ([2], ["/a.md"], [])
    assert text(memory, "/a.md") == "1\n2\n3\n5\n6\n"


def test_an_entry_that_was_added_goes_and_the_next_one_stays(memory: Access) -> None:
    first = add(memory, "one").entry.entry_id
    second = add(memory, "two", supersedes=first).entry.entry_id
    third = add(memory, "three").entry.entry_id

    services.undo(memory, revision=2)

    found = reads.list_entries(memory, oldest_first=True).items
    assert [each.entry.entry_id for each in found] == [first, third]
    assert second not in text(memory, FACTS)


def test_a_deleted_folder_comes_back_with_its_index(memory: Access) -> None:
    services.scaffold(memory)
    add(memory)
    before = contents(memory)
    services.delete(memory, "/memory/semantic_memory")

    services.undo(memory, revision=3)

    assert contents(memory) == before


def test_an_index_that_was_written_by_hand_is_undone_too(memory: Access) -> None:
    services.scaffold(memory)
    before = text(memory, SEMANTIC_INDEX)
    services.write_file(memory, SEMANTIC_INDEX, "spam\n")

    services.undo(memory, revision=2)

    assert text(memory, SEMANTIC_INDEX) == before


def test_a_file_made_where_a_folder_was_goes_before_the_folder_comes_back(memory: Access) -> None:
    services.write_file(memory, "/a", "file")
    services.batch(memory, [DeletePath("/a"), WriteFile("/a/b.md", "below"), WriteFile("/0.md", "x")])

    services.undo(memory, revision=2)

    assert contents(memory) == {"/a": b"file"}


def test_moves_are_taken_back_in_whichever_order_there_is_room(memory: Access) -> None:
    services.upload_files(memory, [("/a.md", b"a"), ("/b.md", b"b"), ("/c.md", b"c")])
    before = contents(memory)
    services.batch(
        memory, [MovePath("/c.md", "/d.md"), MovePath("/b.md", "/c.md"), MovePath("/a.md", "/b.md")]
    )

    services.undo(memory, revision=2)

    assert contents(memory) == before


def test_an_overwriting_move_brings_both_files_back(memory: Access) -> None:
    services.upload_files(memory, [("/a.md", b"a"), ("/b.md", b"b")])
    services.move(memory, "/a.md", "/b.md", overwrite=True)

    services.undo(memory, revision=2)

    assert contents(memory) == {"/a.md": b"a", "/b.md": b"b"}


def test_a_file_moved_out_of_the_memory_is_one_of_entries_again(memory: Access) -> None:
    entry = add(memory).entry.entry_id
    services.move(memory, FACTS, "/memory/semantic_memory/facts.txt")

    services.undo(memory, revision=2)

    assert reads.get_entry(memory, entry).path == FACTS


def test_what_an_actor_did_from_a_revision_on_is_undone(memory: Access) -> None:
    other = replace(memory, actor=OTHER)
    services.write_file(other, "/a.md", "one\n")
    services.write_file(memory, "/b.md", "mine\n")
    services.append_file(other, "/a.md", "two\n")
    services.append_file(other, "/b.md", "theirs\n")
    services.delete(other, "/a.md")

    undone = services.undo(memory, actor="other", since=2)

    assert undone.undone == [5, 4, 3]
    assert contents(memory) == {"/a.md": b"one\n", "/b.md": b"mine\n"}


def test_what_is_undone_already_is_no_conflict(memory: Access) -> None:
    services.write_file(memory, "/a.md", "one\n")
    services.delete(memory, "/a.md")
    services.write_file(memory, "/b.md", "x")

    assert services.undo(memory, revision=1).conflicts == []
    services.restore(memory, 1, path="/a.md")
    assert services.undo(memory, revision=2).conflicts == []
    assert contents(memory) == {"/a.md": b"one\n", "/b.md": b"x"}


def test_a_refused_undo_changes_nothing(memory: Access) -> None:
    services.batch(memory, [WriteFile("/a.md", "a"), WriteFile("/b.md", "b")])
    services.write_file(memory, "/b.md", "changed")

    with pytest.raises(UndoRefused) as refused:
        services.undo(memory, revision=1)
    dry_run = services.undo(memory, revision=1, dry_run=True)

    assert [conflict.path for conflict in refused.value.conflicts] == ["/b.md"]
    assert (dry_run.paths, dry_run.conflicts) == (["/a.md"], refused.value.conflicts)
    assert (paths(memory), revision(memory)) == (["/a.md", "/b.md"], 2)
    assert services.undo(memory, revision=1, skip_conflicts=True).paths == ["/a.md"]
    assert paths(memory) == ["/b.md"]


def test_an_undo_can_be_undone(memory: Access) -> None:
    services.write_file(memory, "/a.md", "one\n")
    services.write_file(memory, "/a.md", "two\n")
    services.undo(memory, revision=2)

    services.undo(memory, revision=3)

    assert text(memory, "/a.md") == "two\n"


def test_an_undo_is_within_the_folder_of_the_access(memory: Access) -> None:
    services.batch(memory, [WriteFile("/in/a.md", "a"), WriteFile("/out/b.md", "b")])
    inside = replace(memory, prefix="/in")

    assert services.undo(inside, revision=1).paths == ["/in/a.md"]
    assert paths(memory) == ["/out/b.md"]
    with pytest.raises(ReadOnly):
        services.undo(memory.read_only(), revision=1)
    with pytest.raises(RevisionNotFound):
        services.undo(memory, revision=9)
    with pytest.raises(InvalidText):
        services.undo(memory, revision=1, actor="other")


@pytest.mark.parametrize(("source", "destination"), [("/out/a.md", "/in/a.md"), ("/in/a.md", "/out/a.md")])
def test_a_move_across_the_edge_of_the_access_is_a_conflict_and_loses_nothing(
    memory: Access, source: str, destination: str
) -> None:
    services.write_file(memory, source, "kept\n")
    services.move(memory, source, destination)

    undone = services.undo(replace(memory, prefix="/in"), revision=2, skip_conflicts=True)

    assert [conflict.revision for conflict in undone.conflicts] == [2]
    assert contents(memory) == {destination: b"kept\n"}


@pytest.mark.parametrize(
    ("base", "other", "current", "merged"),
    [
        (b"a\nb\nc\n", b"a\nc\n", b"a\nb\nc\nd\n", b"a\nc\nd\n"),
        (b"a\nb\n", b"a\nB\n", b"A\nb\n", b"A\nB\n"),
        (b"a\nb\n", b"a\nB\n", b"a\nX\n", None),
        (b"a\nb\n", b"a", b"a\nb\nc\n", None),
        (b"a\n", b"a\nx\n", b"a\ny\n", None),
        (b"a\nb\nc\n", b"c\n", b"a\nb\nc\n", b"c\n"),
    ],
)
def test_changes_of_other_lines_are_merged(
    base: bytes, other: bytes, current: bytes, merged: bytes | None
) -> None:
    assert merge(base, other, current) == merged
