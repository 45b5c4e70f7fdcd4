import pytest

from memsvc.format import InvalidPath, MemoryKind
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.errors import Forbidden, PathTaken
from tests.tree.support import FACTS, SEMANTIC_INDEX, access_to, add, contents, entry_text, revisions, rows

pytestmark = pytest.mark.django_db

INDEX = b"| File | Description | Tags | Updated |\n| --- | --- | --- | --- |\n| gone.md | was here | | |\n"


def test_every_file_arrives_byte_for_byte_in_one_revision(memory: Access) -> None:
    tree = {FACTS: b"\xef\xbb\xbf# Facts\r\n", SEMANTIC_INDEX: INDEX, "/a.bin": b"\0\xff"}

    result = services.import_files(memory, tree.items())

    assert [(each.path, each.outcome) for each in result.files] == [(path, "created") for path in tree]
    assert (contents(memory), revisions(memory)) == (tree, [1])


def test_what_is_there_already_is_unchanged(memory: Access) -> None:
    services.import_files(memory, [("/a.md", b"a"), ("/b.md", b"b"), ("/other.md", b"stays")])

    again = services.import_files(memory, [("/a.md", b"a"), ("/b.md", b"B"), ("/c.md", b"c")])

    assert [each.outcome for each in again.files] == ["unchanged", "changed", "created"]
    assert contents(memory)["/other.md"] == b"stays"


def test_the_same_import_twice_makes_no_revision(memory: Access) -> None:
    for _ in range(2):
        result = services.import_files(memory, [("/a.md", b"a")])

    assert (result.revision, revisions(memory)) == (1, [1])


def test_the_next_change_gives_imported_files_their_rows(memory: Access) -> None:
    services.import_files(
        memory, [(SEMANTIC_INDEX, INDEX), ("/memory/semantic_memory/team.md", b"# The team\n")]
    )

    add(memory, summary="A fact")

    assert rows(memory, MemoryKind.SEMANTIC) == {
        "facts.md": "A fact",
        "gone.md": "was here",
        "team.md": "The team",
    }


def test_imported_entries_keep_their_ids_and_duplicates_stay(memory: Access) -> None:
    files = {"/memory/a.md": entry_text("mem_twice", "a"), "/memory/b.md": entry_text("mem_twice", "b")}

    services.import_files(memory, [(path, text.encode()) for path, text in files.items()])

    assert reads.get_entry(memory, "mem_twice").path == "/memory/a.md"
    assert [each.path for each in reads.list_entries(memory, oldest_first=True).items] == list(files)


@pytest.mark.parametrize("bad", ["/../x", "/a.md/b"])
def test_one_bad_path_refuses_the_whole(memory: Access, bad: str) -> None:
    with pytest.raises((InvalidPath, PathTaken)):
        services.import_files(memory, [("/a.md", b"a"), (bad, b"x")])

    assert (contents(memory), revisions(memory)) == ({}, [])


def test_nothing_is_imported_outside_the_part_that_is_open(memory: Access) -> None:
    with pytest.raises(Forbidden):
        services.import_files(access_to(memory.tree.tenant, prefix="/memory"), [("/a.md", b"a")])
