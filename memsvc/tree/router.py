"""Router indexes: every file under a router's folder has its row there, in the transaction that made the file.

A router is an ordinary file whose table rows are blocks. Rows are found by the path that they are about; where
a table has none to stand beside, the whole text is put together anew. What people wrote around it stays.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from uuid import UUID

from memsvc.format import (
    MAX_ROW_TAG_CHARS,
    MAX_ROW_TAGS,
    MEMORY_ROOT,
    SCAFFOLD,
    BlockKind,
    IndexRow,
    MemoryKind,
    first_heading,
    first_line,
    is_memory_file,
    is_router,
    merged_row,
    parent_of,
    parse_index,
    parse_row,
    router_of,
    shortened,
    with_row_put,
    without_row,
)
from memsvc.format import Block as CutBlock
from memsvc.format import index_path as router_path
from memsvc.format.text import folded
from memsvc.tree import files, statements
from memsvc.tree.blocks import row_of
from memsvc.tree.models import Block, BlockQuerySet, File, Tree
from memsvc.tree.scope import Change, Exemption
from memsvc.tree.statements import LiveEntry, live_entry
from memsvc.tree.visibility import FOR_GOOD, is_active, is_visible, visible

INDEXES = [router_path(None), *(router_path(kind) for kind in MemoryKind)]
# How many of a file's last entries its row is made from, so that what that costs has a bound.
LOOKED_AT = 200
# An entry whose time lies further off than this is not sure to be its file's newest.
_AT_ONCE = timedelta(minutes=1)


class Origin(StrEnum):
    """Where the description of a row comes from; kept with the row, as `source`."""

    SUMMARY = "summary"
    LINE = "line"  # the first line of an entry without a summary
    FILE = "file"  # the file's heading, or what every new tree says of it
    HAND = "hand"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowUpdate:
    """What a change has to tell about one file: merged into its row.

    `created` is the time of the entry that the description comes from. `expires_at` is when what was added to the
    file disappears, or all of the file if it is `of_all`; then the rest tells of all of it, too, and what the row
    said before goes. Tags that are there `by_hand` stay with the row for good.
    """

    path: str
    description: str = ""
    origin: Origin = Origin.FILE
    created: datetime | None = None
    tags: Sequence[str] = ()
    by_hand: frozenset[str] = frozenset()
    on: date | None = None
    expires_at: datetime | None = None
    of_all: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """What of a row was made from its file: the rest was written by hand, and stays."""

    origin: Origin = Origin.FILE
    created: datetime | None = None
    tags: frozenset[str] = frozenset()


_SCAFFOLD_ROWS = {
    f"{index.rpartition('/')[0]}/{row.path}": row
    for index, text in SCAFFOLD.items()
    if is_router(index)
    for row in parse_index(text)[1].values()
}


def upsert_row(
    change: Change,
    update: RowUpdate,
    *,
    make_index: bool = False,
    is_new: bool = False,
    gone: Block | None = None,
) -> None:
    """Give a file its row, or bring the row up to date. A router that isn't there is made only when asked.

    `is_new` says that the file holds nothing but what is told, `gone` is an entry that it has lost.
    """
    place = router_of(update.path)
    if place is None:
        return
    index_path, relative = place
    index, row = statements.index_row(change.tree, index_path, relative)
    if index is None and make_index:
        index = _made(change, index_path)
        row = _rows(index).filter(row_path=relative).last()
    if index is not None:
        if row is None and not (update.of_all or is_new):
            whole = _of_all(change, update)
            update = replace(whole, on=update.on or whole.on)
        _upsert_row_in(change, index, row, relative, update, gone)


def _of_all(change: Change, update: RowUpdate) -> RowUpdate:
    """What is to be told of a file as a whole, where a part of it is not enough to know."""
    return described(change, files.require(change, update.path))


def _made(change: Change, index_path: str) -> File:
    """A router as a new tree has it, but for the rows of files that aren't there."""
    there = File.objects.of(change.tree).live_at(None).filter(path__in=SCAFFOLD)
    gone = SCAFFOLD.keys() - set(there.values_list("path", flat=True))
    text = usual_text(index_path, without=gone)
    with change.exempt(Exemption.INDEX):
        index = files.create(change, index_path)
        files.fill(change, index, text)
    complete(change, [index])
    return index


def usual_text(path: str, *, without: Collection[str]) -> bytes:
    """What a new tree has in a file of its own: an index without the rows of these files."""
    text = SCAFFOLD[path].encode()
    if is_router(path):
        for row in parse_index(text.decode())[1]:
            if f"{parent_of(path)}/{row}" in without:
                text = without_row(text, row)
    return text


