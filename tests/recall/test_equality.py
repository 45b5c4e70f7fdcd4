"""What a search shows once, and that nothing else is ever hidden: every entry that matches stands on some page."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memsvc.contract.context import ContextFormat
from memsvc.format import Confidence, MemoryCategory, MemoryEntry, render_document
from memsvc.recall import search as searching
from memsvc.recall.context import context
from memsvc.recall.mneme_search import search_as_mneme
from memsvc.recall.search import Mode, Query, search
from memsvc.recall.vectors import embed_tree
from memsvc.tree.access import Access
from memsvc.tree.reads import EntryFilter
from memsvc.tree.reads.entries import EVERY_ACTIVE
from memsvc.tree.services import write_file
from tests.tree.support import FACTS, add

pytestmark = pytest.mark.django_db

JANUARY = datetime(2026, 1, 5, 9, tzinfo=UTC)
# Statements that share their words, or all but one.
DIFFERENT = [
    "Bonus for the Vienna team: +10%",
    "Bonus for the Vienna team: -10%",
    "Bonus for the Vienna team: 10%",
    "Bonus for the Vienna team: 1.0%",
    "Vienna team: alert when load > 5",
    "Vienna team: alert when load < 5",
    "Vienna team: compare by ==",
    "Vienna team: compare by !=",
    "Vienna team: the release is ✅",
    "Vienna team: the release is ❌",
    "Vienna team says 👍🏻 to the plan",
    "Vienna team says 👍🏿 to the plan",
    "Vienna team says 👍 to the plan",
    "The Vienna team is in the office on Mondays",
    "The Vienna team is not in the office on Mondays",
    "the Vienna team is in the office on mondays",
    "The Vienna team is in the office on Mondays!",
    "Vienna team: area is 5 m²",
    "Vienna team: area is 5 m2",
    "Vienna team: run  a  b",
    "Vienna team: run a b",
    "Vienna before Graz: team",
    "Graz before Vienna: team",
]
TWICE = [
    ("Vienna team: the café on the corner", "Vienna team: the cafe\u0301 on the corner"),
    ("Vienna team: one blank", "  Vienna team: one blank \t\n\n"),
]


_SHAPED = (ContextFormat.MARKDOWN, ContextFormat.XML, ContextFormat.MESSAGES)


def walked(access: Access, query: Query, limit: int = 3, revision: int | None = None) -> list[str]:
    """The ids of all hits of all pages, and behind each those that it stands for."""
    ids: list[str] = []
    cursor: str | None = None
    while True:
        page = search(access, query, cursor=cursor, limit=limit, revision=revision)
        for hit in page.items:
            ids += [hit.entry.entry_id, *hit.duplicates]
        cursor = page.next
        if cursor is None:
            assert not page.truncated
            return ids


def found(access: Access, query: Query, limit: int = 50) -> list[tuple[str, list[str]]]:
    hits = search(access, query, limit=limit).items
    return [(hit.entry.entry_id, list(hit.duplicates)) for hit in hits]


def by_words(text: str, wanted: EntryFilter = EVERY_ACTIVE) -> Query:
    return Query(text=text, mode=Mode.LEXICAL, wanted=wanted)


def stored(access: Access, bodies: Sequence[str]) -> list[str]:
    """Facts, all of them in one revision; the later the older."""
    entries = [
        MemoryEntry(
            entry_id=f"mem_{number}",
            category=MemoryCategory.FACTS,
            body=body,
            created=JANUARY - timedelta(minutes=number),
        )
        for number, body in enumerate(bodies)
    ]
    write_file(access, FACTS, render_document("# Facts", entries))
    return [entry.entry_id for entry in entries]


def test_only_what_is_equal_is_shown_once(memory: Access) -> None:
    alone = [add(memory, body).entry.entry_id for body in DIFFERENT]
    pairs = [[add(memory, body).entry.entry_id for body in pair] for pair in TWICE]

    hits = found(memory, by_words("Vienna team"))

    assert len(hits) == len(DIFFERENT) + len(TWICE)
    assert {entry_id for entry_id, duplicates in hits if not duplicates} == set(alone)
    assert [(newer, [older]) for older, newer in pairs] == sorted(
        (hit for hit in hits if hit[1]), key=lambda hit: hit[0] == pairs[1][1]
    )


def test_one_text_said_of_different_things_is_shown_for_each(memory: Access) -> None:
    body = "Paid the rent of the flat"
    add(memory, body, metadata={"project": "apollo"})
    add(memory, body, metadata={"project": "gemini"})
    add(memory, body, metadata={"project": "gemini", "room": 1})
    add(memory, body, metadata={"project": "gemini", "room": "1"})
    add(memory, body, tags=("home",))
    add(memory, body, tags=("Home",))
    add(memory, body, summary="Rent")
    add(memory, body, "rules")
    add(memory, body, "preferences")
    for hours in (0, 24, 48, 72):
        add(memory, body, "events", when=JANUARY + timedelta(hours=hours))
    add(memory, body, "feedbacks", when=JANUARY)
    add(memory, body, "procedure", title="Pay the rent")
    add(memory, body, "procedure", title="Pay the rent by card")

    hits = found(memory, by_words("rent"))

    assert len(hits) == 16
    assert not any(duplicates for _, duplicates in hits)


def test_the_newest_of_equal_ones_is_shown_in_the_place_of_the_best(memory: Access) -> None:
    low, when = Confidence.LOW, JANUARY
    newest = add(memory, "The rent is due on the first.", when=when, confidence=low, tags=("a", "b"))
    oldest = add(memory, "The rent is due on the first.", when=when - timedelta(days=9), tags=("b", "a"))
    middle = add(
        memory, "The rent is due on the first. ", when=when - timedelta(days=4), tags=("a", "b"), source="Ann"
    )
    add(memory, "The rent of the other flat is due whenever its owner asks for it.")

    first, second = search(memory, by_words("rent due first")).items

    assert first.entry.entry_id == newest.entry.entry_id
    assert list(first.duplicates) == [middle.entry.entry_id, oldest.entry.entry_id]
    assert (first.parts["confidence"], list(second.duplicates)) == (1.0, [])
    assert (first.score or 0) > (second.score or 0)


def test_one_that_holds_is_never_left_out_for_one_that_was_superseded(memory: Access) -> None:
    old = add(memory, "The office is in Graz.")
    between = add(memory, "The office is in Linz.", supersedes=old.entry.entry_id)
    again = add(memory, "The office is in Graz.", supersedes=between.entry.entry_id)
    alike = add(memory, "The office is in Graz.")

    now = found(memory, by_words("office", EntryFilter(active=None)))
    then = search(memory, by_words("office"), revision=old.revision).items

    assert sorted(now) == sorted(
        [
            (old.entry.entry_id, []),
            (between.entry.entry_id, []),
            (alike.entry.entry_id, [again.entry.entry_id]),
        ]
    )
    assert [hit.entry.entry_id for hit in then] == [old.entry.entry_id]


def test_nothing_is_left_out_of_what_is_not_ranked_or_ranked_as_mneme_does(memory: Access) -> None:
    ids = [add(memory, "Paid the rent", when=JANUARY).entry.entry_id for _ in range(3)]
    embed_tree(memory.tree)

    for mode in (Mode.WORDS, Mode.SUBSTRING):
        hits = found(memory, Query(text="paid the rent", mode=mode))
        assert sorted(hits) == sorted((entry_id, []) for entry_id in ids)
    scored = search_as_mneme(memory, "paid the rent").items
    assert sorted(hit.entry.entry_id for hit in scored) == sorted(ids)


@pytest.mark.parametrize("mode", list(Mode))
def test_every_one_of_many_equal_texts_stands_on_one_page(memory: Access, mode: Mode) -> None:
    days = [JANUARY - timedelta(days=days) for days in range(60)]
    facts = [add(memory, "Paid the rent", when=day) for day in days[:5]]
    events = [add(memory, "Paid the rent", "events", when=day) for day in days]
    embed_tree(memory.tree)
    late = add(memory, "Paid the rent of the new flat")
    query = Query(text="paid the rent", mode=mode)
    ids = [written.entry.entry_id for written in (*facts, *events)]

    for limit in (3, 50):
        assert sorted(walked(memory, query, limit, events[-1].revision)) == sorted(ids)
    wanted = EntryFilter(since=days[9], until=late.entry.created)
    since = walked(memory, replace(query, wanted=wanted))

    assert sorted(since) == sorted([*ids[:5], *ids[5:15]])


def test_a_search_can_be_read_to_its_end(memory: Access) -> None:
    ids = stored(memory, [f"The kettle of room {n // 2 if n < 100 else n} whistles ✅" for n in range(450)])
    while embed_tree(memory.tree):
        pass
    wanted = EntryFilter(until=JANUARY - timedelta(minutes=99))

    # By words and meaning, by words, as other words are spelt, and as it stands where there are no words.
    for text, mode in (("the kettle", Mode.HYBRID), ("a kettle", Mode.LEXICAL), ("ketle", Mode.LEXICAL)):
        assert sorted(walked(memory, Query(text=text, mode=mode), limit=70)) == sorted(ids)
    assert sorted(walked(memory, by_words("✅", wanted), limit=70)) == sorted(ids[100:])
    nearest = walked(memory, Query(text="kettle", mode=Mode.SEMANTIC), limit=70)
    assert 200 < len(nearest) == len(set(nearest))


def test_a_ranking_goes_deeper_only_when_it_is_read_on(memory: Access) -> None:
    stored(memory, [f"The kettle of room {n} whistles." for n in range(450)])

    with CaptureQueriesContext(connection) as first:
        page = search(memory, by_words("kettle"), limit=1000)
    with CaptureQueriesContext(connection) as second:
        rest = search(memory, by_words("kettle"), limit=1000, cursor=page.next)

    assert (len(page.items), page.truncated) == (200, False)
    assert (len(rest.items), rest.next, rest.truncated) == (250, None, False)
    assert [sum("fused AS" in sent["sql"] for sent in each) for each in (first, second)] == [1, 2]


def test_a_ranking_that_goes_no_deeper_says_so(memory: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "DEPTHS", (1,))
    stored(memory, [f"The kettle of room {n} whistles." for n in range(250)])

    first = search(memory, by_words("kettle"), limit=150)
    last = search(memory, by_words("kettle"), cursor=first.next, limit=150)

    assert (len(first.items), first.truncated) == (150, False)
    assert (len(last.items), last.truncated, last.next) == (50, True, None)


def test_a_context_names_what_it_stands_for(memory: Access) -> None:
    older, newer = (add(memory, "The lighthouse is red.").entry.entry_id for _ in range(2))
    add(memory, "The lighthouse is not red.")

    told = {
        format: context(memory, "lighthouse", format=format) for format in ContextFormat if format in _SHAPED
    }
    small = context(memory, "lighthouse", budget=5)

    for block in told.values():
        assert (len(block.entries), block.duplicates, block.left_out) == (2, {newer: [older]}, 0)
    assert f"{newer}; equal: {older}]" in told[ContextFormat.MARKDOWN].content
    assert f' equal="{older}">' in told[ContextFormat.XML].content
    assert (small.entries, small.duplicates, small.left_out) == ([], {}, 3)


def test_a_context_names_a_few_of_many(memory: Access) -> None:
    ids = [add(memory, "The lighthouse is red.").entry.entry_id for _ in range(9)]

    block = context(memory, "lighthouse")

    assert block.duplicates == {ids[8]: ids[7::-1]}
    assert f"{ids[8]}; equal: {', '.join(ids[7:2:-1])} and 3 more]" in block.content
