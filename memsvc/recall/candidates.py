"""What a ranking chooses from, as tables of its statement: all that a tree holds now, or what passes a filter.

Both give the same tables: `size` (how many entries there are, and how many terms each has on average), `sample` (some
of the newest, which tell how near an entry usually is), `candidate` (those that hold a term of the query) and
`nearest`. Of a whole tree none of them takes a look at every entry.
"""

import re
from dataclasses import dataclass
from itertools import count
from typing import Any

from django.db import connection
from django.db.models.expressions import RawSQL

from memsvc.database.rights import SEARCHED
from memsvc.tree.reads.entries import EVERY_ACTIVE, EntryFilter, matching
from memsvc.tree.snapshot import Snapshot
from memsvc.tree.visibility import active_sql, expiring_sql, live_at_sql, visible_sql

# How many of the best by words, and of the nearest, are looked at: so many for each step of depth.
OF_EACH = 300
_SAMPLE = 256

QUESTION = "question AS MATERIALIZED (SELECT %(meaning)s::halfvec AS meaning)"


@dataclass(frozen=True, slots=True)
class Candidates:
    """Tables in SQL, and their parameters. `holds` says of a block `b` whether it counts as a neighbour."""

    parts: list[str]
    candidates: str
    nearest: str
    holds: str
    values: dict[str, Any]


_VISIBLE = f"b.kind = 'entry' AND {visible_sql('b', '%(at)s')}"
_HOLDS_NOW = f"{_VISIBLE} AND {live_at_sql('b')} AND {active_sql('b')}"
_HELD_THEN = f"{_VISIBLE} AND {live_at_sql('b', '%(revision)s')} AND {active_sql('b', '%(revision)s')}"
_IN_TREE = "b.tenant_id = %(tenant)s AND b.tree_id = %(tree)s"

# The tree's row counts those that never expire.
_SIZE_OF_ALL = f"""
size AS MATERIALIZED (
    SELECT n, greatest(length / greatest(n, 1), 1) AS mean FROM (
        SELECT (%(entries)s + count(*))::float AS n, (%(terms)s + coalesce(sum(b.words), 0))::float AS length
        FROM tree_block b WHERE {_IN_TREE} AND {_HOLDS_NOW} AND {expiring_sql("b")}
    ) AS kept
)
"""
_SAMPLE_OF_ALL = f"""
sample AS MATERIALIZED (
    SELECT b.id FROM tree_block b WHERE {_IN_TREE} AND {_HOLDS_NOW}
    ORDER BY b.created DESC, b.id DESC LIMIT {_SAMPLE}
)
"""
_CANDIDATES_OF_ALL = f"""
candidate AS MATERIALIZED (
    SELECT b.id, b.words, b.tsv FROM {SEARCHED} b
    WHERE {_IN_TREE} AND {_HOLDS_NOW} AND b.tsv @@ (SELECT any_of FROM asked)
)
"""
_PARTS = "v.tenant_id = %(tenant)s AND v.tree_id = %(tree)s AND v.model = %(model)s"
_SIMILARITY = "-(v.embedding <#> (SELECT meaning FROM question)) AS similarity"
# Of the nearest first, one after the other, whether it holds: most do. By its key without the tree, which a vector has
# in common with its block: the planner may take an index of the tree for as good as the key, and reads all of it each
# time.
_NEAREST_OF_ALL = f"""
nearest AS MATERIALIZED (
    SELECT block_id AS id, max(similarity) AS similarity, count(*) AS parts FROM (
        SELECT block_id, similarity FROM (
            SELECT v.block_id, {_SIMILARITY} FROM recall_vector v WHERE {_PARTS} {{order}}
        ) AS part
        CROSS JOIN LATERAL (
            SELECT FROM tree_block b
            WHERE b.tenant_id = %(tenant)s AND b.id = part.block_id AND {_HOLDS_NOW} OFFSET 0
        ) AS holding
        LIMIT {{most}}
    ) AS parts GROUP BY block_id
)
"""
_COMPARED = "ORDER BY similarity DESC, v.block_id DESC OFFSET 0"
# The limit lets the planner take the index; it is never reached while most entries hold.
_BY_INDEX = """
AND v.indexed = {dimensions}
ORDER BY v.embedding::halfvec({dimensions}) <#> (SELECT meaning FROM question) LIMIT {looked_at}
"""


