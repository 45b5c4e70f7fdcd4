"""What happened in a tree: its revisions, and what they did to files, lines and entries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from memsvc.contract.entries import SentMetadata
from memsvc.contract.files import Told
from memsvc.contract.wire import Inside, Named, Wire, one_of
from memsvc.format.entries import MemoryEntry


@dataclass(frozen=True, slots=True)
class RevisionRead:
    """One committed change of a tree: who made it (a key, a member, a job or the system), when, and why."""

    number: int
    at: datetime
    actor_kind: Annotated[str, Inside("actor"), Named("kind")]
    actor_id: Annotated[str, Inside("actor"), Named("id")]
    actor_name: Annotated[str, Inside("actor"), Named("name")]
    action: str
    message: str


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a revision did to a file.

    `path` is where the file stood afterwards (before, for a deleted one), `source` where a moved one came from.
    """

    path: str
    action: Annotated[str, one_of("created", "changed", "moved", "deleted")]
    source: str | None = None


@dataclass(frozen=True, slots=True)
class EntryChange:
    """What a revision did to an entry."""

    entry_id: Annotated[str, Named("id")]
    path: str
    action: Annotated[str, one_of("added", "changed", "superseded", "removed")]


@dataclass(frozen=True, slots=True)
class RevisionDetail:
    """A revision with all that it changed, files and entries in path order."""

    revision: Annotated[RevisionRead, Wire.FLAT]
    files: Sequence[FileChange]
    entries: Sequence[EntryChange]


@dataclass(frozen=True, slots=True)
class Hunk:
    """A run of lines that differ, as in a unified diff: 1-based starts; each line with " ", "-" or "+" and its end.

    Only "\\n" ends a line here.
    """

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class FileDiff:
    """How a file differs between two revisions: `action` and `source` as of `FileChange`.

    `unified` is a diff that `git apply` takes. Content that is no text has no hunks; the digests say that it differs.
    """

    path: str
    action: Annotated[str, one_of("created", "changed", "moved", "deleted")]
    source: str | None
    unified: str
    hunks: Sequence[Hunk]
    old_sha256: str | None
    new_sha256: str | None


@dataclass(frozen=True, slots=True)
class BlamedLine:
    """A line as `read_lines` shows it, the revision that last changed it, and the entry that it belongs to."""

    line: int
    text: str
    revision: int
    entry_id: str | None


@dataclass(frozen=True, slots=True)
class Blame:
    """The lines of a text file; `revisions` has those that they name, by number."""

    path: str
    lines: Sequence[BlamedLine]
    revisions: Mapping[int, RevisionRead]


@dataclass(frozen=True, slots=True)
class EntryVersion:
    """One state in an entry's life: from `revision` on it was this.

    "removed" is the entry as it was last; "kept" what it was in the oldest revision that can be read: how it came about
    is no longer known.
    """

    revision: RevisionRead
    action: Annotated[str, one_of("kept", "added", "changed", "superseded", "moved", "removed")]
    path: str
    entry: Annotated[MemoryEntry, Inside("entry"), Wire.FLAT]
    metadata: Annotated[SentMetadata, Inside("entry")]


@dataclass(frozen=True, slots=True)
class Restored(Told):
    """`paths` are the files that became what they were; none when they were that already."""

    revision: int
    paths: Sequence[str]


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
    undone: Sequence[int]
    paths: Sequence[str]
    conflicts: Sequence[UndoConflict]
