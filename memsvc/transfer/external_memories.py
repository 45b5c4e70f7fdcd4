"""One memory as systems hand it to each other, and the entry of a tree that it becomes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from memsvc.format import (
    CONFIDENCE_NUMBERS,
    Block,
    Confidence,
    InvalidEntry,
    InvalidTitle,
    MemoryCategory,
    MemoryEntry,
    entry_path,
    first_heading,
    metadata_of,
    normal_entry,
    says_something,
    storable_metadata,
)
from memsvc.format.entries import instant_of
from memsvc.format.frontmatter import text_line
from memsvc.format.metadata import ORIGIN
from memsvc.recall.accesses import MAX_COUNT, Accesses
from memsvc.tree.arrivals import ExternalEntry

# The key of the frontmatter under which an entry keeps what has no field of its own, as JSON; and in it, metadata that
# an entry doesn't take, such as nested objects.
_METADATA: Final = "metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalMemory:
    """One unit of memory with its provenance; `origin` is what an entry has no field for, by JSON name.

    `metadata` is all that the system that it comes from keeps under that name.

    `path` is the file that it lies in or belongs in; None leaves it to the category.
    """

    external_id: str
    category: MemoryCategory
    content: str
    created_at: datetime
    summary: str = ""
    tags: tuple[str, ...] = ()
    source: str = ""
    confidence: float = CONFIDENCE_NUMBERS[Confidence.MEDIUM]
    expires_at: datetime | None = None
    supersedes: str | None = None
    superseded_by: str | None = None
    path: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    origin: Mapping[str, Any] = field(default_factory=dict)


def level_of(confidence: float) -> Confidence:
    """The level that a number from 0 to 1 is shown as."""
    if confidence < 0.5:
        return Confidence.LOW
    return Confidence.MEDIUM if confidence < 0.8 else Confidence.HIGH


def memory_of(block: Block, path: str, expires_at: datetime | None) -> ExternalMemory:
    """The memory that a block with an entry holds."""
    entry = block.entry
    assert entry is not None
    origin = _read_origin(block.extra.get(ORIGIN))
    number = origin.pop("confidence", None)
    others = origin.pop(_METADATA, None)
    usable = isinstance(number, float) and 0 <= number <= 1 and level_of(number) is entry.confidence
    return ExternalMemory(
        external_id=entry.entry_id,
        category=entry.category,
        content=entry.body,
        created_at=entry.created,
        summary=entry.summary,
        tags=entry.tags,
        source=entry.source,
        confidence=number if usable and isinstance(number, float) else CONFIDENCE_NUMBERS[entry.confidence],
        expires_at=expires_at,
        supersedes=entry.supersedes,
        superseded_by=entry.superseded_by,
        path=path,
        metadata=(others if isinstance(others, dict) else {}) | metadata_of(block.extra),
        origin=origin,
    )


def accesses_in(memory: ExternalMemory) -> Accesses | None:
    """How often a memory was read where it comes from; without a usable time, last when it was created."""
    count, last = memory.origin.get("access_count"), memory.origin.get("last_accessed")
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        return None
    last_at = instant_of(last) if isinstance(last, str) else None
    return Accesses(min(count, MAX_COUNT), last_at or memory.created_at)


def _read_origin(value: object) -> dict[str, Any]:
    try:
        origin = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return {}
    return origin if isinstance(origin, dict) else {}


def entry_of(memory: ExternalMemory) -> ExternalEntry:
    """The entry to store. Raises `FormatError` for what an entry can't hold."""
    entry = normal_entry(
        MemoryEntry(
            entry_id=memory.external_id,
            created=memory.created_at,
            category=memory.category,
            body=memory.content,
            summary=memory.summary,
            source=memory.source,
            confidence=level_of(memory.confidence),
            tags=memory.tags,
            supersedes=memory.supersedes,
            superseded_by=memory.superseded_by,
        )
    )
    if not says_something(entry.body):
        raise InvalidEntry("content must not be empty")
    path = memory.path or _path_for(entry)
    metadata = storable_metadata(memory.metadata)
    others = {name: value for name, value in memory.metadata.items() if name not in metadata}
    origin = {**memory.origin, _METADATA: others} if others else memory.origin
    more = _origin_line(entry, memory.confidence, origin)
    found = ExternalEntry(path, entry, more, memory.expires_at, metadata)
    if more or metadata:
        _ = found.block  # raises where they are too long
    return found


def _path_for(entry: MemoryEntry) -> str:
    """A procedure's file has the name of its first heading, else of its summary, else its id."""
    for title in (first_heading(entry.body), entry.summary, entry.entry_id):
        try:
            return entry_path(entry.category, when=entry.created.astimezone(UTC), title=title)
        except InvalidTitle:
            continue
    raise InvalidTitle("a procedure needs a heading or a summary to be named by")


def _origin_line(entry: MemoryEntry, confidence: float, origin: Mapping[str, Any]) -> str:
    if confidence != CONFIDENCE_NUMBERS[entry.confidence]:
        origin = {**origin, "confidence": confidence}
    # ASCII, so that no reader of YAML takes any of it for a line break.
    return text_line(ORIGIN, json.dumps(origin, sort_keys=True, separators=(",", ":"))) if origin else ""
