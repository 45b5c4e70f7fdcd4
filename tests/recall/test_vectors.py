from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from django.db import IntegrityError, connection, transaction
from pytest_django import Settings

from memsvc.recall import vectors
from memsvc.recall.embedding import EmbeddingError, embedder
from memsvc.recall.minilm import MiniLM
from memsvc.recall.models import EmbeddedTree, Vector
from memsvc.recall.vectors import embed_query, embed_tree, forget_expired, stale_trees
from memsvc.tree import services
from memsvc.tree.access import Access
from memsvc.tree.models import Block
from memsvc.tree.trees import delete_tree
from tests.tree.support import FACTS, add, days_pass, from_outside, in_days, of_tenant, revision

LETTERS = "tests.recall.langchain.made"
LETTERS_NAME = f"{LETTERS}/letters-1"


def stored(access: Access, model: str = MiniLM.name) -> dict[str, int]:
    """How many parts of each entry have a vector."""
    found: dict[str, int] = {}
    with of_tenant(access):
        vectors = list(Vector.objects.filter(tree=access.tree, model=model).select_related("block"))
    for vector in vectors:
        found[vector.block.entry_id] = found.get(vector.block.entry_id, 0) + 1
    return found


def is_stale(access: Access) -> bool:
    return access.tree.pk in {tree.pk for tree in stale_trees(1000)}


def nearest(access: Access, query: str) -> str:
    """The entry that is nearest to a query, as Postgres compares them."""
    asked = embed_query(query)
    assert asked is not None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT b.entry_id FROM recall_vector v JOIN tree_block b ON b.id = v.block_id "
            "WHERE v.tree_id = %s ORDER BY v.embedding <=> %s::halfvec LIMIT 1",
            [access.tree.pk, str(asked.tolist())],
        )
        (found,) = cursor.fetchone()
    return str(found)


def test_entries_get_vectors_and_the_tree_is_done(memory: Access) -> None:
    tea = add(memory, "She drinks green tea.").entry.entry_id
    outage = add(memory, "The database went down on Friday.", "errors").entry.entry_id
    assert is_stale(memory)

    assert embed_tree(memory.tree) == 2

    assert stored(memory) == {tea: 1, outage: 1}
    assert nearest(memory, "What does she like to have?") == tea
    assert nearest(memory, "server outage") == outage
    assert not is_stale(memory)
    assert embed_tree(memory.tree) == 0


def test_what_is_stored_is_the_vector_of_the_text(memory: Access) -> None:
    add(memory, "She drinks green tea.")
    embed_tree(memory.tree)

    kept = Vector.objects.get(tree=memory.tree).embedding

    assert np.allclose(np.asarray(kept, np.float32), MiniLM().embed(["She drinks green tea."])[0], atol=1e-3)


