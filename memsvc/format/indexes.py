"""Router indexes: tables that say what a folder's files hold, one row a file."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from memsvc.format.blocks import Block, BlockKind, blank_line_below, dominant_newline, text_blocks
from memsvc.format.fences import BOM
from memsvc.format.headlines import shortened
from memsvc.format.layout import (
    CATEGORY_KIND,
    KIND_DIRECTORIES,
    MEMORY_ROOT,
    ROOT_INDEX_PATH,
    MemoryCategory,
    index_path,
)
from memsvc.format.paths import MAX_PATH_BYTES
from memsvc.format.text import one_line

MAX_ROW_TAGS = 12
MAX_ROW_TAG_CHARS = 64

_COLUMNS = ["file", "description", "tags", "updated"]
_HEADER = "| File | Description | Tags | Updated |"
_RULE = "| --- | --- | --- | --- |"

_CELL_BORDER = re.compile(r"(?<!\\)\|")
_TAG_BORDER = re.compile(r"(?<!\\),")
_RULE_CELL = re.compile(r":?-+:?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
# What a cell would lose at its ends, and what would be read as such a reference.
_REFERENCES = {"&": "&#38;", " ": "&#32;", "\t": "&#9;"}
_REFERENCE = re.compile("|".join(_REFERENCES.values()))


@dataclass(frozen=True, slots=True)
class IndexRow:
    """What an index says about a file. `path` is relative to the index's folder, `updated` a date or empty."""

    path: str
    description: str = ""
    tags: tuple[str, ...] = ()
    updated: str = ""

    def to_row(self) -> str:
        """Write the row as a line of the table, without a line end."""
        tags = ", ".join(_tag_in_cell(tag) for tag in self.tags)
        return (
            f"| {_path_cell(self.path)} | {_cell(self.description)} | {_cell(tags)} | {_cell(self.updated)} |"
        )


def index_target(category: MemoryCategory, file_path: str) -> tuple[str, str]:
    """Return the index that tracks a category's file, and the file's path in it."""
    if category is MemoryCategory.PREFERENCES:
        return ROOT_INDEX_PATH, file_path.removeprefix(MEMORY_ROOT)
    kind = CATEGORY_KIND[category]
    return index_path(kind), file_path.removeprefix(KIND_DIRECTORIES[kind])


# --- reading -----------------------------------------------------------------------------------------------------


def cut_index(data: bytes) -> list[Block]:
    """Cut a router into the rows of its table, a block each, and free text.

    The table is the first one with the format's four columns; it ends at the first line that doesn't begin with a
    pipe. Lines in it that are no rows are text. One text block ends with the table's head: see `ends_with_head`.
    """
    lines = _lines(data)
    first, end = _table_rows(lines)
    blocks = text_blocks(b"".join(lines[:first]))
    odd = b""
    for line in lines[first:end]:
        if parse_row(line) is None:
            odd += line
        else:
            blocks += [*text_blocks(odd), Block(BlockKind.ROW, line)]
            odd = b""
    return blocks + text_blocks(odd + b"".join(lines[end:]))


def parse_row(raw: bytes | str) -> IndexRow | None:
    """Read a line of the table; None for its head, and for a line without four cells or with too long a path."""
    cells = _cells(raw if isinstance(raw, str) else raw.decode(errors="replace"))
    if len(cells) != 4 or _is_header(cells) or _is_rule(cells) or not cells[0]:
        return None
    path = _REFERENCE.sub(lambda reference: chr(int(reference[0][2:-1])), cells[0])
    if len(path.encode()) > MAX_PATH_BYTES:
        return None
    tags = (tag.strip(" \t").replace("\\,", ",") for tag in _TAG_BORDER.split(cells[2]))
    return IndexRow(path, cells[1], tuple(filter(None, tags)), cells[3])


def parse_index(text: str) -> tuple[str, dict[str, IndexRow]]:
    """Return an index's preamble, the text above its table without white space at its end, and its rows by path."""
    lines = _lines(text.encode(errors="surrogatepass"))
    first, end = _table_rows(lines)
    head_lines = 2 if _ends_with_head(lines[:first]) else 0
    preamble = b"".join(lines[: first - head_lines]).decode(errors="surrogatepass")
    rows = filter(None, map(parse_row, lines[first:end]))
    return preamble.rstrip(), {row.path: row for row in rows}