def _list_routers(change: Change) -> None:
    """Let the root's index list the other routers that there are: no file's row is theirs."""
    root = files.find(change, INDEXES[0])
    if root is None:
        return
    have = set(_rows(root).values_list("row_path", flat=True))
    there = File.objects.of(change.tree).live_at(None).filter(path__in=INDEXES[1:]).order_by("path")
    for path in there.values_list("path", flat=True):
        relative = path.removeprefix(MEMORY_ROOT)
        if relative not in have:
            _upsert_row_in(change, root, None, relative, RowUpdate(path=path))


def _upsert_row_in(
    change: Change,
    index: File,
    old: Block | None,
    relative: str,
    update: RowUpdate,
    gone: Block | None = None,
) -> None:
    # What a row said that nobody sees any more is not said again.
    known = parse_row(old.text) if old and files.visible_at(change, [old]) else None
    mark = mark_of(change.tree, update.path, old, known) if old and known else Mark()
    if known is None and (usual := _SCAFFOLD_ROWS.get(update.path)):
        known = replace(usual, path=relative)
    if not update.of_all and _asks_for_all(change, known, mark, update, gone):
        update = replace(_of_all(change, update), on=update.on)
    by_hand = update.by_hand.union(known.tags if known else ()) - mark.tags
    row, mark = _merged(known, mark, update, relative, by_hand)
    expires_at = update.expires_at
    if old and expires_at and not update.of_all:
        # The later of both, None being never.
        expires_at = max(old.expires_at, expires_at) if old.expires_at else None
    if old and known == row and old.expires_at == expires_at:
        is_sure = mark.created and abs(mark.created - change.at) < _AT_ONCE
        if not old.source or not (is_sure or old.created == mark.created):
            _remember(change, [old.pk], mark, expires_at)
        return
    beside = old or _rows(index).filter(row_path__lt=relative).order_by("row_path").last()
    if beside is None or not beside.text.endswith("\n") or beside.text.endswith("| |\n"):
        # No table yet, or one as the scaffold made it, whose rows get their usual form with the first change.
        _rewrite(change, index, row, mark, expires_at)
    elif old is not None:
        _put(change, index, row, mark, expires_at, position=old.position, instead_of=old)
    else:
        _put(change, index, row, mark, expires_at, position=_room_behind(index, beside), instead_of=None)


def _asks_for_all(
    change: Change, known: IndexRow | None, mark: Mark, update: RowUpdate, gone: Block | None
) -> bool:
    """Whether it takes a look at the file to know what its row has to say now."""
    if update.created and abs(update.created - change.at) > _AT_ONCE:
        return True
    if known is None:
        return False
    # Where nothing was said yet, how the file begins comes before what an entry says first.
    if update.origin is Origin.LINE and not known.description:
        return True
    if gone is None:
        return False
    if mark.tags.intersection(gone.tags).difference(update.tags):
        return True
    entry = live_entry(gone)
    replaces = update.origin is Origin.SUMMARY and not (
        mark.created and update.created and mark.created > update.created
    )
    return not replaces and mark.origin is not Origin.HAND and known.description == quoted(entry)[0]


def _merged(
    known: IndexRow | None, mark: Mark, update: RowUpdate, relative: str, by_hand: frozenset[str]
) -> tuple[IndexRow, Mark]:
    """The row after what is told, and what of it is made from the file."""
    newer = not (mark.created and update.created and mark.created > update.created)
    nothing_said = known is None or not known.description
    replaces = mark.origin is not Origin.HAND and (
        update.of_all
        or (update.origin is Origin.SUMMARY and newer)
        or (update.origin is Origin.LINE and newer and (nothing_said or mark.origin is Origin.LINE))
    )
    kept = known or IndexRow(relative)
    if update.of_all:
        kept = replace(kept, tags=tuple(tag for tag in kept.tags if tag in by_hand or tag in update.tags))
    row = merged_row(
        replace(kept, description="") if replaces else kept,
        path=relative,
        description=update.description if replaces else "",
        tags=update.tags,
        when=update.on,
        by_hand=by_hand,
    )
    made = (mark.tags.union(update.tags) - by_hand).intersection(row.tags)
    if replaces:
        return row, Mark(update.origin, update.created, made)
    return row, Mark(mark.origin, mark.created, made)


def mark_of(tree: Tree, path: str, old: Block, known: IndexRow, *, now_at: str = "") -> Mark:
    """What of a row is made from the file at `path`, which has just been moved to `now_at`."""
    if old.source:
        return Mark(Origin(old.source), old.created, frozenset(old.tags))
    # A row that came as text: it quotes what its file says, or what that has said before.
    usual = _SCAFFOLD_ROWS.get(path)
    said, tags = known.description, [tag for tag in known.tags if not usual or tag not in usual.tags]
    is_usual = not said or (usual is not None and said == usual.description)
    file = None if is_usual and not tags else statements.file_at(tree, now_at or path)
    made = frozenset(statements.ever_tagged(file, tags)) if file and tags else frozenset[str]()
    if is_usual or (file and said == _heading(file)):
        return Mark(Origin.FILE, None, made)
    for entry in statements.ever_said(file, folded(said[:100])) if file else []:
        description, origin = quoted(entry)
        if said == description:
            return Mark(origin, entry.created, made)
    return Mark(Origin.HAND, None, made)


