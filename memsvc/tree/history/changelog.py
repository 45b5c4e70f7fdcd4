"""A tree's history from its first revision on, or the oldest that is kept, as what each revision made of the files."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import batched
from uuid import UUID

from memsvc.contract.history import RevisionRead
from memsvc.tree.access import Access
from memsvc.tree.blocks import content
from memsvc.tree.history.timeline import Places, held, read_revisions, touched
from memsvc.tree.models import File, Revision
from memsvc.tree.snapshot import Snapshot, snapshot

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
def changelog(access: Access, *, revision: int | None = None) -> Iterator[Iterator[Step]]:
    """Every revision up to `revision`, oldest first, from one moment of the tree. Hidden blocks show in none.

    Where history begins with a later revision than the first, that one comes with all files. Raises
    `RevisionNotFound` and `RevisionPruned`.
    """
    with snapshot(access, revision) as now:
        yield _steps(now)


def _steps(now: Snapshot) -> Iterator[Step]:
    tree, oldest = now.access.tree, now.tree.history_from
    revisions = Revision.objects.of(tree).order_by("number")
    if oldest:
        live = {file.content_id for file in File.objects.of(tree).live_at(oldest)}
        first = revisions.get(number=oldest)
        [read] = read_revisions(now, [first])
        yield _step(now, read, live, Places(now, live))
        revisions = revisions.filter(number__gt=oldest)
    if now.revision is not None:
        revisions = revisions.filter(number__lte=now.revision)
    for some in batched(revisions.iterator(chunk_size=_REVISIONS_AT_ONCE), _REVISIONS_AT_ONCE):
        ids: dict[int, set[UUID]] = defaultdict(set)
        for number, file_id in touched(tree, range(some[0].number, some[-1].number + 1)):
            ids[number].add(file_id)
        places = Places(now, set().union(*ids.values()))
        for read in read_revisions(now, some):
            yield _step(now, read, ids[read.number], places)


def _step(now: Snapshot, revision: RevisionRead, ids: set[UUID], places: Places) -> Step:
    number = revision.number
    # Of what was before the oldest revision nothing can be told.
    known = ids if number > now.tree.history_from else set[UUID]()
    before = {path for file_id in known if (path := places.in_sight(file_id, number - 1))}
    after = {path: file_id for file_id in ids if (path := places.path(file_id, number))}
    (blocks,) = held(now, after.values(), number) if after else ({},)
    return Step(
        revision=revision,
        gone=sorted(before - after.keys()),
        written=[(path, content(blocks.get(after[path], ()), number)) for path in sorted(after)],
    )
