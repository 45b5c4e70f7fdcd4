"""What callers hand in with a change: the state that they expect to find, and what counts in a conflict."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Precondition:
    """What must hold for a change to be made (RFC 9110, If-Match and If-None-Match).

    `if_match` is an etag or the content's sha256 in hex, without quotes; "*" asks only that something is there.
    `if_none_match_any` asks that nothing is there.
    """

    if_match: str | None = None
    if_none_match_any: bool = False


class OnConflict(StrEnum):
    """What becomes of it when the tree and an import differ: the tree's stays, the import's counts, or both do."""

    KEEP = "keep"
    TAKE = "take"
    BOTH = "both"
