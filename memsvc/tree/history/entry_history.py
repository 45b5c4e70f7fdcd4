"""How an entry came to be what it is."""

from collections.abc import Iterator, Sequence

from django.db import connection

from memsvc.contract.history import EntryVersion
from memsvc.tree.access import Access
from memsvc.tree.blocks import entry_of, rendered
from memsvc.tree.errors import EntryNotFound
from memsvc.tree.history.timeline import Places, revisions_read
from memsvc.tree.models import Block
from memsvc.tree.snapshot import Snapshot, snapshot


def entry_history(access: Access, entry_id: str) -> list[EntryVersion]:
    """The states of an entry and of those that it superseded, directly or not, oldest first.

    Each is what `get_entry` answers from that revision on; what an entry was in the oldest revision that is kept is one
    state, "kept". Raises `EntryNotFound` where no revision that the access sees has an entry with this id.
    """
    with snapshot(access) as now:
        oldest = now.tree.history_from
        states = [
            state
            for each in reversed(_lineage(now, entry_id, oldest))
            for state in _from_oldest([*_states(now, each, oldest)], oldest)
        ]
        if not any(block.entry_id == entry_id for _, _, _, block in states):
            raise EntryNotFound(entry_id)
        states.sort(key=lambda state: (state[0], state[1] == "superseded"))
        revisions = revisions_read(now, {number for number, _, _, _ in states})
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


def _lineage(now: Snapshot, entry_id: str, oldest: int) -> list[str]:
    """An entry's id, and those of all that it superseded, each behind what superseded it."""
    if "\0" in entry_id:
        raise EntryNotFound(entry_id)
    tree = now.access.tree
    with connection.cursor() as cursor:
        cursor.execute(_LINEAGE, [entry_id, tree.tenant_id, tree.pk, oldest])
        return [found for (found,) in cursor.fetchall()]


type _State = tuple[int, str, str, Block]


def _from_oldest(states: Sequence[_State], oldest: int) -> list[_State]:
    """All up to the oldest revision that is kept as one: how that came about may be gone."""
    earlier = [(number, "kept", path, block) for number, _, path, block in states if number <= oldest]
    return [*earlier[-1:], *(state for state in states if state[0] > oldest)]


def _states(now: Snapshot, entry_id: str, oldest: int) -> Iterator[_State]:
    """Each revision in which an entry came, went, moved, or became another, by what is held since the oldest."""
    held = Block.objects.of(now.access.tree).alive_since(oldest)
    named = held.entries().filter(now.visible, entry_id=entry_id)
    blocks = list(named.order_by("position"))
    ids = {block.file_id for block in blocks}
    places = Places(now, ids)
    numbers = {n for block in blocks for n in (block.added_in, block.removed_in, block.superseded_in) if n}
    # Of a file's comings and goings only those count in which the entry was there: the others change nothing.
    numbers |= {
        n
        for each in ids
        for placement in places.placements(each)
        for n in (placement.added_in, placement.removed_in)
        if n
    }
    before: tuple[str, Block, int] | None = None
    for number in sorted(numbers):
        found = first_standing(blocks, places, number)
        if before is None and found is not None:
            yield number, "added", *found
        elif before is not None and found is None:
            yield number, "removed", before[0], before[1]
        elif before is not None and found is not None and (action := _action(before, found, number)):
            yield number, action, *found
        before = (*found, number) if found else None


def first_standing(blocks: Sequence[Block], places: Places, number: int) -> tuple[str, Block] | None:
    """The entry in a revision: of several with one id, the first in path order has it."""
    found = [
        (path, block)
        for block in blocks
        if block.is_live_at(number) and (path := places.in_sight(block.file_id, number)) is not None
    ]
    return min(found, key=lambda place: (place[0], place[1].position), default=None)


def _action(before: tuple[str, Block, int], found: tuple[str, Block], number: int) -> str:
    path, block = found
    was_path, was, earlier = before
    if entry_of(block, number).superseded_by and not entry_of(was, earlier).superseded_by:
        return "superseded"
    if rendered(block, number).strip() != rendered(was, earlier).strip():
        return "changed"
    return "moved" if path != was_path else ""
