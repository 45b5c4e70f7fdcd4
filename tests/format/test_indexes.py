from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.format import (
    SCAFFOLD,
    BlockKind,
    IndexRow,
    MemoryCategory,
    cut_index,
    ends_with_head,
    first_heading,
    index_target,
    merged_row,
    parse_index,
    parse_row,
    place_for,
    render_index_table,
    row_line,
    settled,
    table_head,
    with_row,
    without_row,
)

from .strategies import files, one_line_texts

ROOT = SCAFFOLD["/memory/index.md"].encode()
SEMANTIC = SCAFFOLD["/memory/semantic_memory/index.md"].encode()
EPISODIC = SCAFFOLD["/memory/episodic_memory/index.md"].encode()
HEAD = b"| File | Description | Tags | Updated |\n| --- | --- | --- | --- |\n"
MAY = date(2026, 5, 3)


def rows_of(data: bytes) -> list[bytes]:
    return [block.raw for block in cut_index(data) if block.kind is BlockKind.ROW]


def paths_of(data: bytes) -> list[str]:
    return [row.path for line in data.splitlines() if (row := parse_row(line))]


def write(
    data: bytes, path: str = "facts.md", description: str = "new", tags: tuple[str, ...] = ("a",)
) -> bytes:
    return with_row(data, path=path, description=description, tags=tags, when=MAY)


# --- rows


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (IndexRow("facts.md"), "| facts.md |  |  |  |"),
        (IndexRow("a.md", "d", ("x", "y z"), "2026-05-03"), "| a.md | d | x, y z | 2026-05-03 |"),
        (IndexRow("a|b.md", "c|d\ne", ("f|g",)), "| a\\|b.md | c\\|d e | f\\|g |  |"),
        (IndexRow("a.md", "C:\\", ("a,b", "c\\", "d")), "| a.md | C:\\ | a\\,b, c\\ , d |  |"),
        (IndexRow(" a  b.md "), "| &#32;a  b.md&#32; |  |  |  |"),
        (IndexRow("\ta.md\t "), "| &#9;a.md&#9;&#32; |  |  |  |"),
        (IndexRow("a&#32;b.md"), "| a&#38;#32;b.md |  |  |  |"),
    ],
)
def test_a_row_is_a_line_of_four_cells(row: IndexRow, line: str) -> None:
    assert row.to_row() == line


one_line = one_line_texts.map(lambda text: " ".join(text.split()))
_path_characters = st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], include_characters="\t")
_path_pieces = st.one_of(_path_characters, st.sampled_from(["&#32;", "&#38;", "&#9;", "&#", "\\", "|", " "]))
paths = st.lists(_path_pieces, min_size=1, max_size=20).map("".join)
index_rows = st.builds(
    IndexRow,
    path=paths,
    description=one_line,
    tags=st.lists(one_line.filter(bool), max_size=4).map(tuple),
    updated=st.sampled_from(["", "2026-05-03"]),
)


@given(index_rows)
def test_a_row_reads_back_equal(row: IndexRow) -> None:
    assert parse_row(row.to_row()) == row
    assert parse_row(row_line(row, newline="\r\n")) == row


@pytest.mark.parametrize(
    "line",
    [
        *["", "text", "| a | b | c |", "| a | b | c | d | e |", "|  | b | c | d |", "|", "||||||"],
        *["| File | Description | Tags | Updated |", "| --- | :-: | ---: | - |"],
        f"| {'long/' * 300} | d | t | 2026-05-03 |",
    ],
)
def test_other_lines_are_no_rows(line: str) -> None:
    assert parse_row(line) is None


@pytest.mark.parametrize(
    "line",
    ["|a.md|d|x,y|2026-05-03|", "  a.md | d | x , y | 2026-05-03\r\n", b"| a.md | d | x,, y | 2026-05-03 |"],
)
def test_rows_that_are_spaced_by_hand_are_rows(line: str) -> None:
    assert parse_row(line) == IndexRow("a.md", "d", ("x", "y"), "2026-05-03")


def test_each_category_has_its_index() -> None:
    assert index_target(MemoryCategory.PREFERENCES, "/memory/preferences.md") == (
        "/memory/index.md",
        "preferences.md",
    )
    assert index_target(MemoryCategory.EVENTS, "/memory/episodic_memory/events/2026-08.md") == (
        "/memory/episodic_memory/index.md",
        "events/2026-08.md",
    )


# --- cutting


@given(files)
def test_an_index_is_its_blocks(data: bytes) -> None:
    blocks = cut_index(data)
    assert b"".join(block.raw for block in blocks) == data
    assert all(block.raw for block in blocks)
    assert all(parse_row(block.raw) for block in blocks if block.kind is BlockKind.ROW)


def test_the_scaffolds_rows_are_rows() -> None:
    blocks = cut_index(ROOT)
    assert [block.kind.value for block in blocks] == ["text", "row", "row", "row", "row"]
    assert ends_with_head(blocks[0].raw)
    assert [block.kind.value for block in cut_index(EPISODIC)] == ["text"]
    assert ends_with_head(cut_index(EPISODIC)[0].raw)


