"""Two tenants, whose trees hold the same entries where a test wants to see them kept apart."""

import pytest

from memsvc.tree.access import Access
from tests.people import make_tenant
from tests.tree.support import access_to


@pytest.fixture
def memory(db: None) -> Access:
    """Alice's agent on Alice's default tree, which is empty."""
    return access_to(make_tenant("alice"))


@pytest.fixture
def stranger(db: None) -> Access:
    """Bob's agent on Bob's default tree, which is empty."""
    return access_to(make_tenant("bob"))
