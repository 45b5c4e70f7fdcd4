"""Search that finds: the entries that answer a query, best first, each with what put it there."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from itertools import batched, chain
from uuid import UUID

from memsvc.contract.entries import Hit, HitsPage
from memsvc.contract.requests import Mode as Mode
from memsvc.format import Confidence, InvalidText, checked_text
from memsvc.format.terms import terms
from memsvc.format.text import folded
from memsvc.recall import fuzzy, vectors
from memsvc.recall.accesses import note_accesses
from memsvc.recall.embedding import embedder
from memsvc.recall.equality import outline, statement
from memsvc.recall.highlights import Highlighter
from memsvc.recall.hit_lines import hits_of
from memsvc.recall.ranking import DEPTHS, MAX_RANKED, Facts, QueryVector, rank
from memsvc.recall.temporal import asked_range
from memsvc.tree import statements
from memsvc.tree.access import Access
from memsvc.tree.cursors import after_rank, cursor_of_rank
from memsvc.tree.reads.entries import (
    EVERY_ACTIVE,
    MAX_FOUND,
    MAX_QUERY_BYTES,
    EntryFilter,
    read_blocks,
    search_entries,
)
from memsvc.tree.reads.substring import search_substring
from memsvc.tree.snapshot import Snapshot, snapshot

# What is added to a score, where the best entry's own terms make 1.
TAG_BOOST = 0.15
TITLE_BOOST = 0.15
TIME_BOOST = 0.6
RECENCY_WEIGHT = 0.3
HALF_LIFE_DAYS = 14.0
_CONFIDENCE: Mapping[str, float] = {Confidence.LOW: 0.95, Confidence.MEDIUM: 1.0, Confidence.HIGH: 1.02}
# How many bodies are held at once while they are compared.
_READ_AT_ONCE = 100
_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked. `recency` lets newer entries of equal worth come first; `zone` is where the asker's days begin."""

    text: str = ""
    mode: Mode = Mode.HYBRID
    wanted: EntryFilter = EVERY_ACTIVE
    recency: bool = False
    zone: tzinfo = UTC


@dataclass(slots=True)
class _Candidate:
    """What an entry's score is made of, beside the terms, before anything of it is read whole."""

    block_id: UUID
    score: float
    parts: dict[str, float]
    facts: Facts


@dataclass(frozen=True, slots=True)
class _Statement:
    """What one entry states, or several equal ones: the best of them, the one that is shown, the ids of the others."""

    best: _Candidate
    shown: UUID
    duplicates: tuple[str, ...]


def search(
    access: Access,
    query: Query,
    *,
    cursor: str | None = None,
    limit: int = 20,
    revision: int | None = None,
) -> HitsPage:
    """A page of the entries that answer a query; up to `limit` (1 to 1,000) of them, each of which counts as accessed.

    An empty query browses, newest first. The pages of one search are all of the revision that the first one saw. A
    ranking goes deeper as it is read on, so that a page may be short, or the last one empty: `next` tells.
    Raises `RevisionNotFound` and `InvalidText`.
    """
    page = search_uncounted(access, query, cursor=cursor, limit=limit, revision=revision)
    if query.text.strip() and revision is None:
        note_accesses(access, (hit.entry.entry_id for hit in page.items))
    return page


def search_uncounted(
    access: Access,
    query: Query,
    *,
    cursor: str | None = None,
    limit: int = 20,
    revision: int | None = None,
) -> HitsPage:
    """The same for who may show only some of the hits, and counts those."""
    text = checked_text(query.text, field="query", max_bytes=MAX_QUERY_BYTES)
    if not text.strip() or query.mode in (Mode.WORDS, Mode.SUBSTRING):
        find = search_substring if query.mode is Mode.SUBSTRING else search_entries
        page = find(access, text, query.wanted, cursor=cursor, limit=limit, revision=revision)
        mark = Highlighter(text)
        hits = [Hit.of(found, highlights=mark(found.entry.body)) for found in page.items]
        return HitsPage(hits, page.next)
    return _ranked(access, query, text, cursor=cursor, limit=max(1, min(limit, MAX_FOUND)), revision=revision)


def _ranked(
    access: Access, query: Query, text: str, *, cursor: str | None, limit: int, revision: int | None
) -> HitsPage:
    vector = None if query.mode is Mode.LEXICAL else query_vector(text)
    start, pinned = 0, revision
    if cursor:
        pinned, start, fingerprint = after_rank(cursor)
        if fingerprint != _fingerprint(query, text):
            raise InvalidText("cursor: this is not a `next` of the same search; start again without one")
    with snapshot(access, pinned) as now:
        tree = now.tree
        if now.revision == tree.revision:
            now = replace(now, revision=None)
        found: list[_Statement] = []
        ranked: set[UUID] = set()
        for depth in DEPTHS:
            candidates, ended = _candidates(now, query, text, vector, depth)
            # What stood on earlier pages stays where it was: at more depth scores are others.
            found += _folded(now, [each for each in candidates if each.block_id not in ranked])
            ranked.update(each.block_id for each in candidates)
            page = found[start : start + limit]
            # The first page costs what it costs, if it is a short one.
            if ended or len(found) > start + limit or (page and not start):
                break
        hits = _hits(now, page, text)
    seen = tree.revision if pinned is None else pinned
    more = len(found) > start + limit or not (ended or depth == DEPTHS[-1])
    following = cursor_of_rank(seen, start + len(page), _fingerprint(query, text)) if more else None
    return HitsPage(hits, following, truncated=not (more or ended))


