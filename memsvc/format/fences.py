"""Where entries begin and end in the bytes of a file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

BOM = b"\xef\xbb\xbf"

# A line put between an unterminated frontmatter and the entry that it would swallow.
SEPARATOR = b"<!-- -->"

# A line ends at "\n", perhaps with "\r" before it; nothing else ends one.
_DASHES_TO_LINE_END = re.compile(rb"---[ \t]*+(?:\r?\n|\Z)")
_NO_FRONTMATTER = re.compile(
    rb"""^(?!
        [ \t]                                           # continues the line above
      | -(?:[ \t\r\n]|\Z)                               # an item of a list
      | \#                                              # a comment
      | \r*+(?:\n|\Z)                                   # blank
      | [^\s:\#\[\]{},*>|`%][^:\n]*+:(?:[ \t\r\n]|\Z)   # a key
    )[^\n]""",
    re.MULTILINE | re.VERBOSE,
)
_ID = re.compile(rb"^id:[ \t]+[^\s#]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class EntrySpan:
    """The offsets of one entry: its first fence, the lines of frontmatter, the first byte after the second fence's
    line, and the end of its body."""

    start: int
    frontmatter_start: int
    frontmatter_end: int
    meta_end: int
    end: int


@dataclass(frozen=True, slots=True)
class _Fence:
    start: int
    end: int
    may_open: bool  # the first line, or below a blank one


def entry_spans(data: bytes) -> list[EntrySpan]:
    """Find the entries of a file, in order. What lies above the first one is free text."""
    return _spans_and_rest(data)[0]


def unterminated_at(data: bytes) -> int | None:
    """Return where a frontmatter with an id begins that the end of the data leaves open, None where none does.

    An entry put below it would be swallowed: its first fence would be read as the end of that frontmatter.
    """
    last = _spans_and_rest(data)[1]
    if last is not None and last.may_open and _is_frontmatter(data, last.end, len(data)):
        return last.start
    return None


def _spans_and_rest(data: bytes) -> tuple[list[EntrySpan], _Fence | None]:
    """The entries, and the last fence where it is in none of them."""
    fences = list(_fences(data))
    pairs: list[tuple[_Fence, _Fence]] = []
    i = 0
    while i + 1 < len(fences):
        opening, closing = fences[i], fences[i + 1]
        if opening.may_open and _is_frontmatter(data, opening.end, closing.start):
            pairs.append((opening, closing))
            i += 2
        else:
            i += 1
    ends = [opening.start for opening, _ in pairs[1:]] + [len(data)]
    spans = [
        EntrySpan(opening.start, opening.end, closing.start, closing.end, end)
        for (opening, closing), end in zip(pairs, ends, strict=False)
    ]
    return spans, fences[i] if i < len(fences) else None


def _fences(data: bytes) -> Iterator[_Fence]:
    first_line = len(BOM) if data.startswith(BOM) else 0
    for match in _DASHES_TO_LINE_END.finditer(data, first_line):
        start = max(data.rfind(b"\n", 0, match.start()) + 1, first_line)
        if not data[start : match.start()].strip(b" \t"):
            yield _Fence(
                start, match.end(), start == first_line or _is_blank_line_above(data, start, first_line)
            )


def _is_blank_line_above(data: bytes, start: int, first_line: int) -> bool:
    above = max(data.rfind(b"\n", 0, start - 1) + 1, first_line)
    return not data[above:start].strip(b" \t\r\n")


def _is_frontmatter(data: bytes, start: int, end: int) -> bool:
    return _ID.search(data, start, end) is not None and _NO_FRONTMATTER.search(data, start, end) is None
