"""Searching a small tree costs the same among many: every statement of a search goes by its index."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.apps import apps
from django.db import connection, transaction
from django.utils.timezone import now

from benchmarks.bulk import add_like, copy_to_new_tenants, give_vectors
from memsvc.recall.accesses import Accesses, add_accesses
from memsvc.recall.context import context
from memsvc.recall.embedding import embedder
from memsvc.recall.models import EmbeddedTree
from memsvc.recall.ranking import as_halfvec
from memsvc.recall.search import Mode, Query, query_vector, search
from memsvc.recall.vectors import embed_tree
from memsvc.tree import reads
from memsvc.tree.access import Access
from memsvc.tree.models import Block, Tree
from tests.tree.support import add, from_outside, of_tenant

pytestmark = pytest.mark.django_db(transaction=True)

BODIES = [
    f"The kettle of room {number} needs a new {part}." for number in range(20) for part in ("lid", "cord")
]
LARGE = {"tree_block", "tree_file", "recall_vector"}
OTHERS = 1_000

# Vectors of other trees, all of them nearer to the query than any of the tree that is searched.
_NEARER = """
INSERT INTO recall_vector (id, tenant_id, tree_id, block_id, part, model, embedding)
SELECT gen_random_uuid(), tenant_id, tree_id, id, part, %(model)s, %(vector)s::halfvec
FROM (SELECT * FROM tree_block WHERE tree_id = %(tree)s AND kind = 'entry') b, generate_series(0, %(parts)s - 1) AS part
"""


@contextmanager
def sent() -> Iterator[list[tuple[str, Any]]]:
    """The statements that are sent inside, with their parameters."""
    found: list[tuple[str, Any]] = []

    def note(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        found.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield found


def scanned_whole(statements: Iterable[tuple[str, Any]]) -> set[str]:
    """The large tables that a statement reads from one end to the other."""
    found: set[str] = set()
    with connection.cursor() as cursor:
        for statement, parameters in statements:
            cursor.execute("EXPLAIN (FORMAT JSON) " + statement, parameters)
            (plans,) = cursor.fetchone()
            plan = plans if isinstance(plans, list) else json.loads(plans)
            nodes = list(_nodes(plan[0]["Plan"]))
            found |= {node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"}
    return found & LARGE


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _nodes(below)


@pytest.mark.parametrize("mode", [Mode.HYBRID, Mode.LEXICAL, Mode.SEMANTIC, Mode.WORDS])
def test_no_statement_reads_what_is_of_other_trees(memory: Access, mode: Mode) -> None:
    for body in BODIES[:10]:
        add(memory, body)
    embed_tree(memory.tree)
    copy_to_new_tenants(memory.tree, OTHERS)

    with sent() as statements:
        page = search(memory, Query(text="kettle new cord", mode=mode), limit=5)

    assert len(page.items) == 5
    reading = [each for each in statements if any(table in each[0] for table in LARGE)]
    assert len(reading) == (1 if mode is Mode.WORDS else 3)
    assert scanned_whole(reading) == set()


def test_a_small_tree_gets_its_full_page_beside_many_nearer_vectors(memory: Access, stranger: Access) -> None:
    query = "kettle with a new cord"
    for body in BODIES:
        add(memory, body)
    for number in range(400):
        add(stranger, f"The kettle number {number} needs a new cord.")
    embed_tree(memory.tree)
    expected = [hit.entry.body for hit in search(memory, Query(text=query), limit=20).items]
    model, vector = embedder(), query_vector(query)
    assert model is not None
    assert vector is not None
    with of_tenant(stranger), connection.cursor() as cursor:
        near: dict[str, Any] = {
            "model": model.name,
            "vector": as_halfvec(vector.values),
            "tree": stranger.tree.pk,
            "parts": 50,
        }
        cursor.execute(_NEARER, near)
        assert cursor.rowcount == 20_000
        cursor.execute("ANALYZE recall_vector")

    page = search(memory, Query(text=query), limit=20)

    assert [hit.entry.body for hit in page.items] == expected
    assert len(expected) == 20
    with from_outside():
        assert Tree.objects.count() == 2


# --- a large tree beside many small ones ------------------------------------------------------------------------


def test_every_row_of_a_tree_leaves_its_tenant_out_of_estimates() -> None:
    """Where a new table doesn't say so, a large tree on a shared server is read whole for a look-up of one row."""
    models = [*apps.get_app_config("tree").get_models(), *apps.get_app_config("recall").get_models()]
    tables = {model._meta.db_table for model in models if hasattr(model, "tenant_id")}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attrelid::regclass::text FROM pg_attribute"
            " WHERE attname = 'tenant_id' AND attoptions @> '{n_distinct=1}'"
        )
        assert {table for (table,) in cursor.fetchall()} == tables


