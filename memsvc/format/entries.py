"""Entries: one unit of memory each, as a value and as text."""

import re
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timezone
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import NamedTuple

from memsvc.format.fences import SEPARATOR, code_closing, entry_spans, unterminated_at
from memsvc.format.frontmatter import (
    KNOWN_KEYS,
    MAX_FRONTMATTER_BYTES,
    Frontmatter,
    FrontmatterError,
    Metadata,
    Value,
    key_lines,
    read_frontmatter,
    summary_line,
    tags_line,
    text_line,
    value_line,
)
from memsvc.format.headlines import first_line
from memsvc.format.layout import CATEGORY_KIND, MemoryCategory, MemoryKind, in_utc
from memsvc.format.metadata import RESERVED_NAMES
from memsvc.format.refusals import BODY_TOO_LARGE, InvalidEntry
from memsvc.format.text import checked_text, one_line

MAX_BODY_BYTES = 256 * 1024
MAX_SUMMARY_BYTES = 40 * 1024
MAX_SOURCE_BYTES = 8 * 1024
MAX_TAG_BYTES = 8 * 1024
MAX_TAGS = 100
MAX_ID_BYTES = 255

DEFAULT_SOURCE = "agent"

NO_METADATA: Metadata = MappingProxyType({})


class Confidence(StrEnum):
    """How much an entry is trusted."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Kept(Enum):
    """What is given for a field of a new entry that is to be what it is in the entry that it supersedes."""

    KEPT = "kept"


# What the levels are where confidence is a number.
CONFIDENCE_NUMBERS: Mapping[Confidence, float] = MappingProxyType(
    {Confidence.LOW: 0.3, Confidence.MEDIUM: 0.6, Confidence.HIGH: 0.9}
)


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One unit of memory with its provenance.

    `created` always has a time zone. `superseded_by` is the id of the entry that replaced this one; an entry
    without it is active.
    """

    entry_id: str
    created: datetime
    category: MemoryCategory
    body: str
    summary: str = ""
    source: str = DEFAULT_SOURCE
    confidence: Confidence = Confidence.MEDIUM
    tags: tuple[str, ...] = ()
    supersedes: str | None = None
    superseded_by: str | None = None

    @property
    def kind(self) -> MemoryKind:
        return CATEGORY_KIND[self.category]

    @property
    def is_active(self) -> bool:
        return self.superseded_by is None

    def replaced_by(self, entry_id: str) -> "MemoryEntry":
        """Return this entry as superseded by another."""
        return replace(self, superseded_by=entry_id)


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """An entry and the file it lives in. A ranked search names as `duplicates` the equal entries that it stands for."""

    path: str
    entry: MemoryEntry
    duplicates: tuple[str, ...] = ()


class UnusableEntry(Exception):
    """A block with the shape of an entry that can't be used as one; str(e) is the reason in a few words."""


def new_entry_id(when: datetime | None = None) -> str:
    """Make an id that no other entry has: `mem_`, the date of `when` (default now) in UTC, 16 hex digits."""
    instant = in_utc(when)
    return f"mem_{instant.year:04}-{instant.month:02}-{instant.day:02}_{secrets.token_hex(8)}"


# --- reading -----------------------------------------------------------------------------------------------------


