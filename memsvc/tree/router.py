"""Router indexes: every file under a router's folder has its row there, in the transaction that made the file.

A router is an ordinary file whose table rows are blocks. Rows are found by the path that they are about; where
a table has none to stand beside, the whole text is put together anew. What people wrote around it stays.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from django.db.models import F

from memsvc import format
from memsvc.format import BlockKind, IndexRow
from memsvc.tree import files, statements
from memsvc.tree.blocks import row_of
from memsvc.tree.models import LIVE, Block, BlockQuerySet, File
from memsvc.tree.scope import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """What a change has to tell about one file: merged into its row.

    `expires_at` is when what was added to the file disappears, or all of the file if it is `of_all`.
    """

    path: str
    description: str = ""
    tags: Sequence[str] = ()
    on: date | None = None
    expires_at: datetime | None = None
    of_all: bool = False


def mention(change: Change, told: Mention, *, make_index: bool = False) -> None:
    """Give a file its row, or bring the row up to date. A router that isn't there is made only when asked."""
    place = format.router_of(told.path)
    if place is None:
        return
    index_path, relative = place
    index, row = statements.index_row(change.tree, index_path, relative)
    if index is None and make_index:
        index = _made(change, index_path)
        row = _rows(index).filter(row_path=relative).last()
    if index is not None:
        if row is None and told.expires_at and not told.of_all:
            # What expires may not be all that the file holds.
            told = described(change, files.require(change, told.path))
        _mention_in(change, index, row, relative, told)


def _made(change: Change, index_path: str) -> File:
    index = files.create(change, index_path)
    files.fill(change, index, format.SCAFFOLD[index_path].encode())
    complete(change, [index])
    return index


def _mention_in(change: Change, index: File, old: Block | None, relative: str, told: Mention) -> None:
    # What a row said that nobody sees any more is not said again.
    known = format.parse_row(old.text) if old and files.visible_at(change, [old]) else None
    row = format.merged_row(known, path=relative, description=told.description, tags=told.tags, when=told.on)
    expires_at = _later(old.expires_at, told.expires_at) if old and not told.of_all else told.expires_at
    if old and known == row and old.expires_at == expires_at:
        return
    beside = old or _rows(index).filter(row_path__lt=relative).order_by("row_path").last()
    if beside is None or not beside.text.endswith("\n") or beside.text.endswith("| |\n"):
        # No table yet, or one as the scaffold made it, whose rows get their usual form with the first change.
        _rewrite(change, index, relative, told, expires_at)
    elif old is not None:
        _put(change, index, row, expires_at, position=old.position, instead_of=old)
    else:
        _put(change, index, row, expires_at, position=_room_behind(index, beside), instead_of=None)


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    """The later of two expiries, None being never."""
    return max(one, other) if one and other else None


def _rows(index: File) -> BlockQuerySet:
    rows = Block.objects.filter(LIVE, tenant_id=index.tenant_id, file_id=index.pk, kind=BlockKind.ROW)
    return rows.order_by("position")


def _put(
    change: Change,
    index: File,
    row: IndexRow,
    expires_at: datetime | None,
    *,
    position: int,
    instead_of: Block | None,
) -> None:
    line_end = _line_end(instead_of.text) if instead_of else index.newline
    raw = (row.to_row() + line_end).encode()
    block = row_of(format.Block(BlockKind.ROW, raw), index, position=position, revision=change.number)
    block.expires_at = expires_at
    _resize(change, index, added=[block], removed=[instead_of] if instead_of else [])
    files.touch(change, index)
    language = change.tree.language
    if instead_of is None:
        statements.append_blocks(index, [block], language=language)
    else:
        statements.replace_block(index, instead_of, block, revision=change.number, language=language)
    if index.next_expiry or block.expires_at:
        files.count(change, index)
        files.save(change, index)


def _line_end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def _room_behind(index: File, before: Block) -> int:
    after = files.live_blocks(index).filter(position__gt=before.position).first()
    room = files.between(before.position, after.position if after else None, 1)
    if room is None:
        files.renumber(index)
        before.refresh_from_db(fields=["position"])
        return _room_behind(index, before)
    return room[0]


