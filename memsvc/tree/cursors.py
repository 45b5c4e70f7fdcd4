"""Where a listing goes on: opaque to callers, and good for nothing but a place in their own list."""

import base64
import binascii
import json
from datetime import date, datetime
from uuid import UUID

from django.db.models import Model, QuerySet

from memsvc.format import InvalidText


def cursor_of_text(text: str) -> str:
    return _encoded([text])


def after_text(cursor: str) -> str:
    match _decoded(cursor):
        case [str(text)] if "\0" not in text:
            return text
    raise _refusal()


def cursor_of_number(number: int) -> str:
    return _encoded([str(number)])


def after_number(cursor: str) -> int:
    match _decoded(cursor):
        case [str(number)] if number.isdecimal() and len(number) < 19:
            return int(number)
    raise _refusal()


def cursor_of_id(row_id: UUID) -> str:
    return _encoded([row_id.hex])


def after_id(cursor: str) -> UUID:
    match _decoded(cursor):
        case [str(row_id)]:
            try:
                return UUID(row_id)
            except ValueError:
                pass
    raise _refusal()


def newest_by_id[M: Model](
    rows: QuerySet[M], *, cursor: str | None, limit: int
) -> tuple[list[M], str | None]:
    """A page of rows whose ids say when they were made, newest first, and the cursor of the next one."""
    rows = rows.order_by("-pk")
    if cursor is not None:
        rows = rows.filter(pk__lt=after_id(cursor))
    found = list(rows[: limit + 1])
    return found[:limit], cursor_of_id(found[limit - 1].pk) if len(found) > limit else None


def cursor_of_day(day: date, row_id: UUID) -> str:
    return _encoded([day.isoformat(), row_id.hex])


def after_day(cursor: str) -> tuple[date, UUID]:
    match _decoded(cursor):
        case [str(day), str(row_id)]:
            try:
                return date.fromisoformat(day), UUID(row_id)
            except ValueError:
                pass
    raise _refusal()


def cursor_of_version(number: int, file_id: UUID) -> str:
    return _encoded([str(number), file_id.hex])


def after_version(cursor: str) -> tuple[int, UUID]:
    match _decoded(cursor):
        case [str(number), str(file_id)] if number.isdecimal() and len(number) < 19:
            try:
                return int(number), UUID(file_id)
            except ValueError:
                pass
    raise _refusal()


def cursor_of_entry(created: datetime, block_id: UUID) -> str:
    return _encoded([created.isoformat(), block_id.hex])


def after_entry(cursor: str) -> tuple[datetime, UUID]:
    match _decoded(cursor):
        case [str(created), str(block_id)]:
            try:
                instant = datetime.fromisoformat(created)
                if instant.tzinfo is not None:
                    return instant, UUID(block_id)
            except ValueError:
                pass
    raise _refusal()


def cursor_of_place(created: datetime, path: str, position: int, block_id: UUID) -> str:
    return _encoded([created.isoformat(), path, str(position), block_id.hex])


def after_place(cursor: str) -> tuple[datetime, str, int, UUID]:
    """When an entry was created, and where it stands: its file, its position in it, its block."""
    match _decoded(cursor):
        case [str(created), str(path), str(position), str(block_id)] if "\0" not in path:
            try:
                instant = datetime.fromisoformat(created)
                if instant.tzinfo is not None and len(position) < 19:
                    return instant, path, int(position), UUID(block_id)
            except ValueError:
                pass
    raise _refusal()


def cursor_of_rank(revision: int, place: int, search: str) -> str:
    return _encoded([str(revision), str(place), search])


def after_rank(cursor: str) -> tuple[int, int, str]:
    """The revision that a search is of, how many of its hits were shown, and which search it is."""
    match _decoded(cursor):
        case [str(revision), str(place), str(search)] if revision.isdecimal() and place.isdecimal():
            if len(revision) < 19 and len(place) < 19:
                return int(revision), int(place), search
    raise _refusal()


def _encoded(values: list[str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def _decoded(cursor: str) -> object:
    try:
        return json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        raise _refusal() from None


def _refusal() -> InvalidText:
    return InvalidText("cursor: this is not a `next` of the same listing; start again without one")
