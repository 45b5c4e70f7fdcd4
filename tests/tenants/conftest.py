import pytest

from tenants.models import Tenant
from tests.people import make_tenant


@pytest.fixture
def alice(db: None) -> Tenant:
    return make_tenant("alice")


@pytest.fixture
def bob(db: None) -> Tenant:
    return make_tenant("bob")