def is_everything(now: Snapshot, wanted: EntryFilter) -> bool:
    return now.revision is None and now.access.prefix == "/" and wanted == EVERY_ACTIVE


def everything(now: Snapshot, *, dimensions: int | None = None, depth: int = 1) -> Candidates:
    """All that holds now, for one who sees the whole tree; the nearest by the index of vectors of so many dimensions,
    which may find fewer than there are, or without one.
    """
    tree = now.tree
    by_index = dimensions and _BY_INDEX.format(dimensions=dimensions, looked_at=4 * OF_EACH * depth)
    order = by_index or _COMPARED
    return Candidates(
        parts=[_SIZE_OF_ALL, _SAMPLE_OF_ALL],
        candidates=_CANDIDATES_OF_ALL,
        nearest=_NEAREST_OF_ALL.format(order=order, most=OF_EACH * depth),
        holds=_HOLDS_NOW,
        values=_owner(now) | {"entries": tree.entry_count, "terms": tree.term_count},
    )


_SIZE = (
    "size AS MATERIALIZED (SELECT count(*)::float AS n, greatest(avg(words), 1)::float AS mean FROM wanted)"
)
_NEWEST = f"sample AS MATERIALIZED (SELECT id FROM wanted ORDER BY created DESC, id DESC LIMIT {_SAMPLE})"
# The index holds the terms of live entries only. IS TRUE makes a hash table of what is wanted; as a join the planner,
# who knows no sizes here, goes through all of it for every row.
_CANDIDATES_NOW = f"""
candidate AS MATERIALIZED (
    SELECT b.id, b.words, b.tsv FROM {SEARCHED} b
    WHERE {_IN_TREE} AND b.kind = 'entry' AND {live_at_sql("b")} AND b.tsv @@ (SELECT any_of FROM asked)
      AND (b.id IN (SELECT id FROM wanted)) IS TRUE
)
"""
_CANDIDATES_THEN = """
candidate AS MATERIALIZED (
    SELECT b.id, b.words, b.tsv FROM wanted JOIN tree_block b ON b.tenant_id = %(tenant)s AND b.id = wanted.id
    WHERE b.tsv @@ (SELECT any_of FROM asked)
)
"""
NEAREST = f"""
nearest AS MATERIALIZED (
    SELECT id, max(similarity) AS similarity, count(*) AS parts FROM (
        SELECT wanted.id, {_SIMILARITY}
        FROM recall_vector v JOIN wanted ON wanted.id = v.block_id WHERE {_PARTS}
        ORDER BY similarity DESC, id DESC LIMIT {{most}}
    ) AS parts GROUP BY id
)
"""


def some(now: Snapshot, wanted: EntryFilter, *, depth: int = 1) -> Candidates:
    """What passes a filter, of what the access sees at a moment."""
    chosen, values = table_of(now, wanted)
    past = now.revision is not None
    return Candidates(
        parts=[chosen, _SIZE, _NEWEST],
        candidates=_CANDIDATES_THEN if past else _CANDIDATES_NOW,
        nearest=NEAREST.format(most=OF_EACH * depth),
        holds=_HELD_THEN if past else _HOLDS_NOW,
        values=values,
    )


def table_of(now: Snapshot, wanted: EntryFilter) -> tuple[str, dict[str, Any]]:
    """The entries that pass a filter as the table `wanted`, with how many terms each has; and its parameters."""
    entries = matching(now, wanted).order_by().annotate(words=RawSQL("tree_block.words", []))
    listed = entries.values_list("pk", "created", "words").query
    # Also where it is known that nothing passes, as of a revision without files, there has to be a statement.
    sql, parameters = listed.get_compiler(connection=connection, elide_empty=False).as_sql()
    numbers = count()
    named = re.sub("%s", lambda found: f"%(wanted_{next(numbers)})s", sql)
    values = {f"wanted_{number}": value for number, value in enumerate(parameters)}
    return (
        f"wanted AS MATERIALIZED (SELECT found.* FROM ({named}) AS found (id, created, words))",
        _owner(now) | values,
    )


def _owner(now: Snapshot) -> dict[str, Any]:
    tree = now.access.tree
    return {"tenant": tree.tenant_id, "tree": tree.pk, "at": now.at, "revision": now.revision}
