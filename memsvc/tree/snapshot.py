"""A tree at one moment: the rows that one access sees in one revision."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import Count, Max, Q, Sum

from memsvc.contract.files import Listed
from memsvc.tree import statements
from memsvc.tree.access import Access
from memsvc.tree.errors import FileNotFound
from memsvc.tree.files import rendered_lines, rendered_size
from memsvc.tree.models import Block, BlockQuerySet, EntryRow, File, FileQuerySet, Revision, Tree
from memsvc.tree.scope import read_transaction
from memsvc.tree.visibility import is_visible, must_be_counted, visible


@dataclass(frozen=True)
class Snapshot:
    """`revision` is None for now, `at` is the instant that decides what has expired."""

    access: Access
    revision: int | None
    at: datetime

    @cached_property
    def tree(self) -> Tree:
        """The tree's row as it is at this moment; the one that the access has may be of an earlier one."""
        return statements.tree_now(self.access.tree)

    def files(self) -> FileQuerySet:
        return File.objects.of(self.access.tree).live_at(self.revision).at_or_below(self.access.prefix)

    def blocks(self) -> BlockQuerySet:
        """All visible blocks of the tree; callers narrow them to files that the access sees."""
        return Block.objects.of(self.access.tree).live_at(self.revision).filter(self.visible)

    @property
    def visible(self) -> Q:
        return visible(self.at)

    def shows(self, block: Block | EntryRow) -> bool:
        return is_visible(block, self.at)

    def blocks_of(self, file: File) -> BlockQuerySet:
        return self.blocks().filter(file_id=file.content_id).order_by("position")

    def file(self, path: str) -> tuple[File, Listed]:
        """The file at a canonical path. Raises `FileNotFound`, also for a folder and for what is hidden."""
        file = self.files().filter(path=path).first()
        listed = self.listed([file]) if file else []
        if file is None or not listed:
            raise FileNotFound(path)
        return file, listed[0]

    def has_file(self, path: str) -> bool:
        return bool(self.listed(list(self.files().filter(path=path))))

    def listed(self, files: Sequence[File]) -> list[Listed]:
        """Describe files as readers see them now; a file in which everything is hidden is left out."""
        counted = [file for file in files if self._must_be_counted(file)]
        totals = self._totals(counted) if counted else {}
        times: dict[int, datetime] = {}
        if self.revision is not None:
            numbers = {_changed(file, totals.get(file.content_id)) for file in counted}
            rows = Revision.objects.of(self.access.tree).filter(number__in=numbers)
            times = dict(rows.values_list("number", "at"))
        described = (
            _from_totals(file, totals.get(file.content_id), times)
            if self._must_be_counted(file)
            else _from_row(file)
            for file in files
        )
        return [each for each in described if each is not None]

    def _must_be_counted(self, file: File) -> bool:
        return self.revision is not None or must_be_counted(file, self.at)

    def _totals(self, files: Sequence[File]) -> dict[UUID, dict[str, Any]]:
        """Per content: what its visible blocks add up to, and the revision that last changed it."""
        ids = [file.content_id for file in files]
        blocks = Block.objects.of(self.access.tree).live_at(self.revision).filter(file_id__in=ids)
        rows = (
            blocks.order_by()
            .values("file_id")
            .annotate(
                shown=Count("pk", filter=self.visible),
                hidden=Count("pk", filter=~self.visible),
                total_size=Sum(rendered_size(self.revision), filter=self.visible),
                total_lines=Sum(rendered_lines(self.revision), filter=self.visible),
                added=Max("added_in"),
                superseded=Max(
                    "superseded_in", filter=Q(superseded_in__lte=self.revision) if self.revision else Q()
                ),
            )
        )
        totals: dict[UUID, dict[str, Any]] = {
            file_id: {"shown": 0, "hidden": 0, "changed": removed}
            for file_id, removed in statements.last_removals(self.access.tree, ids, self.revision).items()
        }
        for row in rows:
            removed = totals.get(row["file_id"], {"changed": 0})["changed"]
            changed = max(row["added"], row["superseded"] or 0, removed)
            totals[row["file_id"]] = {**row, "changed": changed}
        return totals


def _from_row(file: File) -> Listed:
    return Listed(
        path=file.path,
        size=file.size,
        lines=file.lines,
        revision=file.changed_in,
        created_at=file.created_at,
        modified_at=file.modified_at,
    )


def _from_totals(file: File, totals: dict[str, Any] | None, times: dict[int, datetime]) -> Listed | None:
    if totals is not None and totals["hidden"] and not totals["shown"]:
        return None
    changed = _changed(file, totals)
    return Listed(
        path=file.path,
        size=(totals and totals.get("total_size")) or 0,
        lines=(totals and totals.get("total_lines")) or 0,
        revision=changed,
        created_at=file.created_at,
        modified_at=times.get(changed, file.modified_at),
    )


def _changed(file: File, totals: dict[str, Any] | None) -> int:
    """The revision that last changed what is counted, or moved the file. A file may never have held a block."""
    return max(file.added_in, file.pruned_in, totals["changed"] if totals else file.created_in)


@contextmanager
def snapshot(access: Access, revision: int | None = None) -> Iterator[Snapshot]:
    """Open a consistent view. Raises `RevisionNotFound` and `RevisionPruned`."""
    with read_transaction(access):
        now = Snapshot(access=access, revision=revision, at=datetime.now(tz=UTC))
        if revision is not None:
            now.tree.require_revision(revision)
        yield now
