"""The blocks that a file is made of."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from memsvc.format.entries import NO_METADATA, MemoryEntry
from memsvc.format.frontmatter import Value

MAX_TEXT_BLOCK = 64 * 1024


class BlockKind(StrEnum):
    """What a run of a file's bytes is."""

    TEXT = "text"
    ENTRY = "entry"
    OPAQUE = "opaque"  # shaped like an entry, but unusable as one
    ROW = "row"  # a line of a router's table


@dataclass(frozen=True, slots=True)
class Block:
    """A run of a file's bytes.

    For entries and opaque blocks `meta_end` is the offset in `raw` just after the second fence's line, where the
    body begins; `extra` holds an entry's keys that the format doesn't know; `reason` says why an opaque block is no
    entry.
    """

    kind: BlockKind
    raw: bytes
    meta_end: int = 0
    entry: MemoryEntry | None = None
    extra: Mapping[str, Value] = NO_METADATA
    reason: str = ""


def text_blocks(data: bytes) -> list[Block]:
    """Cut free text into blocks of at most 64 KiB at line ends; a longer line is one block."""
    return [Block(BlockKind.TEXT, piece) for piece in text_pieces(data)]


def text_pieces(data: bytes) -> Iterator[bytes]:
    """Cut bytes into runs of at most 64 KiB at line ends; a longer line is one run."""
    start = 0
    while start < len(data):
        limit, end = start + MAX_TEXT_BLOCK, len(data)
        if limit < end:
            end = data.rfind(b"\n", start, limit) + 1 or data.find(b"\n", limit) + 1 or end
        yield data[start:end]
        start = end


def dominant_newline(data: bytes) -> str:
    """Return the line end that most lines have, "\\r\\n" or "\\n"."""
    return "\r\n" if 2 * data.count(b"\r\n") > data.count(b"\n") else "\n"


def blank_line_below(last: bytes, line_end: bytes) -> bytes:
    """Return what is missing of a line end and a blank line after `last`; nothing at the start of a file."""
    if not last:
        return b""
    gap = b""
    if not last.endswith(b"\n"):
        # A lone "\r" at the very end is content; a bare "\n" would make it a part of the line end.
        gap = b"\r\n" if last.endswith(b"\r") else line_end
    last_line = last.removesuffix(b"\n").rpartition(b"\n")[2]
    if last_line.strip(b" \t\r"):
        gap += line_end
    return gap
