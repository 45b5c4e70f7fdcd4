"""Work in the background: procrastinate tasks, each a thin door to a function that could be called as well.

Writes defer nothing. A sweep looks every few seconds for what they left to do: so a write costs what it did without
jobs, and what is due is found again whatever has died in between.
"""

import asyncio
import logging
import signal
from contextlib import suppress
from typing import Final
from uuid import UUID

from django.db import connection
from procrastinate import RetryStrategy
from procrastinate.contrib.django import app
from procrastinate.contrib.django.utils import connector_params
from procrastinate.exceptions import AlreadyEnqueued, UniqueViolation
from procrastinate.job_context import JobContext
from procrastinate.jobs import DeleteJobCondition, Status
from procrastinate.psycopg_connector import PsycopgConnector

from memsvc.recall import vectors
from memsvc.recall.embedding import EmbeddingError, embedder
from memsvc.tree.models import Tree

logger = logging.getLogger(__name__)

# Trees that one sweep finds. More wait for the next.
_TREES_AT_ONCE: Final = 200
# Entries of one tree, until its job looks whether it should stop, and until other trees have their turn.
_ENTRIES_AT_ONCE: Final = 200
_ENTRIES_A_TURN: Final = 2000
# Seconds. Taken for dead by mistake, a job would be done twice, which harms nothing.
_HEARTBEAT: Final = 3.0
_DEAD_AFTER: Final = 15.0
# Connections of procrastinate's pool, and as many of Django's: jobs run one at a time. One more listens.
_CONNECTIONS: Final = 2

# A model that can't be reached is tried again after a while that grows to minutes.
_PATIENTLY: Final = RetryStrategy(max_attempts=20, linear_wait=15, wait=5)


@app.periodic(cron="* * * * * */3")
@app.task(name="sweep", queueing_lock="sweep", priority=10)
def sweep(timestamp: int | None = None) -> None:
    """Defer a job for each tree whose entries lack vectors, and delete the vectors of entries that have expired."""
    defer_stale_trees()
    vectors.forget_expired()


@app.task(name="embed_tree", pass_context=True, retry=_PATIENTLY)
def embed_tree(context: JobContext, tenant: str, tree: str) -> None:
    """Make the vectors that a tree's entries lack. A large tree lets others have their turn in between."""
    found = Tree(tenant_id=UUID(tenant), pk=UUID(tree))
    for _ in range(0, _ENTRIES_A_TURN, _ENTRIES_AT_ONCE):
        if context.should_abort():
            return
        try:
            done = vectors.embed_tree(found, limit=_ENTRIES_AT_ONCE)
        except EmbeddingError as error:
            logger.warning("tree %s has to wait for its vectors: %s", tree, error)
            raise
        if done:
            logger.info("%s entries of tree %s have vectors", done, tree)
        if done < _ENTRIES_AT_ONCE:
            return
    defer_embedding(found)


@app.periodic(cron="* * * * * */10")
@app.task(name="revive", queueing_lock="revive", priority=10)
async def revive(timestamp: int) -> None:
    """Put the jobs of dead workers back in the queue."""
    await _revive_dead()


async def _revive_dead() -> None:
    for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=_DEAD_AFTER):
        try:
            await app.job_manager.retry_job(job)
        except UniqueViolation:
            # The same work is in the queue already.
            await app.job_manager.finish_job(job, Status.FAILED, delete_job=True)


def defer_stale_trees() -> int:
    """Returns for how many trees there was no job yet."""
    return sum(map(defer_embedding, vectors.stale_trees(_TREES_AT_ONCE)))


def defer_embedding(tree: Tree) -> bool:
    """Queue a job for a tree; False when one is waiting already."""
    key = f"embed_tree {tree.pk}"
    with suppress(AlreadyEnqueued):
        # The lock keeps two workers from making the same vectors; the other one lets a tree wait once only.
        deferrer = embed_tree.configure(lock=key, queueing_lock=key)
        deferrer.defer(tenant=str(tree.tenant_id), tree=str(tree.pk))
        return True
    return False


def work() -> bool:
    """Run jobs until SIGTERM or SIGINT. Returns whether one of them came; else the worker gave up by itself.

    A job that is at work when the signal comes ends with what it has in hand, and the rest of it is found again.
    """
    return asyncio.run(_until_stopped(wait=True))


def work_off() -> None:
    """Do all that is due now, whoever has queued it. A signal ends it as it ends `work`."""
    defer_stale_trees()
    while not asyncio.run(_until_stopped(wait=False)) and defer_stale_trees():
        pass
    vectors.forget_expired()


async def _until_stopped(*, wait: bool) -> bool:
    connection.settings_dict["OPTIONS"]["pool"]["max_size"] = _CONNECTIONS
    worker = asyncio.ensure_future(_work(wait=wait))

    def stop() -> None:
        # Cancelled twice, it would not wait for its jobs.
        if not worker.cancelling():
            worker.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    with suppress(asyncio.CancelledError):
        await worker
    return worker.cancelled()


async def _work(*, wait: bool) -> None:
    # Loaded before there is work, so that a wrong setting is told at once.
    embedder()
    parameters = connector_params(connection.alias) | {"application_name": "memsvc jobs"}
    connector = PsycopgConnector(kwargs=parameters, min_size=1, max_size=_CONNECTIONS)
    with app.replace_connector(connector) as with_own_connections:
        async with with_own_connections.open_async():
            await _revive_dead()
            await with_own_connections.run_worker_async(
                wait=wait,
                delete_jobs=DeleteJobCondition.ALWAYS,
                install_signal_handlers=False,
                shutdown_graceful_timeout=0,
                update_heartbeat_interval=_HEARTBEAT,
                stalled_worker_timeout=_DEAD_AFTER,
            )
