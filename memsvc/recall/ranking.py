"""The order of entries for a query, in one statement: BM25 over their terms, cosine over their vectors, neighbours.

All statistics are of the entries that this caller may see and that pass the filters, so that a ranking tells nothing
of others. Where the numbers come from is in docs/recall.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models.expressions import RawSQL

from memsvc.tree.models import BlockQuerySet
from memsvc.tree.reads.moment import Moment
from memsvc.tree.words import Terms
from tenants.rows import prepared

K1, B = 1.2, 0.75
# How much of the best similarity counts beside the best BM25, and of a neighbour's score beside the own one.
SIMILARITY_WEIGHT = 0.6
NEIGHBOUR_WEIGHT = 0.3
# From how many of the best their neighbours are looked at, and how many are answered.
_WITH_NEIGHBOURS = 100
MAX_RANKED = 200


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A query as numbers; it is compared with vectors of the same model only."""

    model: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Facts:
    """What else speaks for an entry or against it."""

    created: datetime | None
    confidence: str
    tag_keys: Sequence[str]
    summary: str


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


# A text whose lexemes are quoted is a tsquery as it stands: nothing in it is syntax.
_ASKED = """
term AS MATERIALIZED (
    SELECT lexeme, ('''' || replace(replace(lexeme, '\\', '\\\\'), '''', '''''') || '''')::tsquery AS query
    FROM unnest(tsvector_to_array(to_tsvector(%s::regconfig, %s) || array_to_tsvector(%s::text[]))) AS lexeme
),
asked AS MATERIALIZED (SELECT string_agg(query::text, ' | ')::tsquery AS any_of FROM term)
"""

# How often a text holds a term, without taking its vector apart, which costs ten times more. For one term of weight 1
# ts_rank is (1 + 1/4 + … + 1/n²) / (π²/6), and what that sum lacks of π²/6 is about 1 / (n + ½).
_TIMES = (
    "greatest(round(1 / greatest(1.644934 * (1 - ts_rank('{{1,1,1,1}}', b.tsv, term.query)), 1e-4) - 0.5), 1)"
)

# IS TRUE makes a hash table of what is wanted; as a join the planner, who knows no sizes here, goes through all of it
# for every row. MATERIALIZED, here and below: left to itself the planner counts the tree again for every hit.
_LEXICAL = f"""
size AS MATERIALIZED (SELECT count(*)::float AS n, greatest(avg(words), 1)::float AS mean FROM wanted),
hit AS MATERIALIZED (
    SELECT b.id, b.words, term.lexeme, {_TIMES}::float AS tf
    FROM {{candidates}} JOIN term ON b.tsv @@ term.query
    WHERE b.tsv @@ (SELECT any_of FROM asked)
),
rarity AS MATERIALIZED (SELECT lexeme, count(*)::float AS df FROM hit GROUP BY lexeme),
lexical AS MATERIALIZED (
    SELECT id, sum(
        ln(1 + (n - df + 0.5) / (df + 0.5)) * tf * {K1 + 1} / (tf + {K1} * ({1 - B} + {B} * words / mean))
    ) AS bm25
    FROM hit JOIN rarity USING (lexeme) CROSS JOIN size GROUP BY id
)
"""
# The index holds the terms of live entries only.
_LIVE = """
(SELECT id, words, tsv FROM tree_block
 WHERE tenant_id = %s AND tree_id = %s AND removed_in IS NULL AND kind = 'entry'
   AND (id IN (SELECT id FROM wanted)) IS TRUE) AS b
"""
_FORMER = "wanted JOIN tree_block b ON b.tenant_id = %s AND b.tree_id = %s AND b.id = wanted.id"

_UNFOUND = "(SELECT array_agg(lexeme) FROM term WHERE lexeme NOT IN (SELECT lexeme FROM rarity))"
_NOT_LEXICAL = "lexical AS (SELECT NULL::uuid AS id, NULL::float AS bm25 WHERE false)"

# An entry is as near as its nearest part.
MEANT = """
meant AS MATERIALIZED (
    SELECT wanted.id, max(1 - (v.embedding <=> %s::halfvec)) AS similarity
    FROM recall_vector v JOIN wanted ON wanted.id = v.block_id
    WHERE v.tenant_id = %s AND v.tree_id = %s AND v.model = %s
    GROUP BY wanted.id
)
"""
_NOT_MEANT = "meant AS (SELECT NULL::uuid AS id, NULL::float AS similarity WHERE false)"

