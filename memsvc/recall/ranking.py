"""The order of entries for a query, in one statement: BM25 over their terms, cosine over their vectors, neighbours.

All statistics are of the entries that this caller may see and that pass the filters, so that a ranking tells nothing
of others. Where the numbers come from is in docs/recall.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memsvc.database.rows import prepared
from memsvc.format.terms import Terms
from memsvc.recall import ann_index, candidates
from memsvc.recall.candidates import OF_EACH, Candidates
from memsvc.tree.reads.entries import EntryFilter
from memsvc.tree.snapshot import Snapshot

K1, B = 1.2, 0.75
# How much of the best similarity counts beside the best BM25, and of a neighbour's score beside the own one.
SIMILARITY_WEIGHT = 0.6
NEIGHBOUR_WEIGHT = 0.3
# From how many of the best their neighbours are looked at.
_WITH_NEIGHBOURS = 100
# How many are answered, so many for each step of depth; and how deep a ranking can go.
MAX_RANKED = 200
DEPTHS = (1, 10, 50)
# Entries from which on a tree's statements are planned for itself, which costs milliseconds.
_OWN_PLAN = 5_000


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A query as numbers; it is compared with vectors of the same model only."""

    model: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Facts:
    """What else speaks for an entry or against it. `beginning` is how its body begins, as it is searched."""

    created: datetime | None
    confidence: str
    tag_keys: Sequence[str]
    summary: str
    category: str
    beginning: str
    claimed: datetime | None

    @property
    def said(self) -> datetime | None:
        """When an entry says that it was made; `created` is by what it is ordered."""
        return self.claimed or self.created


@dataclass(frozen=True, slots=True)
class Ranked:
    """An entry's place: `score` is what `bm25` and `similarity` come to, each against the best, and the neighbours.

    `bm25` is 0 where no term is found, `similarity` None where there is no vector.
    """

    block_id: UUID
    score: float
    bm25: float
    similarity: float | None
    neighbours: float
    facts: Facts


# What is searched are the summary, where there is one, and the body, each in one line; of a long text its first bytes
# are read only.
BEGINNING = "left(split_part(left({block}.search_text, 400), chr(10), 2 - ({block}.summary = '')::int), 100)"

# A text whose lexemes are quoted is a tsquery as it stands: nothing in it is syntax.
_ASKED = """
term AS MATERIALIZED (
    SELECT lexeme, ('''' || replace(replace(lexeme, '\\', '\\\\'), '''', '''''') || '''')::tsquery AS query
    FROM unnest(tsvector_to_array(
        to_tsvector(%(language)s::regconfig, %(words)s) || array_to_tsvector(%(exact)s::text[])
    )) AS lexeme
),
asked AS MATERIALIZED (SELECT string_agg(query::text, ' | ')::tsquery AS any_of FROM term)
"""

# How often a text holds a term, without taking its vector apart, which costs ten times more. For one term of weight 1
# ts_rank is (1 + 1/4 + … + 1/n²) / (π²/6), and what that sum lacks of π²/6 is about 1 / (n + ½). Its braces are doubled
# for what is formatted below.
_TIMES = (
    "greatest(round(1 / greatest(1.644934 * (1 - ts_rank('{{1,1,1,1}}', tsv, term.query)), 1e-4) - 0.5), 1)"
)

# MATERIALIZED, here and below: left to itself the planner counts anew for every hit.
_LEXICAL = f"""
hit AS MATERIALIZED (
    SELECT id, words, term.lexeme, {_TIMES}::float AS tf FROM candidate JOIN term ON tsv @@ term.query
),
rarity AS MATERIALIZED (SELECT lexeme, count(*)::float AS df FROM hit GROUP BY lexeme),
lexical AS MATERIALIZED (
    SELECT id, sum(
        ln(1 + (n - df + 0.5) / (df + 0.5)) * tf * {K1 + 1} / (tf + {K1} * ({1 - B} + {B} * words / mean))
    ) AS bm25
    FROM hit JOIN rarity USING (lexeme) CROSS JOIN size
    GROUP BY id ORDER BY bm25 DESC, id DESC LIMIT {{of_each}}
)
"""
_UNFOUND = "(SELECT array_agg(lexeme) FROM term WHERE lexeme NOT IN (SELECT lexeme FROM rarity))"
_NOT_LEXICAL = "lexical AS (SELECT NULL::uuid AS id, NULL::float AS bm25 WHERE false)"

# The nearest, and what was found by words. An entry is as near as its nearest part.
_SIMILARITY_OF = """
(SELECT max(-(v.embedding <#> (SELECT meaning FROM question))) FROM recall_vector v
 WHERE v.tenant_id = %(tenant)s AND v.tree_id = %(tree)s AND v.block_id = {id} AND v.model = %(model)s)
"""
_MEANT = f"""
meant AS MATERIALIZED (
    SELECT id, similarity FROM nearest
    UNION ALL
    SELECT id, {_SIMILARITY_OF.format(id="lexical.id")} FROM lexical WHERE id NOT IN (SELECT id FROM nearest)
),
usual AS MATERIALIZED (SELECT avg({_SIMILARITY_OF.format(id="sample.id")}) AS similarity FROM sample)
"""
_NOT_MEANT = """
meant AS (SELECT NULL::uuid AS id, NULL::float AS similarity WHERE false),
usual AS (SELECT NULL::float AS similarity)
"""

