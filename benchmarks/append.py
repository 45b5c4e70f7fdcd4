"""Appending an entry costs the same in a file of 100 or of 10,000; the peer rewrites the file."""

from collections.abc import Iterator
from pathlib import Path

from deep_memory_agent import MemoryCategory as PeerCategory
from deep_memory_agent import MemoryStore, build_memory_backend

from benchmarks.measure import Figure, checkpoint, cpu_of_call, ratio_of, wal_bytes
from benchmarks.samples import body, draft, our_tree, peer_folder
from memsvc.tree import services
from memsvc.tree.access import Access

SIZES = (100, 1_000, 10_000)
_TIMES = 40


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


def _our_cost(access: Access) -> float:
    return cpu_of_call(lambda i: services.add_entry(access, draft(i)), times=_TIMES)


def _peer_cost(folder: Path) -> float:
    store = MemoryStore(build_memory_backend(folder, for_deep_agent=False))
    return cpu_of_call(
        lambda i: store.write(PeerCategory.FACTS, body(i), summary="Observation"), times=3, rounds=3
    )
