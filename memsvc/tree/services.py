"""Changes of a tree. Each function is one transaction and one revision; what changes nothing makes none.

Paths may come in any spelling of the backend protocol and are brought to their one form here. Whatever can be
refused without looking at the tree is refused before it is locked. Raises `TreeError` and `FormatError`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

from memsvc.contract.entries import EntryRetired, EntryWritten
from memsvc.contract.errors import ErrorCode
from memsvc.contract.files import BatchResult, Deleted, Edited, Moved, Told, Uploaded, Written
from memsvc.contract.history import Restored, Undone
from memsvc.contract.requests import MAX_MESSAGE_BYTES, EntryDraft, SuccessorRequest
from memsvc.format import (
    MEMORY_ROOT,
    SCAFFOLD,
    CodedError,
    InvalidPath,
    InvalidText,
    canonical_folder,
    canonical_path,
    checked_text,
    is_router,
    router_of,
    visible_path,
)
from memsvc.tree import arrivals, entries, files, importing, router
from memsvc.tree.access import Access
from memsvc.tree.arrivals import Arrival, ExternalEntry
from memsvc.tree.blocks import content
from memsvc.tree.commands import OnConflict, Precondition
from memsvc.tree.edits import replace_text
from memsvc.tree.errors import (
    BatchFailed,
    FileNotFound,
    FolderNeedsRecursive,
    Forbidden,
    IsFolder,
    NotText,
    PathTaken,
    PreconditionFailed,
    RootRefused,
    TooLarge,
    UndoRefused,
)
from memsvc.tree.history import restore as restoring
from memsvc.tree.history import undo as undoing
from memsvc.tree.models import Block, File
from memsvc.tree.operations import (
    AddEntry,
    AppendFile,
    DeletePath,
    EditFile,
    MovePath,
    Operation,
    RetireEntry,
    WriteFile,
)
from memsvc.tree.results import ImportResult, OperationResult
from memsvc.tree.scope import Change, unit_of_work

MAX_BATCH = 500

type Step[R] = Callable[[Change], R]


def write_file(
    access: Access,
    path: str,
    body: str | bytes,
    *,
    precondition: Precondition | None = None,
    message: str = "",
) -> Written:
    """Make `body` the whole content of a file, new or not. Text is stored as UTF-8, bytes as they are.

    With `if_match`, a file that holds just this already is answered as done: nobody's change would be lost.
    """
    return _one(access, "file.write", _write(access, WriteFile(path, body, precondition)), message)


def edit_file(
    access: Access,
    path: str,
    old_string: str,
    new_string: str,
    *,
    replace_all: bool = False,
    precondition: Precondition | None = None,
    message: str = "",
) -> Edited:
    """Replace one exact piece of a text file, or every one with `replace_all`. Raises `EditRefused`."""
    edit = EditFile(path, old_string, new_string, replace_all, precondition)
    return _one(access, "file.edit", _edit(access, edit), message)


def append_file(
    access: Access, path: str, text: str, *, precondition: Precondition | None = None, message: str = ""
) -> Written:
    """Put `text` behind what a file holds, just as it stands; a missing file is made."""
    return _one(access, "file.append", _append(access, AppendFile(path, text, precondition)), message)


def delete(
    access: Access,
    path: str,
    *,
    recursive: bool = True,
    precondition: Precondition | None = None,
    message: str = "",
) -> Deleted:
    """Delete a file, or a folder with all that lies under it. The root is refused; everything else can be restored."""
    return _one(access, "file.delete", _delete(access, DeletePath(path, recursive, precondition)), message)


def move(
    access: Access, source: str, destination: str, *, overwrite: bool = False, message: str = ""
) -> Moved:
    """Move a file or a whole folder; history and authors of what it holds go with it."""
    return _one(access, "file.move", _move(access, MovePath(source, destination, overwrite)), message)


def add_entry(access: Access, draft: EntryDraft, *, message: str = "") -> EntryWritten:
    """Store an entry in the file of its category, and mark the one it supersedes, if any.

    Of two rivals for one entry, one wins and the other gets `AlreadySuperseded`. Unknown targets are
    `EntryNotFound`, those of another category `InvalidSupersession`.
    """
    action = "entry.supersede" if draft.supersedes else "entry.add"
    return _one(access, action, _add_entry(access, AddEntry(draft)), message)


def supersede_entry(access: Access, successor: SuccessorRequest) -> EntryWritten:
    """Store an entry in the place of another one, which keeps its text and names its successor.

    Raises as `add_entry` with `supersedes` does, and `EntryNotFound` for an id that the access doesn't see.
    """
    return _one(
        access, "entry.supersede", lambda change: entries.supersede(change, successor), successor.message
    )


def retire_entry(
    access: Access, entry_id: str, *, precondition: Precondition | None = None, message: str = ""
) -> EntryRetired:
    """Take an entry out of its file without a successor; the revisions before keep it."""
    return _one(access, "entry.retire", _retire_entry(RetireEntry(entry_id, precondition)), message)


def batch(
    access: Access, operations: Sequence[Operation], *, message: str = ""
) -> BatchResult[OperationResult]:
    """Do up to 500 operations in order, as one revision: all of them or none. Raises `BatchFailed`."""
    if len(operations) > MAX_BATCH:
        raise TooLarge(f"a batch may hold {MAX_BATCH} operations, not {len(operations)}; send several")
    steps = [_naming(index, partial(_step, access, operation)) for index, operation in enumerate(operations)]
    with one_revision(access, "batch", message) as change:
        results = [_naming(index, partial(_told, change, step)) for index, step in enumerate(steps)]
    return BatchResult(revision=change.current, results=results)


def _naming[R](index: int, act: Callable[[], R]) -> R:
    """Let an error of one operation say which it was."""
    try:
        return act()
    except CodedError as error:
        raise BatchFailed(index, error) from error


def _step(access: Access, operation: Operation) -> Step[OperationResult]:
    match operation:
        case WriteFile():
            return _write(access, operation)
        case EditFile():
            return _edit(access, operation)
        case AppendFile():
            return _append(access, operation)
        case DeletePath():
            return _delete(access, operation)
        case MovePath():
            return _move(access, operation)
        case AddEntry():
            return _add_entry(access, operation)
        case RetireEntry():
            return _retire_entry(operation)


def upload_files(access: Access, uploads: Sequence[tuple[str, bytes]]) -> list[Uploaded]:
    """Write files as one revision, with a verdict for each; a bad one doesn't stop the others."""
    steps = [_verdict(path, partial(_write, access, WriteFile(path, bytes(data)))) for path, data in uploads]
    if not any(callable(step) for step in steps):
        return [step for step in steps if isinstance(step, Uploaded)]
    results: list[Uploaded] = []
    with one_revision(access, "file.upload") as change:
        for (path, _), step in zip(uploads, steps, strict=True):
            done = step if isinstance(step, Uploaded) else _verdict(path, partial(_told, change, step))
            results.append(
                done if isinstance(done, Uploaded) else Uploaded(path, None, warnings=done.warnings)
            )
    return results


