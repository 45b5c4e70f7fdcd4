"""The migration that leaves nothing to read of Idempotency-Keys."""

from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection

from memsvc.database.tenancy import tenant_transaction
from tenants import idempotency
from tenants.models import StoredAnswer
from tests.people import make_tenant

pytestmark = pytest.mark.django_db


def test_requests_of_before_are_known_still() -> None:
    tenant = make_tenant("alice")
    with tenant_transaction(tenant.pk):
        StoredAnswer(tenant=tenant, key="jane-doe", fingerprint="f" * 64, body=b"{}").save(force_insert=True)
        StoredAnswer(tenant=tenant, key="redacted", fingerprint="").save(force_insert=True)
        with connection.schema_editor() as editor:
            import_module("migrations.tenants.0008_idempotency_digests").keep_digests(apps, editor)
        stored = [*StoredAnswer.objects.order_by("pk")]

    assert [each.key for each in stored if "jane" in each.key] == []
    known = idempotency.stored(tenant, "jane-doe")
    assert known is not None
    assert idempotency.is_of(known, "f" * 64)
    assert stored[1].fingerprint == ""
