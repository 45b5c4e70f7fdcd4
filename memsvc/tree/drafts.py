"""What callers hand in: what is to take an entry's place, and the state that they expect to find."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memsvc.format import (
    Confidence,
    EntryDraft,
    Kept,
    MemoryCategory,
    MemoryEntry,
    Metadata,
    checked_metadata,
    summary_after,
)


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
