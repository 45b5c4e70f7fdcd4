"""The real worker, in processes of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection
from procrastinate.contrib.django.models import ProcrastinateJob
from psycopg.conninfo import make_conninfo

from memsvc import jobs
from memsvc.recall.minilm import MiniLM
from memsvc.recall.models import Vector
from memsvc.recall.vectors import embed_tree, stale_trees
from memsvc.tree import services
from memsvc.tree.access import Access
from tests.tree.support import add, from_outside, in_days

ROOT = Path(__file__).resolve().parents[2]
# Far beyond what a test takes: only for a worker that hangs.
PATIENCE = 120
# What tells the workers' sessions from those of a server that other tests have started.
WORKER = "worker of the tests"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _no_jobs(transactional_db: None) -> None:
    """The tables of jobs are not Django's, which so leaves them as they are after a test."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs")


@contextmanager
def worker(database_url: str, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "manage.py", "worker", *arguments],
        cwd=ROOT,
        env=os.environ
        | {"DATABASE_URL": make_conninfo(database_url, application_name=WORKER), "MEMSVC_LOG_LEVEL": "INFO"}
        | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def count(access: Access, model: str = MiniLM.name) -> int:
    with from_outside():
        return Vector.objects.filter(tree=access.tree, model=model).count()


def sessions() -> int:
    """The workers' connections."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s",
            [WORKER],
        )
        (found,) = cursor.fetchone()
    return int(found)


def write(access: Access, count: int, about: str = "Fact") -> None:
    with_entries = "\n\n".join(
        f"---\nid: mem_2026-01-01_{number:08x}\ncreated: 2026-01-01\ncategory: facts\n---\n\n{about} number {number}."
        for number in range(count)
    )
    services.write_file(access, f"/memory/semantic_memory/{about.lower()}.md", with_entries.encode())


def test_the_worker_makes_the_vectors_of_what_is_written(
    memory: Access, stranger: Access, database_url: str
) -> None:
    write(memory, 3)
    with worker(database_url) as running:
        until(lambda: count(memory) == 3)
        write(stranger, 2)
        gone = add(memory, "It comes while the worker runs.").entry.entry_id
        until(lambda: (count(memory), count(stranger)) == (4, 2))
        services.retire_entry(memory, gone)
        until(lambda: count(memory) == 3)
        with from_outside():
            Vector.objects.filter(tree=stranger.tree).update(expires_at=in_days(-1))
        until(lambda: count(stranger) == 0)

        running.send_signal(signal.SIGTERM)
        output, _ = running.communicate(timeout=PATIENCE)

    assert running.returncode == 0, output
    assert "Traceback" not in output
    # It leaves nothing behind: no finished job, no connection.
    assert not ProcrastinateJob.objects.exclude(task_name__in=("sweep", "revive")).exists()
    assert not ProcrastinateJob.objects.exclude(status="todo").exists()
    until(lambda: sessions() == 0)


def test_a_worker_holds_a_handful_of_connections(memory: Access, database_url: str) -> None:
    write(memory, 3)
    with worker(database_url):
        until(lambda: count(memory) == 3)
        for number in range(5):
            write(memory, 2, f"Other{number}")
        until(lambda: count(memory) == 13)
        # Two of procrastinate's pool, two of Django's, and one that listens.
        assert 1 <= sessions() <= 5


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_stops_in_the_middle_of_a_tree_and_leaves_no_job_at_work(
    memory: Access, database_url: str, number: signal.Signals
) -> None:
    write(memory, 5000)
    with worker(database_url) as running:
        until(lambda: count(memory) > 0)
        running.send_signal(number)
        running.send_signal(number)
        output, _ = running.communicate(timeout=PATIENCE)

    assert running.returncode == 0, output
    assert 0 < count(memory) < 5000
    assert not ProcrastinateJob.objects.filter(status="doing").exists()


def test_a_killed_worker_loses_nothing(memory: Access, database_url: str) -> None:
    write(memory, 600)
    with worker(database_url) as running:
        until(lambda: count(memory) > 0)
        running.kill()
        running.wait()
    assert count(memory) < 600
    assert ProcrastinateJob.objects.filter(task_name="embed_tree", status="doing").exists()

    with worker(database_url):
        until(lambda: count(memory) == 600)
        until(lambda: not stale_trees(10))


def test_two_workers_share_the_trees(memory: Access, stranger: Access, database_url: str) -> None:
    write(memory, 300)
    write(stranger, 300)
    with worker(database_url), worker(database_url):
        until(lambda: (count(memory), count(stranger)) == (300, 300))
        until(lambda: not stale_trees(10))

    for access in (memory, stranger):
        with from_outside():
            assert Vector.objects.filter(tree=access.tree).values("block").distinct().count() == 300


def test_once_does_what_is_due_and_ends(memory: Access, stranger: Access, database_url: str) -> None:
    write(memory, 250)
    write(stranger, 2)
    # Of one tree there is a job already, which another worker has left.
    jobs.defer_embedding(memory.tree)
    with worker(database_url, "--once") as running:
        output, _ = running.communicate(timeout=PATIENCE)

    assert running.returncode == 0, output
    assert (count(memory), count(stranger)) == (250, 2)
    assert not ProcrastinateJob.objects.filter(task_name="embed_tree").exists()


def test_another_model_takes_over_in_the_background(memory: Access, database_url: str) -> None:
    write(memory, 20)
    embed_tree(memory.tree)

    with worker(database_url, "--once", MEMSVC_EMBEDDER="tests.recall.langchain.made") as running:
        output, _ = running.communicate(timeout=PATIENCE)

    assert running.returncode == 0, output
    assert (count(memory), count(memory, "tests.recall.langchain.made/letters-1")) == (0, 20)


def test_a_model_that_fails_is_tried_again_later(memory: Access, database_url: str) -> None:
    write(memory, 2)
    with worker(database_url, "--once", MEMSVC_EMBEDDER="tests.recall.langchain.broken") as running:
        output, _ = running.communicate(timeout=PATIENCE)

    assert running.returncode == 0, output
    job = ProcrastinateJob.objects.get(task_name="embed_tree")
    assert (job.status, job.attempts) == ("todo", 1)
    assert job.scheduled_at is not None
    assert "nobody there" in output


def test_a_wrong_model_is_told_at_the_start(database_url: str) -> None:
    with worker(database_url, MEMSVC_EMBEDDER="tests.recall.langchain.nothing") as running:
        output, _ = running.communicate(timeout=PATIENCE)

    assert running.returncode == 1
    assert "MEMSVC_EMBEDDER: there is no tests.recall.langchain.nothing" in output
    assert "Traceback" not in output


def test_a_tree_has_one_waiting_job_at_most(memory: Access, stranger: Access) -> None:
    write(memory, 2)
    write(stranger, 2)

    assert jobs.defer_stale_trees() == 2
    assert jobs.defer_stale_trees() == 0

    waiting = ProcrastinateJob.objects.order_by("id")
    assert {(job.args["tenant"], job.args["tree"]) for job in waiting} == {
        (str(access.tree.tenant_id), str(access.tree.pk)) for access in (memory, stranger)
    }


def test_without_a_model_there_is_nothing_to_do(memory: Access, database_url: str) -> None:
    write(memory, 2)

    with worker(database_url, "--once", MEMSVC_EMBEDDER="none") as running:
        output, _ = running.communicate(timeout=PATIENCE)

    assert running.returncode == 0, output
    with from_outside():
        assert not Vector.objects.exists()
    assert not ProcrastinateJob.objects.filter(task_name="embed_tree").exists()


def test_a_write_defers_nothing(memory: Access) -> None:
    add(memory)

    assert not ProcrastinateJob.objects.exists()
