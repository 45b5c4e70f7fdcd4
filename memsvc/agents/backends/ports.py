"""What the backend needs of a tree, wherever that is."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from memsvc.agents.transactional import EntrySearch
from memsvc.contract.files import Downloaded, Edited, Listed, Match, Uploaded, Window, WriteWarning
from memsvc.format import EntryDraft, IndexRow, MemoryHit, MemoryKind

# A file to store: its place in what the agent sent, its path in the tree, and its content.
type Upload = tuple[int, str, bytes]


class Port(Protocol):
    """A tree by its canonical paths, of which those below one folder are served.

    What can't be done raises a `CodedError`. What fails for a passing reason was tried again, unless
    it might then be done twice.
    """

    @property
    def downloads_at_once(self) -> int: ...

    def list_folder(self, folder: str) -> Iterable[Listed]:
        """What lies right in a folder. The one that is served is there before its first file is."""
        ...

    def read_lines(self, path: str, offset: int, limit: int) -> Window: ...

    def read_file(self, path: str) -> bytes: ...

    def write_file(self, path: str, content: str) -> Sequence[WriteWarning]: ...

    def edit_file(self, path: str, old: str, new: str, *, replace_all: bool) -> Edited: ...

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with all that is in it, also the one that is served."""
        ...

    def grep(
        self, pattern: str, folder: str, glob: str | None, max_count: int | None
    ) -> tuple[Iterable[Match], bool]:
        """The lines that hold a text, and whether there are more."""
        ...

    def glob(self, pattern: str, folder: str) -> tuple[Iterable[Listed], bool]:
        """The files of that name, and whether the service left some out."""
        ...

    def upload_batches(self, files: Sequence[Upload]) -> Iterable[Sequence[Upload]]:
        """The files in order, as many at once as may be stored together."""
        ...

    def upload_files(self, files: Sequence[tuple[str, bytes]]) -> Sequence[Uploaded]: ...

    def download_files(self, paths: Sequence[str]) -> Sequence[Downloaded]: ...

    def add_entry(self, draft: EntryDraft) -> MemoryHit: ...

    def get_entry(self, entry_id: str) -> MemoryHit: ...

    def search(
        self, wanted: EntrySearch, cursor: str | None, limit: int
    ) -> tuple[list[MemoryHit], str | None]:
        """A page of entries, and the cursor of the next one."""
        ...

    def read_index(self, kind: MemoryKind | None) -> tuple[str, Sequence[IndexRow]]: ...

    def scaffold(self) -> list[str]: ...
