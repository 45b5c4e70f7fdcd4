"""Where what stands in a tree comes from: who wrote each line, and how an entry came to be what it is."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from uuid import UUID

from django.db import connection
from django.db.models import Q

from memsvc.contract.history import Blame, BlamedLine, EntryVersion, RevisionRead
from memsvc.format import canonical_path, text_lines
from memsvc.tree.access import Access
from memsvc.tree.blocks import content, entry_of, rendered
from memsvc.tree.errors import EntryNotFound
from memsvc.tree.files import decodes
from memsvc.tree.lines import carried
from memsvc.tree.models import Block, BlockQuerySet, File
from memsvc.tree.reads.history import read_revision, revisions_of
from memsvc.tree.reads.moment import Moment, moment

_BLOCKS_AT_ONCE = 200

type _Marked = list[tuple[str, int]]


def blame(access: Access, path: str, *, revision: int | None = None) -> Blame:
    """For each line of a text file, the revision that last changed it, and the entry that it belongs to.

    Lines that are older than the file's coming into the access's folder are of the revision in which it came. Content
    that is no text has no lines. Raises `FileNotFound`, `RevisionNotFound` and `RevisionPruned`.
    """
    path = canonical_path(path)
    with moment(access, revision) as now:
        file, _ = now.file(path)
        rows = list(now.blocks_of(file))
        if not decodes(content(rows, revision)):
            return Blame(path, [], {})
        oldest = now.tree.history_from
        marks = {row.pk: _superseded(row, own, revision) for row, own in _marks(now, rows, oldest)}
        arrival = _arrival(now, file, oldest)
        lines = [
            (text, max(number, arrival), row.entry_id or None)
            for row in rows
            for text, number in marks[row.pk]
        ]
        numbers = {number for _, number, _ in lines}
        revisions = _revisions(now, numbers)
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


def _revisions(now: Moment, numbers: set[int]) -> dict[int, RevisionRead]:
    rows = revisions_of(now).filter(number__in=numbers).order_by("number")
    return {row.number: read_revision(row) for row in rows}


def _arrival(now: Moment, file: File, oldest: int) -> int:
    """The revision in which a file came from where the access doesn't see it; 0 when it was always in sight.

    Where it came from before the oldest revision that is kept is not known, and counts as out of sight.
    """
    if now.access.prefix == "/":
        return 0
    rows = File.objects.of(now.access.tree).held_since(oldest)
    former = list(rows.filter(former_of=file.content_id, removed_in__lte=file.added_in))
    known = {stay.removed_in for stay in former}
    came = [stay.removed_in or 0 for stay in former if not now.access.sees(stay.path)]
    came += [
        stay.added_in
        for stay in (file, *former)
        if stay.added_in > stay.created_in and stay.added_in not in known
    ]
    return max(came, default=0)


def line_revisions(now: Moment, file_id: UUID) -> dict[UUID, list[int]]:
    """Of the blocks of a file that stand in the moment's revision: those with older lines, and each line's revision.

    This is what `blame` has to know of them once all that was removed by then is gone.
    """
    blocks = Block.objects.of(now.access.tree).filter(file_id=file_id)
    # Only what came where something went can have lines from before.
    replaced = blocks.filter(removed_in__lte=now.revision).values("removed_in")
    rows = list(blocks.standing(now.revision).filter(added_in__in=replaced).order_by("position"))
    found = {row.pk: [number for _, number in own] for row, own in _marks(now, rows, now.tree.history_from)}
    return {row.pk: found[row.pk] for row in rows if any(number != row.added_in for number in found[row.pk])}


def _marks(now: Moment, rows: Sequence[Block], oldest: int) -> Iterator[tuple[Block, _Marked]]:
    """Each of these blocks of a file with its lines and their revisions, as they were when it came.

    The file's changes are gone through from the oldest revision that is kept: blocks from before know their lines'.
    """
    if not rows:
        return
    wanted = {row.pk for row in rows}
    blocks = Block.objects.of(now.access.tree).held_since(oldest).filter(file_id=rows[0].file_id)
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
    """With the line that retires an entry, where it was retired while the block stood."""
    number = row.superseded_in
    if number is None or (revision is not None and number > revision):
        return lines
    return carried(lines, _lines(row, number), number)


def entry_history(access: Access, entry_id: str) -> list[EntryVersion]:
    """The states of an entry and of those that it superseded, directly or not, oldest first.

    Each is what `get_entry` answers from that revision on; what an entry was in the oldest revision that is kept is one
    state, "kept". Raises `EntryNotFound` where no revision that the access sees has an entry with this id.
    """
    with moment(access) as now:
        oldest = now.tree.history_from
        states = [
            state
            for each in reversed(_lineage(now, entry_id, oldest))
            for state in _from_oldest(_states(now, each, oldest), oldest)
        ]
        if not any(block.entry_id == entry_id for _, _, _, block in states):
            raise EntryNotFound(entry_id)
        states.sort(key=lambda state: (state[0], state[1] == "superseded"))
        revisions = _revisions(now, {number for number, _, _, _ in states})
        return [
            EntryVersion(revisions[number], action, path, entry_of(block, number), block.metadata)
            for number, action, path, block in states
        ]


_LINEAGE = """
WITH RECURSIVE lineage (entry_id) AS (
    SELECT %s::text
    UNION
    SELECT b.supersedes FROM lineage
    JOIN tree_block b ON b.entry_id = lineage.entry_id COLLATE "C"
    WHERE b.tenant_id = %s AND b.tree_id = %s AND b.kind = 'entry' AND b.supersedes != ''
      AND (b.removed_in IS NULL OR b.removed_in > %s)
)
SELECT entry_id FROM lineage
"""


def _lineage(now: Moment, entry_id: str, oldest: int) -> list[str]:
    """An entry's id, and those of all that it superseded, each behind what superseded it."""
    if "\0" in entry_id:
        raise EntryNotFound(entry_id)
    tree = now.access.tree
    with connection.cursor() as cursor:
        cursor.execute(_LINEAGE, [entry_id, tree.tenant_id, tree.pk, oldest])
        return [found for (found,) in cursor.fetchall()]


