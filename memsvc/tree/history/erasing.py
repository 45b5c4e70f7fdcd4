"""What is to be erased of a tree, and how rows lose it: the parts of `memsvc.tree.erasure`.

Rows of what goes are emptied, as those of a redacted version are. Rows of others that name what goes are written
without it. An entry's id becomes the word `erased` wherever it stood, so that what it superseded stays superseded.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import batched
from typing import Final
from uuid import UUID

from django.db.models import Q

from memsvc.format import SCAFFOLD, BlockKind, IndexRow, cut_file, parse_row, superseded
from memsvc.format import Block as CutBlock
from memsvc.tree.blocks import is_spliced, legible, rendered, row_of, stored
from memsvc.tree.history.redaction import emptied
from memsvc.tree.models import Block, BlockQuerySet, File, Tree
from memsvc.tree.router import LOOKED_AT, described_from, place_of, quoted
from memsvc.tree.statements import live_entry
from memsvc.tree.visibility import FOR_GOOD, active, visible

ERASED: Final = "erased"
# Ids that one statement looks for.
_IDS_AT_ONCE: Final = 50
_ROWS_AT_ONCE: Final = 500
# An id of our making is told from other words wherever it stands; any other one only where an id belongs.
_OUR_ID: Final = re.compile(r"mem_\d{4}-\d{2}-\d{2}_[0-9a-f]{4,}")


@dataclass(frozen=True)
class Target:
    """What goes: whole `files` (by what their blocks refer to), single `rows` with all that they hold, and of free text
    in a file the `lines` that are named for it. `numbers` are the revisions whose messages may tell of it.

    Where a live row has bytes `instead`, it goes back to what it was before. `ids` are those of entries of which no row
    stays.
    """

    tree: Tree
    files: set[UUID] = field(default_factory=set)
    rows: dict[UUID, Block] = field(default_factory=dict)
    lines: dict[UUID, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    instead: dict[UUID, bytes] = field(default_factory=dict)
    numbers: set[int] = field(default_factory=set)

    @cached_property
    def ids(self) -> frozenset[str]:
        named = {row.entry_id for row in self.rows.values() if row.entry_id}
        stay = Block.objects.of(self.tree).entries().filter(entry_id__in=named).exclude(pk__in=self.rows)
        return frozenset(named.difference(stay.values_list("entry_id", flat=True)))

    @cached_property
    def touched_files(self) -> set[UUID]:
        """The files of which something goes."""
        return self.files.union((row.file_id for row in self.rows.values()), self.lines)

    @cached_property
    def names(self) -> "Names":
        return Names(self.ids)

    @property
    def is_empty(self) -> bool:
        return not (self.files or self.rows or self.lines or self.numbers)

    def take(self, rows: Iterable[Block]) -> None:
        self.rows.update((row.pk, row) for row in rows)

    def remains_of(self, row: Block, data: bytes) -> bytes:
        """What bytes of a row are without that which goes."""
        if row.pk in self.rows:
            return self.names.taken_out(self.instead.get(row.pk, b""))
        lines = self.lines.get(row.file_id)
        if lines and row.kind in (BlockKind.TEXT, BlockKind.OPAQUE):
            data = b"".join(line for line in data.splitlines(keepends=True) if line.strip() not in lines)
        return self.names.taken_out(data)


@dataclass(frozen=True)
class Names:
    """The ids of entries, as they are found in rows, in bytes and in messages."""

    ids: frozenset[str]

    @cached_property
    def _patterns(self) -> Sequence[tuple[re.Pattern[bytes], bytes]]:
        """What an id is found by in bytes, and what is put in its place."""
        ours = {each for each in self.ids if _OUR_ID.fullmatch(each)}
        anywhere, in_place = (
            rb"(?<![\w-])(?:%s)(?![\w-])",
            rb"(?m)^(supersede(?:s|d_by):[ \t]*)[\"']?(?:%s)[\"']?([ \t\r]*)$",
        )
        erased = ERASED.encode()
        return [
            (re.compile(pattern % _any_of(some)), put)
            for ids, pattern, put in (
                (ours, anywhere, erased),
                (self.ids - ours, in_place, rb"\1" + erased + rb"\2"),
            )
            for some in batched(sorted(ids), _ROWS_AT_ONCE, strict=False)
        ]

    def taken_out(self, data: bytes) -> bytes:
        for pattern, put in self._patterns:
            data = pattern.sub(put, data)
        return data

    def rows_with(self, rows: BlockQuerySet) -> Iterator[Block]:
        """Those of some rows that name one of them anywhere."""
        seen: set[UUID] = set()
        for some in batched(sorted(self.ids), _IDS_AT_ONCE, strict=False):
            named = Q(supersedes__in=some) | Q(superseded_by__in=some)
            for each in some:
                named |= Q(head__contains=each) | Q(text__contains=each)
            for row in rows.filter(named):
                if row.pk not in seen:
                    seen.add(row.pk)
                    yield row


def _any_of(ids: Iterable[str]) -> bytes:
    return b"|".join(re.escape(each.encode()) for each in ids)


def take_files(target: Target, files: Iterable[File]) -> None:
    """Let whole files go, by the rows that their blocks refer to."""
    target.files.update(file.pk for file in files)
    target.take(Block.objects.of(target.tree).filter(file_id__in=target.files))
    placements = File.objects.of(target.tree).of_contents(target.files)
    for added, removed in placements.values_list("added_in", "removed_in"):
        target.numbers.update(filter(None, (added, removed)))


def take_entries(target: Target, ids: Collection[str]) -> None:
    """Let entries go in every state that they ever had, wherever they stood."""
    every = Block.objects.of(target.tree)
    target.take(every.entries().filter(entry_id__in=ids))
    # What somebody made of them by hand: blocks that are no entries any more, and text in files that hold none.
    broken = Names(frozenset(ids)).rows_with(every.exclude(kind=BlockKind.ENTRY))
    own = re.compile(rb"(?m)^[ \t]*id:[ \t]*[\"']?(?:%s)[\"']?[ \t\r]*$" % _any_of(ids))
    said = {line for row in target.rows.values() for line in _lines(rendered(row))}
    for row in broken:
        if not own.search(rendered(row)):
            continue
        if row.kind == BlockKind.OPAQUE:
            target.take([row])
        elif row.kind == BlockKind.TEXT:
            target.lines[row.file_id] |= said


def take_introduced(target: Target, numbers: Collection[int]) -> None:
    """Let go what came in some revisions: entries in all their states, of others those that were written there, and
    lines of text that had not stood in their file before.
    """
    target.numbers.update(numbers)
    every = Block.objects.of(target.tree).exclude(kind=BlockKind.ROW)
    came = list(every.filter(added_in__in=numbers, size__gt=0))
    first: dict[str, int] = {}
    named = {row.entry_id for row in came if row.entry_id}
    for entry_id, number in every.entries().filter(entry_id__in=named).values_list("entry_id", "added_in"):
        first[entry_id] = min(number, first.get(entry_id, number))
    take_entries(target, {entry_id for entry_id, number in first.items() if number in numbers})
    for file_id in {row.file_id for row in came}:
        # What was deleted and brought back is another file at the same path.
        files = File.objects.of(target.tree)
        paths = {file.path for file in files.of_contents([file_id])}
        same = {file.content_id for file in files.filter(path__in=paths)}
        usual = set[bytes]().union(*(_lines(SCAFFOLD[path].encode()) for path in paths if path in SCAFFOLD))
        lines = _take_changes(target, list(every.filter(file_id__in=same)), file_id, numbers) - usual
        if lines:
            for each in same:
                target.lines[each] |= lines


def _take_changes(
    target: Target, rows: Sequence[Block], file_id: UUID, numbers: Collection[int]
) -> set[bytes]:
    """Of one file: take the states of entries of others that came in some revisions. The answer are the lines that did.

    `rows` are those of all files that have stood where it did.
    """
    lines, stood = set[bytes](), set[bytes]()
    states: dict[str, list[Block]] = defaultdict(list)
    # Of each entry: what its states that go brought, and later ones of others may still have.
    brought: dict[str, set[bytes]] = defaultdict(set)
    for row in sorted(rows, key=lambda row: (row.added_in, row.added_in in numbers)):
        if row.pk in target.rows:
            continue
        is_text = row.kind != BlockKind.ENTRY and row.raw is None
        came = row.added_in in numbers and row.file_id == file_id
        if is_text and came:
            lines |= _lines(rendered(row)) - stood
            continue
        before = [each for each in states[row.entry_id] if each.kind == row.kind]
        if came and not any(_own(each) == _own(row) for each in before):
            known = set[bytes]().union(*(_lines(_own(each)) for each in before))
            brought[row.entry_id] |= _lines(_own(row)) - known
        elif is_text or brought[row.entry_id].isdisjoint(_lines(_own(row))):
            if row.added_in not in numbers:
                stood |= _lines(rendered(row))
                states[row.entry_id].append(row)
            continue
        target.take([row])
        if before and row.removed_in is None and row.kind == BlockKind.ENTRY:
            stands = rendered(row)
            data = _own(before[-1])
            gap = stands[: len(stands) - len(stands.lstrip(b"\r\n"))]
            target.instead[row.pk] = gap + (
                superseded(data, row.superseded_by) if row.superseded_by else data
            )
    return lines


def _own(row: Block) -> bytes:
    """What a row holds, whatever stands around it and was said of it since."""
    return stored(row).strip(b"\r\n") + b"\n"


def _lines(data: bytes) -> set[bytes]:
    """The lines of an entry, or of a text, that say something."""
    return {line.strip() for line in data.splitlines()} - {b"", b"---"}


def note_numbers(target: Target) -> None:
    """Remember the revisions in which what goes came, went or was superseded."""
    for row in target.rows.values():
        target.numbers.update(filter(None, (row.added_in, row.removed_in, row.superseded_in)))


def rewritten(row: Block, path: str, target: Target) -> Block:
    """A closed row as it stays: what it held without that which goes. What can't stand so is emptied."""
    data = target.remains_of(row, stored(row))
    was_gone = row.superseded_by in target.ids
    if not data or row.kind == BlockKind.ROW:
        return without_ids(emptied(row), target)
    cut = [CutBlock(BlockKind(row.kind), data)]
    if row.kind == BlockKind.ENTRY:
        cut = cut_file(path, data)
    if [block.kind for block in cut] != [row.kind]:
        return without_ids(emptied(row), target)
    file = File(pk=row.file_id, tenant_id=row.tenant_id, tree_id=row.tree_id)
    new = row_of(cut[0], file, position=row.position, revision=row.added_in)
    new.removed_in, new.expires_at, new.duplicate = row.removed_in, row.expires_at, row.duplicate
    new.superseded_in, new.line_revisions = row.superseded_in, row.line_revisions
    new.first_in, new.changed_in = row.first_in, row.changed_in
    if row.kind == BlockKind.ENTRY:
        new.created, new.claimed = row.created, row.claimed
    if row.kind == BlockKind.OPAQUE:
        # Why it is no entry may quote it.
        new.head, new.text, new.reason = legible(data), "", ERASED
    if is_spliced(row):
        new.superseded_by = ERASED if was_gone else row.superseded_by
        new.spliced = row.spliced - (len(row.superseded_by.encode()) - len(new.superseded_by.encode()))
    if row.kind != BlockKind.ENTRY:
        new.supersedes = row.supersedes
    return without_ids(new, target)


