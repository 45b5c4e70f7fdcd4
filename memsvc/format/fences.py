"""Where entries begin and end in the bytes of a file, and where its code is."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

BOM = b"\xef\xbb\xbf"

# A line put between an unterminated frontmatter and the entry that it would swallow.
SEPARATOR = b"<!-- -->"

# A line ends at "\n", perhaps with "\r" before it; nothing else ends one. Of several lines of dashes with nothing but
# blank ones between them only the first can end a frontmatter, and only the last begin one that says something.
_DASHES = re.compile(rb"(---[ \t]*+(?:\r?\n|\Z))(?:(?:[ \t\r]*+\n)*+(---[ \t]*+(?:\r?\n|\Z)))*+")
NO_FRONTMATTER = re.compile(
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

# CommonMark's rule for fenced code blocks: at most three blanks, and no backtick in what follows backticks.
_CODE_OPENING = re.compile(
    rb"(?:^|(?<=\A\xef\xbb\xbf)) {0,3}+(`{3,}+(?=[^`\n]*+$)|~{3,}+)[^\n]*+(?:\n|\Z)", re.MULTILINE
)
_CODE_CLOSING = {
    b"`": re.compile(rb"^ {0,3}+(`{3,}+)[ \t]*+\r?(?:\n|\Z)", re.MULTILINE),
    b"~": re.compile(rb"^ {0,3}+(~{3,}+)[ \t]*+\r?(?:\n|\Z)", re.MULTILINE),
}
# The marker of a list item and the blanks before its content; with more than four of them that is indented code.
_LIST_ITEM = re.compile(
    rb"(?! {0,3}+(?:(?:-[ \t]*+){3,}+|(?:\*[ \t]*+){3,}+)\r?(?:\n|\Z))"
    rb" {0,3}(?:[-+*]|[0-9]{1,9}[.)])(?: {1,4}(?=[^ \t\r\n])|(?=[ \t\r\n]|\Z))"
)

_READ_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class EntrySpan:
    """The offsets of one entry: its first fence, the lines of frontmatter, the first byte after the second fence's
    line, and the end of its body."""

    start: int
    frontmatter_start: int
    frontmatter_end: int
    meta_end: int
    end: int


class Fence(NamedTuple):
    """A line of three dashes. `may_open` says that it is the first line, or below a blank one; `may_close` that
    nothing stands before the dashes."""

    start: int
    end: int
    may_open: bool
    may_close: bool


class CodeBlock(NamedTuple):
    """A fenced code block, from its opening line to below its closing one; to the end of the data if `is_open`."""

    start: int
    end: int
    fence: bytes
    is_open: bool


@dataclass(frozen=True, slots=True)
class Structure:
    """The entries of a file, and the fences outside of code that belong to none; of those with nothing but blank lines
    between them the first and the last.

    `unterminated` is the fence of a frontmatter with an id that the end of the data leaves open.
    """

    spans: list[EntrySpan]
    other_fences: list[Fence]
    unterminated: Fence | None
    _code: "_Code"

    @property
    def open_code(self) -> CodeBlock | None:
        """The code block that is never closed; looking for it takes a look at all code that there is."""
        return self._code.open_at_end()


def entry_spans(data: bytes, *, closed_by_indented: bool = False) -> list[EntrySpan]:
    """Find the entries of a file, in order. What lies above the first one is free text.

    With `closed_by_indented` an indented `---` ends a frontmatter, too, as it did in what was stored before 0.1.0.
    """
    return structure(data, closed_by_indented=closed_by_indented).spans


def ends_indented(head: str) -> bool:
    """Whether an entry's text up to its body ends with an indented `---`, as it could in what older rules stored."""
    return head.rstrip().rpartition("\n")[2].startswith((" ", "\t"))


def unterminated_at(data: bytes) -> int | None:
    """Return where a frontmatter with an id begins that the end of the data leaves open, None where none does.

    An entry put below it would be swallowed: its first fence would be read as the end of that frontmatter.
    """
    found = structure(data).unterminated
    return None if found is None else found.start


def code_closing(data: bytes) -> bytes:
    """Return the line, without its end, that closes the code block in which the data ends; b"" where in none."""
    if b"```" not in data and b"~~~" not in data:
        return b""
    found = structure(data).open_code
    return b"" if found is None else found.fence


def structure(data: bytes, *, closed_by_indented: bool = False) -> Structure:
    """Read where entries begin and end, in one pass.

    An entry begins outside of code, and its body is a text of its own. Frontmatter is no markdown: there nothing
    opens a code block, and only `---` at the beginning of a line ends it.
    """
    fences = list(_fences(data))
    closing_of = _next_closings(fences, closed_by_indented)
    frontmatter = _Frontmatter(data)
    code = _Code(data)
    pairs: list[tuple[Fence, Fence]] = []
    others: list[Fence] = []
    unterminated: Fence | None = None
    i = 0
    while i < len(fences):
        opening, closing = fences[i], closing_of[i]
        if code.covers(opening.start):
            i += 1
            continue
        end = len(data) if closing is None else fences[closing].start
        if not (opening.may_open and frontmatter.is_all(opening.end, end)):
            others.append(opening)
            i += 1
        elif closing is None:
            # Whatever else stands below is a part of it.
            others.append(opening)
            unterminated = opening
            break
        else:
            pairs.append((opening, fences[closing]))
            code.begin_text(fences[closing].end)
            i = closing + 1
    ends = [opening.start for opening, _ in pairs[1:]] + [len(data)]
    spans = [
        EntrySpan(opening.start, opening.end, closing.start, closing.end, end)
        for (opening, closing), end in zip(pairs, ends, strict=False)
    ]
    return Structure(spans, others, unterminated, code)


