"""Two tenants with the same paths in their trees: what one does, the other must neither see nor feel."""

import pytest

from memsvc.tree.access import Access
from tenants.models import Tenant
from tests.people import make_tenant
from tests.tree.support import access_to


@pytest.fixture
def alice(db: None) -> Tenant:
    return make_tenant("alice")


@pytest.fixture
def bob(db: None) -> Tenant:
    return make_tenant("bob")


@pytest.fixture
def memory(alice: Tenant) -> Access:
    """Alice's agent on Alice's default tree, which is empty."""
    return access_to(alice)


@pytest.fixture
def stranger(bob: Tenant) -> Access:
    """Bob's agent on Bob's default tree, which is empty."""
    return access_to(bob)
