"""Work that goes through all tenants: what fails of one is left for the next time, and the others have theirs done."""

import logging
from datetime import timedelta

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from memsvc.database.sweeps import failing_alone
from memsvc.recall import vectors
from memsvc.recall.models import Vector
from memsvc.tree.models import Block
from tenants import idempotency
from tenants.models import StoredAnswer
from tests.people import make_tenant
from tests.tree.support import access_to, add, from_outside, in_days, of_tenant

pytestmark = pytest.mark.django_db(transaction=True)


def held(database_url: str, table: str, tenant_id: object) -> psycopg.Connection:
    """Somebody who holds a tenant's rows, and whom the others soon wait for in vain."""
    other = psycopg.connect(database_url)
    other.execute("SELECT set_config('memsvc.tenant_id', %s, true)", [str(tenant_id)])
    other.execute(f"SELECT 1 FROM {table} WHERE tenant_id = %s FOR UPDATE", [tenant_id])
    return other


def test_answers_of_other_tenants_go_where_one_is_held(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    tenants = [make_tenant(name) for name in ("alice", "bob", "carol")]
    with from_outside():
        for tenant in tenants:
            StoredAnswer(tenant=tenant, key="k", fingerprint="f").save(force_insert=True)
        StoredAnswer.objects.update(created_at=timezone.now() - timedelta(days=30))

    with held(database_url, "tenants_storedanswer", tenants[1].pk), caplog.at_level(logging.WARNING):
        assert idempotency.purge() == 2

    assert (
        f"Deleting old answers of tenant {tenants[1].pk} has to wait for the next time: LockNotAvailable"
        in caplog.text
    )
    assert idempotency.purge() == 1


def test_expired_vectors_of_other_tenants_go_where_one_is_held(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Asked about one by one.
    monkeypatch.setattr(vectors, "GROUP", 1)
    trees = [access_to(make_tenant(name)) for name in ("alice", "bob")]
    for access in trees:
        add(access, "Soon gone.", expires_at=in_days(1))
        vectors.embed_tree(access.tree)
        with of_tenant(access):
            for rows in (
                Block.objects.of(access.tree),
                Vector.objects.filter(tenant_id=access.tree.tenant_id),
            ):
                rows.filter(expires_at__isnull=False).update(expires_at=timezone.now())

    with held(database_url, "recall_vector", trees[0].tree.tenant_id):
        assert vectors.forget_expired() == 1

    assert vectors.forget_expired() == 1


def test_trees_of_all_groups_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "GROUP", 2)
    trees = [access_to(make_tenant(f"tenant-{number}")) for number in range(5)]
    for access in trees:
        add(access)

    assert {tree.pk for tree in vectors.stale_trees(10)} == {access.tree.pk for access in trees}
    assert len(vectors.stale_trees(3)) == 3


def test_within_a_transaction_what_fails_is_raised() -> None:
    with (
        pytest.raises(DatabaseError),
        transaction.atomic(),
        failing_alone("It"),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT 1 / 0")
