import pytest
from rest_framework.test import APIClient

from tenants.models import Tenant
from tests.people import READ, make_key, make_tenant


def client_with(key: str) -> APIClient:
    """A client that answers a 500 as a 500, as the server would."""
    client = APIClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}")
    return client


@pytest.fixture
def alice(db: None) -> Tenant:
    return make_tenant("alice")


@pytest.fixture
def bob(db: None) -> Tenant:
    return make_tenant("bob")


@pytest.fixture
def api(alice: Tenant) -> APIClient:
    """Alice's agent: reads, writes and exports."""
    return client_with(make_key(alice)[1])


@pytest.fixture
def reader(alice: Tenant) -> APIClient:
    """Alice's recall agent: only reads."""
    return client_with(make_key(alice, READ)[1])


@pytest.fixture
def stranger(bob: Tenant) -> APIClient:
    """Bob's agent, with every right in Bob's own trees."""
    return client_with(make_key(bob)[1])
