import pytest

from memsvc.format import MemoryKind
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.errors import FileNotFound, Forbidden, IsFolder, PathTaken, RootRefused
from tests.tree.support import (
    FACTS,
    SEMANTIC_INDEX,
    access_to,
    add,
    contents,
    entry_text,
    paths,
    revisions,
    rows,
)

pytestmark = pytest.mark.django_db


def test_a_moved_file_keeps_its_content_and_its_entries(memory: Access) -> None:
    entry = add(memory).entry
    data = contents(memory)[FACTS]

    moved = services.move(memory, FACTS, "/memory/old/facts.md")

    assert (moved.source, moved.destination, moved.files) == (FACTS, "/memory/old/facts.md", 1)
    assert contents(memory)["/memory/old/facts.md"] == data
    read = reads.get_entry(memory, entry.entry_id)
    assert (read.path, read.revision) == ("/memory/old/facts.md", 1)


def test_the_past_stays_where_it_was(memory: Access) -> None:
    entry = add(memory).entry
    services.move(memory, FACTS, "/memory/facts.md")
    services.move(memory, "/memory/facts.md", "/memory/again.md")

    where = [reads.get_entry(memory, entry.entry_id, revision=n).path for n in (1, 2, 3)]

    assert where == [FACTS, "/memory/facts.md", "/memory/again.md"]
    assert [FACTS in paths(memory, n) for n in (1, 2, 3)] == [True, False, False]


def test_a_folder_moves_with_all_that_lies_under_it(memory: Access) -> None:
    for path in ("/x/a.md", "/x/y/b.md", "/x0"):
        services.write_file(memory, path, path)

    moved = services.move(memory, "/x", "/z/x")

    assert (moved.files, moved.revision) == (2, 4)
    assert contents(memory) == {"/x0": b"/x0", "/z/x/a.md": b"/x/a.md", "/z/x/y/b.md": b"/x/y/b.md"}


def test_the_index_row_moves_along_with_what_it_says(memory: Access) -> None:
    add(memory, summary="The seat", tags=("law",))

    services.move(memory, FACTS, "/memory/semantic_memory/seats.md")

    row = reads.read_index(memory, MemoryKind.SEMANTIC).rows[-1]
    assert (row.path, row.description, row.tags) == ("seats.md", "The seat", ("facts", "law"))


def test_a_row_moves_to_the_index_of_the_new_place(memory: Access) -> None:
    services.scaffold(memory)
    services.write_file(memory, "/memory/semantic_memory/team.md", "# The team\n")

    services.move(memory, "/memory/semantic_memory/team.md", "/memory/procedural_memory/team.md")

    assert "team.md" not in rows(memory, MemoryKind.SEMANTIC)
    assert rows(memory, MemoryKind.PROCEDURAL) == {"team.md": "The team"}


def test_a_file_that_comes_in_from_outside_is_described_by_its_heading(memory: Access) -> None:
    services.scaffold(memory)
    services.write_file(memory, "/drafts/team.md", "# The team\n")

    services.move(memory, "/drafts/team.md", "/memory/team.md")

    assert rows(memory)["team.md"] == "The team"


def test_a_file_that_becomes_an_index_gets_its_rows(memory: Access) -> None:
    services.write_file(memory, FACTS, "# Facts\n")
    services.write_file(memory, "/drafts/index.md", "# By hand\n")

    services.move(memory, "/drafts/index.md", SEMANTIC_INDEX)

    assert rows(memory, MemoryKind.SEMANTIC) == {"facts.md": "Facts"}
    assert contents(memory)[SEMANTIC_INDEX].startswith(b"# By hand\n")


def test_a_new_name_decides_anew_what_is_an_entry(memory: Access) -> None:
    services.write_file(memory, "/memory/notes.txt", entry_text("mem_a"))
    assert reads.list_entries(memory).items == []

    services.move(memory, "/memory/notes.txt", "/memory/notes.md")
    assert [each.entry.entry_id for each in reads.list_entries(memory).items] == ["mem_a"]

    services.move(memory, "/memory/notes.md", "/memory/.trash/notes.md")
    assert reads.list_entries(memory).items == []
    assert contents(memory) == {"/memory/.trash/notes.md": entry_text("mem_a").encode()}


def test_the_first_in_path_order_gets_the_id_of_a_duplicate(memory: Access) -> None:
    services.write_file(memory, "/memory/b.md", entry_text("mem_twice", "b"))
    services.write_file(memory, "/memory/c.md", entry_text("mem_twice", "c"))

    services.move(memory, "/memory/c.md", "/memory/a.md")

    assert reads.get_entry(memory, "mem_twice").entry.body == "c"


def test_a_file_in_the_way_is_replaced_only_when_asked(memory: Access) -> None:
    services.write_file(memory, "/a.md", "a\n")
    services.write_file(memory, "/b.md", "b\n")

    with pytest.raises(PathTaken):
        services.move(memory, "/a.md", "/b.md")
    services.move(memory, "/a.md", "/b.md", overwrite=True)

    assert contents(memory) == {"/b.md": b"a\n"}


def test_a_folder_never_replaces_anything(memory: Access) -> None:
    for path in ("/x/a.md", "/y", "/z/b.md"):
        services.write_file(memory, path, "text\n")

    with pytest.raises(PathTaken):
        services.move(memory, "/x", "/y", overwrite=True)
    with pytest.raises(IsFolder):
        services.move(memory, "/x", "/z", overwrite=True)
    with pytest.raises(IsFolder):
        services.move(memory, "/y", "/z", overwrite=True)


def test_a_folder_does_not_move_into_itself(memory: Access) -> None:
    services.write_file(memory, "/x/a.md", "text\n")

    with pytest.raises(PathTaken, match="into itself"):
        services.move(memory, "/x", "/x/y")


def test_moving_to_the_same_place_changes_nothing(memory: Access) -> None:
    services.write_file(memory, "/a.md", "text\n")

    moved = services.move(memory, "/a.md", "//a.md")

    assert (moved.files, moved.revision, revisions(memory)) == (0, 1, [1])


def test_neither_root_moves(memory: Access) -> None:
    services.write_file(memory, "/memory/a.md", "text\n")
    agent = access_to(memory.tree.tenant, prefix="/memory")

    for access, source, destination in (
        (memory, "/", "/x"),
        (memory, "/memory", "/"),
        (agent, "/memory", "/memory/x"),
        (agent, "/memory/a.md", "/memory"),
    ):
        with pytest.raises(RootRefused):
            services.move(access, source, destination)


@pytest.mark.parametrize(("source", "destination"), [("/memory/a.md", "/b.md"), ("/c.md", "/memory/b.md")])
def test_nothing_moves_out_of_or_into_the_part_that_is_open(
    memory: Access, source: str, destination: str
) -> None:
    services.write_file(memory, source, "text\n")
    agent = access_to(memory.tree.tenant, prefix="/memory")

    with pytest.raises(Forbidden):
        services.move(agent, source, destination)


def test_what_is_not_there_does_not_move(memory: Access) -> None:
    with pytest.raises(FileNotFound):
        services.move(memory, "/missing", "/b.md")
