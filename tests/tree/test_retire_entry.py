from datetime import UTC, datetime

import pytest

from memsvc.format import MemoryCategory, MemoryEntry, MemoryKind, parse_entries
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.arrivals import ExternalEntry
from memsvc.tree.commands import Precondition
from memsvc.tree.errors import EntryNotFound, Forbidden, PreconditionFailed, ReadOnly
from tests.tree.support import FACTS, access_to, add, contents, entry_text, paths, revisions, rows, text

pytestmark = pytest.mark.django_db

OPEN = "---\nid: mem_open\ncreated: 2026-01-01\ncategory: facts\n"


def test_a_retired_entry_leaves_its_file_and_stays_in_the_past(memory: Access) -> None:
    services.write_file(memory, FACTS, "# Facts\n")
    first, second = add(memory, "first").entry, add(memory, "second").entry

    retired = services.retire_entry(memory, first.entry_id)

    assert (retired.entry_id, retired.path, retired.revision) == (first.entry_id, FACTS, 4)
    assert "first" not in text(memory, FACTS)
    assert [each.entry for each in reads.list_entries(memory).items] == [second]
    assert reads.get_entry(memory, first.entry_id, revision=3).entry == first


def test_the_rest_of_the_file_keeps_its_bytes(memory: Access) -> None:
    before, middle, after = "# Facts\r\n", "\n" + entry_text("mem_a"), "\r\n" + entry_text("mem_b")
    services.write_file(memory, FACTS, before + middle + after)

    services.retire_entry(memory, "mem_a")

    assert contents(memory)[FACTS] == (before + after).encode()


def test_a_file_goes_with_its_last_entry(memory: Access) -> None:
    entry = add(memory, category="procedure", title="Deploy").entry

    services.retire_entry(memory, entry.entry_id)

    assert paths(memory) == ["/memory/procedural_memory/index.md"]
    assert rows(memory, MemoryKind.PROCEDURAL) == {}


def test_a_file_that_holds_more_stays(memory: Access) -> None:
    services.write_file(memory, FACTS, "# Facts\n\n" + entry_text("mem_a"))

    services.retire_entry(memory, "mem_a")

    assert text(memory, FACTS) == "# Facts\n"


def test_content_that_is_text_now_reads_as_text(memory: Access) -> None:
    services.write_file(memory, FACTS, b"# Facts\n\n" + entry_text("mem_a").encode() + b"\xff\n")

    services.retire_entry(memory, "mem_a")

    page = reads.read_lines(memory, FACTS)
    assert (page.binary, page.text) == (None, "# Facts\n")


def test_it_retires_only_the_version_that_the_caller_knew(memory: Access) -> None:
    old = add(memory, "old").entry.entry_id
    known = reads.get_entry(memory, old).etag
    add(memory, "new", supersedes=old)

    with pytest.raises(PreconditionFailed) as refused:
        services.retire_entry(memory, old, precondition=Precondition(if_match=known))

    assert refused.value.etag == reads.get_entry(memory, old).etag != known
    services.retire_entry(memory, old, precondition=Precondition(if_match=refused.value.etag))


def test_an_entry_is_retired_once(memory: Access) -> None:
    entry = add(memory).entry.entry_id
    services.retire_entry(memory, entry)

    with pytest.raises(EntryNotFound):
        services.retire_entry(memory, entry)

    assert revisions(memory) == [1, 2]


@pytest.mark.parametrize("above", ["# Facts\n", entry_text("mem_a"), OPEN])
@pytest.mark.parametrize("body", ["Gone.", ""])
def test_an_entry_below_it_stays_an_entry(memory: Access, above: str, body: str) -> None:
    services.write_file(memory, FACTS, above)
    # Without a body it ends in a blank line, and below the open frontmatter it begins with a mark.
    gone = MemoryEntry("mem_gone", datetime.now(tz=UTC), MemoryCategory.FACTS, body)
    services.import_files(memory, entries=[ExternalEntry(FACTS, gone)])
    below = add(memory, "Below.").entry

    services.retire_entry(memory, gone.entry_id)

    assert [each for each in parse_entries(text(memory, FACTS)) if each.body == "Below."] == [below]
    assert reads.get_entry(memory, below.entry_id).entry == below
    services.append_file(memory, FACTS, "more\n")
    assert reads.get_entry(memory, below.entry_id).entry.body == "Below.\nmore"


def test_the_next_duplicate_gets_the_id(memory: Access) -> None:
    twice = entry_text("mem_twice", "first") + "\n" + entry_text("mem_twice", "second")
    services.write_file(memory, FACTS, twice)

    services.retire_entry(memory, "mem_twice")

    assert reads.get_entry(memory, "mem_twice").entry.body == "second"


def test_nothing_is_retired_beyond_the_access(memory: Access) -> None:
    entry = add(memory).entry.entry_id

    with pytest.raises(EntryNotFound):
        services.retire_entry(access_to(memory.tree.tenant, prefix="/agents"), entry)
    with pytest.raises(ReadOnly):
        services.retire_entry(memory.read_only(), entry)

    assert (reads.get_entry(memory, entry).revision, Forbidden.code) == (1, "forbidden")
