"""Whose rows a transaction is about: the row-level policies of Postgres show those of no other tenant.

Every statement on a table with a `tenant_id` runs in a transaction that has entered its tenant. The rows of a tree are
entered by `memsvc.tree.scope`; `tenant_transaction` is for those that belong to a tenant and to no tree.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from memsvc.database.rows import one


def enter_tenant(tenant_id: UUID) -> None:
    """Say whose rows this transaction is about, until it ends or enters another tenant."""
    with connection.cursor() as cursor:
        cursor.execute(entering(tenant_id))


def entering(tenant_id: UUID) -> str:
    """What enters a tenant, for the transaction only: a setting of the session would reach whoever comes next.

    No call of `set_config`: where rows are on several servers, these hear of `SET LOCAL`, and only of what is alone in
    its string.
    """
    # A setting takes no parameters, and some callers have the id as text.
    return f"SET LOCAL memsvc.tenant_id = '{UUID(str(tenant_id))}'"


def one_entering(tenant_id: UUID, sql: str, parameters: Sequence[Any]) -> Sequence[Any] | None:
    """Enter a tenant, and the first row of one statement about it, in one round trip where one server has all rows.

    What is sent together is one transaction, also where none has begun. It is bound by the client and not prepared.
    """
    if settings.DISTRIBUTED:
        with transaction.atomic(savepoint=False):
            enter_tenant(tenant_id)
            return one(sql, parameters)
    with connection.cursor() as cursor:
        cursor.execute(f"{entering(tenant_id)}; {sql}", parameters)
        cursor.nextset()
        row: Sequence[Any] | None = cursor.fetchone()
    return row


@contextmanager
def tenant_transaction(tenant_id: UUID) -> Iterator[None]:
    """A transaction about the rows of a tenant; within another one, a part of it."""
    with transaction.atomic():
        enter_tenant(tenant_id)
        yield
