"""Where memories live: folders, categories, monthly shards and slugs of the tree under /memory/."""

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType

from memsvc.format.invisibles import is_unseen, spells
from memsvc.format.refusals import InvalidText, InvalidTitle
from memsvc.format.text import checked_text

MEMORY_ROOT = "/memory/"
EPISODIC_DIR = "/memory/episodic_memory/"
SEMANTIC_DIR = "/memory/semantic_memory/"
PROCEDURAL_DIR = "/memory/procedural_memory/"
ROOT_INDEX_PATH = "/memory/index.md"
PREFERENCES_PATH = "/memory/preferences.md"

MAX_SLUG_BYTES = 200
_RESERVED_SLUG = "index"


class MemoryKind(StrEnum):
    """What a memory is about."""

    EPISODIC = "episodic"  # what happened, tied to a moment
    SEMANTIC = "semantic"  # what is true
    PROCEDURAL = "procedural"  # how things are done


class MemoryCategory(StrEnum):
    """The family of files that an entry belongs to."""

    EVENTS = "events"
    FEEDBACKS = "feedbacks"
    ERRORS = "errors"
    FACTS = "facts"
    RULES = "rules"
    PREFERENCES = "preferences"
    PROCEDURE = "procedure"


CATEGORY_KIND: Mapping[MemoryCategory, MemoryKind] = MappingProxyType(
    {
        MemoryCategory.EVENTS: MemoryKind.EPISODIC,
        MemoryCategory.FEEDBACKS: MemoryKind.EPISODIC,
        MemoryCategory.ERRORS: MemoryKind.EPISODIC,
        MemoryCategory.FACTS: MemoryKind.SEMANTIC,
        MemoryCategory.RULES: MemoryKind.SEMANTIC,
        MemoryCategory.PREFERENCES: MemoryKind.SEMANTIC,
        MemoryCategory.PROCEDURE: MemoryKind.PROCEDURAL,
    }
)

KIND_DIRECTORIES: Mapping[MemoryKind, str] = MappingProxyType(
    {
        MemoryKind.EPISODIC: EPISODIC_DIR,
        MemoryKind.SEMANTIC: SEMANTIC_DIR,
        MemoryKind.PROCEDURAL: PROCEDURAL_DIR,
    }
)


def index_path(kind: MemoryKind | None = None) -> str:
    """Return the path of a kind's router index; without a kind, that of the root index."""
    return ROOT_INDEX_PATH if kind is None else f"{KIND_DIRECTORIES[kind]}index.md"


def category_directory(category: MemoryCategory) -> str:
    """Return the folder, with a trailing slash, that holds a category's files."""
    if category is MemoryCategory.PREFERENCES:
        return MEMORY_ROOT
    kind = CATEGORY_KIND[category]
    if kind is MemoryKind.EPISODIC:
        return f"{EPISODIC_DIR}{category.value}/"
    return KIND_DIRECTORIES[kind]


def in_utc(when: datetime | None) -> datetime:
    """Return `when` in UTC: a naive instant is UTC already, none is now.

    Raises `InvalidText` for an instant at the edge of the calendar that has no date in UTC.
    """
    if when is None:
        return datetime.now(tz=UTC)
    if when.tzinfo is None:
        return when.replace(tzinfo=UTC)
    try:
        return when.astimezone(UTC)
    except OverflowError:
        raise InvalidText(f"{when.isoformat()} is not within the years 1 to 9999 in UTC") from None


def shard_label(when: datetime | None = None) -> str:
    """Return the month, in UTC, whose file an episode of `when` (default now) belongs to: `2026-08`."""
    instant = in_utc(when)
    return f"{instant.year:04}-{instant.month:02}"


MAX_TITLE_BYTES = 1024 * 1024


def slugify(text: str) -> str:
    """Turn a title into the name of a file, without extension.

    Lower case, with everything but letters and digits turned into single hyphens. Letters of other scripts stay,
    accents on Latin ones go (`Über Straße` becomes `uber-strasse`). `index`, which would name a router, becomes
    `index-procedure`; a slug of more than `MAX_SLUG_BYTES` bytes is cut and told apart by a digest of the whole.
    Raises `InvalidTitle` where no letter and no digit is left.
    """
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    without_accents = re.sub(r"(?<=[a-z])[\u0300-\u036f]+", "", folded)
    letters = "".join(_slug_characters(unicodedata.normalize("NFC", without_accents)))
    slug = re.sub("-+", "-", letters).strip("-")
    if not slug:
        raise InvalidTitle(f"cannot build a slug from {text!r}")
    if slug == _RESERVED_SLUG:
        return f"{_RESERVED_SLUG}-procedure"
    return _shortened(slug)


def entry_path(category: MemoryCategory, *, when: datetime | None = None, title: str | None = None) -> str:
    """Return the file that a new entry of this category belongs in.

    `when` (default now) chooses an episode's monthly file, `title` names a procedure's; other categories take no
    notice of either. Raises `InvalidTitle` for a procedure without a usable title.
    """
    directory = category_directory(category)
    if category is MemoryCategory.PROCEDURE:
        if title is None or not title.strip():
            raise InvalidTitle("a procedure entry requires a title")
        return f"{directory}{slugify(title)}.md"
    if CATEGORY_KIND[category] is MemoryKind.EPISODIC:
        return f"{directory}{shard_label(when)}.md"
    return f"{directory}{category.value}.md"


def checked_title(title: str | None) -> str | None:
    """Return a title that can be stored: text without control characters, but for blanks. Raises `InvalidText`."""
    if title is None:
        return None
    checked_text(title, field="title", max_bytes=MAX_TITLE_BYTES)
    for place, character in enumerate(title):
        if unicodedata.category(character) == "Cc" and not character.isspace():
            raise InvalidText(f"title holds a control character at character {place}; take it out")
    return title


def _slug_characters(text: str) -> list[str]:
    characters: list[str] = []
    after_letter = False
    for at, character in enumerate(text):
        category = unicodedata.category(character)
        # Vowel signs of Arabic or Devanagari are marks that make the word; a mark alone names nothing, and what
        # nobody sees only where it is spelling.
        if is_unseen(character):
            after_letter = after_letter and spells(text, at)
        else:
            is_mark = category in ("Mn", "Mc") and after_letter
            after_letter = category[0] == "L" or category == "Nd" or is_mark
        characters.append(character if after_letter else "-")
    return characters


def _shortened(slug: str) -> str:
    encoded = slug.encode()
    if len(encoded) <= MAX_SLUG_BYTES:
        return slug
    digest = hashlib.sha256(encoded).hexdigest()[:8]
    head = encoded[: MAX_SLUG_BYTES - len(digest) - 1].decode(errors="ignore")
    return f"{head.rstrip('-')}-{digest}"
