import itertools
import sys
from dataclasses import replace
from datetime import UTC, datetime
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.format import (
    MAX_BODY_BYTES,
    MAX_TEXT_BLOCK,
    Block,
    BlockKind,
    FormatError,
    InvalidEntry,
    InvalidText,
    MemoryCategory,
    MemoryEntry,
    append_to,
    appended,
    code_end,
    compose_entry,
    count_lines,
    cut,
    cut_file,
    dominant_newline,
    last_part,
    normal_entry,
    parse_entries,
    superseded,
    with_superseded,
)
from memsvc.format.fences import entry_spans

from .strategies import entries, files

NOTES = "/memory/notes.md"
PATHS = [NOTES, "/memory/index.md", "/memory/Trips/index.md", "/memory/.x/a.md", "/memory/a.txt"]

HEAD = b"---\nid: mem_1\ncreated: 2026-01-01\ncategory: facts\n---\n"
NEW = MemoryEntry("mem_new", datetime(2026, 8, 1, tzinfo=UTC), MemoryCategory.FACTS, "New.\n\nSecond line.")


def kinds(blocks: list[Block]) -> list[str]:
    return [block.kind.value for block in blocks]


def raws(blocks: list[Block]) -> list[bytes]:
    return [block.raw for block in blocks]


# --- cutting


@given(files)
def test_a_file_is_its_blocks(data: bytes) -> None:
    assert b"".join(raws(cut(data))) == data
    for path in PATHS:
        assert b"".join(raws(cut_file(path, data))) == data


@given(files)
def test_no_block_is_empty_and_each_entry_block_holds_one_entry(data: bytes) -> None:
    for blocks in (cut(data), cut_file(NOTES, data)):
        for block in blocks:
            assert block.raw
            assert (block.entry is not None) == (block.kind is BlockKind.ENTRY)
            assert (block.meta_end > 0) == (block.kind in (BlockKind.ENTRY, BlockKind.OPAQUE))
            assert bool(block.reason) == (block.kind is BlockKind.OPAQUE)
            if block.meta_end:
                assert block.raw[: block.meta_end].rstrip(b" \t\r\n").endswith(b"---")


@given(files)
def test_both_ways_to_cut_find_the_same_entries(data: bytes) -> None:
    assert [block.entry for block in cut(data) if block.entry] == [
        block.entry for block in cut_file(NOTES, data) if block.entry
    ]


@given(files)
def test_the_blank_lines_above_an_entry_belong_to_its_block(data: bytes) -> None:
    blocks = cut_file(NOTES, data)
    for above, block in itertools.pairwise(blocks):
        if block.meta_end:
            *_, last_line = above.raw.removesuffix(b"\n").split(b"\n")
            is_empty_entry = not above.raw[above.meta_end :].strip(b" \t\r\n")
            assert last_line.strip(b" \t\r") or is_empty_entry


def test_fences_are_lines_of_three_dashes_and_blanks() -> None:
    for fence in (b"---", b"--- ", b"---\t", b"---\r"):
        assert kinds(cut(HEAD.replace(b"---", fence))) == ["entry"]
    assert kinds(cut(b" \t" + HEAD)) == ["entry"]
    for no_fence in (b"----", b"--", b"- - -", b"---x", b"\x0b---", b"---\r\r", b"\xe2\x80\xa8---"):
        assert kinds(cut(HEAD.replace(b"---", no_fence))) == ["text"]


@pytest.mark.parametrize(
    "above", [b"", b"\n", b"text\n\n", b"text\n \t\n", b"text\r\n\r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"]
)
def test_an_entry_starts_the_file_or_follows_a_blank_line(above: bytes) -> None:
    blocks = cut(above + HEAD)
    assert raws(blocks) == [part for part in (above, HEAD) if part]
    assert kinds(blocks)[-1] == "entry"


@pytest.mark.parametrize(
    "above", [b"text\n", b"text\x0c\n", b"\xc2\x85\n", b"\xe2\x80\xa8\n", b"\xef\xbb\xbfx\n", b"---\n"]
)
def test_a_fence_below_text_starts_no_entry(above: bytes) -> None:
    assert kinds(cut(above + HEAD)) == ["text"]


