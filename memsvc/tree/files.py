"""Files inside a change: found, made, filled, closed, moved. Called by the services, under the tree's lock."""

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, groupby
from types import MappingProxyType

from django.db import connection
from django.db.models import BigIntegerField, Case, F, Min, Q, Sum, When
from django.db.models.expressions import Combinable

from memsvc.contract.files import WriteWarning
from memsvc.database.ids import uuid7
from memsvc.format import Block as CutBlock
from memsvc.format import (
    BlockKind,
    MemoryEntry,
    ancestors_of,
    cut_file,
    dominant_newline,
    is_memory_file,
    is_router,
    keys_in,
    parent_of,
    parse_row,
    problems_in,
)
from memsvc.tree import statements
from memsvc.tree.arrivals import PreparedFile
from memsvc.tree.blocks import content, cut_as_before, entry_of, is_spliced, kept_apart, rendered, row_of
from memsvc.tree.commands import Precondition
from memsvc.tree.differences import differences
from memsvc.tree.errors import FileNotFound, IsFolder, PathTaken, PreconditionFailed, TooLarge
from memsvc.tree.models import Block, BlockQuerySet, File
from memsvc.tree.scope import Change, Exemption
from memsvc.tree.visibility import FOR_GOOD, VISIBLE_BY, is_visible, must_be_counted, visible

# Room between two neighbours' positions, so that inserting seldom needs a new numbering.
GAP = 1 << 20
MAX_FILE_BYTES = 32 * 1024 * 1024


type Expiries = Mapping[tuple[str, str], datetime]
NO_EXPIRIES: Expiries = {}


def rendered_size(revision: int | None = None) -> Combinable:
    """A block's bytes as of a revision: its text, and the line that says that it is superseded."""
    return F("size") + Case(
        When(_spliced(revision), then=F("spliced")), default=0, output_field=BigIntegerField()
    )


def rendered_lines(revision: int | None = None) -> Combinable:
    return F("lines") + Case(When(_spliced(revision), then=1), default=0, output_field=BigIntegerField())


def _spliced(revision: int | None) -> Q:
    spliced = Q(spliced__gt=0, superseded_in__isnull=False)
    return spliced if revision is None else spliced & Q(superseded_in__lte=revision)


def find(change: Change, path: str) -> File | None:
    """The file at a canonical path, or None; one of which nothing shows any more is as good as gone."""
    file = statements.file_at(change.tree, path)
    return None if file is None or is_hidden(change, file) else file


def is_hidden(change: Change, file: File) -> bool:
    """Whether a file holds blocks, of which readers see none."""
    if not must_be_counted(file, change.at):
        return False
    blocks = list(live_blocks(file).only(*VISIBLE_BY))
    return bool(blocks) and not visible_at(change, blocks)


def require(change: Change, path: str) -> File:
    file = find(change, path)
    if file is None:
        raise FileNotFound(path)
    return file


def last_expiry(change: Change, file: File) -> datetime | None:
    """When the last of what shows of a file disappears; None when something stays."""
    if file.next_expiry is None:
        return None
    expiries = [row.expires_at for row in visible_at(change, list(live_blocks(file)))]
    return max((instant for instant in expiries if instant), default=None) if all(expiries) else None


def content_now(change: Change, file: File) -> bytes:
    return content(visible_at(change, list(live_blocks(file))))


def live_blocks(file: File) -> BlockQuerySet:
    return Block.objects.of_file(file).live_at(None)


def create(change: Change, path: str, *, newline: str = "\n") -> File:
    """A new, empty file. Raises `IsFolder` and `PathTaken`: a path is a file or a folder, never both."""
    change.require_write(path)
    require_free(change, path)
    change.made = True
    file = _new(change, path, newline)
    file.save(force_insert=True)
    return file


def _new(change: Change, path: str, newline: str = "\n") -> File:
    return File(
        tenant_id=change.tree.tenant_id,
        tree_id=change.tree.pk,
        path=path,
        parent=parent_of(path),
        newline=newline,
        added_in=change.number,
        created_in=change.number,
        changed_in=change.number,
        created_at=change.at,
        modified_at=change.at,
    )


