"""The notebook of one agent as pydantic-deep puts it into the instructions, but bounded and without tags."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from memsvc.format import one_line, spelt_path
from memsvc.recall.budget import cut_at_word
from memsvc.recall.escaping import printable, without_tags

PIN_MARKER: Final = "<!-- deep:pin-end -->"
CHARACTERS_A_TOKEN: Final = 4
MAX_LINES: Final = 200
# The head may take this share of the block, so that it never pushes out what was learnt last.
_PINNED_SHARE: Final = 0.5
_LONGEST_MARKER: Final = len("... [1,000,000 more lines in memory] ...\n\n")
# What is left of a text that had to be cut, and says so.
_LONGEST_CUT: Final = len(" … [cut: 100,000,000 more characters]")


class Keep(StrEnum):
    """Which lines stay of a notebook that is too long: those of its beginning or of its end."""

    HEAD = "head"
    TAIL = "tail"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """`dropped` counts the lines that are left out."""

    text: str
    dropped: int = 0


def notebook_path(agent: str) -> str:
    """Where an agent keeps its notebook. Raises `InvalidPath`."""
    return spelt_path(f"/agents/{agent}/MEMORY.md")


def notebook_tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_A_TOKEN)


def excerpt(agent: str, content: str, *, keep: Keep, max_lines: int | None, characters: int) -> Excerpt:
    """The section for the instructions, in at most `characters`; empty for an empty notebook.

    With `max_lines` no more lines of the body are kept; without, as many as there is room for, at least one. What
    stands above the first pin marker comes before them, whole while it takes no more than half of the room.
    """
    # They are told apart before tags are escaped, for the marker is one.
    before, marker, after = printable(content).partition(PIN_MARKER)
    pinned = without_tags(before.rstrip("\n")) if marker else ""
    body = without_tags(after.lstrip("\n") if marker else before)
    if not content.replace(PIN_MARKER, "", 1).strip():
        return Excerpt("")
    heading = f"## Agent Memory ({without_tags(printable(one_line(agent)))})\n\n"
    if len(heading) > characters // 2:
        heading = ""
    room = characters - len(heading)
    if pinned:
        pinned = shortened(pinned, int(room * _PINNED_SHARE) if body else room)
    section = _body(body, keep, max_lines, room - len(pinned) - 2 * bool(pinned)) if body else Excerpt("")
    text = f"{pinned}\n\n{section.text}" if pinned and section.text else pinned or section.text
    return Excerpt(heading + text, section.dropped)


def _body(body: str, keep: Keep, max_lines: int | None, room: int) -> Excerpt:
    lines = body.splitlines()
    if len(body) <= room and (max_lines is None or len(lines) <= max_lines):
        return Excerpt(body)
    kept = _kept(lines, keep, len(lines) if max_lines is None else max_lines, room - _LONGEST_MARKER)
    dropped = len(lines) - len(kept)
    text = "\n".join(kept)
    if not dropped:
        return Excerpt(shortened(text, room))
    marker = f"... [{dropped} more lines in memory] ..."
    text = shortened(text, room - len(marker) - 2)
    if not text:
        return Excerpt(shortened(marker, room), dropped)
    return Excerpt(f"{marker}\n\n{text}" if keep is Keep.TAIL else f"{text}\n\n{marker}", dropped)


def _kept(lines: list[str], keep: Keep, most: int, room: int) -> list[str]:
    """Lines from one end while there is room, each with its line end; at least one."""
    count, used = 0, 0
    for line in reversed(lines) if keep is Keep.TAIL else lines:
        used += len(line) + 1
        if count and (used > room or count >= most):
            break
        count += 1
    return lines[len(lines) - count :] if keep is Keep.TAIL else lines[:count]


def shortened(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    if room <= 2 * _LONGEST_CUT:
        return text[: max(0, room)]
    return cut_at_word(text, room - _LONGEST_CUT)
