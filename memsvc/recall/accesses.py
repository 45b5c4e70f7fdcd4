"""How often entries are found or read, and when last, for what forgets those that nobody asks for.

Counted is what answers a question: the hits of a search, an entry that is asked for by its id, what a context
holds. Listings, exports, the admin and reads as of a revision count nothing. The counts are noted in memory and written
in batches, and tell little more than an order of magnitude: they are no part of the tree and of no revision.
"""

import atexit
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, override
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.utils import timezone

from memsvc.contract.entries import EntryRead
from memsvc.database.batching import Batch
from memsvc.database.ids import uuid7
from memsvc.database.tenancy import enter_tenant
from memsvc.recall.models import AccessCount
from memsvc.tree import reads
from memsvc.tree.access import Access
from memsvc.tree.reads import EntryFilter
from memsvc.tree.reads.entries import matching
from memsvc.tree.scope import unlocked_transaction
from memsvc.tree.snapshot import snapshot
from memsvc.tree.visibility import live_at_sql

# Whoever comes with more has counted something else, and sums must stay within a bigint.
MAX_COUNT: Final = 2**53
_EVERY: Final = EntryFilter(active=None)
_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class Accesses:
    """How often an entry was found or read, and when last."""

    count: int
    last_at: datetime

    def __add__(self, other: "Accesses") -> "Accesses":
        return Accesses(min(self.count + other.count, MAX_COUNT), max(self.last_at, other.last_at))


# Tenant, tree and the entry's id.
type _Entry = tuple[UUID, UUID, str]

# An entry, or its whole tree, that is being deleted is passed over: waiting for it could end in a deadlock.
_WRITE = f"""
INSERT INTO recall_accesscount (id, tenant_id, tree_id, block_id, count, last_at)
SELECT noted.id, b.tenant_id, b.tree_id, b.id, noted.count, noted.last_at
FROM unnest(%s::uuid[], %s::text[], %s::bigint[], %s::timestamptz[]) AS noted (id, entry_id, count, last_at)
JOIN tree_block b ON b.tenant_id = %s AND b.tree_id = %s AND b.entry_id = noted.entry_id
    AND {live_at_sql("b")} AND b.kind = 'entry' AND NOT b.duplicate
JOIN tree_tree t ON t.tenant_id = b.tenant_id AND t.id = b.tree_id
ORDER BY b.entry_id FOR KEY SHARE OF b, t SKIP LOCKED
ON CONFLICT (tenant_id, tree_id, block_id) DO UPDATE
    SET count = least(recall_accesscount.count + excluded.count, %s),
        last_at = greatest(recall_accesscount.last_at, excluded.last_at)
"""


class AccessCounts(Batch[_Entry, Accesses]):
    """The accesses that are not written yet, of one process."""

    noted = "How often some entries were read"

    @override
    def together(self, one: Accesses, other: Accesses) -> Accesses:
        return one + other

    @override
    def write(self, notes: list[tuple[_Entry, Accesses]]) -> None:
        trees: dict[tuple[UUID, UUID], dict[str, Accesses]] = {}
        for (tenant_id, tree_id, entry_id), accesses in notes:
            trees.setdefault((tenant_id, tree_id), {})[entry_id] = accesses
        for (tenant_id, tree_id), entries in trees.items():
            enter_tenant(tenant_id)
            _write(tenant_id, tree_id, entries)


ACCESS_COUNTS = AccessCounts()
atexit.register(ACCESS_COUNTS.flush_quietly)


def note_accesses(access: Access, entry_ids: Iterable[str]) -> None:
    """Count one access to each of the entries. Costs no query."""
    if settings.ACCESS_COUNTS:
        tree, once = access.tree, Accesses(1, timezone.now())
        ACCESS_COUNTS.note([((tree.tenant_id, tree.pk, entry_id), once) for entry_id in entry_ids])


def get_entry(access: Access, entry_id: str, *, revision: int | None = None) -> EntryRead:
    """The entry with an id, as `reads.get_entry` finds it; counted, unless it is one of a revision."""
    found = reads.get_entry(access, entry_id, revision=revision)
    if revision is None:
        note_accesses(access, [found.entry.entry_id])
    return found


def accesses_of(access: Access, entry_ids: Collection[str]) -> dict[str, Accesses]:
    """What is written of entries that the access sees, by id; those that were never accessed are not in it."""
    tree = access.tree
    with snapshot(access) as now:
        entries = matching(now, _EVERY).filter(entry_id__in=entry_ids, duplicate=False)
        counts = AccessCount.objects.filter(tenant_id=tree.tenant_id, tree_id=tree.pk, block__in=entries)
        rows = counts.values_list("block__entry_id", "count", "last_at")
        return {entry_id: Accesses(count, last_at) for entry_id, count, last_at in rows}


def add_accesses(access: Access, counted: Mapping[str, Accesses]) -> None:
    """Add what was counted elsewhere, by entry id; ids that the tree doesn't have are passed over."""
    if not counted:
        return
    with unlocked_transaction(access.tree):
        _write(access.tree.tenant_id, access.tree.pk, counted)


def _write(tenant_id: UUID, tree_id: UUID, counted: Mapping[str, Accesses]) -> None:
    items = sorted(counted.items())
    with connection.cursor() as cursor:
        for start in range(0, len(items), _AT_ONCE):
            some = items[start : start + _AT_ONCE]
            columns: list[list[Any]] = [
                [uuid7() for _ in some],
                [entry_id for entry_id, _ in some],
                [accesses.count for _, accesses in some],
                [accesses.last_at for _, accesses in some],
            ]
            cursor.execute(_WRITE, [*columns, tenant_id, tree_id, MAX_COUNT])
