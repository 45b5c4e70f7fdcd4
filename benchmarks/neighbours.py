"""One large tenant beside 2,000 small ones on one server: each costs what it costs in a database of its own."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO

import psycopg
from django.core.management import call_command
from django.db import connection, connections
from psycopg.conninfo import make_conninfo

from benchmarks import bulk
from benchmarks.finding import enter_index
from benchmarks.measure import Figure, cpu_of_call
from benchmarks.samples import draft
from memsvc.database.rights import OWNER, connected_as
from memsvc.database.tenancy import tenant_transaction
from memsvc.format import MemoryCategory
from memsvc.recall.embedding import embedder
from memsvc.recall.search import Mode, Query, search
from memsvc.recall.vectors import embed_tree
from memsvc.testing import fresh_tree, superuser_url
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.models import Block
from tenants.actors import SYSTEM

TENANTS, FEW, MANY = 2_000, 50, 200_000
_EMBEDDED = 1_000
_MEANING_MS, _TIMES_ALONE = 120.0, 1.5
# A connection plans a statement for all values from the eleventh run on: five times the driver doesn't prepare it, five
# times the server plans anew.
_WARM = 12

type _Costs = Mapping[str, float]


def run() -> Iterator[Figure]:
    with _databases("small", "large", "both") as (small_alone, large_alone, both):
        with _connected_to(small_alone):
            call_command("database_roles", stdout=StringIO())
            call_command("migrate", verbosity=0)
            small = _small()
        _copy(small_alone, large_alone)
        with _connected_to(large_alone):
            large = _large()
        _copy(large_alone, both)
        with _connected_to(both):
            with _word_indexes_afterwards():
                bulk.copy_to_new_tenants(small.tree, TENANTS - 1)
            _vacuum()
            beside = {access.tree.pk: _costs(access) for access in (small, large)}
        for access, database, entries in ((large, large_alone, MANY), (small, small_alone, FEW)):
            with _connected_to(database):
                alone = _costs(access)
            yield from _compared(entries, beside[access.tree.pk], alone)


def _compared(entries: int, beside: _Costs, alone: _Costs) -> Iterator[Figure]:
    for what, cost in beside.items():
        times = cost / alone[what]
        bar, held = "", None
        if what == "append":
            bar, held = f"≤ {_TIMES_ALONE:g}× alone", times <= _TIMES_ALONE
        elif what == "by meaning":
            bar, held = f"≤ {_MEANING_MS:g} ms", cost <= _MEANING_MS
        yield Figure(
            f"{what}, {entries:,} entries beside {TENANTS:,} tenants",
            f"{cost:.2f} ms CPU",
            f"{alone[what]:.2f} ms CPU alone",
            f"{times:.2f}×",
            bar,
            held,
        )


def _costs(access: Access) -> _Costs:
    """CPU of a call, by what it does."""
    entries = Block.objects.of(access.tree).entries()
    with tenant_transaction(access.tree.tenant_id):
        ids = list(entries.values_list("entry_id", flat=True)[:1_000])
        texts = list(entries.order_by("-pk").values_list("text", flat=True)[:200])
    questions = [" ".join(text.split()[:6]) for text in texts]

    def searched(mode: Mode) -> Callable[[int], object]:
        return lambda i: search(access, Query(text=questions[i % len(questions)], mode=mode), limit=10)

    acts: dict[str, tuple[Callable[[int], object], int]] = {
        "append": (lambda i: services.add_entry(access, draft(i)), 100),
        "get": (lambda i: reads.get_entry(access, ids[i % len(ids)]), 200),
        "by words": (searched(Mode.LEXICAL), 20),
        "by meaning": (searched(Mode.SEMANTIC), 20),
    }
    costs = {}
    for what, (act, times) in acts.items():
        for i in range(_WARM):
            act(i)
        costs[what] = cpu_of_call(act, times=times)
    return costs


def _small() -> Access:
    access = Access(fresh_tree(), SYSTEM)
    services.scaffold(access)
    for number in range(FEW):
        services.add_entry(access, draft(number))
    embed_tree(access.tree)
    with tenant_transaction(access.tree.tenant_id):
        access.tree.refresh_from_db()
    return access


def _large() -> Access:
    """Half of its entries are facts, in one file, and half are events, by month."""
    access = Access(fresh_tree(), SYSTEM)
    services.scaffold(access)
    months = [datetime(2026, month, 1, tzinfo=UTC) for month in range(1, 11)]
    with _word_indexes_afterwards():
        for category, when in [(MemoryCategory.FACTS, None)] * 10 + [
            (MemoryCategory.EVENTS, when) for when in months
        ]:
            added = services.add_entry(access, replace(draft(0), category=category, when=when))
            with tenant_transaction(access.tree.tenant_id):
                rows = Block.objects.select_related("tree")
                like = rows.get(tree=access.tree, entry_id=added.entry.entry_id)
            bulk.add_like(like, MANY // 20 - 1)
    embed_tree(access.tree, limit=_EMBEDDED)
    bulk.give_vectors(access.tree)
    model = embedder()
    assert model is not None
    enter_index(access.tree, model)
    _vacuum()
    with tenant_transaction(access.tree.tenant_id):
        access.tree.refresh_from_db()
    return access


@contextmanager
def _word_indexes_afterwards() -> Iterator[None]:
    """Do without the indexes that words are found by meanwhile, which is several times faster."""
    with connected_as(OWNER), connection.cursor() as cursor:
        cursor.execute("SET maintenance_work_mem = '512MB'")
        cursor.execute(
            "SELECT indexname, indexdef FROM pg_indexes"
            " WHERE tablename = 'tree_block' AND indexdef LIKE '%% USING gin %%'"
        )
        found = cursor.fetchall()
        for name, _ in found:
            cursor.execute(f"DROP INDEX {name}")
    yield
    with connected_as(OWNER), connection.cursor() as cursor:
        for _, definition in found:
            cursor.execute(definition)


@connected_as(OWNER)
def _vacuum() -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


@contextmanager
def _databases(*names: str) -> Iterator[list[str]]:
    """Names for new databases, which are dropped afterwards. The first is there already, and empty."""
    full = [f"memsvc_{name}_{os.getpid()}" for name in names]
    _execute(f"CREATE DATABASE {full[0]}")
    with psycopg.connect(make_conninfo(superuser_url(), dbname=full[0])) as superuser:
        superuser.execute("CREATE EXTENSION vector")
    try:
        yield full
    finally:
        for name in full:
            _execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _copy(database: str, name: str) -> None:
    _execute(f"CREATE DATABASE {name} TEMPLATE {database} STRATEGY FILE_COPY")


@connected_as(OWNER)
def _execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        cursor.execute(sql)


@contextmanager
def _connected_to(database: str) -> Iterator[None]:
    """Let Django work on another database, without a limit for how long a statement takes."""
    before = [each.settings_dict | {} for each in connections.all()]
    _connect(*({"NAME": database, "OPTIONS": each["OPTIONS"] | {"options": ""}} for each in before))
    try:
        yield
    finally:
        _connect(*before)


def _connect(*settings: Mapping[str, object]) -> None:
    for each, changed in zip(connections.all(), settings, strict=True):
        each.close()
        each.close_pool()  # type: ignore[attr-defined]  # the stubs know no pool
        each.settings_dict.update(changed)
