"""Stored text inside a prompt: so that it can't end its quotation, pose as an instruction or as another entry."""

import re
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from memsvc.format.invisibles import with_unseen_shown

# Characters that nobody sees, or that stand on others.
_UNSEEN: Final = (
    "\u00ad\u0300-\u036f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e0fff"
)
# What opens a tag in any of the dialects that models were trained on, or looks as if it did; a mere "less than" does
# neither.
_TAG: Final = re.compile(
    rf"[<\ufe64\uff1c](?=[{_UNSEEN}]*(?:[!?|\uff01\uff1f\uff5c]|[^\W\d_])|[\s{_UNSEEN}]*[/\uff0f])"
)
# The mark of an entry in the format of messages.
_ENTRY_MARK: Final = re.compile(r"\[(?=\s*(?:FACT|EPISODE|PROCEDURE)\b)", re.IGNORECASE)
# Neither XML nor a terminal takes these.
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")
_ID: Final = re.compile(r"[^\w.:@/+-]")


def without_tags(text: str) -> str:
    return _TAG.sub("&lt;", text)


def quoted_lines(text: str) -> str:
    """Each line behind a `>`, whatever a reader may take for a line end."""
    lines = printable(without_tags(text)).splitlines() or [""]
    return "".join(f"> {line}\n" if line else ">\n" for line in lines)


def folded_line(text: str) -> str:
    """All in one line, in which no mark of an entry stands."""
    line = " ".join(part for part in text.splitlines() if part)
    return _ENTRY_MARK.sub(r"\\[", printable(without_tags(line)))


def xml_text(text: str) -> str:
    # Escaped already is all but the forms that only look like it.
    return without_tags(escape(printable(text)))


def xml_attribute(text: str) -> str:
    return quoteattr(printable(text))


def plain_id(entry_id: str) -> str:
    """An id as it may stand in a line of ours: ids that were imported may hold anything."""
    return _ID.sub("_", entry_id)


def printable(text: str) -> str:
    return with_unseen_shown(_CONTROL.sub("\ufffd", text))
