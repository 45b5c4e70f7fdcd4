"""Large trees: their vectors are in an index, and search finds by it what it would find by comparing all of them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from pytest_django import Settings

from memsvc.format import MemoryCategory, MemoryEntry, render_document
from memsvc.recall import ann_index, candidates
from memsvc.recall.embedding import Embedder, embedder
from memsvc.recall.models import EmbeddedTree, Vector
from memsvc.recall.search import Mode, Query, search
from memsvc.recall.vectors import embed_tree, stale_trees
from memsvc.tree import services
from memsvc.tree.access import Access
from memsvc.tree.models import Block
from tests.tree.support import FACTS, add, draft, from_outside, in_days

pytestmark = pytest.mark.django_db

THINGS = ["kettle", "ladder", "printer", "bicycle", "window", "lamp", "carpet", "sink"]
PLACES = ["kitchen", "hall", "cellar", "office", "garden", "attic", "garage", "library"]
STATES = ["broken", "new", "painted green", "for sale", "missing"]
BODIES = [
    f"The {thing} in the {place} is {state}." for thing in THINGS for place in PLACES for state in STATES
]
QUERY = "Which tool for climbing stands below the house?"


@pytest.fixture
def model() -> Embedder:
    found = embedder()
    assert found is not None
    return found


@pytest.fixture
def large(memory: Access, monkeypatch: pytest.MonkeyPatch) -> Access:
    """A tree that counts as large, with all its vectors made."""
    monkeypatch.setattr(ann_index, "LARGE", len(BODIES) // 2)
    services.write_file(memory, FACTS, render_document("# Facts", entries(BODIES)))
    while embed_tree(memory.tree):
        pass
    return memory


def entries(bodies: list[str]) -> list[MemoryEntry]:
    now = datetime.now(tz=UTC)
    return [
        MemoryEntry(
            entry_id=f"mem_{number}",
            category=MemoryCategory.FACTS,
            body=body,
            summary=body,
            created=now - timedelta(minutes=number),
        )
        for number, body in enumerate(bodies)
    ]


def places(access: Access) -> list[int]:
    return list(Vector.objects.filter(tree=access.tree).values_list("indexed", flat=True).distinct())


def found(access: Access, mode: Mode = Mode.SEMANTIC) -> list[str]:
    return [hit.entry.body for hit in search(access, Query(text=QUERY, mode=mode), limit=20).items]


def compared(access: Access, monkeypatch: pytest.MonkeyPatch, mode: Mode = Mode.SEMANTIC) -> list[str]:
    """What is found where no tree counts as large."""
    with monkeypatch.context() as patch:
        patch.setattr(ann_index, "LARGE", 1_000_000)
        return found(access, mode)


def test_a_small_tree_is_not_in_the_index(memory: Access) -> None:
    add(memory, BODIES[0])
    embed_tree(memory.tree)

    assert places(memory) == [0]
    assert not EmbeddedTree.objects.get(tree=memory.tree).indexed


def test_a_large_tree_enters_the_index_piece_by_piece(
    memory: Access, model: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.write_file(memory, FACTS, render_document("# Facts", entries(BODIES[:30])))
    embed_tree(memory.tree)
    monkeypatch.setattr(ann_index, "LARGE", 20)
    add(memory, BODIES[40])

    assert embed_tree(memory.tree, limit=11) == 11
    assert sorted(places(memory)) == [0, 384]
    assert memory.tree.pk in {tree.pk for tree in stale_trees(100)}
    assert [embed_tree(memory.tree, limit=11) for _ in range(3)] == [11, 10, 0]
    assert EmbeddedTree.objects.get(tree=memory.tree).indexed
    assert stale_trees(100) == []

    add(memory, BODIES[50])
    assert embed_tree(memory.tree) == 1
    assert places(memory) == [model.dimensions]


@pytest.mark.parametrize("mode", [Mode.SEMANTIC, Mode.HYBRID])
def test_the_index_finds_what_comparing_finds(
    large: Access, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "_COMPARED", "nearest AS (SELECT no_such_column)")

    by_index = found(large, mode)

    monkeypatch.undo()
    assert len(by_index) == 20
    assert all("ladder" in body for body in by_index[:10])
    assert len(set(by_index) & set(compared(large, monkeypatch, mode))) >= 18


@pytest.mark.parametrize("mode", [Mode.LEXICAL, Mode.SEMANTIC, Mode.HYBRID])
def test_what_is_counted_and_what_is_kept_are_the_same(memory: Access, mode: Mode) -> None:
    services.write_file(memory, FACTS, render_document("# Facts", entries(BODIES)))
    add(memory, "The ladder will be gone.", expires_at=in_days(1))
    services.retire_entry(memory, "mem_7")
    embed_tree(memory.tree)
    query = Query(text="the broken ladder in the cellar", mode=mode)
    now = search(memory, query, limit=100)
    revision = services.add_entry(memory, draft("Nothing to do with it.")).revision

    # Of a whole tree as it is now all counts are kept, of an earlier revision they are counted.
    then = search(memory, query, limit=100, revision=revision - 1)

    assert [hit.entry.entry_id for hit in then.items] == [hit.entry.entry_id for hit in now.items]
    assert [hit.score for hit in then.items] == pytest.approx([hit.score for hit in now.items])
    assert [hit.line for hit in then.items] == [hit.line for hit in now.items]


def test_the_nearest_are_read_from_the_index(large: Access) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_sort = off")
        cursor.execute(
            "EXPLAIN SELECT block_id FROM recall_vector v WHERE indexed = 384 AND tree_id = %s "
            "ORDER BY v.embedding::halfvec(384) <#> (SELECT embedding FROM recall_vector LIMIT 1) LIMIT 10",
            [large.tree.pk],
        )
        assert "vector_near_384" in str(cursor.fetchall())


def test_what_no_longer_holds_takes_no_place(large: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    nearest = Block.objects.of(large.tree).filter(text__contains="ladder in the cellar")
    for entry_id in list(nearest.values_list("entry_id", flat=True)):
        services.retire_entry(large, entry_id)

    page = found(large)

    assert len(page) == 20
    assert not [body for body in page if "ladder in the cellar" in body]
    assert len(set(page) & set(compared(large, monkeypatch))) >= 18


def test_others_in_the_index_take_no_place_either(
    large: Access, stranger: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = compared(large, monkeypatch)
    services.write_file(stranger, FACTS, render_document("# Facts", entries([QUERY])))
    embed_tree(stranger.tree)
    with connection.cursor() as cursor:
        # All of them nearer to the query than any entry of the tree that is searched.
        cursor.execute(
            "INSERT INTO recall_vector (id, tenant_id, tree_id, block_id, part, model, embedding, indexed) "
            "SELECT uuidv7(), tenant_id, tree_id, block_id, n, model, embedding, 384 "
            "FROM recall_vector, generate_series(1, 500) AS n WHERE tree_id = %s AND part = 0",
            [stranger.tree.pk],
        )
        # So that the index ends before it has come to the tree.
        cursor.execute("SET LOCAL hnsw.max_scan_tuples = 100")

    assert found(large) == expected


@pytest.mark.django_db(transaction=True)
def test_an_index_that_is_gone_is_not_missed(large: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = compared(large, monkeypatch)
    with from_outside(), connection.cursor() as cursor:
        cursor.execute("DROP INDEX vector_near_384")

    try:
        assert found(large) == expected
        add(large, BODIES[0])
        assert embed_tree(large.tree) == 1
    finally:
        with from_outside():
            ann_index.make_index(384)


@pytest.fixture
def letters(settings: Settings, transactional_db: None) -> Iterator[str]:
    """A model whose vectors have eight numbers, and the name of their index."""
    settings.EMBEDDER = "tests.recall.langchain.made"
    yield "vector_near_8"
    with from_outside(), connection.cursor() as cursor:
        cursor.execute("DROP INDEX IF EXISTS vector_near_8")


def indexed(name: str) -> bool | None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [name])
        row = cursor.fetchone()
    return row[0] if row else None


def told() -> str:
    output = StringIO()
    call_command("vector_index", stdout=output)
    return output.getvalue()


def test_a_command_makes_the_index_of_another_model(letters: str) -> None:
    assert told() == f"{letters}: made\n"
    assert told() == f"{letters}: there already\n"
    assert indexed(letters)


def test_what_an_interrupted_command_left_is_made_anew(letters: str, superuser: psycopg.Connection) -> None:
    told()
    superuser.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass(%s)", [letters])

    assert told() == f"{letters}: made\n"
    assert indexed(letters)


def test_there_is_no_index_of_no_model(settings: Settings) -> None:
    settings.EMBEDDER = "none"

    with pytest.raises(CommandError, match="MEMSVC_EMBEDDER is none"):
        told()
