"""Files as blocks whose concatenation is the file, byte for byte, and the edits that change only what they must."""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from memsvc.format.blocks import (
    MAX_TEXT_BLOCK,
    Block,
    BlockKind,
    blank_line_below,
    dominant_newline,
    text_blocks,
    text_pieces,
)
from memsvc.format.entries import (
    MAX_BODY_BYTES,
    MAX_ID_BYTES,
    MemoryEntry,
    UnusableEntry,
    read_entry,
)
from memsvc.format.fences import (
    BOM,
    SEPARATOR,
    EntrySpan,
    Fence,
    code_closing,
    entry_spans,
    structure,
    unterminated_at,
)
from memsvc.format.frontmatter import text_line
from memsvc.format.indexes import cut_index
from memsvc.format.paths import is_memory_file, is_router
from memsvc.format.refusals import InvalidEntry
from memsvc.format.text import checked_text, one_line

__all__ = [
    "MAX_TEXT_BLOCK",
    "Block",
    "BlockKind",
    "append_to",
    "appended",
    "code_end",
    "cut",
    "cut_file",
    "dominant_newline",
    "last_part",
    "superseded",
    "with_superseded",
]

_NONE_KNOWN: Mapping[bytes, BlockKind] = MappingProxyType({})


def cut(data: bytes) -> list[Block]:
    """Cut a memory file into free text and entries by the format's rule alone: an entry runs to the next one.

    `cut_file` says how a file is stored.
    """
    spans = entry_spans(data)
    preamble = data[: spans[0].start] if spans else data
    blocks = [Block(BlockKind.TEXT, preamble)] if preamble else []
    blocks += [_entry_block(data, span, span.start, span.end) for span in spans]
    return blocks


def cut_file(path: str, data: bytes, *, known: Mapping[bytes, BlockKind] = _NONE_KNOWN) -> list[Block]:
    """Cut a file into the blocks that it is stored as.

    Routers are cut into rows and text, memory files into entries and text, and every other file is text. In a
    memory file the blank lines right above an entry belong to its block, so that appending an entry leaves the
    block before alone. Text is cut at line ends into blocks of at most 64 KiB; a longer line is one block, and so
    is an unterminated frontmatter at the end of a text, up to 256 KiB. An entry with a body over 256 KiB is opaque.

    Blocks of entries whose bytes are in `known` are not read again: they have the kind that it says, and no entry.
    """
    if is_router(path):
        return cut_index(data)
    if is_memory_file(path):
        return _cut_memory_file(data, known)
    return text_blocks(data)


def append_to(last: bytes, entry_text: str, *, newline: str = "\n") -> bytes:
    """Return what to add to a file whose last stored block is `last`, so that `entry_text` is its next entry.

    `last` is b"" for a missing or empty file, and all of the free text where the file holds no entry. Added are what
    is missing of a line end and a blank line, the end of a code block or a comment line where an open code block or
    frontmatter would swallow the entry, and the entry with `newline` as its line ends. All of it is one stored block.
    (A line end and the `code_end` that `last` lacks a later cut of the whole file gives to the block before; blank
    lines that `last` ends with, it gives to the new one.)
    """
    return _gap_below(last, newline.encode()) + entry_text.replace("\n", newline).encode()


def appended(data: bytes, entry_text: str) -> bytes:
    """Return a whole memory file with an entry added at its end, in the file's own line ends."""
    return data + append_to(last_part(_cut_memory_file(data)), entry_text, newline=dominant_newline(data))


def last_part(blocks: Sequence[Block]) -> bytes:
    """Return the last entry of a file with its body, or all of the free text where it holds no entry."""
    if blocks and blocks[-1].kind is BlockKind.TEXT:
        return b"".join(block.raw for block in blocks)
    return blocks[-1].raw if blocks else b""


def code_end(part: bytes, *, newline: str = "\n") -> bytes:
    """Return what is missing at the end of an entry, or of free text, for no code block to be left open there."""
    fence = code_closing(part)
    line_end = newline.encode()
    return _missing_line_end(part, line_end) + fence + line_end if fence else b""


def _missing_line_end(part: bytes, line_end: bytes) -> bytes:
    if part.endswith(b"\n"):
        return b""
    # A lone "\r" at the very end is content; a bare "\n" would make it a part of the line end.
    return b"\r\n" if part.endswith(b"\r") else line_end


