"""Exporting 10,000 entries in 1,000 files over HTTP: first byte, time, and the memory that it takes."""

import io
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx

from benchmarks.measure import Figure, children_of
from benchmarks.samples import facts_file, our_tree
from benchmarks.server import key_of, server_pids
from memsvc.testing import server_url
from memsvc.tree import services


def run() -> Iterator[Figure]:
    access = our_tree(0)
    files = [(f"/memory/notes/part-{n:04d}.md", _part(n)) for n in range(1_000)]
    services.import_files(access, files)
    url = f"{server_url()}/v1/trees/default/export.zip"
    headers = {"Authorization": f"Bearer {key_of(access.tree)}"}
    _export(url, headers)
    before = _peak_kilobytes()
    runs = [_export(url, headers) for _ in range(5)]
    memory = (_peak_kilobytes() - before) / 1024
    first, whole = (sorted(each[i] for each in runs)[2] for i in (0, 1))
    in_memory_first, in_memory_peak = _zip_in_memory(dict(files))
    yield Figure(
        "export of 10,000 entries: first byte",
        f"{first * 1000:.0f} ms",
        f"{in_memory_first * 1000:.0f} ms (zipfile in memory)",
        f"{in_memory_first / first:.1f}×",
        "≤ 200 ms",
        first <= 0.2,
    )
    yield Figure("export of 10,000 entries: whole", f"{whole * 1000:.0f} ms")
    yield Figure(
        "export of 10,000 entries: peak memory over the first one's",
        f"{memory:.1f} MB",
        f"{in_memory_peak / 1e6:.1f} MB (zipfile in memory)",
        bar="≤ 10 MB",
        held=memory <= 10,
    )


def _part(number: int) -> bytes:
    """Ten entries with ids of their own."""
    return facts_file(10).replace("mem_2026", f"mem_{number:04d}_2026").encode()


def _export(url: str, headers: dict[str, str]) -> tuple[float, float]:
    started = time.perf_counter()
    with httpx.stream("GET", url, headers=headers, timeout=60) as response:
        response.raise_for_status()
        first = 0.0
        for _ in response.iter_raw():
            first = first or time.perf_counter() - started
    return first, time.perf_counter() - started


def _peak_kilobytes() -> int:
    """The most memory that any worker has held so far."""
    (server,) = server_pids()
    statuses = [Path(f"/proc/{worker}/status").read_text() for worker in children_of(server)]
    return max(
        int(line.split()[1]) for text in statuses for line in text.splitlines() if line.startswith("VmHWM")
    )


def _zip_in_memory(files: dict[str, bytes]) -> tuple[float, int]:
    started = time.perf_counter()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return time.perf_counter() - started, buffer.tell() + sum(map(len, files.values()))
