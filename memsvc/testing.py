"""For the tests of programs that use memsvc: backends on new, empty trees, with nothing to set up.

The first call starts a throw-away database (on the embedded PostgreSQL, or on the server of DATABASE_OWNER_URL, which
must be a superuser's there), and the first remote backend a real server on it; both end with the process. Where Django
is configured already, as under pytest-django, its database is used as it is.
"""

import atexit
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from memsvc.embedded import URLS, Cluster, ClusterInUse, data_folder

if TYPE_CHECKING:
    from memsvc.agents import PostgresBackend, RemoteBackend
    from memsvc.tree.models import Tree

_ROOT: Final = Path(__file__).resolve().parent.parent
_START_SECONDS: Final = 60
_STOP_SECONDS: Final = 30
# On the embedded server.
OWNER_ROLE: Final = "memsvc_owner"


def fresh_backend(name: str | None = None) -> "PostgresBackend":
    """A backend on the empty default tree of a new tenant, whose "/" may be deleted, which empties it.

    `name` is the tenant's, for people to read.
    """
    tree = fresh_tree(name)
    from memsvc.agents import PostgresBackend

    return PostgresBackend(tree, root_deletable=True)


def fresh_remote_backend(name: str | None = None) -> "RemoteBackend":
    """As `fresh_backend`, over HTTP to a real server of this process, with a key that may read and write."""
    tree = fresh_tree(name)
    from django.db import close_old_connections

    from memsvc.agents import RemoteBackend
    from tenants.scopes import Scope
    from tenants.services import create_key

    _, key = create_key(tenant=tree.tenant, name="test", scopes=(Scope.READ, Scope.WRITE, Scope.EXPORT))
    close_old_connections()
    return RemoteBackend(server_url(), api_key=key, root_deletable=True)


def fresh_tree(name: str | None = None) -> "Tree":
    """The empty default tree of a new tenant."""
    set_up()
    from django.db import close_old_connections

    from memsvc.tree.trees import tree_of
    from tenants.services import create_tenant

    slug = f"test-{secrets.token_hex(8)}"
    tree = tree_of(create_tenant(slug=slug, name=name or slug))
    close_old_connections()
    return tree


@cache
def server_url() -> str:
    """The base URL of a real server on this process's database. It sees only what was committed."""
    set_up()
    server = ExitStack()
    url = server.enter_context(running_server())
    atexit.register(server.close)
    return url


@contextmanager
def running_server() -> Iterator[str]:
    """A real server, on the database that Django uses here, for the length of the block. Gives its base URL."""
    with tempfile.TemporaryDirectory(prefix="memsvc-server-") as folder:
        log = Path(folder) / "log"
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            server = _start_server(listener, log)
        try:
            _await_ready(url, server, log)
            yield url
        finally:
            _stop_server(server)


def _start_server(listener: socket.socket, log: Path) -> subprocess.Popen[bytes]:
    # The listening socket is handed over, so that no other process can take the port in between.
    environment = os.environ | database_urls() | {"MEMSVC_BIND": f"fd://{listener.fileno()}"}
    environment.pop("DATABASE_OWNER_URL", None)
    environment.pop("MEMSVC_POOL_SIZE", None)
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "gunicorn"],
            cwd=_ROOT,
            env=environment,
            pass_fds=[listener.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def _await_ready(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        with suppress(httpx.TransportError):
            if httpx.get(f"{url}/readyz").status_code == 200:
                return
        time.sleep(0.1)
    raise RuntimeError(f"the server did not get ready:\n{log.read_text()}")


def _stop_server(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(timeout=_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def database_urls() -> dict[str, str]:
    """The variables for another process that works on Django's database here; under pytest-django the test database."""
    from django.db import connections

    found = {}
    for variable, alias in zip(URLS, ("default", "admin", "owner"), strict=True):
        parameters = connections[alias].get_connection_params()
        names = ("host", "port", "user", "password", "dbname")
        found[variable] = make_conninfo(**{name: parameters[name] for name in names if parameters.get(name)})
    return found


@cache
def set_up() -> None:
    """Set Django up on a throw-away database, for what imports models; the other functions do it by themselves."""
    from django.conf import settings

    if settings.configured:
        return
    database = ExitStack()
    atexit.register(database.close)
    urls = database.enter_context(throw_away_database())
    # Settings read these once. What is set already stays.
    defaults = {
        "DJANGO_SETTINGS_MODULE": "memsvc.settings",
        "MEMSVC_ENV": "local",
        "MEMSVC_SECRET_KEY": secrets.token_urlsafe(48),
        "MEMSVC_KEY_PEPPER": secrets.token_urlsafe(48),
        "MEMSVC_POOL_SIZE": "20",
        "MEMSVC_LOG_LEVEL": "WARNING",
    }
    os.environ |= defaults | dict(os.environ) | urls
    import django
    from django.core.management import call_command
    from django.db import connections

    django.setup()
    with Path(os.devnull).open("w") as nowhere:
        call_command("database_roles", stdout=nowhere)
    call_command("migrate", verbosity=0)
    connections.close_all()


@contextmanager
def throw_away_database() -> Iterator[dict[str, str]]:
    """A new database for the length of the block. Gives the variables with the URLs of the three that use it.

    As in production the owner is no superuser; roles are made with `manage.py database_roles`.
    """
    name = f"memsvc_testing_{os.getpid()}_{secrets.token_hex(3)}"
    with ExitStack() as server:
        if os.environ.get("DATABASE_OWNER_URL"):
            urls = {variable: make_conninfo(os.environ.get(variable, ""), dbname=name) for variable in URLS}
        else:
            cluster = throw_away_cluster()
            server.callback(_let_go, cluster)
            cluster.hold("postgres")
            urls = dict(zip(URLS, cluster.urls(name), strict=True)) | {
                "DATABASE_OWNER_URL": cluster.url(name, user=OWNER_ROLE)
            }
        superuser = superuser_url()
        owner = sql.Identifier(str(conninfo_to_dict(urls["DATABASE_OWNER_URL"])["user"]))
        with psycopg.connect(superuser, autocommit=True) as connection:
            # Several runs may come at the same time.
            with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
                connection.execute(
                    sql.SQL("CREATE ROLE {} LOGIN CREATEROLE CREATEDB BYPASSRLS").format(owner)
                )
                connection.execute(sql.SQL("GRANT pg_checkpoint TO {}").format(owner))
            database = sql.Identifier(name)
            connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(database, owner))
        server.callback(_drop_database, superuser, name)
        with psycopg.connect(make_conninfo(superuser, dbname=name)) as connection:
            # The only one that is a superuser's to make.
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        yield urls


def superuser_url() -> str:
    """Of the server on which throw-away databases are made."""
    return os.environ.get("DATABASE_OWNER_URL") or throw_away_cluster().url("postgres")


def throw_away_cluster() -> Cluster:
    """One for all runs that go on at the same time, each with a database of its own. The last one removes it."""
    return Cluster(data_folder() / "test-pg")


def _drop_database(server: str, name: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _let_go(cluster: Cluster) -> None:
    with suppress(ClusterInUse):
        cluster.remove()
