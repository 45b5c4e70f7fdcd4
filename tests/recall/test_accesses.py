"""Accesses are counted where an entry answers a question, in batches, and each one once."""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from memsvc.agents import MemoryStore, PostgresBackend
from memsvc.client import MemsvcClient
from memsvc.contract.requests import SuccessorRequest
from memsvc.recall.accesses import (
    ACCESS_COUNTS,
    MAX_COUNT,
    AccessCounts,
    Accesses,
    accesses_of,
    add_accesses,
    note_accesses,
)
from memsvc.recall.context import context
from memsvc.recall.models import AccessCount
from memsvc.recall.search import Mode, Query, search
from memsvc.testing import running_server
from memsvc.transfer.exports import export_jsonl
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.cloning import clone_tree
from memsvc.tree.models import Block
from memsvc.tree.trees import delete_tree, tree_of
from tenants.scopes import Scope
from tests.people import make_key, make_tenant
from tests.tree.support import FACTS, access_to, add, in_days, of_tenant, revision

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[2]
THEN = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture(autouse=True)
def by_words_alone(settings: Settings) -> None:
    settings.EMBEDDER = "none"


def counts(access: Access, *entry_ids: str) -> list[int]:
    ACCESS_COUNTS.flush()
    found = accesses_of(access, entry_ids)
    return [found[each].count if each in found else 0 for each in entry_ids]


def ids(access: Access, *bodies: str) -> list[str]:
    return [add(access, body).entry.entry_id for body in bodies]


# --- what counts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [Mode.HYBRID, Mode.LEXICAL, Mode.WORDS, Mode.SUBSTRING])
def test_a_hit_is_an_access_and_what_is_not_on_the_page_is_none(memory: Access, mode: Mode) -> None:
    old, new, other = ids(memory, "kites fly", "kites fell down", "boats swim")
    search(memory, Query(text="kites", mode=mode), limit=1)
    first = counts(memory, old, new, other)
    page = search(memory, Query(text="kites", mode=mode))

    assert sorted(first) == [0, 0, 1]
    assert len(page.items) == 2
    assert [now - then for now, then in zip(counts(memory, old, new, other), first, strict=True)] == [1, 1, 0]


def test_it_is_known_when_it_was_last(memory: Access) -> None:
    (entry,) = ids(memory, "kites fly")
    before = datetime.now(tz=UTC)
    for _ in range(3):
        search(memory, Query(text="kites"))
    ACCESS_COUNTS.flush()

    found = accesses_of(memory, [entry])[entry]

    assert found.count == 3
    assert before < found.last_at < datetime.now(tz=UTC)


def test_what_a_context_holds_is_accessed_and_what_was_left_out_is_not(memory: Access) -> None:
    made = ids(memory, *(f"kite number {n} " + "flies high " * 40 for n in range(6)))

    shown = context(memory, "kite", budget=300).entries

    assert 0 < len(shown) < 6
    assert counts(memory, *made) == [int(each in shown) for each in made]


READS: dict[str, Callable[[Access, str], object]] = {
    "a search without a query": lambda access, _: search(access, Query()),
    "a search as of a revision": lambda access, _: search(
        access, Query(text="kites"), revision=revision(access)
    ),
    "a context as of a revision": lambda access, _: context(access, "kites", revision=revision(access)),
    "a list": lambda access, _: reads.list_entries(access),
    "a file": lambda access, _: reads.read_file(access, FACTS),
    "grep": lambda access, _: reads.grep(access, "kites"),
    "the history": lambda access, entry: reads.entry_history(access, entry),
    "the service's own look": lambda access, entry: reads.get_entry(access, entry),
    "an export": lambda access, _: b"".join(export_jsonl(access)),
    "its accesses": lambda access, entry: accesses_of(access, [entry]),
    "memory_search without a query": lambda access, _: MemoryStore(PostgresBackend(access.tree)).search(""),
    "recent episodes": lambda access, _: MemoryStore(PostgresBackend(access.tree)).recent_episodes(),
}


@pytest.mark.parametrize("read", READS)
def test_looking_around_counts_nothing(memory: Access, read: str) -> None:
    (entry,) = ids(memory, "kites fly")

    READS[read](memory, entry)

    assert counts(memory, entry) == [0]


def test_the_doors_of_agents_count(memory: Access) -> None:
    (entry,) = ids(memory, "kites fly")
    backend = PostgresBackend(memory.tree)

    backend.memory_get(entry)
    backend.memory_get("mem_missing")
    MemoryStore(backend).search("kites")
    MemoryStore(backend.read_only()).search("do kites fly?", ranked=True)

    assert counts(memory, entry) == [3]


