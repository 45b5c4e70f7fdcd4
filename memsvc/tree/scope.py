"""The one door to the database: transaction, tenant, lock, revision, and giving the connection back.

`read_transaction(access)` sees one moment of the tree. `unit_of_work(access, action)` holds the tree's lock, and what
is done in it becomes one revision, or none when nothing was changed or anything was raised.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from uuid import UUID

from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    InterfaceError,
    OperationalError,
    close_old_connections,
    connection,
    transaction,
)
from psycopg.errors import LockNotAvailable

from memsvc.contract.files import WriteWarning
from memsvc.database.tenancy import enter_tenant
from memsvc.tree import statements
from memsvc.tree.access import Access
from memsvc.tree.errors import Busy, TreeArchived, TreeError, TreeNotFound, Unavailable
from memsvc.tree.models import Revision, Tree
from tenants import audit
from tenants.actors import Actor

# Locks, deadlocks and serialisation: someone else was in the way.
_BUSY_STATES = ("55P03", "40001", "40P01")
# Connection lost or refused, server stopping, idle transaction ended, out of connections, statement timeout.
_UNAVAILABLE_STATES = ("08", "57P", "25P03", "53300", "57014")


class JoinedAtomic(transaction.Atomic):
    """A transaction that whatever fails in it ends, so that a change inside needs no savepoint of its own."""

    def __init__(self) -> None:
        super().__init__(using=DEFAULT_DB_ALIAS, savepoint=True, durable=False)


class Exemption(Enum):
    """Why a change may reach beyond what its access may write: it follows from what that may."""

    INDEX = "the row of a file stands in an index that may lie above the access's folder"
    EXPIRED = "files of which nobody sees anything any more give way, wherever they stand"


@dataclass(slots=True)
class Change:
    """A revision in the making, inside the tree's lock, and who makes it.

    Whatever changes rows goes through `memsvc.tree.files`, which asks here first: a service that has checked nothing
    still changes nothing that its access may not.
    """

    tree: Tree
    access: Access
    at: datetime
    number: int
    made: bool = False
    # Paths whose rows in the index files have to be looked at before the end.
    index_behind: bool = field(default=False)
    # Rows that it superseded without closing them.
    superseded: list[UUID] = field(default_factory=list)
    # What the one who makes it has to know about what can't be found in it.
    warnings: list[WriteWarning] = field(default_factory=list)
    _exemption: Exemption | None = None

    def require_write(self, path: str) -> None:
        """Refuse unless what stands at `path` may be changed now. Raises `ReadOnly` and `Forbidden`."""
        if self._exemption is None:
            self.access.require_write(path)

    @contextmanager
    def exempt(self, why: Exemption) -> Iterator[None]:
        """Let what is done inside be done at any path. Keep it around nothing but the lines that change rows."""
        before, self._exemption = self._exemption, why
        try:
            yield
        finally:
            self._exemption = before

    @property
    def current(self) -> int:
        """The tree's revision once this change has ended."""
        return self.number if self.made else self.number - 1


@contextmanager
def read_transaction(access: Access) -> Iterator[None]:
    """One consistent moment of the tree, for as many statements as it takes."""
    with tenant_snapshot(access.tree.tenant_id):
        yield


@contextmanager
def tenant_snapshot(tenant_id: UUID) -> Iterator[None]:
    """One consistent moment of all that a tenant has."""
    with _transaction():
        # Within an outer transaction the level can't be chosen any more; that one has its own moment.
        is_nested = len(connection.savepoint_ids) > 0 or len(connection.atomic_blocks) > 1
        enter = enter_tenant if is_nested else statements.enter_snapshot
        enter(tenant_id)
        yield


@contextmanager
def unit_of_work(
    access: Access, action: str, *, message: str = "", dry_run: bool = False, even_archived: bool = False
) -> Iterator[Change]:
    """Lock the tree, and keep what is done inside as its next revision.

    A `dry_run` will be ended by an exception, after which the transaction around it goes on. `even_archived` is for
    what is owed to people, whatever a tenant has decided about a tree.
    Raises `ReadOnly` for an access that may not write, `Busy` when the lock is not to be had in time,
    `TreeArchived`, and `TreeNotFound` when the tree was deleted meanwhile; then nothing was changed.
    """
    access.require_write()
    with _transaction(savepoint=dry_run or not _is_joined()):
        tree = statements.lock_tree(access.tree)
        if tree is None:
            raise TreeNotFound(access.tree.name)
        if tree.archived_at is not None and not even_archived:
            raise TreeArchived(tree.name)
        change = Change(tree=tree, access=access, at=datetime.now(tz=UTC), number=tree.revision + 1)
        yield change
        if change.made:
            record_revision(
                access.actor,
                tree,
                change.number,
                action,
                at=change.at,
                message=message,
                index_behind=change.index_behind,
                superseded=change.superseded,
            )


@contextmanager
def locked_transaction(tree: Tree) -> Iterator[Tree]:
    """Lock a tree, archived or not, for what makes no revision of it. Raises `Busy` and `TreeNotFound`."""
    with _transaction():
        locked = statements.lock_tree(tree)
        if locked is None:
            raise TreeNotFound(tree.name)
        yield locked


@contextmanager
def unlocked_transaction(tree: Tree) -> Iterator[None]:
    """A transaction for what is made out of a tree and is no part of it. It takes no lock: writers go on."""
    with _transaction():
        enter_tenant(tree.tenant_id)
        yield


def record_revision(
    actor: Actor,
    tree: Tree,
    number: int,
    action: str,
    *,
    at: datetime,
    message: str,
    index_behind: bool,
    superseded: Sequence[UUID] = (),
) -> None:
    """What ends every change of a locked tree: its revision, with its event in the audit."""
    revision = Revision.by(
        actor,
        tenant_id=tree.tenant_id,
        tree_id=tree.pk,
        number=number,
        at=at,
        action=action,
        message=message,
    )
    event = audit.event_values(actor, action, tree, tree_id=tree.pk, revision=number, at=at)
    statements.record(revision, index_behind=index_behind, superseded=superseded, event=event)


@contextmanager
def _transaction(*, savepoint: bool = True) -> Iterator[None]:
    try:
        with transaction.atomic(savepoint=savepoint):
            yield
    except (InterfaceError, DatabaseError) as error:
        answer = _translated(error)
        if answer is None:
            raise
        raise answer from error
    finally:
        # A worker thread never sees request_finished, so its connection would stay open for good. Inside an
        # outer transaction closing would drop that transaction with it.
        if not connection.in_atomic_block:
            close_old_connections()


def _is_joined() -> bool:
    return bool(connection.atomic_blocks) and isinstance(connection.atomic_blocks[-1], JoinedAtomic)


def _translated(error: DatabaseError | InterfaceError) -> TreeError | None:
    """A clear, retryable answer for what passes by itself; None for anything else, which is a fault of ours."""
    state = getattr(error.__cause__, "sqlstate", None)
    if isinstance(error.__cause__, LockNotAvailable) or (state and state.startswith(_BUSY_STATES)):
        return Busy()
    passes = state is None or state.startswith(_UNAVAILABLE_STATES)
    return Unavailable() if passes and isinstance(error, (OperationalError, InterfaceError)) else None
