"""What all tests share: a throw-away PostgreSQL, and the real server on it for tests that go over HTTP.

Tests run as the role that serves in production, so a test that looks at rows enters their tenant as the service does:
`memsvc.database.tenancy`. What makes and empties the database does so as others.
"""

import os
import re
import secrets
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import django
import psycopg
import pytest
from django.core.management import call_command
from django.core.management.commands import flush
from django.db import connections
from django.db.backends.postgresql.operations import DatabaseOperations
from django.test import TransactionTestCase
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from pytest_django.plugin import DjangoDbBlocker

from memsvc import testing
from memsvc.embedded import URLS
from tests.servers import hurry

# Settings read these once, so they come before everything that imports Django's settings. The secrets stay what they
# are where another process of the tests has made them: there the settings have been read already.
for secret in ("MEMSVC_SECRET_KEY", "MEMSVC_KEY_PEPPER"):
    os.environ.setdefault(secret, secrets.token_urlsafe(48))
os.environ |= {
    "DJANGO_SETTINGS_MODULE": "memsvc.settings",
    "MEMSVC_ENV": "local",
    "MEMSVC_POOL_SIZE": "20",
    "MEMSVC_LOG_LEVEL": "WARNING",
    # Emptying tables and dropping the database sync files, which takes long where others write.
    "MEMSVC_STATEMENT_TIMEOUT": "120000",
}

# Here, because pytest loads the conftest files of sub-folders, which may import models, before it configures Django.
django.setup()

from memsvc.database import rights  # noqa: E402
from memsvc.database.tenancy import tenant_transaction  # noqa: E402
from memsvc.recall.accesses import ACCESS_COUNTS  # noqa: E402
from tenants.audit import REFUSALS  # noqa: E402
from tenants.last_use import LAST_USES  # noqa: E402
from tenants.services import all_tenants  # noqa: E402


