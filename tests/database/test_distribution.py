"""That tables can be distributed by tenant, and how that is done, as far as plain PostgreSQL can tell."""

from collections.abc import Callable
from io import StringIO
from types import SimpleNamespace

import psycopg
import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from memsvc import checks
from memsvc.database import distribution, rights
from migrations.tenant_in_key import KeysWithTenant
from tests.tree.support import from_outside

pytestmark = pytest.mark.django_db(transaction=True)


def test_nothing_of_the_schema_is_in_the_way() -> None:
    assert distribution.schema_faults() == []


def test_what_stays_has_rows_of_tenants() -> None:
    assert distribution.LOCAL.keys() <= rights.tenant_tables().keys()
    assert {"tree_tree", "tree_block", "recall_vector", "tenants_storedanswer"} <= set(
        distribution.distributed_tables()
    )


@pytest.mark.parametrize(
    ("planted", "table", "fault"),
    [
        (
            "ALTER TABLE tree_revision DROP CONSTRAINT tree_revision_pkey, ADD PRIMARY KEY (id)",
            "tree_revision",
            "a unique key",
        ),
        ("CREATE UNIQUE INDEX planted ON tree_file (path)", "tree_file", "a unique key"),
        (
            "ALTER TABLE tree_file ADD CONSTRAINT planted UNIQUE (path, tenant_id)",
            "tree_file",
            "a unique key",
        ),
        ("ALTER TABLE tree_redaction ADD key_id uuid UNIQUE", "tree_redaction", "a unique key"),
        (
            "ALTER TABLE tree_file ADD CONSTRAINT planted_key UNIQUE (id);"
            " ALTER TABLE tree_redaction ADD CONSTRAINT planted FOREIGN KEY (file_id) REFERENCES tree_file (id)",
            "tree_redaction",
            "a foreign key without",
        ),
        (
            "ALTER TABLE tree_redaction ADD CONSTRAINT planted FOREIGN KEY (tenant_id, file_id)"
            " REFERENCES tree_tree (tenant_id, id) ON DELETE SET NULL",
            "tree_redaction",
            "a foreign key that",
        ),
        (
            "ALTER TABLE tenants_keyusage ADD tree_id uuid, ADD CONSTRAINT planted"
            " FOREIGN KEY (tenant_id, tree_id) REFERENCES tree_tree (tenant_id, id)",
            "tenants_keyusage",
            "a foreign key of a table that stays",
        ),
        ("ALTER TABLE tree_tree ADD number bigserial", "tree_tree", "a sequence"),
        ("ALTER TABLE tree_tree ADD number bigint GENERATED ALWAYS AS IDENTITY", "tree_tree", "a sequence"),
        (
            "CREATE TRIGGER planted BEFORE UPDATE ON tree_tree FOR EACH ROW"
            " EXECUTE FUNCTION suppress_redundant_updates_trigger()",
            "tree_tree",
            "a trigger",
        ),
        ("CREATE RULE planted AS ON DELETE TO tree_tree DO INSTEAD NOTHING", "tree_tree", "a rule"),
        ("ALTER TABLE tree_revision ALTER tenant_id DROP NOT NULL", "tree_revision", "no tenant_id"),
        (
            "CREATE FUNCTION memsvc_planted(t uuid) RETURNS SETOF uuid LANGUAGE sql SECURITY DEFINER"
            " AS 'SELECT id FROM tree_tree WHERE tenant_id = t'",
            "memsvc_planted",
            "a function in SQL",
        ),
    ],
)
def test_what_is_in_the_way_is_found(planted: str, table: str, fault: str) -> None:
    with from_outside(), transaction.atomic():
        with connection.cursor() as cursor:
            if "DROP NOT NULL" in planted:
                cursor.execute("ALTER TABLE tree_revision DROP CONSTRAINT tree_revision_pkey")
            cursor.execute(planted)
        found = distribution.schema_faults(rights.SERVICE)
        transaction.set_rollback(True)

    assert [each for each in found if each.startswith(f"{table}: {fault}")], found


KEY = """
SELECT pg_get_constraintdef(k.oid), array_agg(i.relname::text)
FROM pg_constraint k JOIN pg_index x ON x.indrelid = k.conrelid JOIN pg_class i ON i.oid = x.indexrelid
WHERE k.conrelid = 'planted'::regclass AND k.contype = 'p' GROUP BY k.oid
"""


