"""What can go wrong with a tree, in words that a person or a model can act on.

Each error carries a stable `code`; `str(error)` says what was wrong. Texts that deepagents' middleware looks
for ("path_not_found", "String not found in file") are part of the contract of the backend protocol.
"""

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from memsvc.contract.history import UndoConflict
from memsvc.format import sendable


class TreeError(Exception):
    """Base of everything that a tree refuses."""

    code: ClassVar[str] = "tree_error"

    def __init__(self, *said: object) -> None:
        super().__init__(*(sendable(each) if isinstance(each, str) else each for each in said))


class NotFound(TreeError):
    """Nothing there, or nothing that the caller may know of."""

    code = "not_found"


class TreeNotFound(NotFound):
    code = "tree_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no tree named '{name}'.")
        self.name = name


class FileNotFound(NotFound):
    code = "file_not_found"

    def __init__(self, path: str) -> None:
        super().__init__(f"File '{path}' not found")
        self.path = path


class FolderNotFound(NotFound):
    code = "path_not_found"

    def __init__(self, path: str) -> None:
        super().__init__(f"Path '{path}': path_not_found")
        self.path = path


class EntryNotFound(NotFound):
    code = "entry_not_found"

    def __init__(self, entry_id: str) -> None:
        super().__init__(f"no memory entry with id '{entry_id}'")
        self.entry_id = entry_id


class RevisionNotFound(NotFound):
    code = "revision_not_found"

    def __init__(self, number: int, newest: int) -> None:
        super().__init__(f"There is no revision {number}; the newest is {newest}.")
        self.number = number
        self.newest = newest


class StoreNotFound(NotFound):
    code = "memory_store_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such memory store.")


class MemoryNotFound(NotFound):
    code = "memory_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such memory.")


class VersionNotFound(NotFound):
    code = "memory_version_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such version of a memory.")


class RevisionPruned(TreeError):
    """The revision was there, and the tenant keeps history no longer than since then."""

    code = "revision_pruned"

    def __init__(self, number: int, oldest: int) -> None:
        super().__init__(f"Revision {number} is no longer kept; the oldest that can be read is {oldest}.")
        self.number = number
        self.oldest = oldest


class IsFolder(TreeError):
    code = "is_directory"

    def __init__(self, path: str) -> None:
        super().__init__(f"'{path}' is a directory, not a file")
        self.path = path


class NotFolder(TreeError):
    code = "not_a_directory"

    def __init__(self, path: str) -> None:
        super().__init__(f"Path '{path}': not_a_directory")
        self.path = path


class Conflict(TreeError):
    """The tree is in a state in which this can't be done."""

    code = "conflict"


class PathTaken(Conflict):
    code = "path_taken"

    def __init__(self, path: str, by: str) -> None:
        super().__init__(f"'{path}' can't be made: {by}")
        self.path = path


class TreeArchived(Conflict):
    code = "tree_archived"

    def __init__(self, name: str) -> None:
        super().__init__(f"The tree '{name}' is archived: it can be read and cloned, but no longer changed.")
        self.name = name


class TreeExists(Conflict):
    code = "tree_exists"

    def __init__(self, name: str) -> None:
        super().__init__(f"There is already a tree named '{name}'.")
        self.name = name


class AlreadySuperseded(Conflict):
    code = "already_superseded"

    def __init__(self, entry_id: str, successor: str) -> None:
        super().__init__(
            f"memory entry '{entry_id}' was already superseded by '{successor}'; read that one and supersede it instead"
        )
        self.entry_id = entry_id
        self.successor = successor


class InvalidSupersession(Conflict):
    code = "invalid_supersession"


class MemoryPathConflict(Conflict):
    """A memory can't be at a path: one is there already, above it, or below it.

    Both names of the other one are empty where the caller may not know of it.
    """

    code = "memory_path_conflict"

    def __init__(self, path: str, *, conflicting_id: UUID | None, conflicting_path: str) -> None:
        other = f"'{conflicting_path}'" if conflicting_path else "another memory"
        super().__init__(
            f"'{path}' can't be a memory while there is {other}; delete or rename that one first"
        )
        self.conflicting_id = conflicting_id
        self.conflicting_path = conflicting_path


