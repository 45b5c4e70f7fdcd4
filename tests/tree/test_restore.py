from dataclasses import replace

import pytest

from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.errors import EntryNotFound, FileNotFound, Forbidden, PathTaken, ReadOnly, RevisionNotFound
from tests.tree.support import (
    FACTS,
    SEMANTIC_INDEX,
    add,
    contents,
    days_pass,
    entry_text,
    in_days,
    paths,
    revision,
    rows,
    text,
)

A, B = "mem_2026-01-01_aaaaaa", "mem_2026-01-02_bbbbbb"


def test_there_and_back_is_the_same_tree(memory: Access) -> None:
    services.scaffold(memory)
    add(memory, "Berlin", summary="seat")
    before = contents(memory)
    services.delete(memory, "/memory/semantic_memory")
    services.write_file(memory, "/memory/semantic_memory", "a file where the folder was")

    restored = services.restore(memory, 2)

    assert contents(memory) == before
    assert restored.revision == revision(memory) == 5
    assert services.restore(memory, 2).paths == []
    assert revision(memory) == 5


def test_a_folder_is_restored_and_nothing_beside_it(memory: Access) -> None:
    services.upload_files(memory, [("/a/1.md", b"1"), ("/a/2.md", b"2"), ("/ab.md", b"3")])
    services.upload_files(memory, [("/a/1.md", b"one"), ("/a/3.md", b"3"), ("/ab.md", b"three")])

    assert services.restore(memory, 1, path="/a").paths == ["/a/1.md", "/a/3.md"]
    assert contents(memory) == {"/a/1.md": b"1", "/a/2.md": b"2", "/ab.md": b"three"}


def test_a_file_in_the_way_of_a_restored_one_is_not_overwritten(memory: Access) -> None:
    services.write_file(memory, "/a/b.md", "one")
    services.move(memory, "/a/b.md", "/c.md")
    services.write_file(memory, "/a", "a file")

    with pytest.raises(PathTaken):
        services.restore(memory, 1, path="/a/b.md")


def test_what_has_expired_does_not_come_back(memory: Access) -> None:
    add(memory, "canary", expires_at=in_days(0.5))
    services.write_file(memory, "/a.md", "x")
    days_pass(memory)
    services.delete(memory, "/a.md")

    assert services.restore(memory, 2).paths == ["/a.md"]
    assert FACTS not in paths(memory)


def test_a_file_of_which_all_has_expired_is_left_alone(memory: Access) -> None:
    services.write_file(memory, "/a.md", "x")
    add(memory, "canary", expires_at=in_days(0.5))
    services.edit_file(memory, "/a.md", "x", "y")
    days_pass(memory)

    assert FACTS not in services.restore(memory, 1).paths


def test_an_entry_comes_back_in_its_place(memory: Access) -> None:
    services.write_file(
        memory, FACTS, "# Facts\n\n" + entry_text(A, "one") + "\n" + entry_text(B, "two").rstrip("\n")
    )
    services.write_file(memory, FACTS, "# Facts\n\n" + entry_text(B, "zwei") + "\n" + entry_text(A, "eins"))

    services.restore_entry(memory, B, 1)

    assert text(memory, FACTS) == "# Facts\n\n" + entry_text(B, "two") + "\n" + entry_text(A, "eins")
    assert [e.entry.entry_id for e in reads.list_entries(memory, oldest_first=True).items] == [A, B]


def test_a_superseded_entry_comes_back_as_one_that_holds(memory: Access) -> None:
    old = add(memory, "Berlin").entry.entry_id
    add(memory, "Bonn", supersedes=old)

    services.restore_entry(memory, old, 1)

    assert reads.get_entry(memory, old).entry.is_active


def test_an_entry_comes_back_with_its_file_and_its_row(memory: Access) -> None:
    entry = add(memory, "Berlin", summary="seat").entry.entry_id
    services.delete(memory, FACTS)

    assert services.restore_entry(memory, entry, 1).paths == [FACTS]
    assert reads.get_entry(memory, entry).entry.body == "Berlin"
    assert rows(memory, None) is not None
    assert "| facts.md |" in text(memory, SEMANTIC_INDEX)


def test_an_entry_with_bytes_that_are_no_text_comes_back(memory: Access) -> None:
    data = entry_text(A).encode() + b"\xff\n"
    services.write_file(memory, FACTS, data)
    services.delete(memory, FACTS)

    services.restore_entry(memory, A, 1)

    assert reads.read_file(memory, FACTS).data == data


def test_an_entry_out_of_sight_is_neither_found_nor_changed(memory: Access) -> None:
    entry = add(memory, "Berlin").entry.entry_id
    services.move(memory, FACTS, "/private/memory/facts.md")
    services.edit_file(memory, "/private/memory/facts.md", "Berlin", "canary")
    inside = replace(memory, prefix="/memory")

    with pytest.raises(EntryNotFound):
        services.restore_entry(inside, entry, 3)
    with pytest.raises(Forbidden):
        services.restore_entry(inside, entry, 1)
    assert "canary" in text(memory, "/private/memory/facts.md")


def test_a_restore_is_refused_where_nothing_stood_and_to_who_may_not_write(memory: Access) -> None:
    services.write_file(memory, "/a.md", "one")

    with pytest.raises(FileNotFound):
        services.restore(memory, 1, path="/none.md")
    with pytest.raises(RevisionNotFound):
        services.restore(memory, 2)
    with pytest.raises(ReadOnly):
        services.restore(memory.read_only(), 0)
    with pytest.raises(Forbidden):
        services.restore(replace(memory, prefix="/b"), 0, path="/a.md")
    assert services.restore(replace(memory, prefix="/b"), 0).paths == []
    assert revision(memory) == 1
