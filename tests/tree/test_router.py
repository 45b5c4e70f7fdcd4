"""The index agrees: a row for every file under it, none for what is gone, and every other byte as people left it."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from memsvc.contract.requests import SuccessorRequest
from memsvc.format import SCAFFOLD, MemoryCategory, MemoryEntry, MemoryKind
from memsvc.transfer.consistency import check_tree
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.arrivals import ExternalEntry
from memsvc.tree.commands import OnConflict
from memsvc.tree.models import Block
from tests.tree.support import (
    FACTS,
    PROCEDURAL_INDEX,
    ROOT_INDEX,
    SEMANTIC_INDEX,
    add,
    contents,
    entry_text,
    paths,
    rows,
    text,
)

pytestmark = pytest.mark.django_db

HEAD = "| File | Description | Tags | Updated |\n| --- | --- | --- | --- |\n"
TEAM = "/memory/semantic_memory/team.md"


@pytest.fixture
def laid_out(memory: Access) -> Access:
    services.scaffold(memory)
    return memory


@pytest.mark.parametrize(
    "make",
    [
        lambda access: services.write_file(access, TEAM, "# The team\n"),
        lambda access: services.append_file(access, TEAM, "# The team\n"),
        lambda access: services.upload_files(access, [(TEAM, b"# The team\n")]),
        lambda access: (
            services.import_files(access, [(TEAM, b"# The team\n")]),
            services.write_file(access, "/other", "x"),
        ),
    ],
)
def test_a_file_made_through_any_door_has_its_row(laid_out: Access, make: Callable[[Access], object]) -> None:
    make(laid_out)

    assert rows(laid_out, MemoryKind.SEMANTIC)["team.md"] == "The team"


@pytest.mark.parametrize(
    ("path", "index", "row"),
    [
        ("/memory/semantic_memory/deep/er.md", MemoryKind.SEMANTIC, "deep/er.md"),
        ("/memory/semantic_memory/picture.png", MemoryKind.SEMANTIC, "picture.png"),
        ("/memory/semantic_memory/deep/index.md", MemoryKind.SEMANTIC, "deep/index.md"),
        ("/memory/notes.md", None, "notes.md"),
        ("/memory/trips/a | b\\.md", None, "trips/a | b\\.md"),
        ("/memory/episodic_memory/Kyōto 2026.md", MemoryKind.EPISODIC, "Kyōto 2026.md"),
    ],
)
def test_the_row_stands_in_the_index_of_its_folder(
    laid_out: Access, path: str, index: MemoryKind | None, row: str
) -> None:
    services.write_file(laid_out, path, b"text\n")
    services.append_file(laid_out, path, "more\n")

    assert [each.path for each in reads.read_index(laid_out, index).rows].count(row) == 1
    services.delete(laid_out, path)
    assert row not in rows(laid_out, index)


@pytest.mark.parametrize(
    "path", ["/memory/.obsidian/app.json", "/memory/semantic_memory/.x.md", "/notes.md", "/memory.md"]
)
def test_hidden_names_and_what_lies_elsewhere_have_no_row(laid_out: Access, path: str) -> None:
    before = {each: contents(laid_out)[each] for each in SCAFFOLD}

    services.write_file(laid_out, path, "text\n")

    assert {each: contents(laid_out)[each] for each in SCAFFOLD} == before


def test_a_row_goes_with_its_file_or_its_folder(laid_out: Access) -> None:
    for name in ("a.md", "x/b.md", "x/c.md"):
        services.write_file(laid_out, f"/memory/procedural_memory/{name}", "text\n")

    services.delete(laid_out, "/memory/procedural_memory/a.md")
    services.delete(laid_out, "/memory/procedural_memory/x")

    assert contents(laid_out)[PROCEDURAL_INDEX].decode() == SCAFFOLD[PROCEDURAL_INDEX]


def test_the_last_row_leaves_the_bytes_around_it_alone(laid_out: Access) -> None:
    services.write_file(laid_out, PROCEDURAL_INDEX, f"# Mine\r\n\r\n{HEAD}\nbelow\r\n")

    services.write_file(laid_out, "/memory/procedural_memory/a.md", "# A\n")
    services.delete(laid_out, "/memory/procedural_memory/a.md")

    assert text(laid_out, PROCEDURAL_INDEX) == f"# Mine\r\n\r\n{HEAD}\nbelow\r\n"


@pytest.mark.parametrize(
    "by_hand",
    ["", "no table", "# Mine\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n", HEAD.rstrip("\n"), f"{HEAD}\n"],
)
def test_an_index_written_by_hand_keeps_its_text_and_gets_its_rows(laid_out: Access, by_hand: str) -> None:
    services.write_file(laid_out, SEMANTIC_INDEX, by_hand)

    assert text(laid_out, SEMANTIC_INDEX).startswith(by_hand.rstrip("\n"))
    assert set(rows(laid_out, MemoryKind.SEMANTIC)) == {"facts.md", "rules.md"}


def test_rows_taken_out_by_hand_come_back(laid_out: Access) -> None:
    services.edit_file(laid_out, SEMANTIC_INDEX, "| rules.md |", "| laws.md |")

    assert set(rows(laid_out, MemoryKind.SEMANTIC)) == {"facts.md", "laws.md", "rules.md"}


def test_a_table_that_was_broken_by_hand_is_made_anew_below(laid_out: Access) -> None:
    services.write_file(laid_out, TEAM, "# The team\n")

    services.edit_file(laid_out, SEMANTIC_INDEX, "| --- | --- | --- | --- |\n", "")

    assert set(rows(laid_out, MemoryKind.SEMANTIC)) == {"facts.md", "rules.md", "team.md"}
    assert "| File | Description | Tags | Updated |\n| facts.md |" in text(laid_out, SEMANTIC_INDEX)


def test_an_index_deleted_by_hand_comes_back_complete_with_the_next_entry(laid_out: Access) -> None:
    services.write_file(laid_out, TEAM, "# The team\n")
    services.delete(laid_out, SEMANTIC_INDEX)
    services.write_file(laid_out, "/memory/semantic_memory/b.md", "# B\n")
    assert SEMANTIC_INDEX not in paths(laid_out)

    add(laid_out)

    assert set(rows(laid_out, MemoryKind.SEMANTIC)) == {"b.md", "facts.md", "rules.md", "team.md"}


def test_a_description_and_tags_written_by_hand_stay(laid_out: Access) -> None:
    usual = "Facts about the user, their work and their world | facts |"
    services.edit_file(laid_out, SEMANTIC_INDEX, usual, "My facts | mine, two |")

    old = add(laid_out, "with a summary", summary="The latest", tags=("two", "own"))
    assert row_of(laid_out) == ("My facts", {"mine", "two", "own"})

    services.supersede_entry(laid_out, SuccessorRequest(old.entry.entry_id, "another", tags=()))
    assert row_of(laid_out) == ("My facts", {"mine", "two"})


def row_of(
    access: Access, path: str = "facts.md", kind: MemoryKind | None = MemoryKind.SEMANTIC
) -> tuple[str, set[str]]:
    (row,) = [row for row in reads.read_index(access, kind).rows if row.path == path]
    return row.description, set(row.tags)


def by_edit(access: Access, _: str) -> object:
    return services.edit_file(access, FACTS, "summary: Lives in Oslo", "summary: Lives in Rome")


def by_overwriting(access: Access, _: str) -> object:
    return services.write_file(access, FACTS, entry_text("mem_x", more="summary: Lives in Rome\n"))


def by_import(access: Access, _: str) -> object:
    return services.import_files(
        access,
        [(FACTS, entry_text("mem_x", more="summary: Lives in Rome\n").encode())],
        on_conflict=OnConflict.TAKE,
    )


def by_supersession(access: Access, entry_id: str) -> object:
    return services.supersede_entry(access, SuccessorRequest(entry_id, "Lives in Rome", tags=()))


def by_supersession_in_the_past(access: Access, entry_id: str) -> object:
    return add(
        access, "x", summary="Lives in Rome", supersedes=entry_id, when=datetime(2001, 1, 1, tzinfo=UTC)
    )


def by_imported_entries(access: Access, entry_id: str) -> object:
    new = MemoryEntry(
        "mem_y", datetime.now(tz=UTC), MemoryCategory.FACTS, "x", "Lives in Rome", supersedes=entry_id
    )
    return services.import_files(access, entries=[ExternalEntry(FACTS, new)])


@pytest.mark.parametrize(
    "change",
    [by_edit, by_overwriting, by_import, by_supersession, by_supersession_in_the_past, by_imported_entries],
)
def test_a_row_follows_what_its_file_says(laid_out: Access, change: Callable[[Access, str], object]) -> None:
    old = add(laid_out, "Oslo", summary="Lives in Oslo", tags=("home", "oslo")).entry.entry_id
    assert row_of(laid_out) == ("Lives in Oslo", {"facts", "home", "oslo"})

    change(laid_out, old)

    tags = {"home", "oslo"} if change is by_edit else set[str]()
    assert row_of(laid_out) == ("Lives in Rome", {"facts"} | tags)
    assert "Oslo" not in "".join(
        match.text for match in reads.grep(laid_out, "Oslo", glob="**/index.md").items
    )
    assert reads.misstatements(laid_out) == []


def test_a_row_says_what_is_left_when_entries_go(laid_out: Access) -> None:
    ids = [add(laid_out, tag, summary=f"About {tag}", tags=(tag, "all")).entry.entry_id for tag in "abc"]
    none = add(laid_out, "no summary").entry.entry_id

    for entry_id, left in ((ids[2], "About b"), (ids[0], "About b"), (none, "About b")):
        services.retire_entry(laid_out, entry_id)
        assert row_of(laid_out)[0] == left
    assert row_of(laid_out)[1] == {"facts", "b", "all"}

    services.retire_entry(laid_out, ids[1])
    assert row_of(laid_out) == ("Facts about the user, their work and their world", {"facts"})
    assert reads.misstatements(laid_out) == []


def test_a_row_follows_an_entry_that_is_superseded_in_another_file(memory: Access) -> None:
    old = add(memory, "Push", "procedure", title="Deploy", summary="By hand", tags=("old",)).entry.entry_id

    add(memory, "Wait", "procedure", title="Wait", summary="By robot", supersedes=old)

    assert row_of(memory, "deploy.md", MemoryKind.PROCEDURAL) == ("", set())
    assert row_of(memory, "wait.md", MemoryKind.PROCEDURAL) == ("By robot", set())
    assert reads.misstatements(memory) == []


def test_the_newest_entry_counts_and_not_the_last_one_that_was_written(laid_out: Access) -> None:
    new = add(laid_out, "new", summary="New").entry.entry_id

    add(laid_out, "old", summary="Old", when=datetime(2001, 1, 1, tzinfo=UTC))
    assert row_of(laid_out)[0] == "New"

    services.retire_entry(laid_out, new)
    assert row_of(laid_out)[0] == "Old"


def test_a_note_is_described_by_the_heading_that_it_has(laid_out: Access) -> None:
    services.write_file(laid_out, TEAM, "# One\n")
    services.edit_file(laid_out, TEAM, "One", "Two")
    assert row_of(laid_out, "team.md") == ("Two", set())

    services.move(laid_out, TEAM, "/memory/semantic_memory/group.md")
    services.write_file(laid_out, "/memory/semantic_memory/group.md", "# Three\n")
    assert row_of(laid_out, "group.md") == ("Three", set())


def test_rows_that_came_as_text_are_known_by_what_they_quote(laid_out: Access) -> None:
    old = add(laid_out, "Oslo", summary="Lives in Oslo", tags=("oslo",)).entry.entry_id
    before = text(laid_out, SEMANTIC_INDEX)
    Block.objects.filter(kind="row").update(source="", created=None, tags=[])

    services.supersede_entry(laid_out, SuccessorRequest(old, "Lives in Rome", tags=()))
    assert row_of(laid_out) == ("Lives in Rome", {"facts"})

    services.write_file(laid_out, SEMANTIC_INDEX, before)
    assert row_of(laid_out) == ("Lives in Rome", {"facts"})


def test_a_row_costs_the_same_however_much_its_file_holds(laid_out: Access) -> None:
    services.append_file(
        laid_out, FACTS, "\n".join(["", *(entry_text(f"mem_{n}", more="tags: [t]\n") for n in range(300))])
    )
    add(laid_out, "x", summary="First", tags=("y",), when=datetime(2025, 1, 1, tzinfo=UTC))

    services.retire_entry(laid_out, "mem_299")

    assert row_of(laid_out) == ("First", {"facts", "t", "y"})
    assert reads.misstatements(laid_out) == []


@pytest.mark.parametrize("category", ["facts", "preferences", "events", "procedure"])
def test_a_new_tree_lists_what_it_has(memory: Access, category: str) -> None:
    add(memory, "first", category, summary="One", title="A" if category == "procedure" else None)

    assert check_tree(memory) == []
    services.scaffold(memory)
    assert check_tree(memory) == []
    assert len(rows(memory)) == 4
    assert row_of(memory, "rules.md")[0] == "Constraints and policies that govern behaviour"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"text": "| facts.md | Gone | facts |  |\n"}, "says 'Gone' where its file says 'One'"),
        ({"tags": ["facts"]}, "has the tags ['facts'], which no live entry has"),
        ({"text": "| facts.md | One |  |  |\n"}, "lacks the tags ['own']"),
    ],
)
def test_a_row_out_of_step_is_reported(laid_out: Access, change: dict[str, object], reason: str) -> None:
    add(laid_out, "first", summary="One", tags=("own",))
    assert check_tree(laid_out) == []

    Block.objects.filter(row_path="facts.md", removed_in=None).update(**change)

    assert any(reason in finding.detail for finding in check_tree(laid_out) if finding.kind == "stale_row")


def test_row_by_row_the_index_is_what_the_format_writes_as_a_whole(memory: Access) -> None:
    for title in ("m", "a", "z", "b", "y"):
        add(memory, category="procedure", title=title, summary=f"About {title}")

    assert list(rows(memory, MemoryKind.PROCEDURAL)) == ["a.md", "b.md", "m.md", "y.md", "z.md"]
    lines = text(memory, PROCEDURAL_INDEX).removeprefix(SCAFFOLD[PROCEDURAL_INDEX]).splitlines()
    assert lines == sorted(lines)


def test_many_rows_in_one_gap_still_find_room(memory: Access) -> None:
    services.scaffold(memory)
    for n in range(40):
        # Each between the one before and "z": every new place halves what is left.
        services.write_file(memory, f"/memory/procedural_memory/{'n' * (n + 1)}.md", "text\n")
        if n == 0:
            services.write_file(memory, "/memory/procedural_memory/z.md", "text\n")

    names = [
        path.rpartition("/")[2] for path in paths(memory) if path.startswith("/memory/procedural_memory/")
    ]
    assert list(rows(memory, MemoryKind.PROCEDURAL)) == sorted(set(names) - {"index.md"})
    assert [b"nnn.md" in contents(memory, n)[PROCEDURAL_INDEX] for n in (4, 5)] == [False, True]


def test_a_batch_leaves_the_index_of_its_end(laid_out: Access) -> None:
    from memsvc.tree.operations import DeletePath, MovePath, WriteFile

    services.batch(
        laid_out,
        [
            WriteFile("/memory/a.md", "# A\n"),
            WriteFile("/memory/b.md", "# B\n"),
            MovePath("/memory/a.md", "/memory/c.md"),
            DeletePath("/memory/b.md"),
        ],
    )

    assert rows(laid_out)["c.md"] == "A"
    assert not {"a.md", "b.md"} & rows(laid_out).keys()
    assert ROOT_INDEX in paths(laid_out)


@pytest.mark.parametrize(
    "name", ["a&#32;b.md", "\ttab.md", "tab.md\t", " blank ", "a&#38;#32;b.md", "a\\", "|a|.md"]
)
def test_a_file_of_any_name_has_one_row_that_goes_with_it(laid_out: Access, name: str) -> None:
    path = f"/memory/{name}"
    before = text(laid_out, ROOT_INDEX)
    # An import puts back names that no new file gets.
    services.import_files(laid_out, [(path, b"# Zero\n")])
    for body in ("# One\n", "# Two\n", "# Three\n"):
        services.write_file(laid_out, path, body)

    assert list(rows(laid_out)).count(name) == 1
    assert len(text(laid_out, ROOT_INDEX).splitlines()) == len(before.splitlines()) + 1

    services.delete(laid_out, path)
    assert name not in rows(laid_out)
    assert len(text(laid_out, ROOT_INDEX).splitlines()) == len(before.splitlines())


def test_the_root_index_lists_the_other_routers_that_there_are(laid_out: Access) -> None:
    described = rows(laid_out)["semantic_memory/index.md"]

    services.delete(laid_out, "/memory/semantic_memory", recursive=True)
    assert "semantic_memory/index.md" not in rows(laid_out)
    assert check_tree(laid_out) == []

    services.restore(laid_out, 1, path="/memory/semantic_memory")
    assert rows(laid_out)["semantic_memory/index.md"] == described
    services.move(laid_out, SEMANTIC_INDEX, "/index.md")
    assert "semantic_memory/index.md" not in rows(laid_out)
    services.write_file(laid_out, SEMANTIC_INDEX, "# Mine\n")
    assert rows(laid_out)["semantic_memory/index.md"] == described
    assert check_tree(laid_out) == []


def test_the_first_line_of_an_entry_does_not_stand_for_what_a_new_tree_says(laid_out: Access) -> None:
    usual = rows(laid_out)["preferences.md"]
    services.write_file(laid_out, "/memory/preferences.md", " ")

    add(laid_out, "Tea, no milk.", "preferences")

    assert rows(laid_out)["preferences.md"] == usual
    assert check_tree(laid_out) == []


def test_an_index_that_is_laid_out_later_says_what_is_there(memory: Access) -> None:
    services.write_file(memory, "/memory/preferences.md", entry_text("mem_1", more="summary: Tea, no milk\n"))
    services.write_file(memory, FACTS, "# What we know\n")

    services.scaffold(memory)

    assert rows(memory)["preferences.md"] == "Tea, no milk"
    assert rows(memory, MemoryKind.SEMANTIC)["facts.md"] == "What we know"
    assert check_tree(memory) == []
