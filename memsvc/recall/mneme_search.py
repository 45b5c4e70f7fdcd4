"""Search with Mneme's ranking: over the vectors that the model of the settings has made, and without any words."""

from dataclasses import replace
from uuid import UUID

from django.conf import settings

from memsvc.contract.entries import Hit, HitsPage
from memsvc.contract.errors import ErrorCode
from memsvc.database.rows import prepared
from memsvc.format import (
    CATEGORY_KIND,
    CONFIDENCE_NUMBERS,
    Confidence,
    InvalidText,
    MemoryCategory,
    checked_text,
)
from memsvc.recall.accesses import note_accesses
from memsvc.recall.candidates import NEAREST, QUESTION, table_of
from memsvc.recall.embedding import NONE
from memsvc.recall.hit_lines import hits_of
from memsvc.recall.mneme import CANDIDATES_FOR_EACH, Candidate, Scored, Scoring, retrieve
from memsvc.recall.ranking import QueryVector, as_halfvec
from memsvc.recall.search import query_vector
from memsvc.tree import statements
from memsvc.tree.access import Access
from memsvc.tree.errors import Conflict, Unavailable
from memsvc.tree.reads.entries import (
    EVERY_ACTIVE,
    MAX_FOUND,
    MAX_QUERY_BYTES,
    EntryFilter,
)
from memsvc.tree.snapshot import Snapshot, snapshot


class NoEmbedder(Conflict):
    """Something needs vectors, and this server makes none."""

    code = ErrorCode.NO_EMBEDDER


def search_as_mneme(
    access: Access,
    query: str,
    *,
    wanted: EntryFilter = EVERY_ACTIVE,
    scoring: Scoring | None = None,
    limit: int = 20,
    revision: int | None = None,
) -> HitsPage:
    """The best `limit` (1 to 1,000) of the entries that pass the filter, by Mneme's formula; one page of them.

    Entries whose vectors are not made yet are not found. Raises `NoEmbedder`, `Unavailable` when the model can't
    answer, `InvalidText` (an empty query too) and `RevisionNotFound`.
    """
    text = checked_text(query, field="query", max_bytes=MAX_QUERY_BYTES)
    if not text.strip():
        raise InvalidText("query must not be empty for Mneme's scoring; say what to look for")
    vector = query_vector(text)
    if vector is None:
        raise NoEmbedder if settings.EMBEDDER == NONE else Unavailable
    limit = max(1, min(limit, MAX_FOUND))
    with snapshot(access, revision) as now:
        nearest = _nearest(now, wanted, vector, CANDIDATES_FOR_EACH * limit)
        scored = retrieve(nearest, k=limit, scoring=scoring or Scoring(), now=now.at)
        hits = _hits(now, scored, text)
    if revision is None:
        # A score of 0 says that an entry has nothing to do with the query.
        note_accesses(access, (hit.entry.entry_id for hit in hits if hit.score))
    return HitsPage(hits, next=None)


_NEAREST = f"""
WITH {{wanted}}, {QUESTION}, {NEAREST.format(most="%(most)s")}
SELECT b.id, nearest.similarity, b.category, b.created, b.confidence
FROM nearest JOIN tree_block b ON b.tenant_id = %(tenant)s AND b.tree_id = %(tree)s AND b.id = nearest.id
ORDER BY nearest.similarity DESC, b.created DESC, b.id DESC
"""


def _nearest(now: Snapshot, wanted: EntryFilter, vector: QueryVector, most: int) -> list[Candidate[UUID]]:
    table, values = table_of(now, wanted)
    values |= {"meaning": as_halfvec(vector.values), "model": vector.model, "most": most}
    with prepared() as cursor:
        cursor.execute(_NEAREST.format(wanted=table), values)
        return [
            Candidate(
                key=block_id,
                similarity=similarity,
                kind=CATEGORY_KIND[MemoryCategory(category)],
                created=created,
                confidence=CONFIDENCE_NUMBERS[Confidence(confidence)],
            )
            for block_id, similarity, category, created, confidence in cursor.fetchall()
        ]


def _hits(now: Snapshot, scored: list[Scored[UUID]], text: str) -> list[Hit]:
    found = statements.read_entries(now.access.tree, [each.key for each in scored])
    hits = hits_of(now, [found[each.key] for each in scored], text)
    return [
        replace(
            hit,
            score=each.score,
            parts={
                "similarity": each.similarity,
                "recency": each.recency,
                "authority": each.authority,
                "confidence": each.confidence,
            },
        )
        for each, hit in zip(scored, hits, strict=True)
    ]
