"""What the server answers, as frozen values. Sizes are bytes; times are aware; paths are paths of the tree."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

from memsvc.format.entries import NO_METADATA, MemoryEntry
from memsvc.format.frontmatter import Metadata
from memsvc.format.indexes import IndexRow


@dataclass(frozen=True, slots=True)
class Page[Item]:
    """One page of a list; `next` is the cursor of the page after it, or None."""

    items: tuple[Item, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class Me:
    """Whose key this is and what it may do; `tree` is None when it opens every tree of the tenant."""

    tenant_id: str
    tenant_slug: str
    tenant_name: str
    key_id: str
    key_name: str
    key_prefix: str
    expires_at: datetime | None
    scopes: frozenset[str]
    tree: str | None
    path_prefix: str
    limits: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class TreeInfo:
    """A tree; one with an `archived_at` can't be changed any more. It can be read as of `history_from` and later."""

    name: str
    description: str
    language: str
    revision: int
    history_from: int
    created_at: datetime
    archived_at: datetime | None


@dataclass(frozen=True, slots=True)
class TreeDetail(TreeInfo):
    """A tree, and how much of it the key sees: files, their bytes, and entries, superseded ones too."""

    files: int
    entries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """An API key without its secret part; `tree` is None when it opens every tree of the tenant."""

    id: str
    name: str
    prefix: str
    scopes: frozenset[str]
    tree: str | None
    path_prefix: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class KeyUsage:
    """How many requests a key made on a day, in UTC."""

    day: date
    key_id: str
    key_name: str
    requests: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What a tenant stores now, in all its trees, and the requests of its keys, the newest days first."""

    trees: int
    files: int
    entries: int
    bytes: int
    requests: tuple[KeyUsage, ...]


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made, and its text: None when an earlier try of the same call has already shown it."""

    info: KeyInfo
    text: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Listed:
    """A file, or a folder (which has no size, no times and no revision of its own)."""

    path: str
    is_dir: bool
    size: int
    lines: int
    revision: int
    created_at: datetime | None
    modified_at: datetime | None