@pytest.mark.parametrize(
    "data",
    [
        b"---\ntitle: a note\n---\n\ntext\n",
        b"---\nid:\n---\n",
        b"---\nid: # none\n---\n",
        b"---\n id: x\n---\n",
        b"---\nid: x\nprose without a colon\n---\n",
        b"---\nid: x\nhttp://example.org\n---\n",
        b"---\nid: x\n| a: b |\n---\n",
        b"---\nid: x\n<!-- -->\n---\n",
        b"---\nid: x\ncreated: 2026-01-01",
        b"Title\n---\nid: x\n---\n",
        b"---\n\n---\n",
        b"\n---\n",
        b"---",
    ],
)
def test_other_fences_are_text(data: bytes) -> None:
    assert raws(cut(data)) == [data]
    assert kinds(cut(data)) == ["text"]


@pytest.mark.parametrize(
    "line",
    [
        b"# comment",
        b"",
        b"  ",
        b"  indented",
        b"\tindented",
        b"- item",
        b"-",
        b"key:",
        b'"my key": v',
        b"<<: x",
        b"\xc3\xa9: x",
    ],
)
def test_lines_that_look_like_frontmatter(line: bytes) -> None:
    [block] = cut(HEAD.replace(b"category", line + b"\ncategory"))
    assert block.kind is not BlockKind.TEXT


def test_an_entry_runs_to_the_next_entry() -> None:
    second = HEAD.replace(b"mem_1", b"mem_2")
    body = b"\n# Heading\n\n---\n\nrule\n\n---\ntitle: not an entry\n---\n\n\n"
    assert raws(cut(HEAD + body + second)) == [HEAD + body, second]
    assert raws(cut_file(NOTES, HEAD + body + second)) == [HEAD + body[:-2], b"\n\n" + second]


def test_a_failed_start_does_not_hide_the_next_entry() -> None:
    assert kinds(cut(b"---\nnote: x\n\n" + HEAD)) == ["text", "entry"]
    assert kinds(cut(b"---\n\n" + HEAD)) == ["text", "entry"]
    assert kinds(cut(b"# A\n\n---\n\nrule\n\n" + HEAD)) == ["text", "entry"]


def test_an_open_frontmatter_with_an_id_ends_at_the_next_fence() -> None:
    blocks = cut(b"---\nid: open\n\n" + HEAD)
    assert kinds(blocks) == ["opaque"]
    assert blocks[0].reason == "unusable category" or blocks[0].reason == "unknown category"


def test_a_text_of_blank_lines_above_an_entry_disappears() -> None:
    assert raws(cut_file(NOTES, b" \n\n" + HEAD)) == [b" \n\n" + HEAD]
    assert raws(cut_file(NOTES, b"\xef\xbb\xbf\n" + HEAD)) == [b"\xef\xbb\xbf", b"\n" + HEAD]
    assert kinds(cut_file(NOTES, b" \n\n")) == ["text"]
    assert cut_file(NOTES, b"") == []


def test_meta_end_is_where_the_body_begins() -> None:
    blocks = cut_file(NOTES, b"# A\n\n\n" + HEAD + b"\nbody\n")
    assert [block.raw[block.meta_end :] for block in blocks[1:]] == [b"\nbody\n"]


def test_other_files_are_text() -> None:
    assert kinds(cut_file("/memory/.x/a.md", HEAD)) == ["text"]
    assert kinds(cut_file("/memory/Trips/index.md", HEAD)) == ["text"]
    assert kinds(cut_file("/memory/a.txt", HEAD)) == ["text"]
    assert kinds(cut_file("/skills/a.md", HEAD)) == ["entry"]


def test_bytes_that_are_no_utf8_stay_and_read_as_a_sign() -> None:
    [block] = cut(HEAD.replace(b"\n---\n", b"\nsummary: Caf\xe9\n---\n", 1) + b"\nd\xe9j\xe0\n")
    assert block.entry is not None
    assert (block.entry.summary, block.entry.body) == ("Caf\ufffd", "d\ufffdj\ufffd")
    assert b"d\xe9j\xe0" in block.raw