def _verdict[R](path: str, act: Callable[[], R]) -> R | Uploaded:
    try:
        return act()
    except (InvalidPath, IsFolder, Forbidden) as error:
        return Uploaded(path, ErrorCode(error.code).verdict)
    except (PathTaken, TooLarge) as error:
        return Uploaded(path, str(error))


def scaffold(access: Access) -> list[str]:
    """Make what is missing of the memory layout and answer the paths that were made. Nothing is overwritten."""
    access.require_write(MEMORY_ROOT.rstrip("/"))
    with one_revision(access, "tree.scaffold") as change:
        missing = [path for path in SCAFFOLD if files.find(change, path) is None]
        # What an index says of a file that was there already is for that file to tell.
        there = SCAFFOLD.keys() - missing
        for path in missing:
            files.fill(change, files.create(change, path), router.usual_text(path, without=there))
        if missing:
            router.complete(change)
    return missing


def import_files(
    access: Access,
    imported: Iterable[Arrival | tuple[str, bytes]] = (),
    *,
    entries: Sequence[ExternalEntry] = (),
    on_conflict: OnConflict = OnConflict.KEEP,
    dry_run: bool = False,
    message: str = "",
) -> ImportResult:
    """Bring in files, and behind them entries with the ids that they have, as one revision.

    Files that are new come in byte for byte, index files too: rows that they lack are added by the next change of the
    tree. Where the tree has, or had, something else, `on_conflict` says what counts, and the answer names each
    difference. Files that are not among the imported ones are left alone. Everything is cut and read before the tree
    is locked. With `dry_run` nothing is changed: the answer says what would be.
    """
    access.require_write()
    with (
        arrivals.prepared_files(access, _fitting(imported)) as some,
        arrivals.prepared_entries(access, entries) as single,
        suppress(_NotKept),
        one_revision(access, "tree.import", message, dry_run=dry_run) as change,
    ):
        bringing = importing.Import(change, on_conflict)
        for group in some:
            bringing.bring_files(group)
        change.index_behind = bool(bringing.files)
        outcomes = bringing.bring_entries(single)
        bringing.finish()
        if dry_run:
            raise _NotKept
    revision = change.number - 1 if dry_run else change.current
    return ImportResult(revision, bringing.files, outcomes, bringing.differences)


class _NotKept(Exception):
    """Ends a change that was only rehearsed."""