def create_all(change: Change, prepared: Sequence[PreparedFile]) -> set[str]:
    """Make files at different paths in a few statements, where nothing is in the way; the answer is their paths.

    What becomes of the others is left to `create` and `fill`.
    """
    paths = {each.arrival.path for each in prepared}
    above = {folder for path in paths for folder in ancestors_of(path)}
    if not paths or above & paths:
        return set()
    taken = statements.paths_in_use(change.tree, [*paths], [*above])
    new = [
        (_new(change, path), each)
        for each in prepared
        if (path := each.arrival.path) not in taken and taken.isdisjoint(ancestors_of(path))
    ]
    for file, each in new:
        change.require_write(file.path)
        for n, row in enumerate(each.rows, start=1):
            place(row, file, position=GAP * n, revision=change.number)
        _describe(file, each.arrival.data)
        shown = visible_at(change, each.rows)
        file.size, file.lines = sum(row.size for row in shown), sum(row.lines for row in shown)
        file.next_expiry = min((row.expires_at for row in shown if row.expires_at), default=None)
    File.objects.bulk_create(file for file, _ in new)
    _insert_blocks(change, [row for _, each in new for row in each.rows])
    change.made = change.made or bool(new)
    return {file.path for file, _ in new}


def place(row: Block, file: File, *, position: int, revision: int) -> Block:
    """Say where a row that was made before belongs, and give it its key now: keys are in the order of writing."""
    row.pk = uuid7()
    row.file_id, row.position, row.added_in = file.pk, position, revision
    return row


def require_free(change: Change, path: str) -> None:
    """Raise unless a path could be a file: nothing lies below it, and nothing above it is a file.

    Files in the way of which nothing shows any more are closed.
    """
    there = in_the_way(change, path)
    if there is not None and there.path.startswith(path + "/"):
        raise IsFolder(path)
    if there is not None:
        raise PathTaken(path, f"'{there.path}' is a file, so nothing can lie below it")


def in_the_way(change: Change, path: str, *, moving: File | None = None) -> File | None:
    """A file that keeps a path from being one: below it, at it, or above it. None when all that do have expired;
    these are closed, wherever they stand.
    """
    live = File.objects.of(change.tree).live_at(None)
    there = [*live.under(path), *live.filter(path__in=[*ancestors_of(path), path])]
    found: list[File] = [file for file in there if moving is None or file.pk != moving.pk]
    for file in found:
        if not is_hidden(change, file):
            return file
    if found:
        with change.exempt(Exemption.EXPIRED):
            close_files(change, found)
    return None


def check(change: Change, file: File | None, precondition: Precondition | None, path: str) -> None:
    """Raise `PreconditionFailed` unless the file is in the state that the caller expects."""
    if precondition is None:
        return
    if file is not None and file.next_expiry is not None:
        count(change, file)
    etag = etag_of(file) if file else None
    wanted = precondition.if_match
    holds = file is None or not precondition.if_none_match_any
    if holds and wanted is not None:
        holds = file is not None and (
            wanted in ("*", etag) or wanted == hashlib.sha256(content_now(change, file)).hexdigest()
        )
    if not holds:
        raise PreconditionFailed(f"'{path}'", revision=change.current, etag=etag)


def etag_of(file: File) -> str:
    """A strong validator that costs nothing: the content's sha256 when it is known, else the version."""
    if file.sha256 and file.next_expiry is None:
        return file.sha256
    return version_tag(file, revision=file.changed_in, size=file.size)


def version_tag(file: File, *, revision: int, size: int) -> str:
    """The size is in it because what expires changes a file without a revision."""
    return f"r{revision}-{size}-{file.pk.hex[-12:]}"


def require_fits(path: str, size: int) -> None:
    if size > MAX_FILE_BYTES:
        raise TooLarge(f"'{path}' would have {size} bytes; a file may have {MAX_FILE_BYTES}")