def read_entry(frontmatter: bytes, body: bytes) -> tuple[MemoryEntry, Mapping[str, Value]]:
    """Read an entry from the lines between its fences and the bytes below them.

    Returns the entry and the keys that the format doesn't know. Bytes that are no UTF-8 read as U+FFFD. Raises
    `UnusableEntry` where there is no usable id, category or `created`.
    """
    # A frontmatter that is too long is refused before it is decoded.
    if len(frontmatter) > MAX_FRONTMATTER_BYTES:
        raise UnusableEntry("yaml: longer than 64 KiB")
    try:
        meta = read_frontmatter(decoded(frontmatter).replace("\r\n", "\n"))
    except FrontmatterError as error:
        raise UnusableEntry(str(error)) from None
    entry_id = meta.text("id").strip()
    if not entry_id or len(entry_id.encode()) > MAX_ID_BYTES:
        raise UnusableEntry("unusable id")
    category = _CATEGORIES.get(meta.text("category"))
    if category is None:
        raise UnusableEntry("unknown category")
    created = instant_of(meta.text("created"))
    if created is None:
        raise UnusableEntry("unusable created")
    text = trimmed_body(decoded(body))
    if "\0" in text:
        raise UnusableEntry("a NUL in the body")
    entry = MemoryEntry(
        entry_id=_unbroken(entry_id),
        created=created,
        category=category,
        body=text,
        summary=_unbroken(meta.text("summary")),
        source=_unbroken(meta.text("source")) or DEFAULT_SOURCE,
        confidence=_CONFIDENCES.get(meta.text("confidence").strip().lower(), Confidence.MEDIUM),
        tags=_tags(meta.values.get("tags", ""), is_null="tags" in meta.nulls),
        supersedes=_id_or_none(meta, "supersedes"),
        superseded_by=_id_or_none(meta, "superseded_by"),
    )
    unknown = {key: value for key, value in meta.values.items() if key not in KNOWN_KEYS}
    return entry, MappingProxyType(unknown)


def decoded(data: bytes) -> str:
    """Return bytes of a file as text; what is no UTF-8 becomes U+FFFD."""
    return data.decode(errors="replace")


def instant_of(text: str) -> datetime | None:
    """Read an ISO 8601 date or date-time; without a zone it is UTC. None for what is neither."""
    # People put a blank before the offset, as YAML allows.
    joined = re.sub(r"\s+(?=[+-]\d\d)", "", text.strip())
    try:
        created = datetime.fromisoformat(joined)
        if created.tzinfo is None:
            return created.replace(tzinfo=UTC)
        created.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return created


def trimmed_body(text: str) -> str:
    """Return a body as it is handed out: with `\\n` line ends and without blank lines at either end.

    The indentation of its first line and the blanks at the end of its last line stay.
    """
    text = text.replace("\r\n", "\n")
    content = text.rstrip(" \t\r\n")
    if not content:
        return ""
    last_line_end = text.find("\n", len(content))
    if last_line_end >= 0:
        text = text[:last_line_end]
    first_line = text.rfind("\n", 0, len(text) - len(text.lstrip(" \t\r\n"))) + 1
    return text[first_line:]


def closed_body(body: str) -> str:
    """Return a body with the line that closes its last code block, where that is missing."""
    # A body is a text of its own, and has a blank line above it.
    closing = code_closing(b"\n" + body.encode(errors="surrogatepass"))
    if not closing:
        return body
    return body + "\n" * (not body.endswith("\n")) + closing.decode()


def parse_entries(text: str) -> list[MemoryEntry]:
    """Return the usable entries of a file's text, in order."""
    return split_document(text)[1]


def split_document(text: str) -> tuple[str, list[MemoryEntry]]:
    """Return a file's preamble, the text above its first entry without white space at its end, and its entries.

    Entries that can't be used are left out: this is no way to rewrite a file. `memsvc.format.documents.cut` is.
    """
    data = text.encode(errors="surrogatepass")
    spans = entry_spans(data)
    preamble = data[: spans[0].start] if spans else data
    entries: list[MemoryEntry] = []
    for span in spans:
        try:
            entry, _ = read_entry(
                data[span.frontmatter_start : span.frontmatter_end], data[span.meta_end : span.end]
            )
        except UnusableEntry:
            continue
        entries.append(entry)
    return preamble.decode(errors="surrogatepass").rstrip(), entries


def _unbroken(value: str) -> str:
    """A one-line field stays as it was written, unless it was written over several lines."""
    return value if value.splitlines() in ([], [value]) else one_line(value)


def _id_or_none(meta: Frontmatter, key: str) -> str | None:
    return None if key in meta.nulls else _unbroken(meta.text(key).strip()) or None


_CATEGORIES = {str(category): category for category in MemoryCategory}
_CONFIDENCES = {str(level): level for level in Confidence}


