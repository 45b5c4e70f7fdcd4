"""What callers hand in: an entry to be stored, and the state that they expect to find."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memsvc.format import (
    NO_METADATA,
    Confidence,
    Kept,
    MemoryCategory,
    MemoryEntry,
    Metadata,
    checked_metadata,
    summary_after,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDraft:
    """An entry before it has an id and a place.

    `when` is the instant that the entry refers to (naive means UTC, None means now); it gives the month of an
    episode's file. `title` names a procedure's file. `supersedes` retires that entry in the same revision.
    After `expires_at` the entry is invisible to every reader; None stays, and one that supersedes a temporary entry
    is temporary too unless it says otherwise. `metadata` are further keys of its frontmatter; None are those of the
    superseded entry, just as they are written there. Without a summary, an entry in the place of one that has
    one gets the first line of its own body.
    """

    category: MemoryCategory
    body: str
    summary: str | None = ""
    tags: tuple[str, ...] = ()
    source: str = "agent"
    confidence: Confidence = Confidence.MEDIUM
    title: str | None = None
    when: datetime | None = None
    supersedes: str | None = None
    expires_at: datetime | Kept | None = Kept.KEPT
    metadata: Metadata | None = NO_METADATA


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessorDraft:
    """An entry in the place of another: category, tags, metadata and expiry are the old one's where left open.

    A `summary` of None is made from the body where the old one has any; "" is none.
    """

    body: str
    category: MemoryCategory | None = None
    summary: str | None = None
    tags: tuple[str, ...] | None = None
    source: str = "agent"
    confidence: Confidence = Confidence.MEDIUM
    title: str | None = None
    when: datetime | None = None
    expires_at: datetime | Kept | None = Kept.KEPT
    metadata: Metadata | None = None

    def after(self, old: MemoryEntry) -> EntryDraft:
        """The draft of what takes the place of an entry."""
        return EntryDraft(
            category=self.category or old.category,
            body=self.body,
            summary=summary_after(old, self.body) if self.summary is None else self.summary,
            tags=old.tags if self.tags is None else self.tags,
            source=self.source,
            confidence=self.confidence,
            title=self.title,
            when=self.when,
            supersedes=old.entry_id,
            expires_at=self.expires_at,
            metadata=None if self.metadata is None else checked_metadata(self.metadata),
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