def _fitting(imported: Iterable[Arrival | tuple[str, bytes]]) -> Iterator[Arrival]:
    for each in imported:
        arrival = Arrival(*each)
        files.require_fits(arrival.path, len(arrival.data))
        yield arrival


def restore(access: Access, revision: int, *, path: str | None = None, message: str = "") -> Restored:
    """Bring back what the tree, a folder or a file was in a revision, as a new revision.

    Files that came since go, those that went come back. Raises `RevisionNotFound`, `RevisionPruned`, and
    `FileNotFound` for a path at which nothing stands or stood.
    """
    folder = canonical_folder(path) if path is not None else access.prefix
    access.require_write(folder)
    with one_revision(access, "tree.restore", message) as change:
        paths = restoring.restore(change, access, revision, folder)
    return Restored(revision=change.current, paths=sorted(paths), warnings=tuple(change.warnings))


def restore_entry(access: Access, entry_id: str, revision: int, *, message: str = "") -> Restored:
    """Bring one entry back as it was in a revision, superseded or not; the rest of its file stays as it is."""
    with one_revision(access, "entry.restore", message) as change:
        path = restoring.restore_entry(change, access, entry_id, revision)
    paths = [path] if change.made else []
    return Restored(revision=change.current, paths=paths, warnings=tuple(change.warnings))


def undo(
    access: Access,
    *,
    revision: int | None = None,
    actor: str | None = None,
    since: int = 1,
    dry_run: bool = False,
    skip_conflicts: bool = False,
    message: str = "",
) -> Undone:
    """Take back what one revision, or one actor from revision `since` on, did, and keep what others did after.

    With `dry_run` nothing is changed: the answer says what would be. Raises `UndoRefused` when something has
    changed since in the same place, unless `skip_conflicts` asks for the rest to be undone.
    """
    if (revision is None) == (actor is None):
        raise InvalidText("name either the revision or the actor whose changes are to be undone")
    with suppress(_NotKept), one_revision(access, "undo", message, dry_run=dry_run) as change:
        revisions = undoing.revisions_to_undo(change, revision=revision, actor=actor, since=since)
        done = undoing.undo(change, access, revisions)
        warnings = tuple(change.warnings)
        if dry_run:
            raise _NotKept
        if done.conflicts and not skip_conflicts:
            raise UndoRefused(done.conflicts)
    return Undone(
        change.number - 1 if dry_run else change.current,
        sorted(done.undone, reverse=True),
        sorted(done.gone | done.back),
        done.conflicts,
        warnings=warnings,
    )


# --- one change -------------------------------------------------------------------------------------------------


def _one[R: Told](access: Access, action: str, step: Step[R], message: str) -> R:
    with one_revision(access, action, message) as change:
        return _told(change, step)


def _told[R: Told](change: Change, step: Step[R]) -> R:
    """Do a step, and put what its writer has to know into its answer."""
    before = len(change.warnings)
    result = step(change)
    return replace(result, warnings=tuple(change.warnings[before:]))


@contextmanager
def one_revision(
    access: Access, action: str, message: str = "", *, dry_run: bool = False, even_archived: bool = False
) -> Iterator[Change]:
    """A change at whose end the index files agree with the tree, also when an import left them behind."""
    message = checked_text(message, field="message", max_bytes=MAX_MESSAGE_BYTES)
    with unit_of_work(
        access, action, message=message, dry_run=dry_run, even_archived=even_archived
    ) as change:
        yield change
        if change.made and change.tree.index_behind and not change.index_behind:
            router.complete(change)


def _write(access: Access, operation: WriteFile) -> Step[Written]:
    path = canonical_path(operation.path)
    access.require_write(path)
    body = operation.content
    data = _encoded(body) if isinstance(body, str) else body
    files.require_fits(path, len(data))

    def write(change: Change) -> Written:
        file = files.find(change, path)
        try:
            files.check(change, file, operation.precondition, path)
        except PreconditionFailed:
            if not _is_done(change, file, operation.precondition, data):
                raise
        return filled(change, path, file, data)

    return write


def _is_done(change: Change, file: File | None, precondition: Precondition | None, data: bytes) -> bool:
    """Whether a change of a known state has been made already, so that a repeat of it may be answered as done."""
    if file is None or precondition is None or precondition.if_none_match_any:
        return False
    return file.size == len(data) and files.content_now(change, file) == data


def _append(access: Access, operation: AppendFile) -> Step[Written]:
    path = canonical_path(operation.path)
    access.require_write(path)
    data = _encoded(operation.text)

    def append(change: Change) -> Written:
        file = files.find(change, path)
        files.check(change, file, operation.precondition, path)
        every = list(files.live_blocks(file)) if file else []
        return filled(change, path, file, content(files.visible_at(change, every)) + data, every=every)

    return append


