"""The audit of a tenant, read and checked: see `tenants.audit` for how it is written."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import Model, Q

from memsvc.contract.audit import AuditEventRead, Fault, Head, faults
from memsvc.contract.files import Page
from memsvc.contract.requests import AuditFilter
from memsvc.database.tenancy import tenant_transaction
from memsvc.tree.cursors import newest_by_id
from memsvc.tree.models import Tree
from memsvc.tree.scope import tenant_snapshot
from memsvc.tree.trees import tree_of
from tenants.actors import ActorKind
from tenants.audit import TREE_DELETED, read_event
from tenants.models import ApiKey, AuditEvent, Tenant, User

_AT_ONCE = 1_000


def audit_page(
    tenant: Tenant,
    wanted: AuditFilter,
    *,
    only: Collection[UUID] | None = None,
    cursor: str | None = None,
    limit: int = 100,
) -> Page[AuditEventRead]:
    """A page of what was done to a tenant's memory, keys and people, newest first; of the trees `only`, where given.

    Raises `TreeNotFound`.
    """
    events = AuditEvent.objects.filter(tenant=tenant)
    if wanted.tree is not None:
        events = events.filter(tree_id=tree_of(tenant, wanted.tree, only=only).pk)
    elif only is not None:
        events = events.filter(tree_id__in=only)
    if wanted.actor is not None:
        events = events.filter(actor_id=wanted.actor)
    if wanted.action is not None:
        events = events.filter(action=wanted.action)
    if wanted.outcome is not None:
        events = events.filter(outcome=wanted.outcome)
    if wanted.since is not None:
        events = events.filter(at__gte=wanted.since)
    if wanted.until is not None:
        events = events.filter(at__lt=wanted.until)
    with tenant_transaction(tenant.pk):
        rows, following = newest_by_id(events, cursor=cursor, limit=limit)
        return Page(_named(tenant, rows), following)


def _named(tenant: Tenant, events: list[AuditEvent]) -> list[AuditEventRead]:
    """With the names that those have whom they tell of; null for who is gone."""
    keys = ApiKey.objects.filter(tenant=tenant, pk__in=_ids(ApiKey, events, ActorKind.KEY))
    members = User.objects.filter(pk__in=_ids(User, events, ActorKind.MEMBER))
    trees = Tree.objects.filter(tenant=tenant, pk__in={each.tree_id for each in events if each.tree_id})
    actors = {
        str(pk): name
        for pk, name in (*keys.values_list("pk", "name"), *members.values_list("pk", "username"))
    }
    names: dict[UUID | None, str] = {**dict(trees.values_list("pk", "name"))}
    return [
        read_event(each, actor_name=actors.get(each.actor_id), tree=names.get(each.tree_id))
        for each in events
    ]


def _ids(model: type[Model], events: Iterable[AuditEvent], kind: ActorKind) -> set[Any]:
    """The rows that actors of a kind may be: a program that embeds memsvc names its own as it likes."""
    found: set[Any] = set()
    for actor_id in {each.actor_id for each in events if each.actor_kind == kind}:
        with suppress(ValidationError):
            found.add(model._meta.pk.to_python(actor_id))
    return found


def audit_chains(tenant: Tenant, *, only: Collection[UUID] | None = None) -> Iterator[AuditEventRead]:
    """All events of a tenant, or those in the chains of some trees, chain by chain in order, as an export has them."""
    events = AuditEvent.objects.filter(tenant=tenant).order_by("chain", "number")
    if only is not None:
        events = events.filter(chain__in=only)
    # No transaction waits for a slow reader, and nothing that is there already changes meanwhile.
    following = events
    while True:
        with tenant_transaction(tenant.pk):
            found = list(following[:_AT_ONCE])
            read = _named(tenant, found)
        yield from read
        if len(found) < _AT_ONCE:
            return
        chain, number = found[-1].chain, found[-1].number
        following = events.filter(Q(chain__gt=chain) | Q(chain=chain, number__gt=number))


def audit_faults(
    tenant: Tenant, heads: dict[str, Head], known: Collection[tuple[str, Head]] = ()
) -> Iterator[Fault]:
    """What is wrong with a tenant's audit as it is stored. `heads` and `known` are as in `faults`.

    Besides the chains themselves, each has to end where the row of its tree, or of the tenant, says it does; and one
    whose tree is gone with the revision at which the tree was deleted.
    """
    with tenant_snapshot(tenant.pk):
        rows = [
            (str(pk), Head(number, digest))
            for chains in (Tenant.objects.filter(pk=tenant.pk), Tree.objects.filter(tenant=tenant))
            for pk, number, digest in chains.values_list("pk", "audit_number", "audit_digest")
        ]
        events = AuditEvent.objects.filter(tenant=tenant).order_by("chain", "number")
        revisions: dict[str, int] = {}
        told = _with_revisions(map(read_event, events.iterator(_AT_ONCE)), revisions)
        yield from faults(told, heads, [*rows, *known])
        deleted = events.filter(action=TREE_DELETED, chain=tenant.pk).values_list("tree_id", "revision")
        gone = {str(tree_id): revision for tree_id, revision in deleted}
    ends = dict(rows)
    for chain, head in heads.items():
        if chain in ends and head.number > ends[chain].number:
            yield Fault(chain, head.number, "stands behind the end of the chain")
        elif chain not in ends and chain not in gone:
            yield Fault(
                chain, head.number, "is of a tree that is not there, and nothing says that it was deleted"
            )
        elif chain not in ends and revisions[chain] != gone[chain]:
            yield Fault(chain, head.number + 1, "is missing, with all up to the deletion of the tree")


def _with_revisions(events: Iterable[AuditEventRead], revisions: dict[str, int]) -> Iterator[AuditEventRead]:
    """Events, while noting the newest revision of each chain."""
    for event in events:
        revisions[event.chain] = max(revisions.get(event.chain, 0), event.revision or 0)
        yield event
