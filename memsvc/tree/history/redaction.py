"""Taking what a file once held out of its history, for good.

A version is what a file held from one change to the next. Redacting it takes away the rows that stood in no other
version, or only in redacted ones; a row that it shares with another version goes when that one is redacted too. What
stays of a row is that something stood there, from when to when, so that everything else can be read as before.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from uuid import UUID

from memsvc.format import BlockKind
from memsvc.tree import statements
from memsvc.tree.access import Access
from memsvc.tree.errors import CurrentVersion, OutOfSight
from memsvc.tree.history.memory_versions import find_change, numbers_of, read_version
from memsvc.tree.models import Block, File, Redaction, Tree
from memsvc.tree.results import MemoryVersion
from memsvc.tree.scope import locked_transaction
from memsvc.tree.snapshot import Snapshot, snapshot
from tenants import audit
from tenants.idempotency import redact_answers


def redact_version(access: Access, file_id: UUID, number: int) -> MemoryVersion:
    """Take out what a file held from a revision on; archived or not. A second call keeps the first time.

    Stored answers to repeated requests lose what they may quote from the tree. Raises `VersionNotFound`, and
    `CurrentVersion` for what a file holds now.
    """
    with locked_transaction(access.tree) as tree, snapshot(Access(tree, access.actor)) as now:
        with snapshot(access) as seen:
            # A file that was moved out of the access's sight is gone to it.
            if find_change(now, file_id, number).after != find_change(seen, file_id, number).after:
                raise OutOfSight
        live = File.objects.of(tree).live_at(None).filter(pk=file_id)
        if live.exists() and number == numbers_of(now, file_id)[-1]:
            raise CurrentVersion
        Redaction.objects.get_or_create(
            tenant_id=tree.tenant_id,
            tree_id=tree.pk,
            file_id=file_id,
            number=number,
            defaults={
                "at": now.at,
                "actor_kind": access.actor.kind,
                "actor_id": access.actor.id,
                "actor_name": access.actor.name,
            },
        )
        _take_out(now, file_id)
        redact_answers(tree.tenant_id, tree.pk)
        audit.record(
            access.actor, "version.redact", tree, tree_id=tree.pk, revision=number, object_id=file_id
        )
        return read_version(access, file_id, number)


def _take_out(now: Snapshot, file_id: UUID) -> None:
    """Empty the rows of a file that stand in no version any more but redacted ones."""
    tree, numbers = now.access.tree, numbers_of(now, file_id)
    redacted = set(Redaction.objects.of(tree).filter(file_id=file_id).values_list("number", flat=True))
    closed = Block.objects.of(tree).filter(file_id=file_id, removed_in__isnull=False, size__gt=0)
    rows = closed.defer("head", "text", "raw", "search_text")
    gone = [row for row in rows if (held_in := _versions_with(row, numbers)) and held_in <= redacted]
    put_in_place(tree, gone, [emptied(row) for row in gone])
    # What emptied rows superseded is forgotten, unless what they did to an entry is found by it.
    every = Block.objects.of(tree)
    for row in every.filter(size=0).exclude(supersedes=""):
        if not every.entries().filter(entry_id=row.supersedes, superseded_in=row.added_in).exists():
            every.filter(pk=row.pk).update(supersedes="")
    # What the row of a deleted file says is true of the last content that it had.
    file = File.objects.of(tree).filter(pk=file_id, removed_in__isnull=False)
    for removed_in in file.values_list("removed_in", flat=True):
        last = bisect_left(numbers, removed_in or 0) - 1
        if last >= 0 and numbers[last] in redacted:
            file.update(sha256="", size=0, lines=0)


def _versions_with(row: Block, numbers: Sequence[int]) -> set[int]:
    """The versions of a file, whose numbers are given in order, in which one of its closed rows stood."""
    first = max(bisect_right(numbers, row.added_in) - 1, 0)
    end = bisect_left(numbers, row.removed_in or 0)
    return set(numbers[first : max(end, first + 1)])


def put_in_place(tree: Tree, rows: Sequence[Block], others: Sequence[Block]) -> None:
    """Let closed rows be others: not changed but replaced, so that whatever was derived from a row goes with it."""
    statements.delete_blocks(rows, tree.tenant_id)
    statements.insert_blocks(others, language=tree.language)


def emptied(row: Block) -> Block:
    """What is left of a row: that something stood there, from when to when."""
    return Block(
        tenant_id=row.tenant_id,
        tree_id=row.tree_id,
        file_id=row.file_id,
        position=row.position,
        kind=BlockKind.TEXT,
        size=0,
        lines=0,
        added_in=row.added_in,
        removed_in=row.removed_in,
        superseded_in=row.superseded_in,
        expires_at=row.expires_at,
        supersedes=row.supersedes,
    )
