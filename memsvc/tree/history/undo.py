"""Taking back what one actor or one revision did, as a new revision, and keeping what others did since.

Where the two can't be told apart, the answer says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from memsvc.contract.history import UndoConflict
from memsvc.format import ROOT_INDEX_PATH, is_router
from memsvc.tree import files, router
from memsvc.tree.access import Access
from memsvc.tree.blocks import content
from memsvc.tree.differences import differences, lines_of
from memsvc.tree.errors import IsFolder, PathTaken, RevisionNotFound, TooLarge
from memsvc.tree.history.restore import tell_index
from memsvc.tree.history.timeline import Places, held, touched
from memsvc.tree.models import Block, File, Revision
from memsvc.tree.scope import Change
from memsvc.tree.snapshot import Snapshot

MAX_UNDONE = 1000


@dataclass(frozen=True, slots=True)
class Undoing:
    """The paths that undoing took away and brought back, the revisions of which it undid something, and the rest.

    The rows of those paths that were `moved` went along with them.
    """

    change: Change
    seen: Snapshot
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

    file_id: UUID
    before: str | None
    after: str | None
    was: Sequence[Block]
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
    made = Revision.objects.of(change.tree)
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


def undo(change: Change, access: Access, revisions: Sequence[Revision]) -> Undoing:
    """Take back what these revisions did, newest first, and keep what others did since.

    What can't be taken back, because the same lines or the same path have changed since, is left as it is.
    """
    undoing = Undoing(change, Snapshot(access, None, change.at))
    for revision in sorted(revisions, key=lambda revision: -revision.number):
        _undo_revision(undoing, revision.number)
    if undoing.gone or undoing.back:
        indexes = [path for path in undoing.back if is_router(path)]
        told = undoing.back - undoing.moved
        tell_index(change, gone=undoing.gone - undoing.back, back=told, indexes=indexes)
    return undoing


def _undo_revision(undoing: Undoing, number: int) -> None:
    seen = sorted(_done(undoing.seen, number), key=lambda done: (done.order, done.path))
    only_indexes = all(is_router(done.path) for done in seen)
    # An index that changed with the files that it lists does so again.
    wanted = [
        done for done in seen if only_indexes or not (is_router(done.path) and done.before == done.after)
    ]
    while wanted:
        reasons = [(done, _undo_file(undoing, done)) for done in wanted]
        refused = [(done, reason) for done, reason in reasons if reason]
        if len(refused) == len(wanted):
            undoing.conflicts.extend(
                UndoConflict(revision=number, path=done.path, reason=reason)
                for done, reason in refused
                if only_indexes or not is_router(done.path)
            )
            return
        undoing.undone.add(number)
        # What stood in the way of one may have been taken away with another.
        wanted = [done for done, _ in refused]
    # The list of the other indexes says of those that went what it said before, in the same place.
    if any(is_router(done.path) and done.before != done.after for done in seen):
        for done in seen:
            if done.before == done.after == ROOT_INDEX_PATH:
                _undo_file(undoing, done)


def _done(seen: Snapshot, number: int) -> Iterator[_Done]:
    """What a revision did to files, as the access sees it."""
    ids = {file_id for _, file_id in touched(seen.access.tree, [number])}
    places = Places(seen, ids)
    held_before, held_after = held(seen, ids, number - 1, number)
    for file_id in ids:
        before, after = places.path(file_id, number - 1), places.path(file_id, number)
        was = held_before[file_id] if before else []
        made = held_after[file_id] if after else []
        old, new = content(was, number - 1), content(made, number)
        redacted = any(block.is_redacted for block in [*was, *made])
        if before == after and old == new and not redacted:
            continue
        both = places.is_live_at(file_id, number - 1) and places.is_live_at(file_id, number)
        yield _Done(file_id, before, after, was, old, new, both and None in (before, after), redacted)


def _undo_file(undoing: Undoing, done: _Done) -> str:
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
    every = list(files.live_blocks(file))
    merged = merge(done.new, done.old, content(files.visible_at(undoing.change, every)))
    if merged is None:
        return "the same lines have changed since"
    if done.before != done.after:
        if problem := _move_back(undoing, file, done.before):
            return problem
        # Its name may have it cut in another way now.
        every = list(files.live_blocks(file))
    expiries = files.expiries_of(done.was)
    if files.fill(undoing.change, file, merged, expiries=expiries, every=every) is not None:
        undoing.back.add(file.path)
    return ""


def _standing(change: Change, done: _Done) -> File | None:
    """The file as it stands now; or, when it went and came back meanwhile, the one at its path."""
    file = File.objects.of(change.tree).live_at(None).filter(pk=done.file_id).first()
    if file is not None and not files.is_hidden(change, file):
        return file
    return files.find(change, done.after) if done.after else None


def _undelete(undoing: Undoing, path: str, done: _Done) -> str:
    there = files.find(undoing.change, path)
    if there is not None and files.content_now(undoing.change, there) == done.old:
        return ""
    if problem := _not_free(undoing, path):
        return problem
    file = files.create(undoing.change, path)
    files.fill(undoing.change, file, done.old, expiries=files.expiries_of(done.was))
    undoing.back.add(path)
    return ""


def _uncreate(undoing: Undoing, file: File | None, done: _Done) -> str:
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


def _move_back(undoing: Undoing, file: File, path: str) -> str:
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


def _not_free(undoing: Undoing, path: str) -> str:
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
    theirs = differences(base_lines, current_lines)
    parts: list[bytes] = []
    done = 0
    for i1, i2, j1, j2 in differences(base_lines, other_lines):
        # Ranges meet that share a line, or put lines in at the same place.
        if any((i1, i2) == (t1, t2) or (i1 < t2 and t1 < i2) for t1, t2, _, _ in theirs):
            return None
        # Where the line stands in the current content.
        start = i1 + next((u2 - t2 for _, t2, _, u2 in reversed(theirs) if t2 <= i1), 0)
        parts += [*current_lines[done:start], *other_lines[j1:j2]]
        done = start + i2 - i1
    parts += current_lines[done:]
    # A last line without an end can't have anything put behind it.
    return None if any(not line.endswith(b"\n") for line in parts[:-1]) else b"".join(parts)