def _rewrite(change: Change, index: File, relative: str, told: Mention, expires_at: datetime | None) -> None:
    """The slow way: put the index's whole text together anew."""
    data = files.content_now(change, index)
    text = format.with_row(data, path=relative, description=told.description, tags=told.tags, when=told.on)
    added = files.fill(change, index, text) or []
    mine = [block.pk for block in added if block.row_path == relative and block.expires_at != expires_at]
    if mine:
        Block.objects.of(change.tree).filter(pk__in=mine).update(expires_at=expires_at)
        files.count(change, index)
        files.save(change, index)


def _resize(change: Change, index: File, *, added: Sequence[Block], removed: Sequence[Block]) -> None:
    seen = files.visible_at(change, removed)
    index.size += sum(block.size for block in added) - sum(block.size for block in seen)
    index.lines += sum(block.lines for block in added) - sum(block.lines for block in seen)
    index.sha256 = ""


def forget(change: Change, paths: Iterable[str]) -> None:
    """Take the rows of files that are gone out of their routers."""
    by_index: dict[str, list[str]] = {}
    for path in paths:
        if place := format.router_of(path):
            by_index.setdefault(place[0], []).append(place[1])
    for index_path, relatives in by_index.items():
        index = files.find(change, index_path)
        gone = list(_rows(index).filter(row_path__in=relatives)) if index else []
        if index and gone:
            _rows(index).filter(pk__in=[row.pk for row in gone]).update(removed_in=change.number)
            _resize(change, index, added=[], removed=gone)
            if index.next_expiry:
                files.count(change, index)
            files.save(change, index)


def carry(change: Change, moved: Sequence[tuple[str, str]]) -> None:
    """Let the rows of moved files move along, with what they say."""
    told = [_told(change, source, destination) for source, destination in moved]
    forget(change, [source for source, _ in moved])
    for each in told:
        mention(change, each)


def _told(change: Change, source: str, destination: str) -> Mention:
    place = format.router_of(source)
    index = files.find(change, place[0]) if place else None
    old = _rows(index).filter(row_path=place[1]).last() if place and index else None
    row = format.parse_row(old.text) if old else None
    if old is None or row is None:
        moved = statements.file_at(change.tree, destination)
        return described(change, moved) if moved else Mention(path=destination)
    return Mention(
        path=destination,
        description=row.description,
        tags=row.tags,
        on=date.fromisoformat(row.updated) if row.updated else None,
        expires_at=old.expires_at,
    )


def complete(change: Change, indexes: Sequence[File] | None = None) -> None:
    """Give every file that has none its row, in these routers or in all that there are."""
    if indexes is None:
        paths = [format.index_path(None), *(format.index_path(kind) for kind in format.MemoryKind)]
        indexes = list(File.objects.of(change.tree).standing(None).filter(path__in=paths))
    for index in indexes:
        have = set(_rows(index).values_list("row_path", flat=True))
        below = File.objects.of(change.tree).standing(None).under(index.parent).order_by("path")
        for file in below:
            place = format.router_of(file.path)
            if place and place[0] == index.path and place[1] not in have:
                _mention_in(change, index, None, place[1], described(change, file))


def described(change: Change, file: File) -> Mention:
    """What is known of a file from what it holds: its newest entry, or its first heading."""
    blocks = files.live_blocks(file).filter(expires_at__isnull=True)
    newest = blocks.entries().order_by(F("created").desc(), F("id").desc()).first()
    if newest is not None:
        tags = dict.fromkeys(
            tag for entry_tags in blocks.entries().values_list("tags", flat=True) for tag in entry_tags
        )
        return Mention(path=file.path, description=newest.summary, tags=list(tags), on=_day(newest.created))
    first = blocks.first()
    heading = format.first_heading(first.text) if first and first.raw is None else ""
    expires_at = files.last_expiry(change, file)
    return Mention(
        path=file.path, description=heading, on=file.modified_at.date(), expires_at=expires_at, of_all=True
    )


def _day(moment: datetime | None) -> date | None:
    return moment.date() if moment else None
