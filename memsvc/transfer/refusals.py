"""Why an archive or a directory is not taken. Nothing of it is stored then."""

from collections.abc import Mapping, Sequence
from typing import Final

from memsvc.contract.errors import ErrorCode
from memsvc.format import FormatError
from memsvc.tree.errors import TooLarge

MAX_SHOWN: Final = 100


class InvalidArchive(FormatError):
    """Not a zip archive, a damaged one, or one of a kind that is not taken."""

    code = ErrorCode.INVALID_ARCHIVE


class ArchiveTooLarge(TooLarge):
    """More members or more bytes than an import takes."""


class ImportRefused(FormatError):
    """Some of the names or files can't be taken, so none was. `refused` says which and why: (name, reason)."""

    code = ErrorCode.IMPORT_REFUSED

    def __init__(self, refused: Sequence[tuple[str, str]]) -> None:
        name, reason = refused[0]
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        super().__init__(f"Nothing was imported: {name!r} {reason}{more}")
        self.refused = list(refused)

    @property
    def members(self) -> Mapping[str, object]:
        shown = self.refused[:MAX_SHOWN]
        return {"errors": [{"field": name, "message": reason, "code": self.code} for name, reason in shown]}
