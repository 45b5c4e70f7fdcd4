"""Ranked search, by words and by meaning, against the peer's substring search on disk."""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import accumulate, product

from deep_memory_agent import MemoryStore, build_memory_backend
from django.db import connection

from benchmarks.measure import Figure, cpu_of_call, ratio_of
from benchmarks.samples import entries, peer_folder
from memsvc.format import render_document
from memsvc.recall.embedding import embedder
from memsvc.recall.search import Query, search
from memsvc.testing import fresh_tree
from memsvc.tree import services
from memsvc.tree.access import Access
from tenants.actors import SYSTEM

_IN_A_FILE = 5_000
_WORDS_OF_AN_ENTRY = 30
_STOP_WORDS = 50

# Entries; milliseconds of CPU that a search may take; how many times faster than the peer it must be.
_BARS = {1_000: (15.0, 50.0), 10_000: (40.0, 500.0), 100_000: (120.0, None)}


def run() -> Iterator[Figure]:
    for size, (most, times) in _BARS.items():
        access = _tree(size)
        _give_vectors(access)
        ours = _cpu(access, size)
        yield Figure(
            f"hybrid search among {size:,} entries",
            f"{ours:.1f} ms CPU",
            bar=f"≤ {most:g} ms",
            held=ours <= most,
        )
        if times is not None:
            yield ratio_of("  and the peer's search", ours, _peer(size), at_least=times)


def _cpu(access: Access, size: int) -> float:
    return cpu_of_call(lambda i: search(access, Query(text=_question(i % size)), limit=10), times=20)


def _tree(size: int) -> Access:
    """A tree with entries whose words are as unevenly spread as those of a language."""
    access = Access(fresh_tree(), SYSTEM)
    made = entries(size)
    for start in range(0, size, _IN_A_FILE):
        some = [
            replace(entry, body=_body(number), summary=f"Note {number}")
            for number, entry in enumerate(made[start : start + _IN_A_FILE], start)
        ]
        services.write_file(access, f"/memory/notes-{start}.md", render_document("# Notes", some))
    return access


def _body(number: int) -> str:
    return " ".join(_words(number)) + "."


def _question(number: int) -> str:
    return "What about " + " ".join(_words(number)[:6]) + "?"


def _words(number: int) -> list[str]:
    words, weights = _vocabulary()
    return random.Random(number).choices(words, cum_weights=weights, k=_WORDS_OF_AN_ENTRY)


@cache
def _vocabulary() -> tuple[list[str], list[float]]:
    """17,576 words, ever rarer, as those of a language are below its stop words."""
    syllables = [a + b for a, b in product("bdfgklmnprstv", "ae")]
    words = ["".join(each) for each in product(syllables, repeat=3)]
    return words, list(accumulate(1 / (rank + _STOP_WORDS) for rank in range(1, len(words) + 1)))


def _peer(size: int) -> float:
    with peer_folder(size) as folder:
        store = MemoryStore(build_memory_backend(folder, for_deep_agent=False))
        return cpu_of_call(lambda i: store.search(f"ref-{i:05d}"), times=1, rounds=1 if size > 1_000 else 3)


def _give_vectors(access: Access) -> None:
    """Vectors of the model's size in any direction: what they mean makes no difference to what they cost."""
    model = embedder()
    assert model is not None
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO recall_vector (id, tenant_id, tree_id, block_id, part, model, embedding)
            SELECT uuidv7(), b.tenant_id, b.tree_id, b.id, 0, %s, (
                SELECT array_agg(random() - 0.5 + 0 * (n + b.position))::real[] FROM generate_series(1, %s) n
            )::vector::halfvec
            FROM tree_block b WHERE b.tenant_id = %s AND b.tree_id = %s AND b.kind = 'entry'
            """,
            [model.name, model.dimensions, access.tree.tenant_id, access.tree.pk],
        )
        cursor.execute("ANALYZE recall_vector, tree_block")
