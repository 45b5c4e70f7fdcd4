"""Why an archive or a directory is not taken. Nothing of it is stored then."""

from collections.abc import Sequence

from memsvc.format import FormatError
from memsvc.tree.errors import TooLarge


class InvalidArchive(FormatError):
    """Not a zip archive, a damaged one, or one of a kind that is not taken."""

    code = "invalid_archive"


class ArchiveTooLarge(TooLarge):
    """More members or more bytes than an import takes."""


class ImportRefused(FormatError):
    """Some of the names or files can't be taken, so none was. `refused` says which and why: (name, reason)."""

    code = "import_refused"

    def __init__(self, refused: Sequence[tuple[str, str]]) -> None:
        name, reason = refused[0]
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        super().__init__(f"Nothing was imported: {name!r} {reason}{more}")
        self.refused = list(refused)
