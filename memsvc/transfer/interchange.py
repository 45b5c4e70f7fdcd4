"""JSON Lines, interchange v1: a header, then one memory or one document a line.

A `document` is a file of a tree, a `memory` one entry. Our own exports hold both: each file, so that nothing is lost,
and behind it its entries, for whoever doesn't read the files' format. Where a file isn't UTF-8 text, its content is
base64, which `encoding` says.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from memsvc.contract.errors import ErrorCode
from memsvc.format import (
    CATEGORY_KIND,
    CONFIDENCE_NUMBERS,
    Confidence,
    FormatError,
    MemoryCategory,
    MemoryKind,
    visible_path,
)
from memsvc.format.entries import instant_of
from memsvc.transfer.external_memories import ExternalMemory

FORMAT, VERSION = "memsvc-export", 1

_CATEGORIES: Final = {
    MemoryKind.EPISODIC: MemoryCategory.EVENTS,
    MemoryKind.SEMANTIC: MemoryCategory.FACTS,
    MemoryKind.PROCEDURAL: MemoryCategory.PROCEDURE,
}
# What an entry has no field for, and keeps as its origin.
_KEPT: Final = ("last_accessed", "access_count", "provenance", "pinned", "updated_at")
# Line ends for some readers of lines, although JSON lets them stand.
_LINE_ENDS: Final = {ord(sign): f"\\u{ord(sign):04x}" for sign in "\x85\u2028\u2029"}


class InvalidLine(FormatError):
    """A line that can't be taken, with the reason."""

    code = ErrorCode.INVALID_LINE


@dataclass(frozen=True, slots=True)
class Document:
    path: str
    content: bytes


def header_line(system: str, version: str) -> bytes:
    return json_line(
        {
            "format": FORMAT,
            "version": VERSION,
            "source": {"system": system, "version": version},
            "embedding": {"model": None, "dim": None},
        }
    )


def document_line(tree: str, path: str, data: bytes) -> bytes:
    try:
        content, encoding = data.decode(), "utf-8"
    except UnicodeDecodeError:
        content, encoding = b64encode(data).decode(), "base64"
    return json_line(
        {"type": "document", "tree": tree, "path": path, "encoding": encoding, "content": content}
    )


def memory_line(tree: str, memory: ExternalMemory) -> bytes:
    kept = {name: memory.origin.get(name) for name in _KEPT}
    return json_line(
        {
            "type": "memory",
            "external_id": memory.external_id,
            "tree": tree,
            "path": memory.path,
            "kind": CATEGORY_KIND[memory.category],
            "category": memory.category,
            "content": memory.content,
            "summary": memory.summary,
            "tags": list(memory.tags),
            "source": memory.source,
            "confidence": memory.confidence,
            "created_at": memory.created_at.isoformat(),
            "updated_at": kept["updated_at"],
            "expires_at": memory.expires_at.astimezone(UTC).isoformat() if memory.expires_at else None,
            "last_accessed": kept["last_accessed"],
            "access_count": kept["access_count"] or 0,
            "metadata": dict(memory.metadata),
            "provenance": kept["provenance"] or [],
            "supersedes": memory.supersedes,
            "superseded_by": memory.superseded_by,
            "pinned": kept["pinned"] or False,
            "embedding": None,
        }
    )


def json_line(content: Mapping[str, object]) -> bytes:
    """An object as a line, which nobody's idea of a line end cuts in two."""
    return (json.dumps(content, ensure_ascii=False).translate(_LINE_ENDS) + "\n").encode()


# --- reading -----------------------------------------------------------------------------------------------------


def parsed_line(line: bytes) -> dict[str, Any]:
    """The object on a line. Raises `InvalidLine`."""
    try:
        content = json.loads(line.decode(), parse_constant=_no_constant)
    except RecursionError:
        raise InvalidLine("is nested too deeply") from None
    except ValueError as error:
        raise InvalidLine(f"is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise InvalidLine("is no JSON object")
    return content


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def require_header(content: Mapping[str, Any]) -> None:
    if content.get("format") != FORMAT or content.get("version") != VERSION:
        raise InvalidLine(f'must be the header, with "format": "{FORMAT}" and "version": {VERSION}')


def document_in(content: Mapping[str, Any]) -> Document:
    path, text = visible_path(_text(content, "path")), _text(content, "content")
    encoding = content.get("encoding", "utf-8")
    if encoding not in ("utf-8", "base64"):
        raise InvalidLine("encoding must be utf-8 or base64")
    try:
        return Document(path, text.encode() if encoding == "utf-8" else b64decode(text, validate=True))
    except ValueError:
        raise InvalidLine(f"content is no {encoding}") from None


def memory_in(content: Mapping[str, Any]) -> ExternalMemory:
    """Raises `InvalidLine` and `FormatError`."""
    path = content.get("path")
    return ExternalMemory(
        external_id=_text(content, "external_id"),
        category=_category(content),
        content=_text(content, "content"),
        created_at=_created(content),
        summary=_text(content, "summary", default=""),
        tags=_texts(content, "tags"),
        source=_text(content, "source", default=""),
        confidence=_confidence(content.get("confidence")),
        expires_at=_instant(content, "expires_at"),
        supersedes=_text(content, "supersedes", default="") or None,
        superseded_by=_text(content, "superseded_by", default="") or None,
        path=visible_path(_text(content, "path")) if path is not None else None,
        metadata=_object(content, "metadata"),
        origin={name: content[name] for name in _KEPT if content.get(name)},
    )


def _text(content: Mapping[str, Any], name: str, *, default: str | None = None) -> str:
    value = content.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise InvalidLine(f"{name} must be text")
    return value


def _object(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = content.get(name) or {}
    if not isinstance(value, dict):
        raise InvalidLine(f"{name} must be an object")
    return value


def _texts(content: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = content.get(name) or []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidLine(f"{name} must be a list of texts")
    return tuple(value)


def _instant(content: Mapping[str, Any], name: str) -> datetime | None:
    text = _text(content, name, default="")
    instant = instant_of(text) if text else None
    if text and instant is None:
        raise InvalidLine(f"{name} must be a date and time (ISO 8601)")
    return instant


def _created(content: Mapping[str, Any]) -> datetime:
    # A time of our own choosing would make another entry of it with every import.
    created = _instant(content, "created_at")
    if created is None:
        raise InvalidLine("created_at must be given")
    return created


def _category(content: Mapping[str, Any]) -> MemoryCategory:
    try:
        if content.get("category") is not None:
            return MemoryCategory(content["category"])
        return _CATEGORIES[MemoryKind(str(content.get("kind")))]
    except ValueError:
        raise InvalidLine("names neither a known category nor a known kind") from None


def _confidence(value: object) -> float:
    if value is None:
        return CONFIDENCE_NUMBERS[Confidence.MEDIUM]
    if isinstance(value, str) and value in CONFIDENCE_NUMBERS:
        return CONFIDENCE_NUMBERS[Confidence(value)]
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise InvalidLine("confidence must be a number from 0 to 1, or low, medium or high")
