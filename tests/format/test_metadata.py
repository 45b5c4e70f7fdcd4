"""What a frontmatter holds besides the keys that the format knows."""

from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from memsvc.format import (
    InvalidEntry,
    InvalidMetadata,
    InvalidText,
    MemoryCategory,
    MemoryEntry,
    Metadata,
    checked_metadata,
    compose_entry,
    cut,
    metadata_of,
    normal_entry,
    storable_metadata,
    superseded,
)
from memsvc.format.frontmatter import MAX_NUMBER, FrontmatterError, read_frontmatter
from memsvc.format.metadata import RESERVED_NAMES
from tests.format.strategies import characters, entries, one_line_texts

ENTRY = MemoryEntry("mem_1", datetime(2026, 8, 1, tzinfo=UTC), MemoryCategory.FACTS, "Body.")

names = (st.text(characters, min_size=1, max_size=20) | one_line_texts).filter(
    lambda name: bool(name.strip()) and len(name.encode()) <= 128 and name not in RESERVED_NAMES
)
scalars = (
    st.booleans()
    | st.integers(-MAX_NUMBER, MAX_NUMBER)
    | st.floats(-MAX_NUMBER, MAX_NUMBER)
    | st.text(characters, max_size=30)
    | one_line_texts
    | st.sampled_from(
        ["true", "1", "1.5e3", "-0", "null", "~", "2026-11-30", "0x1f", "a: b", "a #b", "<<", "="]
    )
)
flat = st.dictionaries(names, scalars | st.lists(scalars, max_size=4), max_size=5)
nested = st.dictionaries(
    names,
    st.recursive(
        scalars,
        lambda inner: (
            st.lists(inner | st.none(), max_size=3) | st.dictionaries(st.text(characters, max_size=9), inner)
        ),
        max_leaves=8,
    ),
    max_size=3,
)


def typed(value: Any) -> Any:
    """A value with the types of all that is in it: 1, 1.0 and True are equal, and not the same."""
    match value:
        case dict():
            return {name: typed(inner) for name, inner in value.items()}
        case list():
            return [typed(inner) for inner in value]
    return type(value), value


def stored(metadata: Metadata) -> dict[str, Any]:
    [block] = cut(compose_entry(ENTRY, metadata).encode())
    assert block.entry == normal_entry(ENTRY)
    return metadata_of(block.extra)


def read(lines: str) -> dict[str, Any]:
    text = f"---\nid: mem_1\ncreated: 2026-01-01\ncategory: facts\n{lines}---\n\nBody.\n"
    [block] = cut(text.encode())
    assert block.entry is not None, block.reason
    return metadata_of(block.extra)


@given(entries, flat)
def test_what_is_given_is_read_back(entry: Any, metadata: dict[str, Any]) -> None:
    try:
        text = compose_entry(entry, checked_metadata(metadata))
    except InvalidEntry:
        return
    [block] = cut(text.encode())
    assert block.entry == normal_entry(entry)
    assert typed(metadata_of(block.extra)) == typed(metadata)


@given(nested)
def test_nested_values_of_other_writers_are_written_again_as_they_were(metadata: dict[str, Any]) -> None:
    assert typed(stored(metadata)) == typed(metadata)


@given(flat)
def test_other_readers_of_yaml_read_the_same(metadata: dict[str, Any]) -> None:
    text = compose_entry(ENTRY, metadata)
    read_by_others = yaml.safe_load(text[len("---\n") : text.index("\n---\n")])
    assert {name: read_by_others.get(name) for name in metadata} == metadata


