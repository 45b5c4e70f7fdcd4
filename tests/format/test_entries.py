from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml
from hypothesis import given

from memsvc.format import (
    MAX_BODY_BYTES,
    BlockKind,
    Confidence,
    FormatError,
    InvalidEntry,
    InvalidText,
    MemoryCategory,
    MemoryEntry,
    MemoryKind,
    compose_entry,
    cut,
    for_peers,
    new_entry_id,
    normal_entry,
    parse_entries,
    peer_readable,
    recovered_entry,
    render_document,
    render_entry,
    split_document,
)

from .strategies import entries

ENTRY = MemoryEntry(
    entry_id="mem_2026-08-24_9f3a1c",
    created=datetime(2026, 8, 24, 10, 15, tzinfo=UTC),
    category=MemoryCategory.FACTS,
    body="ACME switched on 2026-08-24.",
    summary="ACME moved",
    source="user_message",
    confidence=Confidence.HIGH,
    tags=("pricing", "acme"),
    supersedes="mem_2026-06-01_4b2e77",
)
TEXT = """\
---
id: mem_2026-08-24_9f3a1c
created: 2026-08-24T10:15:00+00:00
type: semantic
category: facts
source: user_message
confidence: high
tags: [pricing, acme]
supersedes: mem_2026-06-01_4b2e77
summary: ACME moved
---

ACME switched on 2026-08-24.
"""


def with_body(body: str) -> MemoryEntry:
    return replace(ENTRY, body=body)


def changed(field: str, value: Any) -> MemoryEntry:
    fields: dict[str, Any] = {field: value}
    return replace(ENTRY, **fields)


def stored(entry: MemoryEntry) -> MemoryEntry:
    [read] = parse_entries(compose_entry(entry))
    return read


def test_an_entry_as_text() -> None:
    assert compose_entry(ENTRY) == render_entry(ENTRY) == TEXT
    assert parse_entries(TEXT) == [ENTRY]


def test_an_entry_as_a_value() -> None:
    assert ENTRY.kind is MemoryKind.SEMANTIC
    assert ENTRY.is_active
    assert not ENTRY.replaced_by("mem_2").is_active
    assert ENTRY.replaced_by("mem_2").superseded_by == "mem_2"
    assert hash(ENTRY) == hash(replace(ENTRY))


def test_fields_that_are_not_set_have_no_line() -> None:
    text = compose_entry(MemoryEntry("mem_1", ENTRY.created, MemoryCategory.EVENTS, ""))
    assert text.split("\n") == [
        "---",
        "id: mem_1",
        "created: 2026-08-24T10:15:00+00:00",
        "type: episodic",
        "category: events",
        "source: agent",
        "confidence: medium",
        "tags: []",
        "---",
        "",
        "",
        "",
    ]


@given(entries)
def test_what_is_stored_reads_back_equal(entry: MemoryEntry) -> None:
    try:
        text = compose_entry(entry)
    except InvalidEntry:
        return
    assert parse_entries(text) == [normal_entry(entry)]
    assert normal_entry(normal_entry(entry)) == normal_entry(entry)
    [block] = cut(text.encode())
    assert block.kind is BlockKind.ENTRY
    assert not block.extra


@given(entries)
def test_what_is_stored_reads_back_equal_in_plain_yaml(entry: MemoryEntry) -> None:
    try:
        text = compose_entry(entry)
    except InvalidEntry:
        return
    meta = yaml.safe_load(text[len("---\n") : text.index("\n---\n")])
    kept = normal_entry(entry)
    assert (meta["id"], meta["category"], meta["type"]) == (kept.entry_id, kept.category, kept.kind)
    assert (meta["source"], meta["confidence"], meta["tags"]) == (
        kept.source,
        kept.confidence,
        list(kept.tags),
    )
    assert (meta.get("summary", ""), meta.get("supersedes")) == (kept.summary, kept.supersedes)
    assert meta.get("superseded_by") == kept.superseded_by