type _State = tuple[int, str, str, Block]


def _from_oldest(states: Iterable[_State], oldest: int) -> Iterator[_State]:
    """All up to the oldest revision that is kept as one: how that came about may be gone."""
    earlier: _State | None = None
    for state in states:
        if state[0] <= oldest:
            earlier = (state[0], "kept", *state[2:])
            continue
        if earlier is not None:
            yield earlier
            earlier = None
        yield state
    if earlier is not None:
        yield earlier


def _states(now: Moment, entry_id: str, oldest: int) -> Iterator[_State]:
    """Each revision in which an entry came, went, moved, or became another, by what is held since the oldest."""
    held = Block.objects.of(now.access.tree).held_since(oldest)
    named = held.entries().filter(now.visible, entry_id=entry_id)
    blocks = list(named.order_by("position"))
    stays = _stays(now, {block.file_id for block in blocks}, oldest)
    numbers = {n for block in blocks for n in (block.added_in, block.removed_in, block.superseded_in) if n}
    # Of a file's comings and goings only those count in which the entry was there: the others change nothing.
    numbers |= {n for each in stays.values() for stay in each for n in (stay.added_in, stay.removed_in) if n}
    before: tuple[str, Block, int] | None = None
    for number in sorted(numbers):
        found = _standing(blocks, stays, number)
        if before is None and found is not None:
            yield number, "added", *found
        elif before is not None and found is None:
            yield number, "removed", before[0], before[1]
        elif before is not None and found is not None and (action := _action(before, found, number)):
            yield number, action, *found
        before = (*found, number) if found else None


def _stays(now: Moment, ids: set[UUID], oldest: int) -> dict[UUID, list[File]]:
    """Where each file stood, from when to when, as far as the access sees it."""
    held = File.objects.of(now.access.tree).held_since(oldest)
    rows = held.filter(Q(pk__in=ids) | Q(former_of__in=ids))
    stays: dict[UUID, list[File]] = defaultdict(list)
    for row in rows:
        if now.access.sees(row.path):
            stays[row.content_id].append(row)
    return stays


def _standing(
    blocks: Sequence[Block], stays: dict[UUID, list[File]], number: int
) -> tuple[str, Block] | None:
    """The entry in a revision: of several with one id, the first in path order has it."""
    found = [
        (stay.path, block)
        for block in blocks
        if _stands(block, number)
        for stay in stays.get(block.file_id, [])
        if _stands(stay, number)
    ]
    return min(found, key=lambda place: (place[0], place[1].position), default=None)


def _stands(row: Block | File, number: int) -> bool:
    return row.added_in <= number and (row.removed_in is None or row.removed_in > number)


def _action(before: tuple[str, Block, int], found: tuple[str, Block], number: int) -> str:
    path, block = found
    was_path, was, earlier = before
    if entry_of(block, number).superseded_by and not entry_of(was, earlier).superseded_by:
        return "superseded"
    if rendered(block, number).strip() != rendered(was, earlier).strip():
        return "changed"
    return "moved" if path != was_path else ""
