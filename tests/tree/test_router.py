"""The index agrees: a row for every file under it, none for what is gone, and every other byte as people left it."""

from collections.abc import Callable

import pytest

from memsvc.format import SCAFFOLD, MemoryKind
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from tests.tree.support import PROCEDURAL_INDEX, ROOT_INDEX, SEMANTIC_INDEX, add, contents, paths, rows, text

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


def test_a_description_written_by_hand_stays_until_a_summary_comes(laid_out: Access) -> None:
    services.edit_file(
        laid_out, SEMANTIC_INDEX, "Facts about the user, their work and their world", "My facts"
    )

    add(laid_out, "without a summary")
    assert rows(laid_out, MemoryKind.SEMANTIC)["facts.md"] == "My facts"

    add(laid_out, "with one", summary="The latest")
    assert rows(laid_out, MemoryKind.SEMANTIC)["facts.md"] == "The latest"


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
    for body in ("# One\n", "# Two\n", "# Three\n"):
        services.write_file(laid_out, path, body)

    assert list(rows(laid_out)).count(name) == 1
    assert len(text(laid_out, ROOT_INDEX).splitlines()) == len(before.splitlines()) + 1

    services.delete(laid_out, path)
    assert name not in rows(laid_out)
    assert len(text(laid_out, ROOT_INDEX).splitlines()) == len(before.splitlines())