def test_hidden_superseded_and_foreign_entries_are_not_counted(memory: Access, stranger: Access) -> None:
    old, hidden, gone = ids(memory, "kites one", "kites two", "kites three")
    foreign = add(stranger, "kites four").entry.entry_id
    new = services.supersede_entry(memory, SuccessorRequest(old, "kites five")).entry.entry_id
    with of_tenant(memory):
        Block.objects.filter(entry_id=hidden).update(expires_at=in_days(-1))
    note_accesses(memory, [gone, foreign, "mem_missing", "\u2603"])
    services.retire_entry(memory, gone)
    services.write_file(memory, FACTS, "nothing is left")
    services.restore(memory, revision(memory) - 1)
    search(memory, Query(text="kites"))

    assert counts(memory, old, new) == [0, 1]
    assert counts(stranger, foreign, old) == [0, 0]
    with of_tenant(memory):
        Block.objects.filter(entry_id=hidden).update(expires_at=None)
    assert counts(memory, hidden) == [0]


def test_a_key_for_a_folder_is_told_of_what_lies_in_it(memory: Access, stranger: Access) -> None:
    (entry,) = ids(memory, "kites fly")
    note_accesses(memory, [entry])
    narrow = access_to(memory.tree.tenant, prefix="/memory/episodic_memory")

    assert counts(memory, entry) == [1]
    assert counts(narrow, entry) == [0]
    assert counts(stranger, entry) == [0]


def test_an_entry_that_is_moved_keeps_its_count_and_a_successor_begins_anew(memory: Access) -> None:
    (entry,) = ids(memory, "kites fly")
    note_accesses(memory, [entry])
    ACCESS_COUNTS.flush()

    services.move(memory, FACTS, "/memory/semantic_memory/moved.md")
    new = services.supersede_entry(memory, SuccessorRequest(entry, "kites fell")).entry.entry_id

    assert counts(memory, entry, new) == [1, 0]


def test_they_can_be_turned_off(memory: Access, settings: Settings) -> None:
    settings.ACCESS_COUNTS = False
    (entry,) = ids(memory, "kites fly")

    search(memory, Query(text="kites"))

    assert counts(memory, entry) == [0]


# --- how they are written ------------------------------------------------------------------------------------------


def test_noting_costs_no_statement_and_writing_two_for_each_tree(memory: Access, stranger: Access) -> None:
    entries = [(access, ids(access, *map(str, range(20)))) for access in (memory, stranger)]

    with CaptureQueriesContext(connection) as noting:
        for access, made in entries * 3:
            note_accesses(access, made)
    with CaptureQueriesContext(connection) as writing:
        ACCESS_COUNTS.flush()
    with CaptureQueriesContext(connection) as nothing:
        ACCESS_COUNTS.flush()

    # begin, for each of two trees its tenant and its counts, end
    assert (len(noting), len(writing), len(nothing)) == (0, 6, 0)
    assert all(counts(access, *made) == [3] * 20 for access, made in entries)


def test_writing_changes_neither_entry_nor_revision(memory: Access) -> None:
    (entry,) = ids(memory, "kites fly")
    before = reads.get_entry(memory, entry), revision(memory)

    note_accesses(memory, [entry])

    assert counts(memory, entry) == [1]
    assert (reads.get_entry(memory, entry), revision(memory)) == before


def test_a_tree_that_is_deleted_meanwhile_is_passed_over(memory: Access, stranger: Access) -> None:
    (gone,), (stays,) = ids(memory, "kites"), ids(stranger, "kites")
    note_accesses(memory, [gone])
    ACCESS_COUNTS.flush()
    note_accesses(memory, [gone])
    note_accesses(stranger, [stays])

    delete_tree(memory)

    assert counts(stranger, stays) == [1]
    assert AccessCount.objects.count() == 1


def test_a_clone_begins_at_zero(memory: Access) -> None:
    (entry,) = ids(memory, "kites fly")
    note_accesses(memory, [entry])
    ACCESS_COUNTS.flush()
    clone_tree(memory, "copy")
    copy = Access(tree_of(memory.tree.tenant, "copy"), memory.actor)

    assert (counts(copy, entry), counts(memory, entry)) == ([0], [1])


