"""Taking back what was done: bringing a revision's state back, and undoing what one actor or revision did.

Nothing is erased: both are new revisions. Restoring asks only what was; undoing keeps what others did since, and
says where the two can't be told apart.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Q

from memsvc import format
from memsvc.tree import files, router
from memsvc.tree.access import Access
from memsvc.tree.blocks import content, differences
from memsvc.tree.errors import EntryNotFound, FileNotFound, IsFolder, PathTaken, RevisionNotFound
from memsvc.tree.models import Block, File, Revision
from memsvc.tree.results import UndoConflict
from memsvc.tree.scope import Change


def restore(change: Change, access: Access, revision: int, folder: str) -> set[str]:
    """Make a file, or all in a folder, what it was in a revision; the answer is the paths that changed.

    What came since goes, what went comes back. Raises `RevisionNotFound`, and `FileNotFound` where nothing stands
    or stood.
    """
    _require(change, revision)
    then = {file.path: file for file in _at(change, access, folder, revision)}
    now = {file.path: file for file in _at(change, access, folder, None)}
    if not then and not now and folder not in ("/", access.prefix):
        raise FileNotFound(folder)
    gone = [file for path, file in now.items() if path not in then]
    if gone:
        files.close_files(change, gone)
    changed = {file.path for file in gone}
    for path in sorted(then):
        if _bring_back(change, then[path], now.get(path), revision):
            changed.add(path)
    _tell_index(change, gone=[file.path for file in gone], back=[path for path in changed if path in then])
    return changed


def _require(change: Change, revision: int) -> None:
    if not 0 <= revision < change.number:
        raise RevisionNotFound(revision, change.number - 1)


def _at(change: Change, access: Access, folder: str, revision: int | None) -> Iterator[File]:
    standing = File.objects.of(change.tree).standing(revision)
    below = standing if folder == "/" else standing.under(folder) | standing.filter(path=folder)
    return (file for file in below if access.sees(file.path))


def _bring_back(change: Change, was: File, file: File | None, revision: int) -> bool:
    rows = _rows_at(change, was.content_id, revision)
    created = file is None
    file = file or files.create(change, was.path)
    filled = files.fill(change, file, content(rows, revision), expiries=files.expiries_of(rows))
    return created or filled is not None


def _rows_at(change: Change, content_id: UUID, revision: int) -> list[Block]:
    """The blocks of a file in a revision, without those that have disappeared since."""
    blocks = Block.objects.of(change.tree).standing(revision).filter(file_id=content_id)
    return files.visible_at(change, list(blocks.order_by("position")))


def _tell_index(change: Change, *, gone: Iterable[str], back: Iterable[str]) -> None:
    """Bring the index files in step, but for what an index that was itself brought back says of the others."""
    router.forget(change, gone)
    paths = list(back)
    indexes = [file for path in paths if format.is_router(path) and (file := files.find(change, path))]
    restored = {index.path for index in indexes}
    for path in paths:
        place = format.router_of(path)
        if place is not None and place[0] not in restored and (file := files.find(change, path)):
            router.mention(change, router.described(change, file))
    router.complete(change, indexes)


def restore_entry(change: Change, access: Access, entry_id: str, revision: int) -> str:
    """Bring one entry's text of a revision back, in the file where it stands or stood; the answer is its path.

    The other entries of the file stay as they are. Raises `EntryNotFound` where that revision has no such entry.
    """
    _require(change, revision)
    entries = Block.objects.of(change.tree).entries().filter(entry_id=entry_id)
    was = entries.standing(revision).order_by("duplicate").select_related("file").first()
    if was is None or not files.visible_at(change, [was]) or not access.sees(was.file.path):
        raise EntryNotFound(entry_id)
    path = was.file.path
    access.require_write(path)
    text = content([was], revision)
    now = entries.standing(None).order_by("duplicate").select_related("file").first()
    file = now.file if now else files.find(change, path)
    if file is None:
        file = files.create(change, path)
    rows = files.visible_at(change, list(files.live_blocks(file)))
    if now is not None:
        data = b"".join(text if row.pk == now.pk else content([row]) for row in rows)
    else:
        before = content(rows)
        data = before + format.append_to(before, text.decode().lstrip("\r\n"), newline=file.newline)
    files.fill(change, file, data, expiries=files.expiries_of([was]))
    _tell_index(change, gone=[], back=[file.path])
    return file.path


@dataclass(frozen=True, slots=True)
class _Undoing:
    """An undoing in progress: the paths that were taken away and brought back, and what could not be undone."""

    change: Change
    access: Access
    gone: set[str] = field(default_factory=set)
    back: set[str] = field(default_factory=set)
    conflicts: list[UndoConflict] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Done:
    """What one revision did to one file: where it stood before and after, and what it held."""

    before: str | None
    after: str | None
    was: list[Block]
    old: bytes
    new: bytes


def revisions_to_undo(
    change: Change, *, revision: int | None, actor: str | None, since: int
) -> list[Revision]:
    """One revision, or all that an actor made from `since` on, newest first."""
    made = Revision.objects.filter(tenant_id=change.tree.tenant_id, tree_id=change.tree.pk)
    if revision is None:
        return list(made.filter(actor_id=actor, number__gte=since).order_by("-number"))
    found = list(made.filter(number=revision))
    if not found:
        raise RevisionNotFound(revision, change.number - 1)
    return found


def undo(
    change: Change, access: Access, revisions: Sequence[Revision]
) -> tuple[set[str], list[UndoConflict]]:
    """Take back what these revisions did, newest first, and keep what others did since.

    The answer is the paths that changed, and the changes that can't be taken back because the same lines, or the
    same path, have changed since; those are left as they are.
    """
    undoing = _Undoing(change, access)
    for revision in sorted(revisions, key=lambda revision: -revision.number):
        for content_id in sorted(_touched(change, revision.number)):
            _undo_file(undoing, content_id, revision.number)
    _tell_index(change, gone=undoing.gone - undoing.back, back=undoing.back)
    return undoing.gone | undoing.back, undoing.conflicts


def _touched(change: Change, number: int) -> set[UUID]:
    blocks = Block.objects.of(change.tree)
    added = blocks.filter(added_in=number)
    ids = set(added.values_list("file_id", flat=True))
    ids |= set(blocks.filter(removed_in=number).values_list("file_id", flat=True))
    targets = added.exclude(supersedes="").values("supersedes")
    ids |= set(blocks.filter(entry_id__in=targets, superseded_in=number).values_list("file_id", flat=True))
    moved = File.objects.of(change.tree).filter(Q(added_in=number) | Q(removed_in=number))
    return ids | {file.content_id for file in moved}


def _undo_file(undoing: _Undoing, content_id: UUID, number: int) -> None:
    change = undoing.change
    before, after = (_path_at(change, content_id, revision) for revision in (number - 1, number))
    known = after or before
    # Index files follow from the others.
    if known is None or format.is_router(known) or not undoing.access.sees(known):
        return
    for path in filter(None, (before, after)):
        undoing.access.require_write(path)
    was = _rows_at(change, content_id, number - 1) if before else []
    made = _rows_at(change, content_id, number) if after else []
    done = _Done(before, after, was, content(was, number - 1), content(made, number))
    file = File.objects.of(change.tree).standing(None).filter(pk=content_id).first()
    # A file that this undoing brought back is another row at the same path.
    if file is None and after in undoing.back:
        file = files.find(change, after)
    if reason := _take_back(undoing, file, done):
        undoing.conflicts.append(UndoConflict(revision=number, path=known, reason=reason))


def _path_at(change: Change, content_id: UUID, revision: int) -> str | None:
    standing = File.objects.of(change.tree).standing(revision)
    file = standing.filter(Q(pk=content_id, former_of=None) | Q(former_of=content_id)).first()
    return file.path if file else None


def _take_back(undoing: _Undoing, file: File | None, done: _Done) -> str:
    """Undo what was done to a file; the answer is why it can't be, or nothing."""
    if done.after is None:
        return _undelete(undoing, done)
    if file is None:
        return "the file has been deleted since"
    if file.path != done.after:
        return "the file has been moved since"
    current = content(files.visible_at(undoing.change, list(files.live_blocks(file))))
    if done.before is None:
        return _uncreate(undoing, file, done, current)
    merged = merge(done.new, done.old, current)
    if merged is None:
        return "the same lines have changed since"
    if done.before != done.after and (problem := _move_back(undoing, file, done.before)):
        return problem
    files.fill(undoing.change, file, merged, expiries=files.expiries_of(done.was))
    undoing.back.add(file.path)
    return ""


