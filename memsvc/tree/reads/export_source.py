"""A whole tree at one moment, file by file, without holding it in memory."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import batched, groupby

from memsvc.contract.files import Listed
from memsvc.tree.access import Access
from memsvc.tree.blocks import rendered
from memsvc.tree.models import File, Revision
from memsvc.tree.snapshot import Snapshot, snapshot
from memsvc.tree.visibility import EXPIRING

# Files are read in groups of about this many bytes; one that is larger is streamed by itself.
_GROUP_BYTES = 1024 * 1024
_BLOCKS_AT_ONCE = 200
_FILES_AT_ONCE = 200


@dataclass(slots=True)
class Expiring:
    """When entries and rows of an index disappear: by path, and in a file as `FileExpiries` has it.

    `lost` counts the blocks that disappear and are neither.
    """

    by_path: dict[str, dict[tuple[str, int], datetime]] = field(default_factory=dict)
    lost: int = 0


@dataclass(frozen=True, slots=True)
class ExportSource:
    """`revision` and `at` are those of the newest change in it; without any, `at` is when the tree was made."""

    revision: int
    at: datetime
    _snapshot: Snapshot

    def files(self) -> Iterator[tuple[Listed, Iterator[bytes]]]:
        """Every file in path order with its bytes, which have to be taken before the next file is."""
        for group in _groups(self._snapshot):
            yield from self._contents(group)

    def heads(self) -> dict[str, list[tuple[str, str]]]:
        """The entries of each file as they were cut when they were stored: ids, and text up to the body."""
        found: dict[str, list[tuple[str, str]]] = {}
        blocks = self._snapshot.blocks().entries().order_by("file__path", "position")
        columns = blocks.values_list("file__path", "entry_id", "head")
        for path, entry_id, head in columns.iterator(chunk_size=_BLOCKS_AT_ONCE):
            found.setdefault(path, []).append((entry_id, head))
        return found

    def expiries(self) -> Expiring:
        """When blocks disappear by themselves, by the path of their file."""
        found = Expiring()
        now = self._snapshot
        expiring = list(now.blocks().filter(EXPIRING).values_list("file_id", flat=True).distinct())
        if not expiring:
            return found
        paths = {file.content_id: file.path for file in now.files()}
        for file_id in expiring:
            if file_id not in paths:
                continue
            above = Counter[str]()
            rows = now.blocks().filter(file_id=file_id).order_by("position")
            named = rows.values_list("entry_id", "row_path", "expires_at")
            for entry_id, row_path, at in named:
                name = entry_id or row_path
                if at and name:
                    found.by_path.setdefault(paths[file_id], {})[name, above[name]] = at
                found.lost += bool(at and not name)
                above[name] += 1
        return found

    def _contents(self, group: Sequence[tuple[File, Listed]]) -> Iterator[tuple[Listed, Iterator[bytes]]]:
        if len(group) == 1:
            file, listed = group[0]
            streamed = self._snapshot.blocks_of(file).iterator(chunk_size=_BLOCKS_AT_ONCE)
            yield listed, (rendered(block, self._snapshot.revision) for block in streamed)
            return
        ids = [file.content_id for file, _ in group]
        blocks = self._snapshot.blocks().filter(file_id__in=ids).order_by("file_id", "position")
        contents = {
            file_id: [rendered(block, self._snapshot.revision) for block in rows]
            for file_id, rows in groupby(blocks, key=lambda block: block.file_id)
        }
        for file, listed in group:
            yield listed, iter(contents.get(file.content_id, []))


def _groups(now: Snapshot) -> Iterator[list[tuple[File, Listed]]]:
    group: list[tuple[File, Listed]] = []
    size = 0
    for file, listed in _described(now):
        if group and size + listed.size > _GROUP_BYTES:
            yield group
            group, size = [], 0
        group.append((file, listed))
        size += listed.size
    if group:
        yield group


def _described(now: Snapshot) -> Iterator[tuple[File, Listed]]:
    files = now.files().order_by("path").iterator(chunk_size=_FILES_AT_ONCE)
    for some in batched(files, _FILES_AT_ONCE):
        by_path = {listed.path: listed for listed in now.listed(some)}
        yield from ((file, by_path[file.path]) for file in some if file.path in by_path)


@contextmanager
def export_source(access: Access, *, revision: int | None = None) -> Iterator[ExportSource]:
    """One moment of a whole tree. Keep it open only as long as its files are being read."""
    with snapshot(access, revision) as now:
        number = now.tree.revision if revision is None else revision
        made = Revision.objects.of(now.tree).filter(number=number).first()
        yield ExportSource(revision=number, at=made.at if made else now.tree.created_at, _snapshot=now)
