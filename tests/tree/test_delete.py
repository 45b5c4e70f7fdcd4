import pytest

from memsvc.format import MemoryKind
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.commands import Precondition
from memsvc.tree.errors import (
    EntryNotFound,
    FileNotFound,
    FolderNeedsRecursive,
    FolderNotFound,
    Forbidden,
    PreconditionFailed,
    RootRefused,
)
from tests.tree.support import (
    FACTS,
    RULES,
    access_to,
    add,
    contents,
    entry_text,
    paths,
    revisions,
    rows,
    text,
)

pytestmark = pytest.mark.django_db


def test_a_deleted_file_is_gone_and_its_past_stays(memory: Access) -> None:
    services.write_file(memory, "/a.md", "text\n")
    services.write_file(memory, "/b.md", "text\n")

    deleted = services.delete(memory, "/a.md")

    assert (deleted.path, deleted.revision, deleted.files) == ("/a.md", 3, 1)
    assert paths(memory) == ["/b.md"]
    assert text(memory, "/a.md", revision=2) == "text\n"


def test_a_folder_goes_with_all_that_lies_under_it(memory: Access) -> None:
    for path in ("/x/a.md", "/x/y/b.md", "/x0", "/x.md"):
        services.write_file(memory, path, "text\n")

    deleted = services.delete(memory, "/x/")

    assert (deleted.files, paths(memory)) == (2, ["/x.md", "/x0"])
    with pytest.raises(FolderNotFound):
        reads.list_folder(memory, "/x")


def test_a_folder_is_deleted_only_recursively(memory: Access) -> None:
    services.write_file(memory, "/x/a.md", "text\n")

    with pytest.raises(FolderNeedsRecursive):
        services.delete(memory, "/x", recursive=False)

    assert services.delete(memory, "/x/a.md", recursive=False).files == 1


def test_its_entries_and_its_index_row_go_with_it(memory: Access) -> None:
    entry = add(memory, "A rule.", "rules").entry
    add(memory, "A fact.")

    services.delete(memory, RULES)

    with pytest.raises(EntryNotFound):
        reads.get_entry(memory, entry.entry_id)
    assert list(rows(memory, MemoryKind.SEMANTIC)) == ["facts.md"]
    assert reads.get_entry(memory, entry.entry_id, revision=2).path == RULES


def test_the_next_in_path_order_gets_the_id_of_a_duplicate(memory: Access) -> None:
    services.write_file(memory, "/memory/a.md", entry_text("mem_twice", "first"))
    services.write_file(memory, "/memory/b.md", entry_text("mem_twice", "second"))

    services.delete(memory, "/memory/a.md")

    assert reads.get_entry(memory, "mem_twice").entry.body == "second"


@pytest.mark.parametrize("path", ["/", "", "//", "."])
def test_the_root_is_not_deleted(memory: Access, path: str) -> None:
    services.write_file(memory, "/a.md", "text\n")

    with pytest.raises(RootRefused):
        services.delete(memory, path)

    assert paths(memory) == ["/a.md"]


def test_the_root_of_a_mount_is_not_deleted(memory: Access) -> None:
    services.write_file(memory, FACTS, "text\n")
    agent = access_to(memory.tree.tenant, prefix="/memory")

    with pytest.raises(RootRefused):
        services.delete(agent, "/memory/")
    with pytest.raises(Forbidden):
        services.delete(agent, "/other")

    assert FACTS in paths(memory)


def test_what_is_not_there_is_not_deleted(memory: Access) -> None:
    for recursive in (True, False):
        with pytest.raises(FileNotFound):
            services.delete(memory, "/missing", recursive=recursive)

    assert revisions(memory) == []


def test_it_deletes_only_what_the_caller_knew(memory: Access) -> None:
    services.write_file(memory, "/a.md", "text\n")

    with pytest.raises(PreconditionFailed):
        services.delete(memory, "/a.md", precondition=Precondition(if_match="0" * 64))

    assert contents(memory) == {"/a.md": b"text\n"}


def test_a_path_can_be_used_again(memory: Access) -> None:
    services.write_file(memory, "/a", "first\n")
    services.delete(memory, "/a")

    services.write_file(memory, "/a/b", "second\n")

    assert [contents(memory, n) for n in (1, 2, 3)] == [{"/a": b"first\n"}, {}, {"/a/b": b"second\n"}]
