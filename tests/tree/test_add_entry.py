from datetime import UTC, datetime, timedelta, timezone

import pytest

from memsvc.contract.requests import SuccessorRequest
from memsvc.format import (
    BlankBody,
    FormatError,
    InvalidEntry,
    InvalidText,
    InvalidTitle,
    MemoryKind,
    compose_entry,
    index_path,
)
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.errors import (
    AlreadySuperseded,
    EntryNotFound,
    Forbidden,
    InvalidSupersession,
    ReadOnly,
    TreeError,
)
from tests.tree.support import (
    FACTS,
    SEMANTIC_INDEX,
    access_to,
    add,
    contents,
    draft,
    entry_text,
    paths,
    revision,
    revisions,
    rows,
    text,
)

pytestmark = pytest.mark.django_db

AUGUST = datetime(2026, 8, 24, 10, 15, tzinfo=UTC)


def test_what_is_written_is_what_is_read(memory: Access) -> None:
    written = add(
        memory, "Berlin.", summary="The seat", tags=("law", "a,b"), source="ticket: 42", when=AUGUST
    )

    read = reads.get_entry(memory, written.entry.entry_id)

    assert (read.path, read.entry, read.revision) == (FACTS, written.entry, written.revision)
    assert (written.file_created, written.superseded, written.peer_readable) == (True, None, True)
    assert written.entry.entry_id.startswith("mem_2026-08-24_")


@pytest.mark.parametrize(
    ("category", "path"),
    [
        ("events", "/memory/episodic_memory/events/2026-08.md"),
        ("feedbacks", "/memory/episodic_memory/feedbacks/2026-08.md"),
        ("errors", "/memory/episodic_memory/errors/2026-08.md"),
        ("facts", "/memory/semantic_memory/facts.md"),
        ("rules", "/memory/semantic_memory/rules.md"),
        ("preferences", "/memory/preferences.md"),
        ("procedure", "/memory/procedural_memory/roll-back.md"),
    ],
)
def test_each_category_has_its_file_and_its_index_row(memory: Access, category: str, path: str) -> None:
    written = add(memory, category=category, summary="About it", title="Roll back!", when=AUGUST)

    assert written.path == path
    kind = None if category == "preferences" else written.entry.kind
    assert rows(memory, kind)[path.removeprefix(index_path(kind).removesuffix("index.md"))] == "About it"


def test_the_month_of_an_episode_is_that_of_utc(memory: Access) -> None:
    late = datetime(2026, 8, 31, 23, 30, tzinfo=timezone(timedelta(hours=-5)))

    written = add(memory, category="events", when=late)

    assert written.path == "/memory/episodic_memory/events/2026-09.md"
    assert written.entry.entry_id.startswith("mem_2026-09-01_")
    assert reads.get_entry(memory, written.entry.entry_id).entry.created == late


def test_an_entry_goes_below_what_is_there_and_changes_no_byte_of_it(memory: Access) -> None:
    before = (
        b"\xef\xbb\xbf# Facts\r\n\r\n" + entry_text("mem_a").replace("\n", "\r\n").encode() + b"no line end"
    )
    services.write_file(memory, FACTS, before)

    written = add(memory, "New.")

    added = compose_entry(written.entry).replace("\n", "\r\n")
    assert contents(memory)[FACTS] == before + f"\r\n\r\n{added}".encode()


def test_an_unterminated_block_does_not_swallow_it(memory: Access) -> None:
    services.write_file(memory, FACTS, "---\nid: mem_open\ncreated: 2026-01-01\ncategory: facts\n")

    written = add(memory, "New.")

    assert "<!-- -->" in text(memory, FACTS)
    assert reads.get_entry(memory, written.entry.entry_id).entry.body == "New."


def test_the_file_of_bytes_that_are_no_text_takes_entries_too(memory: Access) -> None:
    services.write_file(memory, FACTS, b"caf\xe9\n")

    written = add(memory, "New.")

    assert contents(memory)[FACTS].startswith(b"caf\xe9\n\n---\nid: ")
    assert reads.get_entry(memory, written.entry.entry_id).entry.body == "New."


