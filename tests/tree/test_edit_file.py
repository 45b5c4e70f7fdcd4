import pytest

from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.commands import Precondition
from memsvc.tree.errors import (
    EmptyOldString,
    FileNotFound,
    NotText,
    PreconditionFailed,
    StringNotFound,
    StringNotUnique,
)
from tests.tree.support import FACTS, add, contents, revisions, text

pytestmark = pytest.mark.django_db

NOTE = "/memory/notes.md"


def test_an_edit_replaces_one_piece_and_nothing_else(memory: Access) -> None:
    services.write_file(memory, NOTE, b"\xef\xbb\xbfone\r\ntwo\nthree\r\nfour \xe2\x80\xa8 five")

    edited = services.edit_file(memory, NOTE, "three", "3")

    assert (edited.revision, edited.occurrences) == (2, 1)
    assert contents(memory)[NOTE] == b"\xef\xbb\xbfone\r\ntwo\n3\r\nfour \xe2\x80\xa8 five"


def test_line_ends_match_whatever_their_form(memory: Access) -> None:
    services.write_file(memory, NOTE, b"a\r\nb\r\nc\r\n")

    services.edit_file(memory, NOTE, "a\nb\n", "a\nB\n")

    assert contents(memory)[NOTE] == b"a\r\nB\r\nc\r\n"


def test_all_pieces_are_replaced_when_asked(memory: Access) -> None:
    services.write_file(memory, NOTE, "x y x y x\n")

    edited = services.edit_file(memory, NOTE, "x", "zz", replace_all=True)

    assert (edited.occurrences, text(memory, NOTE)) == (3, "zz y zz y zz\n")


def test_a_piece_that_stands_there_twice_is_refused(memory: Access) -> None:
    services.write_file(memory, NOTE, "x y x\n")

    with pytest.raises(StringNotUnique) as refused:
        services.edit_file(memory, NOTE, "x", "z")

    assert refused.value.occurrences == 2
    assert str(refused.value) == (
        "Error: String 'x' appears 2 times in file. Use replace_all=True to replace all instances, "
        "or provide a more specific string with surrounding context."
    )
    assert revisions(memory) == [1]


def test_a_piece_that_is_not_there_is_refused(memory: Access) -> None:
    services.write_file(memory, NOTE, "text\n")

    with pytest.raises(StringNotFound, match=r"^Error: String not found in file: 'missing'$"):
        services.edit_file(memory, NOTE, "missing", "found")


def test_a_line_end_that_the_file_lacks_is_named(memory: Access) -> None:
    services.write_file(memory, NOTE, "last line")

    with pytest.raises(StringNotFound, match="the file does not end with a newline"):
        services.edit_file(memory, NOTE, "last line\n", "x\n")


def test_an_empty_piece_is_refused(memory: Access) -> None:
    services.write_file(memory, NOTE, "")

    with pytest.raises(EmptyOldString, match=r"^Error: old_string cannot be empty"):
        services.edit_file(memory, NOTE, "", "text")


def test_bytes_that_are_no_text_are_not_edited(memory: Access) -> None:
    services.write_file(memory, "/a.bin", b"\xff text")

    with pytest.raises(NotText):
        services.edit_file(memory, "/a.bin", "text", "x")


def test_text_with_a_nul_is_edited(memory: Access) -> None:
    services.write_file(memory, NOTE, b"before \0 after\n")

    services.edit_file(memory, NOTE, "before", "then")

    assert contents(memory)[NOTE] == b"then \0 after\n"


def test_a_missing_file_is_not_edited(memory: Access) -> None:
    services.write_file(memory, "/folder/a.md", "text")

    for path in ("/missing.md", "/folder"):
        with pytest.raises(FileNotFound):
            services.edit_file(memory, path, "a", "b")


def test_it_edits_only_what_the_caller_knew(memory: Access) -> None:
    known = services.write_file(memory, NOTE, "text\n").etag
    services.append_file(memory, NOTE, "more\n")

    with pytest.raises(PreconditionFailed):
        services.edit_file(memory, NOTE, "text", "x", precondition=Precondition(if_match=known))


def test_replacing_a_piece_by_itself_makes_no_revision(memory: Access) -> None:
    services.write_file(memory, NOTE, "text\n")

    edited = services.edit_file(memory, NOTE, "text", "text")

    assert (edited.revision, edited.occurrences, revisions(memory)) == (1, 1, [1])


def test_an_entry_changed_by_hand_is_found_as_it_reads_now(memory: Access) -> None:
    entry = add(memory, "The seat is Bonn.").entry
    other = add(memory, "Untouched.").entry

    services.edit_file(memory, FACTS, "Bonn", "Berlin")

    assert reads.get_entry(memory, entry.entry_id).entry.body == "The seat is Berlin."
    assert reads.get_entry(memory, entry.entry_id).revision == 3
    assert reads.get_entry(memory, other.entry_id).revision == 2
    assert [hit.entry.entry_id for hit in reads.search_entries(memory, "berlin").items] == [entry.entry_id]
    assert reads.search_entries(memory, "bonn").items == []


def test_a_supersession_taken_out_by_hand_is_undone(memory: Access) -> None:
    old = add(memory, "old").entry
    new = add(memory, "new", supersedes=old.entry_id).entry

    services.edit_file(memory, FACTS, f"superseded_by: {new.entry_id}\n", "")

    assert reads.get_entry(memory, old.entry_id).entry.is_active
    assert not reads.get_entry(memory, old.entry_id, revision=2).entry.is_active
    assert reads.get_entry(memory, old.entry_id, revision=1).entry.is_active
