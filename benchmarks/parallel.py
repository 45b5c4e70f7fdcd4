"""Eight writers: on one hot tree, on a tree each, and what is left of their writes on either side."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import connection

from benchmarks.measure import Figure
from benchmarks.samples import body, draft, our_tree, peer_folder
from memsvc.testing import database_urls
from memsvc.tree import reads, services
from memsvc.tree.access import Access

WRITERS, WRITES = 8, 50
FLUSH_MS = 5


def run() -> Iterator[Figure]:
    hot = our_tree(0)
    own = [our_tree(0) for _ in range(WRITERS)]
    yield _compared("8 processes on 8 trees ÷ on one tree", hot, own)
    # As on a disk over a network. Where a flush costs nothing, only the cores bound both sides, and two of them can't
    # do more than twice what one does.
    with _slow_flushes():
        yield _compared(f"  where a flush takes {FLUSH_MS} ms", hot, own)
    kept = len(reads.list_entries(_written_by_threads(), limit=1_000).items)
    lost = _kept_by_peer()
    yield Figure(
        "entries left of 8 threads × 50", f"{kept} of 400", f"{lost} of 400", bar="400", held=kept == 400
    )


def _compared(name: str, hot: Access, own: list[Access]) -> Figure:
    on_one, on_own = [], []
    for _ in range(3):
        on_one.append(_rate([hot] * WRITERS))
        on_own.append(_rate(own))
    one, each = sorted(on_one)[1], sorted(on_own)[1]
    return Figure(
        name,
        f"{each:.0f}/s ÷ {one:.0f}/s",
        ratio=f"{each / one:.1f}×",
        bar="≥ 2.5×",
        held=each / one >= 2.5,
    )


@contextmanager
def _slow_flushes() -> Iterator[None]:
    """Let each flush of new sessions wait first, as a slower disk would let it."""
    name = connection.ops.quote_name(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {name} SET commit_delay = {FLUSH_MS * 1000}")
        cursor.execute(f"ALTER DATABASE {name} SET commit_siblings = 0")
        try:
            yield
        finally:
            cursor.execute(f"ALTER DATABASE {name} RESET ALL")


def _rate(accesses: list[Access]) -> float:
    """Writes a second, from the moment at which all processes are ready."""
    environment = os.environ | database_urls()
    writers = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "benchmarks.writer",
                str(access.tree.tenant_id),
                str(access.tree.pk),
                str(WRITES),
            ],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for access in accesses
    ]
    for writer in writers:
        _await_line(writer, b"ready\n")
    started = time.perf_counter()
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"go\n")
        writer.stdin.flush()
    for writer in writers:
        _await_line(writer, b"done\n")
    rate = len(accesses) * WRITES / (time.perf_counter() - started)
    for writer in writers:
        writer.communicate()
    return rate


def _await_line(writer: subprocess.Popen[bytes], line: bytes) -> None:
    assert writer.stdout is not None
    if writer.stdout.readline() != line:
        raise RuntimeError("a writer ended before its time")


def _written_by_threads() -> Access:
    access = our_tree(0)
    _in_threads(lambda n: [services.add_entry(access, draft(n * WRITES + i)) for i in range(WRITES)])
    return access


def _kept_by_peer() -> int:
    from deep_memory_agent import MemoryCategory, MemoryStore, build_memory_backend

    with peer_folder(0) as folder:
        store = MemoryStore(build_memory_backend(folder, for_deep_agent=False))
        _in_threads(
            lambda n: [store.write(MemoryCategory.FACTS, body(n * WRITES + i)) for i in range(WRITES)]
        )
        return len(store.search(limit=1_000))


def _in_threads(act: Callable[[int], object]) -> None:
    threads = [threading.Thread(target=act, args=(n,)) for n in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