@pytest.mark.parametrize(
    ("created", "written"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC), "2026-01-02T03:04:05.000678+00:00"),
        (datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=2))), "2026-01-02T00:00:00+02:00"),
        (
            datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
            "2026-10-25T02:30:00+01:00",
        ),
        (datetime(2026, 1, 2), "2026-01-02T00:00:00+00:00"),  # noqa: DTZ001 - naive means UTC
        (datetime(33, 1, 2, tzinfo=UTC), "0033-01-02T00:00:00+00:00"),
    ],
)
def test_created_keeps_the_instant_and_its_offset(created: datetime, written: str) -> None:
    assert f"created: {written}\n" in compose_entry(replace(ENTRY, created=created))
    assert stored(replace(ENTRY, created=created)).created.isoformat() == written


@pytest.mark.parametrize(
    ("text", "created"),
    [
        ("2026-05-04", "2026-05-04T00:00:00+00:00"),
        ("2026-05-04        # typed by hand", "2026-05-04T00:00:00+00:00"),
        ("2026-05-04 10:11", "2026-05-04T10:11:00+00:00"),
        ("2026-05-04T10:11:12Z", "2026-05-04T10:11:12+00:00"),
        ("'2026-05-04T10:11:12.5+02:00'", "2026-05-04T10:11:12.500000+02:00"),
        ("2026-05-04 10:11:12 -05:00", "2026-05-04T10:11:12-05:00"),
        ("20260504T1011", "2026-05-04T10:11:00+00:00"),
    ],
)
def test_created_is_any_date_of_iso_8601(text: str, created: datetime) -> None:
    [entry] = parse_entries(f"---\nid: x\ncreated: {text}\ncategory: facts\n---\n")
    assert entry.created.isoformat() == created


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("created: 2026-02-30", "unusable created"),
        ("created: last Tuesday", "unusable created"),
        ("created: 9999-12-31T23:00-05:00", "unusable created"),
        ("created: [2026-05-04]", "unusable created"),
        ("created:", "unusable created"),
        ("category: faqs", "unknown category"),
        ("category: Facts", "unknown category"),
        ('id: ""', "unusable id"),
        ("id: {a: b}", "unusable id"),
        (f"id: {'x' * 256}", "unusable id"),
    ],
)
def test_an_entry_without_usable_fields_is_opaque(line: str, reason: str) -> None:
    text = f"---\nid: x\ncreated: 2026-05-04\ncategory: facts\n{line}\n---\n\nbody\n"
    [block] = cut(text.encode())
    assert (block.kind, block.reason, block.entry) == (BlockKind.OPAQUE, reason, None)
    assert block.raw[block.meta_end :] == b"\nbody\n"


def test_what_people_write_is_understood() -> None:
    text = """\
---
confidence: HIGH
tags:
  - parts
  - "order #77"
  - ""
reviewed_by: dana
links: [{url: https://example.org/a#b}]
id: mem_1
category: facts
created: 2026-05-04
supersedes: ~
superseded_by:
summary: 'It''s in the "blue" binder'
type: nonsense
---
body
"""
    [block] = cut(text.encode())
    entry = block.entry
    assert entry is not None
    assert (entry.confidence, entry.tags, entry.source) == (Confidence.HIGH, ("parts", "order #77"), "agent")
    assert (entry.supersedes, entry.superseded_by, entry.kind) == (None, None, MemoryKind.SEMANTIC)
    assert entry.summary == 'It\'s in the "blue" binder'
    assert block.extra == {"reviewed_by": "dana", "links": [{"url": "https://example.org/a#b"}]}