def _encoded(text: str) -> bytes:
    return checked_text(text, field="content", max_bytes=files.MAX_FILE_BYTES, nul_allowed=True).encode()


def filled(
    change: Change, path: str, file: File | None, data: bytes, *, every: Sequence[Block] | None = None
) -> Written:
    """Give a file (a new one where it is None) its content, and tell the index; `every` as of `files.fill`.

    What a new file may be called is said here and not where the path is read: one whose name is refused today may
    stand in a tree from before, and be written on.
    """
    created = file is None
    file = file or files.create(change, visible_path(path))
    shown = files.fill(change, file, data, every=every)
    if shown is not None and is_router(file.path):
        router.complete(change, [file], restated=True)
        file.refresh_from_db()
    elif shown is not None and router_of(file.path) is not None:
        update = router.described_by(change, file, shown)
        router.upsert_row(change, update if created else replace(update, on=change.at.date()))
    return Written(
        path=path,
        revision=change.current,
        created=created,
        changed=created or shown is not None,
        size=file.size,
        etag=files.etag_of(file),
    )


def _edit(access: Access, operation: EditFile) -> Step[Edited]:
    path = canonical_path(operation.path)
    access.require_write(path)
    _encoded(operation.new_string)

    def edit(change: Change) -> Edited:
        file = files.require(change, path)
        files.check(change, file, operation.precondition, path)
        if not file.is_text:
            raise NotText
        every = list(files.live_blocks(file))
        text, occurrences = replace_text(
            content(files.visible_at(change, every)).decode(),
            operation.old_string,
            operation.new_string,
            replace_all=operation.replace_all,
            newline=file.newline,
        )
        written = filled(change, path, file, text.encode(), every=every)
        return Edited(path, written.revision, occurrences, written.size, written.etag)

    return edit


def _delete(access: Access, operation: DeletePath) -> Step[Deleted]:
    path = canonical_folder(operation.path)
    if path in ("/", access.prefix):
        raise RootRefused
    access.require_write(path)

    def delete_path(change: Change) -> Deleted:
        file = files.find(change, path)
        files.check(change, file, operation.precondition, path)
        gone = [file] if file else _under(change, path)
        if file is None and not operation.recursive:
            raise FolderNeedsRecursive(path)
        seen = _number_seen(change, gone)
        close(change, gone)
        return Deleted(path, change.number, seen)

    return delete_path


def _under(change: Change, folder: str) -> list[File]:
    """All files below a folder, hidden ones too; a folder of which nothing shows any more isn't there."""
    found = list(File.objects.of(change.tree).live_at(None).under(folder))
    if not _number_seen(change, found):
        raise FileNotFound(folder)
    return found


def _number_seen(change: Change, found: Sequence[File]) -> int:
    return sum(not files.is_hidden(change, file) for file in found)


def close(change: Change, gone: Sequence[File]) -> None:
    """Take files out of the tree, and their rows out of the index."""
    files.close_files(change, gone)
    router.forget(change, [file.path for file in gone])


def _move(access: Access, operation: MovePath) -> Step[Moved]:
    source, destination = canonical_folder(operation.source), canonical_folder(operation.destination)
    for path in (source, destination):
        if path in ("/", access.prefix):
            raise RootRefused
        access.require_write(path)
    if source != destination:
        visible_path(destination)
    if destination.startswith(source + "/"):
        raise PathTaken(destination, "a folder can't be moved into itself")

    def move_path(change: Change) -> Moved:
        file = files.find(change, source)
        moving = [file] if file else _under(change, source)
        if source == destination:
            return Moved(source, destination, change.current, 0)
        seen = _number_seen(change, moving)
        there = files.find(change, destination)
        if there is not None and (file is None or not operation.overwrite):
            raise PathTaken(destination, "there is a file already; ask for overwrite to replace it")
        if there is not None:
            close(change, [there])
        files.require_free(change, destination)
        pairs = [(each.path, destination + each.path.removeprefix(source)) for each in moving]
        carry(change, moving, pairs)
        return Moved(source, destination, change.number, seen)

    return move_path


def carry(change: Change, moving: Sequence[File], pairs: Sequence[tuple[str, str]]) -> None:
    """Let files stand elsewhere from now on: `pairs` has for each its old path and the new one."""
    for each, (_, path) in zip(moving, pairs, strict=True):
        files.rename(change, each, canonical_path(path))
    files.elect_moved(change, moving)
    router.carry(change, pairs)
    router.complete(change, [each for each in moving if is_router(each.path)])


def _add_entry(access: Access, operation: AddEntry) -> Step[EntryWritten]:
    composed = entries.compose(access, operation.draft)
    return lambda change: entries.add(change, composed)


def _retire_entry(operation: RetireEntry) -> Step[EntryRetired]:
    return lambda change: entries.retire(change, operation.entry_id, operation.precondition)
