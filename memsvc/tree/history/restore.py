"""Bringing back what the tree, a folder, a file or an entry was in a revision, as a new revision. Nothing is erased."""

from collections.abc import Iterable, Sequence

from memsvc.format import append_to, code_end, cut_file, is_router, last_part, router_of
from memsvc.tree import entries, files, router
from memsvc.tree.access import Access
from memsvc.tree.blocks import content
from memsvc.tree.errors import EntryNotFound, FileNotFound
from memsvc.tree.history.entry_history import first_standing
from memsvc.tree.history.timeline import Places
from memsvc.tree.models import Block, File
from memsvc.tree.scope import Change
from memsvc.tree.snapshot import Snapshot


def restore(change: Change, access: Access, revision: int, folder: str) -> set[str]:
    """Make a file, or all in a folder, what it was in a revision; the answer is the paths that changed.

    What came since goes, what went comes back. Raises `RevisionNotFound`, `RevisionPruned`, and `FileNotFound` where
    nothing stands or stood.
    """
    change.tree.require_revision(revision)
    as_of, today = Snapshot(access, revision, change.at), Snapshot(access, None, change.at)
    then, now = ({file.path: file for file in view.files().at_or_below(folder)} for view in (as_of, today))
    # What has not changed since is neither read nor written.
    same = {path for path, file in now.items() if file.changed_in <= revision and path in then}
    was, held = _held(as_of, then, same), _held(today, now, same)
    if not (same or was or held or folder in ("/", access.prefix)):
        raise FileNotFound(folder)
    # Of what is left of nothing it is only known that it was there: it neither comes back nor takes anything's place.
    lost = {path for path, rows in was.items() if rows and all(row.is_redacted for row in rows)}
    was = {path: rows for path, rows in was.items() if path not in lost}
    gone = [now[path] for path in held if path not in was and path not in lost]
    if gone:
        files.close_files(change, gone)
    back: set[str] = set()
    for path, rows in sorted(was.items()):
        file = now[path] if path in held else files.create(change, path)
        filled = files.fill(change, file, content(rows, revision), expiries=files.expiries_of(rows))
        if filled is not None or path not in held:
            back.add(path)
    if gone or back:
        indexes = filter(is_router, was.keys() | same)
        tell_index(change, gone=[file.path for file in gone], back=back, indexes=indexes)
    return back | {file.path for file in gone}


def _held(view: Snapshot, found: dict[str, File], same: set[str]) -> dict[str, list[Block]]:
    """What readers see of these files, but for those that are the same, and those of which they see nothing."""
    held: dict[str, list[Block]] = {}
    for path, file in found.items():
        if path not in same:
            rows = list(Block.objects.of_file(file).live_at(view.revision))
            shown = [row for row in rows if view.shows(row)]
            if shown or not rows:
                held[path] = shown
    return held


def tell_index(change: Change, *, gone: Iterable[str], back: Iterable[str], indexes: Iterable[str]) -> None:
    """Bring the index files in step, but for what an index that was itself brought back says of the others."""
    router.forget(change, gone)
    restored = [file for path in indexes if (file := files.find(change, path))]
    speaking = {index.path for index in restored}
    for path in sorted(back):
        place = router_of(path)
        if place is not None and place[0] not in speaking and (file := files.find(change, path)):
            router.upsert_row(change, router.described(change, file))
    router.complete(change, restored)


def restore_entry(change: Change, access: Access, entry_id: str, revision: int) -> str:
    """Bring one entry's text of a revision back, in the file where it stands or stood; the answer is its path.

    The other entries of the file stay as they are. Raises `EntryNotFound` where that revision has no such entry.
    """
    change.tree.require_revision(revision)
    was = _entry_at(change, access, entry_id, revision)
    text = content([was], revision).lstrip(b"\r\n")
    try:
        now = entries.visible_entry(change, entry_id)
    except EntryNotFound:
        now = None
    path = now.file.path if now else was.file.path
    file = now.file if now else files.find(change, path)
    created = file is None
    file = file or files.create(change, path)
    every = list(files.live_blocks(file))
    rows = files.visible_at(change, every)
    if now:
        data = b"".join(_replaced(rows, now, text, file))
    else:
        data = content(rows)
        data += append_to(last_part(cut_file(file.path, data)), "", newline=file.newline) + text
    filled = files.fill(change, file, data, expiries=files.expiries_of([was]), every=every)
    if created or filled is not None:
        tell_index(change, gone=[], back=[path], indexes=[])
    return path


def _entry_at(change: Change, access: Access, entry_id: str, revision: int) -> Block:
    """The entry with an id in a revision: of several, the first in path order that the access sees."""
    named = Block.objects.of(change.tree).entries().live_at(revision).filter(entry_id=entry_id)
    blocks = files.visible_at(change, list(named.select_related("file").order_by("position")))
    places = Places(Snapshot(access, None, change.at), {block.file_id for block in blocks})
    found = first_standing(blocks, places, revision)
    if found is None:
        raise EntryNotFound(entry_id)
    return found[1]


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
            yield code_end(text, newline=file.newline) or missing_line_end
