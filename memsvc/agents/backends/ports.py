"""What the backend needs of a tree, wherever that is."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from memsvc.agents.transactional import EntrySearch
from memsvc.format import EntryDraft, IndexRow, MemoryHit, MemoryKind
from memsvc.format.problems import WarningLike

# A file to store: its place in what the agent sent, its path in the tree, and its content.
type Upload = tuple[int, str, bytes]


class ListedLike(Protocol):
    @property
    def path(self) -> str: ...
    @property
    def is_dir(self) -> bool: ...
    @property
    def size(self) -> int: ...
    @property
    def modified_at(self) -> datetime | None: ...


class MatchLike(Protocol):
    @property
    def path(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def text(self) -> str: ...


class PageLike(Protocol):
    @property
    def text(self) -> str: ...
    @property
    def binary(self) -> bytes | None: ...
    @property
    def total_lines(self) -> int | None: ...
    @property
    def start_line(self) -> int | None: ...
    @property
    def end_line(self) -> int | None: ...
    @property
    def next_offset(self) -> int | None: ...
    @property
    def no_lines_requested(self) -> bool: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def modified_at(self) -> datetime: ...


class EditedLike(Protocol):
    @property
    def occurrences(self) -> int: ...
    @property
    def warnings(self) -> Sequence[WarningLike]: ...


class Verdict(Protocol):
    """What became of one file of an upload: `error` is None, a code of the backend protocol, or a sentence."""

    @property
    def error(self) -> str | None: ...
    @property
    def warnings(self) -> Sequence[WarningLike]: ...


class Downloaded(Protocol):
    """One file of a download: exactly one of `content` and `error` is None."""

    @property
    def content(self) -> bytes | None: ...
    @property
    def error(self) -> str | None: ...


class Port(Protocol):
    """A tree by its canonical paths, of which those below one folder are served.

    What can't be done raises a `CodedError`. What fails for a passing reason was tried again, unless
    it might then be done twice.
    """

    @property
    def downloads_at_once(self) -> int: ...

    def list_folder(self, folder: str) -> Iterable[ListedLike]:
        """What lies right in a folder. The one that is served is there before its first file is."""
        ...

    def read_lines(self, path: str, offset: int, limit: int) -> PageLike: ...

    def read_file(self, path: str) -> bytes: ...

    def write_file(self, path: str, content: str) -> Sequence[WarningLike]: ...

    def edit_file(self, path: str, old: str, new: str, *, replace_all: bool) -> EditedLike: ...

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with all that is in it, also the one that is served."""
        ...

    def grep(
        self, pattern: str, folder: str, glob: str | None, max_count: int | None
    ) -> tuple[Iterable[MatchLike], bool]:
        """The lines that hold a text, and whether there are more."""
        ...

    def glob(self, pattern: str, folder: str) -> tuple[Iterable[ListedLike], bool]:
        """The files of that name, and whether the service left some out."""
        ...

    def upload_batches(self, files: Sequence[Upload]) -> Iterable[Sequence[Upload]]:
        """The files in order, as many at once as may be stored together."""
        ...

    def upload_files(self, files: Sequence[tuple[str, bytes]]) -> Sequence[Verdict]: ...

    def download_files(self, paths: Sequence[str]) -> Sequence[Downloaded]: ...

    def add_entry(self, draft: EntryDraft) -> MemoryHit: ...

    def get_entry(self, entry_id: str) -> MemoryHit: ...

    def search(
        self, wanted: EntrySearch, cursor: str | None, limit: int
    ) -> tuple[list[MemoryHit], str | None]:
        """A page of entries, and the cursor of the next one."""
        ...

    def read_index(self, kind: MemoryKind | None) -> tuple[str, list[IndexRow]]: ...

    def scaffold(self) -> list[str]: ...
