"""What services and reads answer that never leaves the house in this shape; the rest is of `memsvc.contract`."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memsvc.contract.entries import EntryRetired, EntryWritten
from memsvc.contract.files import Deleted, Edited, Moved, Told, Written
from memsvc.contract.history import RevisionRead
from memsvc.contract.imports import ImportDifference, ImportedEntry, ImportedFile


@dataclass(frozen=True, slots=True)
class FileContent:
    """A whole file, byte for byte."""

    path: str
    data: bytes
    is_text: bool
    created_at: datetime
    modified_at: datetime
    revision: int
    sha256: str
    etag: str

    @property
    def size(self) -> int:
        return len(self.data)


type OperationResult = Written | Edited | Deleted | Moved | EntryWritten | EntryRetired


@dataclass(frozen=True, slots=True)
class ImportResult:
    """A whole import; after a rehearsal `revision` is the one that was looked at."""

    revision: int
    files: list[ImportedFile]
    entries: list[ImportedEntry]
    differences: list[ImportDifference]


@dataclass(frozen=True, slots=True)
class Memory(Told):
    """A file as a memory: known by its id, which it keeps when it is moved; `version` is its current one.

    `text` is None where it was not asked for, where the content is no text, and where a list leaves it out.
    """

    id: UUID
    version: int
    path: str
    text: str | None
    sha256: str
    size: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class MemoriesPage:
    """Memories in path order, and between them the folders (each a path with a slash at its end) of a listing."""

    items: list[Memory | str]
    next: str | None


@dataclass(frozen=True, slots=True)
class RedactionRead:
    at: datetime
    actor_kind: str
    actor_id: str


@dataclass(frozen=True, slots=True)
class MemoryVersion:
    """What a revision made of a memory: `operation` is "created", "modified" or "deleted".

    A deleted one has no content, hash and size; a redacted one has no path either.
    """

    memory: UUID
    revision: RevisionRead
    operation: str
    path: str | None
    text: str | None
    sha256: str | None
    size: int | None
    redaction: RedactionRead | None


@dataclass(frozen=True, slots=True)
class VersionsPage:
    items: list[MemoryVersion]
    next: str | None