def fill(
    change: Change,
    file: File,
    data: bytes,
    *,
    expiries: Expiries = NO_EXPIRIES,
    made: Mapping[bytes, Block] = MappingProxyType({}),
    every: Sequence[Block] | None = None,
) -> list[Block] | None:
    """Make `data` the content of a file; the answer is the blocks that show then, or None when nothing differs.

    Blocks that are in both the old and the new content keep their identity and history; blocks that are hidden
    from readers keep their place. An entry that is written anew keeps its expiry, or gets the one in `expiries`.
    `made` has rows of entries by their bytes, each for one use, where they were made before; `every` are all of the
    file's live rows, where they are at hand.
    """
    change.require_write(file.path)
    require_fits(file.path, len(data))
    every = list(live_blocks(file)) if every is None else every
    old = visible_at(change, every)
    old_bytes = [rendered(row) for row in old]
    if b"".join(old_bytes) == data and file.changed_in != change.number:
        return None
    # The same bytes are another block where what stands around them makes text of a row, or of an entry.
    old_blocks = [(BlockKind(row.kind), raw) for row, raw in zip(old, old_bytes, strict=True)]
    old_texts = [raw for kind, raw in old_blocks if kind is BlockKind.TEXT]
    passing = [
        raw for row, raw in zip(old, old_bytes, strict=True) if row.kind == BlockKind.TEXT and row.expires_at
    ]
    known = {raw: kind for kind, raw in old_blocks if kind is not BlockKind.TEXT}
    known |= dict.fromkeys(made, BlockKind.ENTRY)
    made = dict(made)
    new = cut_as_before(old_texts, cut_file(file.path, data, known=known))
    new = kept_apart(passing, new) if passing else new
    ranges = differences(old_blocks, [(block.kind, block.raw) for block in new])
    places = _places(file, every, old, ranges)
    touched = [j for _, _, j1, j2 in ranges for j in range(j1, j2)]
    for j in touched:
        new[j] = _read(file, new[j])
    added = [
        place(row, file, position=position, revision=change.number)
        if (row := made.pop(new[j].raw, None))
        else row_of(new[j], file, position=position, revision=change.number, first=j == 0)
        for j, position in zip(touched, chain.from_iterable(places), strict=True)
    ]
    # An empty file is there, unlike one in which everything is hidden.
    closed = [row for i1, i2, _, _ in ranges for row in old[i1:i2]] if data else every
    _inherit_expiry({**expiries, **expiries_of(closed)}, added)
    _keep_origins(closed, added)
    keep_authors(closed, added)
    close_blocks(change, file, closed)
    insert_blocks(change, file, added)
    ids = {row.entry_id for row in added}
    warn(
        change,
        file.path,
        new,
        touched,
        gone={row.entry_id for row in closed if row.entry_id} - ids,
        doubled={row.entry_id for row in added if row.duplicate},
    )
    _describe(file, data)
    gone = {row.pk for row in closed}
    shown = sorted(
        visible_at(change, [*added, *(row for row in every if row.pk not in gone)]),
        key=lambda row: row.position,
    )
    file.size, file.lines = len(data), sum(row.lines + is_spliced(row) for row in shown)
    file.next_expiry = min((row.expires_at for row in shown if row.expires_at), default=None)
    save(change, file)
    return shown


def warn(
    change: Change,
    path: str,
    blocks: Sequence[CutBlock],
    touched: Sequence[int] | None = None,
    *,
    gone: Collection[str] = (),
    doubled: Collection[str] = (),
) -> None:
    """Let whoever writes a file know what of the blocks that are touched looks like an entry and is none, or a key."""
    found = keys_in(blocks, touched)
    if is_memory_file(path):
        found += problems_in(blocks, touched, gone=gone, doubled=doubled)
    told = [WriteWarning(path, each.line, each.code, each.reason) for each in found]
    # An index is filled once more when its rows are brought in step.
    change.warnings += [each for each in told if each not in change.warnings]


def extend(change: Change, file: File, rows: Sequence[Block]) -> None:
    """Put entries below the last block of a file, which ends in a line end, without a look at what else it holds."""
    last = live_blocks(file).last()
    start = last.position if last else 0
    for n, row in enumerate(rows, start=1):
        place(row, file, position=start + GAP * n, revision=change.number)
    insert_blocks(change, file, rows)
    _resize(change, file, added=rows)
    _recount(change, file, rows)
    require_fits(file.path, file.size)
    save(change, file)


def _describe(file: File, data: bytes) -> None:
    file.is_text = decodes(data)
    file.newline = dominant_newline(data)
    file.sha256 = hashlib.sha256(data).hexdigest()


