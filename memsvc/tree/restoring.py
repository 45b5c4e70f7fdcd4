"""Taking back what was done: bringing a revision's state back, and undoing what one actor or revision did.

Nothing is erased: both are new revisions. Restoring asks only what was; undoing keeps what others did since, and
says where the two can't be told apart.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Q

from memsvc import format
from memsvc.contract.history import UndoConflict
from memsvc.tree import entries, files, router
from memsvc.tree.access import Access
from memsvc.tree.blocks import content
from memsvc.tree.errors import (
    EntryNotFound,
    FileNotFound,
    IsFolder,
    PathTaken,
    RevisionNotFound,
    TooLarge,
)
from memsvc.tree.lines import Range, line_differences, lines_of
from memsvc.tree.models import Block, File, Revision
from memsvc.tree.scope import Change

MAX_UNDONE = 1000


def restore(change: Change, access: Access, revision: int, folder: str) -> set[str]:
    """Make a file, or all in a folder, what it was in a revision; the answer is the paths that changed.

    What came since goes, what went comes back. Raises `RevisionNotFound`, `RevisionPruned`, and `FileNotFound` where
    nothing stands or stood.
    """
    change.tree.require_revision(revision)
    then, now = _at(change, access, folder, revision), _at(change, access, folder, None)
    # What has not changed since is neither read nor written.
    same = {path for path, file in now.items() if file.changed_in <= revision and path in then}
    was, held = _held(change, then, same, revision), _held(change, now, same, None)
    if not (same or was or held or folder in ("/", access.prefix)):
        raise FileNotFound(folder)
    gone = [now[path] for path in held if path not in was]
    if gone:
        files.close_files(change, gone)
    back = {
        path
        for path, rows in sorted(was.items())
        if _bring_back(change, path, rows, now[path] if path in held else None, revision)
    }
    if gone or back:
        indexes = filter(format.is_router, was.keys() | same)
        _tell_index(change, gone=[file.path for file in gone], back=back, indexes=indexes)
    return back | {file.path for file in gone}


def _at(change: Change, access: Access, folder: str, revision: int | None) -> dict[str, File]:
    """The files at and below a folder in a revision, by path."""
    standing = File.objects.of(change.tree).standing(revision)
    below = standing if folder == "/" else standing.under(folder) | standing.filter(path=folder)
    return {file.path: file for file in below if access.sees(file.path)}


def _held(
    change: Change, found: dict[str, File], same: set[str], revision: int | None
) -> dict[str, list[Block]]:
    """What readers see of these files, but for those that are the same."""
    rows = {
        path: _rows_at(change, file.content_id, revision) for path, file in found.items() if path not in same
    }
    return {path: blocks for path, blocks in rows.items() if blocks is not None}


def _rows_at(change: Change, content_id: UUID, revision: int | None) -> list[Block] | None:
    """The blocks of a file in a revision that have not disappeared since; None when all of them have."""
    blocks = Block.objects.of(change.tree).standing(revision).filter(file_id=content_id)
    rows = list(blocks.order_by("position"))
    visible = files.visible_at(change, rows)
    return visible if visible or not rows else None


def _bring_back(change: Change, path: str, rows: Sequence[Block], now: File | None, revision: int) -> bool:
    file = now or files.create(change, path)
    filled = files.fill(change, file, content(rows, revision), expiries=files.expiries_of(rows))
    return now is None or filled is not None


def _tell_index(change: Change, *, gone: Iterable[str], back: Iterable[str], indexes: Iterable[str]) -> None:
    """Bring the index files in step, but for what an index that was itself brought back says of the others."""
    router.forget(change, gone)
    restored = [file for path in indexes if (file := files.find(change, path))]
    speaking = {index.path for index in restored}
    for path in sorted(back):
        place = format.router_of(path)
        if place is not None and place[0] not in speaking and (file := files.find(change, path)):
            router.mention(change, router.described(change, file))
    router.complete(change, restored)


def restore_entry(change: Change, access: Access, entry_id: str, revision: int) -> str:
    """Bring one entry's text of a revision back, in the file where it stands or stood; the answer is its path.

    The other entries of the file stay as they are. Raises `EntryNotFound` where that revision has no such entry.
    """
    change.tree.require_revision(revision)
    was = _entry_at(change, access, entry_id, revision)
    text = content([was], revision).lstrip(b"\r\n")
    now = _entry_now(change, entry_id)
    path = now.file.path if now else was.file.path
    file = now.file if now else files.find(change, path)
    created = file is None
    file = file or files.create(change, path)
    rows = files.visible_at(change, list(files.live_blocks(file)))
    data = b"".join(_replaced(rows, now, text, file)) if now else _appended(content(rows), text, file)
    filled = files.fill(change, file, data, expiries=files.expiries_of([was]))
    if created or filled is not None:
        _tell_index(change, gone=[], back=[path], indexes=[])
    return path


def _entry_at(change: Change, access: Access, entry_id: str, revision: int) -> Block:
    """The entry with an id in a revision: of several, the first in path order that the access sees."""
    named = Block.objects.of(change.tree).entries().standing(revision).filter(entry_id=entry_id)
    found = []
    for block in files.visible_at(change, list(named.select_related("file").order_by("position"))):
        path = _path_at(change, block.file_id, revision)
        if path is not None and access.sees(path):
            found.append((path, block))
    if not found:
        raise EntryNotFound(entry_id)
    return min(found, key=lambda place: (place[0], place[1].position))[1]


def _entry_now(change: Change, entry_id: str) -> Block | None:
    try:
        return entries.visible_entry(change, entry_id)
    except EntryNotFound:
        return None


def _replaced(rows: Sequence[Block], old: Block, text: bytes, file: File) -> Iterable[bytes]:
    """The blocks of a file with another text in one's place, below the blank lines that stand above it now."""
    for row in rows:
        data = content([row])
        if row.pk != old.pk:
            yield data
            continue
        yield data[: len(data) - len(data.lstrip(b"\r\n"))] + text
        if row is not rows[-1]:
            missing_line_end = b"" if text.endswith(b"\n") else file.newline.encode()
            yield format.code_end(text, newline=file.newline) or missing_line_end


