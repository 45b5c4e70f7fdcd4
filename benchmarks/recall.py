"""Getting by id, searching and superseding, in-process and over HTTP, against the peer on disk."""

from collections.abc import Callable, Iterator

from deep_memory_agent import MemoryCategory as PeerCategory
from deep_memory_agent import MemoryStore, build_memory_backend

from benchmarks.measure import Figure, cpu_of_call, ratio_of
from benchmarks.samples import body, draft, entry_id, our_tree, peer_folder
from benchmarks.server import client_of, server_pids
from memsvc.tree import reads, services

SIZES = (1_000, 5_000)
_BARS = {("get", 1_000): 100, ("get", 5_000): 500, ("supersede", 1_000): 100, ("supersede", 5_000): 100}
_WARMING = {False: 10, True: 100}
_TIMES = {"get": 100, "search": 60, "supersede": 40}


def run() -> Iterator[Figure]:
    for size in SIZES:
        peer = _peer(size)
        for place, calls, servers in (
            ("", _in_process(size), []),
            (" over HTTP", _over_http(size), server_pids()),
        ):
            for name, act in calls.items():
                # Every thread of a server connects, plans and loads once; what counts is what comes after.
                for i in range(1, _WARMING[bool(servers)]):
                    act(-i)
                ours = cpu_of_call(act, times=_TIMES[name], servers=servers)
                bar = _BARS.get((name, size))
                yield ratio_of(f"{name} among {size:,} entries{place}", ours, peer[name], at_least=bar)


def _word(i: int) -> str:
    return f"ref-{abs(i) % 1000:05d}"


def _in_process(size: int) -> dict[str, Callable[[int], object]]:
    access = our_tree(size)
    return {
        "get": lambda i: reads.get_entry(access, entry_id(i % size)),
        "search": lambda i: reads.search_entries(access, _word(i)),
        "supersede": lambda i: services.add_entry(access, draft(i, supersedes=entry_id(i % size))),
    }


def _over_http(size: int) -> dict[str, Callable[[int], object]]:
    access = our_tree(size)
    client = client_of(access.tree)
    return {
        "get": lambda i: client.get_entry(entry_id(i % size)),
        "search": lambda i: client.search(_word(i), mode="words"),
        "supersede": lambda i: client.supersede_entry(
            entry_id(i % size), body=body(i), summary="Observation"
        ),
    }


def _peer(size: int) -> dict[str, float]:
    with peer_folder(size) as folder:
        store = MemoryStore(build_memory_backend(folder, for_deep_agent=False))

        def supersede(i: int) -> object:
            old = entry_id(size // 2 + i)
            return store.write(PeerCategory.FACTS, body(i), summary="Observation", supersedes=old)

        return {
            "get": cpu_of_call(lambda i: store.get(entry_id(i % size)), times=1, rounds=3),
            "search": cpu_of_call(lambda i: store.search(_word(i)), times=1, rounds=3),
            "supersede": cpu_of_call(supersede, times=1, rounds=3),
        }