@pytest.mark.parametrize(
    "body",
    [
        "Title\n---\ntext",
        "a\n\n---\n\nb",
        "---\nfirst",
        "  indented",
        "a\u2028b\x0bc",
        "😀",
        "<!-- only a comment -->",
    ],
)
def test_a_body_reads_back_equal(memory: Access, body: str) -> None:
    written = add(memory, body)
    add(memory, "Another one below.")

    assert reads.get_entry(memory, written.entry.entry_id).entry.body == body


@pytest.mark.parametrize("body", ["", " \n\t", "\u200b\ufeff", "\u00a0", "\u3164\n", "\u2800", "\ufe0f"])
def test_a_body_in_which_nothing_is_to_be_seen_is_refused(memory: Access, body: str) -> None:
    old = add(memory).entry.entry_id

    with pytest.raises(BlankBody) as refused:
        add(memory, body)
    assert refused.value.code == "blank_body"
    with pytest.raises(BlankBody):
        services.supersede_entry(memory, SuccessorRequest(old, body))

    assert revision(memory) == 1


@pytest.mark.parametrize("title", ["a\0b", "\x1b[31m", "a\x7f"])
@pytest.mark.parametrize("category", ["procedure", "facts"])
def test_a_control_character_in_a_title_is_refused(memory: Access, title: str, category: str) -> None:
    with pytest.raises(InvalidText, match="title holds a"):
        add(memory, "x", category, title=title)


@pytest.mark.parametrize(
    ("body", "summary"),
    [
        ("Lives in Rome.", "Lives in Rome."),
        ("\n\n  # Home  #\n\nIn Rome\n", "Home"),
        ("***\n- Rome\n\n## Since\n\n2026", "- Rome"),
        ("```\nls\n```\nLists", "Lists"),
        ("```\nls\n```", "ls"),
        ("😀", "😀"),
        ("x" * 300, "x" * 199 + "…"),
        ("a\r\nb", "a"),
    ],
)
def test_a_successor_without_a_summary_gets_one_of_its_own(memory: Access, body: str, summary: str) -> None:
    old, other, bare = (add(memory, "Oslo", summary=said).entry.entry_id for said in ("In Oslo", "Oslo", ""))

    written = services.supersede_entry(memory, SuccessorRequest(old, body)).entry
    added = add(memory, body, supersedes=other, summary=None).entry

    assert [written.summary, added.summary] == [summary, summary]
    assert add(memory, body, supersedes=bare, summary=None).entry.summary == ""
    assert (
        services.supersede_entry(memory, SuccessorRequest(added.entry_id, "x", summary="")).entry.summary
        == ""
    )


def test_a_successor_of_a_temporary_entry_is_temporary(memory: Access) -> None:
    until, later = (datetime.now(tz=UTC) + timedelta(days=days) for days in (1, 2))
    ids = [add(memory, "x", expires_at=until).entry.entry_id for _ in range(4)]

    kept = services.supersede_entry(memory, SuccessorRequest(ids[0], "y"))
    added = add(memory, "y", supersedes=ids[1])
    stays = services.supersede_entry(memory, SuccessorRequest(ids[2], "y", expires_at=None))
    own = services.supersede_entry(memory, SuccessorRequest(ids[3], "y", expires_at=later))

    wanted = [until, until, None, later]
    assert [each.expires_at for each in (kept, added, stays, own)] == wanted
    found = {each.entry.entry_id: each.expires_at for each in reads.list_entries(memory).items}
    assert [found[each.entry.entry_id] for each in (kept, added, stays, own)] == wanted


def test_an_error_quotes_half_a_character_so_that_it_can_be_sent(memory: Access) -> None:
    for act in (
        lambda: reads.get_entry(memory, "mem_\ud800"),
        lambda: add(memory, "x", supersedes="mem_\ud800"),
        lambda: add(memory, "x", "procedure", title="\ud800"),
        lambda: add(memory, "x", metadata={"\ud800": 1}),
    ):
        with pytest.raises((TreeError, FormatError)) as refused:
            act()
        assert str(refused.value).encode()


def test_a_body_that_other_readers_cut_is_marked(memory: Access) -> None:
    assert not add(memory, "a\n\n---\n\nb").peer_readable


