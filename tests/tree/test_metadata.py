"""Metadata of entries: kept in their text, found by a filter."""

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps

from memsvc.contract.requests import SuccessorRequest
from memsvc.format import InvalidMetadata, InvalidText
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.cloning import clone_tree
from memsvc.tree.models import Block
from memsvc.tree.operations import AddEntry
from memsvc.tree.reads import EntryFilter
from tests.tree.support import FACTS, access_to, add, draft, entry_text, text

pytestmark = pytest.mark.django_db

METADATA = {"project": "apollo", "priority": 3, "done": False, "links": ["a", "b"], "1": "one"}


def found(access: Access, revision: int | None = None, **wanted: Any) -> list[str]:
    page = reads.list_entries(access, EntryFilter(metadata=wanted), revision=revision)
    return sorted(each.entry.body for each in page.items)


def held(access: Access, entry_id: str, revision: int | None = None) -> Any:
    return reads.get_entry(access, entry_id, revision=revision).metadata


def test_metadata_stands_in_the_text_and_is_read_from_it(memory: Access) -> None:
    made = add(memory, metadata=METADATA)

    assert made.metadata == METADATA
    assert held(memory, made.entry.entry_id) == METADATA
    assert "\npriority: 3\ndone: false\nlinks: [a, b]\n" in text(memory, FACTS)


def test_metadata_of_a_file_written_by_hand_is_read(memory: Access) -> None:
    more = "owner: ina\nnested: {a: [1, x]}\nempty:\nstatus: approved\n"
    services.write_file(memory, FACTS, entry_text("mem_x", more=more))

    assert held(memory, "mem_x") == {"owner": "ina", "nested": {"a": [1, "x"]}}

    services.edit_file(memory, FACTS, "owner: ina", "owner: ole")
    assert held(memory, "mem_x")["owner"] == "ole"
    assert held(memory, "mem_x", revision=1)["owner"] == "ina"


def test_what_is_no_entry_has_no_metadata(memory: Access) -> None:
    services.write_file(memory, FACTS, "---\ntitle: notes\n---\n\ntext\n")

    assert [row.metadata for row in Block.objects.of(memory.tree)] == [{}]


def test_a_successor_keeps_metadata_unless_it_has_its_own(memory: Access) -> None:
    services.write_file(memory, FACTS, entry_text("mem_x", more="owner: ina\nnested: {a: 1}\ntrust: high\n"))

    kept = services.supersede_entry(memory, SuccessorRequest("mem_x", "kept"))
    own = services.supersede_entry(memory, SuccessorRequest(kept.entry.entry_id, "own", metadata={"n": 1}))
    none = services.supersede_entry(memory, SuccessorRequest(own.entry.entry_id, "none", metadata={}))

    assert kept.metadata == held(memory, kept.entry.entry_id) == {"owner": "ina", "nested": {"a": 1}}
    assert own.metadata == held(memory, own.entry.entry_id) == {"n": 1}
    assert none.metadata == held(memory, none.entry.entry_id) == {}
    states = reads.entry_history(memory, own.entry.entry_id)
    assert [state.metadata for state in states if state.entry.body == "own"] == [{"n": 1}, {"n": 1}]


