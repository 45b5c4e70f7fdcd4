"""What an import did, or would do, file by file."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from memsvc.contract.wire import Wire, one_of


class Outcome(StrEnum):
    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    REFUSED = "refused"


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
class OpaqueBlock:
    """A block with the shape of an entry that can't be used as one; it is kept. `line` counts from 1."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """What became of one file; `reason` is for those that were skipped or refused.

    `path` is the path in the tree, or the name in the archive where there is none.
    """

    path: str
    outcome: Annotated[str, one_of(*Outcome)]
    reason: str = ""
    entries: int = 0
    opaque: Sequence[OpaqueBlock] = ()


@dataclass(frozen=True, slots=True)
class ImportedEntry:
    """What became of one entry that came by itself, not in a file; `reason` is for those that were not taken."""

    entry_id: str
    path: str
    outcome: Annotated[str, one_of(*Outcome)]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ImportDifference:
    """One thing in which a tree and an import differed; `entry_id` is empty where it isn't one entry."""

    path: str
    entry_id: str
    differs: Annotated[str, one_of(*Differs)]
    done: Annotated[str, one_of(*Done)]


@dataclass(frozen=True, slots=True)
class Counts:
    """How many there were of each outcome."""

    created: int
    changed: int
    unchanged: int
    skipped: int
    refused: int


@dataclass(frozen=True, slots=True)
class ImportReport:
    """An import in one revision. After a dry run `revision` is the one that was looked at and nothing was changed.

    `differences` are between what the tree knew and what came, up to 1,000; `more_differences` counts the others.
    """

    revision: int
    dry_run: bool
    files: Sequence[ImportedFile]
    warnings: Sequence[str] = ()
    entries: Sequence[ImportedEntry] = ()
    differences: Sequence[ImportDifference] = ()
    more_differences: int = 0

    def count(self, outcome: Outcome) -> int:
        """How many files had this outcome."""
        return sum(file.outcome == outcome for file in self.files)

    def count_entries(self, outcome: Outcome) -> int:
        return sum(entry.outcome == outcome for entry in self.entries)

    @property
    def counts(self) -> Annotated[Counts, Wire.WRITTEN]:
        return Counts(**{outcome.value: self.count(outcome) for outcome in Outcome})

    @property
    def entry_counts(self) -> Annotated[Counts, Wire.WRITTEN]:
        return Counts(**{outcome.value: self.count_entries(outcome) for outcome in Outcome})
