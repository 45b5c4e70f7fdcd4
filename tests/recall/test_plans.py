"""Searching a small tree costs the same among many: every statement of a search goes by its index."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from memsvc.recall.embedding import embedder
from memsvc.recall.ranking import as_halfvec
from memsvc.recall.search import Mode, Query, query_vector, search
from memsvc.recall.vectors import embed_tree
from memsvc.tree.access import Access
from memsvc.tree.models import Tree
from tests.tree.support import add

pytestmark = pytest.mark.django_db

BODIES = [
    f"The kettle of room {number} needs a new {part}." for number in range(20) for part in ("lid", "cord")
]
LARGE = {"tree_block", "tree_file", "recall_vector"}
OTHERS = 1_000

# Copies of a tree under new names, with its files, blocks and vectors.
_COPIES = """
CREATE TEMPORARY TABLE copy ON COMMIT DROP AS
    SELECT gen_random_uuid() AS tree, number FROM generate_series(1, %(count)s) AS number;
INSERT INTO tree_tree (id, tenant_id, name, description, language, title, metadata, revision, index_behind,
                       history_from, entry_count, term_count)
    SELECT copy.tree, tenant_id, name || number, '', language, title, metadata, revision, false, history_from,
           entry_count, term_count
    FROM tree_tree, copy WHERE id = %(tree)s;
CREATE TEMPORARY TABLE copied_file ON COMMIT DROP AS
    SELECT gen_random_uuid() AS file, id AS old, copy.tree FROM tree_file, copy WHERE tree_id = %(tree)s;
INSERT INTO tree_file (id, tenant_id, tree_id, added_in, path, parent, size, lines, is_text, newline, sha256,
                       created_in, changed_in, created_at, modified_at, pruned_in)
    SELECT c.file, tenant_id, c.tree, added_in, path, parent, size, lines, is_text, newline, sha256,
           created_in, changed_in, created_at, modified_at, pruned_in
    FROM tree_file f JOIN copied_file c ON c.old = f.id;
CREATE TEMPORARY TABLE copied_block ON COMMIT DROP AS
    SELECT gen_random_uuid() AS block, id AS old, c.tree, c.file
    FROM tree_block b JOIN copied_file c ON c.old = b.file_id;
INSERT INTO tree_block (id, tenant_id, tree_id, file_id, added_in, position, kind, head, text, size, lines, reason,
                        entry_id, duplicate, category, created, source, confidence, summary, tags, tag_keys, supersedes,
                        row_path, search_text, superseded_by, spliced, tsv)
    SELECT c.block, tenant_id, c.tree, c.file, added_in, position, kind, head, text, size, lines, reason,
           entry_id, duplicate, category, created, source, confidence, summary, tags, tag_keys, supersedes,
           row_path, search_text, superseded_by, spliced, tsv
    FROM tree_block b JOIN copied_block c ON c.old = b.id;
INSERT INTO recall_vector (id, tenant_id, tree_id, block_id, part, model, embedding)
    SELECT gen_random_uuid(), tenant_id, c.tree, c.block, part, model, embedding
    FROM recall_vector v JOIN copied_block c ON c.old = v.block_id;
ANALYZE tree_tree, tree_file, tree_block, recall_vector;
"""
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
    with connection.cursor() as cursor:
        cursor.execute(_COPIES, {"count": OTHERS, "tree": memory.tree.pk})

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
    expected = [hit.found.entry.body for hit in search(memory, Query(text=query), limit=20).items]
    model, vector = embedder(), query_vector(query)
    assert model is not None
    assert vector is not None
    with connection.cursor() as cursor:
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

    assert [hit.found.entry.body for hit in page.items] == expected
    assert len(expected) == 20
    assert Tree.objects.count() == 2