def without_ids(row: Block, target: Target) -> Block:
    """A row that doesn't say what it superseded, where that goes."""
    if row.supersedes in target.ids:
        row.supersedes = "" if row.is_redacted else ERASED
    return row


def index_rows(target: Target) -> list[tuple[Block, Block]]:
    """Closed rows of indexes that tell what goes, with what they say instead.

    Those of files that go all are emptied. Others say what they would have said without the entries that they quote.
    """
    tree = target.tree
    found: dict[UUID, tuple[Block, Block]] = {}
    for file_id in target.touched_files:
        said, tags = _said(target, file_id)
        for placement in File.objects.of(tree).of_contents([file_id]):
            for row in rows_about(tree, placement.path).filter(removed_in__gt=placement.added_in, size__gt=0):
                told = parse_row(row.text)
                goes = file_id in target.files and row.added_in < (placement.removed_in or row.added_in + 1)
                if goes or told is None:
                    found[row.pk] = (row, emptied(row))
                elif told.description in said or tags.intersection(told.tags):
                    found[row.pk] = (row, _told_anew(target, row, told, placement, said, tags))
    return [*found.values()]


def rows_about(tree: Tree, path: str) -> BlockQuerySet:
    """The rows of indexes, of all revisions, that are about the file at a path."""
    every = Block.objects.of(tree)
    place = place_of(path)
    if place is None:
        return every.none()
    indexes = {index.content_id for index in File.objects.of(tree).filter(path=place[0])}
    return every.filter(file_id__in=indexes, kind=BlockKind.ROW, row_path=place[1])