def _appended(before: bytes, text: bytes, file: File) -> bytes:
    last = format.last_part(format.cut_file(file.path, before))
    return before + format.append_to(last, "", newline=file.newline) + text


@dataclass(frozen=True, slots=True)
class _Undoing:
    """An undoing in progress: the paths that were taken away and brought back, and what could not be undone.

    The rows of those that were `moved` went along with them.
    """

    change: Change
    access: Access
    gone: set[str] = field(default_factory=set)
    back: set[str] = field(default_factory=set)
    moved: set[str] = field(default_factory=set)
    undone: set[int] = field(default_factory=set)
    conflicts: list[UndoConflict] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Done:
    """What one revision did to one file: where it stood before and after, and what it held.

    A path is None where nothing of the file stood, or was to be seen. `crosses` says that the file was moved into,
    or out of, what the access sees; `redacted` that some of what it held is gone for good.
    """

    number: int
    content_id: UUID
    before: str | None
    after: str | None
    was: list[Block]
    old: bytes
    new: bytes
    crosses: bool
    redacted: bool

    @property
    def path(self) -> str:
        return self.after or self.before or ""

    @property
    def order(self) -> int:
        """What came has to go first, so that there is room for what was moved or went."""
        return 0 if self.before is None else 2 if self.after is None else 1


def revisions_to_undo(
    change: Change, *, revision: int | None, actor: str | None, since: int
) -> list[Revision]:
    """One revision, or all that an actor made from `since` on, newest first.

    Raises `RevisionPruned` where it is no longer known what the oldest of them changed.
    """
    made = Revision.objects.filter(tenant_id=change.tree.tenant_id, tree_id=change.tree.pk)
    if revision is None:
        found = list(made.filter(actor_id=actor, number__gte=since).order_by("-number")[: MAX_UNDONE + 1])
        if len(found) > MAX_UNDONE:
            raise TooLarge(
                f"more than {MAX_UNDONE} revisions would be undone at once; begin with a later `since`"
            )
    else:
        found = list(made.filter(number=revision))
        if not found:
            raise RevisionNotFound(revision, change.number - 1)
    if found:
        change.tree.require_revision(found[-1].number - 1)
    return found


