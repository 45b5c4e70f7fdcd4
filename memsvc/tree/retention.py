"""Letting old history go: what only revisions before a horizon held is removed, and all others read as before.

The horizon is the newest revision that is older than the tenant wants to keep, so that a state of any kept instant is
whole. The list of revisions stays (who, when, and which kind of change): lines that still stand are blamed on it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from memsvc.database.rows import columns, instance
from memsvc.database.tenancy import tenant_transaction
from memsvc.tree.access import Access
from memsvc.tree.history.blame import line_revisions
from memsvc.tree.models import Block, File, Revision, Tree
from memsvc.tree.scope import locked_transaction
from memsvc.tree.snapshot import snapshot
from tenants import audit
from tenants.actors import SYSTEM
from tenants.models import Tenant

# Rows that are removed under one lock of the tree: some tens of milliseconds.
_ROWS_AT_ONCE = 1000

type Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Pruned:
    """The oldest revision that can be read from now on, and the blocks and files that went, or would."""

    history_from: int
    blocks: int
    files: int


def prune(
    tree: Tree, before: datetime, *, dry_run: bool = False, progress: Progress = lambda step: None
) -> Pruned:
    """Keep a tree's history from the newest revision on that was made `before` an instant.

    Writers wait for a moment now and then, never for the whole of it. When it is cut short, nothing reads otherwise
    than before or after, and the next call does the rest. With `dry_run` nothing is changed: the answer says what
    would go. `progress` is told of each step: "lines", "horizon", "blocks", "files". Raises `Busy` and `TreeNotFound`.
    """
    made = Revision.objects.of(tree).filter(at__lt=before)
    with snapshot(Access(tree, SYSTEM)):
        newest = made.order_by("-number").values_list("number", flat=True).first()
    return prune_to(tree, newest or 0, dry_run=dry_run, progress=progress)


def prune_to(
    tree: Tree, horizon: int, *, dry_run: bool = False, progress: Progress = lambda step: None
) -> Pruned:
    """Keep a tree's history from a revision on, or from a later one where it begins with that already.

    Raises `RevisionNotFound` for one that never was, besides what `prune` does.
    """
    if dry_run:
        with snapshot(Access(tree, SYSTEM)) as now:
            horizon = max(horizon, now.tree.history_from)
            blocks = Block.objects.of(tree).filter(removed_in__lte=horizon).count()
            files = File.objects.of(tree).filter(removed_in__lte=horizon).count()
        return Pruned(horizon, blocks, files)
    _remember_lines(tree, horizon, progress)
    with locked_transaction(tree) as held:
        held.require_revision(max(horizon, held.history_from))
        if held.history_from < horizon:
            held.history_from = horizon
            held.save(update_fields=["history_from"])
            audit.record(SYSTEM, "history.prune", held, tree_id=held.pk, revision=horizon)
    # From here on nothing reads what is about to go.
    progress("horizon")
    blocks = _removed(tree, _REMOVE_BLOCKS, held.history_from, lambda: progress("blocks"))
    files = _removed(tree, _REMOVE_FILES, held.history_from, lambda: progress("files"))
    return Pruned(held.history_from, blocks, files)


def trees_to_prune(tenant: Tenant, now: datetime) -> list[tuple[Tree, datetime]]:
    """The trees of which something is older than their tenant keeps, each with the instant that `prune` wants.

    Those in which a call was cut short are among them. One statement, however many trees there are, and no locks.
    """
    if tenant.history_days is None:
        return []
    before = now - timedelta(days=tenant.history_days)
    with tenant_transaction(tenant.pk), connection.cursor() as cursor:
        cursor.execute(_TO_PRUNE, {"tenant": tenant.pk, "before": before})
        return [(tree, before) for row in cursor.fetchall() if (tree := instance(Tree, row))]


# Revisions are made in the order of their numbers: where the next one is too young to begin with, all are.
_TO_PRUNE = f"""
SELECT {columns(Tree, "t")} FROM tree_tree t
WHERE t.tenant_id = %(tenant)s AND (
    (
        SELECT at FROM tree_revision r
        WHERE r.tenant_id = %(tenant)s AND r.tree_id = t.id AND r.number > t.history_from
        ORDER BY r.number LIMIT 1
    ) < %(before)s
    OR EXISTS (
        SELECT FROM tree_block b
        WHERE b.tenant_id = %(tenant)s AND b.tree_id = t.id AND b.removed_in <= t.history_from
    )
    OR EXISTS (
        SELECT FROM tree_file f
        WHERE f.tenant_id = %(tenant)s AND f.tree_id = t.id AND f.removed_in <= t.history_from
    )
)
ORDER BY t.name
"""


def _remember_lines(tree: Tree, horizon: int, progress: Progress) -> None:
    """Let blocks know the revisions of their lines that only rows say which are about to go.

    What happened up to the horizon never changes again, so it is looked at without the lock.
    """
    with snapshot(Access(tree, SYSTEM)) as now:
        # Files of the horizon, of which blocks will go that are not gone yet.
        ended = Block.objects.of(tree).filter(removed_in__gt=now.tree.history_from, removed_in__lte=horizon)
        live = Block.objects.of(tree).live_at(horizon).filter(file_id__in=ended.values("file_id"))
        ids = list(live.order_by("file_id").values_list("file_id", flat=True).distinct())
    for file_id in ids:
        with snapshot(Access(tree, SYSTEM), horizon) as then:
            found = line_revisions(then, file_id)
        if found:
            with locked_transaction(tree):
                blocks = [Block(pk=pk, line_revisions=numbers) for pk, numbers in found.items()]
                Block.objects.of(tree).bulk_update(blocks, ["line_revisions"], batch_size=_ROWS_AT_ONCE)
        progress("lines")


_REMOVE_BLOCKS = """
WITH gone AS (
    DELETE FROM tree_block WHERE tenant_id = %(tenant)s AND id IN (
        SELECT id FROM tree_block
        WHERE tenant_id = %(tenant)s AND tree_id = %(tree)s AND removed_in <= %(horizon)s
        ORDER BY removed_in LIMIT %(most)s
    ) RETURNING file_id, removed_in
), newest AS (
    SELECT file_id, max(removed_in) AS removed_in FROM gone GROUP BY file_id
), told AS (
    UPDATE tree_file f SET pruned_in = greatest(f.pruned_in, n.removed_in) FROM newest n
    WHERE f.tenant_id = %(tenant)s AND f.tree_id = %(tree)s AND (f.id = n.file_id OR f.former_of_id = n.file_id)
)
SELECT count(*) FROM gone
"""

# Former places first: with their file they would go uncounted.
_REMOVE_FILES = """
WITH gone AS (
    DELETE FROM tree_file WHERE tenant_id = %(tenant)s AND id IN (
        SELECT id FROM tree_file
        WHERE tenant_id = %(tenant)s AND tree_id = %(tree)s AND removed_in <= %(horizon)s
        ORDER BY former_of_id LIMIT %(most)s
    ) RETURNING id
)
SELECT count(*) FROM gone
"""


def _removed(tree: Tree, statement: str, horizon: int, progress: Callable[[], None]) -> int:
    """Remove rows piece by piece, so that writers come in between; the answer is how many."""
    values: dict[str, Any] = {
        "tenant": tree.tenant_id,
        "tree": tree.pk,
        "horizon": horizon,
        "most": _ROWS_AT_ONCE,
    }
    removed = 0
    while True:
        with locked_transaction(tree), connection.cursor() as cursor:
            cursor.execute(statement, values)
            some = int(cursor.fetchone()[0])
        removed += some
        progress()
        if some < _ROWS_AT_ONCE:
            return removed
