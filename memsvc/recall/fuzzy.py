"""Words that no entry holds as they are written: misspelt, cut short, or inside a longer word."""

from dataclasses import fields
from uuid import UUID

from django.contrib.postgres.search import TrigramWordSimilarity
from django.db import connection
from django.db.models.expressions import RawSQL

from memsvc.format.terms import Terms
from memsvc.format.text import folded
from memsvc.recall.ranking import BEGINNING, Facts, Ranking
from memsvc.tree.reads.entries import EntryFilter, matching
from memsvc.tree.snapshot import Snapshot

# Shorter words are like too many others.
_SHORTEST = 4
_MOST_WORDS = 6
_LIKENESS = 0.5
BEST_OF_EACH = 50
_FACTS = [each.name for each in fields(Facts)]
# What the whole of a query's words, found in another spelling, comes to beside 1 for the best found as written.
WEIGHT = 0.7


def like(
    now: Snapshot, wanted: EntryFilter, asked: Terms, ranking: Ranking, text: str, depth: int = 1
) -> dict[UUID, tuple[float, Facts]]:
    """What entries hold of the words that none holds as written, between 0 and `WEIGHT`.

    Of each word, `BEST_OF_EACH` entries for each step of `depth`.
    Where a query has no terms at all, as one of stop words or signs only, entries that hold it as it stands.
    """
    words = list(dict.fromkeys(asked.words.split()))
    found_some = any(each.bm25 for each in ranking.items)
    # How words begin that no entry holds: their terms are stems.
    unfound = tuple(term[: max(_SHORTEST, len(term) - 1)] for term in ranking.unfound if term[0] not in "=~!")
    missing = [
        word for word in words if len(word) >= _SHORTEST and (not found_some or word.startswith(unfound))
    ]
    if found_some and not missing:
        return {}
    beginning = RawSQL(BEGINNING.format(block="tree_block"), [])
    entries = matching(now, wanted).annotate(beginning=beginning)
    # The likeness of words is found out before the filter is looked at: in vain, where that admits nothing.
    if not found_some and not entries.exists():
        return {}
    if missing:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL pg_trgm.word_similarity_threshold = %s", [_LIKENESS])
    most = BEST_OF_EACH * depth
    found: dict[UUID, tuple[float, Facts]] = {}
    for word in missing[:_MOST_WORDS]:
        near = entries.filter(search_text__trigram_word_similar=word)
        alike = near.annotate(alike=TrigramWordSimilarity(word, "search_text"))
        best = alike.order_by("-alike", "-created", "-pk")
        for block_id, likeness, *facts in best.values_list("pk", "alike", *_FACTS)[:most]:
            before = found[block_id][0] if block_id in found else 0.0
            found[block_id] = (before + WEIGHT * float(likeness) / len(words), Facts(*facts))
    if not found and not found_some:
        as_it_stands = entries.order_by("-created", "-pk").filter(search_text__contains=folded(text))
        for block_id, *facts in as_it_stands.values_list("pk", *_FACTS)[:most]:
            found[block_id] = (WEIGHT, Facts(*facts))
    return found
