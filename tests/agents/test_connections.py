"""Agents leave no database connection behind, however they are run."""

import time
from datetime import datetime
from typing import Any, cast

import psycopg
import pytest
from deepagents.backends import CompositeBackend, StateBackend
from django.db import connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper

from memsvc.agents import MemoryStore, create_memory_manager_agent
from memsvc.testing import database_urls, fresh_backend
from tests.agents.scripted import Call, answers_of, model_calling

pytestmark = pytest.mark.django_db(transaction=True)


def database_time() -> datetime:
    with observer() as connection:
        found = connection.execute("SELECT clock_timestamp()").fetchone()
    assert found is not None
    return cast(datetime, found[0])


def left_since(start: datetime) -> int:
    """Connections to the test database that were made since then and are still there.

    A live server, where another test has started one, made its own before.
    """
    with observer() as connection:
        found = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_start > %s"
            " AND pid <> pg_backend_pid()",
            [start],
        ).fetchone()
    assert found is not None
    return int(found[0])


def observer() -> psycopg.Connection[tuple[Any, ...]]:
    """A connection that Django and its pool know nothing of."""
    return psycopg.connect(database_urls()["DATABASE_URL"], autocommit=True)


def close_pool() -> None:
    wrapper = connections["default"]
    assert isinstance(wrapper, DatabaseWrapper)
    assert wrapper.pool is not None
    assert wrapper.pool.get_stats()["pool_available"] == wrapper.pool.get_stats()["pool_size"]
    wrapper.close_pool()


def test_fifteen_runs_with_parallel_calls_leave_none() -> None:
    backend = fresh_backend()
    start = database_time()
    memory = CompositeBackend(default=StateBackend(), routes={"/memory/": backend})
    MemoryStore(memory).ensure_tree()
    for run in range(15):
        notes: list[Call] = [
            ("memory_write", {"category": "facts", "content": f"run {run}.{n}", "summary": "s"})
            for n in range(4)
        ]
        looks: list[Call] = [
            ("memory_search", {"query": "run"}),
            ("memory_index", {}),
            ("ls", {"path": "/memory"}),
            ("grep", {"pattern": "run", "path": "/memory"}),
            ("glob", {"pattern": "**/*.md", "path": "/memory"}),
        ]
        graph = create_memory_manager_agent(model_calling(notes, looks), backend=memory)

        answers = answers_of(graph, in_loop=run % 2 == 1)

        assert [answer.status for answer in answers] == ["success"] * 9

    assert len(MemoryStore(memory).search(limit=100)) == 60
    connection.close()
    # What is still there when the pool has closed its own was left behind by a thread.
    close_pool()
    deadline = time.monotonic() + 10
    while left_since(start) and time.monotonic() < deadline:
        time.sleep(0.05)  # the server takes a moment to see that a client has gone
    assert left_since(start) == 0
