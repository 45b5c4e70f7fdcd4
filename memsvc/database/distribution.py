"""Rows spread over several servers by their tenant, with Citus: what can be, and what stands in the way.

All rows of a tenant are on one server, so a statement that names its tenant for every table goes there whole. Keys and
members stay on the coordinator, where they are looked up before anybody knows whose request it is.
"""

from collections.abc import Callable, Iterator
from typing import Final

from django.conf import settings
from django.db import connections, transaction
from psycopg import sql
from psycopg.sql import Identifier

from memsvc.database import rights

# What is not distributed although it has rows of tenants: few and small ones, which are found by other columns.
LOCAL: Final[dict[str, str]] = {
    "tenants_tenant": "is found by its slug",
    "tenants_apikey": "is found by its prefix",
    "tenants_membership": "is found by its person",
    "tenants_keyusage": "refers to keys",
}


def distributed_tables() -> list[str]:
    """The tables whose rows go with their tenant."""
    return sorted(rights.tenant_tables().keys() - LOCAL.keys())


class NotDistributable(Exception):
    """Why this database isn't distributed; `str(error)` is for people."""


def is_distributed(alias: str = rights.SERVICE) -> bool:
    """Whether Citus has tables of this database on its servers."""
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT to_regclass('pg_dist_partition') IS NOT NULL")
        if not cursor.fetchone()[0]:
            return False
        cursor.execute("SELECT EXISTS (SELECT FROM pg_dist_partition WHERE partmethod = 'h')")
        return bool(cursor.fetchone()[0])


def distribute(shards: int, progress: Callable[[str], None] = lambda step: None) -> None:
    """Spread the rows of tenants over the servers of Citus, as the owner and in one transaction.

    Everybody waits meanwhile, so nobody should be served. Raises `NotDistributable`, and then nothing is changed.
    """
    with transaction.atomic(using=rights.OWNER), connections[rights.OWNER].cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')")
        if not cursor.fetchone()[0]:
            raise NotDistributable("This database has no extension `citus`; see docs/scaling.md.")
        if is_distributed(rights.OWNER):
            raise NotDistributable("The rows of tenants are distributed already.")
        if faults := schema_faults(rights.OWNER):
            raise NotDistributable("This can't be distributed by tenant:\n" + "\n".join(faults))
        cursor.execute("SELECT count(*) FROM pg_dist_node WHERE isactive AND shouldhaveshards")
        if not cursor.fetchone()[0]:
            raise NotDistributable("Citus has no server for rows yet: add one with citus_add_node.")
        for statement in statements(shards):
            progress(statement)
            cursor.execute(statement)


def statements(shards: int) -> list[str]:
    """What distributes this database, in its order. It asks any PostgreSQL."""
    with connections[rights.OWNER].cursor() as cursor:
        cursor.execute(_FOREIGN_KEYS, [distributed_tables()])
        composed = _steps(distributed_tables(), cursor.fetchall(), shards)
        return [step.as_string(connections[rights.OWNER].connection) for step in composed]


type _ForeignKey = tuple[str, str, str, str]


def _steps(tables: list[str], keys: list[_ForeignKey], shards: int) -> Iterator[sql.Composed]:
    """Of foreign keys (table, table that it refers to, name, definition) none may be there while one of its tables is
    distributed and the other isn't yet. Those to tables that stay go for good, so that no server needs the coordinator.
    """
    yield sql.SQL("SET LOCAL statement_timeout = 0").format()
    yield sql.SQL("SET LOCAL citus.multi_shard_modify_mode = 'sequential'").format()
    for table, _, name, _ in keys:
        yield sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(Identifier(table), Identifier(name))
    first, *others = tables
    yield sql.SQL(
        "SELECT create_distributed_table({}, 'tenant_id', colocate_with => 'none', shard_count => {})"
    ).format(sql.Literal(first), sql.Literal(shards))
    for table in others:
        yield sql.SQL("SELECT create_distributed_table({}, 'tenant_id', colocate_with => {})").format(
            sql.Literal(table), sql.Literal(first)
        )
    for table, target, name, definition in keys:
        if target in tables:
            yield sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} " + definition).format(
                Identifier(table), Identifier(name)
            )
    for alias in (rights.SERVICE, rights.ADMIN):
        role = Identifier(rights.role_of(alias))
        # What enters a tenant has to reach the servers; and so have limits, which come with a connection otherwise.
        yield sql.SQL("ALTER ROLE {} SET citus.propagate_set_commands = 'local'").format(role)
        for name, value in settings.TIMEOUTS.items():
            if value:
                yield sql.SQL("ALTER ROLE {} SET {} = {}").format(role, Identifier(name), sql.Literal(value))


def set_estimates() -> None:
    """Say to the servers what the migrations say to the planner of one, whose tables these are not.

    Again after each move or split of a shard. It can't be done in the transaction that distributes.
    """
    with connections[rights.OWNER].cursor() as cursor:
        cursor.execute(_ESTIMATED, [distributed_tables()])
        for (table,) in cursor.fetchall():
            cursor.execute(
                "SELECT result FROM run_command_on_shards(%s, %s) WHERE NOT success LIMIT 1",
                [table, "ALTER TABLE %s ALTER tenant_id SET (n_distinct = 1)"],
            )
            if refused := cursor.fetchone():
                raise NotDistributable(f"{table}: {refused[0]}; run this again with --estimates.")
            cursor.execute(sql.SQL("ANALYZE {}").format(Identifier(table)))


