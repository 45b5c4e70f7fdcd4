"""What reads and services answer: plain values without rows behind them.

Sizes are bytes as a reader gets them; lines are those of `format.text_lines`; times are aware and in UTC.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from memsvc.format import NO_METADATA, IndexRow, MemoryEntry, Metadata, Problem


@dataclass(frozen=True, slots=True)
class WriteWarning(Problem):
    """Something that a write left in a file and that can't be found as an entry, or was mended on the way."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The answer of a write, with what its writer has to know."""

    warnings: tuple[WriteWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class Listed:
    """A file, or a folder (which has no size, no times and no revision of its own)."""

    path: str
    is_dir: bool = False
    size: int = 0
    lines: int = 0
    revision: int = 0
    created_at: datetime | None = None
    modified_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class FilesPage:
    items: list[Listed]
    next: str | None


@dataclass(frozen=True, slots=True)
class Page:
    """A window of a text file's lines with `\\n` line ends, or the whole of a file that is not text.

    `start_line`, `end_line` and `total_lines` are None for blank content, for binary content and when no
    lines were asked for. `next_offset` is None at the end of the file.
    """

    path: str
    text: str
    binary: bytes | None
    total_lines: int | None
    start_line: int | None
    end_line: int | None
    next_offset: int | None
    no_lines_requested: bool
    size: int
    created_at: datetime
    modified_at: datetime
    revision: int
    etag: str


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


@dataclass(frozen=True, slots=True)
class Match:
    """A line that holds the pattern; `line` counts from 1, `text` has no line end."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Matches:
    items: list[Match]
    truncated: bool


@dataclass(frozen=True, slots=True)
class EntryRead:
    """An entry with the file it lives in; `revision` is the one that wrote its text.

    `etag` changes when the text does and when the entry is superseded.
    """

    path: str
    entry: MemoryEntry
    revision: int
    etag: str
    expires_at: datetime | None = None
    metadata: Metadata = NO_METADATA


@dataclass(frozen=True, slots=True)
class EntriesPage:
    items: list[EntryRead]
    next: str | None


@dataclass(frozen=True, slots=True)
class IndexView:
    """A router index as rows; `exists` is False (and the rest empty) when the tree has none."""

    path: str
    rows: list[IndexRow]
    preamble: str
    exists: bool


@dataclass(frozen=True, slots=True)
class Written(Told):
    """`changed` is False when the file already held exactly this; `revision` is then the tree's current one."""

    path: str
    revision: int
    created: bool
    changed: bool
    size: int
    etag: str


@dataclass(frozen=True, slots=True)
class Edited(Told):
    path: str
    revision: int
    occurrences: int
    size: int
    etag: str


@dataclass(frozen=True, slots=True)
class Deleted(Told):
    path: str
    revision: int
    files: int


@dataclass(frozen=True, slots=True)
class Moved(Told):
    source: str
    destination: str
    revision: int
    files: int


@dataclass(frozen=True, slots=True)
class Uploaded(Told):
    """One verdict of an upload: `error` is None, a code of the backend protocol, or a sentence."""

    path: str
    error: str | None


@dataclass(frozen=True, slots=True)
class EntryWritten(Told):
    """`peer_readable` is False when deep-memory-agent's parser would cut the body at a `---` line."""

    path: str
    entry: MemoryEntry
    revision: int
    superseded: str | None
    file_created: bool
    peer_readable: bool
    expires_at: datetime | None
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class EntryRetired(Told):
    entry_id: str
    path: str
    revision: int


type OperationResult = Written | Edited | Deleted | Moved | EntryWritten | EntryRetired


@dataclass(frozen=True, slots=True)
class BatchResult:
    revision: int
    results: list[OperationResult]


@dataclass(frozen=True, slots=True)
class Imported:
    """One file of an import: `outcome` is "created", "changed", "unchanged", "skipped" or "refused".

    The last two have a reason.
    """

    path: str
    outcome: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EntryImported:
    """One entry of an import that came by itself: "created", "changed", "unchanged" or "skipped", with a reason."""

    entry_id: str
    path: str
    outcome: str
    reason: str = ""


class Differs(StrEnum):
    """How a tree and an import differ."""

    ENTRY = "entry"  # the entry says something else
    TEXT = "text"  # the text that is no entry, or the file that holds none
    RETIRED = "retired"  # the tree had the entry, and it is gone
    SUPERSEDED = "superseded"  # the entry is superseded on one side only
    ELSEWHERE = "elsewhere"  # the entry is in another file of the tree
    ADDED = "added"  # the entry is in the tree's file only
    REMOVED = "removed"  # the entry was taken out of the import's file
    DELETED = "deleted"  # the tree had the file, and it is deleted or moved
    FILE = "file"  # the path is a folder on one side


class Done(StrEnum):
    """What was done about a difference: the tree's was kept, the import's was taken, or both are there."""

    KEPT = "kept"
    TAKEN = "taken"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which the tree and an import differ; `entry_id` is empty where it isn't one entry."""

    path: str
    entry_id: str
    differs: Differs
    done: Done


@dataclass(frozen=True, slots=True)
class ImportResult:
    """A whole import; after a rehearsal `revision` is the one that was looked at."""

    revision: int
    files: list[Imported]
    entries: list[EntryImported]
    differences: list[Difference]


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a revision did to a file: `action` is "created", "changed", "moved" or "deleted".

    `path` is where the file stood afterwards (before, for a deleted one), `source` where a moved one came from.
    """

    path: str
    action: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class EntryChange:
    """What a revision did to an entry: `action` is "added", "changed", "superseded" or "removed"."""

    entry_id: str
    path: str
    action: str


@dataclass(frozen=True, slots=True)
class RevisionRead:
    number: int
    at: datetime
    actor_kind: str
    actor_id: str
    actor_name: str
    action: str
    message: str


@dataclass(frozen=True, slots=True)
class RevisionsPage:
    items: list[RevisionRead]
    next: str | None


@dataclass(frozen=True, slots=True)
class RevisionDetail:
    """A revision with all that it changed, files and entries in path order."""

    revision: RevisionRead
    files: list[FileChange]
    entries: list[EntryChange]


@dataclass(frozen=True, slots=True)
class Hunk:
    """A run of lines that differ, as in a unified diff: 1-based starts; each line with " ", "-" or "+" and its end.

    Only "\\n" ends a line here.
    """

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    lines: list[str]


@dataclass(frozen=True, slots=True)
class FileDiff:
    """How a file differs between two revisions: `action` and `source` as of `FileChange`.

    `unified` is a diff that `git apply` takes. Content that is no text has no hunks; the digests say that it differs.
    """

    path: str
    action: str
    source: str | None
    unified: str
    hunks: list[Hunk]
    old_sha256: str | None
    new_sha256: str | None


@dataclass(frozen=True, slots=True)
class BlamedLine:
    """A line as `read_lines` shows it, and the revision that last changed it."""

    line: int
    text: str
    revision: int
    entry_id: str | None


@dataclass(frozen=True, slots=True)
class Blame:
    path: str
    lines: list[BlamedLine]
    revisions: dict[int, RevisionRead]


@dataclass(frozen=True, slots=True)
class EntryVersion:
    """One state in an entry's life: from `revision` on it was this.

    `action` is "added", "changed", "superseded", "moved" or "removed" (then `entry` is what it was last); "kept" is
    what it was in the oldest revision that can be read.
    """

    revision: RevisionRead
    action: str
    path: str
    entry: MemoryEntry
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class Restored(Told):
    """`paths` are the files that became what they were; none when they were that already."""

    revision: int
    paths: list[str]


@dataclass(frozen=True, slots=True)
class UndoConflict:
    """A change that can't be taken back, in words."""

    revision: int
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Undone(Told):
    """`revision` is the one that undid, or the tree's current one after a rehearsal or when nothing was changed."""

    revision: int
    undone: list[int]
    paths: list[str]
    conflicts: list[UndoConflict]


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
