import hashlib

import pytest

from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.errors import FileNotFound, IsFolder, RevisionNotFound
from tests.tree.support import FACTS, access_to, add

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "data", [b"", b"text", b"\xef\xbb\xbf\r\n\r", b"\0", b"\xff", b"x" * 70_000 + b"\n" + b"y" * 70_000]
)
def test_a_file_reads_back_whole(memory: Access, data: bytes) -> None:
    services.write_file(memory, "/a", data)

    read = reads.read_file(memory, "/a")

    assert (read.data, read.size, read.is_text) == (data, len(data), data != b"\xff")
    assert read.sha256 == read.etag == hashlib.sha256(data).hexdigest()


def test_any_revision_reads_as_it_was(memory: Access) -> None:
    for data in (b"one\n", b"\xff\0", b"one\ntwo\n", b""):
        services.write_file(memory, "/a.md", data)

    read = [reads.read_file(memory, "/a.md", revision=n) for n in (1, 2, 3, 4)]

    assert [each.data for each in read] == [b"one\n", b"\xff\0", b"one\ntwo\n", b""]
    assert [each.is_text for each in read] == [True, False, True, True]
    assert [each.revision for each in read] == [1, 2, 3, 4]


def test_what_was_not_there_yet_or_any_more_is_missing(memory: Access) -> None:
    services.write_file(memory, "/other", "x")
    services.write_file(memory, "/a", "x")
    services.delete(memory, "/a")

    for revision in (0, 1, 3, None):
        with pytest.raises(FileNotFound):
            reads.read_file(memory, "/a", revision=revision)
    with pytest.raises(RevisionNotFound):
        reads.read_file(memory, "/a", revision=4)


def test_a_folder_is_no_file(memory: Access) -> None:
    services.write_file(memory, "/x/y", "x")

    with pytest.raises(IsFolder):
        reads.read_file(memory, "/x")
    with pytest.raises(IsFolder):
        reads.stat(memory, "/x/")


def test_stat_says_what_the_listing_says(memory: Access) -> None:
    add(memory)

    assert [reads.stat(memory, FACTS)] == [
        each for each in reads.list_files(memory).items if each.path == FACTS
    ]
    with pytest.raises(FileNotFound):
        reads.stat(memory, "/missing")


def test_the_etag_of_a_read_is_good_for_a_write(memory: Access) -> None:
    add(memory)

    from memsvc.tree.commands import Precondition

    for etag in (reads.read_file(memory, FACTS).etag, reads.read_lines(memory, FACTS).etag):
        services.append_file(memory, FACTS, "", precondition=Precondition(if_match=etag))


def test_what_lies_outside_the_part_that_is_open_is_missing(memory: Access) -> None:
    services.write_file(memory, "/memoryx/a.md", "x")
    agent = access_to(memory.tree.tenant, prefix="/memory")

    for read in (reads.read_file, reads.stat, reads.read_lines):
        with pytest.raises(FileNotFound):
            read(agent, "/memoryx/a.md")