def _remember(change: Change, ids: Sequence[UUID], mark: Mark, expires_at: datetime | None) -> None:
    Block.objects.of(change.tree).filter(pk__in=ids).update(
        expires_at=expires_at, source=mark.origin, created=mark.created, tags=sorted(mark.tags)
    )


def _rows(index: File) -> BlockQuerySet:
    return files.live_blocks(index).filter(kind=BlockKind.ROW)


def _put(
    change: Change,
    index: File,
    row: IndexRow,
    mark: Mark,
    expires_at: datetime | None,
    *,
    position: int,
    instead_of: Block | None,
) -> None:
    line_end = instead_of.text[len(instead_of.text.rstrip("\r\n")) :] if instead_of else index.newline
    raw = (row.to_row() + line_end).encode()
    block = row_of(CutBlock(BlockKind.ROW, raw), index, position=position, revision=change.number)
    block.expires_at = expires_at
    block.source, block.created, block.tags = mark.origin, mark.created, sorted(mark.tags)
    with change.exempt(Exemption.INDEX):
        if instead_of is None:
            files.append_blocks(change, index, [block])
        else:
            files.replace_block(change, index, instead_of, block)


def _room_behind(index: File, before: Block) -> int:
    after = files.live_blocks(index).filter(position__gt=before.position).first()
    room = files.between(before.position, after.position if after else None, 1)
    if room is None:
        files.renumber(index)
        before.refresh_from_db(fields=["position"])
        return _room_behind(index, before)
    return room[0]


def _rewrite(change: Change, index: File, row: IndexRow, mark: Mark, expires_at: datetime | None) -> None:
    """The slow way: put the index's whole text together anew."""
    data = files.content_now(change, index)
    with change.exempt(Exemption.INDEX):
        rows = files.fill(change, index, with_row_put(data, row)) or []
        _remember(change, [block.pk for block in rows if block.row_path == row.path], mark, expires_at)
        if expires_at or index.next_expiry:
            files.count(change, index)
            files.save(change, index)


def forget(change: Change, paths: Iterable[str]) -> None:
    """Take the rows of files that are gone out of their routers."""
    by_index: dict[str, list[str]] = {}
    for path in paths:
        if place := place_of(path):
            by_index.setdefault(place[0], []).append(place[1])
    for index_path, relatives in by_index.items():
        index = files.find(change, index_path)
        gone = list(_rows(index).filter(row_path__in=relatives)) if index else []
        if index and gone:
            with change.exempt(Exemption.INDEX):
                files.drop_blocks(change, index, gone)


def place_of(path: str) -> tuple[str, str] | None:
    """The router that has a row for a file, and the row's path. The root's index has one for each other router."""
    if path in INDEXES[1:]:
        return INDEXES[0], path.removeprefix(MEMORY_ROOT)
    return router_of(path)


def carry(change: Change, moved: Sequence[tuple[str, str]]) -> None:
    """Let the rows of moved files move along, with what they say."""
    updates = [_moved(change, source, destination) for source, destination in moved]
    forget(change, [source for source, _ in moved])
    for each in filter(None, updates):
        upsert_row(change, each)


def _moved(change: Change, source: str, destination: str) -> RowUpdate | None:
    """What is said of a file that was moved: what its row said, unless that came from where it was."""
    moved = statements.file_at(change.tree, destination)
    place = router_of(source)
    index = files.find(change, place[0]) if place else None
    old = _rows(index).filter(row_path=place[1]).last() if place and index else None
    row = parse_row(old.text) if old else None
    if old is None or row is None:
        return described(change, moved) if moved else None
    mark = mark_of(change.tree, source, old, row, now_at=destination)
    by_hand = frozenset(row.tags) - mark.tags
    is_read_anew = is_memory_file(source) != is_memory_file(destination)
    is_usual = mark.origin is Origin.FILE and (source in _SCAFFOLD_ROWS or destination in _SCAFFOLD_ROWS)
    if moved and mark.origin is not Origin.HAND and (is_read_anew or is_usual):
        update = described(change, moved)
        return replace(update, tags=[*by_hand, *update.tags], by_hand=by_hand)
    return RowUpdate(
        path=destination,
        description=row.description,
        origin=mark.origin,
        created=mark.created,
        tags=row.tags,
        by_hand=by_hand,
        on=date.fromisoformat(row.updated) if row.updated else None,
        expires_at=old.expires_at,
        of_all=True,
    )


