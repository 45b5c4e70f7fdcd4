"""What memsvc promises to do better, by the number of the promise, as far as the format decides it.

Each case made another tool lose entries, read back other values, or hang.
"""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
import yaml

from memsvc.format import (
    CATEGORY_KIND,
    SCAFFOLD,
    BlockKind,
    InvalidPath,
    InvalidText,
    MemoryCategory,
    MemoryEntry,
    MemoryKind,
    appended,
    canonical_path,
    compose_entry,
    cut,
    cut_file,
    entry_path,
    is_router,
    new_entry_id,
    parse_entries,
    parse_index,
    router_of,
    strict_path,
    with_row,
    with_superseded,
)

FACTS = "/memory/semantic_memory/facts.md"
ENTRY = MemoryEntry("mem_1", datetime(2026, 8, 1, tzinfo=UTC), MemoryCategory.FACTS, "Body.")


def facts(*entries: MemoryEntry) -> bytes:
    data = SCAFFOLD[FACTS].encode()
    for entry in entries:
        data = appended(data, compose_entry(entry))
    return data


def stored_with(**fields: Any) -> MemoryEntry:
    """An entry with these fields, read back from a file in which another one follows it."""
    entry = replace(ENTRY, **fields)
    following = replace(ENTRY, entry_id="mem_2")
    first, second = parse_entries(facts(entry, following).decode())
    assert second == following
    return first


def read_by_plain_yaml(entry: MemoryEntry) -> dict[str, object]:
    text = compose_entry(entry)
    meta: dict[str, object] = yaml.safe_load(text[4 : text.index("\n---\n")])
    return meta


BLINDING = ["2026-02-30", "2026-13-01", "0x_", "9" * 5_000, "[" * 2_000, "{" * 1_000]
SOURCES_AND_TAGS = [
    "#urgent",
    "@team",
    "!x",
    "x]",
    "'q",
    ":",
    "- a",
    "=",
    "ticket: 42",
    "foo:",
    "yes",
    "no",
    "null",
    "007",
]
SOURCES_AND_TAGS += ["1.10", "12:30", "a,b", "key: v"]
SUMMARIES = [
    "foo:",
    "- item",
    "]",
    r"Path: C:\dir",
    r"regex: \w+",
    "x: y\\",
    "a #b",
    "null",
    "no",
    "0",
    "#x",
    r"C:\new: x",
]


@pytest.mark.parametrize("value", [*BLINDING, *SOURCES_AND_TAGS, *SUMMARIES], ids=lambda value: value[:20])
def test_r1_r2_r3_a_value_reads_back_equal_here_and_in_plain_yaml(value: str) -> None:
    entry = replace(ENTRY, summary=value, source=value, tags=("a", value, value))

    read = stored_with(summary=value, source=value, tags=("a", value, value))

    assert (read.summary, read.source, read.tags) == (value, value, ("a", value, value))
    meta = read_by_plain_yaml(entry)
    assert (meta["summary"], meta["source"], meta["tags"]) == (value, value, ["a", value, value])


def test_r1_one_bad_block_hides_no_other() -> None:
    bad = (
        b"\n---\nid: mem_bad\ncreated: 2026-02-30\ncategory: facts\ntags: ["
        + b"[" * 2_000
        + b"]\n---\n\nBad.\n"
    )
    data = facts(ENTRY) + bad
    data = appended(data, compose_entry(replace(ENTRY, entry_id="mem_2")))

    assert [block.kind.value for block in cut(data)] == ["text", "entry", "opaque", "entry"]
    assert bad.strip() in with_superseded(data, "mem_2", "mem_3")


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_r4_a_supersession_adds_one_line_and_changes_no_other(line_end: str) -> None:
    text = """\
---
id: mem_bad
created: last Tuesday
category: facts
---

Malformed.


---
# by hand
summary: 'It''s here'
confidence: HIGH
tags:
  - a
owner: dana
created: 2026-05-04
category: facts
id: mem_1
---


Body.
---
"""
    data = text.replace("\n", line_end).encode()

    changed = with_superseded(data, "mem_1", "mem_2")

    added = f"superseded_by: mem_2{line_end}".encode()
    assert changed == data.replace(b"owner", added + b"owner")


