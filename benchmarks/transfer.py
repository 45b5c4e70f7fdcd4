"""Bringing in 10,000 entries, as files of a zip and as JSON Lines: entries a second, and the memory that it takes."""

import json
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Figure, peak_megabytes
from benchmarks.samples import entries, facts_file, our_tree
from memsvc.contract.imports import ImportReport
from memsvc.transfer.archives import OPERATOR_LIMITS
from memsvc.transfer.formats import ImportFormat, import_file
from memsvc.tree.access import Access

COUNT = 10_000
_A_FILE = 10


def run() -> Iterator[Figure]:
    with TemporaryDirectory() as folder:
        for form, write in ((ImportFormat.ZIP, _write_zip), (ImportFormat.JSONL, _write_lines)):
            yield from _figures(form, write, Path(folder))


def _figures(form: ImportFormat, write: Callable[[Path, int], None], folder: Path) -> Iterator[Figure]:
    small, whole = folder / f"small.{form}", folder / f"whole.{form}"
    write(small, COUNT // 10)
    write(whole, COUNT)
    _import(our_tree(0), small, form)
    few, access = our_tree(0), our_tree(0)
    with peak_megabytes() as least:
        _import(few, small, form)
    started = time.perf_counter()
    with peak_megabytes() as most:
        report = _import(access, whole, form)
    seconds, grown = time.perf_counter() - started, most[0] - least[0]
    started = time.perf_counter()
    again = _import(access, whole, form)
    unchanged = time.perf_counter() - started
    assert again.revision == report.revision
    yield Figure(f"{form} import of 10,000 entries", f"{COUNT / seconds:,.0f} entries/s")
    yield Figure(f"{form} import of the same again", f"{COUNT / unchanged:,.0f} entries/s")
    yield Figure(
        f"{form} import: peak memory over that of 1,000",
        f"{grown:.1f} MB",
        # Files come one by one. JSON Lines are sorted into files first, so their entries, but no more, are held.
        bar="≤ 20 MB",
        held=grown <= 20,
    )


def _import(access: Access, file: Path, form: ImportFormat) -> ImportReport:
    return import_file(access, file, form, limits=OPERATOR_LIMITS)


def _write_zip(file: Path, count: int) -> None:
    part = facts_file(_A_FILE)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(count // _A_FILE):
            # Ten entries with ids of their own.
            archive.writestr(
                f"memory/notes/part-{number:04d}.md", part.replace("mem_2026", f"mem_{number:04d}_2026")
            )


def _write_lines(file: Path, count: int) -> None:
    with file.open("w") as sink:
        print(json.dumps({"format": "memsvc-export", "version": 1}), file=sink)
        for entry in entries(count):
            line = {
                "type": "memory",
                "external_id": entry.entry_id,
                "kind": "semantic",
                "content": entry.body,
                "summary": entry.summary,
                "tags": entry.tags,
                "created_at": entry.created.isoformat(),
            }
            print(json.dumps(line), file=sink)
