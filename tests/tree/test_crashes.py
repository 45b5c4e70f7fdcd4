"""kill -9 at any moment: of a change there is all or nothing, and all that was acknowledged is there."""

import os
import random
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memsvc.embedded import URLS, Cluster
from memsvc.format import MemoryKind
from memsvc.tree import reads
from memsvc.tree.access import Access
from memsvc.tree.errors import Busy
from memsvc.tree.reads import EntryFilter
from tests.servers import hurry
from tests.tree.processes import Writers, order_for, writers
from tests.tree.support import FACTS, add, contents, revision, revisions, rows
from tests.tree.writers import Order

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def them(database_url: str) -> Iterator[Writers]:
    with writers(DATABASE_URL=database_url) as them:
        yield them


def killed_before(them: Writers, memory: Access, point: int | str, target: str) -> int:
    """The exit code of a writer that corrects `target` and is to die at a point of its transaction."""
    pid = them.order(order_for(memory, "corrections", target=target, name="dying", die_before=point))
    them.await_end(pid)
    return them.exits[pid]


def correct(memory: Access, target: str) -> str:
    """Write over what a dead process may hold for a moment longer."""
    for _ in range(20):
        try:
            return add(memory, "Corrected.", supersedes=target).entry.entry_id
        except Busy:
            continue
    raise AssertionError("the lock of a dead process is not freed")


def test_a_writer_that_dies_before_its_commit_has_changed_nothing(memory: Access, them: Writers) -> None:
    target = add(memory, "Bonn.", summary="old").entry.entry_id
    before = contents(memory)

    for point in (*range(1, 50), "commit"):
        exit_code = killed_before(them, memory, point, target)
        if exit_code == 0:
            break
        assert exit_code == -signal.SIGKILL
        assert (contents(memory), revisions(memory), revision(memory)) == (before, [1], 1)
    assert isinstance(point, int)
    assert point > 5, "no statement was counted"

    # The last of them lived, since it has fewer statements. Now before the commit itself.
    (living,) = reads.list_entries(memory).items
    before = contents(memory)
    assert killed_before(them, memory, "commit", living.entry.entry_id) == -signal.SIGKILL
    assert (contents(memory), revisions(memory)) == (before, [1, 2])
    correct(memory, living.entry.entry_id)
    assert revisions(memory) == [1, 2, 3]


def test_a_writer_that_dies_after_its_commit_has_changed_everything(memory: Access, them: Writers) -> None:
    old = add(memory, "Bonn.", summary="old").entry.entry_id

    assert killed_before(them, memory, "answer", old) == -signal.SIGKILL

    (new,) = reads.list_entries(memory).items
    assert (new.entry.summary, new.entry.supersedes) == ("dying 0", old)
    assert reads.get_entry(memory, old).entry.superseded_by == new.entry.entry_id
    assert rows(memory, MemoryKind.SEMANTIC)["facts.md"] == "dying 0"
    assert (revision(memory), revisions(memory)) == (2, [1, 2])


def test_writers_that_die_at_any_moment_lose_nothing_that_was_acknowledged(
    memory: Access, them: Writers
) -> None:
    chance = random.Random(4711)
    newest, acknowledged = add(memory, "0").entry.entry_id, []
    for round_number in range(8):
        order = order_for(memory, "corrections", times=10_000, target=newest, name=str(round_number))
        pid = them.order(order)
        them.await_acknowledged(pid, chance.randrange(12))
        os.kill(pid, signal.SIGKILL)
        them.await_end(pid)
        acknowledged += them.acknowledged[pid]
        # Of the one that was not acknowledged there may be all; a part of it would show below.
        newest = _the_one_active_entry(memory)

    entries = reads.list_entries(memory, EntryFilter(active=None), limit=1000).items
    successor = {each.entry.entry_id: each.entry.superseded_by for each in entries}
    assert set(acknowledged) <= successor.keys()
    assert sum(by is None for by in successor.values()) == 1
    assert len({by for by in successor.values() if by}) == len(entries) - 1
    assert revisions(memory) == list(range(1, len(entries) + 1))
    assert contents(memory)[FACTS].count(b"\nid: ") == len(entries)
    assert {each.revision for each in entries} == set(revisions(memory))


def _the_one_active_entry(memory: Access) -> str:
    (active,) = reads.list_entries(memory).items
    return active.entry.entry_id


# --- the database itself ----------------------------------------------------------------------------------------


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """A server that no other test needs. A short path, so that the socket fits beside the data."""
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        cluster = Cluster(Path(folder) / "pg")
        cluster.start()
        hurry(cluster)
        yield cluster
        cluster.stop(force=True)
        cluster.remove()


def test_a_server_that_dies_loses_nothing_that_was_acknowledged(own_cluster: Cluster) -> None:
    with writers(**dict(zip(URLS, own_cluster.urls(), strict=True))) as them:
        tenant, tree = answers_to(them, Order(work="migrate"))
        pid = them.order(Order(work="facts", tenant=tenant, tree=tree, times=10_000))
        them.await_acknowledged(pid, 20)
        server = own_cluster.pid()
        assert server is not None

        os.kill(server, signal.SIGKILL)
        while not them.errors:
            them.listen()
        own_cluster.start()
        them.await_acknowledged(pid, len(them.acknowledged[pid]) + 20)
        os.kill(pid, signal.SIGKILL)
        them.await_end(pid)

        found = answers_to(them, Order(work="report", tenant=tenant, tree=tree))

    entries = [each for each in found if each.startswith("mem_")]
    assert set(them.errors) == {"unavailable"}
    assert set(them.acknowledged[pid]) <= set(entries)
    # One commit each may have been made that the writer, or this process, heard no more of.
    assert len(entries) <= len(them.acknowledged[pid]) + 2
    assert found[len(entries) :] == [str(number) for number in range(1, len(entries) + 1)]


def answers_to(them: Writers, order: Order) -> list[str]:
    pid = them.order(order)
    them.await_end(pid)
    assert them.exits[pid] == 0
    return them.acknowledged[pid]
