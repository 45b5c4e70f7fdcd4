"""What happened to a tree: its revisions, how two of them differ, who wrote each line, how an entry came to be."""

import difflib
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from uuid import UUID

from django.db.models import Q, QuerySet

from memsvc.format import canonical_folder, canonical_path, in_utc
from memsvc.tree.access import Access
from memsvc.tree.blocks import content, entry_of, rendered
from memsvc.tree.errors import EntryNotFound, FileNotFound, RevisionNotFound
from memsvc.tree.files import decodes
from memsvc.tree.models import Block, File, Revision, Tree
from memsvc.tree.reads.cursors import after_number, cursor_of_number
from memsvc.tree.reads.moment import Moment, moment
from memsvc.tree.results import (
    Blame,
    BlamedLine,
    EntryChange,
    EntryVersion,
    FileChange,
    FileDiff,
    Hunk,
    RevisionDetail,
    RevisionRead,
    RevisionsPage,
)

MAX_LISTED = 1000
CONTEXT_LINES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionFilter:
    """Which revisions are wanted: by whom (`actor` is an id), of which file or folder, and when.

    `since` is inclusive, `until` exclusive.
    """

    actor: str | None = None
    path: str | None = None
    since: datetime | None = None
    until: datetime | None = None


EVERY_REVISION = RevisionFilter()


def list_revisions(
    access: Access, wanted: RevisionFilter = EVERY_REVISION, *, cursor: str | None = None, limit: int = 100
) -> RevisionsPage:
    """A tree's revisions, newest first; up to `limit` (1 to 1,000) a page."""
    limit = max(1, min(limit, MAX_LISTED))
    with moment(access) as now:
        revisions = _wanted(now, wanted)
        if cursor is not None:
            revisions = revisions.filter(number__lt=after_number(cursor))
        rows = list(revisions.order_by("-number")[: limit + 1])
    page = rows[:limit]
    return RevisionsPage(
        items=[_read(row) for row in page],
        next=cursor_of_number(page[-1].number) if len(rows) > limit else None,
    )


def _wanted(now: Moment, wanted: RevisionFilter) -> QuerySet[Revision]:
    revisions = _revisions(now)
    if wanted.actor is not None:
        revisions = revisions.filter(actor_id=wanted.actor)
    if wanted.since is not None:
        revisions = revisions.filter(at__gte=in_utc(wanted.since))
    if wanted.until is not None:
        revisions = revisions.filter(at__lt=in_utc(wanted.until))
    prefixes = {canonical_folder(wanted.path), now.access.prefix} - {"/"}
    for prefix in prefixes:
        revisions = revisions.filter(number__in=_numbers_below(now, prefix))
    return revisions


def _revisions(now: Moment) -> QuerySet[Revision]:
    tree = now.access.tree
    return Revision.objects.filter(tenant_id=tree.tenant_id, tree_id=tree.pk)


def _numbers_below(now: Moment, folder: str) -> set[int]:
    """The revisions that touched a file, or anything in a folder, under whatever name it had then."""
    files = File.objects.of(now.access.tree)
    here = files.under(folder) | files.filter(path=folder)
    numbers = {number for pair in here.values_list("added_in", "removed_in") for number in pair if number}
    ids = {former or pk for pk, former in here.values_list("pk", "former_of")}
    blocks = Block.objects.of(now.access.tree).filter(file_id__in=ids)
    for column in ("added_in", "removed_in", "superseded_in"):
        numbers |= set(
            blocks.filter(**{f"{column}__isnull": False}).values_list(column, flat=True).distinct()
        )
    return numbers


def _read(row: Revision) -> RevisionRead:
    return RevisionRead(
        number=row.number,
        at=row.at,
        actor_kind=row.actor_kind,
        actor_id=row.actor_id,
        actor_name=row.actor_name,
        action=row.action,
        message=row.message,
    )


def revision_at(access: Access, at: datetime) -> int:
    """The number of the newest revision at an instant; 0 before the first."""
    with moment(access) as now:
        newest = _revisions(now).filter(at__lte=in_utc(at)).order_by("-number").first()
    return newest.number if newest else 0


