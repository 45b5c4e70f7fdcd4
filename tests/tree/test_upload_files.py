import pytest

from memsvc.tree import services
from memsvc.tree.access import Access
from memsvc.tree.errors import ReadOnly
from memsvc.tree.files import MAX_FILE_BYTES
from tests.tree.support import access_to, contents, revisions

pytestmark = pytest.mark.django_db


def test_files_arrive_in_one_revision(memory: Access) -> None:
    verdicts = services.upload_files(memory, [("/a.md", b"a\n"), ("/b/c.png", b"\x89PNG\0")])

    assert [(each.path, each.error) for each in verdicts] == [("/a.md", None), ("/b/c.png", None)]
    assert contents(memory) == {"/a.md": b"a\n", "/b/c.png": b"\x89PNG\0"}
    assert revisions(memory) == [1]


def test_each_bad_file_has_its_verdict_and_the_others_arrive(memory: Access) -> None:
    services.write_file(memory, "/memory/folder/a.md", "text\n")
    agent = access_to(memory.tree.tenant, prefix="/memory")
    uploads = ["/memory/folder", "/memory/../x", "/outside.md", "/memory/folder/a.md/b", "/memory/good.md"]

    verdicts = services.upload_files(agent, [(path, b"x") for path in uploads])

    assert [each.path for each in verdicts] == uploads
    assert [each.error for each in verdicts[:3]] == ["is_directory", "invalid_path", "permission_denied"]
    assert "'/memory/folder/a.md' is a file" in str(verdicts[3].error)
    assert verdicts[4].error is None
    assert contents(memory).keys() == {"/memory/folder/a.md", "/memory/good.md"}


def test_a_file_that_is_too_large_leaves_nothing_behind(memory: Access) -> None:
    large = bytes(MAX_FILE_BYTES + 1)

    verdicts = services.upload_files(memory, [("/large.bin", large), ("/small.bin", b"x")])

    assert [each.error is None for each in verdicts] == [False, True]
    assert contents(memory) == {"/small.bin": b"x"}


def test_only_bad_files_make_no_revision(memory: Access) -> None:
    services.upload_files(memory, [("/../x", b"")])

    assert revisions(memory) == []


def test_the_last_of_two_with_one_path_counts(memory: Access) -> None:
    services.upload_files(memory, [("/a.md", b"first"), ("a.md", b"second")])

    assert contents(memory) == {"/a.md": b"second"}


def test_a_read_only_access_uploads_nothing(memory: Access) -> None:
    with pytest.raises(ReadOnly):
        services.upload_files(memory.read_only(), [("/a.md", b"")])