def test_an_entry_with_a_nul_is_opaque() -> None:
    [block] = cut(HEAD + b"a\0b")
    assert (block.kind, block.reason) == (BlockKind.OPAQUE, "a NUL in the body")


def test_unknown_keys_are_read_only() -> None:
    [block] = cut(HEAD.replace(b"category", b"owner: ina\ncategory"))
    assert block.extra == {"owner": "ina"}
    with pytest.raises(TypeError):
        block.extra["owner"] = "ole"  # type: ignore[index]  # the point of the test


# --- sizes


def test_free_text_is_cut_at_line_ends() -> None:
    data = b"".join(b"line %d\n" % i for i in range(20_000))
    blocks = cut_file("/memory/a.txt", data)
    assert b"".join(raws(blocks)) == data
    assert len(blocks) == -(-len(data) // MAX_TEXT_BLOCK)
    assert all(len(block.raw) <= MAX_TEXT_BLOCK and block.raw.endswith(b"\n") for block in blocks)


def test_a_long_line_is_one_block() -> None:
    long = b"x" * (3 * MAX_TEXT_BLOCK) + b"\n"
    assert raws(cut_file("/memory/a.txt", b"a\n" + long + b"b\n")) == [b"a\n", long, b"b\n"]
    assert raws(cut_file("/memory/a.txt", long[:-1])) == [long[:-1]]


def test_a_long_preamble_is_cut_above_the_first_entry() -> None:
    blocks = cut_file(NOTES, b"text\n" * 30_000 + b"\n" + HEAD)
    assert kinds(blocks) == ["text", "text", "text", "entry"]
    assert blocks[-1].raw == b"\n" + HEAD


def test_an_entry_over_256_kib_is_opaque() -> None:
    fits, too_large = b"x" * MAX_BODY_BYTES, b"x" * (MAX_BODY_BYTES + 1)
    assert kinds(cut_file(NOTES, HEAD + fits + b"\r\n" * MAX_BODY_BYTES)) == ["entry"]
    [block] = cut_file(NOTES, HEAD + too_large)
    assert (block.kind, block.reason) == (BlockKind.OPAQUE, "body over 256 KiB")


def test_a_frontmatter_over_64_kib_is_opaque() -> None:
    [block] = cut(HEAD.replace(b"category", b"note: " + b"x" * 70_000 + b"\ncategory"))
    assert (block.kind, block.reason) == (BlockKind.OPAQUE, "yaml: longer than 64 KiB")


# --- code

EXAMPLE = b"---\nid: mem_x\ncreated: 2026-01-01\ncategory: facts\n---\n\nExample.\n"


def with_example(opening: str, closing: str) -> bytes:
    return b"Notes.\n\n%s\n\n%s\n%s\n\n" % (opening.encode(), EXAMPLE, closing.encode())


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("```", "```"),
        ("```yaml", "```"),
        ("``` a ~ b", "`````"),
        ("~~~ a ` b", "~~~"),
        ("~~~~", "~~~~\t "),
        ("   ```", "   ```"),
        ("   ```", "```"),
        ("```\n~~~\n``\n    ```\n``` x", "```"),
        ("````\n```", "````"),
        ("```\r\n", "```\r"),
        ("text\n```", "```"),
        ("- item\n\n  text\n\n# Heading\n  ```", "```"),
        ("* * *\n  ```", "```"),
    ],
)
def test_nothing_in_a_code_block_is_an_entry(opening: str, closing: str) -> None:
    code = with_example(opening, closing)
    for start in (b"", b"\xef\xbb\xbf"):
        assert kinds(cut_file(NOTES, start + code)) == ["text"]
    assert raws(cut(code + HEAD)) == [code, HEAD]
    assert [block.entry and block.entry.entry_id for block in cut(HEAD + b"\n" + code + HEAD)] == [
        "mem_1"
    ] * 2
    assert raws(cut(b"\xef\xbb\xbf```\n\n" + HEAD + b"```\n\n" + HEAD))[1:] == [HEAD]


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("``` a ` b", ""),
        ("``", "``"),
        ("    ```", "    ```"),
        ("\t```", ""),
        ("a ```", ""),
        ("> ```", "> ```"),
        ("- ```", ""),
        ("- item\n  ```", ""),
        ("- item\n\n  text\n  ```", ""),
        ("1. item\n\n   ```\n   code\n   ```\n\n   ```", ""),
        ("-\n  ```", ""),
        ("- a\n  - b\n\n    c\n  ```", ""),
        ("```\n```", ""),
    ],
)
def test_what_opens_no_code_block_hides_no_entry(opening: str, closing: str) -> None:
    found = [block.entry.entry_id for block in cut(with_example(opening, closing) + HEAD) if block.entry]
    assert found == ["mem_x", "mem_1"]


