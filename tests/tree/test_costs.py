"""What a call costs follows from what it changes, and not from what the tree holds already."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from memsvc.tree import reads, services, statements
from memsvc.tree.access import Access
from memsvc.tree.cursors import cursor_of_entry
from memsvc.tree.models import Block
from memsvc.tree.trees import create_tree
from tenants.models import Tenant
from tests.tree.support import FACTS, add, entry_text, of_tenant

pytestmark = pytest.mark.django_db(transaction=True)

NOTE = "/memory/notes.md"
DEPLOY = "/memory/procedural_memory/deploy.md"
# Of every call: BEGIN, tenant and lock (for a write) or snapshot (for a read), COMMIT.
FRAME = 3


@contextmanager
def at_most(statements: int) -> Iterator[None]:
    with CaptureQueriesContext(connection) as captured:
        yield
    said = "\n".join(query["sql"][:200] for query in captured)
    assert len(captured) <= FRAME + statements, said


def test_writes_keep_their_budgets(memory: Access) -> None:
    services.scaffold(memory)
    services.upload_files(memory, [(f"/folder/{n}", b"text\n") for n in range(20)])
    old = add(memory, "old", summary="same").entry.entry_id
    add(memory, "old", "procedure", title="A", summary="old")
    services.write_file(memory, "/memory/old.md", "text\n")

    # 1 id, file and its end  2 block and file  3 index and row  4 revision and event
    with at_most(4):
        add(memory, "new", summary="same")
    # as before, and 5 old row, new row and index file
    with at_most(5):
        newest = add(memory, "new", summary="another").entry.entry_id
    # 1 the old entry  2 id, file and its end  3 block  4 supersession and file  5 index and row  6 revision
    with at_most(6):
        add(memory, "newer", summary="another", supersedes=newest)
    # 1 id and file  2 below?  3 above?  4 file  5 block and file  6 index and row  7 row before  8 row after
    # 9 row and index file  10 revision
    with at_most(10):
        add(memory, "new", "procedure", title="Deploy", summary="new")
    # 1 file  2 below?  3 above?  4 file  5 blocks  6 block  7 counts  8 file  9 newest entry?  10 first block
    # 11 index and row  12 row before  13 row after  14 row and index file  15 revision
    with at_most(15):
        services.write_file(memory, NOTE, "one\n")
    # 1 file  2 blocks
    with at_most(2):
        services.write_file(memory, NOTE, "one\n")
    # 1 file  2 blocks  3 old block  4 new block  5 counts  6 file  7 index and row  8 revision
    with at_most(8):
        services.write_file(memory, NOTE, "two\n")
    # the same, and 9 blocks once more, for the text
    with at_most(9):
        services.edit_file(memory, NOTE, "two", "three")
    with at_most(9):
        services.append_file(memory, NOTE, "four\n")
    # 1 source  2 destination  3 below?  4 above?  5 former place  6 new place  7 file  8 duplicates?  9, 10 old row
    # 11, 12 old row closed  13 index file  14 moved file  15 row before  16 row after  17 row and index file
    # 18, 19 routers  20 revision
    with at_most(20):
        services.move(memory, NOTE, "/memory/moved.md")
    # 1 file  2 duplicates?  3 blocks  4 file  5 index  6, 7 row  8 index file  9 revision
    with at_most(10):
        services.delete(memory, "/memory/moved.md")
    # the same for all 20 files: 1 file?  2 files  3 duplicates?  4 blocks  5 files  6 revision
    with at_most(6):
        services.delete(memory, "/folder")
    # 1 entry  2 block  3 duplicates?  4, 5 neighbours  6 shown?  7 counts  8 file  9 index and row  10 revision
    with at_most(10):
        services.retire_entry(memory, old)


def test_reads_keep_their_budgets(memory: Access) -> None:
    services.scaffold(memory)
    services.upload_files(memory, [(f"/folder/{n}/a.md", b"text\n") for n in range(20)])
    for n in range(20):
        entry = add(memory, str(n)).entry.entry_id

    # 1 files right below  2 folders  3 files that expire
    with at_most(3):
        reads.list_folder(memory, "/folder")
    # 1 files
    with at_most(1):
        reads.list_files(memory)
    # 1 revision?  2 files  3 what went  4 counts  5 times
    with at_most(5):
        reads.list_files(memory, revision=2)
    with at_most(1):
        reads.glob(memory, "**/*.md")
    with at_most(1):
        reads.stat(memory, FACTS)
    # 1 file  2 blocks
    with at_most(2):
        reads.read_file(memory, FACTS)
    with at_most(2):
        reads.read_index(memory)
    # 1 file  2 lines of the blocks up to the window  3 blocks of the window
    with at_most(3):
        reads.read_lines(memory, FACTS, offset=20, limit=10)
    # 1 entry and file
    with at_most(1):
        reads.get_entry(memory, entry)
    # 1 entries and files
    with at_most(1):
        reads.list_entries(memory, limit=10)
    with at_most(1):
        reads.search_entries(memory, "1", limit=10)
    with at_most(1):
        reads.recent_episodes(memory)


# --- the same in a file of 10 and of 10,000 entries -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cost:
    """What a call did to the blocks: statements, and rows inserted, updated, updated in place, read."""

    statements: int
    inserted: int
    updated: int
    hot: int
    scanned: int
    fetched: int


def cost(act: Callable[[], object]) -> Cost:
    """Taken from the counters of one transaction, which no other session has a part in."""
    with transaction.atomic():
        before = _counters()
        with CaptureQueriesContext(connection) as captured:
            act()
        return Cost(len(captured), *(new - old for old, new in zip(before, _counters(), strict=True)))


def _counters() -> Sequence[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT n_tup_ins, n_tup_upd, n_tup_hot_upd, seq_tup_read, idx_tup_fetch"
            " FROM pg_stat_xact_user_tables WHERE relname = 'tree_block'"
        )
        counters: Sequence[int] = cursor.fetchone()
    return counters


@pytest.fixture
def small(memory: Access) -> Access:
    return filled(memory, 10)


@pytest.fixture
def large(alice: Tenant, memory: Access) -> Access:
    return filled(replace(memory, tree=create_tree(alice, "large")), 10_000)


def filled(access: Access, entries: int) -> Access:
    """A tree with a facts.md of so many entries, and statistics as a running service has them."""
    services.scaffold(access)
    text = "\n".join(["# Facts\n", *(entry_text(f"mem_{n:05}", f"Fact number {n}.") for n in range(8))])
    services.write_file(access, FACTS, text)
    with of_tenant(access):
        multiply(Block.objects.of(access.tree).get(entry_id="mem_00007"), entries - 9)
    add(access, "The first one by a service.")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE tree_block, tree_file, tree_tree")
    return access


def middle(access: Access) -> str:
    """Where the page begins that has half of all entries before it."""
    entries = Block.objects.of(access.tree).live_at(None).entries().order_by("-created", "-pk")
    with of_tenant(access):
        last = entries[entries.count() // 2 - 1]
    assert last.created is not None
    return cursor_of_entry(last.created, last.pk)


def multiply(entry: Block, times: int) -> None:
    """Put copies of an entry below it, with ids of their own: much faster than to write them."""
    own = ("id", "position", "entry_id")
    copied = [field.attname for field in Block._meta.concrete_fields if field.attname not in own]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO tree_block (id, position, entry_id, {', '.join(copied)})"
            f" SELECT gen_random_uuid(), position + n, entry_id || '_' || n, {', '.join(copied)}"
            " FROM tree_block, generate_series(1, %s) AS n WHERE id = %s",
            [times, entry.pk],
        )
    statements.count_entries(entry.tree)


def wal_bytes(act: Callable[[], object], times: int) -> int:
    """The least that one of so many calls wrote: what others write meanwhile, and whole pages, can only add."""
    return min(_wal_bytes(act) for _ in range(times))


def writes_no_more_than(most: float, act: Callable[[], object]) -> bool:
    """Whether one of many calls writes so little; what others write meanwhile may go on for seconds."""
    return any(_wal_bytes(act) <= most for _ in range(1_000))


def _wal_bytes(act: Callable[[], object]) -> int:
    before = _wal_position()
    act()
    return _wal_position() - before


def _wal_position() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
        position: int = cursor.fetchone()[0]
    return position


def test_what_a_call_costs_does_not_grow_with_the_file(small: Access, large: Access) -> None:
    def costs(access: Access) -> dict[str, Cost]:
        cursor = middle(access)
        return {
            "append": cost(lambda: add(access, "One more.")),
            "supersede": cost(lambda: add(access, "One more.", supersedes="mem_00005")),
            "get": cost(lambda: reads.get_entry(access, "mem_00003")),
            "first page": cost(lambda: reads.read_lines(access, FACTS, limit=20)),
            "newest": cost(lambda: reads.list_entries(access, limit=5)),
            "later page": cost(lambda: reads.list_entries(access, limit=5, cursor=cursor)),
        }

    few, many = costs(small), costs(large)

    # Which of two ways to a few rows the planner takes is its own affair.
    assert max(each.fetched for each in (*few.values(), *many.values())) <= 40
    assert [replace(each, fetched=0) for each in many.values()] == [
        replace(each, fetched=0) for each in few.values()
    ]
    assert {each.scanned for each in many.values()} == {0}
    assert (many["append"].inserted, many["append"].updated) == (1, 0)
    # One row is updated, where it is, so that no index is written: what is superseded is in none.
    assert (many["supersede"].inserted, many["supersede"].updated, many["supersede"].hot) == (1, 1, 1)

    in_small = wal_bytes(lambda: add(small, "One."), times=10)
    assert writes_no_more_than(min(16 * 1024, 1.5 * in_small), lambda: add(large, "One more."))
