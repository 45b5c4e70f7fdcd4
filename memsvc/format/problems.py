"""What of a memory file can't be found as an entry although it looks like one, for its writer to be told."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from memsvc.format.blocks import Block, BlockKind
from memsvc.format.fences import BOM, NO_FRONTMATTER, Fence, entry_spans, structure
from memsvc.format.keys import places_of_keys
from memsvc.format.layout import MemoryCategory
from memsvc.format.text import count_lines, text_lines

MAX_PROBLEMS = 50
_SHOWN_CHARACTERS = 60

_ID_KEY = re.compile(rb"^[\"']?id[\"']?[ \t]*:", re.MULTILINE)
_OTHER_KEY = re.compile(rb"^(?:category|created)[ \t]*:", re.MULTILINE)
_CATEGORY = re.compile(
    rf"^category[ \t]*:[ \t]*[\"']?(?:{'|'.join(MemoryCategory)})\b".encode(), re.MULTILINE
)
_CREATED = re.compile(rb"^created[ \t]*:", re.MULTILINE)
_ID_LINE = re.compile(rb"^id:[ \t]+([^\s][^\n]{0,400})", re.MULTILINE)
_CODE = re.compile(rb"^ {0,3}(?:```|~~~)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong in a line, counted from 1 as readers count them, and what to do; `code` is stable."""

    line: int
    code: str
    reason: str


_ADVICE = {
    "unusable id": "its `id` is empty or longer than 255 bytes; give it another",
    "unknown category": f"its `category` is none of {', '.join(MemoryCategory)}; name one of them",
    "unusable created": "its `created` is no date; write one such as 2026-08-24 or 2026-08-24T10:15:00+00:00",
    "a NUL in the body": "its body holds a NUL; take it out",
    "body over 256 KiB": "its body is larger than 256 KiB; split it into several entries",
}

_KEY_ADVICE = (
    "this line holds an API key, which every reader of the memory and its history can use; revoke the key"
)


def problems_in(
    blocks: Sequence[Block],
    touched: Collection[int] | None = None,
    *,
    gone: Collection[str] = (),
    doubled: Collection[str] = (),
) -> list[Problem]:
    """Look through the blocks of a memory file, or those of them whose numbers are `touched`, by line.

    `gone` are the ids of entries that the file had before; those that still stand there as text are told, and so are
    the entries whose id is one of those that are `doubled`, which more than one entry has. The cost
    grows with the blocks that are looked at, and where there is a problem with those above it.
    """
    wanted = None if touched is None else set(touched)
    found: list[tuple[int, str, str]] = []
    position = 0
    for is_text, run in groupby(enumerate(blocks), key=lambda numbered: numbered[1].kind is BlockKind.TEXT):
        # Free text is one text, however it is stored.
        for part in [list(run)] if is_text else [[numbered] for numbered in run]:
            raw = b"".join(block.raw for _, block in part)
            if wanted is None or any(number in wanted for number, _ in part):
                told = _problems(part[0][1], raw, gone=gone, doubled=doubled)
                found += [(position + at, code, why) for at, code, why in told]
            position += len(raw)
    return _with_lines(blocks, sorted(found))


def keys_in(blocks: Sequence[Block], touched: Collection[int] | None = None) -> list[Problem]:
    """API keys of this service in the blocks of any file, or those of them whose numbers are `touched`."""
    wanted = None if touched is None else set(touched)
    found: list[tuple[int, str, str]] = []
    position = 0
    for number, block in enumerate(blocks):
        if wanted is None or number in wanted:
            places = (_line_start(block.raw, at) for at in places_of_keys(block.raw))
            found += [(position + at, "holds_key", _KEY_ADVICE) for at in places]
        position += len(block.raw)
    return _with_lines(blocks, found)


def _line_start(raw: bytes, at: int) -> int:
    line = text_lines(raw[: at + 1].decode(errors="surrogateescape"), ends=True)[-1]
    return at + 1 - len(line.encode(errors="surrogateescape"))


def held_key(line: int) -> Problem:
    """The problem of a line that holds an API key of this service; the key itself is never repeated."""
    return Problem(line, "holds_key", _KEY_ADVICE)


def closed_code(line: int) -> Problem:
    """The problem of a code block that was closed because an entry would have been read as a part of it."""
    return Problem(
        line, "code_fence_closed", "the code block that ends here was not closed; a closing fence was added"
    )


