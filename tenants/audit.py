"""What was done to a tenant's memory, keys and people, in chains that nobody who serves can change.

An act stands in the transaction that does it. The chain of a tree ends at the tree's row, whose lock every writer
holds, and that of all else at the tenant's; so the acts of two trees don't wait for each other. What an event says, and
how a chain is checked, is told in `memsvc.contract.audit`.
"""

import atexit
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final, TypedDict, Unpack, override
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest

from memsvc.contract.audit import DONE, AuditEventRead, said
from memsvc.database.batching import Batch
from memsvc.database.ids import uuid7
from memsvc.database.rows import execute, names, one
from memsvc.database.tenancy import enter_tenant, tenant_transaction
from memsvc.logging import NO_REQUEST, request_id
from tenants.actors import SYSTEM, Actor, ActorKind
from tenants.models import ApiKey, AuditChain, AuditEvent, Tenant

# How many different refusals of a tenant one process tells each minute; what is beyond them is told as one.
MOST_REFUSALS: Final = 50
TREE_DELETED: Final = "tree.delete"


class About(TypedDict, total=False):
    """What an act was about, beside the chain that it stands in."""

    tree_id: UUID
    revision: int | None
    object_id: object
    at: datetime
    outcome: str
    times: int


def record(actor: Actor, action: str, head: AuditChain, **about: Unpack[About]) -> None:
    """Add an act to the chain that ends at a row, a tree's or a tenant's, in the transaction that does it.

    The transaction has entered the tenant. Call it last: the row stays locked until the end. What makes a revision is
    recorded with that, by `memsvc.tree.scope`.
    """
    values = event_values(actor, action, head, **about)
    # The update waits for the chain's last writer, and then goes on from what that one has left.
    advance = f"""
        UPDATE {type(head)._meta.db_table} SET {ADVANCED}
        WHERE {"id" if isinstance(head, Tenant) else "tenant_id"} = %(event_tenant_id)s AND id = %(event_chain)s
        RETURNING audit_number, audit_digest
    """
    if settings.DISTRIBUTED:
        # An insertion goes by itself: its row may be on another server than the tenant's.
        add(one(advance, values), values)
    else:
        execute(f"WITH head AS ({advance}) {ADDED}", values)


def event_values(actor: Actor, action: str, head: AuditChain, **about: Unpack[About]) -> dict[str, object]:
    """The parameters of what adds an event to the chain that ends at a row."""
    asked = request_id.get()
    tree_id = about.get("tree_id")
    event = AuditEventRead(
        chain=str(head.pk),
        number=0,
        digest="",
        at=about.get("at") or datetime.now(UTC),
        action=action,
        outcome=about.get("outcome", DONE),
        times=about.get("times", 1),
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_name=None,
        address=actor.address,
        request_id="" if asked == NO_REQUEST else asked,
        tree_id="" if tree_id is None else str(tree_id),
        tree=None,
        revision=about.get("revision"),
        object_id=str(about.get("object_id", "")),
        reason=actor.reason,
    )
    # Every write of a tree comes by here: a model's instance would take longer to make than all the rest.
    values: dict[str, object] = {f"event_{name}": getattr(event, name) for name in _AS_TOLD}
    values |= {
        "event_id": uuid7(),
        "event_tenant_id": head.of_tenant,
        "event_chain": head.pk,
        "event_tree_id": tree_id,
        "event_said": said(event),
    }
    return values


def add(placed: Sequence[Any] | None, values: Mapping[str, object]) -> None:
    """Add an event by a statement of its own, behind the one that has `ADVANCED` the end of its chain."""
    assert placed is not None  # the row is there, and its tenant entered
    number, digest = placed
    execute(f"{_INSERT} VALUES ({_VALUES})", {**values, "event_number": number, "event_digest": digest})


_OF_PLACE = ("number", "digest")
_OF_KEYS = ("id", "tenant_id", "chain", "tree_id")
_AS_TOLD = tuple(name for name in names(AuditEvent) if name not in (*_OF_PLACE, *_OF_KEYS))

# In an update of the row at which a chain ends: the next event.
ADVANCED: Final = """audit_number = audit_number + 1, audit_digest = encode(sha256(convert_to(
        audit_digest || E'\\n' || (audit_number + 1) || E'\\n' || %(event_said)s::text, 'UTF8'
    )), 'hex')"""
_INSERT = f"INSERT INTO tenants_auditevent ({', '.join(names(AuditEvent))})"
_VALUES = ", ".join(f"%(event_{name})s" for name in names(AuditEvent))
_PLACED = ", ".join(
    f"head.audit_{name}" if name in _OF_PLACE else f"%(event_{name})s" for name in names(AuditEvent)
)
# The event, behind a `head` that says what such an update has returned.
ADDED: Final = f"{_INSERT} SELECT {_PLACED} FROM head"


def read_event(
    event: AuditEvent, *, actor_name: str | None = None, tree: str | None = None
) -> AuditEventRead:
    """A row as it is told; names are given by who knows them."""
    return AuditEventRead(
        chain=str(event.chain),
        number=event.number,
        digest=event.digest,
        at=event.at,
        action=event.action,
        outcome=event.outcome,
        times=event.times,
        actor_kind=event.actor_kind,
        actor_id=event.actor_id,
        actor_name=actor_name,
        address=event.address,
        request_id=event.request_id,
        tree_id="" if event.tree_id is None else str(event.tree_id),
        tree=tree,
        revision=event.revision,
        object_id=event.object_id,
        reason=event.reason,
    )


def forget(tenant: Tenant) -> int:
    """Take away the whole audit of a tenant that is gone, as the owner of the tables; how many events that were."""
    with tenant_transaction(tenant.pk):
        return AuditEvent.objects.filter(tenant=tenant).delete()[0]


# Of which tenant, by whom, from where, what, and why not.
type _Refused = tuple[UUID, str, str, str, str]


class Refusals(Batch[_Refused, int]):
    """What was refused to keys of a tenant and is not written yet, of one process: how often."""

    noted = "What was refused to some keys"

    def note_refusal(self, key: ApiKey, actor: Actor, action: str, outcome: str) -> None:
        """Note that a key of a tenant was let do nothing. Whoever tries anything at all fills no disk by it."""
        self.note([((key.tenant_id, actor.id, actor.address, action, outcome), 1)])

    @override
    def together(self, one: int, other: int) -> int:
        return one + other

    @override
    def write(self, notes: list[tuple[_Refused, int]]) -> None:
        for tenant_id, of_tenant in groupby(notes, key=lambda note: note[0][0]):
            enter_tenant(tenant_id)
            told = [*of_tenant]
            for (_, key_id, address, action, outcome), times in told[:MOST_REFUSALS]:
                actor = Actor(ActorKind.KEY, key_id, "", address=address)
                record(actor, action, Tenant(pk=tenant_id), outcome=outcome, times=times)
            if beyond := sum(times for _, times in told[MOST_REFUSALS:]):
                record(SYSTEM, "refusals", Tenant(pk=tenant_id), outcome="not_told_apart", times=beyond)


def route_of(request: HttpRequest) -> str:
    """What was asked for: the method and the route, without any name of a tree or a file."""
    return f"{request.method} /{request.resolver_match.route if request.resolver_match else ''}"


REFUSALS = Refusals()
atexit.register(REFUSALS.flush_quietly)