@pytest.mark.parametrize("field", ["source", "summary", "supersedes"])
def test_r5_one_line_fields_are_one_line(field: str) -> None:
    forged = "a\nsuperseded_by: x\r\n---\n\n---\nid: forged\u2028---\x85"

    read = stored_with(**{field: forged, "tags": (forged,)})

    assert getattr(read, field) == read.tags[0] == "a superseded_by: x --- --- id: forged ---"
    assert read.superseded_by is None


def test_r6_ten_thousand_entries_stay_and_are_found() -> None:
    texts = [compose_entry(replace(ENTRY, entry_id=f"mem_{i}", body="line\n" * 12)) for i in range(10_000)]
    data = SCAFFOLD[FACTS].encode() + "".join(f"\n{text}" for text in texts).encode()
    assert data.count(b"\n") > 200_000

    blocks = cut_file(FACTS, data)

    assert b"".join(block.raw for block in blocks) == data
    assert [block.entry.entry_id for block in blocks if block.entry] == [f"mem_{i}" for i in range(10_000)]


@pytest.mark.parametrize("field", ["body", "summary", "source", "entry_id", "supersedes"])
def test_r9_half_a_surrogate_pair_is_refused(field: str) -> None:
    with pytest.raises(InvalidText, match="surrogate"):
        stored_with(**{field: "a\ud800"})
    with pytest.raises(InvalidText, match="surrogate"):
        stored_with(tags=("a\udfff",))


def test_r11_preferences_are_semantic() -> None:
    assert CATEGORY_KIND[MemoryCategory.PREFERENCES] is MemoryKind.SEMANTIC
    assert stored_with(category=MemoryCategory.PREFERENCES).kind is MemoryKind.SEMANTIC


@pytest.mark.parametrize("title", ["Index", "INDEX!", " index "])
def test_r12_a_procedure_never_takes_the_routers_name(title: str) -> None:
    path = entry_path(MemoryCategory.PROCEDURE, title=title)

    assert path == "/memory/procedural_memory/index-procedure.md"
    assert not is_router(path)


def test_r13_the_index_never_destroys_and_never_goes_back() -> None:
    index = SCAFFOLD["/memory/semantic_memory/index.md"].encode() + b"| odd | row |\n\nNotes below.\n"
    long_summary = "word " * 2_000
    index = with_row(index, path="facts.md", description="s", tags=["a,b"], when=date(2026, 8, 1))
    index = with_row(index, path="facts.md", description=long_summary, tags=["c"], when=date(2026, 7, 1))

    row = parse_index(index.decode())[1]["facts.md"]

    assert index.endswith(b"| odd | row |\n\nNotes below.\n")
    assert (row.tags, row.updated) == (("facts", "a,b", "c"), "2026-08-01")
    assert len(row.description) <= 200
    assert stored_with(summary=long_summary).summary == long_summary.strip()


def test_r16_a_setext_heading_is_harmless() -> None:
    data = facts(replace(ENTRY, body="Title\n---\ntext"))

    data = with_superseded(data, "mem_1", "mem_2")
    data = appended(data, compose_entry(replace(ENTRY, entry_id="mem_2", supersedes="mem_1")))

    old, new = parse_entries(data.decode())
    assert (old.body, old.superseded_by, new.supersedes) == ("Title\n---\ntext", "mem_2", "mem_1")


def test_r19_ids_of_one_day_never_clash() -> None:
    assert len({new_entry_id(ENTRY.created) for _ in range(50_000)}) == 50_000


def test_r20_time_is_utc() -> None:
    late = datetime(2026, 8, 31, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    naive = datetime(2026, 8, 31, 23, 30)  # noqa: DTZ001 - naive is the point

    assert entry_path(MemoryCategory.EVENTS, when=late).endswith("/2026-09.md")
    assert entry_path(MemoryCategory.EVENTS, when=naive).endswith("/2026-08.md")
    assert new_entry_id(late).startswith("mem_2026-09-01_")
    assert stored_with(created=late).created.isoformat() == "2026-08-31T23:30:00-05:00"
    assert stored_with(created=naive).created == naive.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "body",
    [
        "first\u2028second\u2029third",
        "a\x0bb\x0cc\x1cd\x1de\x1ef\x85g",
        "    indented code\n    more",
        "two spaces at the end  ",
        "text\n\n---\n\nafter a thematic break",
        "```yaml\n---\nid: example\n---\n```",
        "---\ntitle: frontmatter of another tool\n---\n\ntext",
    ],
)
def test_r21_text_is_kept(body: str) -> None:
    assert stored_with(body=body).body == body
    assert stored_with(body=body.replace("\n", "\r\n")).body == body