def superseded(raw: bytes, by: str) -> bytes:
    """Return an entry's block, or its head up to `meta_end`, as superseded by the entry with the id `by`.

    One line is added, `superseded_by: <by>`: below `supersedes`, else below the tags, else above the summary, else
    above the second fence; it takes the line end of the line above it. An empty `superseded_by` is filled in place.
    Raises `InvalidEntry` where the block is no usable entry, or is superseded already.
    """
    # What was stored when an indented `---` still closed a frontmatter has to be shown as it was.
    spans = entry_spans(raw) or entry_spans(raw, closed_by_indented=True)
    if not spans:
        raise InvalidEntry("the block is no entry; only entries can be superseded")
    head = _Head(raw, spans[0])
    by = _checked_id(by)
    expected = head.read().replaced_by(by)
    if head.is_usual:
        return head.with_line(by, head.places()[0])
    candidates = [head.filled(by)] if head.has_key(b"superseded_by") else []
    candidates += [head.with_line(by, place) for place in head.places()]
    for changed in candidates:
        if changed is not None and _reads_as(changed, expected):
            return changed
    raise InvalidEntry(
        f"the frontmatter of {expected.entry_id} takes no 'superseded_by' line; repair it by hand"
    )


def with_superseded(data: bytes, entry_id: str, by: str) -> bytes:
    """Return a whole memory file in which the first entry with this id is superseded by the entry `by`.

    Raises `InvalidEntry` where the file has no such entry, or it is superseded already.
    """
    position = 0
    for block in cut(data):
        if block.entry is not None and block.entry.entry_id == entry_id:
            return data[:position] + superseded(block.raw, by) + data[position + len(block.raw) :]
        position += len(block.raw)
    raise InvalidEntry(f"the file holds no entry {entry_id}")


# --- cutting -----------------------------------------------------------------------------------------------------


def _cut_memory_file(data: bytes, known: Mapping[bytes, BlockKind] = _NONE_KNOWN) -> list[Block]:
    found = structure(data)
    spans = found.spans
    starts = _stored_starts(data, spans)
    ends = [*starts[1:], len(data)]
    pieces = _free_text_pieces(data[: starts[0]]) if starts else _pieces_above(data, found.unterminated)
    blocks = [Block(BlockKind.TEXT, piece) for piece in pieces]
    blocks += [
        _known_block(data, span, start, end, known) or _limited(_entry_block(data, span, start, end))
        for span, start, end in zip(spans, starts, ends, strict=False)
    ]
    return blocks


def _known_block(
    data: bytes, span: EntrySpan, start: int, end: int, known: Mapping[bytes, BlockKind]
) -> Block | None:
    raw = data[start:end]
    kind = known.get(raw)
    return None if kind is None else Block(kind, raw, span.meta_end - start)


def _stored_starts(data: bytes, spans: list[EntrySpan]) -> list[int]:
    """Where each entry's stored block begins: with the blank lines above it, and the separator if there is one."""
    starts: list[int] = []
    above_from = 0
    floor = len(BOM) if data.startswith(BOM) else 0
    for span in spans:
        start = _end_of_content(data, floor, span.start)
        separator = data.rfind(b"\n", floor, max(floor, start - 1)) + 1 or floor
        if data[separator:start].rstrip(b"\r\n") == SEPARATOR:
            above = data[above_from:separator]
            last = above if starts else _last_piece(above)
            if unterminated_at(last) is not None:
                start = _end_of_content(data, floor, separator)
        starts.append(start)
        above_from, floor = start, span.meta_end
    return starts


def _end_of_content(data: bytes, floor: int, end: int) -> int:
    """The offset below the last line, in the lines from `floor` to `end`, that isn't blank."""
    content = floor + len(data[floor:end].rstrip(b" \t\r\n"))
    return floor if content == floor else data.index(b"\n", content) + 1


def _free_text_pieces(data: bytes) -> Iterator[bytes]:
    return _pieces_above(data, structure(data).unterminated if len(data) > MAX_TEXT_BLOCK else None)


def _pieces_above(data: bytes, unterminated: Fence | None) -> Iterator[bytes]:
    # An unterminated frontmatter stays in one piece, for `append_to` to see that it would swallow an entry.
    if unterminated is None or len(data) <= MAX_TEXT_BLOCK or len(data) - unterminated.start > MAX_BODY_BYTES:
        yield from text_pieces(data)
    else:
        yield from text_pieces(data[: unterminated.start])
        yield data[unterminated.start :]


def _last_piece(data: bytes) -> bytes:
    return [b"", *_free_text_pieces(data)][-1]


def _entry_block(data: bytes, span: EntrySpan, start: int, end: int) -> Block:
    raw, meta_end = data[start:end], span.meta_end - start
    try:
        entry, extra = read_entry(data[span.frontmatter_start : span.frontmatter_end], raw[meta_end:])
    except UnusableEntry as error:
        return Block(BlockKind.OPAQUE, raw, meta_end, reason=str(error))
    return Block(BlockKind.ENTRY, raw, meta_end, entry, extra)


def _limited(block: Block) -> Block:
    if block.entry is None or len(block.raw) <= MAX_BODY_BYTES or _fits(block.entry.body):
        return block
    return Block(BlockKind.OPAQUE, block.raw, block.meta_end, reason="body over 256 KiB")