@dataclass(frozen=True, slots=True)
class Undoing:
    """What undoing did: the revisions of which something was taken back, the paths that changed, and the rest."""

    undone: list[int]
    paths: list[str]
    conflicts: list[UndoConflict]


def undo(change: Change, access: Access, revisions: Sequence[Revision]) -> Undoing:
    """Take back what these revisions did, newest first, and keep what others did since.

    What can't be taken back, because the same lines or the same path have changed since, is left as it is.
    """
    undoing = _Undoing(change, access)
    for revision in sorted(revisions, key=lambda revision: -revision.number):
        _undo_revision(undoing, revision.number)
    changed = undoing.gone | undoing.back
    if changed:
        indexes = [path for path in undoing.back if format.is_router(path)]
        told = undoing.back - undoing.moved
        _tell_index(change, gone=undoing.gone - undoing.back, back=told, indexes=indexes)
    return Undoing(sorted(undoing.undone, reverse=True), sorted(changed), undoing.conflicts)


def _undo_revision(undoing: _Undoing, number: int) -> None:
    touched = [_done(undoing, content_id, number) for content_id in _touched(undoing.change, number)]
    seen = sorted((done for done in touched if done), key=lambda done: (done.order, done.path))
    only_indexes = all(format.is_router(done.path) for done in seen)
    wanted = [done for done in seen if only_indexes or not _follows(done)]
    while wanted:
        reasons = [(done, _undo_file(undoing, done)) for done in wanted]
        refused = [(done, reason) for done, reason in reasons if reason]
        if len(refused) == len(wanted):
            undoing.conflicts.extend(
                UndoConflict(revision=number, path=done.path, reason=reason)
                for done, reason in refused
                if only_indexes or not format.is_router(done.path)
            )
            return
        undoing.undone.add(number)
        # What stood in the way of one may have been taken away with another.
        wanted = [done for done, _ in refused]


def _follows(done: _Done) -> bool:
    """Whether it is an index that changed with the files that it lists, and does so again."""
    return format.is_router(done.path) and done.before == done.after


def _touched(change: Change, number: int) -> set[UUID]:
    blocks = Block.objects.of(change.tree)
    added = blocks.filter(added_in=number)
    ids = set(added.values_list("file_id", flat=True))
    ids |= set(blocks.filter(removed_in=number).values_list("file_id", flat=True))
    targets = added.exclude(supersedes="").values("supersedes")
    ids |= set(
        blocks.filter(kind="entry", entry_id__in=targets, superseded_in=number).values_list(
            "file_id", flat=True
        )
    )
    moved = File.objects.of(change.tree).filter(Q(added_in=number) | Q(removed_in=number))
    return ids | {file.content_id for file in moved}


def _done(undoing: _Undoing, content_id: UUID, number: int) -> _Done | None:
    """What a revision did to a file, as the access sees it; None where it sees nothing of it."""
    change, access = undoing.change, undoing.access
    before, was = _seen_at(change, access, content_id, number - 1)
    after, made = _seen_at(change, access, content_id, number)
    old, new = content(was, number - 1), content(made, number)
    redacted = any(block.is_redacted for block in [*was, *made])
    if before == after and old == new and not redacted:
        return None
    stood = (
        _path_at(change, content_id, number - 1) is not None,
        _path_at(change, content_id, number) is not None,
    )
    crosses = stood == (True, True) and None in (before, after)
    return _Done(number, content_id, before, after, was, old, new, crosses, redacted)


def _seen_at(
    change: Change, access: Access, content_id: UUID, revision: int
) -> tuple[str | None, list[Block]]:
    path = _path_at(change, content_id, revision)
    rows = _rows_at(change, content_id, revision)
    return (path, rows) if path is not None and access.sees(path) and rows is not None else (None, [])


def _path_at(change: Change, content_id: UUID, revision: int) -> str | None:
    standing = File.objects.of(change.tree).standing(revision)
    file = standing.filter(Q(pk=content_id, former_of=None) | Q(former_of=content_id)).first()
    return file.path if file else None


