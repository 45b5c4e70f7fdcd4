from collections.abc import Iterator

import pytest

from tenants.last_use import LAST_USES
from tenants.models import Tenant
from tests.people import make_tenant


@pytest.fixture
def alice(db: None) -> Tenant:
    return make_tenant("alice")


@pytest.fixture
def bob(db: None) -> Tenant:
    return make_tenant("bob")


@pytest.fixture(autouse=True)
def no_late_writes() -> Iterator[None]:
    """A noted use would be written a minute later, in the middle of another test."""
    yield
    LAST_USES.forget()