_FUSED = f"""
best AS MATERIALIZED (
    SELECT (SELECT max(bm25) FROM lexical) AS bm25, max(similarity) AS similarity, avg(similarity) AS mean FROM meant
),
fused AS MATERIALIZED (
    SELECT id, lexical.bm25, meant.similarity,
        coalesce(lexical.bm25 / best.bm25, 0) + %s * CASE
            WHEN meant.similarity IS NULL OR meant.similarity <= 0 THEN 0
            WHEN best.similarity > best.mean
                THEN greatest(meant.similarity - best.mean, 0) / (best.similarity - best.mean)
            -- Of one entry, or of several that are equally near, none is below the best.
            ELSE 1
        END AS score
    FROM lexical FULL JOIN meant USING (id) CROSS JOIN best
),
top AS MATERIALIZED (
    SELECT b.id, b.file_id, b.position, score
    FROM (SELECT id, score FROM fused WHERE score > 0 ORDER BY score DESC, id DESC LIMIT {_WITH_NEIGHBOURS}) AS best_of
    JOIN tree_block b ON b.tenant_id = %s AND b.id = best_of.id
),
near AS MATERIALIZED (
    SELECT beside.id, sum(score) AS score
    FROM top CROSS JOIN LATERAL (
        (SELECT id FROM tree_block n
         WHERE n.tenant_id = %s AND n.file_id = top.file_id AND n.position < top.position AND {{entries}}
         ORDER BY position DESC LIMIT 1)
        UNION ALL
        (SELECT id FROM tree_block n
         WHERE n.tenant_id = %s AND n.file_id = top.file_id AND n.position > top.position AND {{entries}}
         ORDER BY position LIMIT 1)
    ) AS beside
    GROUP BY beside.id
)
SELECT ranked.*, {{unfound}}, b.created, b.confidence, b.tag_keys, b.summary
FROM (
    SELECT id, fused.score + {NEIGHBOUR_WEIGHT} * coalesce(near.score, 0) AS total,
           coalesce(fused.bm25, 0), fused.similarity, {NEIGHBOUR_WEIGHT} * coalesce(near.score, 0)
    FROM fused LEFT JOIN near USING (id)
    WHERE fused.score > 0
    ORDER BY total DESC, id DESC LIMIT {MAX_RANKED}
) AS ranked JOIN tree_block b ON b.tenant_id = %s AND b.id = ranked.id
ORDER BY total DESC, ranked.id DESC
"""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best entries, best first. `unfound` are terms of the query that no entry holds."""

    items: list[Ranked]
    unfound: list[str]


def rank(
    now: Moment, entries: BlockQuerySet, language: str, asked: Terms | None, vector: QueryVector | None
) -> Ranking:
    """The best of `entries`, at most `MAX_RANKED`: by words of a language, by meaning, or by both."""
    statement, parameters = _statement(now, entries, language, asked, vector)
    with prepared() as cursor:
        cursor.execute(statement, parameters)
        rows = cursor.fetchall()
    items = [
        Ranked(block_id, score, bm25, similarity, neighbours, Facts(*facts))
        for block_id, score, bm25, similarity, neighbours, _, *facts in rows
    ]
    return Ranking(items, (rows[0][5] or []) if rows else [])


def _statement(
    now: Moment, entries: BlockQuerySet, language: str, asked: Terms | None, vector: QueryVector | None
) -> tuple[str, list[Any]]:
    tree = now.access.tree
    owner = [tree.tenant_id, tree.pk]
    wanted, parameters = wanted_entries(entries)
    parts = [wanted]
    if asked is None:
        parts.append(_NOT_LEXICAL)
    else:
        parts += [_ASKED, _LEXICAL.format(candidates=_LIVE if now.revision is None else _FORMER)]
        parameters += [language, asked.words, asked.exact, *owner]
    if vector is None:
        parts.append(_NOT_MEANT)
    else:
        parts.append(MEANT)
        parameters += [as_halfvec(vector.values), *owner, vector.model]
    standing, numbers = _standing(now)
    parts.append(_FUSED.format(entries=standing, unfound="NULL::text[]" if asked is None else _UNFOUND))
    parameters += [SIMILARITY_WEIGHT, tree.tenant_id, *([tree.tenant_id, *numbers] * 2), tree.tenant_id]
    return "WITH " + ",\n".join(parts), parameters


def wanted_entries(entries: BlockQuerySet) -> tuple[str, list[Any]]:
    """The entries to choose from, and how many terms each has, as the table `wanted`; and its parameters."""
    counted = entries.order_by().annotate(terms_in_it=RawSQL("tree_block.words", []))
    found = counted.values_list("pk", "terms_in_it")
    sql, parameters = found.query.sql_with_params()
    return f"wanted AS MATERIALIZED (SELECT found.* FROM ({sql}) AS found (id, words))", list(parameters)


def _standing(now: Moment) -> tuple[str, list[Any]]:
    """Which entries count as neighbours: not those between which nobody sees, or that hold no longer."""
    seen = "n.kind = 'entry' AND (n.expires_at IS NULL OR n.expires_at > %s)"
    if now.revision is None:
        return f"{seen} AND n.removed_in IS NULL AND n.superseded_by = ''", [now.at]
    standing = "n.added_in <= %s AND (n.removed_in IS NULL OR n.removed_in > %s)"
    holding = "(n.superseded_by = '' OR n.superseded_in > %s)"
    return f"{seen} AND {standing} AND {holding}", [now.at, *[now.revision] * 3]


def as_halfvec(values: Sequence[float]) -> str:
    """A vector as Postgres reads it; six digits tell any two numbers of half precision apart."""
    return "[" + ",".join(f"{value:.6g}" for value in values) + "]"