@pytest.mark.parametrize(
    "preamble",
    [
        b"# Facts\n\n---\n\nA rule.\n",
        b"Facts\n---\n",
        b"---\ntitle: Facts\naliases: [x]\n---\n",
        b"\xef\xbb\xbf# Facts\n",
        b"---\nopen: yes\n",
        b"---\nid: open\n",
        b"# Facts\n\n---\nid: open\nnote: x",
    ],
)
def test_r22_preambles_are_free(preamble: bytes) -> None:
    data = preamble
    for i in range(3):
        data = appended(
            data, compose_entry(replace(ENTRY, entry_id=f"mem_{i}", body=f"Body {i}.\n\n---\n\nMore."))
        )

    assert data.startswith(preamble)
    assert [entry.entry_id for entry in parse_entries(data.decode())] == ["mem_0", "mem_1", "mem_2"]
    assert [block.kind for block in cut_file(FACTS, data)] == [BlockKind.TEXT, *[BlockKind.ENTRY] * 3]


def test_r23_place_does_not_change_meaning() -> None:
    text = compose_entry(replace(ENTRY, category=MemoryCategory.RULES)).encode()

    for path in [
        "/memory/notes.md",
        "/memory/a/b/c.md",
        "/memory/episodic_memory/events/2026-08.md",
        "/agents/x.md",
    ]:
        [block] = cut_file(path, text)
        assert block.entry is not None
        assert (block.entry.category, block.entry.kind) == (MemoryCategory.RULES, MemoryKind.SEMANTIC)
    for path in ["/memory/a/index.md", "/memory/.obsidian/x.md"]:
        assert [block.kind for block in cut_file(path, text)] == [BlockKind.TEXT]


def test_r24_titles_share_readable_slugs() -> None:
    def slug(title: str) -> str:
        return entry_path(MemoryCategory.PROCEDURE, title=title).rpartition("/")[2]

    assert {slug("Deploy: prod!"), slug("Deploy prod"), slug("deploy_prod")} == {"deploy-prod.md"}
    assert slug("Über Straße") == "uber-strasse.md"
    assert slug("本番デプロイ") == "本番デプロイ.md"
    assert len(slug("x" * 400).encode()) <= 255
    assert slug("x" * 400) == slug("x" * 400)
    for title in ["🚀", "!!!"]:
        with pytest.raises(ValueError, match="cannot build a slug"):
            slug(title)


def test_r26_only_a_segment_of_two_dots_is_refused() -> None:
    assert strict_path("/memory/v1..2.md") == canonical_path("/memory/v1..2.md") == "/memory/v1..2.md"
    with pytest.raises(InvalidPath):
        canonical_path("/memory/../memory/x.md")


@pytest.mark.parametrize("path", ["/memory/../memory/x", "/memory/a/../../x", "..", "/memory/..\u0000"])
def test_r28_no_spelling_leaves_a_folder(path: str) -> None:
    with pytest.raises(InvalidPath):
        canonical_path(path)


def test_r29_every_file_has_at_most_one_router() -> None:
    assert router_of("/memory/semantic_memory/glossary.md") == (
        "/memory/semantic_memory/index.md",
        "glossary.md",
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a: &a [x]\nb: *a", "yaml: an anchor"),
        ("a: !!python/object/apply:os.system ['id']", "yaml: a tag"),
        ("a: " + "[" * 100 + "]" * 100, "yaml: more than 16 levels"),
        ("a: [" + "x, " * 10_000 + "]", "yaml: more than 2,000 nodes"),
        ("a: " + "x" * 100_000, "yaml: longer than 64 KiB"),
        ('a: "\\0"', "yaml: a NUL or half of a surrogate pair"),
        ("a: [", "yaml: ParserError"),
    ],
)
def test_r30_a_yaml_bomb_is_an_opaque_block(line: str, reason: str) -> None:
    text = f"---\nid: mem_bomb\ncreated: 2026-08-01\ncategory: facts\n{line}\n---\n\nBody.\n"

    bomb, other = cut_file(FACTS, appended(text.encode(), compose_entry(ENTRY)))

    assert (bomb.kind, bomb.reason) == (BlockKind.OPAQUE, reason)
    assert other.entry == ENTRY
