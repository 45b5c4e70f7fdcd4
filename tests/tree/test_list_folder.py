import pytest

from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.errors import FolderNotFound, NotFolder, RevisionNotFound
from tests.tree.support import access_to

pytestmark = pytest.mark.django_db


def names(access: Access, folder: str, revision: int | None = None) -> list[str]:
    return [each.path + "/" * each.is_dir for each in reads.list_folder(access, folder, revision=revision)]


@pytest.fixture
def filled(memory: Access) -> Access:
    files = [
        "/memory/a.md",
        "/memory/a/x.md",
        "/memory/a/deep/y.md",
        "/memory/a0",
        "/memory/.hidden",
        "/b.md",
    ]
    services.upload_files(memory, [(path, b"text\n") for path in files])
    return memory


def test_a_folder_lists_what_lies_right_below_it(filled: Access) -> None:
    assert names(filled, "/") == ["/b.md", "/memory/"]
    assert names(filled, "/memory/") == ["/memory/.hidden", "/memory/a.md", "/memory/a/", "/memory/a0"]
    assert names(filled, "memory/a") == ["/memory/a/deep/", "/memory/a/x.md"]


def test_files_have_sizes_and_times_and_folders_have_none(filled: Access) -> None:
    file, folder = (reads.list_folder(filled, "/memory")[n] for n in (1, 2))

    assert (file.path, file.size, file.lines, file.revision) == ("/memory/a.md", 5, 1, 1)
    assert file.created_at == file.modified_at is not None
    assert (folder.size, folder.lines, folder.modified_at) == (0, 0, None)


def test_the_root_of_an_empty_tree_lists(memory: Access) -> None:
    assert names(memory, "/") == []
    assert names(access_to(memory.tree.tenant, prefix="/memory"), "/memory") == []


def test_other_folders_that_are_not_there_are_refused(filled: Access) -> None:
    for folder in ("/missing", "/memory/a/x", "/mem"):
        with pytest.raises(FolderNotFound, match="path_not_found"):
            reads.list_folder(filled, folder)


def test_a_file_is_no_folder(filled: Access) -> None:
    with pytest.raises(NotFolder, match="not_a_directory"):
        reads.list_folder(filled, "/memory/a.md")


def test_a_folder_goes_with_its_last_file(filled: Access) -> None:
    services.delete(filled, "/memory/a/deep/y.md")

    assert names(filled, "/memory/a") == ["/memory/a/x.md"]
    assert names(filled, "/memory/a", revision=1) == ["/memory/a/deep/", "/memory/a/x.md"]


def test_only_the_part_that_is_open_is_listed(filled: Access) -> None:
    agent = access_to(filled.tree.tenant, prefix="/memory/a")

    assert names(agent, "/memory/a") == ["/memory/a/deep/", "/memory/a/x.md"]
    with pytest.raises(FolderNotFound):
        reads.list_folder(agent, "/other")


@pytest.mark.parametrize("number", [-1, 2, 10**6])
def test_a_revision_that_never_was_is_refused(filled: Access, number: int) -> None:
    with pytest.raises(RevisionNotFound, match=f"no revision {number}; the newest is 1"):
        reads.list_folder(filled, "/", revision=number)


def test_before_the_first_change_there_was_nothing(filled: Access) -> None:
    assert names(filled, "/", revision=0) == []
