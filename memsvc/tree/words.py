"""How text is compared when it is searched: composed, case-folded, white space collapsed."""

import unicodedata
from collections.abc import Iterable

from memsvc.format import MemoryEntry


def folded(text: str) -> str:
    """`Straße  X` and `STRASSE x` are one text, and so are both spellings of `é`."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())


def search_text(entry: MemoryEntry) -> str:
    """All that a query is looked for in; a line break keeps a phrase from matching across two fields."""
    fields = (entry.summary, entry.body, *entry.tags, entry.entry_id, entry.source)
    return "\n".join(folded(field) for field in fields if field)


def tag_keys(tags: Iterable[str]) -> list[str]:
    return [folded(tag) for tag in tags]