def test_a_code_block_that_is_never_closed_goes_to_the_end() -> None:
    assert raws(cut(HEAD + b"\n```\ncode\n\n" + HEAD)) == [HEAD + b"\n```\ncode\n\n" + HEAD]


@pytest.mark.parametrize("value", ["|\n  ```\n  x", "|\n  a\n  ---\n  b", "|\n\n  ---\n\n  b", "\n  - ---"])
def test_frontmatter_is_no_markdown_and_ends_at_dashes_that_begin_a_line(value: str) -> None:
    first = HEAD.replace(b"category", b"note: " + value.encode() + b"\ncategory") + b"\nBody.\n\n"
    [one, two] = cut(first + HEAD)
    assert (one.raw, two.raw) == (first, HEAD)
    assert one.entry is not None
    assert one.entry.body == "Body."
    changed = superseded(first, "mem_2")
    assert changed == first.replace(b"\n---\n\nBody", b"\nsuperseded_by: mem_2\n---\n\nBody")
    assert cut(changed)[0].extra == one.extra


def test_what_was_stored_by_the_older_rule_still_shows_who_superseded_it() -> None:
    head = HEAD.replace(b"\n---\n", b"\n  ---\n")
    assert superseded(head, "mem_2") == head.replace(b"\n  ---\n", b"\nsuperseded_by: mem_2\n  ---\n")


@pytest.mark.parametrize("body", ["```", "a\n\n~~~ x\ncode", "````\n```", "   ```\nx\n\n"])
def test_a_stored_body_leaves_no_code_block_open(body: str) -> None:
    entry = replace(NEW, body=body)
    data = compose_entry(entry).encode()
    assert code_end(data) == b""
    first, second = parse_entries(appended(data, compose_entry(NEW)).decode())
    assert (first, second) == (normal_entry(entry), NEW)
    assert first.body.startswith(body.rstrip("\n"))
    assert normal_entry(first) == first


def test_a_body_may_show_an_entry_in_code() -> None:
    entry = replace(NEW, body=f"Write it so:\n\n```yaml\n{EXAMPLE.decode()}```\n\nThat is all.")
    assert parse_entries(compose_entry(entry)) == [entry]
    with pytest.raises(InvalidEntry, match="bare '---' line"):
        compose_entry(replace(NEW, body=f"Write it so:\n\n{EXAMPLE.decode()}"))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("above", [b"# Notes\n```sh\nx", HEAD + b"\n~~~~\n", b"```\n" + b"x" * 70_000])
def test_an_entry_below_an_open_code_block_is_found(above: bytes, newline: str) -> None:
    data = above + append_to(last_part(cut_file(NOTES, above)), compose_entry(NEW), newline=newline)
    *_, new = cut_file(NOTES, data)
    assert new.entry == NEW
    assert new.raw.startswith(newline.encode() + b"---")


@pytest.mark.parametrize(
    "data",
    [
        b"- a\n" + b"  ```\n  x\n" * 10_000,
        b"```\n---\n```\n" * 10_000,
        b"\n  ---\n" * 10_000,
        b"\n  ---\nid: x\n" * 10_000,
        b"a`" * 10_000 + b"```",
        b"\n".join(b"`" * n for n in range(3, 300)),
        (HEAD + b"\n") * 5_000 + b"```\n",
        b"- a\n" + b"\n" * 10_000 + b"  ~~~\n" * 1000,
    ],
)
def test_reading_takes_time_that_grows_with_the_bytes(data: bytes) -> None:
    assert _effort(data + data) <= 3 * _effort(data)


