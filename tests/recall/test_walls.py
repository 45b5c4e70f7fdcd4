"""What may not be seen leaves no trace in a search: no hit, no count, no part of another entry's score."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from memsvc.recall.mneme_search import search_as_mneme
from memsvc.recall.search import Mode, Query, search
from memsvc.recall.vectors import embed_tree
from memsvc.tree import reads, services, statements
from memsvc.tree.access import Access
from memsvc.tree.models import Block
from memsvc.tree.reads import EntryFilter
from tests.tree.support import FACTS, add, entry_text, in_days

pytestmark = pytest.mark.django_db

BODIES = [
    "The kettle in the kitchen is broken.",
    "The kitchen was painted green.",
    "Kettles are sold on the second floor.",
    "The cat sleeps in the hall.",
]
SECRET = "The kettle kitchen kettle kitchen secret is under the broken kettle."


def seen(
    access: Access, mode: Mode = Mode.LEXICAL, **wanted: object
) -> list[tuple[str, float | None, dict[str, float]]]:
    query = Query(text="broken kettle in the kitchen", mode=mode, wanted=EntryFilter(**wanted))  # type: ignore[arg-type]
    page = search(access, query, limit=50)
    return [(hit.entry.body, hit.score, dict(hit.parts)) for hit in page.items]


def expired(access: Access, stranger: Access) -> None:
    add(access, SECRET, expires_at=in_days(1))
    Block.objects.of(access.tree).filter(text__contains="secret").update(
        expires_at=datetime.now(tz=UTC) - timedelta(minutes=1)
    )


def superseded(access: Access, stranger: Access) -> None:
    old = add(access, SECRET, "rules").entry.entry_id
    add(access, "Nothing to do with it.", "rules", supersedes=old)
    services.retire_entry(access, old_of(access, "Nothing to do with it."))


def retired(access: Access, stranger: Access) -> None:
    services.retire_entry(access, add(access, SECRET).entry.entry_id)


def foreign(access: Access, stranger: Access) -> None:
    for _ in range(5):
        add(stranger, SECRET)


def old_of(access: Access, body: str) -> str:
    return Block.objects.of(access.tree).filter(text__contains=body, removed_in=None).get().entry_id


def test_neighbours_are_those_that_are_seen(memory: Access, stranger: Access) -> None:
    for body in BODIES[:2]:
        add(memory, body)
    before = seen(memory)
    assert any(parts["neighbours"] for _, _, parts in before)
    text = reads.read_file(memory, FACTS).data.decode()
    old, new = (
        entry_text(f"mem_{n}", SECRET, more=more) for n, more in ((1, "superseded_by: mem_2\n"), (2, ""))
    )
    second = text.index("---\nid:", text.index(BODIES[0]))
    services.write_file(memory, FACTS, f"{text[:second]}{old}\n{new}\n{text[second:]}")
    Block.objects.of(memory.tree).filter(entry_id="mem_2").update(
        expires_at=datetime.now(tz=UTC) - timedelta(minutes=1)
    )
    statements.count_entries(memory.tree)

    assert seen(memory) == before


@pytest.mark.parametrize("hide", [expired, superseded, retired, foreign])
def test_the_hidden_change_nothing_that_is_seen(
    memory: Access, stranger: Access, hide: Callable[[Access, Access], None]
) -> None:
    for body in BODIES:
        add(memory, body)
    before = seen(memory)

    hide(memory, stranger)

    assert seen(memory) == before
    assert "secret" not in str(seen(memory))


def test_a_key_of_a_folder_learns_nothing_of_the_others(memory: Access) -> None:
    text = "\n".join(entry_text(f"mem_{n}", body) for n, body in enumerate(BODIES))
    services.write_file(memory, "/mine/notes.md", text)
    mine = replace(memory, prefix="/mine")
    before = seen(mine)

    services.write_file(memory, "/theirs/notes.md", entry_text("mem_secret", SECRET))

    assert seen(mine) == before
    assert len(before) == 3


def test_vectors_tell_nothing_either(memory: Access, stranger: Access) -> None:
    for body in BODIES:
        add(memory, body)
    embed_tree(memory.tree)
    before = seen(memory, Mode.HYBRID)
    foreign(memory, stranger)
    retired(memory, stranger)
    embed_tree(stranger.tree)
    expired(memory, stranger)

    assert seen(memory, Mode.HYBRID) == before
    assert any("similarity" in parts for _, _, parts in before)


def test_a_search_of_an_earlier_revision_finds_what_stood_then(memory: Access) -> None:
    first = add(memory, BODIES[0])
    services.retire_entry(memory, first.entry.entry_id)
    query = Query(text="broken kettle", mode=Mode.LEXICAL)

    assert search(memory, query).items == []
    (hit,) = search(memory, query, revision=first.revision).items
    assert hit.entry.body == BODIES[0]


@pytest.mark.parametrize("mode", list(Mode))
def test_a_search_of_a_revision_without_files_finds_nothing(memory: Access, mode: Mode) -> None:
    add(memory, BODIES[0])
    query = Query(text="kettle", mode=mode)

    assert search(memory, query, revision=0).items == []
    # Nor does a key that sees none of the files of then.
    services.write_file(memory, "/mine/notes.md", entry_text("mem_1", BODIES[0]))
    embed_tree(memory.tree)
    mine = replace(memory, prefix="/mine")
    assert search(mine, query, revision=1).items == []
    assert len(search(mine, query, revision=2).items) == 1
    assert search_as_mneme(mine, "kettle", revision=1).items == []


def test_meaning_finds_what_words_do_not(memory: Access) -> None:
    for body in (
        "The physician looked after the child.",
        "The lorry is parked outside.",
        "Soup is served at noon.",
    ):
        add(memory, body)
    embed_tree(memory.tree)

    for query, first in (
        ("doctor and kid", "The physician looked after the child."),
        ("where is the truck", "The lorry is parked outside."),
        ("lunch menu", "Soup is served at noon."),
    ):
        hits = search(memory, Query(text=query)).items
        assert hits[0].entry.body == first
        assert hits[0].parts["similarity"] > 0


def test_the_only_entry_is_found_by_its_meaning(memory: Access) -> None:
    add(memory, "The customer signed up for the Team plan.")
    embed_tree(memory.tree)

    (hit,) = search(memory, Query(text="What does our client pay for?")).items

    assert hit.parts["bm25"] == 0
    assert hit.score is not None
    assert hit.score > 0


def test_an_entry_without_a_vector_is_found_by_its_words(memory: Access) -> None:
    add(memory, "The lorry is parked outside.")
    embed_tree(memory.tree)
    add(memory, "The zeppelin lands at dawn.")

    assert search(memory, Query(text="zeppelin")).items[0].entry.body == "The zeppelin lands at dawn."