@pytest.mark.parametrize("character", ["\0", "\ud800"])
def test_what_cannot_be_stored_is_refused_in_every_field(memory: Access, character: str) -> None:
    bad = f"a{character}b"

    for refused in (draft(bad), draft(summary=bad), draft(source=bad), draft(tags=("good", bad))):
        with pytest.raises((InvalidText, InvalidEntry)):
            services.add_entry(memory, refused)

    assert (contents(memory), revisions(memory)) == ({}, [])


def test_a_forged_entry_in_a_body_is_refused(memory: Access) -> None:
    with pytest.raises(InvalidEntry, match="bare '---' line"):
        add(memory, "text\n\n" + entry_text("mem_forged"))

    assert contents(memory) == {}


@pytest.mark.parametrize("title", [None, "", "  ", "!!!", "\N{PARTY POPPER}"])
def test_a_procedure_needs_a_usable_title(memory: Access, title: str | None) -> None:
    with pytest.raises(InvalidTitle):
        add(memory, category="procedure", title=title)


def test_a_procedure_named_index_leaves_the_index_alone(memory: Access) -> None:
    written = add(memory, category="procedure", title="INDEX!")

    assert written.path == "/memory/procedural_memory/index-procedure.md"
    assert list(rows(memory, MemoryKind.PROCEDURAL)) == ["index-procedure.md"]


def test_the_answer_says_when_two_titles_share_a_file(memory: Access) -> None:
    first = add(memory, category="procedure", title="Deploy: prod!")
    second = add(memory, category="procedure", title="deploy_prod")

    assert (first.path, first.file_created, second.file_created) == (second.path, True, False)


# --- superseding ------------------------------------------------------------------------------------------------


def test_the_new_entry_replaces_the_old_one_in_one_revision(memory: Access) -> None:
    old = add(memory, "Bonn.").entry

    new = add(memory, "Berlin.", supersedes=old.entry_id)

    assert (new.superseded, new.revision) == (old.entry_id, 2)
    assert reads.get_entry(memory, old.entry_id).entry == old.replaced_by(new.entry.entry_id)
    assert [each.entry.body for each in reads.list_entries(memory).items] == ["Berlin."]
    assert reads.get_entry(memory, old.entry_id, revision=1).entry == old


def test_superseding_adds_one_line_to_the_old_entry(memory: Access) -> None:
    before = "# Facts\n\n" + entry_text("mem_a", more="tags: [x]\nother: kept   # as it is\n")
    services.write_file(memory, FACTS, before)

    new = add(memory, "New.", supersedes="mem_a").entry

    line = f"superseded_by: {new.entry_id}\n"
    expected = before.replace("tags: [x]\n", "tags: [x]\n" + line) + "\n" + compose_entry(new)
    assert text(memory, FACTS) == expected
    assert text(memory, FACTS, revision=1) == before


def test_an_empty_superseded_by_is_filled(memory: Access) -> None:
    services.write_file(memory, FACTS, entry_text("mem_a", more="superseded_by:\n"))

    new = add(memory, "New.", supersedes="mem_a").entry

    assert f"superseded_by: {new.entry_id}\n---\n" in text(memory, FACTS)
    assert text(memory, FACTS, revision=1) == entry_text("mem_a", more="superseded_by:\n")


def test_an_entry_is_superseded_once(memory: Access) -> None:
    old = add(memory, "old").entry.entry_id
    winner = add(memory, "first", supersedes=old).entry.entry_id

    with pytest.raises(AlreadySuperseded) as refused:
        add(memory, "second", supersedes=old)

    assert (refused.value.entry_id, refused.value.successor) == (old, winner)
    assert winner in str(refused.value)
    assert revisions(memory) == [1, 2]


def test_an_unknown_entry_is_not_superseded(memory: Access) -> None:
    with pytest.raises(EntryNotFound, match="no memory entry with id 'mem_none'"):
        add(memory, supersedes="mem_none")

    assert contents(memory) == {}


@pytest.mark.parametrize("category", ["rules", "preferences", "events"])
def test_an_entry_of_another_category_is_not_superseded(memory: Access, category: str) -> None:
    old = add(memory, "A fact.").entry.entry_id

    with pytest.raises(InvalidSupersession):
        add(memory, category=category, supersedes=old)

    assert reads.get_entry(memory, old).entry.is_active


def test_a_new_version_of_a_procedure_goes_to_its_file(memory: Access) -> None:
    old = add(memory, category="procedure", title="Deploy")

    new = add(memory, category="procedure", supersedes=old.entry.entry_id)

    assert new.path == old.path == "/memory/procedural_memory/deploy.md"


