"""Many writers at once, on what is committed: nothing is lost, nothing is done twice, nobody waits for a stranger."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from threading import Barrier
from typing import ClassVar

import pytest
from django.db import connection, transaction

from memsvc.contract.entries import EntryWritten
from memsvc.contract.files import Written
from memsvc.format import Block, MemoryCategory, MemoryEntry, MemoryKind
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.arrivals import ExternalEntry
from memsvc.tree.errors import AlreadySuperseded, Busy, IsFolder, PathTaken, TreeError
from memsvc.tree.reads import EntryFilter
from memsvc.tree.scope import unit_of_work
from memsvc.tree.trees import create_tree
from tenants.models import Tenant
from tests.tree.processes import order_for, writers
from tests.tree.support import FACTS, access_to, add, contents, paths, revisions, rows, text

pytestmark = pytest.mark.django_db(transaction=True)

WRITERS = 8
EACH = 20


def at_once[R](act: Callable[[int], R], times: int = WRITERS) -> list[R | TreeError]:
    """Do something in as many threads, starting together; what was refused is an answer too."""
    start = Barrier(times)

    def started(n: int) -> R | TreeError:
        start.wait(timeout=30)
        try:
            return act(n)
        except TreeError as error:
            return error

    with ThreadPoolExecutor(times) as threads:
        return list(threads.map(started, range(times)))


def every_entry(access: Access) -> list[str]:
    return [
        each.entry.entry_id for each in reads.list_entries(access, EntryFilter(active=None), limit=1000).items
    ]


def has_everything(access: Access, acknowledged: list[str], work: str) -> None:
    assert len(acknowledged) == WRITERS * EACH
    assert sorted(every_entry(access)) == sorted(acknowledged)
    assert revisions(access) == list(range(1, len(acknowledged) + 1))
    if work == "facts":
        assert text(access, FACTS).count("\nid: ") == len(acknowledged)
        assert list(rows(access, MemoryKind.SEMANTIC)) == ["facts.md"]
    else:
        files = [path for path in paths(access) if not path.endswith("index.md")]
        expected = {path.rpartition("/")[2] for path in files}
        assert len(files) == len(acknowledged)
        assert rows(access, MemoryKind.PROCEDURAL).keys() == expected


@pytest.mark.parametrize("work", ["facts", "procedures"])
def test_eight_threads_lose_nothing(memory: Access, work: str) -> None:
    category = {"facts": "facts", "procedures": "procedure"}[work]

    def write(writer: int) -> list[str]:
        return [
            add(memory, f"{writer}.{n}", category, title=f"{writer} {n}").entry.entry_id for n in range(EACH)
        ]

    answers = at_once(write)

    acknowledged = [entry for each in answers if isinstance(each, list) for entry in each]
    has_everything(memory, acknowledged, work)


@pytest.mark.parametrize("work", ["facts", "procedures"])
def test_eight_processes_lose_nothing(memory: Access, database_url: str, work: str) -> None:
    with writers(DATABASE_URL=database_url) as them:
        pids = [them.order(order_for(memory, work, times=EACH, name=str(n))) for n in range(WRITERS)]
        them.await_end(*pids)

    assert (them.errors, set(them.exits.values())) == ([], {0})
    has_everything(memory, [entry for each in them.acknowledged.values() for entry in each], work)


def test_of_rivals_for_one_entry_one_wins_and_the_others_are_told(memory: Access) -> None:
    old = add(memory, "old").entry.entry_id

    answers = at_once(lambda n: add(memory, f"by {n}", supersedes=old))

    (winner,) = [each for each in answers if isinstance(each, EntryWritten)]
    losers = [each for each in answers if isinstance(each, AlreadySuperseded)]
    assert [each.successor for each in losers] == [winner.entry.entry_id] * (WRITERS - 1)
    assert sorted(every_entry(memory)) == sorted([old, winner.entry.entry_id])
    assert revisions(memory) == [1, 2]


def test_a_chain_of_corrections_never_forks(memory: Access) -> None:
    first = add(memory, "0").entry.entry_id

    def correct(writer: int) -> int:
        won = 0
        while won < 5:
            newest = reads.list_entries(memory).items[0].entry.entry_id
            try:
                add(memory, f"{writer}", supersedes=newest)
            except AlreadySuperseded:
                continue
            won += 1
        return won

    assert at_once(correct, 4) == [5] * 4
    assert len(reads.list_entries(memory).items) == 1
    successor = {
        each.entry.entry_id: each.entry.superseded_by
        for each in reads.list_entries(memory, EntryFilter(active=False)).items
    }
    chain, entry = 0, first
    while entry in successor:
        chain, entry = chain + 1, str(successor[entry])
    assert chain == 20


def test_only_one_of_a_file_and_a_folder_is_made(memory: Access) -> None:
    for n in range(10):
        places = [f"/{n}", f"/{n}/below"]

        answers = at_once(lambda m, places=places: services.write_file(memory, places[m], "text"), 2)  # type: ignore[misc]  # bound in the loop

        (made,) = [each.path for each in answers if isinstance(each, Written)]
        assert sum(isinstance(each, (IsFolder, PathTaken)) for each in answers) == 1
        assert [path for path in paths(memory) if path in places] == [made]


def test_of_creators_of_one_file_one_makes_it(memory: Access) -> None:
    answers = at_once(lambda n: services.write_file(memory, "/a.md", f"by {n}\n"))

    assert sum(isinstance(each, Written) and each.created for each in answers) == 1
    assert (len(answers), revisions(memory)) == (WRITERS, list(range(1, WRITERS + 1)))


def test_edits_of_different_places_all_survive(memory: Access) -> None:
    services.write_file(memory, FACTS, "".join(f"line {n} is old\n" for n in range(WRITERS * 4)))

    at_once(
        lambda w: [
            services.edit_file(memory, FACTS, f"line {n} is old", f"line {n} is new")
            for n in range(w * 4, w * 4 + 4)
        ]
    )

    assert text(memory, FACTS) == "".join(f"line {n} is new\n" for n in range(WRITERS * 4))


def test_the_default_tree_and_the_layout_are_made_once(alice: Tenant) -> None:
    made = at_once(lambda _: services.scaffold(access_to(alice)))

    assert sorted(len(each) for each in made if isinstance(each, list)) == [0] * (WRITERS - 1) + [7]


# --- while a tree is held ---------------------------------------------------------------------------------------


def test_others_write_at_once_and_the_same_tree_reads(
    memory: Access, stranger: Access, alice: Tenant
) -> None:
    add(memory, "before")
    other = Access(create_tree(alice, "other"), memory.actor)

    with ThreadPoolExecutor(1) as elsewhere, unit_of_work(memory, "test") as change:
        change.made = True
        for act in (
            lambda: add(stranger, "by the stranger"),
            lambda: add(other, "in another tree"),
            lambda: create_tree(alice, "a third"),
            lambda: contents(memory),
            lambda: reads.search_entries(memory, "before"),
        ):
            elsewhere.submit(act).result(timeout=30)

    assert (revisions(memory), revisions(stranger), revisions(other)) == ([1, 2], [1], [1])


def test_a_lock_that_is_not_to_be_had_is_a_clear_answer(memory: Access) -> None:
    services.write_file(memory, "/a.md", "before\n")

    with ThreadPoolExecutor(1) as elsewhere:
        with unit_of_work(memory, "test"):
            waiting = elsewhere.submit(services.write_file, memory, "/a.md", "after\n")
            refused = waiting.exception(timeout=30)
            assert isinstance(refused, Busy)
            assert "nothing was changed, try again" in str(refused)
            assert elsewhere.submit(text, memory, "/a.md").result(timeout=30) == "before\n"

        # The same thread, and so the same connection, goes on.
        elsewhere.submit(services.write_file, memory, "/a.md", "after\n").result(timeout=30)

    assert (text(memory, "/a.md"), revisions(memory)) == ("after\n", [1, 2])


def test_an_outer_transaction_survives_a_lock_that_is_not_to_be_had(memory: Access, stranger: Access) -> None:
    with ThreadPoolExecutor(1) as elsewhere, unit_of_work(memory, "test"):
        elsewhere.submit(_write_around_a_refusal, memory, stranger).result(timeout=30)

    assert (paths(memory), sorted(paths(stranger))) == ([], ["/after.md", "/before.md"])


def _write_around_a_refusal(held: Access, free: Access) -> None:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '50ms'")
        services.write_file(free, "/before.md", "text")
        with pytest.raises(Busy):
            services.write_file(held, "/a.md", "text")
        services.write_file(free, "/after.md", "text")
    connection.close()


class Composed(ExternalEntry):
    """An entry that lets others have their turn whenever its text is put together."""

    turns: ClassVar[list[Callable[[str], object]]] = []

    @property
    def block(self) -> Block:
        for turn in self.turns:
            turn(f"/beside-{self.entry.entry_id}.md")
        return ExternalEntry.block.fget(self)  # type: ignore[attr-defined, no-any-return]  # a property's own function


def test_others_write_while_an_import_is_read_and_composed(memory: Access) -> None:
    entry = MemoryEntry("mem_0", datetime(2026, 1, 1, tzinfo=UTC), MemoryCategory.FACTS, "It rains.")
    with ThreadPoolExecutor(1) as other:

        def turn(path: str) -> Written:
            return other.submit(services.write_file, memory, path, "x").result(timeout=30)

        def files() -> Iterator[tuple[str, bytes]]:
            for n in range(3):
                turn(f"/while-{n}.md")
                yield f"/notes/{n}.md", b"x"

        Composed.turns.append(turn)
        result = services.import_files(
            memory, files(), entries=[Composed(FACTS, replace(entry, entry_id=f"mem_{n}")) for n in range(3)]
        )

    assert (result.revision, revisions(memory)) == (7, list(range(1, 8)))
    assert [each.outcome for each in result.files] == ["created"] * 3
    assert [each.outcome for each in result.entries] == ["created"] * 3
    assert every_entry(memory) == ["mem_2", "mem_1", "mem_0"]
