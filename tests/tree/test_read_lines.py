import pytest

from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.errors import FileNotFound, OffsetBeyondEnd
from tests.tree.support import FACTS, SEMANTIC_INDEX, add, entry_text, text

pytestmark = pytest.mark.django_db

NOTE = "/memory/notes.md"


def test_a_window_has_its_lines_and_says_where_to_go_on(memory: Access) -> None:
    services.write_file(memory, NOTE, "one\r\ntwo\rthree\nfour")

    page = reads.read_lines(memory, NOTE, offset=1, limit=2)

    assert (page.text, page.start_line, page.end_line) == ("two\nthree\n", 2, 3)
    assert (page.total_lines, page.next_offset, page.size) == (4, 3, 19)


def test_the_end_has_no_next_offset(memory: Access) -> None:
    services.write_file(memory, NOTE, "one\ntwo\n")

    assert reads.read_lines(memory, NOTE, limit=2).next_offset is None
    assert reads.read_lines(memory, NOTE).text == "one\ntwo\n"


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_windows_put_together_are_the_file(memory: Access, limit: int) -> None:
    services.write_file(memory, FACTS, "# Facts\r\n\r\nfree\x0btext\u2028here\rand there\n")
    for n in range(5):
        add(
            memory,
            f"entry {n}\n\nwith lines",
            supersedes=reads.list_entries(memory).items[0].entry.entry_id if n else None,
        )

    parts: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = reads.read_lines(memory, FACTS, offset=offset, limit=limit)
        parts.append(page.text)
        offset = page.next_offset

    assert "".join(parts) == text(memory, FACTS).replace("\r\n", "\n").replace("\r", "\n")


@pytest.mark.parametrize(("offset", "total"), [(2, 2), (3, 2), (10**9, 2)])
def test_an_offset_beyond_the_end_is_refused(memory: Access, offset: int, total: int) -> None:
    services.write_file(memory, NOTE, "one\ntwo")

    with pytest.raises(
        OffsetBeyondEnd, match=rf"^Line offset {offset} exceeds file length \({total} lines\)$"
    ):
        reads.read_lines(memory, NOTE, offset=offset)


@pytest.mark.parametrize("limit", [0, -1])
def test_no_lines_are_what_was_asked_for(memory: Access, limit: int) -> None:
    services.write_file(memory, NOTE, "one\ntwo")

    page = reads.read_lines(memory, NOTE, limit=limit)

    assert (page.no_lines_requested, page.text, page.total_lines) == (True, "", None)


def test_a_negative_offset_is_the_beginning(memory: Access) -> None:
    services.write_file(memory, NOTE, "one\ntwo")

    assert reads.read_lines(memory, NOTE, offset=-5, limit=1).text == "one\n"


@pytest.mark.parametrize("blank", ["", "\n", " \r\n\t\n", "\ufeff"])
def test_blank_content_comes_whole(memory: Access, blank: str) -> None:
    services.write_file(memory, NOTE, blank)

    page = reads.read_lines(memory, NOTE, offset=7, limit=0)

    assert (page.text, page.start_line, page.total_lines, page.next_offset) == (blank, None, None, None)


def test_a_byte_order_mark_above_an_entry_is_no_line_of_its_own(memory: Access) -> None:
    services.write_file(memory, FACTS, "\ufeff" + entry_text("mem_a"))

    pages = [reads.read_lines(memory, FACTS, offset=n, limit=1) for n in (0, 1, 6)]

    assert [page.text for page in pages] == ["\ufeff---\n", "id: mem_a\n", "A body.\n"]
    assert pages[0].total_lines == reads.stat(memory, FACTS).lines == 7


def test_a_byte_order_mark_elsewhere_is_a_line(memory: Access) -> None:
    services.scaffold(memory)
    services.append_file(memory, SEMANTIC_INDEX, "\ufeff")

    assert reads.stat(memory, SEMANTIC_INDEX).lines == len(text(memory, SEMANTIC_INDEX).splitlines())


def test_a_blank_window_is_no_blank_file(memory: Access) -> None:
    services.write_file(memory, NOTE, "\n" * 100 + "last\n")

    assert reads.read_lines(memory, NOTE, limit=2).text == "\n\n"


def test_content_that_is_no_text_comes_whole_as_bytes(memory: Access) -> None:
    services.write_file(memory, NOTE, b"\xff\n\xfe\n")

    page = reads.read_lines(memory, NOTE, offset=1, limit=1)

    assert (page.binary, page.text, page.total_lines) == (b"\xff\n\xfe\n", "", None)


def test_a_file_is_text_or_not_as_of_its_revision(memory: Access) -> None:
    for data in (b"text\n", b"\xff\n", b"text again\n"):
        services.write_file(memory, NOTE, data)

    pages = [reads.read_lines(memory, NOTE, revision=n) for n in (1, 2, 3)]

    assert [(page.text, page.binary) for page in pages] == [
        ("text\n", None),
        ("", b"\xff\n"),
        ("text again\n", None),
    ]


def test_a_folder_and_nothing_are_no_files(memory: Access) -> None:
    services.write_file(memory, "/x/y", "text")

    for path in ("/x", "/missing"):
        with pytest.raises(FileNotFound):
            reads.read_lines(memory, path)


@pytest.mark.parametrize("huge", [2**31, 2**63 - 1, 10**30])
def test_numbers_beyond_every_file_are_taken_for_what_they_mean(memory: Access, huge: int) -> None:
    services.write_file(memory, "/a.txt", "one\ntwo\n")

    assert reads.read_lines(memory, "/a.txt", offset=1, limit=huge).text == "two\n"
    with pytest.raises(OffsetBeyondEnd, match=str(huge)):
        reads.read_lines(memory, "/a.txt", offset=huge, limit=huge)