def ends_with_head(raw: bytes) -> bool:
    """Whether a text block ends with the head of the table, so that rows go below it."""
    return _ends_with_head(_lines(raw))


# --- writing -----------------------------------------------------------------------------------------------------


def render_index_table(rows: Mapping[str, IndexRow]) -> str:
    """Write the whole table, its rows sorted by path, without a line end at its end."""
    return "\n".join([_HEADER, _RULE, *(rows[path].to_row() for path in sorted(rows))])


def merged_row(
    old: IndexRow | None,
    *,
    path: str,
    description: str,
    tags: Iterable[str],
    when: date | None,
    by_hand: Container[str] = (),
) -> IndexRow:
    """Return a file's row after a write.

    The new description, in one line of at most 200 characters, or the old one where the new one is empty. The old
    tags and then the new ones; a row shows at most 12, none longer than 64 characters, and the oldest give way,
    but for tags that are there `by_hand`. The later of the two dates.
    """
    old = old or IndexRow(path)
    updated = old.updated
    if when is not None:
        new = f"{when.year:04}-{when.month:02}-{when.day:02}"
        updated = max(updated, new) if _DATE.fullmatch(updated) else new
    return IndexRow(
        path=path,
        description=shortened(description) or old.description,
        tags=_merged_tags(old.tags, [one_line(tag) for tag in tags], by_hand),
        updated=updated,
    )


def row_line(row: IndexRow, *, newline: str = "\n", after: bytes = b"") -> bytes:
    """Return the bytes of a row's line, to stand below `after`: with a line end first if `after` lacks its own."""
    lacks_line_end = bool(after) and not after.endswith(b"\n")
    return ((newline if lacks_line_end else "") + row.to_row() + newline).encode()


def table_head(last: bytes, *, newline: str = "\n") -> bytes:
    """Return what to add to an index without a table, whose last block is `last`, so that rows can follow."""
    return blank_line_below(last, newline.encode()) + f"{_HEADER}{newline}{_RULE}{newline}".encode()


def place_for(rows: Sequence[str], path: str) -> int:
    """Return the number of the row above which a new row goes, among the rows' paths in file order.

    That is below the last row with a smaller path (by code points): the sorted place in a sorted table, and below
    the rows that it would follow in a table that somebody ordered by hand.
    """
    return max((i + 1 for i, other in enumerate(rows) if other < path), default=0)


def settled(rows: Sequence[bytes]) -> list[bytes]:
    """Return a table's lines as the first change of a scaffold leaves them: sorted, each empty date in its full form.

    A table that holds no line of a scaffold (they end in `| |`), or one that was written by hand, stays as it is.
    """
    present = list(rows)
    parsed = [row for raw in present if (row := parse_row(raw)) is not None]
    full = [row_line(row) for row in parsed]
    if len(full) < len(present) or full == present:
        return present
    for raw, line in zip(present, full, strict=True):
        if raw not in (line, line.replace(b"|  |\n", b"| |\n")):
            return present
    return [row_line(row) for row in sorted(parsed, key=lambda row: row.path)]


def with_row(data: bytes, *, path: str, description: str, tags: Iterable[str], when: date | None) -> bytes:
    """Return a whole index in which the row of the file `path` is merged with a write, or added at its place."""
    rows = [row for block in cut_index(data) if (row := _row_of(block)) is not None and row.path == path]
    old = rows[-1] if rows else None
    return with_row_put(data, merged_row(old, path=path, description=description, tags=tags, when=when))