def _tags(value: Value, *, is_null: bool) -> tuple[str, ...]:
    if is_null or not isinstance(value, str | list):
        return ()
    if isinstance(value, str):
        inner = value.strip()
        if inner.startswith("[") and inner.endswith("]"):
            inner = inner[1:-1]
        return tuple(tag for part in inner.split(",") if (tag := _unbroken(part.strip())))
    return tuple(tag for item in value if isinstance(item, str) and (tag := _unbroken(item.strip())))


# --- writing -----------------------------------------------------------------------------------------------------


def render_entry(entry: MemoryEntry) -> str:
    """Write an entry for every reader of the format, with a line end at its end.

    Raises `InvalidEntry` for a body with a line that is just `---`, which some readers take for the next entry.
    `compose_entry` stores such bodies where our own reader reads them back.
    """
    if any(line.strip() == "---" for line in entry.body.splitlines()):
        raise _bare_fence(entry)
    return _rendered(entry)


def render_document(preamble: str, entries: list[MemoryEntry]) -> str:
    """Write a whole file: the preamble and the entries, a blank line between any two."""
    parts = [preamble.rstrip(), *(render_entry(entry).rstrip() for entry in entries)]
    return "\n\n".join(part for part in parts if part) + "\n"


def normal_entry(entry: MemoryEntry) -> MemoryEntry:
    """Return an entry as it is stored and will be read back.

    One-line fields lose line breaks and double blanks, an empty source is the default one, empty tags go, a naive
    `created` is UTC, and the body has `\\n` line ends, no blank lines at either end, and no code block that is never
    closed: what is below it in the file would be read as code. Raises `InvalidText` or `InvalidEntry` for what can't
    be stored.
    """
    if len(entry.tags) > MAX_TAGS:
        raise InvalidEntry(f"an entry takes at most {MAX_TAGS} tags; leave some out")
    return MemoryEntry(
        entry_id=_checked_id(entry.entry_id, field="id"),
        created=_fixed_offset(entry.created),
        category=MemoryCategory(entry.category),
        body=_checked_body(entry.body),
        summary=_checked_line(entry.summary, field="summary", max_bytes=MAX_SUMMARY_BYTES),
        source=_checked_line(entry.source, field="source", max_bytes=MAX_SOURCE_BYTES) or DEFAULT_SOURCE,
        confidence=Confidence(entry.confidence),
        tags=tuple(
            tag for t in entry.tags if (tag := _checked_line(t, field="tags", max_bytes=MAX_TAG_BYTES))
        ),
        supersedes=_checked_id(entry.supersedes, field="supersedes") if entry.supersedes else None,
        superseded_by=_checked_id(entry.superseded_by, field="superseded_by")
        if entry.superseded_by
        else None,
    )


def compose_entry(entry: MemoryEntry, metadata: Metadata = NO_METADATA, *, written: str = "") -> str:
    """Write an entry as it is stored: `normal_entry(entry)` and its metadata as text, which reads back as just that.

    `written` are the lines that say the metadata, where they are not to be written anew. Raises `InvalidText` or
    `InvalidEntry` for what can't be stored or would read back differently, such as a body that holds another entry.
    """
    return composed(entry, metadata, written=written).text


class Composed(NamedTuple):
    """An entry's text, and what it was found to read back as; `meta_end` as of a block."""

    text: str
    meta_end: int
    entry: MemoryEntry
    extra: Mapping[str, Value]


def composed(entry: MemoryEntry, metadata: Metadata = NO_METADATA, *, written: str = "") -> Composed:
    """The same, with what was read: nobody has to read the text again."""
    stored = normal_entry(entry)
    text = _rendered(stored, metadata, written)
    data = text.encode()
    spans = entry_spans(data)
    # Below an unterminated frontmatter a `---` at the end is the mark that keeps it from swallowing the next entry:
    # the text would be cut into more than itself once another entry follows it.
    above, _, last_line = data.rstrip(b"\n").rpartition(b"\n")
    if len(spans) != 1 or (last_line == SEPARATOR and unterminated_at(above) is not None):
        raise _bare_fence(stored)
    span = spans[0]
    try:
        read_back, extra = read_entry(
            data[span.frontmatter_start : span.frontmatter_end], data[span.meta_end :]
        )
    except UnusableEntry:
        raise InvalidEntry("summary, source, tags and metadata together are too long; shorten them") from None
    if read_back != stored or extra != metadata:
        raise InvalidEntry("the entry would not read back as it was given; take unusual characters out")
    return Composed(text, span.meta_end, read_back, extra)


