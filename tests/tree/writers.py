"""Writers in processes of their own, to be raced and killed: `python -m tests.tree.writers`.

Each line on standard input is an order, as JSON; a process is forked for it, before any connection is opened.
Written to standard output are `started <pid>`, `ack <pid> <entry id>` after each commit, `error <pid> <code>`, and
`ended <pid> <exit code>`, which is negative for a signal.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import UUID

import django

if TYPE_CHECKING:
    from memsvc.tree.access import Access


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a writer is to do, `times` times, on one tree.

    `work` is "facts", "procedures" or "corrections" (each of which supersedes the one before, from `target` on), or
    "migrate" or "report": the first makes the database's tables, a tenant and a tree, whose keys it acknowledges; the
    second acknowledges every entry of the tree, and its revisions.
    With `die_before` the process is killed before that statement of its first transaction, or "commit", or "answer".
    """

    work: str
    tenant: str = ""
    tree: str = ""
    times: int = 1
    name: str = ""
    target: str = ""
    die_before: int | str = 0

    def as_line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"


def main() -> None:
    django.setup()
    # What each writer would otherwise load for itself.
    import_module("tests.tree.support")
    signal.signal(signal.SIGCHLD, _reap)
    for line in sys.stdin:
        order = Order(**json.loads(line))
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _work(order)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _reap(wait=0)


def _reap(*_: object, wait: int = os.WNOHANG) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, wait)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _say("ended", pid, os.waitstatus_to_exitcode(status))


def _say(*words: object) -> None:
    # One short write, so that lines of several processes never mix.
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def _work(order: Order) -> NoReturn:
    from memsvc.tree.errors import TreeError

    _say("started", os.getpid())
    if order.die_before:
        _die_before(order.die_before)
    if order.work in ("migrate", "report"):
        for found in _migrated() if order.work == "migrate" else _reported(order):
            _say("ack", os.getpid(), found)
        os._exit(0)
    target = order.target
    for n in range(order.times):
        try:
            target = _write(order, n, target)
        except TreeError as error:
            _say("error", os.getpid(), error.code)
        else:
            _say("ack", os.getpid(), target)
    os._exit(0)


def _migrated() -> list[str]:
    from django.core.management import call_command

    from memsvc.tree.trees import tree_of
    from tests.people import make_tenant

    call_command("database_roles", stdout=StringIO())
    call_command("migrate", verbosity=0)
    tree = tree_of(make_tenant())
    return [str(tree.tenant_id), str(tree.pk)]


def _reported(order: Order) -> list[str]:
    from memsvc.tree import reads
    from tests.tree.support import revisions

    access = _access(order)
    entries = reads.list_entries(access, limit=1000).items
    return [*(each.entry.entry_id for each in entries), *map(str, revisions(access))]


def _access(order: Order) -> "Access":
    from memsvc.tree.access import Access
    from memsvc.tree.models import Tree
    from tenants.actors import Actor, ActorKind

    tree = Tree(pk=UUID(order.tree), tenant_id=UUID(order.tenant), name="default")
    return Access(tree, Actor(ActorKind.JOB, "writer", order.name))


def _write(order: Order, n: int, target: str) -> str:
    from memsvc.contract.requests import EntryDraft
    from memsvc.format import MemoryCategory
    from memsvc.tree import services

    title = f"{order.name} {n}"
    draft = EntryDraft(category=MemoryCategory.FACTS, body=f"Written by {title}.", summary=title)
    if order.work == "procedures":
        draft = replace(draft, category=MemoryCategory.PROCEDURE, title=title)
    if order.work == "corrections":
        draft = replace(draft, supersedes=target)
    return services.add_entry(_access(order), draft).entry.entry_id


def _die_before(point: int | str) -> None:
    from django.db import connection

    if isinstance(point, int):
        connection.execute_wrappers.append(_Countdown(point))
    elif point == "commit":
        connection.commit = _die  # type: ignore[method-assign]  # the process ends here
    else:
        connection.commit = _after(connection.commit, _die)  # type: ignore[method-assign]  # likewise


@dataclass(slots=True)
class _Countdown:
    statements: int

    def __call__(self, execute: Callable[..., Any], *arguments: Any) -> Any:
        self.statements -= 1
        if self.statements == 0:
            _die()
        return execute(*arguments)


def _after(first: Callable[[], None], then: Callable[[], None]) -> Callable[[], None]:
    def both() -> None:
        first()
        then()

    return both


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