def get_revision(access: Access, number: int) -> RevisionDetail:
    """A revision and all that it changed, as far as the access sees it. Raises `RevisionNotFound`."""
    with moment(access) as now:
        row = _revisions(now).filter(number=number).first()
        if row is None:
            raise RevisionNotFound(number, _newest(now))
        changed = _Changed.between(now, number - 1, number)
        return RevisionDetail(_read(row), changed.files(), changed.entries())


def _newest(now: Moment) -> int:
    tree = now.access.tree
    return Tree.objects.values_list("revision", flat=True).get(tenant_id=tree.tenant_id, pk=tree.pk)


@dataclass(frozen=True, slots=True)
class _Changed:
    """The rows by which one revision of a tree differs from a later one."""

    now: Moment
    old: int
    new: int
    blocks: list[Block]
    ids: set[UUID]

    @classmethod
    def between(cls, now: Moment, old: int, new: int) -> "_Changed":
        span = range(old + 1, new + 1)
        every = Block.objects.of(now.access.tree).filter(now.visible)
        within = Q(added_in__in=span) if len(span) == 1 else Q(added_in__gt=old, added_in__lte=new)
        gone = Q(removed_in__in=span) if len(span) == 1 else Q(removed_in__gt=old, removed_in__lte=new)
        added, removed = list(every.filter(within)), list(every.filter(gone).exclude(within))
        # What was superseded is found by what superseded it: that column is in no index.
        targets = [block.supersedes for block in added if block.supersedes]
        retired = list(every.filter(entry_id__in=targets, superseded_in__gt=old, superseded_in__lte=new))
        blocks = list({block.pk: block for block in (*added, *removed, *retired)}.values())
        return cls(now, old, new, blocks, {block.file_id for block in blocks} | cls._moved(now, old, new))

    @staticmethod
    def _moved(now: Moment, old: int, new: int) -> set[UUID]:
        files = File.objects.of(now.access.tree)
        rows = files.filter(
            Q(added_in__gt=old, added_in__lte=new) | Q(removed_in__gt=old, removed_in__lte=new)
        )
        return {file.content_id for file in rows}

    def places(self, revision: int) -> dict[UUID, str]:
        """Where each touched file stood in a revision."""
        files = File.objects.of(self.now.access.tree).standing(revision)
        here = files.filter(Q(pk__in=self.ids, former_of=None) | Q(former_of__in=self.ids))
        return {file.content_id: file.path for file in here if self.now.access.sees(file.path)}

    def files(self) -> list[FileChange]:
        before, after = self.places(self.old), self.places(self.new)
        changes = [_file_change(before.get(file_id), after.get(file_id)) for file_id in self.ids]
        return sorted(
            (change for change in changes if change), key=lambda change: (change.path, change.action)
        )

    def entries(self) -> list[EntryChange]:
        places = self.places(self.old) | self.places(self.new)
        by_id: dict[str, list[Block]] = defaultdict(list)
        for block in self.blocks:
            if block.entry_id and block.file_id in places:
                by_id[block.entry_id].append(block)
        changes = [
            EntryChange(entry_id, places[rows[0].file_id], self._entry_action(rows))
            for entry_id, rows in by_id.items()
        ]
        return sorted(changes, key=lambda change: (change.path, change.entry_id))

    def _entry_action(self, rows: Sequence[Block]) -> str:
        was = any(self._stands(row, self.old) for row in rows)
        is_there = any(self._stands(row, self.new) for row in rows)
        if not was or not is_there:
            return "added" if is_there else "removed"
        return "changed" if any(row.added_in > self.old for row in rows) else "superseded"

    @staticmethod
    def _stands(row: Block, revision: int) -> bool:
        return row.added_in <= revision and (row.removed_in is None or row.removed_in > revision)


def _file_change(before: str | None, after: str | None) -> FileChange | None:
    if before is None or after is None:
        path = after or before
        return FileChange(path, "created" if after else "deleted") if path else None
    if before != after:
        return FileChange(after, "moved", source=before)
    return FileChange(after, "changed")


