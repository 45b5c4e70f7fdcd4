"""Who really wrote an entry, and when by the server's clock, beside what the entry says of itself."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import F
from django.db.models.functions import Coalesce

from memsvc.contract.entries import Authorship, EntryRead
from memsvc.contract.requests import SuccessorRequest
from memsvc.recall.context import context
from memsvc.recall.search import Mode, Query, search_uncounted
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.cloning import clone_tree
from memsvc.tree.history.memory_versions import VersionFilter
from memsvc.tree.history.redaction import redact_version
from memsvc.tree.models import Block, Revision, Tree
from memsvc.tree.reads import EntryFilter
from memsvc.tree.retention import prune_to
from tenants.actors import Actor, ActorKind
from tests.tree.support import FACTS, RULES, add, entry_text, of_tenant, revision, text

pytestmark = pytest.mark.django_db

NOTES = "/memory/semantic_memory/facts/notes.md"
YEAR = timedelta(days=365)


def by(access: Access, name: str, *, prefix: str | None = None) -> Access:
    """Somebody else at the same tree, in a run of their own."""
    actor = Actor(ActorKind.KEY, f"key-{name}", name, f"run-{name}")
    return replace(access, actor=actor, prefix=access.prefix if prefix is None else prefix)


def got(access: Access, entry_id: str) -> EntryRead:
    return reads.get_entry(access, entry_id)


def said(found: Authorship | None) -> tuple[int, str] | None:
    return (found.revision, found.actor_name) if found else None


def authors(access: Access, entry_id: str) -> tuple[tuple[int, str] | None, tuple[int, str] | None]:
    found = got(access, entry_id)
    return said(found.written), said(found.changed)


def test_an_entry_tells_who_wrote_it_when_and_in_which_run(memory: Access) -> None:
    made = add(by(memory, "ann"), source="user", when=datetime(2001, 1, 1, tzinfo=UTC)).entry.entry_id

    found = got(memory, made)

    with of_tenant(memory):
        row = Revision.objects.of(memory.tree).get()
    assert found.written == Authorship(1, row.at, "key", "key-ann", "ann", "run-ann")
    assert found.changed == found.written
    assert datetime.now(tz=UTC) - row.at < timedelta(minutes=5)


LISTS: dict[str, Callable[[Access], EntryRead]] = {
    "list": lambda access: reads.list_entries(access).items[0],
    "of a revision": lambda access: reads.list_entries(access, revision=1).items[0],
    "episodes": lambda access: reads.recent_episodes(access)[0],
    "words": lambda access: reads.search_entries(access, "lunch").items[0],
    "substring": lambda access: reads.search_substring(access, "lunch").items[0],
    "ranked": lambda access: search_uncounted(access, Query(text="lunch", mode=Mode.LEXICAL)).items[0],
}


@pytest.mark.parametrize("read", LISTS.values(), ids=LISTS)
def test_each_read_tells_it(memory: Access, read: Callable[[Access], EntryRead]) -> None:
    made = add(by(memory, "ann"), "We had lunch.", "events").entry.entry_id

    assert read(memory).written == got(memory, made).written
    assert said(read(memory).changed) == (1, "ann")


def test_no_text_that_is_sent_sets_it(memory: Access) -> None:
    claims = "written: {revision: 7}\nchanged: x\nfirst_in: 9\nchanged_in: 9\nclaimed: 2001-01-01\n"
    services.write_file(by(memory, "eve"), FACTS, entry_text("mem_x", more=claims + "author: ann\n"))
    made = add(by(memory, "eve"), metadata={"written": "by ann", "changed": 1}).entry.entry_id

    assert authors(memory, "mem_x") == ((1, "eve"), (1, "eve"))
    assert authors(memory, made) == ((2, "eve"), (2, "eve"))
    assert got(memory, made).metadata == {"written": "by ann", "changed": 1}


def test_a_new_text_has_another_author_and_the_same_first_one(memory: Access) -> None:
    services.write_file(by(memory, "ann"), FACTS, entry_text("mem_x"))

    services.edit_file(by(memory, "bea"), FACTS, "A body.", "A lie.")
    services.edit_file(by(memory, "cid"), FACTS, "A lie.", "The truth.")

    assert authors(memory, "mem_x") == ((1, "ann"), (3, "cid"))
    before = reads.get_entry(memory, "mem_x", revision=2)
    assert (said(before.written), said(before.changed)) == ((1, "ann"), (2, "bea"))


def test_to_move_or_supersede_an_entry_changes_no_text(memory: Access) -> None:
    # An empty `superseded_by:` is filled in, so that the row is another one.
    services.write_file(by(memory, "ann"), FACTS, entry_text("mem_x", more="superseded_by:\n"))
    plain = add(by(memory, "ann"), "Plain.", "rules").entry.entry_id

    for each in ("mem_x", plain):
        services.supersede_entry(by(memory, "bea"), SuccessorRequest(entry_id=each, body="Newer."))
    services.move(by(memory, "cid"), FACTS, NOTES)
    services.move(by(memory, "cid"), RULES, "/elsewhere/rules.md")

    assert authors(memory, "mem_x") == ((1, "ann"), (1, "ann"))
    assert authors(memory, plain) == ((2, "ann"), (2, "ann"))


def test_a_filter_by_actor_finds_what_they_say(memory: Access) -> None:
    services.write_file(by(memory, "ann"), FACTS, entry_text("mem_x", more="superseded_by:\n"))
    services.supersede_entry(by(memory, "bea"), SuccessorRequest(entry_id="mem_x", body="Newer."))

    (found,) = reads.list_entries(memory, EntryFilter(actor="key-ann", active=None)).items

    assert found.entry.entry_id == "mem_x"


def test_what_stands_beside_a_new_entry_stays_its_authors(memory: Access) -> None:
    services.write_file(by(memory, "ann"), FACTS, entry_text("mem_x").rstrip("\n"))

    add(by(memory, "bea"))

    assert text(memory, FACTS).startswith(entry_text("mem_x"))
    assert authors(memory, "mem_x") == ((1, "ann"), (1, "ann"))


def test_what_was_taken_back_or_restored_is_by_who_did_that(memory: Access) -> None:
    made = add(by(memory, "ann")).entry.entry_id
    services.retire_entry(by(memory, "bea"), made)

    services.undo(by(memory, "cid"), revision=2)
    assert authors(memory, made) == ((1, "ann"), (3, "cid"))

    services.edit_file(by(memory, "bea"), FACTS, "Berlin", "Bonn")
    services.restore(by(memory, "dan"), 3)
    assert authors(memory, made) == ((1, "ann"), (5, "dan"))


def test_a_copy_of_a_tree_is_by_who_made_it(memory: Access) -> None:
    made = add(by(memory, "ann"), when=datetime.now(tz=UTC) + YEAR).entry

    copy = Access(clone_tree(by(memory, "bea"), "copy"), memory.actor)

    assert authors(copy, made.entry_id) == ((1, "bea"), (1, "bea"))
    assert got(copy, made.entry_id).entry == made


def test_history_that_goes_takes_no_author_along(memory: Access) -> None:
    services.write_file(by(memory, "ann"), FACTS, entry_text("mem_x"))
    services.edit_file(by(memory, "bea"), FACTS, "A body.", "A lie.")
    add(memory, "another", "rules")

    prune_to(memory.tree, 3)
    services.edit_file(by(memory, "cid"), FACTS, "A lie.", "The truth.")

    assert authors(memory, "mem_x") == ((1, "ann"), (4, "cid"))


def test_a_redacted_text_takes_no_author_along(memory: Access) -> None:
    services.write_file(by(memory, "ann"), FACTS, entry_text("mem_x", "secret"))
    services.edit_file(by(memory, "bea"), FACTS, "secret", "public")
    file_id = reads.list_versions(memory, VersionFilter()).items[0].memory

    redact_version(memory, file_id, 1)

    assert authors(memory, "mem_x") == ((1, "ann"), (2, "bea"))


def test_a_folder_learns_nothing_of_an_id_elsewhere(memory: Access) -> None:
    services.write_file(by(memory, "ann"), FACTS, entry_text("mem_x"))
    services.write_file(by(memory, "ann"), "/memory/semantic_memory/old/rules.md", entry_text("mem_gone"))
    services.delete(by(memory, "ann"), "/memory/semantic_memory/old/rules.md")
    team = by(memory, "eve", prefix="/team")

    for path in ("/team/facts.md", "/team/rules.md"):
        ids = ("mem_x", "mem_gone") if path == "/team/facts.md" else ("mem_new",)
        services.write_file(team, path, "\n".join(entry_text(each) for each in ids))
    services.delete(team, "/team/rules.md")
    services.write_file(team, "/team/more.md", entry_text("mem_new"))

    found = {each.entry.entry_id: each for each in reads.list_entries(team, EntryFilter(active=None)).items}
    assert {name: said(each.written) for name, each in found.items() if name != "mem_new"} == {
        name: (4, "eve") for name in found if name != "mem_new"
    }
    assert authors(memory, "mem_x") == ((1, "ann"), (1, "ann"))


# --- a time that is still to come ----------------------------------------------------------------------------------


@pytest.fixture
def three(memory: Access) -> list[str]:
    """Entries in the order in which they were written, the middle one of which says that it is of another year."""
    bodies = ("lunch one", "lunch two", "lunch three")
    whens = (None, datetime.now(tz=UTC) + YEAR, None)
    return [
        add(memory, body, "events", when=when).entry.entry_id
        for body, when in zip(bodies, whens, strict=True)
    ]


def ids_of(found: list[EntryRead]) -> list[str]:
    return [each.entry.entry_id for each in found]


def test_a_time_to_come_is_kept_as_it_was_said(memory: Access, three: list[str]) -> None:
    found = got(memory, three[1])

    assert found.entry.created > datetime.now(tz=UTC) + YEAR / 2
    assert found.changed is not None
    assert found.ordered_at == found.changed.at
    assert f"created: {found.entry.created.isoformat()}" in text(memory, found.path)


def test_it_is_listed_as_of_when_it_was_written(memory: Access, three: list[str]) -> None:
    assert ids_of(list(reads.list_entries(memory).items)) == three[::-1]
    assert ids_of(list(reads.list_entries(memory, oldest_first=True).items)) == three
    assert ids_of(list(reads.search_substring(memory, "lunch").items)) == three[::-1]
    assert ids_of(reads.recent_episodes(memory)) == three


@pytest.mark.parametrize("oldest_first", [False, True])
def test_pages_have_it_once(memory: Access, three: list[str], oldest_first: bool) -> None:
    found, cursor = list[str](), None
    while True:
        page = reads.list_entries(memory, oldest_first=oldest_first, limit=1, cursor=cursor)
        found += ids_of(list(page.items))
        if (cursor := page.next) is None:
            break

    assert found == (three if oldest_first else three[::-1])


def test_pages_of_a_substring_have_it_once(memory: Access, three: list[str]) -> None:
    found, cursor = list[str](), None
    while True:
        page = reads.search_substring(memory, "lunch", limit=1, cursor=cursor)
        found += ids_of(list(page.items))
        if (cursor := page.next) is None:
            break

    assert found == three[::-1]


def test_since_and_until_ask_for_when_it_was_written(memory: Access, three: list[str]) -> None:
    soon = datetime.now(tz=UTC) + timedelta(minutes=5)

    assert ids_of(list(reads.list_entries(memory, EntryFilter(until=soon)).items)) == three[::-1]
    assert not reads.list_entries(memory, EntryFilter(since=soon)).items


def test_it_is_no_newer_than_now_to_a_ranking(memory: Access) -> None:
    ahead = add(memory, "lunch", when=datetime.now(tz=UTC) + YEAR).entry.entry_id
    now = add(memory, "lunch", "rules").entry.entry_id

    hits = search_uncounted(memory, Query(text="lunch", mode=Mode.LEXICAL, recency=True)).items

    recency = {hit.entry.entry_id: hit.parts["recency"] for hit in hits}
    assert recency[ahead] <= recency[now]


def test_a_context_puts_it_among_the_rules_of_now(memory: Access) -> None:
    ahead = add(memory, "Ahead.", "rules", when=datetime.now(tz=UTC) + YEAR).entry.entry_id
    now = add(memory, "Now.", "preferences").entry.entry_id

    assert list(context(memory).entries) == [now, ahead]


def test_equal_episodes_of_one_time_to_come_are_one_hit(memory: Access) -> None:
    when = datetime.now(tz=UTC) + YEAR
    one, other = (add(memory, "A fair in Rome.", "events", when=when).entry.entry_id for _ in range(2))

    (hit,) = search_uncounted(memory, Query(text="fair Rome", mode=Mode.LEXICAL)).items

    assert (hit.entry.entry_id, hit.duplicates) == (other, (one,))


def test_a_new_text_is_ordered_anew_and_the_old_one_not(memory: Access) -> None:
    ahead = datetime.now(tz=UTC).replace(microsecond=0) + YEAR
    entry = entry_text("mem_x").replace("2026-01-02", ahead.isoformat())
    services.write_file(memory, FACTS, entry.rstrip("\n"))
    written = got(memory, "mem_x")

    add(memory, "below")
    assert got(memory, "mem_x").ordered_at == written.ordered_at

    services.edit_file(memory, FACTS, "A body.", "More.")
    changed = got(memory, "mem_x")
    assert changed.changed is not None
    assert changed.ordered_at == changed.changed.at > written.ordered_at
    assert changed.entry.created == ahead


# --- what was there before -----------------------------------------------------------------------------------------


def as_before(tree: Tree) -> None:
    rows = Block.objects.of(tree).entries()
    rows.update(created=Coalesce(F("claimed"), F("created")))
    rows.update(claimed=None, first_in=None, changed_in=None)


def fill() -> None:
    migration = import_module("migrations.tree.0016_authors")
    migration.fill(apps, SimpleNamespace(connection=connection))


def state(tree: Tree) -> list[object]:
    names = ("created", "claimed", "first_in", "changed_in")
    return list(Block.objects.of(tree).entries().order_by("pk").values_list("pk", *names))


@pytest.mark.parametrize("most", [1, 500])
def test_what_stood_before_gets_its_authors(
    memory: Access, three: list[str], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    for path in (FACTS, RULES):
        services.write_file(by(memory, "ann"), path, entry_text(f"mem_{path[-5]}{len(path)}"))
        services.edit_file(by(memory, "bea"), path, "A body.", "More.")
        services.edit_file(by(memory, "cid"), path, "More.", "Most.")
    monkeypatch.setattr(import_module("migrations.tree.0016_authors"), "ROWS_AT_ONCE", most)
    with of_tenant(memory):
        told = state(memory.tree)
        as_before(memory.tree)
        assert state(memory.tree) != told

        fill()

        assert state(memory.tree) == told


def test_what_was_said_outlives_the_way_back(memory: Access, three: list[str]) -> None:
    ahead = got(memory, three[1]).entry.created
    migration = import_module("migrations.tree.0016_authors")
    with of_tenant(memory):
        migration.give_back(apps, SimpleNamespace(connection=connection))

        assert not Block.objects.of(memory.tree).exclude(claimed=None).exists()
        assert Block.objects.of(memory.tree).get(entry_id=three[1]).created == ahead


def test_what_nobody_can_tell_any_more_is_not_told(memory: Access) -> None:
    services.write_file(by(memory, "ann"), FACTS, entry_text("mem_x"))
    services.edit_file(by(memory, "bea"), FACTS, "A body.", "More.")
    added = add(by(memory, "bea"), "rule", "rules").entry.entry_id
    prune_to(memory.tree, 3)
    services.write_file(by(memory, "cid"), NOTES, entry_text("mem_y"))
    with of_tenant(memory):
        as_before(memory.tree)

        fill()

    assert authors(memory, "mem_x") == (None, (2, "bea"))
    assert authors(memory, added) == ((3, "bea"), (3, "bea"))
    assert authors(memory, "mem_y") == ((4, "cid"), (4, "cid"))
    services.edit_file(by(memory, "dan"), FACTS, "More.", "Most.")
    assert authors(memory, "mem_x") == (None, (revision(memory), "dan"))
