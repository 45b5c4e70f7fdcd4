"""Whose rows a transaction is about: the row-level policies of Postgres show those of no other tenant.

Every statement on a table with a `tenant_id` runs in a transaction that has entered its tenant. The rows of a tree are
entered by `memsvc.tree.scope`; `tenant_transaction` is for those that belong to a tenant and to no tree.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction

from memsvc.database.rows import execute

# Set for the transaction only: a setting of the session would reach whoever has the connection next.
SET_TENANT: Final = "SELECT set_config('memsvc.tenant_id', %s, true)"


def enter_tenant(tenant_id: UUID) -> None:
    """Say whose rows this transaction is about, until it ends or enters another tenant."""
    execute(SET_TENANT, [str(tenant_id)])


def one_entering(tenant_id: UUID, sql: str, parameters: Sequence[Any]) -> Sequence[Any] | None:
    """Enter a tenant, and the first row of one statement about it, in one round trip.

    What is sent together is one transaction, also where none has begun. It is bound by the client and not prepared.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"{SET_TENANT}; {sql}", [str(tenant_id), *parameters])
        cursor.nextset()
        row: Sequence[Any] | None = cursor.fetchone()
    return row


@contextmanager
def tenant_transaction(tenant_id: UUID) -> Iterator[None]:
    """A transaction about the rows of a tenant; within another one, a part of it."""
    with transaction.atomic():
        enter_tenant(tenant_id)
        yield
