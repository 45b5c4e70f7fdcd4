"""Every call gives its connection back, whoever makes it and however it ends."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from django.db import IntegrityError, connection, transaction

from memsvc.format import FormatError
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.errors import FileNotFound, TreeError, Unavailable
from memsvc.tree.models import Block, Revision
from memsvc.tree.scope import read_transaction, unit_of_work
from tests.tree.support import add, contents, paths, revisions

pytestmark = pytest.mark.django_db(transaction=True)

THREADS = 30


def in_threads(act: Callable[[], object]) -> None:
    def bearing_refusals(_: int) -> None:
        with suppress(TreeError, FormatError, ZeroDivisionError):
            act()

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(bearing_refusals, range(THREADS)))


def sessions() -> dict[str, int]:
    """How many sessions of this process on the test database are in which state, this one left out."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT state, count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid != pg_backend_pid()"
            " AND application_name = current_setting('application_name') AND usename = current_user"
            " GROUP BY state"
        )
        return dict(cursor.fetchall())


def assert_all_are_given_back() -> None:
    """None is lent, and none holds a transaction; the server may hear of it a moment later."""
    connection.close()
    pool = connection.pool  # type: ignore[attr-defined]  # PostgreSQL's wrapper has one
    deadline = time.monotonic() + 30
    while True:
        lent = pool.get_stats()["pool_size"] - pool.get_stats()["pool_available"]
        states = sessions()
        connection.close()
        if (lent, states.keys() - {"idle"}) == (0, set()) and states.get("idle", 0) <= pool.max_size:
            return
        assert time.monotonic() < deadline, (lent, states)
        time.sleep(0.05)


def sleep_beyond_the_timeout() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '10ms'; SELECT pg_sleep(10)")


def _abandoned_snapshot(access: Access) -> None:
    with reads.export_source(access) as whole:
        next(whole.files())
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda access: add(access), id="a write"),
        pytest.param(lambda access: services.write_file(access, "/x/..", ""), id="a path that is refused"),
        pytest.param(lambda access: services.write_file(access, "/x", ""), id="a write that is refused"),
        pytest.param(lambda access: reads.list_files(access), id="a read"),
        pytest.param(lambda access: reads.read_file(access, "/missing"), id="a read of nothing"),
        pytest.param(_abandoned_snapshot, id="an abandoned snapshot"),
    ],
)
def test_many_threads_leave_no_connection_behind(memory: Access, act: Callable[[Access], object]) -> None:
    services.write_file(memory, "/x/a.md", "text")

    in_threads(lambda: act(memory))

    assert_all_are_given_back()


def test_a_database_error_leaves_no_connection_behind(memory: Access) -> None:
    def fail() -> None:
        with suppress(IntegrityError), unit_of_work(memory, "test") as change:
            change.made = True
            Block.objects.create(
                tenant_id=memory.tree.tenant_id, tree_id=memory.tree.pk, file_id=memory.tree.pk
            )

    in_threads(fail)

    assert_all_are_given_back()
    assert revisions(memory) == []


def test_a_fault_of_ours_keeps_its_cause(memory: Access) -> None:
    services.write_file(memory, "/a.md", "text")

    with pytest.raises(IntegrityError) as raised, unit_of_work(memory, "test") as change:
        Revision.objects.create(
            tenant_id=memory.tree.tenant_id, tree_id=memory.tree.pk, number=1, at=change.at, action="test"
        )

    assert getattr(raised.value.__cause__, "sqlstate", None) == "23505"


def test_a_session_that_was_ended_is_a_clear_answer_and_the_next_call_goes_on(memory: Access) -> None:
    with pytest.raises(Unavailable), read_transaction(memory), connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    services.write_file(memory, "/a.md", "text")
    assert_all_are_given_back()


def test_a_statement_that_takes_too_long_is_a_clear_answer(memory: Access) -> None:
    with pytest.raises(Unavailable), read_transaction(memory):
        sleep_beyond_the_timeout()

    assert contents(memory) == {}


# --- inside an outer transaction --------------------------------------------------------------------------------


def test_calls_inside_a_transaction_are_part_of_it(memory: Access) -> None:
    with suppress(ZeroDivisionError), transaction.atomic():
        services.write_file(memory, "/a.md", "text")
        assert paths(memory) == ["/a.md"]
        raise ZeroDivisionError

    assert (paths(memory), revisions(memory)) == ([], [])


def test_a_refusal_inside_a_transaction_undoes_only_itself(memory: Access) -> None:
    with transaction.atomic():
        services.write_file(memory, "/a.md", "text")
        with pytest.raises(FileNotFound):
            services.delete(memory, "/b")
        with pytest.raises(FileNotFound):
            reads.read_file(memory, "/b")
        services.write_file(memory, "/c.md", "text")
        assert not connection.needs_rollback

    assert (paths(memory), revisions(memory)) == (["/a.md", "/c.md"], [1, 2])


def test_a_database_error_inside_a_transaction_undoes_only_its_own_change(memory: Access) -> None:
    with transaction.atomic():
        services.write_file(memory, "/a.md", "text")
        with pytest.raises(Unavailable), unit_of_work(memory, "test"):
            sleep_beyond_the_timeout()
        services.write_file(memory, "/c.md", "text")

    assert (paths(memory), revisions(memory)) == (["/a.md", "/c.md"], [1, 2])
