"""A tree's history from its first revision on, or the oldest that is kept, as what each revision made of the files."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import batched, groupby
from uuid import UUID

from django.db.models import Q

from memsvc.contract.history import RevisionRead
from memsvc.tree.access import Access
from memsvc.tree.blocks import content
from memsvc.tree.models import Block, File, Revision
from memsvc.tree.reads.history import read_revision
from memsvc.tree.reads.moment import Moment, moment

# Looking up what was touched goes through the whole tree, so it is done for many revisions at once.
_REVISIONS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Step:
    """One revision: the paths at which nothing stands after it, and the files that it made or changed.

    Both name what the access sees; a file may be among `written` although its bytes are what they were.
    """

    revision: RevisionRead
    gone: list[str]
    written: list[tuple[str, bytes]]


@contextmanager
def replay(access: Access, *, revision: int | None = None) -> Iterator[Iterator[Step]]:
    """Every revision up to `revision`, oldest first, from one moment of the tree. Hidden blocks show in none.

    Where history begins with a later revision than the first, that one comes with all files. Raises
    `RevisionNotFound` and `RevisionPruned`.
    """
    with moment(access, revision) as now:
        yield _steps(now)


def _steps(now: Moment) -> Iterator[Step]:
    tree = now.access.tree
    revisions = Revision.objects.filter(tenant_id=tree.tenant_id, tree_id=tree.pk).order_by("number")
    oldest = now.tree.history_from
    if oldest:
        yield _beginning(now, revisions.get(number=oldest))
        revisions = revisions.filter(number__gt=oldest)
    if now.revision is not None:
        revisions = revisions.filter(number__lte=now.revision)
    for some in batched(revisions.iterator(chunk_size=_REVISIONS_AT_ONCE), _REVISIONS_AT_ONCE):
        touched = _touched(now, some[0].number, some[-1].number)
        for row in some:
            yield _step(now, row, touched[row.number])


def _beginning(now: Moment, row: Revision) -> Step:
    """All that the oldest revision holds."""
    files = File.objects.of(now.access.tree).standing(row.number)
    seen = [file for file in files if now.access.sees(file.path)]
    return Step(revision=read_revision(row), gone=[], written=_contents(now, row.number, seen))


def _touched(now: Moment, first: int, last: int) -> dict[int, set[UUID]]:
    """By revision: the files, by what their blocks refer to, of which anything came, went or changed."""
    touched: dict[int, set[UUID]] = defaultdict(set)
    span = (first, last)
    blocks = Block.objects.of(now.access.tree).filter(
        Q(added_in__range=span) | Q(removed_in__range=span) | Q(superseded_in__range=span)
    )
    columns = ("added_in", "removed_in", "superseded_in")
    for file_id, *numbers in blocks.values_list("file_id", *columns).iterator():
        for number in numbers:
            if number is not None and first <= number <= last:
                touched[number].add(file_id)
    files = File.objects.of(now.access.tree).filter(Q(added_in__range=span) | Q(removed_in__range=span))
    for file in files.iterator():
        for number in (file.added_in, file.removed_in):
            if number is not None and first <= number <= last:
                touched[number].add(file.content_id)
    return touched


def _step(now: Moment, row: Revision, ids: set[UUID]) -> Step:
    files = File.objects.of(now.access.tree).filter(Q(pk__in=ids, former_of=None) | Q(former_of__in=ids))
    stays = [file for file in files if now.access.sees(file.path)] if ids else []
    contents = _contents(now, row.number, [stay for stay in stays if _stands(stay, row.number)])
    before = {stay.path for stay in stays if _stands(stay, row.number - 1)}
    return Step(
        revision=read_revision(row),
        gone=sorted(before - {path for path, _ in contents}),
        written=contents,
    )


def _contents(now: Moment, number: int, files: Sequence[File]) -> list[tuple[str, bytes]]:
    """Files as they were in a revision, by path; one of which everything is hidden is left out."""
    blocks = Block.objects.of(now.access.tree).standing(number)
    rows = blocks.filter(file_id__in=[file.content_id for file in files]).order_by("file_id", "position")
    found = {file_id: list(some) for file_id, some in groupby(rows, key=lambda block: block.file_id)}
    contents = []
    for file in sorted(files, key=lambda file: file.path):
        standing = found.get(file.content_id, [])
        shown = [block for block in standing if now.shows(block)]
        if shown or not standing:
            contents.append((file.path, content(shown, number)))
    return contents


def _stands(row: File, number: int) -> bool:
    return row.added_in <= number and (row.removed_in is None or row.removed_in > number)
