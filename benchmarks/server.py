"""The real server for benchmarks over HTTP: one for the whole run."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from benchmarks.measure import children_of
from memsvc.client import MemsvcClient
from memsvc.testing import running_server, server_url
from memsvc.tree.models import Tree
from tenants.scopes import Scope
from tenants.services import create_key


@contextmanager
def server_with(tree: Tree, **variables: str) -> Iterator[tuple[MemsvcClient, list[int]]]:
    """A server of its own with these variables of the environment: a client of it, and its first process."""
    before, known = dict(os.environ), children_of(os.getpid())
    os.environ |= variables
    try:
        with running_server() as url, MemsvcClient(url, key_of(tree)) as client:
            yield client, [pid for pid in children_of(os.getpid()) if pid not in known]
    finally:
        os.environ.clear()
        os.environ |= before


@cache
def server_pids() -> list[int]:
    """The server's first process, the parent of its workers."""
    server_url()
    return children_of(os.getpid())


def key_of(tree: Tree) -> str:
    return create_key(tenant=tree.tenant, name="benchmark", scopes=(Scope.READ, Scope.WRITE, Scope.EXPORT))[1]


def client_of(tree: Tree) -> MemsvcClient:
    return MemsvcClient(server_url(), key_of(tree))
