"""Run all benchmarks, or those that are named, and print one table; `--json FILE` keeps it for programs."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

from memsvc.testing import set_up

set_up()

from benchmarks import (  # noqa: E402  after Django is set up
    append,
    export,
    finding,
    history,
    listing,
    measure,
    neighbours,
    parallel,
    recall,
    transfer,
)
from benchmarks.measure import Figure  # noqa: E402

ROOMS: dict[str, Callable[[], Iterable[Figure]]] = {
    "probes": measure.probes,
    "append": append.run,
    "recall": recall.run,
    "finding": finding.run,
    "listing": listing.run,
    "neighbours": neighbours.run,
    "history": history.run,
    "parallel": parallel.run,
    "export": export.run,
    "transfer": transfer.run,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *ROOMS], help="which ones; all when none is named")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    arguments = parser.parse_args()
    figures: list[Figure] = []
    print(f"{'':50} {'memsvc':>24} {'peer':>32} {'ratio':>8}  bar")
    for name in arguments.names or ROOMS:
        for figure in ROOMS[name]():
            figures.append(figure)
            print(_line(figure), flush=True)
    if arguments.json:
        arguments.json.write_text(
            json.dumps([asdict(figure) for figure in figures], indent=2, ensure_ascii=False) + "\n"
        )
    missed = [figure for figure in figures if figure.held is False]
    print(f"{len(figures)} figures, {len(missed)} below their bar")
    return 1 if missed else 0


def _line(figure: Figure) -> str:
    verdict = {True: "held", False: "MISSED", None: ""}[figure.held]
    return f"{figure.name:50} {figure.ours:>24} {figure.peer:>32} {figure.ratio:>8}  {figure.bar} {verdict}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