def with_row_put(data: bytes, new: IndexRow) -> bytes:
    """Return a whole index in which this is the row of its file, in the place of an old one or at its own.

    Every other byte stays, but for a scaffold's rows, which are `settled` first.
    """
    blocks = cut_index(data)
    raws = [block.raw for block in blocks]
    places = [i for i, block in enumerate(blocks) if block.kind is BlockKind.ROW]
    for i, raw in zip(places, settled([raws[i] for i in places]), strict=True):
        raws[i] = raw
    rows = [(i, row.path) for i in places if (row := parse_row(raws[i])) is not None]
    present = [i for i, path in rows if path == new.path]
    if present:
        old = raws[present[-1]]
        raws[present[-1]] = new.to_row().encode() + old[len(old.rstrip(b"\r\n")) :]
        return b"".join(raws)
    data = b"".join(raws)
    newline = dominant_newline(data)
    place = place_for([path for _, path in rows], new.path)
    if place > 0:
        above = rows[place - 1][0]
    elif heads := [i for i, raw in enumerate(raws) if ends_with_head(raw)]:
        above = heads[0]
    else:
        return data + table_head(data, newline=newline) + row_line(new, newline=newline)
    raws.insert(above + 1, row_line(new, newline=newline, after=raws[above]))
    return b"".join(raws)


def without_row(data: bytes, path: str) -> bytes:
    """Return a whole index without the row of the file `path`."""
    kept = (block.raw for block in cut_index(data) if (row := _row_of(block)) is None or row.path != path)
    return b"".join(kept)


# --- the parts ---------------------------------------------------------------------------------------------------


def _lines(data: bytes) -> list[bytes]:
    *whole, rest = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([rest] if rest else [])


def _table_rows(lines: list[bytes]) -> tuple[int, int]:
    """The numbers of the first line below the table's head and of the first line below the table."""
    first = next((i for i in range(2, len(lines) + 1) if _ends_with_head(lines[i - 2 : i])), None)
    if first is None:
        return len(lines), len(lines)
    end = next(
        (i for i in range(first, len(lines)) if not lines[i].lstrip(b" \t").startswith(b"|")), len(lines)
    )
    return first, end


def _ends_with_head(lines: list[bytes]) -> bool:
    if len(lines) < 2:
        return False
    header, rule = (_cells(line.removeprefix(BOM).decode(errors="replace")) for line in lines[-2:])
    return _is_header(header) and _is_rule(rule)


def _is_header(cells: list[str]) -> bool:
    return [cell.lower() for cell in cells] == _COLUMNS


def _is_rule(cells: list[str]) -> bool:
    return len(cells) == len(_COLUMNS) and all(_RULE_CELL.fullmatch(cell) for cell in cells)


def _cells(line: str) -> list[str]:
    if "|" not in line:
        return []
    cells = [cell.strip(" \t\r\n") for cell in _CELL_BORDER.split(line.strip(" \t\r\n"))]
    cells = cells[1:] if not cells[0] else cells
    cells = cells[:-1] if cells and not cells[-1] else cells
    return [cell.replace("\\|", "|") for cell in cells]


def _cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")


def _path_cell(path: str) -> str:
    """A path keeps its blanks; outer ones, which a cell would lose, are written as references."""
    path = _REFERENCE.sub(lambda reference: _REFERENCES["&"] + reference[0][1:], path)
    inner = path.strip(" \t")
    start = len(path) - len(path.lstrip(" \t"))
    outer = path[:start], path[start + len(inner) :]
    leading, trailing = ("".join(_REFERENCES[blank] for blank in blanks) for blanks in outer)
    return leading + inner.replace("|", "\\|") + trailing


def _tag_in_cell(tag: str) -> str:
    # A backslash right before the comma that ends a tag would be read as escaping it.
    escaped = one_line(tag).replace(",", "\\,")
    return f"{escaped} " if escaped.endswith("\\") else escaped


def _merged_tags(old: tuple[str, ...], new: list[str], by_hand: Container[str]) -> tuple[str, ...]:
    both = dict.fromkeys((*old, *new))
    tags = [tag for tag in both if tag in by_hand or (tag and len(tag) <= MAX_ROW_TAG_CHARS)]
    room = MAX_ROW_TAGS - sum(tag in by_hand for tag in tags)
    newest = [tag for tag in tags if tag in new and tag not in by_hand][: max(0, room)]
    older = [tag for tag in tags if tag not in new and tag not in by_hand]
    kept = {*newest, *older[max(0, len(older) - max(0, room - len(newest))) :]}
    return tuple(tag for tag in tags if tag in kept or tag in by_hand)


def _row_of(block: Block) -> IndexRow | None:
    return parse_row(block.raw) if block.kind is BlockKind.ROW else None