def test_an_entry_is_superseded_wherever_it_stands(memory: Access) -> None:
    services.write_file(memory, "/notebook/Kyōto 2026.md", "# Trip\n\n" + entry_text("mem_trip"))

    new = add(memory, "New.", supersedes="mem_trip")

    assert new.path == FACTS
    assert f"superseded_by: {new.entry.entry_id}" in text(memory, "/notebook/Kyōto 2026.md")


def test_of_duplicates_the_first_is_superseded(memory: Access) -> None:
    services.write_file(memory, "/memory/a.md", entry_text("mem_twice"))
    services.write_file(memory, "/memory/b.md", entry_text("mem_twice"))

    add(memory, "New.", supersedes="mem_twice")

    assert ["superseded_by" in text(memory, f"/memory/{name}.md") for name in "ab"] == [True, False]


# --- how far an access reaches ----------------------------------------------------------------------------------


def test_no_entry_is_added_outside_the_part_that_is_open(memory: Access) -> None:
    agent = access_to(memory.tree.tenant, prefix="/memory/semantic_memory")

    with pytest.raises(Forbidden):
        add(agent, category="events")

    assert add(agent).path == FACTS


def test_an_entry_outside_the_part_that_is_open_is_unknown(memory: Access) -> None:
    services.write_file(memory, "/other/a.md", entry_text("mem_other"))

    with pytest.raises(EntryNotFound):
        add(access_to(memory.tree.tenant, prefix="/memory"), supersedes="mem_other")


def test_a_read_only_access_adds_nothing(memory: Access) -> None:
    with pytest.raises(ReadOnly):
        add(memory.read_only())


# --- the index --------------------------------------------------------------------------------------------------


def test_an_index_is_made_with_its_first_entry(memory: Access) -> None:
    add(memory, summary="The seat", tags=("law",))

    assert SEMANTIC_INDEX in paths(memory)
    assert rows(memory, MemoryKind.SEMANTIC)["facts.md"] == "The seat"


def test_the_row_gets_the_new_summary_all_tags_and_the_latest_date(memory: Access) -> None:
    add(memory, summary="first", tags=("a", "b"), when=AUGUST)
    add(memory, summary="", tags=("b", "c"), when=AUGUST - timedelta(days=30))

    row = reads.read_index(memory, MemoryKind.SEMANTIC).rows[0]
    assert (row.description, row.tags, row.updated) == ("first", ("facts", "a", "b", "c"), "2026-08-24")


def test_what_people_wrote_around_the_table_stays(memory: Access) -> None:
    by_hand = (
        "# Mine\n\n| a | b |\n\n| File | Description | Tags | Updated |\n| --- | --- | --- | --- |\n"
        "|rules.md|  spaced by hand  |x| |\n| odd | row |\n| gone.md | never was | | |\n\nBelow the table.\n"
    )
    services.write_file(memory, SEMANTIC_INDEX, by_hand)

    add(memory, summary="A fact")

    kept = [line for line in text(memory, SEMANTIC_INDEX).splitlines() if "A fact" not in line]
    assert kept == by_hand.splitlines()


def test_a_very_long_summary_is_short_in_the_index_only(memory: Access) -> None:
    entry = add(memory, summary="x" * 10_000).entry

    assert len(rows(memory, MemoryKind.SEMANTIC)["facts.md"]) == 200
    assert len(reads.get_entry(memory, entry.entry_id).entry.summary) == 10_000


@pytest.mark.parametrize("body", ["no line end", "| a | b |\n\nno line end"])
def test_the_last_entry_of_a_file_without_a_line_end_is_superseded(memory: Access, body: str) -> None:
    before = entry_text("mem_1", body).rstrip("\n")
    services.write_file(memory, FACTS, before)

    new = add(memory, "The new one.", supersedes="mem_1").entry.entry_id

    assert reads.get_entry(memory, "mem_1").entry.superseded_by == new
    assert f"superseded_by: {new}\n" in text(memory, FACTS)
    with pytest.raises(AlreadySuperseded):
        add(memory, "A rival.", supersedes="mem_1")
    assert text(memory, FACTS, 1) == before