_ESTIMATED: Final = """
SELECT attrelid::regclass::text FROM pg_attribute
WHERE attrelid = ANY (%s::regclass[]) AND attname = 'tenant_id' AND attoptions @> '{n_distinct=1}' ORDER BY 1
"""


def role_hears(alias: str) -> bool:
    """Whether what a role's transactions enter reaches the servers that have the rows."""
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT current_setting('citus.propagate_set_commands', true)")
        return bool(cursor.fetchone() == ("local",))


_FOREIGN_KEYS: Final = """
SELECT conrelid::regclass::text, confrelid::regclass::text, conname, pg_get_constraintdef(oid)
FROM pg_constraint WHERE contype = 'f' AND conrelid = ANY (%s::regclass[]) ORDER BY 1, 3
"""


def schema_faults(alias: str = rights.SERVICE) -> list[str]:
    """What of the schema can't be distributed by tenant, each as a sentence. It asks any PostgreSQL."""
    with connections[alias].cursor() as cursor:
        cursor.execute(_SCHEMA_FAULTS, [distributed_tables()] * 2)
        return [f"{table}: {fault} ({what})" for table, fault, what in cursor.fetchall()]


_SCHEMA_FAULTS: Final = """
WITH distributed AS (SELECT oid, relname FROM pg_class WHERE oid = ANY (%s::regclass[]))
SELECT relname, 'a unique key that does not begin with tenant_id', i.indexrelid::regclass::text
FROM distributed JOIN pg_index i ON i.indrelid = distributed.oid AND i.indisunique
WHERE NOT EXISTS (
    SELECT FROM pg_attribute WHERE attrelid = i.indrelid AND attnum = i.indkey[0] AND attname = 'tenant_id'
)
UNION ALL
SELECT relname, 'a foreign key without the tenant', conname || ' ' || pg_get_constraintdef(k.oid)
FROM distributed JOIN pg_constraint k ON k.conrelid = distributed.oid AND k.contype = 'f'
WHERE k.confrelid IN (SELECT oid FROM distributed) AND NOT EXISTS (
    SELECT FROM unnest(k.conkey, k.confkey) AS pair (ours, theirs)
    JOIN pg_attribute o ON o.attrelid = k.conrelid AND o.attnum = pair.ours AND o.attname = 'tenant_id'
    JOIN pg_attribute t ON t.attrelid = k.confrelid AND t.attnum = pair.theirs AND t.attname = 'tenant_id'
)
UNION ALL
SELECT relname, 'a foreign key that a distributed one cannot have', conname || ' ' || pg_get_constraintdef(k.oid)
FROM distributed JOIN pg_constraint k ON k.conrelid = distributed.oid AND k.contype = 'f'
WHERE k.confrelid IN (SELECT oid FROM distributed)
  AND (k.confdeltype IN ('n', 'd') OR k.confupdtype IN ('c', 'n', 'd') OR k.condeferrable AND k.condeferred)
UNION ALL
SELECT k.conrelid::regclass::text, 'a foreign key of a table that stays to one that goes', conname
FROM pg_constraint k JOIN distributed ON k.confrelid = distributed.oid
WHERE k.contype = 'f' AND NOT k.conrelid = ANY (%s::regclass[])
UNION ALL
SELECT relname, 'an exclusion constraint', conname
FROM distributed JOIN pg_constraint k ON k.conrelid = distributed.oid AND k.contype = 'x'
UNION ALL
SELECT relname, 'a trigger', tgname
FROM distributed JOIN pg_trigger t ON t.tgrelid = distributed.oid AND NOT t.tgisinternal
UNION ALL
SELECT relname, 'a rule', rulename FROM distributed JOIN pg_rewrite r ON r.ev_class = distributed.oid
UNION ALL
SELECT relname, 'a sequence or an identity', attname
FROM distributed JOIN pg_attribute a ON a.attrelid = distributed.oid AND a.attnum > 0
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attidentity <> '' OR pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval%%'
UNION ALL
SELECT relname, 'no tenant_id of type uuid that is not null', coalesce(format_type(a.atttypid, NULL), 'none')
FROM distributed LEFT JOIN pg_attribute a ON a.attrelid = distributed.oid AND a.attname = 'tenant_id'
WHERE a.attname IS NULL OR a.atttypid <> 'uuid'::regtype OR NOT a.attnotnull
UNION ALL
SELECT proname, 'a function in SQL, whose parameters say nothing of where rows are', relname
FROM distributed JOIN pg_proc ON prosrc LIKE '%%' || relname || '%%'
WHERE prosecdef AND pronamespace = 'public'::regnamespace
  AND prolang = (SELECT oid FROM pg_language WHERE lanname = 'sql')
ORDER BY 1, 2, 3
"""
