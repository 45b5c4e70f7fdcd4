"""Blocks of the file format as rows, and rows as the bytes of a file."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from memsvc.format import Block as CutBlock
from memsvc.format import (
    BlockKind,
    Confidence,
    MemoryCategory,
    MemoryEntry,
    count_lines,
    metadata_of,
    parse_row,
    superseded,
)
from memsvc.format.blocks import text_pieces
from memsvc.format.entries import trimmed_body
from memsvc.format.fences import BOM
from memsvc.format.terms import search_text, tag_keys
from memsvc.tree.models import Block, EntryRow, File
from memsvc.tree.visibility import is_active


def row_of(block: CutBlock, file: File, *, position: int, revision: int, first: bool = False) -> Block:
    """A block as an unsaved row of `file`; `first` where the file begins with it."""
    head, text, raw = _as_text(block)
    row = Block(
        tenant_id=file.tenant_id,
        tree_id=file.tree_id,
        file_id=file.pk,
        position=position,
        added_in=revision,
        kind=block.kind,
        head=head,
        text=text,
        raw=raw,
        size=len(block.raw),
        # Alone above the first entry, a byte order mark is the one block that doesn't end a line.
        lines=0 if first and block.raw == BOM else count_lines(head + text),
        reason=block.reason,
    )
    if block.kind == BlockKind.ROW and (index_row := parse_row(block.raw)):
        row.row_path = index_row.path
    if (entry := block.entry) is not None:
        row.entry_id = entry.entry_id
        row.category = entry.category
        row.created = entry.created
        row.source = entry.source
        row.confidence = entry.confidence
        row.summary = entry.summary
        row.tags = list(entry.tags)
        row.tag_keys = tag_keys(entry.tags)
        row.supersedes = entry.supersedes or ""
        row.superseded_by = entry.superseded_by or ""
        row.metadata = metadata_of(block.extra)
        row.search_text = search_text(entry)
    return row


def _as_text(block: CutBlock) -> tuple[str, str, bytes | None]:
    head, text = block.raw[: block.meta_end], block.raw[block.meta_end :]
    if b"\0" not in block.raw:
        try:
            return head.decode(), text.decode(), None
        except UnicodeDecodeError:
            pass
    return legible(head), legible(text), block.raw


def legible(data: bytes) -> str:
    """What can't be kept as text, as well as text can show it."""
    return data.decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


# What `rendered` looks at.
RENDERED = ("head", "text", "raw", "superseded_by", "superseded_in", "spliced")


def is_spliced(row: Block, revision: int | None = None) -> bool:
    """Whether `superseded_by` has to be added to the text to show the row as of `revision`."""
    return (
        row.superseded_in is not None
        and row.spliced > 0
        and (revision is None or row.superseded_in <= revision)
    )


def stored(row: Block) -> bytes:
    """The bytes of a block as they were written."""
    return bytes(row.raw) if row.raw is not None else (row.head + row.text).encode()


def rendered(row: Block, revision: int | None = None) -> bytes:
    """The bytes of a block as of a revision, with the line that says so where it was superseded."""
    if not is_spliced(row, revision):
        return stored(row)
    if row.raw is not None:
        return superseded(bytes(row.raw), row.superseded_by)
    return superseded(row.head.encode(), row.superseded_by) + row.text.encode()


def content(rows: Iterable[Block], revision: int | None = None) -> bytes:
    return b"".join(rendered(row, revision) for row in rows)


def entry_of(row: Block | EntryRow, revision: int | None = None) -> MemoryEntry:
    """The entry that a block holds, as of a revision."""
    return MemoryEntry(
        entry_id=row.entry_id,
        # The rows of a migration have fields only, and those before it came have no `claimed`.
        created=getattr(row, "claimed", None) or row.created,  # type: ignore[arg-type]  # every entry has one
        category=MemoryCategory(row.category),
        body=trimmed_body(row.text),
        summary=row.summary,
        source=row.source,
        confidence=Confidence(row.confidence),
        tags=tuple(row.tags),
        supersedes=row.supersedes or None,
        superseded_by=None if is_active(row, revision) else row.superseded_by,
    )


def cut_as_before(old: Sequence[bytes], new: Sequence[CutBlock]) -> list[CutBlock]:
    """The new blocks with long free text cut where it was cut before, so that a small edit of it stays small."""
    blocks: list[CutBlock] = []
    for is_text, run in groupby(new, key=lambda block: block.kind == BlockKind.TEXT):
        pieces = list(run)
        if is_text and len(pieces) > 1:
            text = b"".join(piece.raw for piece in pieces)
            blocks += [CutBlock(BlockKind.TEXT, piece) for piece in _recut(text, old)]
        else:
            blocks += pieces
    return blocks


def kept_apart(pieces: Sequence[bytes], new: Sequence[CutBlock]) -> list[CutBlock]:
    """The new blocks with these pieces, where a text still has them, as blocks of their own.

    Entries that were to disappear are such text once their file has a name by which it holds none.
    """
    blocks = [*new]
    for piece in pieces:
        at = next(
            (i for i, each in enumerate(blocks) if each.kind == BlockKind.TEXT and piece in each.raw), None
        )
        if at is not None:
            parts = blocks[at].raw.partition(piece)
            blocks[at : at + 1] = [CutBlock(BlockKind.TEXT, part) for part in parts if part]
    return blocks


def _recut(text: bytes, old: Sequence[bytes]) -> list[bytes]:
    """Old pieces as far as they stand at the beginning and at the end of the text, and what is between them."""
    first = next((i for i, piece in enumerate(old) if text.startswith(piece)), len(old))
    front: list[bytes] = []
    start, end = 0, len(text)
    for piece in old[first:]:
        if not text.startswith(piece, start) or not piece.endswith(b"\n"):
            break
        front.append(piece)
        start += len(piece)
    back: list[bytes] = []
    last = next((i for i in range(len(old), 0, -1) if text.endswith(old[i - 1])), 0)
    for piece in reversed(old[:last]):
        if (
            end - len(piece) < start
            or not text.endswith(piece, start, end)
            or text[end - len(piece) - 1 :][:1] != b"\n"
        ):
            break
        back.insert(0, piece)
        end -= len(piece)
    return [*front, *text_pieces(text[start:end]), *back]
