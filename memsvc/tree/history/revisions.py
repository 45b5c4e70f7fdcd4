"""A tree's revisions: which there are, and what one of them changed."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from memsvc.contract.files import Page
from memsvc.contract.history import EntryChange, RevisionDetail, RevisionRead
from memsvc.contract.requests import RevisionFilter
from memsvc.format import canonical_folder, in_utc
from memsvc.tree.access import Access
from memsvc.tree.blocks import entry_of, rendered
from memsvc.tree.cursors import after_number, cursor_of_number
from memsvc.tree.errors import RevisionNotFound
from memsvc.tree.history.diffs import file_change
from memsvc.tree.history.timeline import Places, read_revisions, touched, touched_blocks
from memsvc.tree.models import Block, BlockQuerySet, File, Revision
from memsvc.tree.snapshot import Snapshot, snapshot

MAX_LISTED = 1000


EVERY_REVISION = RevisionFilter()


def list_revisions(
    access: Access, wanted: RevisionFilter = EVERY_REVISION, *, cursor: str | None = None, limit: int = 100
) -> Page[RevisionRead]:
    """A tree's revisions, newest first; up to `limit` (1 to 1,000) a page.

    An access that sees a folder only is told of the revisions that changed something in it.
    """
    limit = max(1, min(limit, MAX_LISTED))
    with snapshot(access) as now:
        revisions = _wanted(now, wanted)
        if cursor is not None:
            revisions = revisions.filter(number__lt=after_number(cursor))
        rows = list(revisions.order_by("-number")[: limit + 1])
        items = read_revisions(now, rows[:limit])
    return Page(items, cursor_of_number(items[-1].number) if len(rows) > limit else None)


def _wanted(now: Snapshot, wanted: RevisionFilter) -> QuerySet[Revision]:
    revisions = Revision.objects.of(now.access.tree).matching(wanted)
    folder = _within_sight(now.access, canonical_folder(wanted.path))
    if folder is None:
        return revisions.none()
    if folder == "/":
        return revisions
    # Of those up to the oldest that is kept it is no longer known what they changed.
    return revisions.filter(number__in=_numbers_below(now, folder), number__gt=now.tree.history_from)


def _within_sight(access: Access, folder: str) -> str | None:
    """As much of a folder as the access sees: it, the access's own folder in it, or nothing."""
    if access.sees(folder):
        return folder
    return access.prefix if folder == "/" or access.prefix.startswith(folder + "/") else None


def _numbers_below(now: Snapshot, folder: str) -> set[int]:
    """The revisions in which a file, or anything in a folder, came, went or changed while it stood there."""
    placements: dict[UUID, list[File]] = defaultdict(list)
    for placement in File.objects.of(now.access.tree).at_or_below(folder):
        placements[placement.content_id].append(placement)
    found = touched(now.access.tree, None, counting=now.visible, only=placements.keys())
    return {
        number
        for number, file_id in found
        # It stood there in the revision, or until it.
        if any(each.is_live_at(number) or each.removed_in == number for each in placements[file_id])
    }


def revision_at(access: Access, at: datetime) -> int:
    """The number of the newest revision at an instant; 0 before the first."""
    with snapshot(access):
        newest = Revision.objects.of(access.tree).filter(at__lte=in_utc(at)).order_by("-number").first()
    return newest.number if newest else 0


def get_revision(access: Access, number: int) -> RevisionDetail:
    """A revision and all that it changed, as far as the access sees it.

    Raises `RevisionNotFound`, also where nothing of it lies within the access, and `RevisionPruned` where the one
    before it can't be read.
    """
    with snapshot(access) as now:
        row = Revision.objects.of(access.tree).filter(number=number).first()
        if row is None:
            raise RevisionNotFound(number, now.tree.revision)
        now.tree.require_revision(number - 1)
        ids = {file_id for _, file_id in touched(access.tree, [number], counting=now.visible)}
        places = Places(now, ids)
        before, after = places.at(number - 1), places.at(number)
        if access.prefix != "/" and not before and not after:
            raise RevisionNotFound(number, now.tree.revision)
        files = [file_change(before.get(file_id), after.get(file_id)) for file_id in ids]
        blocks = touched_blocks(access.tree, [number], counting=now.visible)
        entries = list(_entry_changes(blocks.entries(), number, before, after))
        [revision] = read_revisions(now, [row])
    return RevisionDetail(
        revision=revision,
        files=sorted((file for file in files if file), key=lambda file: (file.path, file.action)),
        entries=sorted(entries, key=lambda entry: (entry.path, entry.entry_id)),
    )


def _entry_changes(
    blocks: BlockQuerySet, number: int, before: dict[UUID, str], after: dict[UUID, str]
) -> Iterator[EntryChange]:
    rows: dict[str, list[Block]] = defaultdict(list)
    for block in blocks:
        if block.file_id in before or block.file_id in after:
            rows[block.entry_id].append(block)
    for entry_id, versions in rows.items():
        was = next((row for row in versions if row.is_live_at(number - 1) and row.file_id in before), None)
        now = next((row for row in versions if row.is_live_at(number) and row.file_id in after), None)
        if action := _entry_action(was, now, number):
            place = after[now.file_id] if now else before[was.file_id] if was else ""
            yield EntryChange(entry_id, place, action)


def _entry_action(was: Block | None, now: Block | None, number: int) -> str:
    if was is None or now is None:
        return "added" if now else "removed" if was else ""
    if not entry_of(was, number - 1).superseded_by and entry_of(now, number).superseded_by:
        return "superseded"
    return "changed" if rendered(was, number - 1) != rendered(now, number) else ""
