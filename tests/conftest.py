"""What all tests share: a throw-away PostgreSQL, and the real server on it for tests that go over HTTP."""

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import django
import httpx
import pytest
from django.db import connection, connections
from psycopg.conninfo import make_conninfo

from memsvc.embedded import Cluster, ClusterInUse, data_folder

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 60

# One cluster for all runs going on at the same time, each with a database of its own. The last one removes it.
# DATABASE_URL, where given, is the server to make the test database on.
cluster = Cluster(data_folder() / "test-pg")
own_server = "DATABASE_URL" not in os.environ

# Settings read these once, so they come before everything that imports Django's settings.
os.environ |= {
    "DJANGO_SETTINGS_MODULE": "memsvc.settings",
    "MEMSVC_ENV": "local",
    "MEMSVC_SECRET_KEY": secrets.token_urlsafe(48),
    "MEMSVC_KEY_PEPPER": secrets.token_urlsafe(48),
    "MEMSVC_POOL_SIZE": "20",
    "MEMSVC_LOG_LEVEL": "WARNING",
}
if own_server:
    os.environ["DATABASE_URL"] = cluster.url("postgres")

# Here, because pytest loads the conftest files of sub-folders, which may import models, before it configures Django.
django.setup()


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> Iterator[None]:
    """pytest-django's hook before it makes the test database; runs that need none start no server."""
    connections["default"].settings_dict["TEST"]["NAME"] = f"test_memsvc_{os.getpid()}_{secrets.token_hex(3)}"
    if not own_server:
        yield
        return
    cluster.hold("postgres")
    yield
    with suppress(ClusterInUse):
        cluster.remove()


@pytest.fixture(scope="session")
def live_url(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of the real server, gunicorn, on the test database.

    It sees what is committed: use it with `@pytest.mark.django_db(transaction=True)`.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        log = tmp_path_factory.mktemp("server") / "log"
        server = _start_server(listener, database_url, log)
    try:
        _await_ready(url, server, log)
        yield url
    finally:
        server.terminate()
        server.wait(timeout=START_SECONDS)


def _start_server(listener: socket.socket, database_url: str, log: Path) -> subprocess.Popen[bytes]:
    # The listening socket is handed over, so that no other process can take the port in between.
    environment = os.environ | {
        "DATABASE_URL": database_url,
        "MEMSVC_BIND": f"fd://{listener.fileno()}",
        "MEMSVC_POOL_SIZE": "8",
    }
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "gunicorn"],
            cwd=ROOT,
            env=environment,
            pass_fds=[listener.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def _await_ready(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        with suppress(httpx.TransportError):
            if httpx.get(f"{url}/readyz").status_code == 200:
                return
        time.sleep(0.1)
    pytest.fail(f"the server did not get ready:\n{log.read_text()}")


@pytest.fixture(scope="session")
def database_url(django_db_setup: None) -> str:
    """DATABASE_URL for other processes that work on the test database."""
    parameters = connection.get_connection_params()
    names = ("host", "port", "user", "password", "dbname")
    return make_conninfo(**{name: parameters[name] for name in names if parameters.get(name)})
