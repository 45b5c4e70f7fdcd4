"""The list that goes with an export: what is in it, from which revision, and which names stand for other paths."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

_FORMAT: Final = "memsvc-export/1"


@dataclass(slots=True)
class Manifest:
    """`files` gives the SHA-256 of each member by its name, in hex; `renamed` the path that a name stands for."""

    tree: str
    revision: int
    at: datetime
    files: dict[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        content = {
            "format": _FORMAT,
            "tree": self.tree,
            "revision": self.revision,
            "at": self.at.isoformat(),
            "renamed": dict(self.renamed),
            "sha256": self.files,
        }
        return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def renamed_in(data: bytes) -> dict[str, str] | None:
    """The `renamed` part of a manifest; None when this is no manifest of ours.

    The rest is not believed: people may have edited the files since.
    """
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        return None
    renamed = content.get("renamed")
    if not isinstance(renamed, dict):
        return None
    return {name: path for name, path in renamed.items() if isinstance(path, str)}
