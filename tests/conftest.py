"""What all tests share: a throw-away PostgreSQL, and the real server on it for tests that go over HTTP."""

import os
import secrets
from collections.abc import Iterator
from contextlib import suppress

import django
import pytest
from django.db import connections
from django.db.backends.postgresql.operations import DatabaseOperations
from psycopg.pq import TransactionStatus

from memsvc import testing
from memsvc.embedded import Cluster, ClusterInUse, data_folder
from tests.servers import hurry

# One cluster for all runs going on at the same time, each with a database of its own. The last one removes it.
# DATABASE_URL, where given, is the server to make the test database on. Where tests run in several processes, the
# one that only gives out work has named ours already.
cluster = Cluster(data_folder() / "test-pg")
own_server = os.environ.get("DATABASE_URL", "") in ("", cluster.url("postgres"))

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
if own_server:
    os.environ["DATABASE_URL"] = cluster.url("postgres")

# Here, because pytest loads the conftest files of sub-folders, which may import models, before it configures Django.
django.setup()

from memsvc.recall.accesses import ACCESS_COUNTS  # noqa: E402
from tenants.last_use import LAST_USES  # noqa: E402


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> Iterator[None]:
    """pytest-django's hook before it makes the test database; runs that need none start no server."""
    connections["default"].settings_dict["TEST"]["NAME"] = f"test_memsvc_{os.getpid()}_{secrets.token_hex(3)}"
    # What tells this process's sessions from those of the servers that it starts.
    connections["default"].settings_dict["OPTIONS"]["application_name"] = f"tests of {os.getpid()}"
    if not own_server:
        yield
        return
    cluster.hold("postgres")
    hurry(cluster)
    yield
    with suppress(ClusterInUse):
        cluster.remove()


@pytest.fixture(autouse=True, scope="session")
def _emptied_by_deleting() -> Iterator[None]:
    """Empty the tables after a test row by row, without foreign keys looking on.

    TRUNCATE makes every table and index anew, which takes longer for the few rows of a test, and its locks can
    deadlock with what a server still writes.
    """

    def statements(
        self: DatabaseOperations, style: object, tables: list[str], **options: object
    ) -> list[str]:
        rows = [f"DELETE FROM {self.quote_name(table)};" for table in tables]
        return ["SET LOCAL session_replication_role = replica;", *rows]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseOperations, "sql_flush", statements)
        yield


@pytest.fixture(autouse=True)
def no_late_writes() -> Iterator[None]:
    """What a test has noted would be written a minute later, in the middle of another one."""
    yield
    LAST_USES.forget()
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
    with used.cursor() as cursor:
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


@pytest.fixture(scope="session")
def database_url(django_db_setup: None) -> str:
    """DATABASE_URL for other processes that work on the test database."""
    return testing.database_url()


@pytest.fixture(scope="session")
def live_url(django_db_setup: None) -> Iterator[str]:
    """The base URL of the real server, gunicorn, on the test database.

    It sees what is committed: use it with `@pytest.mark.django_db(transaction=True)`.
    """
    with testing.running_server() as url:
        yield url