def test_what_is_no_row_is_text() -> None:
    table = b"| a.md | x | | |\n| odd | x |\n|b.md|y|z|2026-01-01|"
    below = b"\n\n## Notes\n\nkept. | not | a | row |\n| c.md | not | in the | table |\n"
    blocks = cut_index(b"# A\n\n" + HEAD + table + below)
    assert [(block.kind.value, block.raw) for block in blocks] == [
        ("text", b"# A\n\n" + HEAD),
        ("row", b"| a.md | x | | |\n"),
        ("text", b"| odd | x |\n"),
        ("row", b"|b.md|y|z|2026-01-01|\n"),
        ("text", below[1:]),
    ]


def test_only_the_table_with_our_columns_is_cut() -> None:
    other = b"| Name | A | B | C |\n| --- | --- | --- | --- |\n| x | 1 | 2 | 3 |\n\n"
    assert rows_of(other) == []
    assert rows_of(other + HEAD + b"| a.md | x | | |\n") == [b"| a.md | x | | |\n"]
    assert rows_of(HEAD.partition(b"\n")[0] + b"\n| a.md | x | | |\n") == []


def test_a_head_that_is_spaced_by_hand_is_a_head() -> None:
    assert rows_of(
        b"\xef\xbb\xbf|file|Description|TAGS|Updated|\r\n|:--|-|---:|:-:|\r\n|a.md|b|c|d|\r\n"
    ) == [b"|a.md|b|c|d|\r\n"]


def test_an_index_as_values() -> None:
    preamble, rows = parse_index(SEMANTIC.decode() + "| a.md | x | | |\n\nbelow\n")
    assert preamble.endswith("only the new one is active.")
    assert rows["a.md"] == IndexRow("a.md", "x")
    assert list(rows) == ["facts.md", "rules.md", "a.md"]
    assert parse_index("# Only text\n") == ("# Only text", {})
    assert parse_index("") == ("", {})


def test_a_table_is_sorted_by_path() -> None:
    rows = {path: IndexRow(path) for path in ["b.md", "a/z.md", "B.md"]}
    assert paths_of(render_index_table(rows).encode()) == [
        "B.md",
        "a/z.md",
        "b.md",
    ]
    assert render_index_table({}) == HEAD.decode().rstrip("\n")


# --- merging


def test_a_write_is_merged_into_its_row() -> None:
    old = IndexRow("facts.md", "old", ("facts", "a"), "2026-05-01")
    assert merged_row(old, path="facts.md", description="new", tags=["b", "a"], when=MAY) == IndexRow(
        "facts.md", "new", ("facts", "a", "b"), "2026-05-03"
    )
    assert merged_row(old, path="facts.md", description=" ", tags=[], when=None) == old
    assert merged_row(None, path="x.md", description="", tags=[], when=None) == IndexRow("x.md")


def test_a_back_dated_write_never_sets_updated_back() -> None:
    old = IndexRow("facts.md", updated="2026-06-01")
    assert merged_row(old, path="facts.md", description="", tags=[], when=MAY).updated == "2026-06-01"
    by_hand = IndexRow("facts.md", updated="last week")
    assert merged_row(by_hand, path="facts.md", description="", tags=[], when=MAY).updated == "2026-05-03"


def test_a_description_is_one_short_line() -> None:
    row = merged_row(None, path="a.md", description="word\n" * 2_000, tags=[], when=None)
    assert len(row.description) <= 200
    assert row.description.endswith("word…")
    assert merged_row(None, path="a.md", description="x" * 200, tags=[], when=None).description == "x" * 200


def test_a_row_shows_twelve_tags_and_the_oldest_give_way() -> None:
    old = IndexRow("a.md", tags=tuple(f"old{i}" for i in range(12)))
    assert merged_row(old, path="a.md", description="", tags=["new", "old0"], when=None).tags == (
        "old0",
        *(f"old{i}" for i in range(2, 12)),
        "new",
    )
    many = [f"new{i}" for i in range(20)]
    assert merged_row(old, path="a.md", description="", tags=many, when=None).tags == tuple(many[:12])
    assert merged_row(None, path="a.md", description="", tags=["x" * 65, "", "y\nz"], when=None).tags == (
        "y z",
    )


def test_a_tag_with_a_comma_stays_one() -> None:
    data = write(write(SEMANTIC, tags=("a,b",)), tags=("c",))
    assert parse_index(data.decode())[1]["facts.md"].tags == ("facts", "a,b", "c")


# --- writing


def test_the_first_write_settles_a_scaffold() -> None:
    assert rows_of(write(ROOT, "preferences.md", "Short answers", ("tone",))) == [
        b"| episodic_memory/index.md | What happened, sharded by month | episodic |  |\n",
        b"| preferences.md | Short answers | preferences, tone | 2026-05-03 |\n",
        b"| procedural_memory/index.md | How things are done, one file each | procedural |  |\n",
        b"| semantic_memory/index.md | What is true: facts and rules | semantic |  |\n",
    ]