def _told_anew(
    target: Target, row: Block, told: IndexRow, placement: File, said: set[str], tags: set[str]
) -> Block:
    """A row of an index as it would have been without what went."""
    then = Block.objects.of(target.tree).live_at(row.added_in).entries().exclude(pk__in=target.rows)
    stood = then.filter(active(row.added_in), visible(FOR_GOOD), file_id=placement.content_id)
    lasting = [live_entry(each) for each in stood.order_by("-position")[:LOOKED_AT]]
    description = described_from(placement, lasting, "").description
    kept = replace(
        told,
        description=description if told.description in said else told.description,
        tags=tuple(tag for tag in told.tags if tag not in tags),
    )
    line_end = row.text[len(row.text.rstrip("\r\n")) :]
    file = File(pk=row.file_id, tenant_id=row.tenant_id, tree_id=row.tree_id)
    cut = CutBlock(BlockKind.ROW, (kept.to_row() + line_end).encode())
    new = row_of(cut, file, position=row.position, revision=row.added_in)
    new.removed_in, new.expires_at, new.line_revisions = row.removed_in, row.expires_at, row.line_revisions
    new.source, new.tags = row.source, [tag for tag in row.tags if tag not in tags]
    return new


def _said(target: Target, file_id: UUID) -> tuple[set[str], set[str]]:
    """How an index would quote the entries of a file that go, and their tags that none has which stays."""
    rows = [row for row in target.rows.values() if row.file_id == file_id and row.kind == BlockKind.ENTRY]
    said = {quoted(live_entry(row))[0] for row in rows}
    tags = {tag for row in rows for tag in row.tags}
    if tags:
        every = Block.objects.of(target.tree).entries().filter(file_id=file_id, tags__overlap=list(tags))
        stay = every.exclude(pk__in=target.rows).values_list("tags", flat=True)
        tags -= {tag for each in stay for tag in each}
    return said - {""}, tags


def quotes_still(target: Target, file_id: UUID, told: str) -> bool:
    """Whether a row of an index, as text, goes on telling what goes of a file."""
    said, tags = _said(target, file_id)
    row = parse_row(told)
    return row is not None and (row.description in said or bool(tags.intersection(row.tags)))