def _undelete(undoing: _Undoing, done: _Done) -> str:
    assert done.before is not None
    if problem := _not_free(undoing, done.before):
        return problem
    file = files.create(undoing.change, done.before)
    files.fill(undoing.change, file, done.old, expiries=files.expiries_of(done.was))
    undoing.back.add(done.before)
    return ""


def _uncreate(undoing: _Undoing, file: File, done: _Done, current: bytes) -> str:
    if current != done.new:
        return "the file has changed since it was created"
    files.close_files(undoing.change, [file])
    undoing.gone.add(file.path)
    undoing.back.discard(file.path)
    return ""


def _move_back(undoing: _Undoing, file: File, path: str) -> str:
    if problem := _not_free(undoing, path):
        return problem
    undoing.gone.add(file.path)
    undoing.back.discard(file.path)
    files.rename(undoing.change, file, path)
    return ""


def _not_free(undoing: _Undoing, path: str) -> str:
    if files.find(undoing.change, path) is not None:
        return f"another file stands at '{path}' now"
    try:
        files.require_free(undoing.change, path)
    except (IsFolder, PathTaken) as error:
        return str(error)
    return ""


def merge(base: bytes, other: bytes, current: bytes) -> bytes | None:
    """Apply to `current` what leads from `base` to `other`, line by line; None where it has changed the same lines."""
    if current == base:
        return other
    base_lines, other_lines, current_lines = (
        data.splitlines(keepends=True) for data in (base, other, current)
    )
    theirs = list(differences(base_lines, current_lines))
    parts: list[bytes] = []
    done = 0
    for i1, i2, j1, j2 in differences(base_lines, other_lines):
        if any(_meet((i1, i2), (t1, t2)) for t1, t2, _, _ in theirs):
            return None
        start = i1 + _shift(theirs, i1)
        parts += [*current_lines[done:start], *other_lines[j1:j2]]
        done = start + i2 - i1
    return b"".join([*parts, *current_lines[done:]])


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two ranges of lines share one, or put lines in at the same place."""
    return one == other or (one[0] < other[1] and other[0] < one[1])


def _shift(theirs: Sequence[tuple[int, int, int, int]], line: int) -> int:
    """How far a line of the base has moved in the current content."""
    return next((j2 - i2 for _, i2, _, j2 in reversed(theirs) if i2 <= line), 0)