def _effort(data: bytes) -> int:
    """How many lines of Python run."""
    count = 0

    def counted(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += 1
        return counted

    before = sys.gettrace()
    sys.settrace(counted)
    try:
        entry_spans(data)
    finally:
        sys.settrace(before)
    return count


# --- appending


@given(files, entries, st.sampled_from(["\n", "\r\n"]))
def test_appending_adds_exactly_one_entry(data: bytes, entry: MemoryEntry, newline: str) -> None:
    try:
        text = compose_entry(entry)
    except InvalidEntry:
        return
    old = cut_file(NOTES, data)
    added = append_to(old[-1].raw if old else b"", text, newline=newline)
    *kept, new = cut_file(NOTES, data + added)
    assert new.entry == normal_entry(entry)
    # Blank lines above an entry go to its block, so blank text alone becomes a part of the new one.
    if not kept:
        assert not data.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n")
        return
    assert [(block.kind, block.entry, block.raw) for block in kept[:-1]] == [
        (block.kind, block.entry, block.raw) for block in old[: len(kept) - 1]
    ]
    above, last = kept[-1], old[len(kept) - 1]
    closed = last.raw + code_end(last.raw, newline=newline)
    assert (above.kind, above.entry) == (last.kind, cut(closed)[-1].entry)
    assert _without_mark(above.raw) == _without_mark(closed)
    assert not b"".join(raws(old[len(kept) :])).strip(b" \t\r\n")


def _without_mark(raw: bytes) -> bytes:
    """A block without what is the next one's once there is one: blank lines, and the mark below an open frontmatter."""
    return raw.rstrip(b" \t\r\n").removesuffix(b"<!-- -->").rstrip(b" \t\r\n")


@given(files, st.lists(entries, min_size=2, max_size=3))
def test_entries_can_be_appended_one_after_the_other(data: bytes, new: list[MemoryEntry]) -> None:
    added = []
    for entry in new:
        try:
            data = appended(data, compose_entry(entry))
        except InvalidEntry:
            continue
        added.append(normal_entry(entry))
    found = [block.entry for block in cut_file(NOTES, data) if block.entry]
    assert found[len(found) - len(added) :] == added


@pytest.mark.parametrize(
    ("last", "gap"),
    [
        (b"", b""),
        (b"\xef\xbb\xbf", b"\n\n"),
        (b"\n\xef\xbb\xbf\n", b"\n"),
        (b"text\n", b"\n"),
        (b"text", b"\n\n"),
        (b"text\n\n", b""),
        (b"text\n \t\n", b""),
        (b"text\n\n\n", b""),
        (b"text\r", b"\r\n\n"),
        (b"\n", b""),
        (b"  ", b"\n"),
        (b"---\n", b"\n"),
        (b"text\n\n---\nnote: open\n", b"\n"),
        (b"text\n\n---\nid: open\n", b"\n<!-- -->\n\n"),
        (b"---\nid: open\nnote: x", b"\n\n<!-- -->\n\n"),
        (HEAD + b"\nbody\n\n---\nid: open\n# c\n\n", b"<!-- -->\n\n"),
        (HEAD + b"\nbody\n", b"\n"),
    ],
)
def test_what_stands_between_a_block_and_an_appended_entry(last: bytes, gap: bytes) -> None:
    assert append_to(last, "ENTRY\n") == gap + b"ENTRY\n"


def test_an_entry_takes_the_line_ends_of_its_file() -> None:
    assert append_to(b"a\r\n", "x\ny\n", newline="\r\n") == b"\r\nx\r\ny\r\n"
    assert appended(b"a\r\nb\r\nc\n", "x\ny\n") == b"a\r\nb\r\nc\n\r\nx\r\ny\r\n"
    assert appended(b"a\nb\r\n", "x\ny\n") == b"a\nb\r\n\nx\ny\n"


@pytest.mark.parametrize("end", [b"\r", b"\r\r", b" \r", b"\x0c", b"\xe2\x80\xa8"])
def test_appending_takes_no_byte_from_the_body_above(end: bytes) -> None:
    data = HEAD + b"\nbody" + end
    old, new = parse_entries(appended(data, compose_entry(NEW)).decode())
    assert (old.body, new) == ("body" + end.decode(), NEW)


def test_the_separator_belongs_to_the_entry_that_it_protects() -> None:
    open_block = b"# Notes\n\n---\nid: open\n"
    text = compose_entry(NEW)
    once = appended(open_block, text)
    twice = appended(once, text)
    assert raws(cut_file(NOTES, once)) == [open_block, append_to(open_block, text)]
    assert raws(cut_file(NOTES, twice)) == [open_block, append_to(open_block, text), b"\n" + text.encode()]


def test_a_comment_that_protects_nothing_stays_where_it_is() -> None:
    data = b"# Notes\n<!-- -->\n\n" + HEAD
    assert raws(cut_file(NOTES, data)) == [b"# Notes\n<!-- -->\n", b"\n" + HEAD]


@pytest.mark.parametrize("size", [10_000, 100_000, 200_000])
def test_an_open_frontmatter_swallows_nothing_however_long_it_is(size: int) -> None:
    data = b"text\n" * 20_000 + b"\n---\nid: open\n" + b"key: value\n" * (size // 11)
    blocks = cut_file(NOTES, data)
    added = append_to(blocks[-1].raw, compose_entry(NEW))
    assert added.startswith(b"\n<!-- -->\n")
    assert raws(cut_file(NOTES, data + added)) == [*raws(blocks), added]


def test_an_endless_open_frontmatter_is_cut_like_any_text() -> None:
    data = b"---\nid: open\n" + b"key: value\n" * 100_000
    assert all(len(block.raw) <= MAX_TEXT_BLOCK for block in cut_file(NOTES, data))


# --- superseding


def supersede(lines: list[str], by: str = "mem_2", newline: str = "\n") -> list[str]:
    head = newline.join(["---", "id: mem_1", "created: 2026-01-01", "category: facts", *lines, "---", ""])
    return superseded(head.encode(), by).decode().split(newline)[4:-2]


@pytest.mark.parametrize(
    ("lines", "after"),
    [
        (["supersedes: mem_0", "summary: s"], ["supersedes: mem_0", "+", "summary: s"]),
        (["tags: [a]", "supersedes: mem_0"], ["tags: [a]", "supersedes: mem_0", "+"]),
        (["tags: [a]", "summary: s"], ["tags: [a]", "+", "summary: s"]),
        (
            ["tags:", "- a", "", "  # c", "- b", "# d", "summary: s"],
            ["tags:", "- a", "", "  # c", "- b", "+", "# d", "summary: s"],
        ),
        (["tags: [a,", "  b]", "owner: x"], ["tags: [a,", "  b]", "+", "owner: x"]),
        (["supersedes:", "  mem_0", "x: y"], ["supersedes:", "  mem_0", "+", "x: y"]),
        (["owner: x", "summary: s"], ["owner: x", "+", "summary: s"]),
        (["owner: x", "# end"], ["owner: x", "# end", "+"]),
        (["superseded_by:", "tags: [a]"], ["+", "tags: [a]"]),
        (["superseded_by: null", "x: y"], ["+", "x: y"]),
        (["superseded_by: ~  # not yet", "x: y"], ["+  # not yet", "x: y"]),
        (["superseded_by:   # not yet"], ["+   # not yet"]),
        (['superseded_by: ""'], ["+"]),
        (["superseded_by: x", "superseded_by:"], ["superseded_by: x", "+"]),
        (
            ['note: "a', "tags: [x]", 'summary: b"', "x: y"],
            ['note: "a', "tags: [x]", 'summary: b"', "x: y", "+"],
        ),
    ],
)
def test_superseding_adds_one_line_at_its_place(lines: list[str], after: list[str]) -> None:
    assert supersede(lines) == [line.replace("+", "superseded_by: mem_2") for line in after]
    assert supersede(lines, newline="\r\n") == supersede(lines)


def test_an_added_line_takes_the_line_end_of_the_line_above() -> None:
    head = b"---\r\nid: x\r\ncreated: 2026-01-01\ncategory: facts\r\ntags: []\r\nsummary: s\n---\n"
    assert superseded(head, "y") == head.replace(b"summary", b"superseded_by: y\r\nsummary")


def test_the_block_may_have_lines_above_and_a_body_below() -> None:
    raw = b"\n<!-- -->\n\n" + HEAD + b"\n---\nid: no\ntags: x\n"
    changed = superseded(raw, "mem_2")
    assert changed == raw.replace(b"facts\n", b"facts\nsuperseded_by: mem_2\n")
    [*_, block] = cut(raw)
    meta_end = len(raw) - len(block.raw) + block.meta_end
    assert superseded(raw[:meta_end], "mem_2") + raw[meta_end:] == changed


def test_an_id_that_means_something_else_is_quoted() -> None:
    assert supersede([], by="yes") == ['superseded_by: "yes"']
    assert supersede([], by="a\nforged: x") == ['superseded_by: "a forged: x"']


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"text\n", "no entry"),
        (HEAD.replace(b"facts", b"faqs"), "no usable entry"),
        (HEAD.replace(b"category", b"superseded_by: z\ncategory"), "superseded by z already"),
        (HEAD.replace(b"category", b"superseded_by: |\n  z\ncategory"), "superseded by z already"),
    ],
)
def test_what_cannot_be_superseded_is_refused(raw: bytes, problem: str) -> None:
    with pytest.raises(InvalidEntry, match=problem):
        superseded(raw, "mem_2")