def test_only_a_scaffolds_rows_are_settled() -> None:
    for rows in (
        [],
        [b"| b.md | x |  |  |\n", b"| a.md | x |  |  |\n"],
        [b"| b.md | x | | |\n", b"|a.md|x|y|z|\n"],
    ):
        assert settled(rows) == rows


def test_tool_made_indexes_are_preamble_and_sorted_table() -> None:
    data = EPISODIC
    for path in ["events/2026-05.md", "errors/2026-06.md", "feedbacks/2026-04.md", "events/2026-04.md"]:
        data = write(data, path)
    preamble, rows = parse_index(data.decode())
    assert data.decode() == f"{preamble}\n\n{render_index_table(rows)}\n"
    assert len(rows) == 4


def test_a_write_changes_one_row() -> None:
    above, below = (
        b"# By hand  \r\n\n" + HEAD + b"| z.md | last |  |  |\n| odd | x |\n",
        b"\n## Notes\n\n| a | b | c | d |\n",
    )
    row = b"|facts.md| by hand  |x,y|2026-01-01|\r\n"
    assert write(above + row + below) == above + b"| facts.md | new | x, y, a | 2026-05-03 |\r\n" + below
    assert write(above + row + below, "y.md") == above + row + b"| y.md | new | a | 2026-05-03 |\n" + below


def test_a_row_goes_to_its_sorted_place() -> None:
    data = HEAD + b"| b.md |  |  |  |\n| d.md |  |  |  |"
    assert paths_of(write(data, "a.md")) == ["a.md", "b.md", "d.md"]
    assert paths_of(write(data, "c.md")) == ["b.md", "c.md", "d.md"]
    assert paths_of(write(data, "e.md")) == ["b.md", "d.md", "e.md"]


@pytest.mark.parametrize(
    ("rows", "path", "place"),
    [
        ([], "a", 0),
        (["b"], "a", 0),
        (["a"], "b", 1),
        (["a", "c"], "b", 1),
        (["c", "a"], "b", 2),
        (["c", "b", "a"], "a", 0),
    ],
)
def test_the_place_of_a_new_row(rows: list[str], path: str, place: int) -> None:
    assert place_for(rows, path) == place


@pytest.mark.parametrize(
    ("data", "gap"),
    [(b"", b""), (b"# A\n", b"\n"), (b"# A", b"\n\n"), (b"# A\n\n", b""), (b"# A\n| odd |\n", b"\n")],
)
def test_an_index_without_a_table_gets_one(data: bytes, gap: bytes) -> None:
    assert table_head(data) == gap + HEAD
    assert write(data) == data + gap + HEAD + b"| facts.md | new | a | 2026-05-03 |\n"


def test_an_index_keeps_its_line_ends() -> None:
    data = b"# A\r\n\r\n" + HEAD.replace(b"\n", b"\r\n")
    assert write(data) == data + b"| facts.md | new | a | 2026-05-03 |\r\n"
    assert (
        write(b"# A\r\n")
        == b"# A\r\n\r\n" + HEAD.replace(b"\n", b"\r\n") + b"| facts.md | new | a | 2026-05-03 |\r\n"
    )


def test_a_last_row_without_a_line_end_gets_one() -> None:
    assert (
        write(HEAD + b"| a.md |  |  |  |")
        == HEAD + b"| a.md |  |  |  |\n| facts.md | new | a | 2026-05-03 |\n"
    )


def test_a_removed_file_loses_its_row() -> None:
    data = write(write(SEMANTIC, "b.md"), "c.md")
    assert without_row(data, "b.md") == data.replace(b"| b.md | new | a | 2026-05-03 |\n", b"")
    assert without_row(data, "absent.md") == data


@given(files, one_line, st.lists(one_line, max_size=3))
def test_after_a_write_the_index_has_the_row(data: bytes, description: str, tags: list[str]) -> None:
    changed = with_row(data, path="x/y.md", description=description, tags=tags, when=MAY)
    row = parse_index(changed.decode(errors="replace"))[1]["x/y.md"]
    assert row == merged_row(None, path="x/y.md", description=description, tags=tags, when=MAY)
    again = with_row(changed, path="x/y.md", description=description, tags=tags, when=MAY)
    assert again == changed
    assert len(without_row(changed, "x/y.md")) < len(changed)


# --- descriptions of notes


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("", ""),
        ("\n \n", ""),
        ("# Glossary\n\ntext", "Glossary"),
        ("\ufeff# Glossary #\r\ntext", "Glossary"),
        ("text first\n\n## Then a heading", "Then a heading"),
        ("---\ntitle: x\n---\n\n# Kyōto", "Kyōto"),
        ("---\nnever closed\n# Heading", "Heading"),
        ("```\n# code\n```\nprose", "prose"),
        ("#hashtag first", "#hashtag first"),
        ("---\n***\n- item", "- item"),
        ("#\n# \nx", "x"),
        ("# " + "long " * 100, ("long " * 40).rstrip() + "…"),
        ("# A # B ## \t", "A # B"),
        pytest.param("# spaced" + " " * 50_000 + "out", "spaced out", id="endless blanks"),
    ],
)
def test_a_note_is_described_by_its_first_heading(text: str, heading: str) -> None:
    assert first_heading(text) == heading
