import time
from threading import current_thread
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memsvc.database.tenancy import tenant_transaction
from tenants.last_use import LastUses
from tenants.models import ApiKey, Tenant
from tests.people import make_key


def test_a_use_is_noted_without_a_query(alice: Tenant) -> None:
    key, _ = make_key(alice)
    uses = LastUses()

    with CaptureQueriesContext(connection) as queries:
        uses.note_use(key, "192.0.2.1")
    uses.forget()

    assert len(queries) == 0


def test_many_uses_are_written_as_one(alice: Tenant, bob: Tenant) -> None:
    (first, _), (second, _), (unused, _) = make_key(alice), make_key(bob), make_key(bob)
    uses = LastUses()
    for number in range(1, 6):
        uses.note_use(first, f"192.0.2.{number}")
    uses.note_use(second, None)

    with CaptureQueriesContext(connection) as queries:
        uses.flush()
    updates = [query for query in queries if query["sql"].startswith("UPDATE")]
    for key in (first, second, unused):
        with tenant_transaction(key.tenant_id):
            key.refresh_from_db()

    assert len(updates) == 2
    assert (first.last_used_ip, second.last_used_ip) == ("192.0.2.5", None)
    assert first.last_used_at is not None
    assert second.last_used_at is not None
    assert unused.last_used_at is None


def test_nothing_is_written_twice(alice: Tenant) -> None:
    key, _ = make_key(alice)
    uses = LastUses()
    uses.note_use(key, None)
    uses.flush()

    with CaptureQueriesContext(connection) as queries:
        uses.flush()

    assert len(queries) == 0


def test_a_later_use_that_another_process_wrote_stays(alice: Tenant) -> None:
    key, _ = make_key(alice)
    uses = LastUses()
    uses.note_use(key, "192.0.2.1")
    later = timezone.now()
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=later, last_used_ip="192.0.2.2")

    uses.flush()
    key.refresh_from_db()

    assert (key.last_used_at, key.last_used_ip) == (later, "192.0.2.2")


@pytest.mark.django_db(transaction=True)
def test_the_timer_writes_in_its_own_thread_and_gives_the_connection_back(transactional_db: Any) -> None:
    from tests.people import make_tenant

    key, _ = make_key(make_tenant())
    uses = LastUses(interval=0.01)
    uses.note_use(key, "192.0.2.1")
    timer = uses._timer
    assert timer is not None
    assert timer is not current_thread()

    timer.join(timeout=10)
    with tenant_transaction(key.tenant_id):
        key.refresh_from_db()

    assert key.last_used_ip == "192.0.2.1"
    assert connections_left() == 0


def test_a_note_that_cannot_be_written_harms_nobody(alice: Tenant, caplog: pytest.LogCaptureFixture) -> None:
    key, _ = make_key(alice)
    uses = LastUses()
    uses.note_use(key, "not an address")

    uses.flush_quietly()

    assert "could not be recorded" in caplog.text


def connections_left() -> int:
    """Other connections to this database that are in use, once idle ones of the pool are left out."""
    deadline = time.monotonic() + 5
    while (left := _in_transaction()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def _in_transaction() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND state <> 'idle'"
        )
        row = cursor.fetchone()
    return int(row[0]) if row else 0