@given(flat)
def test_an_entry_with_metadata_is_superseded_by_one_line(metadata: dict[str, Any]) -> None:
    text = compose_entry(ENTRY, metadata).encode()
    changed = superseded(text, "mem_new")
    [block] = cut(changed)
    assert changed.replace(b"superseded_by: mem_new\n", b"") == text
    assert block.entry == normal_entry(ENTRY).replaced_by("mem_new")
    assert typed(metadata_of(block.extra)) == typed(metadata)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *[("3", 3), ("-3", -3), ("0.5", 0.5), ("1e3", 1000.0), ("9007199254740991", MAX_NUMBER)],
        *[
            ("true", True),
            ("False", False),
            ("yes", "yes"),
            ("'3'", "3"),
            ('"true"', "true"),
            ("|\n  3", "3\n"),
        ],
        *[("2026-11-30", "2026-11-30"), ("007", "007"), ("+3", "+3"), ("1_000", "1_000"), (".5", ".5")],
        *[("9007199254740993", "9007199254740993"), ("1e400", "1e400"), (".nan", ".nan"), ("-.inf", "-.inf")],
        ("0." + "3" * 50, "0." + "3" * 50),
        ("[a, 1, '1', null]", ["a", 1, "1", None]),
        ("{a: {b: [true]}}", {"a": {"b": [True]}}),
    ],
)
def test_plain_scalars_are_what_json_has_a_word_for(written: str, value: object) -> None:
    assert typed(read(f"key: {written}\n")) == typed({"key": value})


@pytest.mark.parametrize(
    "line", ["owner:", "owner: null", "owner: ~", "status: approved", "trust: high", "author: me"]
)
def test_keys_without_a_value_and_reserved_ones_are_no_metadata(line: str) -> None:
    assert read(f"{line}\nkept: 1\n") == {"kept": 1}


def test_a_name_that_is_too_long_is_no_metadata() -> None:
    assert read(f"{'é' * 64}: 1\n{'é' * 65}: 1\n") == {"é" * 64: 1}


@pytest.mark.parametrize("known", ["source: 7", "summary: true", "id: 12"])
def test_keys_that_the_format_knows_stay_text(known: str) -> None:
    key, _, text = known.partition(": ")
    assert read_frontmatter(f"{known}\nother: 1\n").values == {key: text, "other": 1}


@pytest.mark.parametrize("name", sorted(RESERVED_NAMES))
def test_reserved_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidMetadata, match=f"'{name}'"):
        checked_metadata({name: "x"})


@pytest.mark.parametrize(
    "given_metadata",
    [
        *[
            {"": 1},
            {" \n": 1},
            {"k": None},
            {"k": {}},
            {"k": {"a": 1}},
            {"k": [[]]},
            {"k": [None]},
            {"k": b"x"},
        ],
        *[{"k": float("nan")}, {"k": float("inf")}, {"k": 1e16}, {"k": MAX_NUMBER + 1}, {"k": -(10**400)}],
        *[{"k": ["x"] * 101}, {str(n): 1 for n in range(51)}],
    ],
    ids=lambda metadata: str(metadata)[:30],
)
def test_other_metadata_is_refused(given_metadata: dict[str, Any]) -> None:
    with pytest.raises(InvalidMetadata):
        checked_metadata(given_metadata)


@pytest.mark.parametrize(
    "given_metadata",
    [
        *[{"k\0": 1}, {"k": "\0"}, {"\ud800": 1}, {"k": "\udfff"}, {"k": ["\ud800"]}],
        *[{"k" * 129: 1}, {"k": "x" * 4097}],
        {7: 1},
    ],
    ids=lambda metadata: ascii(metadata)[:30],
)
def test_text_that_cannot_be_stored_is_refused(given_metadata: dict[Any, Any]) -> None:
    with pytest.raises(InvalidText, match="metadata"):
        checked_metadata(given_metadata)


def test_of_other_systems_metadata_is_taken_what_an_entry_takes() -> None:
    given_metadata = {
        "source": "x",
        "deep": {"a": 1},
        "none": None,
        "lone": "\ud800",
        "role": "user",
        "n": [1, "a"],
    }

    assert storable_metadata(given_metadata) == {"role": "user", "n": [1, "a"]}
    assert len(storable_metadata({str(n): n for n in range(60)})) == 50


def test_more_than_a_frontmatter_holds_is_refused() -> None:
    with pytest.raises(InvalidEntry, match="metadata together are too long"):
        compose_entry(ENTRY, {f"k{n}": "x" * 4000 for n in range(20)})


def test_a_frontmatter_stays_within_its_limits() -> None:
    with pytest.raises(FrontmatterError, match="levels"):
        read_frontmatter("deep: " + "[" * 20 + "]" * 20 + "\n")