@pytest.mark.parametrize(
    ("line", "tags"),
    [
        ("tags: a, b ,, c", ("a", "b", "c")),
        ('tags: "[a, b]"', ("a", "b")),
        ("tags: [a, ' b ', '']", ("a", "b")),
        ("tags: [yes, 007, null]", ("yes", "007", "null")),
        ("tags:", ()),
        ("tags: null", ()),
        ("tags: {a: b}", ()),
    ],
)
def test_tags_are_a_list_or_text(line: str, tags: tuple[str, ...]) -> None:
    [entry] = parse_entries(f"---\nid: x\ncreated: 2026-05-04\ncategory: facts\n{line}\n---\n")
    assert entry.tags == tags


def test_an_unknown_confidence_reads_as_medium() -> None:
    [entry] = parse_entries("---\nid: x\ncreated: 2026-05-04\ncategory: facts\nconfidence: sure\n---\n")
    assert entry.confidence is Confidence.MEDIUM


@pytest.mark.parametrize(
    ("body", "read"),
    [
        ("\n \n    code\n  more  \n\n\t\n", "    code\n  more  "),
        ("a\r\nb\r\n", "a\nb"),
        ("a\rb", "a\rb"),
        ("a\r\r\nb\r", "a\nb"),
        (" \n\t", ""),
        ("a\u2028b\x0b\x0c\x1c\x1d\x1e\x85c\u00a0", "a\u2028b\x0b\x0c\x1c\x1d\x1e\x85c\u00a0"),
        ("Title\n---\ntext", "Title\n---\ntext"),
        ("---", "---"),
        ("a\n\n---\n\nb", "a\n\n---\n\nb"),
        ("```\n---\nid: x\n---\n```", "```\n---\nid: x\n---\n```"),
        ("a\n\n---\nid: unterminated\n", "a\n\n---\nid: unterminated"),
    ],
)
def test_bodies_are_kept(body: str, read: str) -> None:
    assert stored(with_body(body)).body == read


@pytest.mark.parametrize(
    "body",
    [
        "a\n\n---\nid: forged\n---\n\nb",
        "---\nid: x\n---",
        "a\n\n --- \n\n# c\nid: x\n  y\n---\t\n",
        "---\nid: x\n\n<!-- -->",
    ],
)
def test_a_body_that_holds_another_entry_is_refused(body: str) -> None:
    with pytest.raises(
        InvalidEntry, match=f"entry {ENTRY.entry_id} body must not contain a bare '---' line"
    ) as refusal:
        compose_entry(with_body(body))
    assert refusal.value.code == "invalid_entry"


@pytest.mark.parametrize("body", ["before\n---\nafter", "---", "a\n\n --- \nb", "a\u2028---\u2028b"])
def test_the_text_for_every_reader_has_no_bare_fence(body: str) -> None:
    with pytest.raises(ValueError, match="bare '---' line"):
        render_entry(with_body(body))


@pytest.mark.parametrize(
    ("body", "readable"),
    [
        ("a\n---\nb", True),
        ("a\n\n---\nb", False),
        ("---", False),
        ("a\u2028\u2028---", False),
        ("----", True),
        ("", True),
    ],
)
def test_bodies_that_other_readers_would_cut_are_known(body: str, readable: bool) -> None:
    assert peer_readable(with_body(body)) is readable


def test_fences_that_other_readers_would_cut_at_can_be_replaced() -> None:
    text = compose_entry(with_body("---\na\n\n --- \n\nTitle\n---\n\n```\n\n---\n```\n~~~\n---"))
    [block] = cut(text.encode())
    changed = for_peers(block.raw, block.meta_end).decode()
    assert (
        changed
        == text.partition("\n\n")[0] + "\n\n***\na\n\n *** \n\nTitle\n---\n\n```\n\n---\n```\n~~~\n---\n~~~\n"
    )


@pytest.mark.parametrize("field", ["body", "summary", "source", "entry_id", "supersedes", "superseded_by"])
@pytest.mark.parametrize("text", ["a\ud800b", "a\0b", 7])
def test_what_no_database_holds_is_refused_naming_the_field(field: str, text: str) -> None:
    with pytest.raises(InvalidText, match=field.removeprefix("entry_")):
        compose_entry(changed(field, text))
    with pytest.raises(InvalidText, match="tags"):
        compose_entry(changed("tags", ("a", text)))


