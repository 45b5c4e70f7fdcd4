"""The stored answers of writes: claimed before the write, kept with it, forgotten after a week.

What a client chose as its key, and what it asked, are kept as keyed digests only: they may be somebody's words.
"""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

from django.db import OperationalError, connection
from django.db.models import QuerySet
from django.utils import timezone
from psycopg.errors import LockNotAvailable

from memsvc.database.ids import uuid7
from memsvc.database.rows import execute
from memsvc.database.sweeps import failing_alone
from memsvc.database.tenancy import one_entering, tenant_transaction
from tenants.models import StoredAnswer, Tenant
from tenants.secrets import keyed_digest
from tenants.services import all_tenant_ids

KEPT_FOR = timedelta(days=7)

_CLAIM = """
INSERT INTO tenants_storedanswer (id, tenant_id, key, fingerprint, status, headers, body)
VALUES (%s, %s, %s, %s, 0, '{}', '')
ON CONFLICT (tenant_id, key) DO NOTHING RETURNING id
"""
# One claim in sixteen takes old answers of its tenant away, more than sixteen add: so no tenant's answers pile up.
_ONE_IN = 16
_FORGET = """
DELETE FROM tenants_storedanswer WHERE tenant_id = %s AND id IN (
    SELECT id FROM tenants_storedanswer WHERE tenant_id = %s AND created_at < %s
    ORDER BY created_at LIMIT 320 FOR UPDATE SKIP LOCKED
)
"""
_KEEP = """
UPDATE tenants_storedanswer SET tree_id = %s, status = %s, headers = %s, body = %s WHERE tenant_id = %s AND id = %s
"""


class StillInFlight(Exception):
    """The first request with this key has not ended in time."""


def claim(tenant: Tenant, key: str, fingerprint: str) -> UUID | None:
    """Take a key for this transaction: the claim's id, or None when there is an answer under it.

    While another transaction holds the same key this waits for its end, at most for the lock timeout: a look
    before would let both through. Raises `StillInFlight`.
    """
    claimed = uuid7()
    owner = tenant.pk
    try:
        found = one_entering(owner, _CLAIM, [claimed, owner, keyed_digest(key), keyed_digest(fingerprint)])
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            raise StillInFlight from error
        raise
    if claimed.int % _ONE_IN == 0:
        execute(_FORGET, [owner, owner, _oldest()])
    return claimed if found else None


def allow_idling() -> None:
    """Let this transaction be idle for ten minutes, where it would otherwise be ended."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = '10min'")


def keep(
    tenant: Tenant,
    claimed: UUID,
    *,
    tree_id: UUID | None,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
) -> None:
    """Store the answer under a claim of this transaction."""
    execute(_KEEP, [tree_id, status, json.dumps(dict(headers)), body, tenant.pk, claimed])


def stored(tenant: Tenant, key: str) -> StoredAnswer | None:
    with tenant_transaction(tenant.pk):
        return StoredAnswer.objects.filter(tenant=tenant, key=keyed_digest(key)).first()


def is_of(answer: StoredAnswer, fingerprint: str) -> bool:
    """Whether an answer is the one to this very request."""
    return answer.fingerprint == keyed_digest(fingerprint)


def forget_tree(tenant_id: UUID, tree_id: UUID) -> None:
    """Delete the answers that may hold content of a tree."""
    answers_of(tenant_id, tree_id).delete()


def answers_of(tenant_id: UUID, tree_id: UUID) -> QuerySet[StoredAnswer]:
    """The answers that may hold content of a tree."""
    return StoredAnswer.objects.filter(tenant_id=tenant_id, tree_id=tree_id)


def redact_answers(tenant_id: UUID, tree_id: UUID) -> int:
    """Take out what stored answers may quote of a tree, hashes too. They stay, so that no write is done twice.

    Returns of how many something was left to take.
    """
    answers = answers_of(tenant_id, tree_id).exclude(body=b"")
    return answers.update(fingerprint="", headers={}, body=b"")


def purge() -> int:
    """Delete all answers that are older than a week, of every tenant; how many those were."""
    before, purged = _oldest(), 0
    for tenant_id in all_tenant_ids():
        with failing_alone(f"Deleting old answers of tenant {tenant_id}"), tenant_transaction(tenant_id):
            purged += StoredAnswer.objects.filter(tenant_id=tenant_id, created_at__lt=before).delete()[0]
    return purged


def _oldest() -> datetime:
    return timezone.now() - KEPT_FOR
