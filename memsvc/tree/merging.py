"""What a file of a tree becomes when an import brings another copy of it: entry by entry, and the text around them.

What the tree knows stays, unless the import is known to hold an edit of just that: `base` is what both come from.
"""

import hashlib
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from memsvc.contract.imports import Differs, Done, ImportDifference
from memsvc.format import (
    MAX_ID_BYTES,
    BlockKind,
    InvalidEntry,
    append_to,
    compose_entry,
    cut_file,
    metadata_of,
)
from memsvc.format.fences import BOM
from memsvc.format.frontmatter import text_line
from memsvc.tree.blocks import rendered
from memsvc.tree.commands import OnConflict
from memsvc.tree.models import Block

DONE = {OnConflict.KEEP: Done.KEPT, OnConflict.TAKE: Done.TAKEN, OnConflict.BOTH: Done.BOTH}


@dataclass(frozen=True, slots=True)
class Piece:
    """A block of a file; `entry_id` is empty for what is no entry."""

    raw: bytes
    entry_id: str = ""
    is_row: bool = False
    created: datetime | None = None
    superseded_by: str = ""


@dataclass(slots=True)
class Merged:
    """`kept` are the blocks of the file in order, before `new` ones and `copies`, which go to its end.

    Copies have ids of their own and stand beside entries that say something else. `beside` is text of the import for
    a file of its own; `changed` says whether `kept` is anything else than what the tree holds.
    """

    kept: list[Piece] = field(default_factory=list)
    new: list[Piece] = field(default_factory=list)
    copies: list[Piece] = field(default_factory=list)
    beside: bytes = b""
    changed: bool = False
    differences: list[ImportDifference] = field(default_factory=list)


def pieces_of(rows: Iterable[Block], revision: int | None = None) -> list[Piece]:
    return [
        Piece(
            rendered(row, revision),
            row.entry_id if row.kind == BlockKind.ENTRY else "",
            row.kind == BlockKind.ROW,
            row.said,
            row.superseded_by,
        )
        for row in rows
    ]


def merge(
    path: str,
    ours: Sequence[Piece],
    theirs: Sequence[Piece],
    base: Sequence[Piece] | None,
    *,
    known: Mapping[str, bytes | None],
    on_conflict: OnConflict,
    erased_at: datetime | None = None,
    brought: Container[str] = frozenset(),
) -> Merged:
    """Merge a file of the tree with the import's.

    `known` has the entries that the tree has or had: what they say in another place, None for those that are gone.
    What the tree once held and has erased can't be told from what is new, so that of entries that are as old as the
    last time that this was done, `erased_at`, none comes in. Entries that other files of the import bring, whose ids
    are in `brought`, are not taken out of this one.
    """
    mine, yours, was = _entries(ours), _entries(theirs), _entries(base or [])
    found, chosen, new = Merged(), dict(mine), dict[tuple[str, int], Piece]()
    done, both = DONE[on_conflict], on_conflict is OnConflict.BOTH

    def note(entry_id: str, differs: Differs, done: Done) -> None:
        found.differences.append(ImportDifference(path, entry_id, differs, done))

    for key, piece in yours.items():
        if key in mine:
            continue
        if (elsewhere := known.get(key[0])) is not None:
            if both and not says_the_same(path, elsewhere, piece.raw):
                found.copies.append(copied(path, piece))
                note(key[0], Differs.ENTRY, done)
            else:
                note(key[0], Differs.ELSEWHERE, Done.KEPT if both else done)
        elif key[0] in known or key in was or (erased_at and piece.created and piece.created <= erased_at):
            note(key[0], Differs.RETIRED, done)
            if both:
                new[key] = piece
        else:
            new[key] = piece
    coming = {entry_id for entry_id, _ in new}
    for key, piece in mine.items():
        their, old = yours.get(key), was.get(key)
        if their is None:
            if old is not None and _equal(old, piece) and key[0] not in brought:
                del chosen[key]
                note(key[0], Differs.REMOVED, Done.TAKEN)
            else:
                note(
                    key[0],
                    Differs.REMOVED if old else Differs.ADDED,
                    Done.TAKEN if done is Done.TAKEN else Done.KEPT,
                )
        elif _equal(their, piece):
            continue
        elif old is not None and _equal(old, piece):
            chosen[key] = their
            note(key[0], Differs.ENTRY, Done.TAKEN)
        elif says_the_same(path, their.raw, piece.raw):
            if their.superseded_by != piece.superseded_by and their.superseded_by not in coming:
                note(key[0], Differs.SUPERSEDED, Done.TAKEN if done is Done.TAKEN else Done.KEPT)
        else:
            note(key[0], Differs.ENTRY, done)
            if both:
                found.copies.append(copied(path, their))
    skeleton = ours
    if _text(theirs) != _text(ours):
        if base is not None and _text(ours) == _text(base):
            skeleton = theirs
            note("", Differs.TEXT, Done.TAKEN)
        else:
            note("", Differs.TEXT, done)
            if both and _text(theirs, rows=False) not in (b"", _text(ours, rows=False)):
                found.beside = b"".join(piece.raw for piece in theirs if not piece.entry_id)
    if skeleton is theirs:
        chosen, new = chosen | new, {}
    found.kept, found.new = _in_order(skeleton, chosen), list(new.values())
    found.changed = [piece.raw for piece in found.kept] != [piece.raw for piece in ours]
    return found


