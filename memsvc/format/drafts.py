"""An entry to be stored, before it has an id and a place."""

from dataclasses import dataclass
from datetime import datetime

from memsvc.format.entries import NO_METADATA, Confidence, Kept
from memsvc.format.frontmatter import Metadata
from memsvc.format.layout import MemoryCategory


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
