"""Who wrote each line of a file."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from uuid import UUID

from memsvc.contract.history import Blame, BlamedLine
from memsvc.format import canonical_path, text_lines
from memsvc.tree.access import Access
from memsvc.tree.blocks import content, rendered
from memsvc.tree.differences import carried
from memsvc.tree.files import decodes
from memsvc.tree.history.timeline import Places, revisions_read
from memsvc.tree.models import Block, BlockQuerySet, File
from memsvc.tree.snapshot import Snapshot, snapshot

_BLOCKS_AT_ONCE = 200

type _Marked = list[tuple[str, int]]


def blame(access: Access, path: str, *, revision: int | None = None) -> Blame:
    """For each line of a text file, the revision that last changed it, and the entry that it belongs to.

    Lines that are older than the file's coming into the access's folder are of the revision in which it came. Content
    that is no text has no lines. Raises `FileNotFound`, `RevisionNotFound` and `RevisionPruned`.
    """
    path = canonical_path(path)
    with snapshot(access, revision) as now:
        file, _ = now.file(path)
        rows = list(now.blocks_of(file))
        if not decodes(content(rows, revision)):
            return Blame(path, [], {})
        oldest = now.tree.history_from
        marks = {row.pk: _superseded(row, own, revision) for row, own in _marks(now, rows, oldest)}
        arrival = _arrival(now, file)
        lines = [
            (text, max(number, arrival), row.entry_id or None)
            for row in rows
            for text, number in marks[row.pk]
        ]
        numbers = {number for _, number, _ in lines}
        revisions = revisions_read(now, numbers)
    return Blame(path, list(_blamed(lines)), revisions)


def _blamed(lines: Sequence[tuple[str, int, str | None]]) -> Iterator[BlamedLine]:
    """The lines as `read_lines` counts them: a byte order mark that is a block of its own begins the line below."""
    number, mark = 0, ""
    for text, revision, entry_id in lines:
        if text == "\ufeff" and number == 0 and len(lines) > 1:
            mark = text
            continue
        number += 1
        yield BlamedLine(number, mark + text_lines(text)[0], revision, entry_id)
        mark = ""


def _arrival(now: Snapshot, file: File) -> int:
    """The revision in which a file came from where the access doesn't see it; 0 when it was always in sight.

    Where it came from before the oldest revision that is kept is not known, and counts as out of sight.
    """
    if now.access.prefix == "/":
        return 0
    placements = Places(now, {file.content_id}).placements(file.content_id)
    former = [
        placement
        for placement in placements
        if placement.removed_in is not None and placement.removed_in <= file.added_in
    ]
    known = {placement.removed_in for placement in former}
    came = [placement.removed_in or 0 for placement in former if not now.access.sees(placement.path)]
    came += [
        placement.added_in
        for placement in (file, *former)
        if placement.added_in > placement.created_in and placement.added_in not in known
    ]
    return max(came, default=0)


def line_revisions(now: Snapshot, file_id: UUID) -> dict[UUID, list[int]]:
    """Of the blocks of a file that stand in the moment's revision: those with older lines, and each line's revision.

    This is what `blame` has to know of them once all that was removed by then is gone.
    """
    blocks = Block.objects.of(now.access.tree).filter(file_id=file_id)
    # Only what came where something went can have lines from before.
    replaced = blocks.filter(removed_in__lte=now.revision).values("removed_in")
    rows = list(blocks.live_at(now.revision).filter(added_in__in=replaced).order_by("position"))
    found = {row.pk: [number for _, number in own] for row, own in _marks(now, rows, now.tree.history_from)}
    return {row.pk: found[row.pk] for row in rows if any(number != row.added_in for number in found[row.pk])}


def _marks(now: Snapshot, rows: Sequence[Block], oldest: int) -> Iterator[tuple[Block, _Marked]]:
    """Each of these blocks of a file with its lines and their revisions, as they were when it came.

    The file's changes are gone through from the oldest revision that is kept: blocks from before know their lines'.
    """
    if not rows:
        return
    wanted = {row.pk for row in rows}
    blocks = Block.objects.of(now.access.tree).alive_since(oldest).filter(file_id=rows[0].file_id)
    ancestors = _ancestors(blocks, rows)
    marks: dict[UUID, _Marked] = {}
    closed: dict[int, list[Block]] = defaultdict(list)
    for row in ancestors:
        if row.removed_in is not None:
            closed[row.removed_in].append(row)
    needed = blocks.filter(pk__in=[row.pk for row in ancestors]).order_by("added_in", "position")
    streamed = needed.iterator(chunk_size=_BLOCKS_AT_ONCE)
    for number, group in groupby(streamed, key=lambda block: block.added_in):
        added = list(group)
        before = [line for row in closed.pop(number, []) for line in marks.pop(row.pk, [])]
        lines = [_lines(row, row.added_in) for row in added]
        known = carried(before, [line for each in lines for line in each], number)
        for row, each in zip(added, lines, strict=True):
            own, known = known[: len(each)], known[len(each) :]
            if number <= oldest and row.line_revisions is not None:
                own = list(zip(each, row.line_revisions, strict=True))
            marks[row.pk] = _superseded(row, own, now.revision)
            if row.pk in wanted:
                yield row, own


def _ancestors(blocks: BlockQuerySet, rows: Sequence[Block]) -> list[Block]:
    """These blocks, and all that were replaced where they, or others of these, came; without their text."""
    bare = list(blocks.only("pk", "position", "added_in", "removed_in").order_by("position"))
    ended: dict[int, list[Block]] = defaultdict(list)
    begun: dict[int, list[Block]] = defaultdict(list)
    for block in bare:
        begun[block.added_in].append(block)
        if block.removed_in is not None:
            ended[block.removed_in].append(block)
    numbers, seen = {row.added_in for row in rows}, set[int]()
    while numbers:
        seen |= numbers
        numbers = {block.added_in for number in numbers for block in ended[number]} - seen
    return [block for block in bare if block.added_in in seen]


def _lines(row: Block, revision: int) -> list[str]:
    return text_lines(rendered(row, revision).decode(errors="replace"), ends=True)


def _superseded(row: Block, lines: _Marked, revision: int | None) -> _Marked:
    """With the line that says that an entry is superseded, where it was while the block stood."""
    number = row.superseded_in
    if number is None or (revision is not None and number > revision):
        return lines
    return carried(lines, _lines(row, number), number)
