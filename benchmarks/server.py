"""The real server for benchmarks over HTTP: one for the whole run."""

import os
from functools import cache

from benchmarks.measure import children_of
from memsvc.client import MemsvcClient
from memsvc.testing import server_url
from memsvc.tree.models import Tree
from tenants.scopes import Scope
from tenants.services import create_key


@cache
def server_pids() -> list[int]:
    """The server's first process, the parent of its workers."""
    server_url()
    return children_of(os.getpid())


def key_of(tree: Tree) -> str:
    return create_key(tenant=tree.tenant, name="benchmark", scopes=(Scope.READ, Scope.WRITE, Scope.EXPORT))[1]


def client_of(tree: Tree) -> MemsvcClient:
    return MemsvcClient(server_url(), key_of(tree))
