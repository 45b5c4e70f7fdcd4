"""The list that goes with an export: what is in it, from which revision, and which names stand for other paths."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Self
from uuid import UUID

from memsvc.format.entries import instant_of
from memsvc.tree.arrivals import FileExpiries

_FORMAT: Final = "memsvc-export/1"
_NO_EXPIRIES: Final[FileExpiries] = {}


@dataclass(slots=True)
class Manifest:
    """`files` gives the SHA-256 of each member by its name, in hex; `renamed` the path that a name stands for.

    `expiries` says by name when entries, and rows of an index, disappear; `lost` how many blocks do without being one
    of these, and so stay when they are imported.
    """

    tree: str
    tree_id: UUID
    revision: int
    at: datetime
    files: dict[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    expiries: dict[str, FileExpiries] = field(default_factory=dict)
    lost: int = 0

    def to_bytes(self) -> bytes:
        content: dict[str, Any] = {
            "format": _FORMAT,
            "tree": self.tree,
            "tree_id": str(self.tree_id),
            "revision": self.revision,
            "at": self.at.isoformat(),
            "renamed": dict(self.renamed),
            "sha256": self.files,
        }
        if self.expiries:
            content["expires"] = {
                name: [[key, above, at.isoformat()] for (key, above), at in expiries.items()]
                for name, expiries in self.expiries.items()
            }
        if self.lost:
            content["expiries_lost"] = self.lost
        return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


@dataclass(frozen=True, slots=True)
class Brought:
    """What a manifest says to an import. People may have edited the files since, or the manifest."""

    renamed: Mapping[str, str]
    tree_id: str = ""
    revision: int = 0
    sha256: Mapping[str, str] = field(default_factory=dict)
    expires: Mapping[str, object] = field(default_factory=dict)
    lost: int = 0

    @classmethod
    def read(cls, data: bytes) -> Self | None:
        """None when this is no manifest of ours."""
        try:
            content = json.loads(data)
        except (ValueError, RecursionError):
            return None
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            return None
        if not isinstance(content.get("renamed"), dict):
            return None
        revision, lost = content.get("revision"), content.get("expiries_lost")
        expires = content.get("expires")
        return cls(
            _texts(content.get("renamed")),
            str(content.get("tree_id") or ""),
            revision if type(revision) is int else 0,
            _texts(content.get("sha256")),
            expires if isinstance(expires, dict) else {},
            lost if type(lost) is int else 0,
        )

    def expiries_of(self, name: str) -> FileExpiries:
        """When blocks of a file disappear; what can't be read of it is left out."""
        listed = self.expires.get(name)
        return dict(filter(None, map(_expiry, listed))) if isinstance(listed, list) else _NO_EXPIRIES


def _expiry(listed: object) -> tuple[tuple[str, int], datetime] | None:
    match listed:
        case [str(key), int(above), str(at)] if (instant := instant_of(at)) is not None:
            return (key, above), instant
    return None


def _texts(found: object) -> dict[str, str]:
    every: Sequence[tuple[object, object]] = list(found.items()) if isinstance(found, dict) else []
    return {name: text for name, text in every if isinstance(name, str) and isinstance(text, str)}
