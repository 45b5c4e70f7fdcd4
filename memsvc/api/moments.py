from collections.abc import Mapping
from typing import Any

from memsvc.tree import reads
from memsvc.tree.access import Access


def revision_of(access: Access, asked: Mapping[str, Any]) -> int | None:
    """The revision that a request (an `AsOf`) wants to read; None is now."""
    revision: int | None = asked["revision"]
    return reads.revision_at(access, asked["at"]) if asked["at"] is not None else revision
