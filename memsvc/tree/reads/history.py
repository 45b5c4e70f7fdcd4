"""What happened to a tree: its revisions, and how two of them differ."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from memsvc.contract.files import Page
from memsvc.contract.history import EntryChange, FileChange, FileDiff, Hunk, RevisionDetail, RevisionRead
from memsvc.format import canonical_folder, in_utc
from memsvc.tree.access import Access
from memsvc.tree.blocks import RENDERED, content, entry_of, rendered
from memsvc.tree.errors import FileNotFound, RevisionNotFound, TooLarge
from memsvc.tree.files import decodes
from memsvc.tree.lines import Range, line_differences, lines_of
from memsvc.tree.models import Block, BlockQuerySet, File, FileQuerySet, Revision
from memsvc.tree.reads.cursors import after_number, cursor_of_number
from memsvc.tree.reads.moment import Moment, moment

MAX_LISTED = 1000
MAX_FILES_COMPARED = 1000
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
) -> Page[RevisionRead]:
    """A tree's revisions, newest first; up to `limit` (1 to 1,000) a page.

    An access that sees a folder only is told of the revisions that changed something in it.
    """
    limit = max(1, min(limit, MAX_LISTED))
    with moment(access) as now:
        revisions = _wanted(now, wanted)
        if cursor is not None:
            revisions = revisions.filter(number__lt=after_number(cursor))
        rows = list(revisions.order_by("-number")[: limit + 1])
    page = rows[:limit]
    return Page(
        items=[read_revision(row) for row in page],
        next=cursor_of_number(page[-1].number) if len(rows) > limit else None,
    )


def _wanted(now: Moment, wanted: RevisionFilter) -> QuerySet[Revision]:
    revisions = revisions_of(now)
    if wanted.actor is not None:
        revisions = revisions.filter(actor_id=wanted.actor)
    if wanted.since is not None:
        revisions = revisions.filter(at__gte=in_utc(wanted.since))
    if wanted.until is not None:
        revisions = revisions.filter(at__lt=in_utc(wanted.until))
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


def revisions_of(now: Moment) -> QuerySet[Revision]:
    tree = now.access.tree
    return Revision.objects.filter(tenant_id=tree.tenant_id, tree_id=tree.pk)


def _numbers_below(now: Moment, folder: str) -> set[int]:
    """The revisions in which a file, or anything in a folder, came, went or changed while it stood there."""
    stays = list(_at_or_below(File.objects.of(now.access.tree), folder))
    numbers = {number for stay in stays for number in (stay.added_in, stay.removed_in) if number}
    blocks = Block.objects.of(now.access.tree).filter(
        now.visible, file_id__in={stay.content_id for stay in stays}
    )
    by_content = defaultdict(list)
    for stay in stays:
        by_content[stay.content_id].append(stay)
    for file_id, *touched in blocks.values_list("file_id", "added_in", "removed_in", "superseded_in"):
        numbers |= {number for number in touched if number and _stood(by_content[file_id], number)}
    return numbers


def _stood(stays: Sequence[File], number: int) -> bool:
    return any(
        stay.added_in <= number and (stay.removed_in is None or number <= stay.removed_in) for stay in stays
    )


def _at_or_below(files: FileQuerySet, folder: str) -> FileQuerySet:
    return files if folder == "/" else files.under(folder) | files.filter(path=folder)


def read_revision(row: Revision) -> RevisionRead:
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
        newest = revisions_of(now).filter(at__lte=in_utc(at)).order_by("-number").first()
    return newest.number if newest else 0


def get_revision(access: Access, number: int) -> RevisionDetail:
    """A revision and all that it changed, as far as the access sees it.

    Raises `RevisionNotFound`, also where nothing of it lies within the access, and `RevisionPruned` where the one
    before it can't be read.
    """
    with moment(access) as now:
        row = revisions_of(now).filter(number=number).first()
        if row is None:
            raise RevisionNotFound(number, now.tree.revision)
        now.tree.require_revision(number - 1)
        step = _Span(now, number - 1, number)
        ids = step.touched()
        before, after = step.places(ids, number - 1, number)
        if access.prefix != "/" and not before and not after:
            raise RevisionNotFound(number, now.tree.revision)
        files = [_file_change(before.get(file_id), after.get(file_id)) for file_id in ids]
        entries = _entry_changes(step, before, after)
    return RevisionDetail(
        revision=read_revision(row),
        files=sorted((file for file in files if file), key=lambda file: (file.path, file.action)),
        entries=sorted(entries, key=lambda entry: (entry.path, entry.entry_id)),
    )


@dataclass(frozen=True, slots=True)
class _Span:
    """What lies between two revisions of a tree, the later one included."""

    now: Moment
    old: int
    new: int

    def blocks(self) -> BlockQuerySet:
        """The visible blocks that came, went or were superseded."""
        every = Block.objects.of(self.now.access.tree)
        # What was superseded is found by what superseded it: that column is in no index.
        targets = every.filter(self._between("added_in")).exclude(supersedes="").values("supersedes")
        retired = every.filter(self._between("superseded_in"), kind="entry", entry_id__in=targets)
        changed = every.filter(self._between("added_in")) | every.filter(self._between("removed_in"))
        ids = changed.values("pk").union(retired.values("pk"))
        return every.filter(self.now.visible, pk__in=ids)

    def _between(self, column: str) -> Q:
        if self.new == self.old + 1:
            return Q(**{column: self.new})
        return Q(**{f"{column}__gt": self.old, f"{column}__lte": self.new})

    def touched(self) -> set[UUID]:
        """The files, by what their blocks refer to, of which anything came, went, changed or moved."""
        files = File.objects.of(self.now.access.tree)
        moved = files.filter(self._between("added_in") | self._between("removed_in"))
        return set(self.blocks().values_list("file_id", flat=True)) | {file.content_id for file in moved}

    def places(self, ids: set[UUID], *revisions: int) -> list[dict[UUID, str]]:
        """Where each of these files stood in each of these revisions, as far as a reader sees it."""
        files = File.objects.of(self.now.access.tree)
        stays = files.filter(Q(pk__in=ids, former_of=None) | Q(former_of__in=ids))
        seen = [stay for stay in stays if self.now.access.sees(stay.path)]
        expired = self._expired({stay.content_id for stay in seen})
        return [self._places(seen, expired, revision) for revision in revisions]

    def _places(self, stays: Sequence[File], expired: set[UUID], revision: int) -> dict[UUID, str]:
        there = [stay for stay in stays if _stands(stay, revision)]
        hidden = self._hidden(expired, revision)
        return {stay.content_id: stay.path for stay in there if stay.content_id not in hidden}

    def _expired(self, ids: set[UUID]) -> set[UUID]:
        """Those of which something has disappeared, ever."""
        blocks = Block.objects.of(self.now.access.tree).filter(file_id__in=ids).exclude(self.now.visible)
        return set(blocks.values_list("file_id", flat=True)) if ids else set()

    def _hidden(self, expired: set[UUID], revision: int) -> set[UUID]:
        """Those that hold blocks in a revision of which none is visible."""
        if not expired:
            return set()
        blocks = Block.objects.of(self.now.access.tree).standing(revision).filter(file_id__in=expired)
        gone = set(blocks.exclude(self.now.visible).values_list("file_id", flat=True))
        return gone - set(blocks.filter(self.now.visible, file_id__in=gone).values_list("file_id", flat=True))


def _file_change(before: str | None, after: str | None) -> FileChange | None:
    if before is None or after is None:
        path = after or before
        return FileChange(path, "created" if after else "deleted") if path else None
    if before != after:
        return FileChange(after, "moved", source=before)
    return FileChange(after, "changed")


def _entry_changes(step: _Span, before: dict[UUID, str], after: dict[UUID, str]) -> Iterator[EntryChange]:
    rows: dict[str, list[Block]] = defaultdict(list)
    for block in step.blocks().entries():
        if block.file_id in before or block.file_id in after:
            rows[block.entry_id].append(block)
    for entry_id, versions in rows.items():
        was = next((row for row in versions if _stands(row, step.old) and row.file_id in before), None)
        now = next((row for row in versions if _stands(row, step.new) and row.file_id in after), None)
        if action := _entry_action(was, now, step):
            place = after[now.file_id] if now else before[was.file_id] if was else ""
            yield EntryChange(entry_id, place, action)


def _entry_action(was: Block | None, now: Block | None, step: _Span) -> str:
    if was is None or now is None:
        return "added" if now else "removed" if was else ""
    if not entry_of(was, step.old).superseded_by and entry_of(now, step.new).superseded_by:
        return "superseded"
    return "changed" if rendered(was, step.old) != rendered(now, step.new) else ""


def _stands(row: Block | File, revision: int) -> bool:
    return row.added_in <= revision and (row.removed_in is None or row.removed_in > revision)


def diff(access: Access, old: int, new: int | None = None, *, path: str | None = None) -> list[FileDiff]:
    """How each file differs between two revisions (`new=None` is now), or those at and below `path`.

    A file that was moved is compared with itself, one that was deleted and made again with what stands at its path.
    Raises `RevisionNotFound`, `RevisionPruned`, `FileNotFound` for a path at which nothing stood in either, and
    `TooLarge` for more than 1,000 files.
    """
    folder = canonical_folder(path)
    with moment(access) as now:
        tree = now.tree
        new = tree.revision if new is None else new
        for number in (old, new):
            tree.require_revision(number)
        span = _Span(now, min(old, new), max(old, new))
        if folder == "/":
            before, after = span.places(span.touched(), old, new)
        else:
            before, after = _places_below(span, folder, old, new)
        pairs = _paired(before, after)
        if len(pairs) > MAX_FILES_COMPARED:
            raise TooLarge(
                f"{len(pairs)} files differ; one answer takes {MAX_FILES_COMPARED}: ask for a folder, or for "
                "revisions that lie closer to each other"
            )
        diffs = [_file_diff(now, was, is_now, old, new) for was, is_now in pairs]
    return sorted((each for each in diffs if each), key=lambda each: (each.path, each.action))


def _places_below(span: _Span, folder: str, old: int, new: int) -> tuple[dict[UUID, str], dict[UUID, str]]:
    """The places of files that may differ and stood at or below a path in either revision."""
    files = File.objects.of(span.now.access.tree)
    standing = _at_or_below(files.standing(old) | files.standing(new), folder)
    places = span.places({file.content_id for file in standing}, old, new)
    ids = {
        file_id
        for place in places
        for file_id, path in place.items()
        if path == folder or path.startswith(folder + "/")
    }
    if not ids:
        raise FileNotFound(folder)
    # One file is compared in less time than it takes to find out whether it was touched.
    wanted = ids if len(ids) == 1 else ids & span.touched()
    before, after = ({file_id: place[file_id] for file_id in place.keys() & wanted} for place in places)
    return before, after


type _Place = tuple[UUID, str] | None


def _paired(before: dict[UUID, str], after: dict[UUID, str]) -> list[tuple[_Place, _Place]]:
    """What each file was and has become: the same file, or another one at the same path."""
    pairs: list[tuple[_Place, _Place]] = [
        ((file_id, before[file_id]), (file_id, after[file_id])) for file_id in before.keys() & after.keys()
    ]
    gone = {path: file_id for file_id, path in before.items() if file_id not in after}
    for file_id, path in after.items():
        if file_id not in before:
            was = (gone.pop(path), path) if path in gone else None
            pairs.append((was, (file_id, path)))
    return [*pairs, *(((file_id, path), None) for path, file_id in gone.items())]


def _file_diff(now: Moment, was: _Place, is_now: _Place, old: int, new: int) -> FileDiff | None:
    before, after = was[1] if was else None, is_now[1] if is_now else None
    change = _file_change(before, after)
    old_data, new_data = _contents(now, was and was[0], is_now and is_now[0], old, new)
    if change is None or (change.action == "changed" and old_data == new_data):
        return None
    is_text = decodes(old_data) and decodes(new_data)
    hunks = _hunks(_text_lines(old_data), _text_lines(new_data)) if is_text else []
    return FileDiff(
        path=change.path,
        action=change.action,
        source=change.source,
        unified=_unified(before, after, hunks) if is_text else _binary(before, after),
        hunks=hunks,
        old_sha256=hashlib.sha256(old_data).hexdigest() if was else None,
        new_sha256=hashlib.sha256(new_data).hexdigest() if is_now else None,
    )


def _contents(now: Moment, was: UUID | None, is_now: UUID | None, old: int, new: int) -> tuple[bytes, bytes]:
    """What a file held in one revision, and it or another one in another; most blocks are in both."""
    blocks = Block.objects.of(now.access.tree).filter(
        now.visible, file_id__in={file_id for file_id in (was, is_now) if file_id}
    )
    either = blocks.standing(old) | blocks.standing(new)
    rows = list(either.only(*RENDERED, "file_id", "added_in", "removed_in").order_by("position"))
    return (
        content((row for row in rows if row.file_id == was and _stands(row, old)), old),
        content((row for row in rows if row.file_id == is_now and _stands(row, new)), new),
    )


def _text_lines(data: bytes) -> list[str]:
    return [line.decode() for line in lines_of(data)]


def _hunks(old: Sequence[str], new: Sequence[str]) -> list[Hunk]:
    groups: list[list[Range]] = []
    for found in line_differences(old, new):
        if groups and found[0] - groups[-1][-1][1] <= 2 * CONTEXT_LINES:
            groups[-1].append(found)
        else:
            groups.append([found])
    return [_hunk(old, new, group) for group in groups]


def _hunk(old: Sequence[str], new: Sequence[str], group: Sequence[Range]) -> Hunk:
    before = min(CONTEXT_LINES, group[0][0])
    behind = min(CONTEXT_LINES, len(old) - group[-1][1])
    start, done = group[0][0] - before, group[0][0] - before
    lines: list[str] = []
    for i1, i2, j1, j2 in group:
        lines += [" " + line for line in old[done:i1]]
        lines += ["-" + line for line in old[i1:i2]] + ["+" + line for line in new[j1:j2]]
        done = i2
    lines += [" " + line for line in old[done : done + behind]]
    old_lines = done + behind - start
    new_start, new_lines = group[0][2] - before, group[-1][3] + behind - (group[0][2] - before)
    # As in a unified diff: the start of an empty range is the line before it.
    return Hunk(start + bool(old_lines), old_lines, new_start + bool(new_lines), new_lines, lines)


def _unified(before: str | None, after: str | None, hunks: Sequence[Hunk]) -> str:
    parts = [_git_header(before, after)]
    if hunks:
        parts.append(f"--- {_git_name('a', before)}\n+++ {_git_name('b', after)}\n")
    for hunk in hunks:
        parts.append(f"@@ -{hunk.old_start},{hunk.old_lines} +{hunk.new_start},{hunk.new_lines} @@\n")
        parts += [
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in hunk.lines
        ]
    return "".join(parts)


def _binary(before: str | None, after: str | None) -> str:
    names = f"{_git_name('a', before)} and {_git_name('b', after)}"
    return f"{_git_header(before, after)}Binary files {names} differ\n"


def _git_header(before: str | None, after: str | None) -> str:
    """What git needs to apply a file that is empty, comes, goes or moves."""
    header = f"diff --git {_git_name('a', before or after)} {_git_name('b', after or before)}\n"
    if before is None:
        return header + "new file mode 100644\n"
    if after is None:
        return header + "deleted file mode 100644\n"
    if before != after:
        header += f"rename from {_quoted(before[1:])}\nrename to {_quoted(after[1:])}\n"
    return header


def _git_name(side: str, path: str | None) -> str:
    return "/dev/null" if path is None else _quoted(side + path)


def _quoted(name: str) -> str:
    """A name as git writes it: in quotes where it holds one, or a backslash."""
    if '"' in name or "\\" in name:
        name = name.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{name}"'
    return name
