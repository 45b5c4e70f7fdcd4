"""Entries as the house and its clients have them, and what a search answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Annotated, Self

from memsvc.contract.files import ETag, Page, Told
from memsvc.contract.wire import EXTERNAL, Inside, Named, Note, Wire
from memsvc.format.entries import Confidence, MemoryEntry
from memsvc.format.frontmatter import Metadata
from memsvc.format.indexes import IndexRow
from memsvc.format.layout import MemoryCategory, MemoryKind

SentMetadata = Annotated[
    Metadata, Wire.ANY_OBJECT, Note("What the frontmatter says besides, as it stands there.")
]
EXTERNAL[MemoryEntry] = {
    "entry_id": Annotated[str, Named("id")],
    "category": MemoryCategory,
    "kind": Annotated[MemoryKind, Wire.WRITTEN],
    "created": datetime,
    "source": str,
    "confidence": Confidence,
    "tags": Sequence[str],
    "summary": str,
    "body": str,
    "supersedes": str | None,
    "superseded_by": str | None,
    "is_active": Annotated[bool, Wire.WRITTEN],
}


@dataclass(frozen=True, slots=True)
class Authorship:
    """In which revision something was written: when by the server's clock, who did it, and in which run of an agent.

    No text that is sent can set any of it.
    """

    revision: int
    at: datetime
    actor_kind: Annotated[str, Inside("actor"), Named("kind")]
    actor_id: Annotated[str, Inside("actor"), Named("id")]
    actor_name: Annotated[str, Inside("actor"), Named("name")]
    run_id: str


@dataclass(frozen=True, slots=True)
class EntryRead:
    """An entry with the file it lives in; `revision` is the one that wrote its text.

    `metadata` is what its frontmatter says besides. `etag` changes when the text does and when the entry is superseded.
    `written` is how an entry of this id first came into the tree, None where the history that told it is gone.
    `changed` is how what it says came to be what it is: to move it or to supersede it is no change of that.
    """

    entry: Annotated[MemoryEntry, Wire.FLAT]
    metadata: SentMetadata
    path: str
    expires_at: datetime | None
    revision: int
    etag: ETag = None
    written: Authorship | None = None
    changed: Authorship | None = None

    @property
    def ordered_at(self) -> datetime:
        """The instant that it says it is about, or if that was still to come then, when it was written."""
        return min(self.entry.created, self.changed.at) if self.changed else self.entry.created


@dataclass(frozen=True, slots=True)
class Highlight:
    """A piece of an entry's body, and the ranges in it (from, to; in characters) that answer the query."""

    text: str
    ranges: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Hit(EntryRead):
    """An entry that was found, and why it stands where it stands.

    `score` is good for an order within one answer and for nothing else; a page that is not ranked has none. `parts`
    says what it is made of. `line` is where the entry begins in its file, counted from 1. `duplicates` are the ids of
    equal entries, newest first, that are left out for this one, the newest of all; `score` and `parts` are the best
    that one has.
    """

    score: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    highlights: Sequence[Highlight] = ()
    line: int | None = None
    duplicates: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: EntryRead, *, highlights: Sequence[Highlight], line: int | None = None) -> Self:
        """An entry as a hit without a score."""
        read = {each.name: getattr(found, each.name) for each in fields(EntryRead)}
        return cls(**read, highlights=highlights, line=line)


@dataclass(frozen=True, slots=True)
class HitsPage(Page[Hit]):
    """A page of hits. `truncated` says that a ranking goes no deeper although more entries would fit."""

    truncated: bool = False


@dataclass(frozen=True, slots=True)
class EntryWritten(Told):
    """A new entry. `superseded` is the id that it retired; `file_created` says that it began its file.

    `peer_readable` is False when deep-memory-agent's parser would cut the body at a `---` line.
    """

    entry: Annotated[MemoryEntry, Wire.FLAT]
    metadata: SentMetadata
    path: str
    expires_at: datetime | None
    revision: int
    superseded: str | None
    file_created: bool
    peer_readable: bool


@dataclass(frozen=True, slots=True)
class EntryRetired(Told):
    entry_id: Annotated[str, Named("id")]
    path: str
    revision: int


@dataclass(frozen=True, slots=True)
class EntryAccesses:
    """How often an entry was found or read; `last_at` is None for one that never was."""

    entry_id: Annotated[str, Named("id")]
    count: int
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class RouterIndex:
    """A router index as rows; `exists` is False (and the rest empty) when the tree has none."""

    path: str
    exists: bool
    preamble: str
    rows: Sequence[IndexRow]