@pytest.fixture(scope="session")
def django_db_setup(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """pytest-django's hook that makes the test database; runs that need none start no server."""
    with testing.throw_away_database() as urls:
        if not os.environ.get("DATABASE_OWNER_URL"):
            hurry(testing.throw_away_cluster())
        for variable, alias in zip(URLS, ("default", "admin", "owner"), strict=True):
            given = conninfo_to_dict(urls[variable])
            names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
            connections[alias].settings_dict |= {name: given.get(key, "") for name, key in names.items()}
            # What tells this process's sessions from those of the servers that it starts.
            connections[alias].settings_dict["OPTIONS"]["application_name"] = f"tests of {os.getpid()}"
        # For servers and commands that are started: they get by without the owner.
        os.environ |= {variable: urls[variable] for variable in URLS[:2]}
        with django_db_blocker.unblock():
            call_command("database_roles", stdout=StringIO())
            call_command("migrate", verbosity=0)
            # Tests gather statistics of what only they see.
            with connections["owner"].cursor() as owner:
                owner.execute(
                    f"GRANT MAINTAIN ON ALL TABLES IN SCHEMA public TO {rights.role_of(rights.SERVICE)}"
                )
        yield
        with django_db_blocker.unblock():
            connections.close_all()


@pytest.fixture(scope="session")
def superuser(django_db_setup: None) -> Iterator[psycopg.Connection]:
    """A connection to the test database that no policy binds: for what a test has to see or do from outside."""
    name = str(connections["default"].settings_dict["NAME"])
    with psycopg.connect(make_conninfo(testing.superuser_url(), dbname=name), autocommit=True) as connection:
        yield connection


@pytest.fixture(autouse=True, scope="session")
def _one_database() -> Iterator[None]:
    """The aliases are roles on one database: a test uses any of them, and what it left is deleted once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_add_databases_failures", classmethod(lambda cls: None))
        patch.setattr(TransactionTestCase, "_remove_databases_failures", classmethod(lambda cls: None))
        patch.setattr(TransactionTestCase, "_databases_names", lambda *args, **options: ["default"])
        yield


@pytest.fixture(autouse=True, scope="session")
def _emptied_by_deleting(request: pytest.FixtureRequest) -> Iterator[None]:
    """Empty the tables after a test row by row, without foreign keys and policies looking on.

    TRUNCATE makes every table and index anew, which takes longer for the few rows of a test, and its locks can
    deadlock with what a server still writes.
    """

    def statements(
        self: DatabaseOperations, style: object, tables: list[str], **options: object
    ) -> list[str]:
        return [f"DELETE FROM {self.quote_name(table)}" for table in tables if table not in _KEPT]

    def execute(self: DatabaseOperations, statements: list[str]) -> None:
        connection = request.getfixturevalue("superuser")
        with connection.transaction():
            connection.execute("SET LOCAL session_replication_role = replica")
            for statement in statements:
                connection.execute(statement)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseOperations, "sql_flush", statements)
        patch.setattr(DatabaseOperations, "execute_sql_flush", execute)
        patch.setattr(flush, "emit_post_migrate_signal", lambda *args, **options: None)
        yield


# What migrations and not tests put there.
_KEPT = ("django_migrations", "django_content_type", "auth_permission")


@pytest.fixture(autouse=True)
def no_late_writes() -> Iterator[None]:
    """What a test has noted would be written a minute later, in the middle of another one."""
    yield
    LAST_USES.forget()
    REFUSALS.forget()
    ACCESS_COUNTS.forget()


@pytest.fixture(autouse=True)
def _counts_hold(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test did to trees, what their rows say of their entries is true."""
    if not {"db", "transactional_db"}.intersection(
        request.fixturenames
    ) and not request.node.get_closest_marker("django_db"):
        yield
        return
    request.getfixturevalue("_django_db_helper")
    yield
    used = connections["default"]
    # A test may end in a transaction that nothing but a rollback can end.
    if used.connection is not None and used.connection.info.transaction_status is TransactionStatus.INERROR:
        return
    for tenant in all_tenants():
        with tenant_transaction(tenant.pk), used.cursor() as cursor:
            cursor.execute(_MISCOUNTED)
            assert cursor.fetchall() == []


_MISCOUNTED = """
SELECT t.name, t.entry_count, c.entries, t.term_count, c.terms
FROM tree_tree t CROSS JOIN LATERAL (
    SELECT count(*) AS entries, coalesce(sum(words), 0) AS terms FROM tree_block b
    WHERE b.tenant_id = t.tenant_id AND b.tree_id = t.id AND b.removed_in IS NULL
      AND b.kind = 'entry' AND b.expires_at IS NULL AND b.superseded_by = ''
) c WHERE (t.entry_count, t.term_count) <> (c.entries, c.terms)
"""


# A condition on the tenant, as our own statements and Django's spell it.
_TENANT_FILTER = re.compile(r"""((?:\w+\.|"\w+"\.)?"?tenant_id"?) = (%s|%\(\w+\)s)""")


@pytest.fixture
def without_tenant_filter() -> Iterator[Callable[..., Any]]:
    """Every statement of those who serve as if nobody had thought of tenants: what is left are the policies.

    Gives what takes the condition out, for the connection of another role.
    """

    def send(execute: Callable[..., Any], sql: Any, *args: Any) -> Any:
        return execute(_TENANT_FILTER.sub(r"(\1 = \2 OR true)", sql) if isinstance(sql, str) else sql, *args)

    with connections["default"].execute_wrapper(send), connections["admin"].execute_wrapper(send):
        yield send


@pytest.fixture(scope="session")
def database_url(django_db_setup: None) -> str:
    """DATABASE_URL for other processes that work on the test database."""
    return testing.database_urls()["DATABASE_URL"]


@pytest.fixture(scope="session")
def live_url(django_db_setup: None) -> Iterator[str]:
    """The base URL of the real server, gunicorn, on the test database.

    It sees what is committed: use it with `@pytest.mark.django_db(transaction=True)`.
    """
    with testing.running_server() as url:
        yield url
