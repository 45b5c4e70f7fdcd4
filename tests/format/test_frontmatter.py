from contextlib import suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from memsvc.format import frontmatter
from memsvc.format.frontmatter import (
    FrontmatterError,
    Value,
    read_frontmatter,
    summary_line,
    tags_line,
    text_line,
)

from .strategies import one_line_texts


def values(text: str) -> dict[str, Value]:
    return dict(read_frontmatter(text).values)


@pytest.mark.parametrize(
    "scalar", ["yes", "null", "007", "1.10", "12:30", "2026-02-30", "0x_", ".inf", "1:1:1", "=", "<<"]
)
def test_plain_scalars_of_known_keys_are_the_text_that_stands_there(scalar: str) -> None:
    assert values(f"summary: {scalar}\nid: {scalar}\ntags: [{scalar}]\n") == {
        "summary": scalar,
        "id": scalar,
        "tags": [scalar],
    }


def test_every_shape_of_yaml_is_read() -> None:
    text = """\
# a comment
id: mem_1        # another
tags:
- a
- "b #c"
summary: >
  folded
  text
nested:
  deeper: [x, {y: z}]
'quoted key': 'it''s'
id: mem_2
<<: {id: mem_3}
"""
    assert values(text) == {
        "id": "mem_2",
        "tags": ["a", "b #c"],
        "summary": "folded text\n",
        "nested": {"deeper": ["x", {"y": "z"}]},
        "quoted key": "it's",
        "<<": {"id": "mem_3"},
    }


def test_plain_nothing_is_told_from_text() -> None:
    meta = read_frontmatter(
        "id:\ntype: ~\nsource: null\nsummary: 'null'\nb: ''\ntags: null\ntags: x\nc: \"\"\nd: null\n"
    )
    assert meta.nulls == {"id", "type", "source", "d"}
    assert meta.values["source"] == meta.values["summary"] == "null"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no mapping"),
        ("- a\n", "no mapping"),
        ("text\n", "no mapping"),
        ("tags: [#urgent]\n", "ParserError"),
        ("tags: [a, b\n", "ParserError"),
        ("a: b: c\n  d\n", "ScannerError"),
        ("a: b\n- \x07\n", "ReaderError"),
        ("a: &x 1\nb: *x\n", "an anchor"),
        ("b: *x\n", "an alias"),
        ("&x a: b\n", "an anchor"),
        ("a: !x\n", "a tag"),
        ("a: !!python/object/apply:os.system ['id']\n", "a tag"),
        ("[a]: b\n", "a key that is no text"),
        ("a: 1\n--- \nb: 2\n", "more than one document"),
        ('a: "\\0"\n', "a NUL"),
        ("a: " + "[" * 15 + "]" * 15 + "\n", ""),
        ("a: " + "[" * 16 + "]" * 16 + "\n", "more than 16 levels"),
        ("a: [" + "x," * 3000 + "]\n", "more than 2,000 nodes"),
        ("a: " + "x" * 70_000 + "\n", "longer than 64 KiB"),
        ("a: " + "é" * 40_000 + "\n", "longer than 64 KiB"),
    ],
)
@pytest.mark.parametrize("loader", ["CSafeLoader", "SafeLoader"])
def test_what_cannot_be_used_is_refused_with_a_reason(
    text: str, reason: str, loader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frontmatter, "_LOADER", getattr(yaml, loader, yaml.SafeLoader))
    if not reason:
        assert values(text)
        return
    with pytest.raises(FrontmatterError, match=f"^yaml: .*{reason}"):
        read_frontmatter(text)


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("summary: a: b", "summary", "a: b"),
        ("summary: foo:", "summary", "foo:"),
        ("tags: two: three", "tags", "two: three"),
        ('source: "half', "source", '"half'),
        ('summary: "a" b', "summary", '"a" b'),
        ("summary: 'it's", "summary", "'it's"),
        ("summary: [x", "summary", "[x"),
        ("summary: {x", "summary", "{x"),
        ("summary: @foo ", "summary", "@foo"),
        ("summary: `x`\t", "summary", "`x`"),
        ("summary: *star", "summary", "*star"),
        ("summary: 50% off: yes", "summary", "50% off: yes"),
        ("summary: %x", "summary", "%x"),
        ("summary: > 50%", "summary", "> 50%"),
        ("summary: | x", "summary", "| x"),
        ("summary: - a", "summary", "- a"),
        ("summary:\ta: b", "summary", "a: b"),
        ("summary: a: b # c", "summary", "a: b # c"),
        ("summary: C:\\new: \x07", "summary", "C:\\new: \x07"),
        ("note: a: b", "note", "a: b"),
        ("größe: 京都: b", "größe", "京都: b"),
        # What YAML reads by itself it reads as ever.
        ("summary: it's #1", "summary", "it's"),
        ("summary: 'a: b'", "summary", "a: b"),
    ],
)
@pytest.mark.parametrize("below", ["", "source: me\n", "\n# remark\nsource: me\n"])
@pytest.mark.parametrize("loader", ["CSafeLoader", "SafeLoader"])
def test_a_line_that_yaml_does_not_take_is_read_as_it_stands(
    line: str, key: str, value: str, below: str, loader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frontmatter, "_LOADER", getattr(yaml, loader, yaml.SafeLoader))
    found = values(f"id: x\n{line}\n{below if key != 'source' else ''}tags2:\n  - a\n")
    assert (found[key], found["id"], found["tags2"]) == (value, "x", ["a"])


