"""Rows spread over several servers by their tenant, with Citus: what can be, and what stands in the way.

All rows of a tenant are on one server, so a statement that names its tenant for every table goes there whole. Keys and
members stay on the coordinator, where they are looked up before anybody knows whose request it is.
"""

from typing import Final

from django.db import connections

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
