"""Clients of the real server: two tenants, so that each test can ask whether one sees the other."""

from collections.abc import Callable, Iterator

import pytest

from memsvc.agents import RemoteBackend
from memsvc.client import MemsvcClient
from tenants.models import Tenant
from tenants.scopes import Scope
from tests.people import make_key, make_tenant

type Connect = Callable[..., MemsvcClient]


@pytest.fixture
def alice(transactional_db: None) -> Tenant:
    return make_tenant("alice")


@pytest.fixture
def connect(live_url: str, alice: Tenant) -> Iterator[Connect]:
    """Makes clients with a key of Alice's (or of a `tenant`) that has the scopes named, or may read, write, export."""
    opened: list[MemsvcClient] = []

    def open_client(
        *scopes: Scope, tenant: Tenant = alice, tree: str = "default", path_prefix: str = "/"
    ) -> MemsvcClient:
        _, key = make_key(tenant, *scopes, path_prefix=path_prefix)
        opened.append(MemsvcClient(live_url, key, tree=tree))
        return opened[-1]

    yield open_client
    for client in opened:
        client.close()


@pytest.fixture
def client(connect: Connect) -> MemsvcClient:
    return connect()


@pytest.fixture
def stranger(connect: Connect) -> MemsvcClient:
    return connect(tenant=make_tenant("bob"))


@pytest.fixture
def backend(client: MemsvcClient) -> RemoteBackend:
    return RemoteBackend(client)