def complete(change: Change, indexes: Sequence[File] | None = None, *, restated: bool = False) -> None:
    """Give every file that has none its row, in these routers or in all that there are.

    With `restated`, rows that this change brought as text don't go on quoting what their files no longer say.
    """
    if indexes is None:
        indexes = list(File.objects.of(change.tree).live_at(None).filter(path__in=INDEXES))
    for index in indexes:
        have = {row.row_path: row for row in _rows(index)}
        below = File.objects.of(change.tree).live_at(None).under(index.parent).order_by("path")
        for file in below:
            place = router_of(file.path)
            if place is None or place[0] != index.path:
                continue
            row = have.get(place[1])
            shows = row is not None and bool(files.visible_at(change, [row]))
            if row is None or not (shows or files.is_hidden(change, file)):
                _upsert_row_in(change, index, row, place[1], described(change, file))
            elif restated and row.added_in == change.number and not row.source:
                _restate(change, index, row, file)
    if indexes:
        _list_routers(change)


def _restate(change: Change, index: File, row: Block, file: File) -> None:
    """Bring a row that came as text up to date where it quotes an entry that its file has no more."""
    known = parse_row(row.text)
    if known is None:
        return
    mark, update = mark_of(change.tree, file.path, row, known), described(change, file)
    quotes = mark.origin in (Origin.SUMMARY, Origin.LINE) and known.description != update.description
    if quotes or mark.tags.difference(update.tags):
        _upsert_row_in(change, index, row, known.path, replace(update, on=None))
    else:
        _remember(change, [row.pk], mark, row.expires_at)


def described(change: Change, file: File) -> RowUpdate:
    """What a file's row has to say: made from the last of its live entries, else from how the file begins."""
    return replace(row_of_file(file), expires_at=files.last_expiry(change, file))


def row_of_file(file: File) -> RowUpdate:
    """The same, with no regard to when the file disappears."""
    entries = statements.last_entries(file, LOOKED_AT)
    return described_from(file, entries, "" if _newest(entries, with_summary=True) else _heading(file))


def described_by(change: Change, file: File, rows: Sequence[Block]) -> RowUpdate:
    """The same of a file of which all that shows is at hand, in its order."""
    lasting = [row for row in reversed(rows) if is_visible(row, FOR_GOOD)]
    live = [row for row in lasting if row.kind == BlockKind.ENTRY and is_active(row)]
    first = lasting[-1] if lasting else None
    update = described_from(
        file, [live_entry(row) for row in live[:LOOKED_AT]], _heading_of(file.path, first)
    )
    return replace(update, expires_at=files.last_expiry(change, file))


def described_from(file: File, entries: Sequence[LiveEntry], heading: str) -> RowUpdate:
    """The same of a file with these entries, the last one first, and this heading."""
    newest = _newest(entries)
    described = _newest(entries, with_summary=True) or (None if heading else newest)
    description, origin = quoted(described) if described else (heading, Origin.FILE)
    # A row lists the latest at the end, and of these entries the last one comes first.
    tags = dict.fromkeys(tag for entry in entries for tag in reversed(entry.tags))
    fitting = [tag for tag in tags if len(tag) <= MAX_ROW_TAG_CHARS][:MAX_ROW_TAGS]
    return RowUpdate(
        path=file.path,
        description=description,
        origin=origin,
        created=described.created if described else None,
        tags=fitting[::-1],
        on=newest.created.astimezone(UTC).date() if newest else file.modified_at.date(),
        of_all=True,
    )


def _newest(entries: Sequence[LiveEntry], *, with_summary: bool = False) -> LiveEntry | None:
    """Of several that are as new the first: the last one in the file."""
    found = [entry for entry in entries if entry.summary or not with_summary]
    return max(found, key=lambda entry: entry.created, default=None)


def quoted(entry: LiveEntry) -> tuple[str, Origin]:
    """How an entry is told of in a row."""
    if entry.summary:
        return shortened(entry.summary), Origin.SUMMARY
    return first_line(entry.text), Origin.LINE


def _heading(file: File) -> str:
    return _heading_of(file.path, files.live_blocks(file).filter(visible(FOR_GOOD)).first())


def usual_description(path: str) -> str:
    """What a new tree says of a file of its own; "" of any other."""
    usual = _SCAFFOLD_ROWS.get(path)
    return usual.description if usual else ""


def _heading_of(path: str, first: Block | None) -> str:
    """How a file is described by how it begins; one of every tree's own as in a new tree, unless a person did."""
    usual = usual_description(path)
    if first is None or first.kind == BlockKind.ENTRY or first.raw is not None:
        return usual
    if usual and first.text.startswith(SCAFFOLD[path]):
        return usual
    return first_heading(first.text)