def _undo_file(undoing: _Undoing, done: _Done) -> str:
    """Undo what was done to a file; the answer is why it can't be, or nothing."""
    if done.crosses:
        return "the file was moved across the edge of the part of the tree that is open here"
    if done.redacted:
        return "what the file held there has been redacted"
    if done.before is not None and done.after is None:
        return _undelete(undoing, done.before, done)
    file = _standing(undoing.change, done)
    if done.before is None:
        return _uncreate(undoing, file, done)
    if file is None:
        return "the file has been deleted since"
    if file.path != done.after:
        return "the file has been moved since"
    current = files.content_now(undoing.change, file)
    merged = merge(done.new, done.old, current)
    if merged is None:
        return "the same lines have changed since"
    if done.before != done.after and (problem := _move_back(undoing, file, done.before)):
        return problem
    if files.fill(undoing.change, file, merged, expiries=files.expiries_of(done.was)) is not None:
        undoing.back.add(file.path)
    return ""


def _standing(change: Change, done: _Done) -> File | None:
    """The file as it stands now; or, when it went and came back meanwhile, the one at its path."""
    file = File.objects.of(change.tree).standing(None).filter(pk=done.content_id).first()
    if file is not None and not files.is_hidden(change, file):
        return file
    return files.find(change, done.after) if done.after else None


def _undelete(undoing: _Undoing, path: str, done: _Done) -> str:
    there = files.find(undoing.change, path)
    if there is not None and files.content_now(undoing.change, there) == done.old:
        return ""
    if problem := _not_free(undoing, path):
        return problem
    file = files.create(undoing.change, path)
    files.fill(undoing.change, file, done.old, expiries=files.expiries_of(done.was))
    undoing.back.add(path)
    return ""


def _uncreate(undoing: _Undoing, file: File | None, done: _Done) -> str:
    if file is None:
        return ""
    if file.path != done.after:
        return "the file has been moved since"
    if files.content_now(undoing.change, file) != done.new:
        return "the file has changed since it was created"
    files.close_files(undoing.change, [file])
    undoing.gone.add(file.path)
    undoing.back.discard(file.path)
    return ""


def _move_back(undoing: _Undoing, file: File, path: str) -> str:
    if problem := _not_free(undoing, path):
        return problem
    before = file.path
    undoing.gone.add(before)
    undoing.back.discard(before)
    files.rename(undoing.change, file, path)
    files.elect_moved(undoing.change, [file])
    router.carry(undoing.change, [(before, path)])
    undoing.back.add(path)
    undoing.moved.add(path)
    return ""


def _not_free(undoing: _Undoing, path: str) -> str:
    if files.find(undoing.change, path) is not None:
        return f"another file stands at '{path}' now"
    try:
        files.require_free(undoing.change, path)
    except IsFolder:
        return f"'{path}' is a folder now"
    except PathTaken:
        return f"a file stands where '{path}' needs a folder"
    return ""


def merge(base: bytes, other: bytes, current: bytes) -> bytes | None:
    """Apply to `current` what leads from `base` to `other`, line by line; None where it has changed the same lines."""
    if current == base:
        return other
    base_lines, other_lines, current_lines = lines_of(base), lines_of(other), lines_of(current)
    theirs = line_differences(base_lines, current_lines)
    parts: list[bytes] = []
    done = 0
    for i1, i2, j1, j2 in line_differences(base_lines, other_lines):
        if any(_meet((i1, i2), (t1, t2)) for t1, t2, _, _ in theirs):
            return None
        start = i1 + _shift(theirs, i1)
        parts += [*current_lines[done:start], *other_lines[j1:j2]]
        done = start + i2 - i1
    parts += current_lines[done:]
    # A last line without an end can't have anything put behind it.
    return None if any(not line.endswith(b"\n") for line in parts[:-1]) else b"".join(parts)


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two ranges of lines share one, or put lines in at the same place."""
    return one == other or (one[0] < other[1] and other[0] < one[1])


def _shift(theirs: Sequence[Range], line: int) -> int:
    """How far a line of the base has moved in the current content."""
    return next((j2 - i2 for _, i2, _, j2 in reversed(theirs) if i2 <= line), 0)