def test_a_write_that_fails_is_made_up_for_once(memory: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    (entry,) = ids(memory, "kites fly")
    batch = AccessCounts()
    key = (memory.tree.tenant_id, memory.tree.pk, entry)
    batch.note([(key, Accesses(1, THEN))])
    with monkeypatch.context() as patch:
        written = AccessCounts.write

        def fail(self: AccessCounts, notes: Any) -> None:
            written(self, notes)
            raise OperationalError("the connection is lost")

        patch.setattr(AccessCounts, "write", fail)
        for _ in range(2):
            with pytest.raises(OperationalError):
                batch.flush()
    batch.note([(key, Accesses(2, THEN + timedelta(days=1)))])
    batch.flush()
    batch.flush()

    assert accesses_of(memory, [entry]) == {entry: Accesses(3, THEN + timedelta(days=1))}


def test_numbers_that_are_too_large_are_bounded(memory: Access) -> None:
    (entry,) = ids(memory, "kites fly")

    add_accesses(memory, {entry: Accesses(2**31 + 1, THEN)})
    assert counts(memory, entry) == [2**31 + 1]
    add_accesses(
        memory, {entry: Accesses(MAX_COUNT, THEN - timedelta(days=9)), "mem_missing": Accesses(1, THEN)}
    )

    assert accesses_of(memory, [entry]) == {entry: Accesses(MAX_COUNT, THEN)}


def test_more_than_one_statement_holds_are_written(memory: Access) -> None:
    made = ids(memory, "kites")
    many = {f"mem_{n}": Accesses(1, THEN) for n in range(2500)} | {made[0]: Accesses(4, THEN)}

    add_accesses(memory, many)

    assert counts(memory, *made) == [4]


@pytest.mark.django_db(transaction=True)
def test_threads_add_up() -> None:
    memory = access_to(make_tenant())
    made = ids(memory, "kites one", "kites two")
    batch, start = AccessCounts(interval=0.01), Barrier(8)
    key = (memory.tree.tenant_id, memory.tree.pk)

    def note() -> None:
        start.wait()
        for n in range(100):
            batch.note([((*key, made[n % 2]), Accesses(1, THEN))])

    threads = [Thread(target=note) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    while (timer := batch._timer) is not None:
        timer.join()
    batch.flush()

    assert counts(memory, *made) == [400, 400]


# Nothing here writes: that happens when the process ends.
SEARCHING = """
import sys
import django
django.setup()
from memsvc.agents import MemoryStore, PostgresBackend
from memsvc.tree.trees import tree_of
from tenants.models import Tenant
store = MemoryStore(PostgresBackend(tree_of(Tenant(pk=sys.argv[1]))))
for _ in range(5):
    assert len(store.search("kites", limit=50)) == 30
"""


@pytest.mark.django_db(transaction=True)
def test_processes_add_up(database_url: str) -> None:
    memory = access_to(make_tenant())
    made = ids(memory, *(f"kites {n}" for n in range(30)))

    command = [sys.executable, "-c", SEARCHING, str(memory.tree.tenant_id)]
    running = [
        subprocess.Popen(command, cwd=ROOT, env=os.environ | {"DATABASE_URL": database_url}) for _ in range(3)
    ]

    assert [process.wait(timeout=60) for process in running] == [0, 0, 0]
    assert set(counts(memory, *made)) == {15}


@pytest.mark.django_db(transaction=True)
def test_a_server_that_is_stopped_has_written() -> None:
    memory = access_to(make_tenant())
    made = ids(memory, "kites one", "kites two")
    _, key = make_key(memory.tree.tenant, Scope.READ)

    with running_server() as url, MemsvcClient(url, key) as client:
        for _ in range(20):
            client.search("kites")
        client.get_entry(made[0])

    assert counts(memory, *made) == [21, 20]


@pytest.mark.django_db(transaction=True)
def test_a_tree_that_is_being_deleted_holds_up_nobody() -> None:
    memory = access_to(make_tenant())
    other = access_to(make_tenant())
    (entry,), (stays,) = ids(memory, "kites"), ids(other, "kites")
    failed: list[Exception] = []

    def flush() -> None:
        note_accesses(memory, [entry])
        note_accesses(other, [stays])
        try:
            ACCESS_COUNTS.flush()
        except Exception as error:
            failed.append(error)
        finally:
            connection.close()

    with transaction.atomic():
        Block.objects.filter(entry_id=entry).delete()
        thread = Thread(target=flush)
        thread.start()
        thread.join(timeout=10)
        assert not thread.is_alive()
        transaction.set_rollback(True)

    assert failed == []
    assert counts(other, stays) == [1]