def _read(file: File, block: CutBlock) -> CutBlock:
    """A block whose bytes were known, and so not read, that stands in another place now."""
    if block.kind not in (BlockKind.ENTRY, BlockKind.OPAQUE) or block.entry is not None or block.reason:
        return block
    return cut_file(file.path, block.raw)[0]


def expiries_of(rows: Iterable[Block]) -> Expiries:
    """When entries, or rows of an index, disappear: by id and by the path that a row is about."""
    return {(row.entry_id, row.row_path): row.expires_at for row in rows if row.expires_at}


def _inherit_expiry(expiries: Expiries, added: Sequence[Block]) -> None:
    for row in added:
        if row.entry_id or row.row_path:
            row.expires_at = expiries.get((row.entry_id, row.row_path))


def _keep_origins(closed: Sequence[Block], added: Sequence[Block]) -> None:
    """Let rows of an index that say of a file what they said remember where they have it from."""
    before = {row.row_path: row for row in closed if row.row_path}
    for row in added:
        old = before.get(row.row_path)
        was, now = (parse_row(each.text) if each else None for each in (old, row))
        if old and was and now and was.description == now.description:
            row.source, row.created = old.source, old.created
            row.tags = [tag for tag in old.tags if tag in now.tags]


def visible_at(change: Change, rows: Sequence[Block]) -> list[Block]:
    return [row for row in rows if is_visible(row, change.at)]


def decodes(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _places(
    file: File, every: Sequence[Block], old: Sequence[Block], ranges: Sequence[tuple[int, int, int, int]]
) -> list[list[int]]:
    """Positions for the new blocks of each range: those of the blocks they replace, then the room behind them."""
    taken = [row.position for row in every]
    places = [_places_in(taken, old, i1, i2, j2 - j1) for i1, i2, j1, j2 in ranges]
    if all(found is not None for found in places):
        return [found for found in places if found is not None]
    renumber(file)
    positions = dict(live_blocks(file).values_list("pk", "position"))
    for row in every:
        row.position = positions[row.pk]
    return _places(file, every, old, ranges)


def _places_in(taken: Sequence[int], old: Sequence[Block], i1: int, i2: int, wanted: int) -> list[int] | None:
    freed = [row.position for row in old[i1:i2]]
    extra = wanted - len(freed)
    if extra <= 0:
        return freed[:wanted]
    before = freed[-1] if freed else (old[i1 - 1].position if i1 else None)
    behind = 0 if before is None else bisect_right(taken, before)
    room = between(before, taken[behind] if behind < len(taken) else None, extra)
    return freed + room if room is not None else None


def between(before: int | None, after: int | None, wanted: int) -> list[int] | None:
    """`wanted` ascending positions between two neighbours, or None when there is no room.

    A neighbour that is None is the beginning or the end of the file.
    """
    if after is None:
        return [(before or 0) + GAP * n for n in range(1, wanted + 1)]
    if before is None:
        return [after - GAP * n for n in range(wanted, 0, -1)]
    step = (after - before) // (wanted + 1)
    return [before + step * n for n in range(1, wanted + 1)] if step else None


def renumber(file: File) -> None:
    """Spread a file's positions out again. Equal positions stay equal, so no revision's order changes."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE tree_block SET position = spread.place * %s
            FROM (
                SELECT id, dense_rank() OVER (ORDER BY position) AS place
                FROM tree_block WHERE tenant_id = %s AND file_id = %s
            ) AS spread
            WHERE tree_block.tenant_id = %s AND tree_block.id = spread.id
            """,
            [GAP, file.tenant_id, file.pk, file.tenant_id],
        )


def insert_blocks(change: Change, file: File, rows: Sequence[Block], *, free_ids: bool = False) -> None:
    """Add rows; of several entries with one id, the first in path order is the one that has it.

    `free_ids` says that no other entry has any of these ids.
    """
    change.require_write(file.path)
    _insert_blocks(change, rows, free_ids=free_ids)


def _insert_blocks(change: Change, rows: Sequence[Block], *, free_ids: bool = False) -> None:
    if not rows:
        return
    change.made = True
    ids = [] if free_ids else [row.entry_id for row in rows if row.entry_id]
    taken = set(_entries_with(change, ids).values_list("entry_id", flat=True)) if ids else set()
    clashing = {entry_id for entry_id, times in Counter(ids).items() if times > 1 or entry_id in taken}
    for row in rows:
        row.duplicate = row.entry_id in clashing
    _order(change, rows)
    known_below = None if free_ids else change.access.prefix
    statements.insert_blocks(rows, language=change.tree.language, known_below=known_below)
    choose_canonical(change, clashing)