def _fences(data: bytes) -> Iterator[Fence]:
    at = first_line = len(BOM) if data.startswith(BOM) else 0
    while match := _DASHES.search(data, at):
        at = match.end(1)
        start = max(data.rfind(b"\n", 0, match.start()) + 1, first_line)
        if data[start : match.start()].strip(b" \t"):
            continue
        may_open = start == first_line or _is_blank_line_above(data, start, first_line)
        yield Fence(start, at, may_open, start == match.start())
        if start == match.start() and match[2]:
            last, at = match.span(2)
            yield Fence(last, at, _is_blank_line_above(data, last, first_line), may_close=True)


def _next_closings(fences: list[Fence], closed_by_indented: bool) -> list[int | None]:
    """For each fence the number of the next one that can end a frontmatter."""
    found: list[int | None] = []
    closing: int | None = None
    for i in range(len(fences) - 1, -1, -1):
        found.append(closing)
        if fences[i].may_close or closed_by_indented:
            closing = i
    return found[::-1]


def _is_blank_line_above(data: bytes, start: int, first_line: int) -> bool:
    above = max(data.rfind(b"\n", 0, start - 1) + 1, first_line)
    return not data[above:start].strip(b" \t\r\n")


class _Frontmatter:
    """Tells frontmatter from text, without looking twice at the same lines."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._end, self._other_line = -1, -1

    def is_all(self, start: int, end: int) -> bool:
        """Whether all lines of a range look like frontmatter, and one gives an id."""
        if end == self._end and start <= self._other_line:
            return False
        other = NO_FRONTMATTER.search(self._data, start, end)
        self._end, self._other_line = end, -1 if other is None else other.start()
        if other is None and _ID.search(self._data, start, end) is None:
            self._other_line = end
        return self._other_line < 0


# --- code --------------------------------------------------------------------------------------------------------


class _Code:
    """The fenced code blocks of a text, looked for no further than it is asked.

    Those in list items and block quotes don't count: they end where the item or the quote does, and so no line that
    begins an entry stands in one.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._block: CodeBlock | None = None
        self._begin(0)
        has_any = b"```" in data or b"~~~" in data
        self._next = _CODE_OPENING.search(data) if has_any else None

    def covers(self, at: int) -> bool:
        """Whether a line that begins at an offset, which never goes back, is code."""
        while (opening := self._next) is not None and opening.start() < at:
            if opening.start() >= self._from and self._is_by_itself(opening):
                self._block = self._block_from(opening)
                self._begin(self._block.end)
            self._next = _CODE_OPENING.search(self._data, max(opening.end(), self._from))
        return self._block is not None and at < self._block.end

    def begin_text(self, at: int) -> None:
        """Let a text of its own begin at an offset: no code and no list of the one above goes on."""
        self._block = None
        self._begin(at)

    def open_at_end(self) -> CodeBlock | None:
        self.covers(len(self._data))
        return self._block if self._block is not None and self._block.is_open else None

    def _begin(self, at: int) -> None:
        # Above this offset nothing is looked at, and this is how far the list item's content that goes on below it
        # is indented; 0 for none.
        self._from, self._item = at, 0

    def _block_from(self, opening: re.Match[bytes]) -> CodeBlock:
        fence = opening[1]
        closing_line, at = _CODE_CLOSING[fence[:1]], opening.end()
        while closing := closing_line.search(self._data, at):
            at = closing.end()
            if len(closing[1]) >= len(fence):
                return CodeBlock(opening.start(), at, fence, is_open=False)
        return CodeBlock(opening.start(), len(self._data), fence, is_open=True)

    def _is_by_itself(self, opening: re.Match[bytes]) -> bool:
        """Whether a code block is in no list item, whose content is indented by two at least."""
        data, line = self._data, opening.start()
        indent = opening.start(1) - line
        above = line
        while indent >= 2 and (above := _end_of_text(data, self._from, above)) > self._from:
            start = data.rfind(b"\n", self._from, above - 1) + 1 or self._from
            text = data[start:above].lstrip(b" ")
            item = _LIST_ITEM.match(data, start, above)
            content = item.end() - start + (item[0][-1:] != b" ") if item else 0
            if 0 < content <= indent:
                self._from, self._item = line, content
                return False
            indent = min(indent, above - start - len(text))
            above = start
        item_above = self._item if indent >= 2 else 0
        self._from, self._item = line, item_above if item_above <= indent else 0
        return not self._item


def _end_of_text(data: bytes, floor: int, end: int) -> int:
    """The offset below the last line, in the lines from `floor` to `end`, that isn't blank; `floor` if all are."""
    while end > floor:
        start = max(floor, end - _READ_AT_ONCE)
        content = len(data[start:end].rstrip())
        if content:
            return min(data.find(b"\n", start + content - 1) + 1 or end, end)
        end = start
    return floor
