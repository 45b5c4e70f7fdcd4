"""What has expired is hidden through every door, now and in the past, and stays so whatever is done around it."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from memsvc.format import InvalidText, MemoryCategory, MemoryEntry, MemoryKind, parse_entries
from memsvc.tree import reads, services, statements
from memsvc.tree.access import Access
from memsvc.tree.arrivals import ExternalEntry
from memsvc.tree.commands import Precondition
from memsvc.tree.errors import EntryNotFound, FileNotFound, FolderNotFound, IsFolder
from memsvc.tree.models import Block, File
from memsvc.tree.reads import EntryFilter
from memsvc.tree.trees import measure
from tests.tree.support import (
    FACTS,
    PROCEDURAL_INDEX,
    ROOT_INDEX,
    SEMANTIC_INDEX,
    add,
    contents,
    days_pass,
    entry_text,
    in_days,
    paths,
    rows,
    text,
)

pytestmark = pytest.mark.django_db

SECRET = "The code is 4711."
RUNBOOK = "/memory/procedural_memory/runbook.md"


@pytest.fixture
def expired(memory: Access) -> str:
    """An entry between two others in facts.md, hidden since a moment. Its id."""
    add(memory, "Open, above.")
    entry = add(memory, SECRET, summary="the code", tags=("secret",), expires_at=in_days(1)).entry
    add(memory, "Open, below.")
    days_pass(memory, 2)
    return entry.entry_id


@pytest.fixture
def runbook(memory: Access) -> str:
    """An entry alone in its file, hidden since a moment. Its id."""
    services.write_file(memory, "/memory/procedural_memory/other.md", "# Other\n")
    entry = add(memory, SECRET, "procedure", title="Runbook", summary="the code", expires_at=in_days(1)).entry
    days_pass(memory, 2)
    return entry.entry_id


def test_until_then_it_is_an_entry_like_others(memory: Access) -> None:
    entry = add(memory, SECRET, expires_at=in_days(1))

    read = reads.get_entry(memory, entry.entry.entry_id)
    assert (read.expires_at, read.entry.body) == (entry.expires_at, SECRET)
    assert SECRET in text(memory, FACTS)


def test_an_expiry_in_the_past_is_refused(memory: Access) -> None:
    with pytest.raises(InvalidText, match="expires_at"):
        add(memory, expires_at=in_days(-1))


def test_the_expiry_is_nothing_that_the_file_says(memory: Access) -> None:
    add(memory, SECRET, expires_at=in_days(1))

    assert "expires" not in text(memory, FACTS)


# --- no read shows it -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", [None, 3, 2])
def test_the_file_reads_without_it(memory: Access, expired: str, revision: int | None) -> None:
    data = reads.read_file(memory, FACTS, revision=revision).data
    page = reads.read_lines(memory, FACTS, revision=revision)

    assert b"Open, above." in data
    assert page.text == data.decode()
    assert SECRET not in page.text
    assert expired not in page.text


@pytest.mark.parametrize("revision", [None, 3, 2])
def test_sizes_and_lines_leave_it_out(memory: Access, expired: str, revision: int | None) -> None:
    data = reads.read_file(memory, FACTS, revision=revision).data

    for listed in (
        reads.stat(memory, FACTS, revision=revision),
        next(
            each
            for each in reads.list_folder(memory, "/memory/semantic_memory", revision=revision)
            if each.path == FACTS
        ),
        next(each for each in reads.list_files(memory, revision=revision).items if each.path == FACTS),
        *reads.glob(memory, "facts.md", revision=revision),
    ):
        assert (listed.size, listed.lines) == (len(data), len(data.decode().splitlines()))


@pytest.mark.parametrize("revision", [None, 3, 2])
def test_no_entry_read_finds_it(memory: Access, expired: str, revision: int | None) -> None:
    with pytest.raises(EntryNotFound):
        reads.get_entry(memory, expired, revision=revision)

    every = EntryFilter(active=None)
    assert expired not in str(reads.list_entries(memory, every, revision=revision))
    for query in ("4711", "code", "secret", expired):
        assert reads.search_entries(memory, query, every, revision=revision).items == []
    assert reads.list_entries(memory, EntryFilter(tags=("secret",)), revision=revision).items == []


def test_an_expired_episode_is_not_recent(memory: Access) -> None:
    add(memory, SECRET, "events", expires_at=in_days(1))
    days_pass(memory, 2)

    assert reads.recent_episodes(memory) == []


@pytest.mark.parametrize("revision", [None, 3, 2])
def test_grep_and_snapshot_leave_it_out(memory: Access, expired: str, revision: int | None) -> None:
    for pattern in ("4711", expired, "the code"):
        assert reads.grep(memory, pattern, revision=revision).items == []
    assert SECRET.encode() not in b"".join(contents(memory, revision).values())


def test_the_index_never_said_what_it_holds(memory: Access, expired: str) -> None:
    assert "code" not in str(reads.read_index(memory, MemoryKind.SEMANTIC))
    assert "secret" not in str(reads.read_index(memory, MemoryKind.SEMANTIC).rows)


# --- a file of which nothing shows is as good as gone -----------------------------------------------------------


@pytest.mark.parametrize("revision", [None, 2])
def test_the_file_is_missing_from_every_listing(memory: Access, runbook: str, revision: int | None) -> None:
    assert RUNBOOK not in paths(memory, revision)
    assert RUNBOOK not in contents(memory, revision)
    assert RUNBOOK not in str(reads.list_folder(memory, "/memory/procedural_memory", revision=revision))
    assert reads.glob(memory, "runbook.md", revision=revision) == []
    for read in (reads.read_file, reads.read_lines, reads.stat):
        with pytest.raises(FileNotFound):
            read(memory, RUNBOOK, revision=revision)
    with pytest.raises(FolderNotFound):
        reads.list_folder(memory, RUNBOOK, revision=revision)


@pytest.mark.parametrize("revision", [None, 2])
def test_its_index_row_disappears_with_it(memory: Access, runbook: str, revision: int | None) -> None:
    assert "runbook.md" not in rows(memory, MemoryKind.PROCEDURAL)
    assert b"runbook" not in contents(memory, revision)[PROCEDURAL_INDEX]


def test_a_folder_of_hidden_files_is_missing(memory: Access) -> None:
    add(memory, SECRET, "events", expires_at=in_days(1))
    days_pass(memory, 2)

    assert [each.path for each in reads.list_folder(memory, "/memory")] == ["/memory/episodic_memory"]
    with pytest.raises(FolderNotFound):
        reads.list_folder(memory, "/memory/episodic_memory/events")
    with pytest.raises(FileNotFound):
        reads.read_file(memory, "/memory/episodic_memory/events")


def test_nothing_can_be_done_to_it(memory: Access, runbook: str) -> None:
    attempts: list[Callable[[], object]] = [
        lambda: services.edit_file(memory, RUNBOOK, SECRET, "x"),
        lambda: services.delete(memory, RUNBOOK),
        lambda: services.move(memory, RUNBOOK, "/memory/found.md"),
        lambda: services.retire_entry(memory, runbook),
        lambda: add(memory, "new", "procedure", supersedes=runbook),
    ]
    for attempt in attempts:
        with pytest.raises((FileNotFound, EntryNotFound)):
            attempt()


def test_its_path_is_free(memory: Access, runbook: str) -> None:
    written = services.write_file(
        memory, RUNBOOK, "# New\n", precondition=Precondition(if_none_match_any=True)
    )

    assert (written.created, contents(memory)[RUNBOOK]) == (True, b"# New\n")
    assert rows(memory, MemoryKind.PROCEDURAL)["runbook.md"] == "New"


def test_a_new_entry_starts_the_file_anew(memory: Access, runbook: str) -> None:
    new = add(memory, "new", "procedure", title="Runbook", summary="new")

    assert new.file_created
    assert text(memory, RUNBOOK).startswith("---\nid: " + new.entry.entry_id)
    assert rows(memory, MemoryKind.PROCEDURAL)["runbook.md"] == "new"


def test_a_file_can_move_to_its_path(memory: Access, runbook: str) -> None:
    services.write_file(memory, "/memory/draft.md", "# Draft\n")

    services.move(memory, "/memory/draft.md", RUNBOOK)

    assert contents(memory)[RUNBOOK] == b"# Draft\n"


# --- it stays hidden --------------------------------------------------------------------------------------------


def test_whatever_changes_around_it_it_keeps_its_place(memory: Access, expired: str) -> None:
    services.write_file(memory, FACTS, text(memory, FACTS).replace("Open", "Public"))
    services.edit_file(memory, FACTS, "above", "ABOVE")
    services.append_file(memory, FACTS, "\nmore\n")
    other = add(memory, "Another.").entry.entry_id
    services.retire_entry(memory, other)

    assert SECRET not in text(memory, FACTS)
    assert reads.stat(memory, FACTS).size == len(contents(memory)[FACTS])


def test_an_edit_does_not_make_it_permanent(memory: Access) -> None:
    add(memory, SECRET, expires_at=in_days(1))
    services.edit_file(memory, FACTS, "4711", "4712")
    services.write_file(memory, FACTS, "# Facts\n\n" + text(memory, FACTS))

    days_pass(memory, 2)

    assert text(memory, FACTS).strip() == "# Facts"


@pytest.mark.parametrize("days", [2, 0])
@pytest.mark.parametrize("destination", ["/memory/facts.txt", "/memory/.trash/facts.md", ROOT_INDEX])
def test_a_move_does_not_bring_it_back(memory: Access, destination: str, days: int) -> None:
    services.write_file(memory, FACTS, "# Facts\n")
    add(memory, SECRET, expires_at=in_days(1))
    days_pass(memory, days)

    services.move(memory, FACTS, destination)
    days_pass(memory, 2 - days)

    assert SECRET not in text(memory, destination)
    assert text(memory, destination).startswith("# Facts\n")
    assert reads.grep(memory, "4711").items == []


def test_a_file_does_not_come_back_empty(memory: Access) -> None:
    hidden = add(memory, SECRET, "procedure", title="Runbook", expires_at=in_days(1))
    other = add(memory, "Open.", "procedure", title="Runbook").entry.entry_id
    days_pass(memory, 2)

    services.retire_entry(memory, other)

    assert hidden.path not in paths(memory)


def test_an_entry_below_it_stands_apart_from_what_shows_above(memory: Access) -> None:
    services.write_file(memory, FACTS, "# Facts\n")
    add(memory, SECRET, expires_at=in_days(1))
    days_pass(memory, 2)
    services.write_file(memory, FACTS, "no line end")

    add(memory, "New.")

    assert text(memory, FACTS).startswith("no line end\n\n---\n")


@pytest.mark.parametrize("above", ["# Facts\n", entry_text("mem_a"), "---\nid: mem_open\ncategory: facts\n"])
def test_an_entry_below_it_stays_an_entry(memory: Access, above: str) -> None:
    services.write_file(memory, FACTS, above)
    # Without a body it ends in a blank line, and below the open frontmatter it begins with a mark.
    blank = MemoryEntry("mem_blank", datetime(2026, 1, 2, tzinfo=UTC), MemoryCategory.FACTS, "")
    services.import_files(memory, entries=[ExternalEntry(FACTS, blank, expires_at=in_days(1))])
    below = add(memory, "Below.").entry

    days_pass(memory, 2)

    assert [each for each in parse_entries(text(memory, FACTS)) if each.body == "Below."] == [below]


def test_index_sizes_stay_right_when_rows_have_disappeared(memory: Access, runbook: str) -> None:
    add(memory, "one", "procedure", title="Other")
    add(memory, "two", "procedure", title="Runbook")
    services.delete(memory, RUNBOOK)

    assert reads.stat(memory, PROCEDURAL_INDEX).size == len(contents(memory)[PROCEDURAL_INDEX])


def test_a_lasting_entry_makes_the_row_last(memory: Access) -> None:
    add(memory, SECRET, "procedure", title="Runbook", expires_at=in_days(1))
    add(memory, "Open.", "procedure", title="Runbook", summary="open")
    days_pass(memory, 2)

    assert rows(memory, MemoryKind.PROCEDURAL) == {"runbook.md": "open"}


@pytest.mark.parametrize("leave", ["retire", "edit"])
def test_the_row_disappears_with_the_last_that_shows(memory: Access, leave: str) -> None:
    add(memory, SECRET, "procedure", title="Runbook", expires_at=in_days(1))
    lasting = add(memory, "Open.", "procedure", title="Runbook", summary="open").entry
    if leave == "retire":
        services.retire_entry(memory, lasting.entry_id)
    else:
        services.edit_file(
            memory, RUNBOOK, text(memory, RUNBOOK).partition("\n\n---\n")[2].partition("never")[0], ""
        )
    assert "runbook.md" in rows(memory, MemoryKind.PROCEDURAL)

    days_pass(memory, 2)

    assert "runbook.md" not in rows(memory, MemoryKind.PROCEDURAL)


def test_a_file_goes_with_its_last_entry_that_shows(memory: Access) -> None:
    add(memory, SECRET, "procedure", title="Runbook", expires_at=in_days(1))
    lasting = add(memory, "Open.", "procedure", title="Runbook").entry
    days_pass(memory, 2)

    services.retire_entry(memory, lasting.entry_id)

    assert "runbook.md" not in rows(memory, MemoryKind.PROCEDURAL)


def test_a_file_that_is_emptied_is_there(memory: Access, expired: str) -> None:
    services.write_file(memory, FACTS, "")

    assert contents(memory)[FACTS] == b""


def test_the_etag_changes_when_something_disappears(memory: Access) -> None:
    add(memory, "Open.")
    add(memory, SECRET, expires_at=in_days(1))
    before = [reads.read_file(memory, FACTS).etag, reads.read_lines(memory, FACTS).etag]
    days_pass(memory, 2)

    after = [reads.read_file(memory, FACTS).etag, reads.read_lines(memory, FACTS).etag]

    assert not set(before) & set(after)
    for etag in after:
        services.append_file(memory, FACTS, "", precondition=Precondition(if_match=etag))


def test_of_duplicates_the_next_has_the_id(memory: Access) -> None:
    entry = add(memory, SECRET, expires_at=in_days(1)).entry
    services.write_file(memory, "/memory/z.md", text(memory, FACTS).replace(SECRET, "a copy"))
    days_pass(memory, 2)

    assert reads.get_entry(memory, entry.entry_id).path == "/memory/z.md"
    add(memory, "New.", supersedes=entry.entry_id)
    assert "superseded_by" in text(memory, "/memory/z.md")


def test_a_folder_of_which_nothing_shows_is_as_good_as_gone(memory: Access) -> None:
    services.write_file(memory, "/notes/secret.md", entry_text("mem_1"))
    services.write_file(memory, "/elsewhere.md", "# Other\n")
    _hide(memory, "/notes/secret.md")

    with pytest.raises(FileNotFound):
        services.delete(memory, "/notes")
    with pytest.raises(FileNotFound):
        services.move(memory, "/notes", "/other")
    services.write_file(memory, "/notes", "a file now\n")
    assert paths(memory) == ["/elsewhere.md", "/notes"]


def test_a_folder_with_a_hidden_file_is_counted_without_it(memory: Access) -> None:
    services.upload_files(
        memory, [("/notes/secret.md", entry_text("mem_1").encode()), ("/notes/open.md", b"# Open\n")]
    )
    _hide(memory, "/notes/secret.md")

    assert measure(memory).files == 1
    assert measure(memory).bytes == len("# Open\n")
    with pytest.raises(IsFolder):
        services.write_file(memory, "/notes", "a file\n")
    assert services.move(memory, "/notes", "/other").files == 1
    assert services.delete(memory, "/other").files == 1
    assert measure(memory).files == 0


def test_the_row_of_a_file_that_was_imported_without_one_lasts_as_long_as_the_file(memory: Access) -> None:
    head = "| File | Description | Tags | Updated |\n| --- | --- | --- | --- |\n"
    services.import_files(
        memory, [(FACTS, entry_text("mem_1").encode()), (SEMANTIC_INDEX, f"# Index\n\n{head}".encode())]
    )
    add(memory, SECRET, expires_at=in_days(1))
    days_pass(memory, 2)

    assert list(rows(memory, MemoryKind.SEMANTIC)) == ["facts.md"]


def _hide(memory: Access, path: str) -> None:
    file = File.objects.of(memory.tree).live_at(None).get(path=path)
    Block.objects.of_file(file).update(expires_at=in_days(-1))
    File.objects.filter(pk=file.pk).update(next_expiry=in_days(-1))
    statements.count_entries(file.tree)


@pytest.mark.parametrize("destination", ["/memory/facts.txt", ROOT_INDEX])
def test_what_is_written_beside_it_elsewhere_does_not_keep_it(memory: Access, destination: str) -> None:
    services.write_file(memory, "/memory/notes.md", "# Notes\n")
    services.write_file(memory, FACTS, "# Facts\n")
    add(memory, SECRET, expires_at=in_days(1))
    services.move(memory, FACTS, destination)

    services.append_file(memory, destination, "Something else.\n")
    assert SECRET in text(memory, destination)
    days_pass(memory, 2)

    assert SECRET not in text(memory, destination)
    assert "Something else.\n" in text(memory, destination)
