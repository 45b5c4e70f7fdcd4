"""Which entries state the same, so that a search shows one of them and names the others.

Only what is equal does. A sign, a digit or one small word turns a statement round ("+10%" and "-10%", `>` and `<`,
"is" and "is not"), the same text is another statement of another project, and what happened twice are two events. So
texts are compared as they stand, but for blanks around them and for the two ways to write an accented letter.
"""

import hashlib
import json
import unicodedata
from datetime import datetime

from memsvc.contract.entries import EntryRead
from memsvc.format import CATEGORY_KIND, MemoryCategory, MemoryKind, in_utc


def outline(category: str, created: datetime | None, summary: str) -> tuple[str, ...]:
    """What can be told of an entry without its body. Where it differs, entries are not equal."""
    is_episode = CATEGORY_KIND[MemoryCategory(category)] is MemoryKind.EPISODIC
    instant = in_utc(created).isoformat() if is_episode and created else ""
    return category, instant, _plain(summary)


def statement(found: EntryRead) -> bytes:
    """The same for entries that state the same: of equal body, summary, category, tags and metadata, both superseded
    or neither, episodes of one instant, and procedures of one file, whose name is their title.

    Source and confidence may differ, and so may the order of the tags.
    """
    entry = found.entry
    stated = [
        *outline(entry.category, entry.created, entry.summary),
        _plain(entry.body),
        sorted({_plain(tag) for tag in entry.tags}),
        json.dumps(dict(found.metadata), sort_keys=True),
        entry.is_active,
        found.path if entry.kind is MemoryKind.PROCEDURAL else "",
    ]
    return hashlib.sha256(json.dumps(stated).encode()).digest()


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip()