class MemoryPreconditionFailed(Conflict):
    code = "memory_precondition_failed"

    def __init__(self) -> None:
        super().__init__("The memory has changed since it was read; read it again and repeat the change")


class CurrentVersion(Conflict):
    """The content that a live memory has now can't be redacted."""

    code = "current_version"

    def __init__(self) -> None:
        super().__init__(
            "This is the current version of a memory; write a clean version or delete the memory, and redact then"
        )


class OutOfSight(Conflict):
    """What a version holds lies in another part of the tree by now, which its file was moved to."""

    code = "out_of_sight"

    def __init__(self) -> None:
        super().__init__(
            "What this version holds lies outside the part of the tree that is open here; use a key that sees it"
        )


class UndoRefused(Conflict):
    """Something has changed since in the same place, so nothing was undone; `conflicts` says what and where."""

    code = "undo_conflict"

    def __init__(self, conflicts: Sequence[UndoConflict]) -> None:
        first = conflicts[0]
        super().__init__(
            f"{len(conflicts)} changes can't be taken back, so nothing was; the first is revision {first.revision} of "
            f"'{first.path}': {first.reason}. Skip the conflicts to undo the rest."
        )
        self.conflicts = list(conflicts)


class PreconditionFailed(TreeError):
    """The file or entry is not in the state that the caller knew.

    `revision` is the tree's current one; `etag` validates the present content, or is None when nothing is there.
    """

    code = "precondition_failed"

    def __init__(self, what: str, *, revision: int, etag: str | None) -> None:
        super().__init__(f"{what} has changed since it was read; read it again and repeat the change")
        self.revision = revision
        self.etag = etag


class EditRefused(TreeError):
    """An exact replacement that could not be made; the texts are those that deepagents' models know."""

    code = "edit_refused"


class EmptyOldString(EditRefused):
    code = "empty_old_string"


class StringNotFound(EditRefused):
    code = "string_not_found"


class StringNotUnique(EditRefused):
    code = "string_not_unique"

    def __init__(self, text: str, occurrences: int) -> None:
        super().__init__(text)
        self.occurrences = occurrences


class NotText(EditRefused):
    code = "not_text"

    def __init__(self) -> None:
        super().__init__("Error: Cannot edit binary files with text replacements.")


class OffsetBeyondEnd(TreeError):
    code = "offset_beyond_end"

    def __init__(self, offset: int, total_lines: int) -> None:
        super().__init__(f"Line offset {offset} exceeds file length ({total_lines} lines)")
        self.offset = offset
        self.total_lines = total_lines


class TooLarge(TreeError):
    code = "too_large"


class RootRefused(TreeError):
    code = "root_refused"

    def __init__(self) -> None:
        super().__init__(
            "The root folder can't be deleted or moved; name the files or folders in it one by one."
        )


class FolderNeedsRecursive(TreeError):
    code = "folder_not_empty"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"'{path}' is a folder with files in it; ask for a recursive delete to remove them all"
        )
        self.path = path


class ReadOnly(TreeError):
    code = "read_only"

    def __init__(self) -> None:
        super().__init__("permission denied: this access may read memory but not change it")


class Forbidden(TreeError):
    code = "forbidden"

    def __init__(self, path: str, prefix: str) -> None:
        super().__init__(
            f"permission denied: '{path}' is outside '{prefix}', the part of the tree that is open here"
        )
        self.path = path


class Busy(TreeError):
    """Another writer held the tree's lock for too long; the same call may be repeated."""

    code = "busy"

    def __init__(self) -> None:
        super().__init__(
            "The memory is being written by someone else right now; nothing was changed, try again."
        )


class Unavailable(TreeError):
    """The database could not answer; the call may be repeated."""

    code = "unavailable"

    def __init__(self) -> None:
        super().__init__("The memory can't be reached right now; try again in a moment.")


class BatchFailed(TreeError):
    """One operation of a batch was refused, so none was made. `index` counts from 0; `cause` is its error."""

    code = "batch_failed"

    def __init__(self, index: int, cause: Exception) -> None:
        super().__init__(f"operation {index} was refused, so nothing was changed: {cause}")
        self.index = index
        self.cause = cause