@pytest.mark.parametrize(
    "bomb",
    ["[" * 60_000, "{" * 60_000, "- " * 30_000, "? " * 30_000, "'" * 59_999, "a: " * 20_000, "!" * 60_000],
)
def test_a_bomb_stops_at_a_limit(bomb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events = 0
    get_event = frontmatter._EventReader._next

    def counted(self: frontmatter._EventReader) -> yaml.Event:
        nonlocal events
        events += 1
        return get_event(self)

    monkeypatch.setattr(frontmatter._EventReader, "_next", counted)
    with suppress(FrontmatterError):
        assert read_frontmatter(f"a: {bomb}\n").values == {"a": bomb.rstrip()}
    assert events < 100


usual_lines = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["id", "source", "summary", "supersedes", "type"]), one_line_texts).map(
            ": ".join
        ),
        st.tuples(st.sampled_from(["summary", "source"]), one_line_texts).map(
            lambda pair: f'{pair[0]}: "{pair[1]}"'
        ),
        st.lists(one_line_texts, max_size=3).map(lambda tags: f"tags: [{', '.join(tags)}]"),
    ),
    max_size=4,
)


@given(usual_lines)
def test_the_fast_reading_of_usual_lines_is_that_of_yaml(lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    fast = frontmatter._read_usual(text)
    if fast is not None:
        assert fast == frontmatter._read_yaml(text)


@given(one_line_texts.map(lambda text: " ".join(text.split())), st.sampled_from(["source", "supersedes"]))
def test_a_line_reads_back_equal_everywhere(value: str, key: str) -> None:
    for line in (text_line(key, value), summary_line(value)):
        key = line.partition(":")[0]
        assert yaml.safe_load(line) == {key: value}
        assert values(line + "\n") == {key: value}


@given(st.lists(one_line_texts.map(lambda text: " ".join(text.split())).filter(bool), max_size=5).map(tuple))
def test_tags_read_back_equal_everywhere(tags: tuple[str, ...]) -> None:
    line = tags_line(tags)
    assert "\n" not in line
    assert yaml.safe_load(line) == {"tags": list(tags)}
    assert values(line + "\n") == {"tags": list(tags)}


@pytest.mark.parametrize(
    ("summary", "line"),
    [
        ("ACME moved", "summary: ACME moved"),
        ("Path: ok", 'summary: "Path: ok"'),
        ('[draft] say "hi"', 'summary: "[draft] say \\"hi\\""'),
        ("Path: C:\\dir", 'summary: "Path: C:\\\\dir"'),
        ("C:\\dir", "summary: C:\\dir"),
        ("Ticket closed #4711", 'summary: "Ticket closed #4711"'),
        ("C#4", "summary: C#4"),
        ("foo:", 'summary: "foo:"'),
        ("- item", 'summary: "- item"'),
        ("yes", 'summary: "yes"'),
        ("007", 'summary: "007"'),
        ("12:30", 'summary: "12:30"'),
        ("=", 'summary: "="'),
        ("Café 京都", "summary: Café 京都"),
        ("a\x07b\ufeff", 'summary: "a\\u0007b\\uFEFF"'),
        ("2026-02-30", 'summary: "2026-02-30"'),
        ("3 beds", "summary: 3 beds"),
    ],
)
def test_summaries_are_quoted_when_they_have_to_be(summary: str, line: str) -> None:
    assert summary_line(summary) == line


@pytest.mark.parametrize(
    "source", ["ticket: 42", "@alice", "no", "#general", "", "---x: y", "%TAG", "null", "~", "a\\nb: c"]
)
def test_sources_are_quoted_when_they_have_to_be(source: str) -> None:
    assert yaml.safe_load(text_line("source", source)) == {"source": source}


def test_only_the_tags_that_need_it_are_quoted() -> None:
    assert tags_line(("#urgent", "a,b", "1.10", "web")) == 'tags: ["#urgent", "a,b", "1.10", web]'
    assert tags_line(("a b", "c/d", "京都", "bed-3")) == "tags: [a b, c/d, 京都, bed-3]"
    assert tags_line(()) == "tags: []"
