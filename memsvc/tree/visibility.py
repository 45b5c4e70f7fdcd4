"""What a reader may see: the one rule, which is spelt here and nowhere else.

- A file or block is *live at* the revision that added it and in those after it, up to the one that removed it.
- A block is *visible* until it expires; after that nobody sees it, in the newest revision or in an earlier one.
- An entry is *active* until another one supersedes it.

Each is there in the three languages that ask for it, with the same meaning: as a filter of a queryset, as SQL about
the row that a statement calls `row`, and for a row that is at hand. What is to be hidden from readers for another
reason than its age is added to `visible`, `visible_sql` and `is_visible`, with what it goes by to `VISIBLE_BY`, and
no door has to know.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Final

from django.db.models import Q
from django.db.models.functions import Now

if TYPE_CHECKING:
    from memsvc.tree.models import Block, EntryRow, File, TreeRow

# Instead of an instant: what is visible now and won't disappear by itself.
FOR_GOOD: Final = None
# What a row must have been read with for `is_visible`.
VISIBLE_BY: Final = ("expires_at",)
# Of these some may have expired: an index has the few of them.
EXPIRING: Final = Q(expires_at__isnull=False)


def live_at(revision: int | None) -> Q:
    """Rows of one revision; of the newest one when it is None."""
    return (
        Q(removed_in__isnull=True) if revision is None else alive_since(revision) & Q(added_in__lte=revision)
    )


def alive_since(revision: int) -> Q:
    """Rows that this revision or a later one holds."""
    return Q(removed_in__isnull=True) | Q(removed_in__gt=revision)


def live_at_sql(row: str, revision: str | None = None) -> str:
    if revision is None:
        return f"{row}.removed_in IS NULL"
    return f"{row}.added_in <= {revision} AND ({row}.removed_in IS NULL OR {row}.removed_in > {revision})"


def is_live_at(row: "TreeRow", revision: int | None) -> bool:
    if revision is None:
        return row.removed_in is None
    return row.added_in <= revision and (row.removed_in is None or row.removed_in > revision)


def visible(at: datetime | Now | None) -> Q:
    """Blocks that readers see at an instant, or `FOR_GOOD`."""
    never_expires = Q(expires_at__isnull=True)
    return never_expires if at is FOR_GOOD else never_expires | Q(expires_at__gt=at)


def visible_sql(row: str, at: str | None) -> str:
    never_expires = f"{row}.expires_at IS NULL"
    return never_expires if at is FOR_GOOD else f"({never_expires} OR {row}.expires_at > {at})"


def is_visible(row: "Block | EntryRow", at: datetime | None) -> bool:
    return row.expires_at is None if at is FOR_GOOD else not has_expired(row.expires_at, at)


def active(revision: int | None) -> Q:
    """Entries that no other one had superseded by a revision; by the newest one when it is None."""
    active_now = Q(superseded_by="")
    return active_now if revision is None else active_now | Q(superseded_in__gt=revision)


def active_sql(row: str, revision: str | None = None) -> str:
    active_now = f"{row}.superseded_by = ''"
    return active_now if revision is None else f"({active_now} OR {row}.superseded_in > {revision})"


def is_active(row: "Block | EntryRow", revision: int | None = None) -> bool:
    superseded_later = revision is not None and row.superseded_in is not None and row.superseded_in > revision
    return not row.superseded_by or superseded_later


def has_expired(expires_at: datetime | None, at: datetime) -> bool:
    """Whether what disappears at a time, or never, has done so; also of what is no row."""
    return expires_at is not None and expires_at <= at


def expired_sql(row: str, at: str) -> str:
    return f"{row}.expires_at <= {at}"


def expiring_sql(row: str) -> str:
    return f"{row}.expires_at IS NOT NULL"


def to_be_counted(at: datetime) -> Q:
    """Files of whose size, lines and visibility their rows can't tell: something in them has expired since, or
    nothing is in them, or nothing of what is can be seen.
    """
    return Q(next_expiry__lte=at) | Q(size=0)


def must_be_counted(file: "File", at: datetime) -> bool:
    return file.size == 0 or has_expired(file.next_expiry, at)
