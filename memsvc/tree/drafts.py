"""What callers hand in: an entry to be stored, and the state that they expect to find."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memsvc.format import (
    NO_METADATA,
    Confidence,
    MemoryCategory,
    MemoryEntry,
    Metadata,
    checked_metadata,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDraft:
    """An entry before it has an id and a place.

    `when` is the instant that the entry refers to (naive means UTC, None means now); it gives the month of an
    episode's file. `title` names a procedure's file. `supersedes` retires that entry in the same revision.
    After `expires_at` the entry is invisible to every reader. `metadata` are further keys of its frontmatter.
    """

    category: MemoryCategory
    body: str
    summary: str = ""
    tags: tuple[str, ...] = ()
    source: str = "agent"
    confidence: Confidence = Confidence.MEDIUM
    title: str | None = None
    when: datetime | None = None
    supersedes: str | None = None
    expires_at: datetime | None = None
    metadata: Metadata = NO_METADATA


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessorDraft:
    """An entry in the place of another: what is None of category, summary, tags and metadata is the old one's."""

    body: str
    category: MemoryCategory | None = None
    summary: str | None = None
    tags: tuple[str, ...] | None = None
    source: str = "agent"
    confidence: Confidence = Confidence.MEDIUM
    title: str | None = None
    when: datetime | None = None
    expires_at: datetime | None = None
    metadata: Metadata | None = None

    def after(self, old: MemoryEntry, kept: Metadata) -> EntryDraft:
        """The draft of what takes the place of an entry with this metadata, which is kept as it is."""
        return EntryDraft(
            category=self.category or old.category,
            body=self.body,
            summary=old.summary if self.summary is None else self.summary,
            tags=old.tags if self.tags is None else self.tags,
            source=self.source,
            confidence=self.confidence,
            title=self.title,
            when=self.when,
            supersedes=old.entry_id,
            expires_at=self.expires_at,
            metadata=kept if self.metadata is None else checked_metadata(self.metadata),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Precondition:
    """What must hold for a change to be made (RFC 9110, If-Match and If-None-Match).

    `if_match` is an etag or the content's sha256 in hex, without quotes; "*" asks only that something is there.
    `if_none_match_any` asks that nothing is there.
    """

    if_match: str | None = None
    if_none_match_any: bool = False


class OnConflict(StrEnum):
    """What becomes of it when the tree and an import differ: the tree's stays, the import's counts, or both do."""

    KEEP = "keep"
    TAKE = "take"
    BOTH = "both"
