"""Exact replacement in a text, as the edit tool of deepagents does it, without touching any other byte."""

from memsvc.format import places_of, plain_line_ends
from memsvc.tree.errors import EmptyOldString, StringNotFound, StringNotUnique


def replace_text(text: str, old: str, new: str, *, replace_all: bool, newline: str) -> tuple[str, int]:
    """Replace `old` by `new` in `text`; the answer is the new text and how often `old` stood there.

    Line ends match whatever their form, because a reader is shown `\\n` for each of them. What is put in gets
    the file's own `newline`; everything else keeps its bytes. Raises one of the `EditRefused` errors.
    """
    old, new = plain_line_ends(old), plain_line_ends(new)
    if not old:
        raise EmptyOldString("Error: old_string cannot be empty. Provide the exact text to replace.")
    places = places_of(text, old)
    if not places:
        raise StringNotFound(_why_not_found(plain_line_ends(text), old))
    if len(places) > 1 and not replace_all:
        raise StringNotUnique(
            f"Error: String '{old}' appears {len(places)} times in file. Use replace_all=True to replace all "
            "instances, or provide a more specific string with surrounding context.",
            len(places),
        )
    parts, done = [], 0
    for start, end in places:
        parts += [text[done:start], new.replace("\n", newline)]
        done = end
    return "".join([*parts, text[done:]]), len(places)


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
