"""Appending an entry costs the same in a file of 100 or of 10,000; the peer rewrites the file."""

import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from deep_memory_agent import MemoryCategory as PeerCategory
from deep_memory_agent import MemoryStore, build_memory_backend

from benchmarks.measure import Figure, checkpoint, cpu_of_call, ratio_of, wal_bytes
from benchmarks.samples import body, draft, our_tree, peer_folder
from benchmarks.server import server_with
from memsvc.client import MemsvcClient
from memsvc.format import MemoryCategory
from memsvc.tree import services
from memsvc.tree.access import Access

SIZES = (100, 1_000, 10_000)
EMBEDDERS = ("none", "minilm")
_TIMES = 40
_ROUNDS, _A_ROUND = 20, 50


def run() -> Iterator[Figure]:
    costs = {}
    for size in SIZES:
        access = our_tree(size)
        # The first touch of a page after a checkpoint writes the whole page to the WAL.
        checkpoint()
        for i in range(20):
            services.add_entry(access, draft(size + i))
        with wal_bytes() as written:
            costs[size] = _our_cost(access)
        per_append = written[0] / (_TIMES * 5)
        with peer_folder(size) as folder:
            peer = _peer_cost(folder)
            rewritten = (Path(folder) / "semantic_memory/facts.md").stat().st_size
        yield ratio_of(f"append to {size:,} entries", costs[size], peer)
        yield Figure(
            f"append to {size:,} entries: bytes written",
            f"{per_append / 1000:.1f} kB of WAL",
            f"{rewritten / 1000:.0f} kB of file",
            f"{rewritten / per_append:.1f}×",
            "≤ 16 kB",
            per_append <= 16_000,
        )
    growth = costs[10_000] / costs[100]
    yield Figure("append, CPU at 10,000 ÷ at 100", f"{growth:.2f}", bar="≤ 1.5", held=growth <= 1.5)
    yield from _with_embeddings()


def _with_embeddings() -> Iterator[Figure]:
    """Vectors are made by the worker: whether there is a model is nothing to a write, over HTTP as agents make it."""
    costs: dict[str, list[float]] = {embedder: [] for embedder in EMBEDDERS}
    with ExitStack() as servers:
        sides = {
            embedder: servers.enter_context(server_with(our_tree(1_000).tree, MEMSVC_EMBEDDER=embedder))
            for embedder in EMBEDDERS
        }
        # In turn, each with 1,000 appends; the first of each side only warm it up.
        for number in range(_ROUNDS + 1):
            for embedder, (client, pids) in sides.items():
                add = partial(_add, client, number * _A_ROUND)
                costs[embedder].append(cpu_of_call(add, times=_A_ROUND, rounds=1, servers=pids))
    without, with_model = (statistics.median(costs[embedder][1:]) for embedder in EMBEDDERS)
    for name, cost in (("without a model", without), ("with embeddings on", with_model)):
        yield Figure(f"append over HTTP {name}", f"{cost:.2f} ms CPU")
    times = with_model / without
    yield Figure("append, CPU with embeddings ÷ without", f"{times:.2f}", bar="≤ 1.1", held=times <= 1.1)


def _add(client: MemsvcClient, start: int, i: int) -> object:
    return client.add_entry(MemoryCategory.FACTS, body(start + i), summary="Observation")


def _our_cost(access: Access) -> float:
    return cpu_of_call(lambda i: services.add_entry(access, draft(i)), times=_TIMES)


def _peer_cost(folder: Path) -> float:
    store = MemoryStore(build_memory_backend(folder, for_deep_agent=False))
    return cpu_of_call(
        lambda i: store.write(PeerCategory.FACTS, body(i), summary="Observation"), times=3, rounds=3
    )