def query_vector(text: str) -> QueryVector | None:
    """A query as numbers, by the model of the settings; None where there is none."""
    values = vectors.embed_query(text)
    model = embedder() if values is not None else None
    return QueryVector(model.name, values.tolist()) if model and values is not None else None


def _candidates(
    now: Snapshot, query: Query, text: str, vector: QueryVector | None, depth: int
) -> tuple[list[_Candidate], bool]:
    """The best at a depth, best first, and whether there is nothing more."""
    asked = None if query.mode is Mode.SEMANTIC and vector else terms(text, asked=True)
    ranking = rank(now, query.wanted, asked, vector, depth)
    found: dict[UUID, _Candidate] = {}
    for each in ranking.items:
        parts = {"bm25": each.bm25, "neighbours": each.neighbours}
        if each.similarity is not None:
            parts["similarity"] = each.similarity
        found[each.block_id] = _Candidate(each.block_id, each.score, parts, each.facts)
    ended = ranking.ended
    if asked is not None:
        respelt = fuzzy.like(now, query.wanted, asked, ranking, text, depth)
        ended = ended and len(respelt) < fuzzy.BEST_OF_EACH * depth
        for block_id, (likeness, facts) in respelt.items():
            candidate = found.setdefault(block_id, _Candidate(block_id, 0.0, {}, facts))
            candidate.score += likeness
            candidate.parts["spelling"] = likeness
    _boost(found.values(), query, text, now.at)
    # Of equal ones the newer comes first: ids grow with time.
    best = sorted(found.values(), key=lambda entry: (entry.score, entry.block_id), reverse=True)
    return best[: MAX_RANKED * depth], ended and len(best) <= MAX_RANKED * depth


def _boost(found: Iterable[_Candidate], query: Query, text: str, now: datetime) -> None:
    """Add what other facts than words and meaning say for an entry."""
    # Words without what stands around them.
    words = (word.strip("?!.,;:\"'“”‘’()").removesuffix("'s").removesuffix("’s") for word in text.split())
    asked = f" {folded(' '.join(words))} "
    about = asked_range(text, now.astimezone(query.zone))
    for candidate in found:
        facts = candidate.facts
        extra = {
            "tags": TAG_BOOST * min(2, sum(f" {tag} " in asked for tag in facts.tag_keys if tag)),
            "title": TITLE_BOOST * _is_title(facts.summary, asked),
            "time": TIME_BOOST * bool(about and facts.created and about.holds(facts.created)),
            "recency": RECENCY_WEIGHT * _recency(facts.created, now) if query.recency else 0.0,
        }
        candidate.parts |= {name: value for name, value in extra.items() if value}
        trust = _CONFIDENCE.get(facts.confidence, 1.0)
        candidate.parts["confidence"] = trust
        candidate.score = (candidate.score + sum(extra.values())) * trust


def _is_title(summary: str, asked: str) -> bool:
    if not 4 <= len(summary) <= len(asked) + 8 or folded(summary[:2]) not in asked:
        return False
    title = folded(summary).strip(" .…")
    return len(title) >= 4 and (f" {title} " in asked or asked.strip() == title)


def _recency(created: datetime | None, now: datetime) -> float:
    if created is None:
        return 0.0
    age = max(0.0, (now - created).total_seconds() / 86400)
    return float(0.5 ** (age / HALF_LIFE_DAYS))


def _folded(now: Snapshot, candidates: Sequence[_Candidate]) -> list[_Statement]:
    """The candidates in their order, those that are equal as one. Only of those that look alike bodies are read."""
    alike: dict[tuple[str, ...], list[UUID]] = {}
    for each in candidates:
        facts = each.facts
        key = (*outline(facts.category, facts.said, facts.summary), facts.beginning)
        alike.setdefault(key, []).append(each.block_id)
    stated: dict[UUID, tuple[bytes, str]] = {}
    for ids in batched(chain.from_iterable(ids for ids in alike.values() if len(ids) > 1), _READ_AT_ONCE):
        blocks = list(statements.read_entries(now.access.tree, ids).values())
        for block, found in zip(blocks, read_blocks(now, blocks), strict=True):
            stated[block.id] = (statement(found), found.entry.entry_id)
    equal: dict[bytes, list[_Candidate]] = {}
    for each in candidates:
        key_of_it = stated[each.block_id][0] if each.block_id in stated else each.block_id.bytes
        equal.setdefault(key_of_it, []).append(each)
    return [_one_of(members, stated) for members in equal.values()]


def _one_of(members: list[_Candidate], stated: Mapping[UUID, tuple[bytes, str]]) -> _Statement:
    """The newest of equal candidates, in the place of the best."""
    newest = sorted(members, key=lambda each: (each.facts.created or _EARLIEST, each.block_id), reverse=True)
    shown = newest[0].block_id
    # A file that was copied with its entries has them under the same ids.
    ids = dict.fromkeys(stated[each.block_id][1] for each in newest[1:])
    return _Statement(members[0], shown, tuple(entry_id for entry_id in ids if entry_id != stated[shown][1]))


def _hits(now: Snapshot, page: Sequence[_Statement], text: str) -> list[Hit]:
    blocks = statements.read_entries(now.access.tree, [each.shown for each in page])
    hits = hits_of(now, [blocks[each.shown] for each in page], text)
    return [
        replace(hit, score=each.best.score, parts=each.best.parts, duplicates=each.duplicates)
        for each, hit in zip(page, hits, strict=True)
    ]


def _fingerprint(query: Query, text: str) -> str:
    return hashlib.sha256(repr((text, query)).encode()).hexdigest()[:16]