def _order(change: Change, rows: Iterable[Block]) -> None:
    """Let entries that say that they are of a time to come stand among those of now."""
    for row in rows:
        if row.kind == BlockKind.ENTRY and row.created and row.created > change.at:
            row.created, row.claimed = change.at, row.created


def keep_authors(closed: Iterable[Block], added: Iterable[Block]) -> None:
    """Let entries that say what they said before stay their authors', however they are written now."""
    before = {row.entry_id: row for row in closed if row.kind == BlockKind.ENTRY}
    for row in added:
        old = before.get(row.entry_id) if row.kind == BlockKind.ENTRY else None
        if old and _says(old) == _says(row):
            row.changed_in = old.changed_in or old.added_in
            row.created, row.claimed = old.created, old.claimed


def _says(row: Block) -> tuple[MemoryEntry, object]:
    return replace(entry_of(row), superseded_by=None), row.metadata


def close_blocks(change: Change, file: File, rows: Sequence[Block]) -> None:
    change.require_write(file.path)
    if not rows:
        return
    change.made = True
    statements.close_blocks(rows, change.tree.tenant_id, change.number)
    if ids := [row.entry_id for row in rows if row.entry_id]:
        doubles = _entries_with(change, ids).filter(duplicate=True)
        choose_canonical(change, set(doubles.values_list("entry_id", flat=True)))


def _entries_with(change: Change, ids: Sequence[str]) -> BlockQuerySet:
    return Block.objects.of(change.tree).live_at(None).entries().filter(entry_id__in=ids)


def choose_canonical(change: Change, ids: set[str]) -> None:
    """Let the first block in path order have each of these ids; the others are its duplicates."""
    if not ids:
        return
    _entries_with(change, list(ids)).update(duplicate=True)
    seen: set[str] = set()
    first = []
    for pk, entry_id in (
        _entries_with(change, list(ids)).order_by("file__path", "position").values_list("pk", "entry_id")
    ):
        if entry_id not in seen:
            seen.add(entry_id)
            first.append(pk)
    Block.objects.of(change.tree).filter(pk__in=first).update(duplicate=False)


def elect_moved(change: Change, files: Sequence[File]) -> None:
    """After a change of path: the order in which duplicates stand may be another now."""
    choose_canonical(change, _doubled_in(change, files))


def _doubled_in(change: Change, files: Sequence[File]) -> set[str]:
    """The ids of entries in these files that more than one block has."""
    live = Block.objects.of(change.tree).live_at(None)
    ids = live.entries().filter(file__in=files).values("entry_id")
    return set(live.filter(duplicate=True, entry_id__in=ids).values_list("entry_id", flat=True))


def count(change: Change, file: File) -> bool:
    """Set size, lines and next expiry from the blocks that readers see from now on; whether there are any."""
    totals = (
        live_blocks(file)
        .filter(visible(change.at))
        .order_by()
        .aggregate(
            total_size=Sum(rendered_size()), total_lines=Sum(rendered_lines()), expiry=Min("expires_at")
        )
    )
    file.size, file.lines, file.next_expiry = (
        totals["total_size"] or 0,
        totals["total_lines"] or 0,
        totals["expiry"],
    )
    return totals["total_size"] is not None


def save(change: Change, file: File) -> None:
    """Keep what changed of a file's description."""
    _touch(change, file)
    statements.save_file(file)


def append_blocks(change: Change, file: File, rows: Sequence[Block], *, is_last: bool = True) -> None:
    """Add rows whose ids no other entry has; the file's row is kept with them when that `is_last` of what happens."""
    _resize(change, file, added=rows)
    if is_last:
        _touch(change, file)
        _order(change, rows)
        statements.append_blocks(file, rows, language=change.tree.language)
    else:
        insert_blocks(change, file, rows, free_ids=True)
    if _recount(change, file, rows):
        save(change, file)


