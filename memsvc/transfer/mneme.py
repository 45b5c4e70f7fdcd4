"""Memories out of a SQLite file of Mneme, whose table `records` needs no extension to be read.

The file is untrusted: it is opened read-only and immutable, nothing in its schema may run, no extension can be
loaded, and every query ends after a number of steps.
"""

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from memsvc.contract.imports import ImportReport
from memsvc.format import MAX_BODY_BYTES, MemoryCategory
from memsvc.format.entries import instant_of
from memsvc.transfer.archives import Limits
from memsvc.transfer.external import ENTRIES_FOR_A_FILE, Gathered, stored
from memsvc.transfer.external_memories import ExternalMemory
from memsvc.transfer.refusals import ArchiveTooLarge, ImportRefused, InvalidArchive
from memsvc.tree.access import Access
from memsvc.tree.commands import OnConflict

SYSTEM: Final = "mneme"

_COLUMNS: Final = (
    "id",
    "agent_id",
    "tier",
    "content",
    "created_at",
    "last_accessed",
    "access_count",
    "expires_at",
    "metadata",
    "confidence",
    "provenance",
)
_CATEGORIES: Final = {"episodic": MemoryCategory.EVENTS, "semantic": MemoryCategory.FACTS}
_MAX_VALUE_BYTES: Final = 4 * MAX_BODY_BYTES
# SQLite's own instructions between two checks, and the checks that a whole read may take.
_STEPS_AT_ONCE, _MOST_CHECKS = 100_000, 10_000
_ALLOWED: Final = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)


def import_mneme(
    access: Access,
    database: Path,
    *,
    on_conflict: OnConflict = OnConflict.KEEP,
    dry_run: bool = False,
    message: str = "",
    only: str | None = None,
    limits: Limits = Limits(),  # noqa: B008  frozen
) -> ImportReport:
    """Import the episodes and facts of one agent from a SQLite file; `only` names it, where there are several.

    Episodes become events and facts become facts, with their ids, so that a second import changes nothing. Vectors
    and turns are left out. Raises ImportRefused, InvalidArchive (FormatErrors) or ArchiveTooLarge (a TreeError), and
    stores nothing then.
    """
    gathered, equal = Gathered(), dict[str, str]()
    where, asked = (" WHERE agent_id = ?", (only,)) if only is not None else ("", ())
    with _opened(database) as connection:
        _require_one_agent(connection, only)
        found = connection.execute(f"SELECT {', '.join(_COLUMNS)} FROM records{where} ORDER BY rowid", asked)
        for number, values in enumerate(found, start=1):
            if number > ENTRIES_FOR_A_FILE * limits.members:
                raise ArchiveTooLarge("The file holds more memories than an import takes.")
            row = dict(zip(_COLUMNS, values, strict=True))
            _take(gathered, f"record {number}", row)
            if row["tier"] == "semantic" and isinstance(row["content"], str):
                first = equal.setdefault(row["content"], str(row["id"]))
                if first != row["id"]:
                    gathered.warn(f"record {row['id']} says the same as {first}; both are kept")
    return stored(access, gathered, on_conflict=on_conflict, dry_run=dry_run, message=message)


@contextmanager
def _opened(database: Path) -> Iterator[sqlite3.Connection]:
    with database.open("rb") as file:
        magic = file.read(16)
    if magic != b"SQLite format 3\0":
        raise InvalidArchive("The file is no SQLite database.")
    try:
        with closing(
            sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        ) as opened:
            _confine(opened)
            yield opened
    except sqlite3.DatabaseError as error:
        raise InvalidArchive(f"The file can't be read as a database of Mneme: {error}") from error
    except (UnicodeDecodeError, OverflowError) as error:
        raise InvalidArchive("The file holds text that is no UTF-8.") from error


