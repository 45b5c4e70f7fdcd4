"""Measuring: CPU time of all processes that take part, WAL bytes, and ratios of the two sides.

Wall time swings with whatever else a machine does, CPU time and WAL bytes don't. A figure is the median of several
rounds; the two sides of a comparison are measured in turn, in the same minutes.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.db import connection

from memsvc.database.rights import OWNER, connected_as

_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. `bar` says what must hold, `held` whether it did; without a bar it is for the record."""

    name: str
    ours: str
    peer: str = "–"
    ratio: str = ""
    bar: str = ""
    held: bool | None = None


def ratio_of(
    name: str, ours: float, peer: float, *, unit: str = "ms CPU", at_least: float | None = None
) -> Figure:
    """A comparison in which the peer's figure should be the larger one."""
    times = peer / ours
    return Figure(
        name=name,
        ours=f"{ours:.2f} {unit}",
        peer=f"{peer:.2f} {unit}",
        ratio=f"{times:.0f}×" if times >= 10 else f"{times:.2f}×",
        bar="" if at_least is None else f"≥ {at_least:g}×",
        held=None if at_least is None else times >= at_least,
    )


def cpu_of_call(
    act: Callable[[int], object], *, times: int, rounds: int = 5, servers: Sequence[int] = ()
) -> float:
    """CPU milliseconds of one call, in this process, in Postgres and in the `servers`: the median of the rounds."""
    results = []
    for number in range(rounds):
        before = _cpu_seconds(servers)
        for i in range(times):
            act(number * times + i)
        results.append((_cpu_seconds(servers) - before) / times * 1000)
    return statistics.median(results)


def _cpu_seconds(servers: Sequence[int]) -> float:
    return time.process_time() + sum(_cpu_of(pid) for pid in [*_database_pids(), *_with_children(servers)])


def _cpu_of(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICK


def _database_pids() -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity"
            " WHERE datname = current_database() AND backend_type <> 'autovacuum worker'"
        )
        return [pid for (pid,) in cursor.fetchall()]


def _with_children(pids: Sequence[int]) -> list[int]:
    found = list(pids)
    for pid in found:
        found += children_of(pid)
    return found


def children_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for children in tasks for child in children.read_text().split()]


@contextmanager
def wal_bytes() -> Iterator[list[int]]:
    """Give a list that holds, after the block, the bytes of WAL that this thread's connection wrote meanwhile.

    Of the connection, not of the server: others may be writing. The pool hands a lone thread the same one each time.
    """
    written: list[int] = []
    start = _wal_of_connection()
    yield written
    written.append(_wal_of_connection() - start)


def _wal_of_connection() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT wal_bytes FROM pg_stat_get_backend_wal(pg_backend_pid())")
        return int(cursor.fetchone()[0])


@contextmanager
def peak_megabytes() -> Iterator[list[float]]:
    """Give a list that holds, after the block, the most memory that this process held meanwhile."""
    held: list[float] = []
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    yield held
    lines = Path("/proc/self/status").read_text().splitlines()
    held.append(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024)


@connected_as(OWNER)
def checkpoint() -> None:
    with connection.cursor() as cursor:
        cursor.execute("CHECKPOINT")


def probes() -> list[Figure]:
    """How fast this machine is just now: what a wall-clock figure of this run may be compared with."""
    started = time.process_time()
    sum(i * i for i in range(2_000_000))
    loop = time.process_time() - started
    path = Path(f".probe-{os.getpid()}")
    with path.open("wb") as file:
        times = [_fsync(file.fileno()) for _ in range(20)]
    path.unlink()
    return [
        Figure("probe: loop of 2,000,000 squares", f"{loop * 1000:.0f} ms CPU"),
        Figure("probe: fdatasync of 8 kB", f"{statistics.median(times) * 1000:.2f} ms"),
    ]


def _fsync(descriptor: int) -> float:
    os.pwrite(descriptor, os.urandom(8192), 0)
    started = time.perf_counter()
    os.fdatasync(descriptor)
    return time.perf_counter() - started