# What each may read, in pages; what ranks or counts lines looks at the vectors or the blocks of the tree, each once.
# Where the planner takes a tree for one of the usual size, adding reads 900, searching by meaning 390,000 and making a
# vector 40,000.
PAGES = {
    "add": 350,
    "supersede": 450,
    "get": 100,
    "newest": 100,
    "all words": 1_000,
    "by words": 10_000,
    "by meaning": 20_000,
    "by both": 25_000,
    "context": 25_000,
    "count accesses": 150,
    "add with a vector": 3_000,
}


@pytest.fixture
def large(memory: Access, stranger: Access, superuser: psycopg.Connection) -> Access:
    """A tree of 5,000 entries beside 200 of three."""
    for body in BODIES[:3]:
        add(stranger, body)
    embed_tree(stranger.tree)
    copy_to_new_tenants(stranger.tree, 199)
    for body in BODIES:
        newest = add(memory, body)
    embed_tree(memory.tree)
    with of_tenant(memory):
        like = Block.objects.select_related("tree").get(tree=memory.tree, entry_id=newest.entry.entry_id)
    add_like(like, 5_000, words=8)
    give_vectors(memory.tree)
    with of_tenant(memory):
        EmbeddedTree.objects.filter(tree=memory.tree).update(revision=memory.tree.revision + 5_000)
    # What earlier tests have left behind would be read, too.
    superuser.execute("VACUUM")
    return memory


@pytest.mark.parametrize("plans", ["force_generic_plan", "force_custom_plan"])
def test_a_large_tree_beside_small_ones_costs_what_it_costs_alone(large: Access, plans: str) -> None:
    with of_tenant(large):
        rows = Block.objects.filter(tree=large.tree, kind="entry").order_by("created")
        entry, *others = rows[2_500:2_510]
    query = " ".join(entry.text.split()[:3])
    acts: dict[str, Callable[[], object]] = {
        "add": lambda: add(large, "One more."),
        "supersede": lambda: add(large, "Another one.", supersedes=others.pop().entry_id),
        "get": lambda: reads.get_entry(large, entry.entry_id),
        "newest": lambda: reads.list_entries(large, limit=10),
        "all words": lambda: search(large, Query(text=query, mode=Mode.WORDS), limit=10),
        "by words": lambda: search(large, Query(text=query, mode=Mode.LEXICAL), limit=10),
        "by meaning": lambda: search(large, Query(text=query, mode=Mode.SEMANTIC), limit=10),
        "by both": lambda: search(large, Query(text=query), limit=10),
        "context": lambda: context(large, query),
        "count accesses": lambda: add_accesses(large, {entry.entry_id: Accesses(1, now())}),
        "add with a vector": lambda: (add(large, "With a vector."), embed_tree(large.tree)),
    }
    # In one transaction, which counters and the setting are of.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL plan_cache_mode = {plans}")
        read = {name: min(pages(act) for _ in range(2)) for name, act in acts.items()}

    assert {name: count for name, count in read.items() if count > PAGES[name]} == {}


def pages(act: Callable[[], object]) -> int:
    """The pages of tables and their indexes that a call touches, from the counters of this transaction."""
    before = _touched()
    act()
    return _touched() - before


def _touched() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(pg_stat_get_xact_blocks_fetched(oid)) FROM pg_class"
            " WHERE relnamespace IN ('public'::regnamespace, 'pg_toast'::regnamespace) AND relkind IN ('r', 'i', 't')"
        )
        return int(cursor.fetchone()[0])