def _confine(connection: sqlite3.Connection) -> None:
    connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
    for feature in (
        sqlite3.SQLITE_DBCONFIG_TRUSTED_SCHEMA,
        sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER,
        sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW,
        sqlite3.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION,
    ):
        connection.setconfig(feature, False)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    connection.execute("PRAGMA cell_size_check = ON")
    checks = iter(range(_MOST_CHECKS))
    # None left: any answer but 0 ends the query.
    connection.set_progress_handler(lambda: int(next(checks, None) is None), _STEPS_AT_ONCE)
    connection.set_authorizer(
        lambda action, *_: sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
    )


def _require_one_agent(connection: sqlite3.Connection, only: str | None) -> None:
    if only is not None:
        return
    agents = [str(agent) for (agent,) in connection.execute("SELECT DISTINCT agent_id FROM records LIMIT 21")]
    if len(agents) > 1:
        named = ", ".join(sorted(agents)[:20])
        raise ImportRefused(
            [("the file", f"holds the memories of several agents ({named}); name the one to take")]
        )


def _take(gathered: Gathered, name: str, row: Mapping[str, Any]) -> None:
    memory_id, content = row["id"], row["content"]
    if not isinstance(memory_id, str) or not isinstance(content, str):
        gathered.refuse(name, "", "has no text as its id or its content")
    elif row["tier"] == "working":
        gathered.skip(memory_id, "turns of a conversation are not kept")
    elif row["tier"] not in _CATEGORIES:
        gathered.refuse(name, memory_id, f"is of an unknown tier: {row['tier']!r:.60}")
    elif (created := _instant(gathered, row, "created_at")) is None:
        gathered.refuse(name, memory_id, "has no usable created_at")
    else:
        gathered.add(name, _memory(gathered, row, created))


def _memory(gathered: Gathered, row: Mapping[str, Any], created: datetime) -> ExternalMemory:
    content = row["content"].replace("\0", "")
    if content != row["content"]:
        gathered.warn(f"record {row['id']} held a NUL, which was taken out")
    metadata = _json(gathered, row, "metadata", dict)
    tags = metadata.get("tags")
    accessed = _instant(gathered, row, "last_accessed")
    origin = {
        "provenance": _json(gathered, row, "provenance", list),
        "access_count": row["access_count"] if isinstance(row["access_count"], int) else 0,
        "last_accessed": accessed.isoformat() if accessed else None,
    }
    return ExternalMemory(
        external_id=row["id"],
        category=_CATEGORIES[row["tier"]],
        content=content,
        created_at=created,
        tags=tuple(tags) if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags) else (),
        source=SYSTEM,
        confidence=_confidence(gathered, row),
        expires_at=_instant(gathered, row, "expires_at"),
        metadata=metadata,
        origin={key: value for key, value in origin.items() if value},
    )


def _instant(gathered: Gathered, row: Mapping[str, Any], name: str) -> datetime | None:
    text = row[name]
    if not isinstance(text, str) or not text:
        return None
    instant = instant_of(text)
    if instant is None:
        gathered.warn(f"record {row['id']}: {name} is no time and was left out")
        return None
    if datetime.fromisoformat(text).tzinfo is None:
        gathered.warn(f"record {row['id']}: {name} had no time zone and was taken as UTC")
    return instant.astimezone(UTC)


def _json[T: (dict[str, Any], list[Any])](
    gathered: Gathered, row: Mapping[str, Any], name: str, kind: type[T]
) -> T:
    text = row[name]
    try:
        value = json.loads(text) if text else kind()
    except (ValueError, TypeError, RecursionError):
        value = None
    if isinstance(value, kind):
        return value
    gathered.warn(f"record {row['id']}: {name} can't be read and was left out")
    return kind()


def _confidence(gathered: Gathered, row: Mapping[str, Any]) -> float:
    number = row["confidence"]
    if number is None:
        # Episodes have none; nobody doubted them.
        return 0.6
    if not isinstance(number, int | float) or math.isnan(number):
        gathered.warn(f"record {row['id']}: confidence is no number and was left out")
        return 0.6
    if not 0 <= number <= 1:
        gathered.warn(f"record {row['id']}: confidence {number} was brought into the range from 0 to 1")
    return float(min(max(number, 0.0), 1.0))
