"""Ranked search, by words and by meaning, against the search of the peers."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate, product

from deep_memory_agent import MemoryStore, build_memory_backend
from django.db import connection
from mneme import InMemoryBackend, MemoryManager, SemanticFact

from benchmarks.bulk import give_vectors
from benchmarks.measure import Figure, cpu_of_call, ratio_of
from benchmarks.samples import entries, our_tree, peer_folder
from memsvc import agents
from memsvc.database.rights import OWNER, connected_as
from memsvc.format import render_document
from memsvc.recall import ann_index
from memsvc.recall.embedding import Embedder, embedder
from memsvc.recall.models import Vector
from memsvc.recall.search import Mode, Query, search
from memsvc.recall.vectors import embed_tree
from memsvc.testing import fresh_tree
from memsvc.tree import services
from memsvc.tree.access import Access
from memsvc.tree.models import Tree
from tenants.actors import SYSTEM

_IN_A_FILE = 5_000
_EMBEDDED = 1_000
_WORDS_OF_AN_ENTRY = 30
_STOP_WORDS = 50

# Entries; milliseconds of CPU that a search may take; how many times faster than the peer's it must be.
_BARS = {1_000: (15.0, 50.0), 10_000: (40.0, 500.0), 100_000: (120.0, None)}


def run() -> Iterator[Figure]:
    for size, (most, times) in _BARS.items():
        access = _tree(size)
        _give_vectors(access)
        ours = _cpu(access, Mode.HYBRID, size)
        yield Figure(
            f"hybrid search among {size:,} entries",
            f"{ours:.1f} ms CPU",
            bar=f"≤ {most:g} ms",
            held=ours <= most,
        )
        by_words = _cpu(access, Mode.LEXICAL, size)
        yield Figure("  by words alone", f"{by_words:.1f} ms CPU")
        if times is not None:
            scan, vectors = _deep_memory_agent(size), _mneme(access, size)
            yield ratio_of("  hybrid, and Mneme's retrieve", ours, vectors)
            yield ratio_of("  hybrid, and deep-memory-agent's search", ours, scan)
            yield ratio_of("  MemoryStore.search, ours and its", _our_store(size), scan, at_least=times)


def _cpu(access: Access, mode: Mode, size: int) -> float:
    def act(i: int) -> object:
        return search(access, Query(text=_question(i % size), mode=mode), limit=10)

    for i in range(10):
        act(size - 1 - i)
    return cpu_of_call(act, times=20)


def _our_store(size: int) -> float:
    store = agents.MemoryStore(agents.PostgresBackend(our_tree(size).tree))
    for i in range(10):
        store.search(_reference(500 + i))
    return cpu_of_call(lambda i: store.search(_reference(i)), times=20)


def _reference(i: int) -> str:
    return f"ref-{i:05d}"


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


def _deep_memory_agent(size: int) -> float:
    with peer_folder(size) as folder:
        store = MemoryStore(build_memory_backend(folder, for_deep_agent=False))
        return cpu_of_call(lambda i: store.search(_reference(i)), times=1, rounds=3)


def _mneme(access: Access, size: int) -> float:
    """Its own store in memory, with the vectors and the model that our tree has."""
    model = embedder()
    assert model is not None
    backend = InMemoryBackend()
    for vector in _vectors(access):
        backend.upsert(
            SemanticFact(agent_id="agent", content=str(vector.block_id), embedding=vector.embedding)
        )
    manager = MemoryManager(agent_id="agent", backend=backend, embedder=_AsItsOwn(model))
    return cpu_of_call(lambda i: manager.retrieve(_question(i % size), k=10), times=1, rounds=3)


@connected_as(OWNER)
def _vectors(access: Access) -> list[Vector]:
    return list(Vector.objects.filter(tree=access.tree))


class _AsItsOwn:
    """A model of ours as Mneme wants it."""

    def __init__(self, model: Embedder) -> None:
        self._model = model
        self.dimensions = model.dimensions

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[float(value) for value in row] for row in self._model.embed(texts)]


@connected_as(OWNER)
def _give_vectors(access: Access) -> None:
    """Some vectors by the model, and for all other entries what lies between two of those."""
    model = embedder()
    assert model is not None
    embed_tree(access.tree, limit=_EMBEDDED)
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
    give_vectors(access.tree)
    if ann_index.is_for(access.tree, model):
        enter_index(access.tree, model)


@connected_as(OWNER)
def enter_index(tree: Tree, model: Embedder) -> None:
    """As the worker does it, but all at once, which is faster than one by one."""
    with connection.cursor() as cursor:
        cursor.execute("SET maintenance_work_mem = '512MB'")
        cursor.execute(f"DROP INDEX {ann_index.index_name(model.dimensions)}")
        cursor.execute(
            "UPDATE recall_vector SET indexed = %s WHERE tree_id = %s", [model.dimensions, tree.pk]
        )
        cursor.execute("UPDATE recall_embeddedtree SET indexed = true WHERE tree_id = %s", [tree.pk])
        ann_index.make_index(model.dimensions)
        cursor.execute("VACUUM ANALYZE recall_vector")
