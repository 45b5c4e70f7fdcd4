"""What each revision touched, where files stood, and what they held: what all that tells of the past is made from.

Nothing of this is stored for its own sake. Rows say in which revision they came and went; a file is known by what
its blocks refer to (`File.content_id`), which stays the same when it moves.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields, replace
from functools import cached_property, reduce
from operator import attrgetter, or_
from typing import Final
from uuid import UUID

from django.contrib.postgres.fields import BigIntegerRangeField
from django.db.models import Aggregate, Func, Q
from django.db.models.functions import Coalesce
from psycopg.types.range import Range

from memsvc.contract.history import RevisionRead
from memsvc.format import BlockKind
from memsvc.tree.blocks import RENDERED
from memsvc.tree.models import Block, BlockQuerySet, File, Revision, Tree
from memsvc.tree.snapshot import Snapshot

EVERY_BLOCK: Final = Q()

# What of a block is looked at where it is compared, or brought back.
_HELD = (*RENDERED, "file_id", "added_in", "removed_in", "size", "entry_id", "row_path", "expires_at")


def touched(
    tree: Tree,
    numbers: Collection[int] | None,
    *,
    counting: Q = EVERY_BLOCK,
    only: Collection[UUID] | None = None,
) -> set[tuple[int, UUID]]:
    """The revisions with the files that they touched: which came, went or moved, or of which a block came, went or was
    superseded.

    Of all revisions without `numbers`, of some files with `only`; `counting` says which blocks count.
    """
    blocks, files = Block.objects.of(tree).filter(counting), File.objects.of(tree)
    if only is not None:
        blocks, files = blocks.filter(file_id__in=only), files.of_contents(only)
    content = Coalesce("former_of_id", "pk")
    came = files.filter(_within("added_in", numbers)).values_list("added_in", content)
    went = files.filter(_within("removed_in", numbers)).values_list("removed_in", content)
    of_blocks = [
        rows.values_list(column, "file_id") for column, rows in _touched_blocks(tree, blocks, numbers)
    ]
    return set(came.union(went, *of_blocks))


def touched_blocks(tree: Tree, numbers: Collection[int], *, counting: Q = EVERY_BLOCK) -> BlockQuerySet:
    """The blocks that came, went or were superseded in these revisions."""
    blocks = Block.objects.of(tree).filter(counting)
    first, *others = (rows.values("pk") for _, rows in _touched_blocks(tree, blocks, numbers))
    return Block.objects.of(tree).filter(pk__in=first.union(*others))


def _touched_blocks(
    tree: Tree, blocks: BlockQuerySet, numbers: Collection[int] | None
) -> Iterable[tuple[str, BlockQuerySet]]:
    """Those of `blocks` that revisions touched, by the column that says so."""
    superseded = blocks.filter(_within("superseded_in", numbers), kind="entry")
    if numbers is not None:
        # What was superseded is found by what superseded it: that column is in no index.
        added = Block.objects.of(tree).filter(_within("added_in", numbers))
        superseded = superseded.filter(entry_id__in=added.exclude(supersedes="").values("supersedes"))
    return (
        ("added_in", blocks.filter(_within("added_in", numbers))),
        ("removed_in", blocks.filter(_within("removed_in", numbers))),
        ("superseded_in", superseded),
    )


def _within(column: str, numbers: Collection[int] | None) -> Q:
    if numbers is None:
        return Q(**{f"{column}__isnull": False})
    if isinstance(numbers, range) and len(numbers) > 1:
        return Q(**{f"{column}__range": (numbers[0], numbers[-1])})
    return Q(**{f"{column}__in": numbers})


class Places:
    """Where files stood in the revisions that can be read, as one access sees it at one moment."""

    def __init__(self, now: Snapshot, ids: Collection[UUID]) -> None:
        self._now = now
        self._stays: dict[UUID, list[File]] = defaultdict(list)
        readable = File.objects.of(now.access.tree).alive_since(now.tree.history_from)
        for placement in readable.of_contents(ids):
            self._stays[placement.content_id].append(placement)

    def placements(self, file_id: UUID) -> Sequence[File]:
        """The paths of a file, each with its time; those out of sight too."""
        return self._stays.get(file_id, ())

    def is_live_at(self, file_id: UUID, number: int) -> bool:
        return any(placement.is_live_at(number) for placement in self.placements(file_id))

    def in_sight(self, file_id: UUID, number: int) -> str | None:
        """Where a file stood in a revision, if the access sees that path; all of it may be hidden."""
        placement = next(
            (placement for placement in self.placements(file_id) if placement.is_live_at(number)), None
        )
        return placement.path if placement is not None and self._now.access.sees(placement.path) else None

    def path(self, file_id: UUID, number: int) -> str | None:
        """Where a file stood in a revision; None where it did not, or nothing of it is to be seen."""
        shown, hidden = self._showing.get(file_id, ((), ()))
        if any(number in span for span in hidden) and not any(number in span for span in shown):
            return None
        return self.in_sight(file_id, number)

    def at(self, number: int) -> dict[UUID, str]:
        """The files that stood in a revision, and where."""
        return {file_id: path for file_id in self._stays if (path := self.path(file_id, number)) is not None}

    @cached_property
    def _showing(self) -> dict[UUID, tuple[Iterable[Range[int]], Iterable[Range[int]]]]:
        """When files that ever held a block that is hidden by now held one that shows, and one that does not."""
        blocks, visible = Block.objects.of(self._now.access.tree), self._now.visible
        hidden = set(
            blocks.filter(file_id__in=self._stays).exclude(visible).values_list("file_id", flat=True)
        )
        # Put together by the database, because a file may have had tens of thousands of blocks.
        rows = blocks.filter(file_id__in=hidden).values_list("file_id")
        spans = rows.annotate(shown=_Spans(filter=visible), hidden=_Spans(filter=~visible))
        return {file_id: (shown or (), hidden or ()) for file_id, shown, hidden in spans}


class _Spans(Aggregate):
    """The ranges of revisions in which any of some rows stood."""

    function = "range_agg"
    output_field = BigIntegerRangeField()

    def __init__(self, *, filter: Q) -> None:
        live = Func("added_in", "removed_in", function="int8range", output_field=BigIntegerRangeField())
        super().__init__(live, filter=filter)


def held(now: Snapshot, ids: Collection[UUID], *numbers: int) -> list[dict[UUID, list[Block]]]:
    """For each of these revisions: the blocks of files in order, as a reader sees them. Most blocks are in all."""
    blocks = Block.objects.of(now.access.tree).filter(now.visible, file_id__in=ids)
    in_any = reduce(or_, (blocks.live_at(number) for number in numbers))
    rows = list(in_any.only(*_HELD).order_by("position"))
    found: list[dict[UUID, list[Block]]] = []
    for number in numbers:
        by_file: dict[UUID, list[Block]] = defaultdict(list)
        for row in rows:
            if row.is_live_at(number):
                by_file[row.file_id].append(row)
        found.append(by_file)
    return found


def revisions_read(now: Snapshot, numbers: Collection[int]) -> dict[int, RevisionRead]:
    """Revisions by number, in that order."""
    rows = list(Revision.objects.of(now.access.tree).filter(number__in=numbers).order_by("number"))
    return dict(zip((row.number for row in rows), read_revisions(now, rows), strict=True))


# What is told of a revision has the names of the columns.
_TOLD = attrgetter(*(each.name for each in fields(RevisionRead)))


def read_revisions(now: Snapshot, rows: Sequence[Revision]) -> list[RevisionRead]:
    """What an access is told of revisions: their messages only where it sees every path that they touched.

    A message may be about each of these paths; the rows of indexes only follow from them. Of revisions up to the oldest
    that is kept they are no longer known.
    """
    read = [RevisionRead(*_TOLD(row)) for row in rows]
    if now.access.prefix == "/":
        return read
    told = {each.number for each in read if each.message and each.number > now.tree.history_from}
    found = touched(now.access.tree, told, counting=~Q(kind=BlockKind.ROW)) if told else set()
    stays: dict[UUID, list[File]] = defaultdict(list)
    for placement in File.objects.of(now.access.tree).of_contents({file_id for _, file_id in found}):
        stays[placement.content_id].append(placement)
    for number, file_id in found:
        # Where it stood in the revision, or until it.
        paths = [
            each.path
            for each in stays[file_id]
            if each.added_in <= number and (each.removed_in is None or each.removed_in >= number)
        ]
        if not paths or not all(map(now.access.sees, paths)):
            told.discard(number)
    return [each if each.number in told else replace(each, message="") for each in read]
