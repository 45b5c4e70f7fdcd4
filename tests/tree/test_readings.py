"""How often the text of an entry is read, and the blocks of a file are, while they are stored."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BytesIO
from types import CodeType, FrameType
from typing import Any
from zipfile import ZipFile

from django.db import connection
from django.test.utils import CaptureQueriesContext

from memsvc.format import MemoryCategory, MemoryEntry, cut_file
from memsvc.format.documents import compose_block
from memsvc.format.entries import read_entry
from memsvc.format.fences import structure
from memsvc.transfer.imports import import_zip
from memsvc.tree import services
from memsvc.tree.access import Access
from memsvc.tree.arrivals import ExternalEntry
from memsvc.tree.drafts import SuccessorDraft
from memsvc.tree.operations import AddEntry
from tests.tree.support import FACTS, add, draft, entry_text


@contextmanager
def calls(*functions: Callable[..., Any]) -> Iterator[Counter[str]]:
    """How often each of these functions is called inside."""
    counted: dict[CodeType, str] = {function.__code__: function.__name__ for function in functions}
    found = Counter[str]()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (name := counted.get(frame.f_code)):
            found[name] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield found
    finally:
        sys.setprofile(before)


def test_the_text_of_an_added_entry_is_read_once(memory: Access) -> None:
    add(memory, "The first one.")
    with calls(read_entry, cut_file) as found:
        add(memory, "The second one.", summary="Said", metadata={"ticket": "A-1"})

    assert found == {"read_entry": 1}


def test_the_text_of_a_successor_is_composed_and_read_once(memory: Access) -> None:
    """Whatever it takes from the entry before it; the line that retires that one is put into it as it stands."""
    for made in (
        lambda old: services.supersede_entry(memory, old, SuccessorDraft(body="It is not.")),
        lambda old: services.add_entry(memory, draft("It is not.", supersedes=old)),
        lambda old: services.add_entry(memory, draft("No.", supersedes=old, summary=None, metadata=None)),
        lambda old: services.batch(memory, [AddEntry(draft("No.", supersedes=old, summary=None))]),
    ):
        old = add(memory, "It is so.", summary="So", metadata={"ticket": "A-1"}).entry.entry_id
        with calls(compose_block, cut_file) as found:
            made(old)

        assert found == {"compose_block": 1}


def test_a_file_of_an_import_is_cut_once(memory: Access) -> None:
    archive = BytesIO()
    with ZipFile(archive, "w") as made:
        for name in ("facts", "rules"):
            text = "".join(entry_text(f"mem_{name}_{n}") + "\n" for n in range(20))
            made.writestr(f"memory/semantic_memory/{name}.md", text)
    with calls(read_entry) as read:
        import_zip(memory, archive)
    with calls(structure) as cut:
        import_zip(memory, archive, dry_run=True)

    assert (read, cut) == ({"read_entry": 40}, {"structure": 2})


def test_an_edit_reads_the_blocks_of_its_file_once(memory: Access) -> None:
    services.write_file(memory, FACTS, "".join(entry_text(f"mem_{n}") + "\n" for n in range(20)))
    for change in (
        lambda: services.edit_file(memory, FACTS, "id: mem_7\n", "id: mem_seven\n"),
        lambda: services.append_file(memory, FACTS, "\nAnd more.\n"),
        lambda: services.undo(memory, revision=2),
    ):
        with CaptureQueriesContext(connection) as sent:
            change()

        whole = [
            sql for each in sent if (sql := each["sql"]).endswith('ORDER BY "tree_block"."position" ASC')
        ]
        assert len([sql for sql in whole if '"removed_in" IS NULL' in sql and 'added_in" <=' not in sql]) == 1


def test_an_entry_of_an_import_is_composed_and_read_once(memory: Access) -> None:
    entry = MemoryEntry("mem_1", datetime(2026, 1, 1, tzinfo=UTC), MemoryCategory.FACTS, "It rains.")
    with calls(read_entry, cut_file) as found:
        services.import_files(memory, entries=[ExternalEntry(FACTS, entry, metadata={"ticket": "A-1"})])

    assert found["read_entry"] == 1