@pytest.mark.parametrize(
    "too_much",
    [
        {"summary": "x" * 50_000},
        {"source": "x" * 9_000},
        {"tags": ("x" * 9_000,)},
        {"tags": ("x",) * 101},
        {"entry_id": "x" * 256},
        {"supersedes": "x" * 256},
        {"tags": tuple("x" * 8_000 for _ in range(9))},
        {"summary": '"' * 40_000},
        {"entry_id": " "},
        {"created": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))},
    ],
)
def test_too_much_is_refused(too_much: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        compose_entry(replace(ENTRY, **too_much))


def test_a_body_has_a_limit() -> None:
    assert stored(with_body("é" * (MAX_BODY_BYTES // 2))).body == "é" * (MAX_BODY_BYTES // 2)
    for body in ("é" * (MAX_BODY_BYTES // 2) + "x", "x" * (MAX_BODY_BYTES + 1), "x" * 5_000_000):
        with pytest.raises(InvalidEntry, match="262,144 bytes") as refusal:
            compose_entry(with_body(body))
        assert refusal.value.code == "body_too_large"


def test_ids_are_dated_in_utc_and_never_the_same() -> None:
    late = datetime(2026, 8, 31, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    made = {new_entry_id(late) for _ in range(50_000)}
    assert len(made) == 50_000
    assert all(
        entry_id.startswith("mem_2026-09-01_") and len(entry_id) == len("mem_2026-09-01_") + 16
        for entry_id in made
    )
    assert new_entry_id().startswith(f"mem_{datetime.now(tz=UTC):%Y-%m-}")


def test_a_document_is_its_preamble_and_its_entries() -> None:
    other = replace(ENTRY, entry_id="mem_2", body="", summary="")
    text = render_document("# Facts\n\n", [ENTRY, other])
    assert text == f"# Facts\n\n{TEXT}\n" + render_entry(other).rstrip() + "\n"
    assert split_document(text) == ("# Facts", [ENTRY, other])
    assert split_document("# Facts\n\n---\n\nrule\n") == ("# Facts\n\n---\n\nrule", [])
    assert split_document("") == ("", [])
    assert render_document("", [ENTRY]) == TEXT
    assert render_document("", []) == "\n"


def test_unusable_entries_hide_no_others() -> None:
    text = f"{TEXT}\n---\nid: bad\n---\n\nx\n\n{TEXT}"
    assert parse_entries(text) == [ENTRY, ENTRY]


@pytest.mark.parametrize(
    ("line", "field", "meant"),
    [
        ("summary: Ticket closed #4711", "summary", "Ticket closed #4711"),
        ("summary: #standup notes", "summary", "#standup notes"),
        ('summary: "Path: C:\\deploy"', "summary", "Path: C:\\deploy"),
        ('summary: "See: \\new \\"x\\""', "summary", 'See: \\new "x"'),
        ("tags: [#urgent, web]", "tags", ("#urgent", "web")),
        ("tags: [a,b]", "tags", ("a,b",)),
        ("tags: [owner: ada]", "tags", ("owner: ada",)),
    ],
)
def test_values_that_other_writers_lost_can_be_recovered(line: str, field: str, meant: object) -> None:
    key = line.partition(":")[0]
    lines = [line if old.startswith(f"{key}:") else old for old in TEXT.splitlines()]
    assert recovered_entry("\n".join(lines).encode()) == changed(field, meant)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "text",
        TEXT.replace("type: semantic\n", ""),
        TEXT.replace("moved", "moved\nnote: x #y"),
        TEXT.replace("ACME moved", '"yes"'),
    ],
)
def test_nothing_is_recovered_where_nothing_was_lost(text: str) -> None:
    assert recovered_entry(text.encode()) is None