def _problems(
    block: Block, raw: bytes, *, gone: Collection[str], doubled: Collection[str]
) -> list[tuple[int, str, str]]:
    found: list[tuple[int, str, str]] = []
    start = len(raw) - len(raw.lstrip())
    if block.kind is BlockKind.OPAQUE:
        found.append((start, "unusable_entry", f"this entry can't be used: {_advice(block.reason)}"))
    if block.entry is not None and block.entry.entry_id in doubled:
        reason = (
            f"another entry has the id {block.entry.entry_id} too, and only the first by path and place is found by "
            "it; give one of them another id"
        )
        found.append((start, "duplicate_id", reason))
    if _may_be_misread(block, raw):
        found += _misread(raw)
    if not found:
        told = {"" if block.entry is None else block.entry.entry_id}
        for line in _ID_LINE.finditer(raw) if gone else ():
            value = line[1].decode(errors="replace").strip()
            # A comment may stand behind an id, and an id may hold blanks.
            for entry_id in (value.strip("\"'"), value.split()[0].strip("\"'")):
                if entry_id in gone and entry_id not in told:
                    told.add(entry_id)
                    reason = f"the entry {entry_id} is read as text here and can't be found any more"
                    found.append((line.start(), "entry_lost", reason))
    return found


def _advice(reason: str) -> str:
    if reason.startswith("yaml: "):
        return (
            f"its frontmatter can't be read ({reason}); put values with special characters in double quotes"
        )
    return _ADVICE.get(reason, reason)


def _may_be_misread(block: Block, raw: bytes) -> bool:
    """Whether a block is to be read once more: what has no fence but those that it was cut by, or no key of an entry,
    has nothing to tell.
    """
    text = raw[block.meta_end :]
    if not any(mark in text for mark in (b"---", b"```", b"~~~")):
        return False
    return _ID_KEY.search(text) is not None or _has_keys(text, 0, len(text))


def _misread(raw: bytes) -> Iterator[tuple[int, str, str]]:
    """What has the keys of an entry but was not read as one."""
    read = structure(raw)
    end, is_closed = len(raw), False
    for fence in reversed(read.other_fences):
        code = _CODE.search(raw, fence.end, end)
        if _has_keys(raw, fence.end, code.start() if code else end):
            yield _why_not(raw, fence, end, is_closed=is_closed)
        end, is_closed = fence.start, is_closed or fence.may_close
    if (opened := read.open_code) is not None:
        below_opening = raw.find(b"\n", opened.start) + 1 or len(raw)
        if entry_spans(raw[below_opening:]):
            yield (
                opened.start,
                "unclosed_code_fence",
                "the code block that begins here is never closed, so the entries below it are read as code; "
                f"close it with {opened.fence.decode()[:8]}",
            )


def _has_keys(raw: bytes, start: int, end: int) -> bool:
    if _ID_KEY.search(raw, start, end):
        return _OTHER_KEY.search(raw, start, end) is not None
    return _CATEGORY.search(raw, start, end) is not None and _CREATED.search(raw, start, end) is not None


def _why_not(raw: bytes, fence: Fence, end: int, *, is_closed: bool) -> tuple[int, str, str]:
    stray = NO_FRONTMATTER.search(raw, fence.end, end)
    if stray is not None and is_closed:
        line = stray[0] + raw[stray.end() : stray.end() + 4 * _SHOWN_CHARACTERS + 4].split(b"\n", 1)[0]
        text = line.decode(errors="replace").strip()
        shown = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
        return (
            stray.start(),
            "stray_line",
            f"'{shown}' stands between the fences of an entry and is no `key: value`, so that there is no entry; "
            "take it out, or close the frontmatter above it with a line that is just ---",
        )
    if not is_closed:
        return (
            fence.start,
            "unclosed_frontmatter",
            "the frontmatter that begins here is never closed, so that there is no entry; put a line that is just "
            "--- below its last key",
        )
    if not fence.may_open:
        return (
            fence.start,
            "swallowed_entry",
            "what looks like an entry is read as a part of the text right above it; put a blank line above this "
            "---",
        )
    return (fence.start, "missing_id", "what looks like an entry has no id; give it one: `id: <text>`")


def _with_lines(blocks: Sequence[Block], found: list[tuple[int, str, str]]) -> list[Problem]:
    if not found:
        return []
    data = b"".join(block.raw for block in blocks)
    problems: list[Problem] = []
    line, counted = 1, len(BOM) if data.startswith(BOM) else 0
    for at, code, reason in found[:MAX_PROBLEMS]:
        line += count_lines(data[counted:at].decode(errors="replace"))
        counted = max(counted, at)
        problems.append(Problem(line, code, reason))
    if len(found) > MAX_PROBLEMS:
        reason = f"there are {len(found) - MAX_PROBLEMS} more problems like these in the file"
        problems.append(Problem(line, "more_problems", reason))
    return problems