_FUSED = f"""
best AS MATERIALIZED (
    SELECT (SELECT max(bm25) FROM lexical) AS bm25, (SELECT max(similarity) FROM meant) AS similarity,
           (SELECT similarity FROM usual) AS usual
),
fused AS MATERIALIZED (
    SELECT id, lexical.bm25, meant.similarity,
        coalesce(lexical.bm25 / best.bm25, 0) + {SIMILARITY_WEIGHT} * CASE
            WHEN meant.similarity IS NULL OR meant.similarity <= 0 THEN 0
            WHEN best.similarity > best.usual
                THEN greatest(meant.similarity - best.usual, 0) / (best.similarity - best.usual)
            -- Of one entry, or of several that are equally near, none is below the best.
            ELSE 1
        END AS score
    FROM lexical FULL JOIN meant USING (id) CROSS JOIN best
),
top AS MATERIALIZED (
    SELECT b.id, b.file_id, b.position, score
    FROM (SELECT id, score FROM fused WHERE score > 0 ORDER BY score DESC, id DESC LIMIT {_WITH_NEIGHBOURS}) AS best_of
    JOIN tree_block b ON b.tenant_id = %(tenant)s AND b.id = best_of.id
),
near AS MATERIALIZED (
    SELECT beside.id, sum(score) AS score
    FROM top CROSS JOIN LATERAL (
        (SELECT id FROM tree_block b
         WHERE b.tenant_id = %(tenant)s AND b.file_id = top.file_id AND b.position < top.position AND {{holds}}
         ORDER BY position DESC LIMIT 1)
        UNION ALL
        (SELECT id FROM tree_block b
         WHERE b.tenant_id = %(tenant)s AND b.file_id = top.file_id AND b.position > top.position AND {{holds}}
         ORDER BY position LIMIT 1)
    ) AS beside
    GROUP BY beside.id
)
SELECT ranked.*, {{unfound}}, {{nearest}}, b.created, b.confidence, b.tag_keys, b.summary, b.category,
       {BEGINNING.format(block="b")}, b.claimed
FROM (
    -- Grouped and not joined: the planner, who knows no sizes here, would go through all neighbours for every row.
    SELECT id, sum(score + beside) AS total, coalesce(max(bm25), 0), max(similarity), sum(beside)
    FROM (
        SELECT id, score, bm25, similarity, 0 AS beside FROM fused WHERE score > 0
        UNION ALL
        SELECT id, 0, NULL, NULL, {NEIGHBOUR_WEIGHT} * score FROM near
    ) AS shares
    GROUP BY id HAVING max(score) > 0 ORDER BY total DESC, id DESC LIMIT {{ranked}}
) AS ranked JOIN tree_block b ON b.tenant_id = %(tenant)s AND b.id = ranked.id
ORDER BY total DESC, ranked.id DESC
"""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best entries, best first. `unfound` are terms of the query that no entry holds.

    `nearest` counts the parts of entries that were found by their meaning. `ended` says that at more depth there is
    nothing more.
    """

    items: list[Ranked]
    unfound: list[str]
    nearest: int
    ended: bool


def rank(
    now: Snapshot, wanted: EntryFilter, asked: Terms | None, vector: QueryVector | None, depth: int = 1
) -> Ranking:
    """The best of the entries that are wanted, at most `MAX_RANKED` for each step of `depth`: by words, by meaning, or
    by both.
    """
    if not candidates.is_everything(now, wanted):
        return _ranked(now, candidates.some(now, wanted, depth=depth), asked, vector, depth)
    if vector and depth == 1 and ann_index.use(now.tree, vector.model):
        # An index that is shared can end before it has found enough of one tree.
        found = _ranked(now, candidates.everything(now, dimensions=len(vector.values)), asked, vector, depth)
        if found.nearest >= OF_EACH:
            return found
    return _ranked(now, candidates.everything(now, depth=depth), asked, vector, depth)


def _ranked(
    now: Snapshot, chosen: Candidates, asked: Terms | None, vector: QueryVector | None, depth: int
) -> Ranking:
    statement, values = _statement(now, chosen, asked, vector, depth)
    # A plan that is kept is one for trees of the usual size, and would go through all of a large one.
    with connection.cursor() if now.tree.entry_count >= _OWN_PLAN else prepared() as cursor:
        cursor.execute(statement, values)
        rows = cursor.fetchall()
    items = [
        Ranked(block_id, score, bm25, similarity, neighbours, Facts(*facts))
        for block_id, score, bm25, similarity, neighbours, _, _, *facts in rows
    ]
    unfound, nearest = rows[0][5:7] if rows else (None, None)
    # More are found by words than are answered.
    ended = len(items) < MAX_RANKED * depth and (nearest or 0) < OF_EACH * depth
    return Ranking(items, unfound or [], nearest or 0, ended)


def _statement(
    now: Snapshot, chosen: Candidates, asked: Terms | None, vector: QueryVector | None, depth: int
) -> tuple[str, dict[str, Any]]:
    parts, values = [*chosen.parts], chosen.values
    if asked is None:
        parts.append(_NOT_LEXICAL)
    else:
        parts += [_ASKED, chosen.candidates, _LEXICAL.format(of_each=OF_EACH * depth)]
        values |= {"language": now.tree.language, "words": asked.words, "exact": asked.exact}
    if vector is None:
        parts.append(_NOT_MEANT)
    else:
        parts += [candidates.QUESTION, chosen.nearest, _MEANT]
        values |= {"meaning": as_halfvec(vector.values), "model": vector.model}
    unfound = "NULL::text[]" if asked is None else _UNFOUND
    nearest = "NULL::int" if vector is None else "(SELECT sum(parts)::int FROM nearest)"
    ranked = MAX_RANKED * depth
    parts.append(_FUSED.format(holds=chosen.holds, unfound=unfound, nearest=nearest, ranked=ranked))
    return "WITH " + ",\n".join(parts), values


def as_halfvec(values: Sequence[float]) -> str:
    """A vector as Postgres reads it; six digits tell any two numbers of half precision apart."""
    return "[" + ",".join(f"{value:.6g}" for value in values) + "]"
