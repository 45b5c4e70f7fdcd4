from hashlib import sha256

import pytest

from memsvc.format import InvalidPath, InvalidText
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.commands import Precondition
from memsvc.tree.errors import Forbidden, IsFolder, PathTaken, PreconditionFailed, ReadOnly, TooLarge
from tests.tree.support import access_to, contents, entry_text, paths, revision, revisions, text

pytestmark = pytest.mark.django_db

NOTE = "/memory/notes.md"


def test_a_new_file_reads_back_as_it_was_written(memory: Access) -> None:
    written = services.write_file(memory, NOTE, "# Notes\r\n\r\nlast line")

    assert (written.created, written.changed, written.revision, written.size) == (True, True, 1, 20)
    assert reads.read_file(memory, NOTE).data == b"# Notes\r\n\r\nlast line"


def test_a_second_write_replaces_the_content(memory: Access) -> None:
    services.write_file(memory, NOTE, "first\n")

    written = services.write_file(memory, NOTE, "second\n")

    assert (written.created, written.changed, written.revision) == (False, True, 2)
    assert text(memory, NOTE) == "second\n"


def test_writing_what_is_there_already_makes_no_revision(memory: Access) -> None:
    first = services.write_file(memory, NOTE, "same\n")

    again = services.write_file(memory, NOTE, "same\n")

    assert (again.created, again.changed, again.revision, again.etag) == (False, False, 1, first.etag)
    assert revisions(memory) == [1]


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf# BOM\n", b"\r", "\u2028".encode(), b"\n\n"]
)
@pytest.mark.parametrize("path", [NOTE, "/memory/index.md", "/picture.png"])
def test_any_bytes_are_kept(memory: Access, path: str, data: bytes) -> None:
    services.write_file(memory, path, data)

    kept = contents(memory)[path]
    assert kept == data or (path == "/memory/index.md" and kept.startswith(data))


def test_an_empty_file_is_there(memory: Access) -> None:
    written = services.write_file(memory, NOTE, "")

    assert (written.created, written.size) == (True, 0)
    assert paths(memory) == [NOTE]


def test_every_spelling_of_a_path_is_one_file(memory: Access) -> None:
    services.write_file(memory, "memory//./e\u0301.md", "decomposed\n")

    written = services.write_file(memory, "/memory/\u00e9.md", "composed\n")

    assert not written.created
    assert contents(memory) == {"/memory/\u00e9.md": b"composed\n"}


@pytest.mark.parametrize("path", ["/", "", "/memory/../etc", "/a\0", "/a\nb", "/\ud800", "/" + "x" * 256])
def test_what_is_no_path_is_refused_before_anything_happens(memory: Access, path: str) -> None:
    with pytest.raises(InvalidPath):
        services.write_file(memory, path, "text")

    assert revisions(memory) == []


def test_half_a_surrogate_pair_is_refused(memory: Access) -> None:
    with pytest.raises(InvalidText):
        services.write_file(memory, NOTE, "a \ud800 b")


def test_a_folder_cannot_become_a_file(memory: Access) -> None:
    services.write_file(memory, "/a/b.md", "below\n")

    with pytest.raises(IsFolder):
        services.write_file(memory, "/a", "file\n")


def test_nothing_can_lie_below_a_file(memory: Access) -> None:
    services.write_file(memory, "/a", "file\n")

    with pytest.raises(PathTaken, match="'/a' is a file"):
        services.write_file(memory, "/a/b/c.md", "below\n")


def test_names_that_only_begin_alike_are_no_folders(memory: Access) -> None:
    for path in ("/a", "/a.md", "/a!", "/a0", "/ab/c"):
        services.write_file(memory, path, "x")

    assert paths(memory) == ["/a", "/a!", "/a.md", "/a0", "/ab/c"]


def test_a_file_over_the_limit_is_refused_whole(memory: Access) -> None:
    with pytest.raises(TooLarge):
        services.write_file(memory, NOTE, b"x" * (32 * 1024 * 1024 + 1))

    assert paths(memory) == []


def test_it_is_written_only_over_what_the_caller_knew(memory: Access) -> None:
    known = services.write_file(memory, NOTE, "first\n")
    services.write_file(memory, NOTE, "by somebody else\n")

    with pytest.raises(PreconditionFailed) as refused:
        services.write_file(memory, NOTE, "mine\n", precondition=Precondition(if_match=known.etag))

    current = reads.read_file(memory, NOTE)
    assert (refused.value.revision, refused.value.etag, current.data) == (
        2,
        current.etag,
        b"by somebody else\n",
    )
    services.write_file(memory, NOTE, "mine\n", precondition=Precondition(if_match=current.sha256))
    assert text(memory, NOTE) == "mine\n"


def test_if_none_match_writes_only_a_new_file(memory: Access) -> None:
    new = Precondition(if_none_match_any=True)
    services.write_file(memory, NOTE, "first\n", precondition=new)

    with pytest.raises(PreconditionFailed):
        services.write_file(memory, NOTE, "second\n", precondition=new)

    assert text(memory, NOTE) == "first\n"


@pytest.mark.parametrize("etag", ["*", "0" * 64])
def test_if_match_wants_something_to_be_there(memory: Access, etag: str) -> None:
    with pytest.raises(PreconditionFailed) as refused:
        services.write_file(memory, NOTE, "text", precondition=Precondition(if_match=etag))

    assert (refused.value.etag, refused.value.revision) == (None, 0)


def test_nothing_is_written_outside_the_part_that_is_open(memory: Access, alice: object) -> None:
    agent = access_to(memory.tree.tenant, prefix="/memory")

    for path in ("/memoryx/a.md", "/a.md", "/memory.md"):
        with pytest.raises(Forbidden):
            services.write_file(agent, path, "text")

    assert services.write_file(agent, "/memory/a.md", "text").created
    assert paths(memory) == ["/memory/a.md"]


def test_a_read_only_access_writes_nothing(memory: Access) -> None:
    with pytest.raises(ReadOnly):
        services.write_file(memory.read_only(), NOTE, "text")

    assert revision(memory) == 0


def test_a_small_change_of_a_large_note_keeps_the_rest_of_its_rows(memory: Access) -> None:
    lines = [f"line {n} of a long note\n" for n in range(20_000)]
    services.write_file(memory, NOTE, "".join(lines))
    lines[10_000] = "another line\n"

    services.write_file(memory, NOTE, "".join(lines))

    from memsvc.tree.models import Block

    new = Block.objects.of(memory.tree).filter(added_in=2)
    assert sum(block.size for block in new) <= 64 * 1024
    assert text(memory, NOTE) == "".join(lines)


def test_ids_and_paths_that_no_index_could_hold_are_text_like_any_other(memory: Access) -> None:
    endless = "".join(sha256(bytes([n])).hexdigest() for n in range(100))
    head = "| File | Description | Tags | Updated |\n| --- | --- | --- | --- |\n"
    files = {
        "/memory/index.md": f"# Index\n\n{head}| {endless} | | | |\n",
        "/memory/note.md": entry_text(endless),
    }
    for path, body in files.items():
        services.write_file(memory, path, body)

    assert text(memory, "/memory/note.md") == files["/memory/note.md"]
    assert set(files["/memory/index.md"].splitlines()) <= set(text(memory, "/memory/index.md").splitlines())