def _fits(body: str) -> bool:
    return len(body.encode()) <= MAX_BODY_BYTES


# --- appending ---------------------------------------------------------------------------------------------------


def _gap_below(last: bytes, line_end: bytes) -> bytes:
    if closing := code_end(last, newline=line_end.decode()):
        return closing + line_end
    gap = blank_line_below(last, line_end)
    return gap if unterminated_at(last) is None else gap + SEPARATOR + 2 * line_end


# --- superseding -------------------------------------------------------------------------------------------------

_KEY = re.compile(rb"(supersedes|superseded_by|tags|summary)[ \t]*:(?=[ \t\r\n])")
_EMPTY_VALUE = re.compile(
    rb"(superseded_by[ \t]*:)(?:[ \t]+(?:~|null|Null|NULL|''|\"\"))?(?=[ \t]*(?:[ \t]#.*)?\r?\n\Z)"
)
# Lines that hold one value each, so that a line between any two of them is a key of its own.
_USUAL = re.compile(
    rb"(?:(?!superseded_by:)[a-z_]+: (?:[A-Za-z0-9][^\r\n]*|\[[^\r\n\[\]{}\"']*\]|\"[^\r\n\"\\]*\")\r?\n)*+"
)


class _Head:
    """The frontmatter at the start of an entry's block, line by line."""

    def __init__(self, raw: bytes, span: EntrySpan) -> None:
        self._raw = raw
        self._span = span
        self._frontmatter = raw[span.frontmatter_start : span.frontmatter_end]
        self._lines = self._frontmatter.split(b"\n")[:-1]
        self._keys = [m[1] if (m := _KEY.match(line + b"\n")) else b"" for line in self._lines]

    @property
    def is_usual(self) -> bool:
        return _USUAL.fullmatch(self._frontmatter) is not None

    def has_key(self, key: bytes) -> bool:
        return key in self._keys

    def read(self) -> MemoryEntry:
        """The entry, without its body. Raises `InvalidEntry` where it is unusable, or superseded already."""
        try:
            entry, _ = read_entry(self._frontmatter, b"")
        except UnusableEntry as error:
            raise InvalidEntry(
                f"the block is no usable entry ({error}); repair its frontmatter first"
            ) from None
        if entry.superseded_by is not None:
            raise InvalidEntry(f"{entry.entry_id} is superseded by {entry.superseded_by} already")
        return entry

    def places(self) -> list[int]:
        """The numbers of the lines that `superseded_by` may be put above, the best one first."""
        above_it = [key for key in (b"supersedes", b"tags") if key in self._keys]
        places = [self._below_value(self._keys.index(key)) for key in above_it]
        if b"summary" in self._keys:
            places.append(self._keys.index(b"summary"))
        return [*places, len(self._lines)]

    def with_line(self, by: str, place: int) -> bytes:
        """The block with a new line above the frontmatter's line `place`."""
        at = self._span.frontmatter_start + sum(len(line) + 1 for line in self._lines[:place])
        line_end = b"\r\n" if self._raw.endswith(b"\r\n", 0, at) else b"\n"
        return self._raw[:at] + text_line("superseded_by", by).encode() + line_end + self._raw[at:]

    def filled(self, by: str) -> bytes | None:
        """The block with the empty `superseded_by` line filled in; None where that line isn't empty."""
        last = len(self._keys) - 1 - self._keys[::-1].index(b"superseded_by")
        at = self._span.frontmatter_start + sum(len(line) + 1 for line in self._lines[:last])
        line = self._lines[last] + b"\n"
        match = _EMPTY_VALUE.match(line)
        if match is None:
            return None
        value = text_line("superseded_by", by).encode().removeprefix(b"superseded_by:")
        return self._raw[:at] + match[1] + value + line[match.end() :] + self._raw[at + len(line) :]

    def _below_value(self, number: int) -> int:
        """The line below a key's line and the lines that continue its value."""
        below = number + 1
        for i in range(number + 1, len(self._lines)):
            line = self._lines[i]
            if (
                (line[:1] in (b" ", b"\t") and line.strip())
                or line.startswith(b"- ")
                or line.rstrip() == b"-"
            ):
                below = i + 1
            elif line.strip() and not line.startswith(b"#"):
                break
        return below


def _reads_as(raw: bytes, expected: MemoryEntry) -> bool:
    spans = entry_spans(raw) or entry_spans(raw, closed_by_indented=True)
    if len(spans) != 1:
        return False
    span = spans[0]
    try:
        entry, _ = read_entry(raw[span.frontmatter_start : span.frontmatter_end], b"")
    except UnusableEntry:
        return False
    return entry == expected


def _checked_id(by: str) -> str:
    checked = one_line(checked_text(by, field="superseded_by", max_bytes=MAX_ID_BYTES))
    if not checked:
        raise InvalidEntry("superseded_by must not be empty")
    return checked
