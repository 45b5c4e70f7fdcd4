"""Two tenants: what one imports, the other must never see."""

import pytest

from memsvc.tree.access import Access
from memsvc.tree.trees import tree_of
from tenants.actors import SYSTEM
from tests.people import make_tenant


@pytest.fixture
def memory(db: None) -> Access:
    """An empty tree."""
    return Access(tree=tree_of(make_tenant("alice")), actor=SYSTEM)


@pytest.fixture
def other(db: None) -> Access:
    """Another tenant's empty tree."""
    return Access(tree=tree_of(make_tenant("bob")), actor=SYSTEM)
