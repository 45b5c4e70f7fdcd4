"""The versions of memories, for the memory stores: one for each revision that changed a file, found in its rows.

Nothing of this is stored but what was redacted. A version is named by the file's id and the revision's number. Where
old history was let go, the oldest version of a file is the one that it had when the history that is left begins.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from uuid import UUID

from django.db.models import F, Max, Q, QuerySet

from memsvc.tree.access import Access
from memsvc.tree.blocks import rendered
from memsvc.tree.cursors import after_version, cursor_of_version
from memsvc.tree.errors import VersionNotFound
from memsvc.tree.files import MAX_FILE_BYTES
from memsvc.tree.history.timeline import Places, read_revisions, touched
from memsvc.tree.models import Block, BlockQuerySet, File, Redaction, Revision
from memsvc.tree.results import MemoryVersion, RedactionRead, VersionsPage
from memsvc.tree.snapshot import Snapshot, snapshot

# What a memory may be made with, and what a list shows of each.
MAX_CONTENT_BYTES = 102_400
_BLOCKS_AT_ONCE = 200
# The first look takes what a page needs; each further one twice as many revisions, because few of them fit.
_FIRST_REVISIONS = 100
_MOST_REVISIONS = 3200


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFilter:
    """Which versions are wanted: of one file, of one operation, by whom, in which run, from when to when (inclusive).

    `actor` is an id, and `actor_kinds` what it may be the id of; None is for everybody.
    """

    memory: UUID | None = None
    operation: str | None = None
    actor: str | None = None
    actor_kinds: Collection[str] | None = None
    run_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def list_versions(
    access: Access,
    wanted: VersionFilter,
    *,
    with_content: bool = False,
    cursor: str | None = None,
    limit: int = 20,
) -> VersionsPage:
    """The versions of a tree's files, also of those that are gone, newest first; up to `limit` a page.

    Of content that is larger than a memory may be made, lists tell hash and size only.
    """
    with snapshot(access) as now:
        before = after_version(cursor) if cursor is not None else None
        found = list(islice(_walk(now, wanted, before), limit + 1))
        up_to = MAX_CONTENT_BYTES if with_content else None
        items = list(_versions(now, found[:limit], up_to))
    more = (
        cursor_of_version(found[limit - 1].number, found[limit - 1].file_id) if len(found) > limit else None
    )
    return VersionsPage(items, more)


def read_version(access: Access, file_id: UUID, number: int, *, with_content: bool = True) -> MemoryVersion:
    """One version of a file. Raises `VersionNotFound`."""
    with snapshot(access) as now:
        up_to = MAX_FILE_BYTES if with_content else None
        return next(_versions(now, [find_change(now, file_id, number)], up_to))


@dataclass(frozen=True, slots=True)
class FileChanged:
    """What a revision did to a file: where it stood before and stands after, as far as the access sees it.

    What the file held from then on is read as of `as_of`, which is later where the history begins later.
    """

    file_id: UUID
    revision: Revision
    before: str | None
    after: str | None
    as_of: int

    @property
    def number(self) -> int:
        return self.revision.number

    @property
    def operation(self) -> str:
        return "deleted" if self.after is None else "created" if self.before is None else "modified"


def find_change(now: Snapshot, file_id: UUID, number: int) -> FileChanged:
    """Raises `VersionNotFound`."""
    revisions = list(Revision.objects.of(now.access.tree).filter(number=number))
    found = list(_changes(now, revisions, only=[file_id]))
    if not found:
        raise VersionNotFound
    return found[0]


def numbers_of(now: Snapshot, file_id: UUID) -> list[int]:
    """The revisions that changed a file, as readers see it; ascending."""
    return sorted(number for number, _ in _kept(now, _touched(now, None, only=[file_id])))


def current_versions(now: Snapshot, files: Sequence[File]) -> dict[UUID, int]:
    """The number of the newest version of each of these files, which stand now."""
    stood = Block.objects.of(now.access.tree).filter(now.visible, _STOOD)
    blocks = stood.filter(file_id__in=[file.pk for file in files]).order_by()
    rows = blocks.values("file_id").annotate(
        added=Max("added_in"), removed=Max("removed_in"), superseded=Max("superseded_in")
    )
    newest = {row["file_id"]: max(row["added"], row["removed"] or 0, row["superseded"] or 0) for row in rows}
    return {file.pk: max(file.added_in, file.pruned_in, newest.get(file.pk, 0)) for file in files}


def _walk(now: Snapshot, wanted: VersionFilter, before: tuple[int, UUID] | None) -> Iterator[FileChanged]:
    revisions = _wanted(now, wanted).order_by("-number")
    only = None if wanted.memory is None else [wanted.memory]
    last, at_once = before[0] + 1 if before else None, _FIRST_REVISIONS
    while True:
        some = list((revisions.filter(number__lt=last) if last else revisions)[:at_once])
        if not some:
            return
        for change in _changes(now, some, only=only):
            if before is not None and (change.number, change.file_id) >= before:
                continue
            if wanted.operation in (None, change.operation):
                yield change
        last, at_once = some[-1].number, min(2 * at_once, _MOST_REVISIONS)


def _wanted(now: Snapshot, wanted: VersionFilter) -> QuerySet[Revision]:
    revisions = Revision.objects.of(now.access.tree)
    if wanted.memory is not None:
        # Most revisions are about other files.
        revisions = revisions.filter(number__in=numbers_of(now, wanted.memory))
    if wanted.actor is not None:
        revisions = revisions.filter(actor_id=wanted.actor)
    if wanted.actor_kinds is not None:
        revisions = revisions.filter(actor_kind__in=wanted.actor_kinds)
    if wanted.run_id is not None:
        revisions = revisions.filter(run_id=wanted.run_id)
    if wanted.since is not None:
        revisions = revisions.filter(at__gte=wanted.since)
    if wanted.until is not None:
        revisions = revisions.filter(at__lte=wanted.until)
    return revisions


def _changes(
    now: Snapshot, revisions: Sequence[Revision], *, only: Collection[UUID] | None
) -> Iterator[FileChanged]:
    """What these revisions did to files that the access sees, newest first."""
    by_number = {revision.number: revision for revision in revisions}
    found = _kept(now, _touched(now, list(by_number), only=only))
    oldest = now.tree.history_from
    places = Places(now, {file_id for _, file_id in found})
    for number, file_id in sorted(found, reverse=True):
        as_of = max(number, oldest)
        after = places.path(file_id, as_of)
        if number > oldest:
            before = places.path(file_id, number - 1)
        else:
            # As well as it can still be told.
            is_new = any(placement.created_in == number for placement in places.placements(file_id))
            before = None if is_new else after
        if before is not None or after is not None:
            yield FileChanged(file_id, by_number[number], before, after, as_of)


type _Touched = set[tuple[int, UUID]]


def _kept(now: Snapshot, found: _Touched) -> _Touched:
    """Without the versions that a file no longer had when the history that is left begins."""
    oldest = now.tree.history_from
    early = {file_id for number, file_id in found if number <= oldest}
    if not early:
        return found
    numbers: dict[UUID, int] = defaultdict(int)
    for number, file_id in _touched(now, None, only=early):
        if number <= oldest:
            numbers[file_id] = max(numbers[file_id], number)
    return {(number, file_id) for number, file_id in found if number > oldest or number == numbers[file_id]}


# What came and went in one revision never stood.
_STOOD = Q(removed_in__isnull=True) | ~Q(removed_in=F("added_in"))


def _touched(now: Snapshot, numbers: Collection[int] | None, *, only: Collection[UUID] | None) -> _Touched:
    """The revisions with the files of which they made a version."""
    found = touched(now.access.tree, numbers, counting=now.visible & _STOOD, only=only)
    # Of a version that was redacted nothing else may be left.
    redactions = Redaction.objects.of(now.access.tree)
    files = File.objects.of(now.access.tree)
    if numbers is not None:
        redactions, files = redactions.filter(number__in=numbers), files.filter(pruned_in__in=numbers)
    if only is not None:
        redactions, files = redactions.filter(file_id__in=only), files.of_contents(only)
    found |= set(redactions.values_list("number", "file_id"))
    if numbers is None or min(numbers, default=0) <= now.tree.history_from:
        # The newest change of which the rows were let go.
        found |= {(file.pruned_in, file.content_id) for file in files.filter(pruned_in__gt=0)}
    return found


def _versions(now: Snapshot, changes: Sequence[FileChanged], up_to: int | None) -> Iterator[MemoryVersion]:
    """The versions that changes made, with text of up to `up_to` bytes; None asks for no text."""
    redacted = Redaction.objects.of(now.access.tree).filter(
        file_id__in={change.file_id for change in changes},
        number__in={change.number for change in changes},
    )
    redactions = {
        (row.file_id, row.number): RedactionRead(row.at, row.actor_kind, row.actor_id) for row in redacted
    }
    revisions = read_revisions(now, [change.revision for change in changes])
    for change, revision in zip(changes, revisions, strict=True):
        redaction = redactions.get((change.file_id, change.number))
        held = None
        if redaction is None and change.after is not None:
            blocks = Block.objects.of(now.access.tree).live_at(change.as_of).filter(now.visible)
            of_file = blocks.filter(file_id=change.file_id).order_by("position")
            held = held_by(of_file, change.as_of, up_to=up_to)
        yield MemoryVersion(
            memory=change.file_id,
            revision=revision,
            operation=change.operation,
            path=None if redaction else change.after or change.before,
            text=held.text if held else None,
            sha256=held.sha256 if held else None,
            size=held.size if held else None,
            redaction=redaction,
        )


@dataclass(frozen=True, slots=True)
class Held:
    """What blocks hold together; `text` is None where it was not wanted, is too long, or is no text."""

    text: str | None
    sha256: str
    size: int


def held_by(blocks: BlockQuerySet, revision: int | None, *, up_to: int | None) -> Held:
    """The content of blocks as of a revision, without holding more than `up_to` bytes of it."""
    digest, size, kept = hashlib.sha256(), 0, bytearray()
    for block in blocks.iterator(chunk_size=_BLOCKS_AT_ONCE):
        data = rendered(block, revision)
        digest.update(data)
        size += len(data)
        if up_to is not None and size <= up_to:
            kept += data
    wanted = up_to is not None and size <= up_to
    return Held(_decoded(kept) if wanted else None, digest.hexdigest(), size)


def _decoded(data: bytearray) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
