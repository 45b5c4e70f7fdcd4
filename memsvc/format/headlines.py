"""What a text says first: how entries and files are described in one line."""

import re

from memsvc.format.text import one_line

MAX_DESCRIPTION_CHARS = 200

_HEADING = re.compile(r" {0,3}#{1,6}[ \t]++(.*)")


def first_heading(text: str) -> str:
    """Describe a note by its first markdown heading, else its first line that says something; "" if there is none.

    The note's own frontmatter and its code blocks are passed over.
    """
    fallback = ""
    for line in _prose_lines(text):
        heading = _HEADING.fullmatch(line)
        if heading is not None and (title := _heading_text(heading)):
            return shortened(title)
        if not fallback and any(character.isalnum() for character in line):
            fallback = shortened(line)
    return fallback


def first_line(text: str) -> str:
    """Return what a text says first, as it stands in a summary or a row: its first line with a letter or a digit.

    A line of a code block counts where no other has one; a line of other signs only where there is nothing else.
    """
    lines = [*_prose_lines(text), *text.splitlines()]
    saying = (line for line in lines if any(character.isalnum() for character in line))
    line = next(saying, None) or next(filter(str.strip, lines), "")
    heading = _HEADING.fullmatch(line)
    return shortened(_heading_text(heading) if heading else line)


def shortened(text: str) -> str:
    """Return text as a row describes a file by it: in one line of at most 200 characters."""
    line = one_line(text)
    return line if len(line) <= MAX_DESCRIPTION_CHARS else line[: MAX_DESCRIPTION_CHARS - 1].rstrip() + "…"


def _heading_text(heading: re.Match[str]) -> str:
    return heading[1].rstrip(" \t").rstrip("#").rstrip(" \t")


def _prose_lines(text: str) -> list[str]:
    lines = text.removeprefix("\ufeff").splitlines()
    if lines and lines[0].rstrip() == "---":
        closing = next((i for i, line in enumerate(lines[1:], start=1) if line.rstrip() == "---"), 0)
        lines = lines[closing + 1 :]
    prose: list[str] = []
    in_code = False
    for line in lines:
        if line.lstrip(" ").startswith(("```", "~~~")):
            in_code = not in_code
        elif not in_code:
            prose.append(line)
    return prose
