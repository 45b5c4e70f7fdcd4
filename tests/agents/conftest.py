"""Memories of every kind: on disk, in a store, in Postgres."""

from collections.abc import Callable
from pathlib import Path

import pytest
from deepagents.backends import StoreBackend
from deepagents.backends.protocol import BackendProtocol
from langgraph.store.memory import InMemoryStore

from memsvc.agents import MemoryStore, build_memory_backend
from memsvc.testing import fresh_backend


def on_disk(folder: Path) -> BackendProtocol:
    return build_memory_backend(folder / "memory", for_deep_agent=False)


def in_a_store(_: Path) -> BackendProtocol:
    return StoreBackend(store=InMemoryStore(), namespace=lambda _: ("memory",))


def in_postgres(_: Path) -> BackendProtocol:
    return fresh_backend()


FILES: dict[str, Callable[[Path], BackendProtocol]] = {"disk": on_disk, "store": in_a_store}
EVERYWHERE = FILES | {"postgres": in_postgres}

# Other threads write, too, so a test can't be wrapped in a transaction.
WITH_DATABASE = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=[*FILES, pytest.param("postgres", marks=WITH_DATABASE)])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> BackendProtocol:
    return EVERYWHERE[request.param](tmp_path)


@pytest.fixture
def store(backend: BackendProtocol) -> MemoryStore:
    store = MemoryStore(backend)
    store.ensure_tree()
    return store


@pytest.fixture(params=list(FILES))
def files(request: pytest.FixtureRequest, tmp_path: Path) -> BackendProtocol:
    """A backend without transactions."""
    return FILES[request.param](tmp_path)