@pytest.mark.parametrize(
    ("by", "error"),
    [("", InvalidEntry), ("\n", InvalidEntry), ("a\0", InvalidText), ("x" * 256, InvalidText)],
)
def test_a_superseding_id_is_checked(by: str, error: type[FormatError]) -> None:
    with pytest.raises(error):
        superseded(HEAD, by)


@given(files, st.sampled_from(["mem_2", "yes", "a: b"]))
def test_superseding_changes_one_line_and_one_field(data: bytes, by: str) -> None:
    for block in cut_file(NOTES, data):
        if block.entry is None or not block.entry.is_active:
            continue
        changed = superseded(block.raw, by)
        assert superseded(block.raw[: block.meta_end], by) + block.raw[block.meta_end :] == changed
        old_lines, new_lines = block.raw.split(b"\n"), changed.split(b"\n")
        assert len(new_lines) - len(old_lines) in (0, 1)
        assert len([line for line in new_lines if line not in old_lines]) <= 1
        [new] = [b.entry for b in cut_file(NOTES, changed) if b.entry]
        assert new == block.entry.replaced_by(by)
        with pytest.raises(InvalidEntry):
            superseded(changed, by)


@given(entries)
def test_superseding_a_composed_entry_gives_what_composing_it_superseded_gives(entry: MemoryEntry) -> None:
    try:
        text = compose_entry(entry)
    except InvalidEntry:
        return
    if normal_entry(entry).is_active:
        assert superseded(text.encode(), "mem_2").decode() == compose_entry(entry.replaced_by("mem_2"))


def test_a_whole_file_with_one_entry_superseded() -> None:
    data = b"# A\n\n" + HEAD + b"\nx\n\n" + HEAD.replace(b"mem_1", b"mem_2") + HEAD
    line = b"superseded_by: mem_3\n"
    assert with_superseded(data, "mem_1", "mem_3") == data.replace(b"facts\n", b"facts\n" + line, 1)
    with pytest.raises(InvalidEntry, match="no entry mem_9"):
        with_superseded(data, "mem_9", "mem_3")


# --- lines


@pytest.mark.parametrize(
    ("data", "newline"),
    [(b"", "\n"), (b"a\nb\r\n", "\n"), (b"a\r\nb\r\nc\n", "\r\n"), (b"a\rb\r", "\n"), (b"a\r\n", "\r\n")],
)
def test_the_dominant_line_end(data: bytes, newline: str) -> None:
    assert dominant_newline(data) == newline


@pytest.mark.parametrize(("text", "lines"), [("", 0), ("a", 1), ("a\n", 1), ("a\r\nb\rc\u2028d\x0c", 4)])
def test_lines_are_counted_as_readers_page_through_them(text: str, lines: int) -> None:
    assert count_lines(text) == lines
