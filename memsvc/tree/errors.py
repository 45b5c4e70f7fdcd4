"""What can go wrong with a tree, in words that a person or a model can act on.

What each code means at the doors, and the texts that are always the same, are rows of memsvc/contract/errors.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from uuid import UUID

from memsvc.contract.errors import ErrorCode, Refused
from memsvc.contract.history import UndoConflict
from memsvc.format import CodedError


class TreeError(Refused):
    """Base of everything that a tree refuses."""


class AtPath(TreeError):
    """What is or isn't at a path, in the words that models know."""

    def __init__(self, path: str) -> None:
        super().__init__(self.code.sentence.format(path=path))
        self.path = path


class NotFound(TreeError):
    """Nothing there, or nothing that the caller may know of."""


class TreeNotFound(NotFound):
    code = ErrorCode.TREE_NOT_FOUND

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no tree named '{name}'.")


class FileNotFound(AtPath, NotFound):
    code = ErrorCode.FILE_NOT_FOUND


class FolderNotFound(AtPath, NotFound):
    code = ErrorCode.PATH_NOT_FOUND


class EntryNotFound(NotFound):
    code = ErrorCode.ENTRY_NOT_FOUND

    def __init__(self, entry_id: str) -> None:
        super().__init__(f"no memory entry with id '{entry_id}'")
        self.entry_id = entry_id


class RevisionNotFound(NotFound):
    code = ErrorCode.REVISION_NOT_FOUND

    def __init__(self, number: int, newest: int) -> None:
        super().__init__(f"There is no revision {number}; the newest is {newest}.")
        self.number = number
        self.newest = newest


class StoreNotFound(NotFound):
    code = ErrorCode.MEMORY_STORE_NOT_FOUND


class MemoryNotFound(NotFound):
    code = ErrorCode.MEMORY_NOT_FOUND


class VersionNotFound(NotFound):
    code = ErrorCode.MEMORY_VERSION_NOT_FOUND


class RevisionPruned(TreeError):
    """The revision was there, and the tenant keeps history no longer than since then."""

    code = ErrorCode.REVISION_PRUNED

    def __init__(self, number: int, oldest: int) -> None:
        super().__init__(f"Revision {number} is no longer kept; the oldest that can be read is {oldest}.")
        self.number = number
        self.oldest = oldest


class NothingToErase(NotFound):
    code = ErrorCode.NOTHING_TO_ERASE

    def __init__(self, kind: str) -> None:
        super().__init__(f"The tree holds, and held, nothing of this {kind}.")


class IsFolder(AtPath):
    code = ErrorCode.IS_DIRECTORY


class NotFolder(AtPath):
    code = ErrorCode.NOT_A_DIRECTORY


class Conflict(TreeError):
    """The tree is in a state in which this can't be done."""


class PathTaken(Conflict):
    code = ErrorCode.PATH_TAKEN

    def __init__(self, path: str, by: str) -> None:
        super().__init__(f"'{path}' can't be made: {by}")
        self.path = path


class TreeArchived(Conflict):
    code = ErrorCode.TREE_ARCHIVED

    def __init__(self, name: str) -> None:
        super().__init__(f"The tree '{name}' is archived: it can be read and cloned, but no longer changed.")


class TreeExists(Conflict):
    code = ErrorCode.TREE_EXISTS

    def __init__(self, name: str) -> None:
        super().__init__(f"There is already a tree named '{name}'.")


class AlreadySuperseded(Conflict):
    code = ErrorCode.ALREADY_SUPERSEDED

    def __init__(self, entry_id: str, successor: str) -> None:
        super().__init__(
            f"memory entry '{entry_id}' was already superseded by '{successor}'; read that one and supersede it instead"
        )
        self.entry_id = entry_id
        self.successor = successor


class InvalidSupersession(Conflict):
    code = ErrorCode.INVALID_SUPERSESSION


class MemoryPathConflict(Conflict):
    """A memory can't be at a path: one is there already, above it, or below it.

    Both names of the other one are empty where the caller may not know of it.
    """

    code = ErrorCode.MEMORY_PATH_CONFLICT

    def __init__(self, path: str, *, conflicting_id: UUID | None, conflicting_path: str) -> None:
        other = f"'{conflicting_path}'" if conflicting_path else "another memory"
        super().__init__(
            f"'{path}' can't be a memory while there is {other}; delete or rename that one first"
        )
        self.conflicting_id = conflicting_id
        self.conflicting_path = conflicting_path


