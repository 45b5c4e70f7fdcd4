"""What an import brings, made ready before the tree is locked: cut, read and with its terms, in a temporary file.

So the lock is held only while rows are compared and written, and memory does not grow with the import.
"""

import hashlib
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from tempfile import SpooledTemporaryFile
from types import MappingProxyType
from typing import IO, Final, NamedTuple

from memsvc.format import (
    NO_METADATA,
    BlockKind,
    InvalidEntry,
    MemoryEntry,
    Metadata,
    append_to,
    canonical_path,
    compose_block,
    cut_file,
    dominant_newline,
    is_memory_file,
)
from memsvc.format import Block as CutBlock
from memsvc.format import cut as cut_document
from memsvc.tree import statements
from memsvc.tree.access import Access
from memsvc.tree.blocks import cut_as_before, row_of
from memsvc.tree.models import Block, File

_IN_MEMORY: Final = 1024 * 1024
_MOST_AT_ONCE: Final = 200
_BYTES_AT_ONCE: Final = 1024 * 1024

# By the id of an entry, or the path that a row of an index is about, and how many blocks of that name stand above.
type FileExpiries = Mapping[tuple[str, int], datetime]

_NO_EXPIRIES: Final[FileExpiries] = MappingProxyType({})


class Arrival(NamedTuple):
    """A file to bring in. `base` is the SHA-256 that it had when it was exported, empty where that isn't known.

    `blocks` are what `cut_file` makes of it, where that has been done. `revision` is the revision of this very tree
    that it was exported from, None where it comes from elsewhere.
    """

    path: str
    data: bytes
    expiries: FileExpiries = _NO_EXPIRIES
    base: str = ""
    revision: int | None = None
    blocks: Sequence[CutBlock] | None = None


@dataclass(frozen=True, slots=True)
class ExternalEntry:
    """An entry to bring in: where to, and what its frontmatter has besides: metadata, and one line more."""

    path: str
    entry: MemoryEntry
    more: str = ""
    expires_at: datetime | None = None
    metadata: Metadata = NO_METADATA

    @property
    def block(self) -> CutBlock:
        """As it stands in a memory file. Put together when asked for, since an import holds thousands of them.

        Raises `InvalidEntry` where there is too much that the frontmatter has besides.
        """
        block = compose_block(self.entry, self.metadata)
        if not self.more:
            return block
        head, fence, body = block.raw.partition(b"\n---\n")
        first, *others = cut_document(head + b"\n" + self.more.encode() + fence + body)
        if others or first.entry != self.entry:
            raise InvalidEntry("the metadata is too long to be kept with the entry")
        return first


@dataclass(slots=True)
class PreparedFile:
    """A file with the rows that it would have as a new one; their file, tree and revision are not set yet."""

    arrival: Arrival
    sha256: str
    newline: str
    rows: list[Block] = field(default_factory=list)


@dataclass(slots=True)
class PreparedEntry:
    """An entry by itself with its text and the row for it, without blank lines above; `number` counts from 0.

    `gap` is what has to stand between it and an entry below it.
    """

    number: int
    external: ExternalEntry
    text: str
    gap: bytes
    row: Block | None


class Spool[T]:
    """Groups of things, written one by one and read one by one."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def add(self, group: list[T]) -> None:
        pickle.dump(group, self._file, pickle.HIGHEST_PROTOCOL)

    def __iter__(self) -> Iterator[list[T]]:
        end = self._file.tell()
        self._file.seek(0)
        while self._file.tell() < end:
            # Nobody else can write to it: the file has no name.
            yield pickle.load(self._file)


@contextmanager
def prepared_files(access: Access, arriving: Iterable[Arrival]) -> Iterator[Spool[PreparedFile]]:
    """Files at different paths in groups that may be in memory together. Raises `Forbidden`."""
    with SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
        spool = Spool[PreparedFile](file)
        group: dict[str, PreparedFile] = {}
        size = 0
        for arrival in arriving:
            path = canonical_path(arrival.path)
            access.require_write(path)
            if path in group or len(group) >= _MOST_AT_ONCE or size + len(arrival.data) > _BYTES_AT_ONCE:
                spool.add(list(group.values()))
                group, size = {}, 0
            group[path] = _prepared(access, arrival._replace(path=path, expiries=dict(arrival.expiries)))
            size += len(arrival.data)
        if group:
            spool.add(list(group.values()))
        yield spool


def _prepared(access: Access, arrival: Arrival) -> PreparedFile:
    file = File(tenant_id=access.tree.tenant_id, tree_id=access.tree.pk, path=arrival.path)
    cut = cut_file(arrival.path, arrival.data) if arrival.blocks is None else arrival.blocks
    blocks = cut_as_before([], cut)
    rows = [row_of(block, file, position=0, revision=0, first=n == 0) for n, block in enumerate(blocks)]
    seen = Counter[str]()
    for row in rows:
        if name := row.entry_id or row.row_path:
            row.expires_at = arrival.expiries.get((name, seen[name]))
            seen[name] += 1
        _read_terms(row)
    sha256 = hashlib.sha256(arrival.data).hexdigest()
    return PreparedFile(arrival._replace(blocks=None), sha256, dominant_newline(arrival.data), rows)


@contextmanager
def prepared_entries(access: Access, external: Iterable[ExternalEntry]) -> Iterator[Spool[PreparedEntry]]:
    """Entries in the order of their paths, in groups of one path each. Raises `Forbidden`."""
    with SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
        spool = Spool[PreparedEntry](file)
        group: list[PreparedEntry] = []
        for number, each in sorted(enumerate(external), key=lambda numbered: (numbered[1].path, numbered[0])):
            access.require_write(each.path)
            if group and (len(group) >= _MOST_AT_ONCE or group[0].external.path != each.path):
                spool.add(group)
                group = []
            block, each = each.block, replace(each, metadata=dict(each.metadata))
            gap, row = append_to(block.raw, ""), _entry_row(access, each, block)
            group.append(PreparedEntry(number, each, block.raw.decode(), gap, row))
        if group:
            spool.add(group)
        yield spool


def _entry_row(access: Access, external: ExternalEntry, block: CutBlock) -> Block | None:
    """The row of an entry; None in a file that is no memory file."""
    if not is_memory_file(external.path):
        return None
    file = File(tenant_id=access.tree.tenant_id, tree_id=access.tree.pk, path=external.path)
    row = row_of(block, file, position=0, revision=0)
    row.expires_at = external.expires_at
    _read_terms(row)
    return row


def _read_terms(row: Block) -> None:
    if row.kind == BlockKind.ENTRY:
        row.known_terms = statements.terms_of(row)