def replace_block(change: Change, file: File, old: Block, new: Block) -> None:
    """Put a row that is no entry in the place of another."""
    _resize(change, file, added=[new], removed=[old])
    _touch(change, file)
    statements.replace_block(file, old, new, revision=change.number, language=change.tree.language)
    if _recount(change, file, [new]):
        save(change, file)


def drop_blocks(change: Change, file: File, rows: Sequence[Block]) -> None:
    """Close rows of a file that holds others."""
    close_blocks(change, file, rows)
    _resize(change, file, removed=rows)
    _recount(change, file)
    save(change, file)


def mark_superseded(change: Change, file: File, block: Block, *, by: str, spliced: int) -> None:
    """Say that an entry is superseded, which adds a line of `spliced` bytes to it."""
    file.size += spliced
    file.lines += 1
    file.sha256 = ""
    _touch(change, file)
    statements.mark_superseded(file, block, by=by, revision=change.number, spliced=spliced)
    change.superseded.append(block.pk)
    if _recount(change, file):
        save(change, file)


def _resize(
    change: Change, file: File, *, added: Sequence[Block] = (), removed: Sequence[Block] = ()
) -> None:
    seen = visible_at(change, removed)
    file.size += sum(row.size for row in added) - sum(row.size for row in seen)
    file.lines += sum(row.lines for row in added) - sum(row.lines for row in seen)
    file.sha256 = ""


def _recount(change: Change, file: File, added: Sequence[Block] = ()) -> bool:
    """Count a file in which something is hidden, or will be; whether it is such a one."""
    if file.next_expiry or not all(is_visible(row, FOR_GOOD) for row in added):
        count(change, file)
        return True
    return False


def _touch(change: Change, file: File) -> None:
    """Say that this change is a file's newest one; the statement that makes it keeps the file, too."""
    change.require_write(file.path)
    change.made = True
    file.changed_in, file.modified_at = change.number, change.at


def close_files(change: Change, files: Sequence[File]) -> None:
    """Take files out of the tree with all their blocks; the revisions before keep them."""
    for file in files:
        change.require_write(file.path)
    change.made = True
    ids = [file.pk for file in files]
    doubles = _doubled_in(change, files)
    Block.objects.of(change.tree).live_at(None).filter(file__in=ids).update(removed_in=change.number)
    File.objects.of(change.tree).filter(pk__in=ids).update(removed_in=change.number, changed_in=change.number)
    choose_canonical(change, doubles)


def rename(change: Change, file: File, path: str) -> None:
    """Let a file stand at another path from this revision on; its blocks stay unless the name says to cut anew."""
    before = file.path
    for each in (before, path):
        change.require_write(each)
    File.objects.create(
        tenant_id=file.tenant_id,
        tree_id=file.tree_id,
        path=file.path,
        parent=file.parent,
        is_text=file.is_text,
        newline=file.newline,
        added_in=file.added_in,
        removed_in=change.number,
        created_in=file.created_in,
        changed_in=file.changed_in,
        created_at=file.created_at,
        modified_at=file.modified_at,
        pruned_in=file.pruned_in,
        former_of=file,
    )
    file.path, file.parent, file.added_in = path, parent_of(path), change.number
    file.save(update_fields=["path", "parent", "added_in"])
    save(change, file)
    if _cut_as(before) != _cut_as(path):
        _cut_again(change, file)


def _cut_as(path: str) -> tuple[bool, bool]:
    """What counts as an entry or as a row depends on the name."""
    return is_memory_file(path), is_router(path)


def _cut_again(change: Change, file: File) -> None:
    """Replace a file's blocks after its name has come to mean another way of cutting it."""
    every = list(live_blocks(file))
    rows: list[Block] = []
    # By themselves, so that what disappears one day, or has already, stays apart from what doesn't.
    for expires_at, run in groupby(every, key=lambda row: row.expires_at):
        for block in cut_file(file.path, content(run)):
            position = GAP * (len(rows) + 1)
            row = row_of(block, file, position=position, revision=change.number, first=not rows)
            row.expires_at = expires_at
            rows.append(row)
    keep_authors(every, rows)
    close_blocks(change, file, every)
    insert_blocks(change, file, rows)
    warn(change, file.path, cut_file(file.path, content(visible_at(change, rows))))
    count(change, file)
    save(change, file)
