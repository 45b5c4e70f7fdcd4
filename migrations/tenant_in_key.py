"""Primary keys that begin with the tenant, so that rows can be distributed by it. Django goes on thinking of `id`.

Nothing in the database refers to `id` alone: composite keys have their own unique constraints. The new key's index is
built while others read and write; exchanging the keys takes a moment's lock. Each step may be repeated, so that a
migration that was cut short is finished by the next run.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db import migrations

# For what waits behind long readers, in place of the role's own limits.
LIMITS = "SET statement_timeout = 0", "SET lock_timeout = 0"
_LOCK_LIMIT = "SET lock_timeout = '5s'"


class KeysWithTenant(migrations.RunPython):
    """For a migration that is not atomic, of tables whose key is `id` alone."""

    reduces_to_sql = False

    def __init__(self, *tables: str) -> None:
        super().__init__(
            partial(_exchange, tables=tables, columns=["tenant_id", "id"]),
            partial(_exchange, tables=tables, columns=["id"]),
        )


def _exchange(apps: Any, schema_editor: Any, *, tables: Sequence[str], columns: list[str]) -> None:
    with schema_editor.connection.cursor() as cursor:
        limits = {}
        for name in ("statement_timeout", "lock_timeout"):
            cursor.execute("SELECT current_setting(%s)", [name])
            limits[name] = cursor.fetchone()[0]
        for table in tables:
            cursor.execute(_KEY, [f"{table}_pkey"])
            if cursor.fetchone()[0] == columns:
                continue
            for statement in LIMITS:
                cursor.execute(statement)
            # What an earlier run may have left half done.
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {table}_new_key")
            cursor.execute(f"CREATE UNIQUE INDEX CONCURRENTLY {table}_new_key ON {table} ({', '.join(columns)})")
            cursor.execute(_LOCK_LIMIT)
            cursor.execute(
                f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey,"
                f" ADD CONSTRAINT {table}_pkey PRIMARY KEY USING INDEX {table}_new_key"
            )
        for name, value in limits.items():
            cursor.execute("SELECT set_config(%s, %s, false)", [name, value])


_KEY = """
SELECT array_agg(attname::text ORDER BY place)
FROM pg_constraint, unnest(conkey) WITH ORDINALITY AS part (number, place)
JOIN pg_attribute ON attnum = part.number
WHERE conname = %s AND attrelid = conrelid
"""