def diff(access: Access, old: int, new: int | None = None, *, path: str | None = None) -> list[FileDiff]:
    """How each file differs between two revisions (`new=None` is now), or the one file at `path`.

    A file that was moved is compared with itself. Raises `RevisionNotFound`, and `FileNotFound` for a path that
    stood in neither.
    """
    with moment(access) as now:
        newest = _newest(now)
        new = newest if new is None else new
        for number in (old, new):
            if not 0 <= number <= newest:
                raise RevisionNotFound(number, newest)
        forwards = _Changed.between(now, min(old, new), max(old, new))
        before, after = forwards.places(old), forwards.places(new)
        wanted = canonical_path(path) if path is not None else None
        if wanted is not None:
            _require_in_one_of(now, wanted, old, new)
        diffs = [
            _file_diff(now, file_id, before.get(file_id), after.get(file_id), old, new)
            for file_id in forwards.ids
            if wanted is None or wanted in (before.get(file_id), after.get(file_id))
        ]
    return sorted((each for each in diffs if each), key=lambda each: each.path)


def _require_in_one_of(now: Moment, path: str, old: int, new: int) -> None:
    files = File.objects.of(now.access.tree).filter(path=path)
    if not now.access.sees(path) or not (files.standing(old) | files.standing(new)).exists():
        raise FileNotFound(path)


def _file_diff(
    now: Moment, file_id: UUID, before: str | None, after: str | None, old: int, new: int
) -> FileDiff | None:
    change = _file_change(before, after)
    if change is None:
        return None
    was = _content_at(now, file_id, old) if before else b""
    is_now = _content_at(now, file_id, new) if after else b""
    if was == is_now and change.action == "changed":
        return None
    hunks: list[Hunk] = []
    unified = ""
    if decodes(was) and decodes(is_now):
        lines = was.decode().splitlines(keepends=True), is_now.decode().splitlines(keepends=True)
        hunks = list(_hunks(*lines))
        unified = _unified(before, after, hunks)
    return FileDiff(
        path=change.path,
        action=change.action,
        unified=unified,
        hunks=hunks,
        old_sha256=hashlib.sha256(was).hexdigest() if before else None,
        new_sha256=hashlib.sha256(is_now).hexdigest() if after else None,
    )


def _content_at(now: Moment, file_id: UUID, revision: int) -> bytes:
    blocks = Block.objects.of(now.access.tree).standing(revision).filter(now.visible, file_id=file_id)
    return content(blocks.order_by("position"), revision)


def _hunks(old: Sequence[str], new: Sequence[str]) -> Iterator[Hunk]:
    matcher = difflib.SequenceMatcher(None, old, new)
    for group in matcher.get_grouped_opcodes(CONTEXT_LINES):
        lines: list[str] = []
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [" " + line for line in old[i1:i2]]
            else:
                lines += ["-" + line for line in old[i1:i2]] + ["+" + line for line in new[j1:j2]]
        first, last = group[0], group[-1]
        old_lines, new_lines = last[2] - first[1], last[4] - first[3]
        # As in a unified diff: the start of an empty range is the line before it.
        yield Hunk(first[1] + bool(old_lines), old_lines, first[3] + bool(new_lines), new_lines, lines)


def _unified(before: str | None, after: str | None, hunks: Iterable[Hunk]) -> str:
    parts = [f"--- {before or '/dev/null'}\n", f"+++ {after or '/dev/null'}\n"]
    for hunk in hunks:
        parts.append(f"@@ -{hunk.old_start},{hunk.old_lines} +{hunk.new_start},{hunk.new_lines} @@\n")
        parts += [
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in hunk.lines
        ]
    return "".join(parts)


def blame(access: Access, path: str, *, revision: int | None = None) -> Blame:
    """For each line of a text file, the revision that last changed it, and the entry that it belongs to.

    Content that is no text has no lines. Raises `FileNotFound`.
    """
    path = canonical_path(path)
    with moment(access, revision) as now:
        file, _ = now.file(path)
        rows = list(now.blocks_of(file))
        if not decodes(content(rows, revision)):
            return Blame(path, [], {})
        before = _predecessors(now, file, rows)
        lines = [
            (text, number, row.entry_id or None)
            for row in rows
            for text, number in _blamed(row, before, revision)
        ]
        numbers = {number for _, number, _ in lines}
        revisions = {row.number: _read(row) for row in _revisions(now).filter(number__in=numbers)}
    blamed = [
        BlamedLine(n, text.rstrip("\r\n"), number, entry) for n, (text, number, entry) in enumerate(lines, 1)
    ]
    return Blame(path, blamed, revisions)


