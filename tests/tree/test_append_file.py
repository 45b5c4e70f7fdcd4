import pytest

from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.commands import Precondition
from memsvc.tree.errors import PreconditionFailed
from tests.tree.support import FACTS, add, contents, entry_text, revisions

pytestmark = pytest.mark.django_db

NOTE = "/memory/notes.md"


def test_text_goes_right_behind_what_is_there(memory: Access) -> None:
    services.write_file(memory, NOTE, b"no line end")

    written = services.append_file(memory, NOTE, " and more\r\n")

    assert (written.created, written.changed, written.size) == (False, True, 22)
    assert contents(memory)[NOTE] == b"no line end and more\r\n"


def test_a_missing_file_is_made(memory: Access) -> None:
    assert services.append_file(memory, NOTE, "first\n").created


def test_appending_nothing_changes_nothing(memory: Access) -> None:
    services.write_file(memory, NOTE, "text\n")

    assert not services.append_file(memory, NOTE, "").changed
    assert revisions(memory) == [1]


def test_bytes_that_are_no_text_stay_in_front(memory: Access) -> None:
    services.write_file(memory, NOTE, b"\xff\0")

    services.append_file(memory, NOTE, "text")

    assert contents(memory)[NOTE] == b"\xff\0text"


def test_an_entry_in_the_appended_text_is_an_entry(memory: Access) -> None:
    first = add(memory).entry

    services.append_file(memory, FACTS, "\n" + entry_text("mem_by_hand", "By hand."))

    assert reads.get_entry(memory, "mem_by_hand").entry.body == "By hand."
    assert reads.get_entry(memory, first.entry_id).revision == 1


def test_it_appends_only_to_what_the_caller_knew(memory: Access) -> None:
    services.write_file(memory, NOTE, "text\n")

    with pytest.raises(PreconditionFailed):
        services.append_file(memory, NOTE, "more", precondition=Precondition(if_match="f" * 64))