def summary_after(old: MemoryEntry, body: str) -> str:
    """Return the summary of an entry that supersedes another and was given none: what it says itself, and not it."""
    return first_line(trimmed_body(body)) if old.summary else ""


def carried_lines(head: str) -> tuple[str, dict[str, Value]]:
    """Return the lines of an entry's head that say its metadata, just as they stand, and what they say.

    `head` is all above the body, as of a block. A comment goes with the key below it, one below all keys with the
    last. No line where two keys stand on one.
    """
    data = head.replace("\r\n", "\n").encode()
    span = next(iter(entry_spans(data)), None)
    text = data[span.frontmatter_start : span.frontmatter_end].decode() if span else ""
    lines = "".join(part for key, part in key_lines(text) if key not in RESERVED_NAMES)
    try:
        return lines.removesuffix("\n"), dict(read_frontmatter(lines).values) if lines else {}
    except FrontmatterError:
        return "", {}


def peer_readable(entry: MemoryEntry) -> bool:
    """Whether readers that take any `---` below a blank line for the next entry read this body whole."""
    above_is_blank = True
    for line in entry.body.splitlines():
        if above_is_blank and line.strip() == "---":
            return False
        above_is_blank = not line.strip()
    return True


def _rendered(entry: MemoryEntry, metadata: Metadata = NO_METADATA, written: str = "") -> str:
    lines = [
        "---",
        text_line("id", one_line(entry.entry_id)),
        f"created: {entry.created.isoformat()}",
        f"type: {entry.kind.value}",
        f"category: {entry.category.value}",
        text_line("source", one_line(entry.source)),
        f"confidence: {entry.confidence.value}",
        tags_line(tuple(one_line(tag) for tag in entry.tags)),
    ]
    if entry.supersedes:
        lines.append(text_line("supersedes", one_line(entry.supersedes)))
    if entry.superseded_by:
        lines.append(text_line("superseded_by", one_line(entry.superseded_by)))
    if entry.summary:
        lines.append(summary_line(one_line(entry.summary)))
    lines += [written] if written else [value_line(name, value) for name, value in metadata.items()]
    lines += ["---", "", trimmed_body(entry.body), ""]
    return "\n".join(lines)


def _checked_line(value: str, *, field: str, max_bytes: int) -> str:
    return one_line(checked_text(value, field=field, max_bytes=max_bytes))


def _checked_id(value: str, *, field: str) -> str:
    checked = _checked_line(value, field=field, max_bytes=MAX_ID_BYTES)
    if not checked:
        raise InvalidEntry(f"{field} must not be empty")
    return checked


def _checked_body(body: str) -> str:
    checked_text(body, field="body", max_bytes=sys.maxsize)
    if len(body) > 2 * MAX_BODY_BYTES:
        raise _body_too_large()
    # A "\r" that stands before a line end would be read as a part of it.
    stored = closed_body(trimmed_body(re.sub(r"\r+(?=\n|\Z)", "", body)))
    if len(stored.encode()) > MAX_BODY_BYTES:
        raise _body_too_large()
    return stored


def _fixed_offset(created: datetime) -> datetime:
    """The same instant with a plain offset, as ISO 8601 will give it back; naive is UTC."""
    in_utc(created)
    offset = created.utcoffset()
    return created.replace(tzinfo=UTC if offset is None else timezone(offset), fold=0)


def _bare_fence(entry: MemoryEntry) -> InvalidEntry:
    return InvalidEntry(
        f"entry {entry.entry_id} body must not contain a bare '---' line; write '***' for a thematic break"
    )


def _body_too_large() -> InvalidEntry:
    return InvalidEntry(
        f"an entry's body takes at most {MAX_BODY_BYTES:,} bytes; split it into several entries",
        code=BODY_TOO_LARGE,
    )