type _Predecessors = dict[tuple[int, int], Block]


def _predecessors(now: Moment, file: File, rows: Sequence[Block]) -> _Predecessors:
    """Closed blocks by position and the revision that closed them: what took their place was made from them."""
    positions = [row.position for row in rows]
    closed = Block.objects.of(now.access.tree).filter(file_id=file.content_id, removed_in__isnull=False)
    return {(row.position, row.removed_in or 0): row for row in closed.filter(position__in=positions)}


def _blamed(row: Block, before: _Predecessors, revision: int | None) -> list[tuple[str, int]]:
    """The lines of a block with the revision of each, as far as they can be followed back."""
    chain = [row]
    while predecessor := before.get((chain[-1].position, chain[-1].added_in)):
        chain.append(predecessor)
    lines: list[tuple[str, int]] = []
    for block in reversed(chain):
        lines = _carried(lines, _lines(block, None if block is not row else -1), block.added_in)
    return _carried(lines, _lines(row, revision), row.superseded_in or row.added_in)


def _lines(row: Block, revision: int | None) -> list[str]:
    """A block's lines as of a revision; -1 is before it was superseded."""
    return rendered(row, revision).decode(errors="replace").splitlines(keepends=True)


def _carried(known: Sequence[tuple[str, int]], lines: Sequence[str], revision: int) -> list[tuple[str, int]]:
    """Lines that were there before keep their revision; the others are of this one."""
    blamed = [(line, revision) for line in lines]
    matcher = difflib.SequenceMatcher(None, [text for text, _ in known], lines, autojunk=False)
    for start, at, size in matcher.get_matching_blocks():
        blamed[at : at + size] = known[start : start + size]
    return blamed


def entry_history(access: Access, entry_id: str) -> list[EntryVersion]:
    """The states of an entry and of those that it superseded, directly or not, oldest first.

    Raises `EntryNotFound` where no revision that the access sees has an entry with this id.
    """
    with moment(access) as now:
        blocks = _lineage(now, entry_id)
        states = sorted(_states(blocks), key=lambda state: (state[0], state[1] != "added"))
        numbers = {number for number, _, _ in states}
        revisions = {row.number: _read(row) for row in _revisions(now).filter(number__in=numbers)}
        return [
            EntryVersion(revisions[number], action, block.file.path, entry_of(block, number))
            for number, action, block in states
            if number in revisions
        ]


def _lineage(now: Moment, entry_id: str) -> list[Block]:
    found: dict[UUID, Block] = {}
    wanted, seen = {entry_id}, set[str]()
    while wanted:
        rows = (
            Block.objects.of(now.access.tree)
            .entries()
            .filter(now.visible, entry_id__in=wanted)
            .select_related("file")
        )
        found |= {row.pk: row for row in rows if now.access.sees(row.file.path)}
        seen |= wanted
        wanted = {row.supersedes for row in rows if row.supersedes} - seen
    if not any(row.entry_id == entry_id for row in found.values()):
        raise EntryNotFound(entry_id)
    return list(found.values())


def _states(blocks: Iterable[Block]) -> Iterator[tuple[int, str, Block]]:
    """Each revision in which an entry's text, or what supersedes it, became another."""
    ordered = sorted(blocks, key=lambda block: (block.entry_id, block.added_in))
    for _, versions in groupby(ordered, key=lambda block: block.entry_id):
        rows = list(versions)
        starts = {row.added_in for row in rows}
        for number, row in enumerate(rows):
            yield row.added_in, "changed" if number else "added", row
            if row.superseded_in is not None:
                yield row.superseded_in, "superseded", row
            if row.removed_in is not None and row.removed_in not in starts:
                yield row.removed_in, "removed", row
