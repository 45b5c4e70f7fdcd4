"""The parent's side of `tests.tree.writers`."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from typing import IO

from memsvc.tree.access import Access
from tests.tree.writers import Order

ROOT = Path(__file__).resolve().parents[2]
# Far beyond what any test takes: only for a writer that hangs.
_PATIENCE_SECONDS = 120


@dataclass(slots=True)
class Writers:
    """Orders given, and what came back. `acknowledged` and `errors` are by process."""

    _orders: IO[bytes]
    _answers: IO[bytes]
    running: set[int] = field(default_factory=set)
    acknowledged: dict[int, list[str]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    exits: dict[int, int] = field(default_factory=dict)

    def order(self, order: Order) -> int:
        """Start a writer; the answer is its process id."""
        known = set(self.acknowledged)
        self._orders.write(order.as_line())
        self._orders.flush()
        while not set(self.acknowledged) - known:
            self.listen()
        return (set(self.acknowledged) - known).pop()

    def listen(self) -> str:
        """Take in one line, and say what it was about."""
        line = self._answers.readline().decode()
        assert line, "the writers' parent has died"
        what, pid_text, *rest = line.split()
        pid = int(pid_text)
        match what:
            case "started":
                self.running.add(pid)
                self.acknowledged[pid] = []
            case "ack":
                self.acknowledged[pid].append(rest[0])
            case "error":
                self.errors.append(rest[0])
            case "ended":
                self.running.discard(pid)
                self.exits[pid] = int(rest[0])
        return what

    def await_acknowledged(self, pid: int, count: int) -> None:
        while len(self.acknowledged[pid]) < count and pid in self.running:
            self.listen()

    def await_end(self, *pids: int) -> None:
        while not set(pids) <= self.exits.keys():
            self.listen()


@contextmanager
def writers(**urls: str) -> Iterator[Writers]:
    """Writers on the database of these variables."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.tree.writers"],
        cwd=ROOT,
        env=os.environ | urls,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    watchdog = Timer(_PATIENCE_SECONDS, process.kill)
    watchdog.start()
    try:
        with process.stdin, process.stdout:
            yield Writers(process.stdin, process.stdout)
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()


def order_for(access: Access, work: str, **more: object) -> Order:
    return Order(tenant=str(access.tree.tenant_id), tree=str(access.tree.pk), work=work, **more)  # type: ignore[arg-type]  # as given