def test_keys_are_exchanged_in_a_filled_table_and_back() -> None:
    exchange = KeysWithTenant("planted")

    def migrate(step: Callable[..., None]) -> tuple[str, list[str]]:
        step(apps, SimpleNamespace(connection=connection))
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('statement_timeout'), current_setting('lock_timeout')")
            assert cursor.fetchone() == limits
            cursor.execute(KEY)
            key: tuple[str, list[str]] = cursor.fetchone()
            return key

    with from_outside(), connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('statement_timeout'), current_setting('lock_timeout')")
        limits = cursor.fetchone()
        cursor.execute("CREATE TABLE planted (id uuid PRIMARY KEY, tenant_id uuid NOT NULL)")
        try:
            cursor.execute("INSERT INTO planted SELECT uuidv7(), uuidv7() FROM generate_series(1, 1000)")
            # As a run leaves it that was cut short.
            cursor.execute("CREATE UNIQUE INDEX planted_new_key ON planted (id)")

            assert migrate(exchange.code) == ("PRIMARY KEY (tenant_id, id)", ["planted_pkey"])
            assert migrate(exchange.code) == ("PRIMARY KEY (tenant_id, id)", ["planted_pkey"])
            assert migrate(exchange.reverse_code or pytest.fail) == ("PRIMARY KEY (id)", ["planted_pkey"])
        finally:
            cursor.execute("DROP TABLE planted")


def run(*arguments: str) -> str:
    told = StringIO()
    call_command("distribute", *arguments, stdout=told, stderr=told)
    return told.getvalue()


def test_without_citus_nothing_is_distributed() -> None:
    with pytest.raises(CommandError, match="no extension `citus`"):
        run()
    with pytest.raises(CommandError, match="isn't distributed"):
        run("--estimates")
    with pytest.raises(CommandError, match="--shards"):
        run("--shards", "0")


# What the extension would bring, as far as it is asked: a table of its own, and what distributes.
CITUS = """
    CREATE TABLE pg_dist_partition (partmethod "char");
    GRANT SELECT ON pg_dist_partition TO PUBLIC;
    INSERT INTO pg_dist_partition VALUES ('n');
"""
DISTRIBUTES = """
    CREATE TABLE told (n serial, t regclass, place text, shards int);
    CREATE FUNCTION create_distributed_table(t regclass, c text, colocate_with text, shard_count int DEFAULT NULL)
    RETURNS void LANGUAGE sql AS
    'INSERT INTO told (t, place, shards) VALUES (t, colocate_with, shard_count)';
"""
FOREIGN_KEYS = """
    SELECT conrelid::regclass::text, confrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE contype = 'f' AND conrelid = ANY (%s::regclass[]) ORDER BY 1, 3
"""


def test_what_is_sent_distributes_each_table_and_keeps_references_between_them(
    superuser: psycopg.Connection,
) -> None:
    """All but what only Citus can do, in whose place it is noted."""
    sent = run("--dry-run", "--shards", "8").splitlines()
    tables = distribution.distributed_tables()

    with superuser.transaction(force_rollback=True):
        superuser.execute(DISTRIBUTES)
        before = superuser.execute(FOREIGN_KEYS, [tables]).fetchall()
        for statement in sent:
            if "create_distributed_table" in statement:
                assert superuser.execute(FOREIGN_KEYS, [tables]).fetchall() == []
            superuser.execute(statement.encode())
        after = superuser.execute(FOREIGN_KEYS, [tables]).fetchall()
        told = superuser.execute("SELECT t::text, place, shards FROM told ORDER BY n").fetchall()

    assert after == [key for key in before if key[1] in tables]
    assert {key[1] for key in before} - {key[1] for key in after} <= distribution.LOCAL.keys()
    assert told == [(tables[0], "none", 8), *((table, tables[0], None) for table in tables[1:])]
    for role in (rights.role_of(rights.SERVICE), rights.role_of(rights.ADMIN)):
        assert f"ALTER ROLE \"{role}\" SET citus.propagate_set_commands = 'local';" in sent
        assert any(line.startswith(f'ALTER ROLE "{role}" SET "lock_timeout"') for line in sent)


def test_a_distributed_database_is_known(
    superuser: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> set[str | None]:
        return {message.id for message in checks.check_distribution(databases=["default"])}

    assert found() == set()
    monkeypatch.setattr(settings, "DISTRIBUTED", True)
    assert found() == {"memsvc.W020"}
    superuser.execute(CITUS)
    try:
        assert found() == {"memsvc.W020"}
        superuser.execute("INSERT INTO pg_dist_partition VALUES ('h')")
        assert found() == {"memsvc.E021"}
        monkeypatch.setattr(settings, "DISTRIBUTED", False)
        assert found() == {"memsvc.E020", "memsvc.E021"}
        with pytest.raises(CommandError, match="no extension"):
            run()
    finally:
        superuser.execute("DROP TABLE pg_dist_partition")


def test_a_model_still_has_its_id_for_a_key() -> None:
    for model in apps.get_models():
        if model._meta.managed and model._meta.db_table in distribution.distributed_tables():
            assert model._meta.pk.name == "id"