AS_IT_STANDS = """\
# of the owner
"owner":   'it''s ina'   # still
version: 1.10
zip: 00123
flags: [on,  yes, ~]
empty:
date: 2026-01-02
list:
- one

-   two: {a: "b"}
text: |
  first
    # no comment
  last
wrapped: "one
  two"
# at the end
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("door", ["supersede", "add", "batch"])
def test_a_successor_has_the_lines_of_metadata_as_they_stand(memory: Access, newline: str, door: str) -> None:
    more = f"summary: s\norigin: '{{}}'\n{AS_IT_STANDS}"
    services.write_file(memory, FACTS, entry_text("mem_x", more=more).replace("\n", newline))
    new = draft("new", supersedes="mem_x", summary=None, metadata=None)

    match door:
        case "supersede":
            services.supersede_entry(memory, SuccessorRequest("mem_x", "new"))
        case "add":
            services.add_entry(memory, new)
        case "batch":
            services.batch(memory, [AddEntry(new)])

    written = text(memory, FACTS).rpartition("supersedes: mem_x")[2]
    assert written == f"\nsummary: new\n{AS_IT_STANDS}---\n\nnew\n".replace("\n", newline)
    (found,) = reads.list_entries(memory).items
    assert found.metadata == held(memory, "mem_x")


@pytest.mark.parametrize("more", ["a: 1\n", "'a':\n  - 1\n# b\n", "a: [1, 2]\nb: {c: d}\n", "ключ: знач\n"])
def test_lines_are_copied_once_more_by_each_successor(memory: Access, more: str) -> None:
    services.write_file(memory, FACTS, entry_text("mem_x", more=more))
    entry_id = "mem_x"
    for n in range(3):
        entry_id = services.supersede_entry(memory, SuccessorRequest(entry_id, f"{n}")).entry.entry_id

    assert text(memory, FACTS).count(more) == 4


def test_metadata_goes_with_a_batch_a_clone_and_a_restored_file(memory: Access) -> None:
    services.batch(memory, [AddEntry(draft(metadata=METADATA))])
    services.delete(memory, "/memory")
    services.restore(memory, 1)

    copy = clone_tree(memory, "copy")

    for access in (memory, access_to(memory.tree.tenant, copy.name)):
        assert [each.metadata for each in reads.list_entries(access).items] == [METADATA]


@pytest.mark.parametrize("bad", [{"status": "x"}, {"id": "x"}, {"k": {"deep": 1}}, {"k": "\0"}, {"k": 1e400}])
def test_bad_metadata_changes_nothing(memory: Access, bad: dict[str, Any]) -> None:
    old = add(memory).entry.entry_id

    with pytest.raises((InvalidMetadata, InvalidText)):
        add(memory, metadata=bad)
    with pytest.raises((InvalidMetadata, InvalidText)):
        services.supersede_entry(memory, SuccessorRequest(old, "x", metadata=bad))

    assert [each.revision for each in reads.list_entries(memory, EntryFilter(active=None)).items] == [1]


@pytest.fixture
def filled(memory: Access) -> Access:
    add(memory, "one", metadata={"n": 1, "who": "ina", "at": "2026-01-02", "1": "x", "flag": True})
    add(
        memory,
        "two",
        metadata={"n": 2.5, "who": "ole", "at": "2026-02-01", "labels": ["a", "b"], "flag": False},
    )
    add(memory, "text", metadata={"n": "1", "who": ["ina", "ole"], "labels": ["b", 1], "flag": "true"})
    add(memory, "none")
    return memory


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"n": 1}, ["one"]),
        ({"n": 1.0}, ["one"]),
        ({"n": "1"}, ["text"]),
        ({"n": True}, []),
        ({"flag": True}, ["one"]),
        ({"flag": "true"}, ["text"]),
        ({"flag": 1}, []),
        ({"1": "x"}, ["one"]),
        ({"0": "x"}, []),
        ({"who": "ina"}, ["one", "text"]),
        ({"who": "Ina"}, []),
        ({"who": ["ina"]}, ["text"]),
        ({"labels": ["b", "a"]}, ["two"]),
        ({"labels": ["b"]}, ["text", "two"]),
        ({"labels": []}, ["text", "two"]),
        ({"labels": 1}, ["text"]),
        ({"who": "ina", "n": 1}, ["one"]),
        ({"who": "ina", "n": 2.5}, []),
        ({"who": {"eq": "ole"}}, ["text", "two"]),
        ({"who": {"ne": "ina"}}, ["none", "two"]),
        ({"who": {"ne": "ina", "exists": True}}, ["two"]),
        ({"n": {"in": (1, "1", 9)}}, ["one", "text"]),
        ({"labels": {"in": ["a", 1]}}, ["text", "two"]),
        ({"n": {"exists": True}}, ["one", "text", "two"]),
        ({"n": {"exists": False}}, ["none"]),
        ({"n": {"gt": 1}}, ["two"]),
        ({"n": {"gte": 1, "lt": 2.5}}, ["one"]),
        ({"n": {"lte": 2.5}}, ["one", "two"]),
        ({"n": {"lte": "1"}}, ["text"]),
        ({"at": {"gte": "2026-01-15"}}, ["two"]),
        ({"who": {"gt": "INA"}}, ["one", "two"]),
        ({"labels": {"gt": ""}}, []),
        ({"flag": {"gte": 0}}, []),
        ({}, ["none", "one", "text", "two"]),
        ({"'; DROP TABLE tree_block; --": 1}, []),
        ({"%s": "%s", '"': {"gt": "%(x)s"}}, []),
    ],
    ids=str,
)
def test_a_filter_is_exact_now_and_in_the_past(
    filled: Access, wanted: dict[str, Any], expected: list[str]
) -> None:
    assert found(filled, **wanted) == expected

    services.delete(filled, "/memory")
    assert found(filled, **wanted) == []
    assert found(filled, revision=4, **wanted) == expected


@pytest.mark.parametrize(
    "wanted",
    [
        *[
            {"n": None},
            {"n": {}},
            {"n": {"like": 1}},
            {"n": {"in": 1}},
            {"n": {"in": []}},
            {"n": {"exists": 1}},
        ],
        *[
            {"n": {"gt": True}},
            {"n": {"gt": [1]}},
            {"n": {"gt": None}},
            {"n": {"eq": {"a": 1}}},
            {"n": [[1]]},
        ],
        *[{"n": {"lt": float("nan")}}, {"n": float("inf")}, {"category": "facts"}, {"": 1}, {"n": {7: 1}}],
        *[{"n\0": 1}, {"n": "\ud800"}, {"n" * 129: 1}, {"n": {"gt": "\0"}}, {"n": "x" * 5000}],
        {f"n{number}": {"in": [1] * 100} for number in range(2)},
    ],
    ids=lambda wanted: ascii(wanted)[:40],
)
def test_a_filter_that_makes_no_sense_is_refused(memory: Access, wanted: dict[str, Any]) -> None:
    with pytest.raises((InvalidMetadata, InvalidText)):
        found(memory, **wanted)


def test_a_filter_reaches_no_further_than_the_access(memory: Access, stranger: Access) -> None:
    add(memory, "mine", metadata={"k": 1})
    add(memory, "rule", "rules", metadata={"k": 1})
    inside = access_to(memory.tree.tenant, prefix=FACTS)

    assert found(stranger, k=1) == []
    assert found(inside, k=1) == found(inside, revision=2, k=1) == ["mine"]


def test_entries_of_before_get_their_metadata_from_their_text(memory: Access) -> None:
    made = add(memory, metadata=METADATA).entry.entry_id
    services.append_file(memory, FACTS, "\n" + entry_text("mem_x", more="owner: ina\norigin: y\n"))
    Block.objects.of(memory.tree).update(metadata={})

    import_module("migrations.tree.0008_metadata").fill(apps, None)

    assert held(memory, made) == METADATA
    assert held(memory, "mem_x") == {"owner": "ina"}