def test_a_summary_is_embedded_where_the_body_does_not_begin_with_it(
    memory: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    model = embedder()
    assert model is not None
    embed = model.embed

    def see(texts: Any) -> Any:
        seen.extend(texts)
        return embed(texts)

    monkeypatch.setattr(model, "embed", see)
    add(memory, "First. Second.", summary="First.")
    add(memory, "Third.", summary="Ordinals")

    embed_tree(memory.tree)

    assert sorted(seen) == ["First. Second.", "Ordinals\n\nThird."]


def test_a_long_entry_is_found_by_its_end(memory: Access) -> None:
    filler = "\n\n".join(f"Paragraph {number} tells about the weather in the hills." for number in range(80))
    long = add(memory, f"{filler}\n\nThe password of the printer is taped to its back.").entry.entry_id
    add(memory, "Nothing to see in this short note.")

    embed_tree(memory.tree)

    assert stored(memory)[long] > 2
    parts = Vector.objects.filter(tree=memory.tree, block__entry_id=long).order_by("part")
    assert [vector.part for vector in parts] == list(range(stored(memory)[long]))
    assert nearest(memory, "How do I log in to the printer?") == long


def test_only_what_is_new_is_embedded(memory: Access) -> None:
    add(memory, "One.")
    embed_tree(memory.tree)
    two = add(memory, "Two.").entry.entry_id

    assert embed_tree(memory.tree) == 1
    assert two in stored(memory)


def test_a_change_without_entries_is_seen_and_done_with(memory: Access) -> None:
    services.write_file(memory, "/notes.md", b"free text")
    assert is_stale(memory)

    assert embed_tree(memory.tree) == 0

    assert not is_stale(memory)
    assert stored(memory) == {}


def test_closed_entries_lose_their_vectors(memory: Access) -> None:
    old = add(memory, "Anna lives in Bonn.").entry.entry_id
    kept = add(memory, "Anna is a nurse.").entry.entry_id
    embed_tree(memory.tree)
    services.retire_entry(memory, old)

    embed_tree(memory.tree)

    assert stored(memory) == {kept: 1}


def test_a_deleted_file_loses_the_vectors_of_its_entries(memory: Access) -> None:
    add(memory, "One.")
    embed_tree(memory.tree)
    services.delete(memory, FACTS)
    embed_tree(memory.tree)

    assert not Vector.objects.filter(tree=memory.tree).exists()


def test_restored_entries_get_vectors_again(memory: Access) -> None:
    one = add(memory, "One.").entry.entry_id
    embed_tree(memory.tree)
    before = revision(memory)
    services.delete(memory, FACTS)
    embed_tree(memory.tree)
    services.restore(memory, before)

    embed_tree(memory.tree)

    assert stored(memory) == {one: 1}


def test_expired_entries_get_no_vectors(memory: Access) -> None:
    add(memory, "The code is 1234.", expires_at=in_days(1))
    days_pass(memory, 2)

    assert embed_tree(memory.tree) == 0
    assert stored(memory) == {}
    assert not is_stale(memory)


def test_vectors_of_entries_that_expire_go_without_a_revision(memory: Access, stranger: Access) -> None:
    add(memory, "The code is 1234.", expires_at=in_days(1))
    kept = add(memory, "The door is green.").entry.entry_id
    embed_tree(memory.tree)
    assert forget_expired() == 0

    Vector.objects.filter(tree=memory.tree, expires_at__isnull=False).update(expires_at=in_days(-1))

    assert forget_expired() == 1
    assert stored(memory) == {kept: 1}


def test_what_is_closed_while_the_model_works_gets_no_vector(
    memory: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = add(memory, "Anna lives in Bonn.").entry.entry_id
    kept = add(memory, "Anna is a nurse.").entry.entry_id
    model = embedder()
    assert model is not None
    embed = model.embed

    def embed_slowly(texts: Any) -> Any:
        services.retire_entry(memory, gone)
        return embed(texts)

    monkeypatch.setattr(model, "embed", embed_slowly)
    assert embed_tree(memory.tree) == 1
    monkeypatch.undo()

    assert stored(memory) == {kept: 1}
    # The retirement came after the revision that was looked at.
    assert is_stale(memory)


def test_a_large_tree_is_done_in_several_calls_newest_first(memory: Access) -> None:
    ids = [add(memory, f"Fact number {number}.").entry.entry_id for number in range(5)]

    assert embed_tree(memory.tree, limit=2) == 2
    assert set(stored(memory)) == set(ids[3:])
    assert is_stale(memory)

    assert [embed_tree(memory.tree, limit=2) for _ in range(3)] == [2, 1, 0]
    assert set(stored(memory)) == set(ids)
    assert not is_stale(memory)


def test_a_failing_model_leaves_the_tree_stale_and_what_was_stored(
    memory: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "_PARTS_AT_ONCE", 1)
    for number in range(3):
        add(memory, f"Fact number {number}.")
    model = embedder()
    assert model is not None
    embed = model.embed
    calls: list[None] = []

    def fail_second(texts: Any) -> Any:
        calls.append(None)
        if len(calls) == 2:
            raise EmbeddingError("gone")
        return embed(texts)

    monkeypatch.setattr(model, "embed", fail_second)
    with pytest.raises(EmbeddingError):
        embed_tree(memory.tree)

    assert len(stored(memory)) == 1
    assert is_stale(memory)
    assert embed_tree(memory.tree) == 2
    assert not is_stale(memory)


def test_an_entry_without_words_is_done_too(memory: Access) -> None:
    services.write_file(
        memory,
        FACTS,
        b"---\nid: mem_2026-01-01_ab\ncreated: 2026-01-01\ncategory: facts\n---\n\n\xe2\x80\x8b\n",
    )

    embed_tree(memory.tree)

    assert stored(memory) == {"mem_2026-01-01_ab": 1}
    assert not is_stale(memory)


def test_without_a_model_nothing_is_made_and_no_tree_is_stale(memory: Access, settings: Settings) -> None:
    settings.EMBEDDER = "none"
    add(memory)

    assert embed_tree(memory.tree) == 0
    assert stale_trees(10) == []


def test_another_tenant_is_not_touched(memory: Access, stranger: Access) -> None:
    add(memory, "Ours.")
    add(memory, "Ours, too.")
    theirs = add(stranger, "Theirs.").entry.entry_id
    embed_tree(stranger.tree)
    before = vectors_of(stranger)
    add(stranger, "Theirs, too.")

    assert embed_tree(memory.tree) == 2

    assert not is_stale(memory)
    assert vectors_of(stranger) == before
    assert stored(stranger) == {theirs: 1}
    assert is_stale(stranger)
    for access in (memory, stranger):
        tree = access.tree
        assert {(row["tenant_id"], row["tree_id"]) for row in vectors_of(access)} == {
            (tree.tenant_id, tree.pk)
        }


def vectors_of(access: Access) -> list[Any]:
    """The rows of a tenant."""
    with of_tenant(access):
        return list(Vector.objects.values())


@pytest.mark.django_db(transaction=True)
def test_rows_of_two_tenants_cannot_be_mixed(memory: Access, stranger: Access) -> None:
    add(memory)
    add(stranger)
    embed_tree(memory.tree)
    embed_tree(stranger.tree)
    with from_outside():
        foreign = Block.objects.of(stranger.tree).entries().get()

    for change in (
        {"block": foreign},
        {"tree": stranger.tree},
        {"tenant_id": stranger.tree.tenant_id},
    ):
        broken = pytest.raises(IntegrityError, match=r"vector_(of_block_of_tree|in_tree_of_tenant)")
        # Not even by who owns the tables.
        with from_outside(), broken, transaction.atomic():
            Vector.objects.filter(tree=memory.tree).update(**change)


def test_a_deleted_tree_takes_its_vectors_along(memory: Access, stranger: Access) -> None:
    for access in (memory, stranger):
        add(access)
        embed_tree(access.tree)

    delete_tree(memory)

    with of_tenant(memory):
        assert not Vector.objects.filter(tree_id=memory.tree.pk).exists()
        assert not EmbeddedTree.objects.filter(tree_id=memory.tree.pk).exists()
    assert stored(stranger)
    # A job for it that comes late does nothing.
    assert embed_tree(memory.tree) == 0


def test_another_model_replaces_the_first_one_when_it_is_done(
    memory: Access, stranger: Access, settings: Settings
) -> None:
    for number in range(3):
        add(memory, f"Fact number {number}.")
    add(stranger)
    embed_tree(memory.tree)
    embed_tree(stranger.tree)

    settings.EMBEDDER = LETTERS
    assert is_stale(memory)
    embed_tree(memory.tree, limit=2)
    assert (len(stored(memory)), len(stored(memory, LETTERS_NAME))) == (3, 2)

    embed_tree(memory.tree)
    assert (len(stored(memory)), len(stored(memory, LETTERS_NAME))) == (0, 3)
    assert not is_stale(memory)
    assert (len(stored(stranger)), is_stale(stranger)) == (1, True)


def test_going_back_before_the_other_model_is_done_costs_nothing(memory: Access, settings: Settings) -> None:
    add(memory, "One.")
    add(memory, "Two.")
    embed_tree(memory.tree)
    settings.EMBEDDER = LETTERS
    embed_tree(memory.tree, limit=1)
    settings.EMBEDDER = "minilm"
    assert not is_stale(memory)
    add(memory, "Three.")

    assert embed_tree(memory.tree) == 1
    assert (len(stored(memory)), stored(memory, LETTERS_NAME)) == (3, {})


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_store_each_part_once(memory: Access) -> None:
    ids = {add(memory, f"Fact number {number}.").entry.entry_id for number in range(40)}

    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(embed_tree, [memory.tree] * 3))

    assert sum(done) == 40
    assert stored(memory) == dict.fromkeys(ids, 1)
    assert not is_stale(memory)


@pytest.mark.django_db(transaction=True)
def test_no_connection_is_held_while_the_model_works(memory: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    add(memory)
    model = embedder()
    assert model is not None
    embed = model.embed
    states: list[bool] = []

    def look(texts: Any) -> Any:
        states.append(connection.in_atomic_block or connection.connection is not None)
        return embed(texts)

    monkeypatch.setattr(model, "embed", look)

    assert embed_tree(memory.tree) == 1
    assert states == [False]


@pytest.mark.django_db(transaction=True)
def test_a_writer_does_not_wait_for_vectors_that_are_being_stored(memory: Access) -> None:
    entry = add(memory).entry.entry_id
    with transaction.atomic():
        embed_tree(memory.tree)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(services.retire_entry, memory, entry).result().entry_id == entry

    # Its vector, stored too late, goes with the next call.
    assert stored(memory) == {entry: 1}
    embed_tree(memory.tree)
    assert stored(memory) == {}