def _in_order(skeleton: Sequence[Piece], chosen: Mapping[tuple[str, int], Piece]) -> list[Piece]:
    """What stays, in the order of one side, and behind it what only the other side has."""
    left, kept, seen = dict(chosen), list[Piece](), Counter[str]()
    for piece in skeleton:
        key = (piece.entry_id, seen[piece.entry_id])
        seen[piece.entry_id] += 1
        if not piece.entry_id:
            kept.append(piece)
        elif key in left:
            kept.append(left.pop(key))
    return [*kept, *left.values()]


def joined(pieces: Sequence[Piece], more: Sequence[Piece], newline: str) -> bytes:
    """The bytes of a file with these blocks, and more entries behind them, each entry below a blank line."""
    parts: list[bytes] = []
    for piece in [*pieces, *more]:
        last = parts[-1] if parts else b""
        bare = piece.raw.lstrip(b" \t\r\n")
        stands_apart = b"\n" in piece.raw[: len(piece.raw) - len(bare)]
        if (last.endswith(b"\n") and (stands_apart or not piece.entry_id)) or last in (b"", BOM):
            parts.append(piece.raw)
        elif piece.entry_id:
            parts.append(append_to(last, "", newline=newline) + piece.raw.lstrip(b"\r\n"))
        else:
            parts.append(newline.encode() + piece.raw)
    return b"".join(parts)


def says_the_same(path: str, one: bytes, other: bytes) -> bool:
    """Whether two blocks are the same entry but for what supersedes it."""
    return _statement(path, one) == _statement(path, other)


def _statement(path: str, raw: bytes) -> object:
    found = [block for block in cut_file(path, raw) if block.entry is not None]
    if len(found) != 1 or found[0].entry is None:
        return raw.strip()
    return replace(found[0].entry, superseded_by=None), dict(found[0].extra)


def copied(path: str, piece: Piece) -> Piece:
    """An entry under an id of its own, which is the same for the same entry each time."""
    digest = hashlib.sha256(piece.raw.strip()).hexdigest()[:8]
    entry_id = f"{piece.entry_id[: MAX_ID_BYTES // 4]}-{digest}"
    lines = piece.raw.splitlines(keepends=True)
    at = next((n for n, line in enumerate(lines) if line.startswith(b"id:")), None)
    if at is not None:
        line_end = lines[at][len(lines[at].rstrip(b"\r\n")) :]
        lines[at] = text_line("id", entry_id).encode() + line_end
        raw = b"".join(lines)
        found = [each.entry for each in cut_file(path, raw) if each.entry is not None]
        if [entry.entry_id for entry in found] == [entry_id]:
            return replace(piece, raw=raw, entry_id=entry_id)
    block = next((each for each in cut_file(path, piece.raw) if each.entry is not None), None)
    if block is None or block.entry is None:
        raise InvalidEntry(f"the entry {piece.entry_id} can't be put beside the one that is there")
    text = compose_entry(replace(block.entry, entry_id=entry_id), metadata_of(block.extra))
    return replace(piece, raw=text.encode(), entry_id=entry_id)


def _entries(pieces: Iterable[Piece]) -> dict[tuple[str, int], Piece]:
    """Entries by id and, of several with one id, their place among these."""
    found: dict[tuple[str, int], Piece] = {}
    seen = Counter[str]()
    for piece in pieces:
        if piece.entry_id:
            found[piece.entry_id, seen[piece.entry_id]] = piece
            seen[piece.entry_id] += 1
    return found


def _equal(one: Piece, other: Piece) -> bool:
    return one.raw.strip() == other.raw.strip()


def _text(pieces: Iterable[Piece], *, rows: bool = True) -> bytes:
    """What is no entry, without the blank lines, which belong to whatever stands below them."""
    text = b"".join(piece.raw for piece in pieces if not piece.entry_id and (rows or not piece.is_row))
    return b"\n".join(line.rstrip() for line in text.split(b"\n") if line.strip())
