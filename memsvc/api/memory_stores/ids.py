"""Ids as this door writes them: a prefix and the hexadecimal digits of a row's id."""

import re
from uuid import UUID

from memsvc.tree.errors import MemoryNotFound, NotFound, StoreNotFound, VersionNotFound

_STORE = re.compile("memstore_([0-9a-f]{32})")
_MEMORY = re.compile("mem_([0-9a-f]{32})")
# No revision has more digits, and none begins with a zero: one version has one id.
_VERSION = re.compile("memver_([0-9a-f]{32})_([1-9][0-9]{0,17})")


def store_id(tree: UUID) -> str:
    return f"memstore_{tree.hex}"


def memory_id(file: UUID) -> str:
    return f"mem_{file.hex}"


def version_id(file: UUID, number: int) -> str:
    return f"memver_{file.hex}_{number}"


def tree_of(text: str) -> UUID:
    """Raises `StoreNotFound`, as for a store that never was."""
    return UUID(_parsed(_STORE, text, StoreNotFound)[1])


def file_of(text: str) -> UUID:
    """Raises `MemoryNotFound`."""
    return UUID(_parsed(_MEMORY, text, MemoryNotFound)[1])


def version_of(text: str) -> tuple[UUID, int]:
    """The file and the revision's number. Raises `VersionNotFound`."""
    match = _parsed(_VERSION, text, VersionNotFound)
    return UUID(match[1]), int(match[2])


def _parsed(pattern: re.Pattern[str], text: str, absent: type[NotFound]) -> re.Match[str]:
    match = pattern.fullmatch(text)
    if match is None:
        raise absent
    return match