@dataclass(frozen=True, slots=True)
class Window:
    """Some lines of a text file, with `\\n` line ends; or the whole of a file that is no text, in `binary`.

    `start_line`, `end_line` and `total_lines` are None for blank or binary content and when no lines were asked
    for; `next_offset` is None at the end of the file.
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
    etag: str | None


@dataclass(frozen=True, slots=True)
class FileBytes:
    """A whole file, byte for byte; `etag` goes into `if_match` of the next change."""

    path: str
    data: bytes
    etag: str | None


@dataclass(frozen=True, slots=True)
class WriteWarning:
    """What a write left in a file that looks like an entry and can't be found, or what was mended.

    `line` counts from 1; `code` is stable, `reason` says what is wrong and what to do.
    """

    path: str
    line: int
    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The answer of a write, with what its writer has to know."""

    warnings: tuple[WriteWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class Written(Told):
    """`changed` is False when the file already held exactly this; `revision` is then the tree's current one."""

    path: str
    revision: int
    created: bool
    changed: bool
    size: int
    etag: str | None


@dataclass(frozen=True, slots=True)
class Edited(Told):
    """`occurrences` counts the replacements; 0 for an append."""

    path: str
    revision: int
    occurrences: int
    size: int
    etag: str | None


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
class Match:
    """A line that holds the pattern; `line` counts from 1, `text` has no line end."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Matches:
    items: tuple[Match, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """Files by path; `truncated` when there are more than the service was willing to look for."""

    items: tuple[Listed, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class Uploaded(Told):
    """The verdict on one file of an upload: `error` is None, a code of the backend protocol, or a sentence."""

    path: str
    error: str | None


@dataclass(frozen=True, slots=True)
class Downloaded:
    """One file of a download: exactly one of `content` and `error` is None."""

    path: str
    content: bytes | None
    error: str | None


@dataclass(frozen=True, slots=True)
class EntryRead:
    """An entry with the file it lives in; `revision` is the one that wrote it.

    `metadata` is what its frontmatter says besides.
    """

    path: str
    entry: MemoryEntry
    revision: int
    expires_at: datetime | None = None
    metadata: Metadata = NO_METADATA


@dataclass(frozen=True, slots=True)
class Highlight:
    """A piece of an entry's body, and the ranges in it (from, to; in characters) that answer the query."""

    text: str
    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Hit(EntryRead):
    """An entry that was found, and why it stands where it stands.

    `parts` says what `score` is made of, `line` where the entry begins in its file, counted from 1; `duplicates` are
    the ids of equal entries, newest first, that are left out for it. A page that is not ranked has no scores.
    """

    score: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    highlights: tuple[Highlight, ...] = ()
    line: int | None = None
    duplicates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EntryWritten(Told):
    """A new entry. `superseded` is the id that it retired; `file_created` says that it began its file.

    `peer_readable` is False when deep-memory-agent's parser would cut the body at a `---` line.
    """

    path: str
    entry: MemoryEntry
    revision: int
    superseded: str | None
    file_created: bool
    peer_readable: bool
    expires_at: datetime | None = None
    metadata: Metadata = NO_METADATA


@dataclass(frozen=True, slots=True)
class Accesses:
    """How often an entry was found or read; `last_at` is None for one that never was."""

    count: int
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class EntryRetired(Told):
    entry_id: str
    path: str
    revision: int


@dataclass(frozen=True, slots=True)
class Context:
    """A block for a system prompt; `entries` are the ids of what is in it, `left_out` counts what had no room.

    `duplicates` has for an entry in the block the ids of equal ones that it stands for.
    `content` is the text in every format, for that of messages the text of the one message. `etag` is for
    `context_if_changed`.
    """

    format: str
    content: str
    tokens: int
    budget: int
    entries: tuple[str, ...]
    left_out: int
    revision: int
    etag: str | None
    duplicates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def messages(self) -> list[dict[str, str]]:
        """The block as chat messages: one of the system (a harness's: of the user), or none without content."""
        role = "user" if self.format == "harness" else "system"
        return [{"role": role, "content": self.content}] if self.content else []


@dataclass(frozen=True, slots=True)
class IndexView:
    """A router index as rows; `exists` is False (and the rest empty) when the tree has none."""

    path: str
    exists: bool
    preamble: str
    rows: tuple[IndexRow, ...]


@dataclass(frozen=True, slots=True)
class BatchResult:
    """One revision for all operations; each result is the answer of the single call, as it came."""

    revision: int
    results: tuple[Mapping[str, object], ...]


@dataclass(frozen=True, slots=True)
class OpaqueBlock:
    """A block that looks like an entry and can't be used as one; it is kept as it is."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """What an import did with one file.

    `outcome` is "created", "changed", "unchanged", "skipped" or "refused", which leaves the others alone.
    """

    path: str
    outcome: str
    reason: str
    entries: int
    opaque: tuple[OpaqueBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportedEntry:
    """What an import did with one entry that came by itself, not in a file."""

    entry_id: str
    path: str
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True)
class ImportDifference:
    """One thing in which a tree and an import differed; `entry_id` is empty where it isn't one entry.

    `differs` is "entry", "text", "retired", "superseded", "elsewhere", "added", "removed", "deleted" or "file", and
    `done` what became of it: "kept", "taken" or "both".
    """

    path: str
    entry_id: str
    differs: str
    done: str


@dataclass(frozen=True, slots=True)
class ImportReport:
    """An import in one revision; nothing was changed when `dry_run` is True.

    `more_differences` counts those that are not among the `differences`, of which there are at most 1,000.
    """

    revision: int
    dry_run: bool
    files: tuple[ImportedFile, ...]
    warnings: tuple[str, ...] = field(default=())
    entries: tuple[ImportedEntry, ...] = ()
    differences: tuple[ImportDifference, ...] = ()
    more_differences: int = 0


@dataclass(frozen=True, slots=True)
class Revision:
    """One committed change of a tree: who made it (a key, a member, a job or the system), when, and why."""

    number: int
    at: datetime
    actor_kind: str
    actor_id: str
    actor_name: str
    action: str
    message: str


@dataclass(frozen=True, slots=True)
class FileChange:
    """`action` is "created", "changed", "moved" (from `source`) or "deleted"."""

    path: str
    action: str
    source: str | None


@dataclass(frozen=True, slots=True)
class EntryChange:
    """`action` is "added", "changed", "superseded" or "removed"."""

    entry_id: str
    path: str
    action: str


@dataclass(frozen=True, slots=True)
class RevisionDetail:
    revision: Revision
    files: tuple[FileChange, ...]
    entries: tuple[EntryChange, ...]


@dataclass(frozen=True, slots=True)
class Hunk:
    """A run of lines that differ, with 1-based starts; each line with " ", "-" or "+" before it and its end."""

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileDiff:
    """How a file differs between two revisions; content that is no text has no hunks. `git apply` takes `unified`."""

    path: str
    action: str
    source: str | None
    unified: str
    hunks: tuple[Hunk, ...]
    old_sha256: str | None
    new_sha256: str | None


@dataclass(frozen=True, slots=True)
class BlamedLine:
    """A line, the revision that last changed it, and the entry that it belongs to."""

    line: int
    text: str
    revision: int
    entry_id: str | None


@dataclass(frozen=True, slots=True)
class Blame:
    """The lines of a text file; `revisions` has those that they name, by number."""

    path: str
    lines: tuple[BlamedLine, ...]
    revisions: Mapping[int, Revision]


@dataclass(frozen=True, slots=True)
class EntryVersion:
    """What an entry was from a revision on; `action` as of `EntryChange`, "moved", or "kept".

    "kept" is what it was in the oldest revision that can be read; how it came about is no longer known.
    """

    revision: Revision
    action: str
    path: str
    entry: MemoryEntry
    metadata: Metadata = NO_METADATA


@dataclass(frozen=True, slots=True)
class Restored(Told):
    """`paths` are the files that became what they were; none when they were that already."""

    revision: int
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UndoConflict:
    """A change that can't be taken back, and why."""

    revision: int
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Undone(Told):
    """`revision` is the one that undid, or the tree's current one after a dry run or when nothing was changed."""

    revision: int
    undone: tuple[int, ...]
    paths: tuple[str, ...]
    conflicts: tuple[UndoConflict, ...]
