"""Pages of lists, files as readers have them, and what is answered to who changes them.

Sizes are bytes as a reader gets them; lines are those of `format.text_lines`; times are aware and in UTC.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from memsvc.contract.wire import Note, Wire, one_of

ETag = Annotated[str | None, Wire.UNSENT]


@dataclass(frozen=True, slots=True)
class Items[Item]:
    """All of a list."""

    items: Sequence[Item]


@dataclass(frozen=True, slots=True)
class Page[Item]:
    """One page of a list; `next` is the cursor of the page after it, or None."""

    items: Sequence[Item]
    next: Annotated[str, Note("The `cursor` of the next page; null after the last one.")] | None


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
class FoundFiles(Page[Listed]):
    """Files by path; `truncated` when there are more than the service was willing to look for."""

    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """A window of a text file's lines with `\\n` line ends, or the whole of a file that is no text, in base64.

    `start_line`, `end_line` and `total_lines` are None for blank content, for binary content and when no lines were
    asked for. `next_offset` is None at the end of the file.
    """

    path: str
    content: str
    encoding: Annotated[str, one_of("utf-8", "base64")]
    total_lines: int | None
    start_line: int | None
    end_line: int | None
    next_offset: int | None
    no_lines_requested: bool
    size: int
    created_at: datetime
    modified_at: datetime
    revision: int
    etag: ETag = None

    @property
    def text(self) -> str:
        return self.content if self.encoding == "utf-8" else ""

    @property
    def binary(self) -> bytes | None:
        return base64.b64decode(self.content) if self.encoding == "base64" else None


@dataclass(frozen=True, slots=True)
class FileBytes:
    """A whole file, byte for byte; `etag` goes into `if_match` of the next change."""

    path: str
    data: bytes
    etag: str | None


@dataclass(frozen=True, slots=True)
class Match:
    """A line that holds the pattern; `line` counts from 1, `text` has no line end."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Matches:
    items: Sequence[Match]
    truncated: bool


@dataclass(frozen=True, slots=True)
class Downloaded:
    """One file of a download: exactly one of `content` and `error` is None."""

    path: str
    content: bytes | None
    error: str | None


# What changes are answered with


@dataclass(frozen=True, slots=True)
class WriteWarning:
    """What a write left in a file that looks like an entry and can't be found, what was mended, or a key in it.

    `line` counts from 1; `code` is stable, `reason` says what is wrong and what to do.
    """

    path: str
    line: int
    code: str
    reason: str


def warnings_text(warnings: Sequence[WriteWarning]) -> str:
    """Warnings for a model, a line for each."""
    return "\n".join(f"- line {each.line}: {each.reason}" for each in warnings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The answer of a write, with what its writer has to know."""

    warnings: Annotated[
        Sequence[WriteWarning],
        Note("What looks like an entry and can't be found, or was mended; act on `code`, show `reason`."),
    ] = ()


@dataclass(frozen=True, slots=True)
class Written(Told):
    """`changed` is False when the file already held exactly this; `revision` is then the tree's current one."""

    path: str
    revision: int
    created: bool
    changed: bool
    size: int
    etag: ETag = None


@dataclass(frozen=True, slots=True)
class Edited(Told):
    """`occurrences` counts the replacements; 0 for an append."""

    path: str
    revision: int
    occurrences: int
    size: int
    etag: ETag = None


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
    """The verdict on one file of an upload: `error` is None, a code of the backend protocol, or a sentence."""

    path: str
    error: str | None


@dataclass(frozen=True, slots=True)
class BatchResult[Result]:
    """One revision for all operations; each result is the answer of the single call."""

    revision: int
    results: Sequence[Result]