class MemoryPreconditionFailed(Conflict):
    code = ErrorCode.MEMORY_PRECONDITION_FAILED


class CurrentVersion(Conflict):
    """The content that a live memory has now can't be redacted."""

    code = ErrorCode.CURRENT_VERSION


class OutOfSight(Conflict):
    """What a version holds lies in another part of the tree by now, which its file was moved to."""

    code = ErrorCode.OUT_OF_SIGHT


class UndoRefused(Conflict):
    """Something has changed since in the same place, so nothing was undone; `conflicts` says what and where."""

    code = ErrorCode.UNDO_CONFLICT

    def __init__(self, conflicts: Sequence[UndoConflict]) -> None:
        first = conflicts[0]
        super().__init__(
            f"{len(conflicts)} changes can't be taken back, so nothing was; the first is revision {first.revision} of "
            f"'{first.path}': {first.reason}. Skip the conflicts to undo the rest."
        )
        self.conflicts = list(conflicts)

    @property
    def members(self) -> Mapping[str, object]:
        return {"conflicts": [asdict(conflict) for conflict in self.conflicts]}


class PreconditionFailed(TreeError):
    """The file or entry is not in the state that the caller knew.

    `revision` is the tree's current one; `etag` validates the present content, or is None when nothing is there.
    """

    code = ErrorCode.PRECONDITION_FAILED

    def __init__(self, what: str, *, revision: int, etag: str | None) -> None:
        super().__init__(f"{what} has changed since it was read; read it again and repeat the change")
        self.revision = revision
        self.etag = etag


class EditRefused(TreeError):
    """An exact replacement that could not be made; the texts are those that deepagents' models know."""


class EmptyOldString(EditRefused):
    code = ErrorCode.EMPTY_OLD_STRING


class StringNotFound(EditRefused):
    code = ErrorCode.STRING_NOT_FOUND


class StringNotUnique(EditRefused):
    code = ErrorCode.STRING_NOT_UNIQUE

    def __init__(self, text: str, occurrences: int) -> None:
        super().__init__(text)
        self.occurrences = occurrences


class NotText(EditRefused):
    code = ErrorCode.NOT_TEXT


class OffsetBeyondEnd(TreeError):
    code = ErrorCode.OFFSET_BEYOND_END

    def __init__(self, offset: int, total_lines: int) -> None:
        super().__init__(f"Line offset {offset} exceeds file length ({total_lines} lines)")
        self.offset = offset
        self.total_lines = total_lines


class TooLarge(TreeError):
    code = ErrorCode.TOO_LARGE


class RootRefused(TreeError):
    code = ErrorCode.ROOT_REFUSED


class FolderNeedsRecursive(TreeError):
    code = ErrorCode.FOLDER_NOT_EMPTY

    def __init__(self, path: str) -> None:
        super().__init__(
            f"'{path}' is a folder with files in it; ask for a recursive delete to remove them all"
        )
        self.path = path


class ReadOnly(TreeError):
    code = ErrorCode.READ_ONLY


class Forbidden(TreeError):
    code = ErrorCode.FORBIDDEN

    def __init__(self, path: str, prefix: str) -> None:
        super().__init__(
            f"permission denied: '{path}' is outside '{prefix}', the part of the tree that is open here"
        )
        self.path = path


class Busy(TreeError):
    """Another writer held the tree's lock for too long; the same call may be repeated."""

    code = ErrorCode.BUSY


class Unavailable(TreeError):
    """The database could not answer; the call may be repeated."""

    code = ErrorCode.UNAVAILABLE


class BatchFailed(TreeError):
    """One operation of a batch was refused, so none was made. `index` counts from 0; `cause` is its error."""

    code = ErrorCode.BATCH_FAILED

    def __init__(self, index: int, cause: CodedError) -> None:
        super().__init__(f"operation {index} was refused, so nothing was changed: {cause}")
        self.index = index
        self.cause = cause
