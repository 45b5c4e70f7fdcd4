"""Exact replacement in a text, as the edit tool of deepagents does it, without touching any other byte."""

from bisect import bisect_left
from collections.abc import Iterator

from memsvc.tree.errors import EmptyOldString, StringNotFound, StringNotUnique


def replace_text(text: str, old: str, new: str, *, replace_all: bool, newline: str) -> tuple[str, int]:
    """Replace `old` by `new` in `text`; the answer is the new text and how often `old` stood there.

    Line ends match whatever their form, because a reader is shown `\\n` for each of them. What is put in gets
    the file's own `newline`; everything else keeps its bytes. Raises one of the `EditRefused` errors.
    """
    plain, old, new = _plain(text), _plain(old), _plain(new)
    if not old:
        raise EmptyOldString("Error: old_string cannot be empty. Provide the exact text to replace.")
    occurrences = plain.count(old)
    if occurrences == 0:
        raise StringNotFound(_why_not_found(plain, old))
    if occurrences > 1 and not replace_all:
        raise StringNotUnique(
            f"Error: String '{old}' appears {occurrences} times in file. Use replace_all=True to replace all "
            "instances, or provide a more specific string with surrounding context.",
            occurrences,
        )
    return _spliced(text, plain, old, new.replace("\n", newline)), occurrences


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _why_not_found(plain: str, old: str) -> str:
    without_newline = old.removesuffix("\n")
    if without_newline == old or not without_newline or not plain.endswith(without_newline):
        return f"Error: String not found in file: '{old}'"
    reason = "Error: old_string ends with a newline, but the file does not end with a newline. "
    count = plain.count(without_newline)
    if count == 1:
        return (
            reason + "Retry with the trailing newline removed from old_string "
            "(and from new_string if it also ends with a newline)."
        )
    return (
        reason + f"With the trailing newline removed, old_string would appear {count} times in the file. "
        "Retry with the trailing newline removed and add surrounding context so the match is unique."
    )


def _spliced(text: str, plain: str, old: str, new: str) -> str:
    """Replace each hit that was found in the plain form, in the text as it is stored."""
    pairs = _places_of_pairs(text)
    parts, done = [], 0
    for start in _hits(plain, old):
        end = start + len(old)
        # Each "\r\n" before a place in the plain form makes the stored text one character longer there.
        stored_start = start + bisect_left(pairs, start)
        parts += [text[done:stored_start], new]
        done = end + bisect_left(pairs, end)
    return "".join([*parts, text[done:]])


def _places_of_pairs(text: str) -> list[int]:
    """Where the `\\n` of each `\\r\\n` stands in the plain form."""
    places: list[int] = []
    at = text.find("\r\n")
    while at >= 0:
        places.append(at - len(places))
        at = text.find("\r\n", at + 2)
    return places


def _hits(plain: str, old: str) -> Iterator[int]:
    at = plain.find(old)
    while at >= 0:
        yield at
        at = plain.find(old, at + len(old))
