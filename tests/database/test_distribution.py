"""That tables can be distributed by tenant, and how that is done, as far as plain PostgreSQL can tell."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import connection, transaction

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


def test_a_model_still_has_its_id_for_a_key() -> None:
    for model in apps.get_models():
        if model._meta.managed and model._meta.db_table in distribution.distributed_tables():
            assert model._meta.pk.name == "id"
