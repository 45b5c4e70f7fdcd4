"""`MemoryStore` is the same over every kind of backend."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
import yaml
from deepagents.backends.protocol import BackendProtocol

from memsvc.agents import (
    Confidence,
    MemoryCategory,
    MemoryHit,
    MemoryKind,
    MemoryStore,
    ensure_memory_tree,
    read_index_rows,
    update_index,
)
from memsvc.agents.transactional import mounted
from memsvc.format import SCAFFOLD

FACTS = "/memory/semantic_memory/facts.md"


def note(store: MemoryStore, body: str, **fields: object) -> MemoryHit:
    return store.write(MemoryCategory.FACTS, body, **{"summary": body, **fields})  # type: ignore[arg-type]


def bodies(hits: list[MemoryHit]) -> list[str]:
    return [hit.entry.body for hit in hits]


def test_the_first_call_makes_the_scaffold_and_the_second_nothing(backend: BackendProtocol) -> None:
    store = MemoryStore(backend)

    assert store.ensure_tree() == list(SCAFFOLD)
    assert ensure_memory_tree(backend) == []
    assert [store.read_file(path) for path in SCAFFOLD] == list(SCAFFOLD.values())


def test_what_write_returns_is_what_get_finds(store: MemoryStore) -> None:
    hit = store.write(
        MemoryCategory.EVENTS,
        "Met ACME.\n\n  They switch in June.",
        summary="Meeting: ACME",
        tags=("acme", "#urgent", "a,b"),
        source="ticket: 42",
        confidence=Confidence.HIGH,
        when=datetime(2026, 8, 24, 10, 15, tzinfo=UTC),
    )

    assert hit.path == "/memory/episodic_memory/events/2026-08.md"
    assert hit.entry.entry_id.startswith("mem_2026-08-24_")
    assert store.get(hit.entry.entry_id) == hit


def test_an_unknown_id_is_none(store: MemoryStore) -> None:
    assert store.get("mem_2026-01-01_000000") is None
    assert store.get("") is None


@pytest.mark.parametrize(
    ("category", "path"),
    [
        (MemoryCategory.FEEDBACKS, "/memory/episodic_memory/feedbacks/2026-08.md"),
        (MemoryCategory.ERRORS, "/memory/episodic_memory/errors/2026-08.md"),
        (MemoryCategory.FACTS, FACTS),
        (MemoryCategory.RULES, "/memory/semantic_memory/rules.md"),
        (MemoryCategory.PREFERENCES, "/memory/preferences.md"),
        (MemoryCategory.PROCEDURE, "/memory/procedural_memory/deploy-prod.md"),
    ],
)
def test_each_category_has_its_file_and_its_index_row(
    store: MemoryStore, category: MemoryCategory, path: str
) -> None:
    when = datetime(2026, 8, 24, tzinfo=UTC)

    hit = store.write(category, "x", summary="A summary", tags=("t",), title="Deploy: prod!", when=when)

    assert hit.path == path
    assert store.search(category=category) == [hit]
    kind = None if category is MemoryCategory.PREFERENCES else hit.entry.kind
    row = next(row for row in store.index(kind)[1] if path.endswith("/" + row.path))
    assert (row.description, row.tags[-1], row.updated) == ("A summary", "t", "2026-08-24")


def test_a_month_is_that_of_utc(store: MemoryStore) -> None:
    evening = datetime(2026, 8, 31, 23, 30, tzinfo=timezone(-timedelta(hours=5)))

    hit = store.write(MemoryCategory.EVENTS, "late", when=evening)

    assert hit.path.endswith("/2026-09.md")
    assert hit.entry.entry_id.startswith("mem_2026-09-01_")
    assert hit.entry.created == evening


def test_a_naive_instant_is_utc(store: MemoryStore) -> None:
    hit = store.write(MemoryCategory.EVENTS, "then", when=datetime(2026, 8, 1))  # noqa: DTZ001  naive on purpose

    assert hit.entry.created == datetime(2026, 8, 1, tzinfo=UTC)


def test_superseding_retires_the_old_entry_and_keeps_it(store: MemoryStore) -> None:
    old = note(store, "Ann uses pip")
    new = note(store, "Ann uses uv", supersedes=old.entry.entry_id)

    assert bodies(store.search("ann")) == ["Ann uses uv"]
    assert bodies(store.search("ann", include_superseded=True)) == ["Ann uses uv", "Ann uses pip"]
    found = store.get(old.entry.entry_id)
    assert found is not None
    assert found.entry == old.entry.replaced_by(new.entry.entry_id)
    assert new.entry.supersedes == old.entry.entry_id


def test_superseding_an_unknown_entry_is_refused_and_changes_nothing(store: MemoryStore) -> None:
    before = store.read_file(FACTS)

    with pytest.raises(ValueError, match="mem_2020-01-01_ffffff"):
        note(store, "x", supersedes="mem_2020-01-01_ffffff")

    assert store.read_file(FACTS) == before


def test_superseding_twice_is_a_conflict_that_names_the_successor(store: MemoryStore) -> None:
    old = note(store, "one")
    new = note(store, "two", supersedes=old.entry.entry_id)

    with pytest.raises(ValueError, match=new.entry.entry_id):
        note(store, "three", supersedes=old.entry.entry_id)

    assert bodies(store.search()) == ["two"]


def test_superseding_across_categories_is_refused(store: MemoryStore) -> None:
    old = note(store, "a fact")

    with pytest.raises(ValueError, match="facts"):
        store.write(MemoryCategory.RULES, "a rule", supersedes=old.entry.entry_id)

    assert bodies(store.search()) == ["a fact"]


def test_a_superseding_procedure_stays_in_its_file(store: MemoryStore) -> None:
    old = store.write(MemoryCategory.PROCEDURE, "v1", title="Deploy to production")
    new = store.write(MemoryCategory.PROCEDURE, "v2", supersedes=old.entry.entry_id)

    assert new.path == old.path == "/memory/procedural_memory/deploy-to-production.md"


def test_a_corrected_episode_goes_to_the_month_of_its_correction(store: MemoryStore) -> None:
    old = store.write(MemoryCategory.EVENTS, "v1", when=datetime(2026, 7, 1, tzinfo=UTC))
    new = store.write(
        MemoryCategory.EVENTS, "v2", supersedes=old.entry.entry_id, when=datetime(2026, 8, 1, tzinfo=UTC)
    )

    assert (old.path[-10:], new.path[-10:]) == ("2026-07.md", "2026-08.md")
    assert store.search() == [new]


@pytest.mark.parametrize("text", ["", "Über Straße", "日本語の手順"])
def test_a_procedure_needs_a_title_that_gives_a_name(store: MemoryStore, text: str) -> None:
    if text:
        assert store.write(MemoryCategory.PROCEDURE, "x", title=text).path.endswith(".md")
        return
    with pytest.raises(ValueError, match="requires a title"):
        store.write(MemoryCategory.PROCEDURE, "x", title=text)


def test_a_title_without_letters_is_refused(store: MemoryStore) -> None:
    with pytest.raises(ValueError, match="cannot build a slug"):
        store.write(MemoryCategory.PROCEDURE, "x", title="!!!")


def test_a_procedure_named_index_leaves_the_index_alone(store: MemoryStore) -> None:
    index = store.read_file("/memory/procedural_memory/index.md")

    hit = store.write(MemoryCategory.PROCEDURE, "x", title="Index")

    assert hit.path != "/memory/procedural_memory/index.md"
    assert store.get(hit.entry.entry_id) == hit
    assert store.read_file("/memory/procedural_memory/index.md").startswith(index)


@pytest.mark.parametrize(
    "field",
    [{"summary": "\ud800"}, {"source": "\ud800"}, {"tags": ("\ud800",)}, {"body": "\ud800"}, {"body": "\0"}],
)
def test_what_cannot_be_stored_is_refused_before_anything_is_written(
    store: MemoryStore, field: dict[str, Any]
) -> None:
    before = store.read_file(FACTS)

    with pytest.raises(ValueError, match=r".+"):
        store.write(
            MemoryCategory.FACTS, field.get("body", "x"), **{k: v for k, v in field.items() if k != "body"}
        )

    assert store.read_file(FACTS) == before


@pytest.mark.parametrize("body", ["", " \n", "\u200b", "\u00a0\ufeff"])
def test_a_body_in_which_nothing_is_to_be_seen_is_refused(store: MemoryStore, body: str) -> None:
    with pytest.raises(ValueError, match="needs a body that says something"):
        store.write(MemoryCategory.FACTS, body)


@pytest.mark.parametrize("title", ["a\0b", "a\x1b"])
def test_a_control_character_in_a_title_is_refused(store: MemoryStore, title: str) -> None:
    with pytest.raises(ValueError, match="title holds a"):
        store.write(MemoryCategory.PROCEDURE, "x", title=title)


def test_a_successor_has_the_metadata_as_it_stands_and_the_index_tells_of_it(store: MemoryStore) -> None:
    lines = "# when\nversion: 1.10   # of it\nzip: 00123\nflags: [on, yes]\n"
    old = store.write(MemoryCategory.FACTS, "Oslo", summary="Lives in Oslo")
    text = store.read_file(FACTS)
    assert (
        mounted(store.backend)
        .edit(FACTS, "summary: Lives in Oslo\n", f"summary: Lives in Oslo\n{lines}")
        .error
        is None
    )

    new = store.write(MemoryCategory.FACTS, "Lives in Rome.\n\nSince May.", supersedes=old.entry.entry_id)

    assert store.get(new.entry.entry_id) == new
    assert store.read_file(FACTS).removeprefix(text[: text.index("---")]).count(lines) == 2
    row = next(row for row in store.index(MemoryKind.SEMANTIC)[1] if row.path == "facts.md")
    assert "Oslo" not in row.description


def test_a_body_that_forges_an_entry_is_refused(store: MemoryStore) -> None:
    forged = "Look:\n\n---\nid: mem_2026-01-01_aaaaaa\ncategory: facts\ncreated: 2026-01-01\n---\n\nforged"

    with pytest.raises(ValueError, match="bare '---' line"):
        note(store, forged, summary="s")

    assert store.search() == []


@pytest.mark.parametrize(
    "value",
    [
        *("2026-02-30", "#urgent", "@team", "x]", "'q", ":", "-", "=", "yes", "null", "007", "1.10", "12:30"),
        *("foo:", "[", "{", "ticket: 42", "a, b"),
    ],
)
def test_odd_values_come_back_as_they_were(store: MemoryStore, value: str) -> None:
    hit = note(store, "x", summary=value, source=value, tags=(value,))

    found = store.get(hit.entry.entry_id)
    assert found == hit
    assert (hit.entry.summary, hit.entry.source, hit.entry.tags) == (value, value, (value,))
    head = store.read_file(FACTS).split("---\n")[1]
    read_by_others = yaml.safe_load(head)
    assert [read_by_others[key] for key in ("summary", "source", "tags")] == [value, value, [value]]


def test_line_breaks_in_one_line_fields_become_blanks(store: MemoryStore) -> None:
    hit = note(store, "x", summary="a\nid: forged", source="b\r\n---", tags=("c\u2028d",))

    assert (hit.entry.summary, hit.entry.source, hit.entry.tags) == ("a id: forged", "b ---", ("c d",))
    assert store.get(hit.entry.entry_id) == hit


@pytest.mark.parametrize(
    "body",
    ["Title\n---\n\ntext", "a\u2028b", "x\x0by\x85z", "    indented\n\nend", "a\n\n***\n\nb", "cr\rlf"],
)
def test_text_is_kept(store: MemoryStore, body: str) -> None:
    hit = note(store, body, summary="s")
    note(store, "another", summary="s")

    found = store.get(hit.entry.entry_id)
    assert found is not None
    assert found.entry.body == body == hit.entry.body


def test_a_setext_heading_does_not_hinder_a_later_supersession(store: MemoryStore) -> None:
    old = note(store, "Title\n---\n\ntext", summary="s")

    note(store, "corrected", supersedes=old.entry.entry_id)

    assert bodies(store.search()) == ["corrected"]


def test_search_finds_words_in_any_order_and_case(store: MemoryStore) -> None:
    note(store, "Argo rolls out to the staging cluster", tags=("k8s",))
    note(store, "Argo in production")

    assert bodies(store.search("STAGING  argo")) == ["Argo rolls out to the staging cluster"]
    assert bodies(store.search("argo")) == ["Argo in production", "Argo rolls out to the staging cluster"]
    assert bodies(store.search("K8s")) == ["Argo rolls out to the staging cluster"]
    assert store.search("argo helm") == []


@pytest.mark.parametrize(("query", "body"), [("strasse", "Lange Straße"), ("cafe\u0301", "Caf\u00e9 am Eck")])
def test_search_takes_spellings_for_the_same(store: MemoryStore, query: str, body: str) -> None:
    note(store, body)

    assert bodies(store.search(query)) == [body]


def test_search_filters_by_kind_category_and_all_tags(store: MemoryStore) -> None:
    fact = note(store, "f", tags=("a", "b"))
    wish = store.write(MemoryCategory.PREFERENCES, "p", tags=("A",))
    event = store.write(MemoryCategory.EVENTS, "e", tags=("a",))

    assert store.search(kind=MemoryKind.SEMANTIC) == [wish, fact]
    assert store.search(category=MemoryCategory.EVENTS) == [event]
    assert store.search(tags=("a", "B")) == [fact]
    assert store.search(tags=("a",)) == [event, wish, fact]


@pytest.mark.parametrize("limit", [0, -1, 1])
def test_a_search_answers_at_least_one(store: MemoryStore, limit: int) -> None:
    note(store, "one")
    note(store, "two")

    assert bodies(store.search(limit=limit)) == ["two"]


def test_entries_of_one_instant_come_newest_written_first(store: MemoryStore) -> None:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    for body in ("one", "two", "three"):
        note(store, body, when=when)

    assert bodies(store.search()) == ["three", "two", "one"]


def test_recent_episodes_are_the_newest_oldest_first(store: MemoryStore) -> None:
    for day in (3, 1, 2, 5, 4):
        store.write(MemoryCategory.EVENTS, f"day {day}", when=datetime(2026, 8, day, tzinfo=UTC))
    note(store, "no episode")

    assert bodies(store.recent_episodes(limit=3)) == ["day 3", "day 4", "day 5"]
    since = datetime(2026, 8, 4)  # noqa: DTZ001  naive means UTC
    assert bodies(store.recent_episodes(since=since)) == ["day 4", "day 5"]


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/memory/../etc/passwd", "/memory/a/../../x", "memory/index.md", "/memoryx/a", ""]
)
def test_reading_outside_the_memory_is_refused(store: MemoryStore, path: str) -> None:
    with pytest.raises(ValueError, match="outside the memory tree"):
        store.read_file(path)


def test_reading_takes_a_window_of_lines(store: MemoryStore) -> None:
    assert (
        store.read_file("/memory/preferences.md", offset=2, limit=1)
        == SCAFFOLD["/memory/preferences.md"].splitlines(keepends=True)[2]
    )
    with pytest.raises(ValueError, match="exceeds file length"):
        store.read_file("/memory/preferences.md", offset=99)
    with pytest.raises(ValueError, match=r"'/memory/none.md' not found"):
        store.read_file("/memory/none.md")


def test_two_dots_in_a_name_are_only_a_name(store: MemoryStore) -> None:
    # FilesystemBackend itself takes no such name.
    with pytest.raises(ValueError, match=r"not found|the backend failed"):
        store.read_file("/memory/v1..2.md")


def test_index_functions_work_on_the_backend(store: MemoryStore) -> None:
    index = update_index(
        store.backend,
        category=MemoryCategory.FACTS,
        file_path=FACTS,
        description="All | facts",
        tags=("x",),
        when=datetime(2026, 8, 24, tzinfo=UTC),
    )

    rows = read_index_rows(store.backend, index)
    assert index == "/memory/semantic_memory/index.md"
    assert (rows["facts.md"].description, rows["facts.md"].updated) == ("All | facts", "2026-08-24")
    assert read_index_rows(store.backend, "/memory/none/index.md") == {}


def test_a_back_dated_write_never_sets_the_index_back(store: MemoryStore) -> None:
    note(store, "new", when=datetime(2026, 8, 24, tzinfo=UTC))
    note(store, "old", when=datetime(2026, 1, 1, tzinfo=UTC))

    row = next(row for row in store.index(MemoryKind.SEMANTIC)[1] if row.path == "facts.md")
    assert row.updated == "2026-08-24"


def test_many_threads_lose_nothing(store: MemoryStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        hits = list(pool.map(lambda n: note(store, f"note {n}"), range(40)))

    assert len(store.search(limit=100)) == len({hit.entry.entry_id for hit in hits}) == 40


def test_of_four_rivals_for_one_entry_one_wins(store: MemoryStore) -> None:
    old = note(store, "old")

    def rival(number: int) -> str:
        try:
            return note(store, f"rival {number}", supersedes=old.entry.entry_id).entry.entry_id
        except ValueError as refusal:
            return str(refusal)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(rival, range(4)))

    (active,) = store.search()
    assert sum(active.entry.entry_id in answer for answer in answers) == 4
    assert answers.count(active.entry.entry_id) == 1
