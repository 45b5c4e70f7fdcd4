"""The statements of the hot paths, in SQL and each with its name.

Django's query builder takes several times longer to put one of these together than Postgres takes to run it, and
the tree stays locked meanwhile. Everything that is not hot goes through the models' querysets.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection
from psycopg.types.json import Jsonb

from memsvc.database.rows import columns, execute, instance, names, one, prepared
from memsvc.database.tenancy import entering, one_entering
from memsvc.format import BlockKind
from memsvc.format.entries import trimmed_body
from memsvc.format.terms import Terms, entry_terms
from memsvc.tree.errors import TreeNotFound
from memsvc.tree.models import Block, EntryRow, File, Revision, Tree, authors_sql
from memsvc.tree.visibility import FOR_GOOD, active_sql, live_at_sql, visible_sql
from tenants import audit

_ROWS_AT_ONCE = 200

type _Statement = tuple[str, list[object]]

_BLOCK_NAMES = names(Block)
# How many columns the rows of a join begin with.
_FILE, _BLOCK = len(names(File)), len(_BLOCK_NAMES)


_SET_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"

# NO KEY: a plain FOR UPDATE would also hold up inserts that merely refer to the row.
_LOCK_TREE = f"""
SELECT {columns(Tree, "t")} FROM tree_tree t WHERE tenant_id = %s AND id = %s FOR NO KEY UPDATE
"""


def enter_snapshot(tenant_id: UUID) -> None:
    """Enter a tenant with the first statement of a transaction that sees one moment and changes nothing."""
    with connection.cursor() as cursor:
        if settings.DISTRIBUTED:
            cursor.execute(_SET_SNAPSHOT)
            cursor.execute(entering(tenant_id))
        else:
            cursor.execute(f"{_SET_SNAPSHOT}; {entering(tenant_id)}")


def lock_tree(tree: Tree) -> Tree | None:
    """Enter, and lock a tree against other writers; None when it is gone."""
    row = one_entering(tree.tenant_id, _LOCK_TREE, [tree.tenant_id, tree.pk])
    return instance(Tree, row) if row else None


_TREE_NAMED = f"SELECT {columns(Tree, 't')} FROM tree_tree t WHERE tenant_id = %s AND name = %s"


def tree_named(tenant_id: UUID, name: str) -> Tree | None:
    """A tenant's tree by its name; enters the tenant by itself."""
    row = one_entering(tenant_id, _TREE_NAMED, [tenant_id, name])
    return instance(Tree, row) if row else None


_TREE_NOW = f"SELECT {columns(Tree, 't')} FROM tree_tree t WHERE tenant_id = %s AND id = %s"


def tree_now(tree: Tree) -> Tree:
    """A tree's row of this moment: callers may have held theirs for long. Raises `TreeNotFound`."""
    row = one(_TREE_NOW, [tree.tenant_id, tree.pk])
    found = instance(Tree, row) if row else None
    if found is None:
        raise TreeNotFound(tree.name)
    return found


_FILE_AT = f"""
SELECT {columns(File, "f")} FROM tree_file f
WHERE f.tenant_id = %s AND f.tree_id = %s AND f.path = %s AND {live_at_sql("f")}
"""


def file_at(tree: Tree, path: str) -> File | None:
    """The live file at a path."""
    row = one(_FILE_AT, [tree.tenant_id, tree.pk, path])
    return instance(File, row) if row else None


_PATHS_IN_USE = f"""
SELECT wanted.path FROM unnest(%s::text[]) AS wanted (path) WHERE EXISTS (
    SELECT FROM tree_file f
    WHERE f.tenant_id = %s AND f.tree_id = %s AND {live_at_sql("f")}
      AND f.path > (wanted.path || '/') COLLATE "C" AND f.path < (wanted.path || '0') COLLATE "C"
)
UNION ALL
SELECT path FROM tree_file f WHERE tenant_id = %s AND tree_id = %s AND {live_at_sql("f")} AND path = ANY(%s)
"""


def paths_in_use(tree: Tree, paths: Sequence[str], above: Sequence[str]) -> set[str]:
    """Those of `paths` that are a live file or hold one, hidden ones too, and those of `above` that are one."""
    of_tree = [tree.tenant_id, tree.pk]
    with connection.cursor() as cursor:
        cursor.execute(_PATHS_IN_USE, [[*paths], *of_tree, *of_tree, [*paths, *above]])
        return {path for (path,) in cursor.fetchall()}


_END_OF_FILE = f"""
SELECT EXISTS (
           SELECT FROM tree_block b
           WHERE b.tenant_id = %(tenant)s AND b.tree_id = %(tree)s AND b.entry_id = %(entry)s
             AND b.kind = 'entry' AND NOT b.duplicate AND {live_at_sql("b")}
       ),
       {columns(File, "f")}, {columns(Block, "b")}
FROM tree_tree t
LEFT JOIN tree_file f
    ON f.tenant_id = %(tenant)s AND f.tree_id = %(tree)s AND f.path = %(path)s AND {live_at_sql("f")}
LEFT JOIN LATERAL (
    SELECT * FROM tree_block b
    WHERE b.tenant_id = %(tenant)s AND b.file_id = f.id AND {live_at_sql("b")}
    ORDER BY position DESC LIMIT 1
) b ON true
WHERE t.tenant_id = %(tenant)s AND t.id = %(tree)s
"""


def end_of_file(tree: Tree, path: str, entry_id: str) -> tuple[bool, File | None, Block | None]:
    """Whether an entry id is taken, the live file at a path, and its last block."""
    row = one(_END_OF_FILE, {"tenant": tree.tenant_id, "tree": tree.pk, "path": path, "entry": entry_id})
    assert row is not None  # the tree is locked
    file, block = row[1 : 1 + _FILE], row[1 + _FILE :]
    return row[0], instance(File, file), instance(Block, block)


_INDEX_ROW = f"""
SELECT {columns(File, "f")}, {columns(Block, "b")}
FROM tree_file f
LEFT JOIN LATERAL (
    SELECT * FROM tree_block b
    WHERE b.tenant_id = %(tenant)s AND b.file_id = f.id AND b.row_path = %(row)s AND b.kind = 'row'
      AND {live_at_sql("b")}
    ORDER BY position DESC LIMIT 1
) b ON true
WHERE f.tenant_id = %(tenant)s AND f.tree_id = %(tree)s AND f.path = %(path)s AND {live_at_sql("f")}
"""


def index_row(tree: Tree, index_path: str, row_path: str) -> tuple[File | None, Block | None]:
    """The router index at a path, and its row about one file (the last one, of several)."""
    row = one(_INDEX_ROW, {"tenant": tree.tenant_id, "tree": tree.pk, "path": index_path, "row": row_path})
    if row is None:
        return None, None
    return instance(File, row[:_FILE]), instance(Block, row[_FILE:])


class LiveEntry(NamedTuple):
    """As much of an entry as an index row tells of it; `text` is how its body begins."""

    created: datetime
    summary: str
    tags: Sequence[str]
    text: str


# How much of a body is looked at for a line that says something.
BEGINNING = 4_000

# Entries that hold and go on to, unless somebody changes that: an index says what they say, and the tree counts them.
_ENTRY = f"b.kind = 'entry' AND {visible_sql('b', FOR_GOOD)}"
_HOLDS = f"{live_at_sql('b')} AND {_ENTRY} AND {active_sql('b')}"

_LIVE_ENTRY = f"coalesce(claimed, created), summary, tags, left(text, {BEGINNING})"

_LAST_ENTRIES = f"""
SELECT {_LIVE_ENTRY} FROM tree_block b
WHERE tenant_id = %s AND file_id = %s AND {_HOLDS}
ORDER BY position DESC LIMIT %s
"""


def last_entries(file: File, limit: int) -> list[LiveEntry]:
    """The last entries of a file that are neither superseded nor to expire, the last one first."""
    with prepared() as cursor:
        cursor.execute(_LAST_ENTRIES, [file.tenant_id, file.pk, limit])
        return [LiveEntry(*row) for row in cursor.fetchall()]


def live_entry(block: Block) -> LiveEntry:
    """The same of an entry that is at hand."""
    assert block.said is not None  # every row of kind entry has one
    return LiveEntry(block.said, block.summary, block.tags, block.text[:BEGINNING])


_EVER_SAID = f"""
SELECT {_LIVE_ENTRY} FROM tree_block b
WHERE tenant_id = %s AND file_id = %s AND kind = 'entry' AND strpos(search_text, %s) > 0 AND (NOT %s OR ({_HOLDS}))
ORDER BY position DESC LIMIT 1000
"""
_EVER_TAGGED = """
SELECT DISTINCT tag FROM tree_block, unnest(tags) AS tag
WHERE tenant_id = %s AND file_id = %s AND kind = 'entry' AND tags && %s::text[] AND tag = ANY(%s)
"""


def ever_said(file: File, folded: str, *, live: bool = False) -> list[LiveEntry]:
    """Entries that a file holds or held, or only `live` ones, whose folded text holds this. Reads all of the file."""
    with connection.cursor() as cursor:
        cursor.execute(_EVER_SAID, [file.tenant_id, file.content_id, folded, live])
        return [LiveEntry(*row) for row in cursor.fetchall()]


def ever_tagged(file: File, tags: Sequence[str]) -> set[str]:
    """Those of `tags` that entries have which a file holds or held. Reads all of the file."""
    with connection.cursor() as cursor:
        cursor.execute(_EVER_TAGGED, [file.tenant_id, file.content_id, [*tags], [*tags]])
        return {tag for (tag,) in cursor.fetchall()}


_HAS_ID = f"""
b.tenant_id = %s AND b.tree_id = %s AND b.entry_id = %s
  AND b.kind = 'entry' AND NOT b.duplicate AND {live_at_sql("b")}
"""
_ENTRY_WITH_ID = f"""
SELECT {columns(Block, "b")}, {columns(File, "f")}
FROM tree_block b
JOIN tree_file f ON f.tenant_id = b.tenant_id AND f.tree_id = b.tree_id AND f.id = b.file_id
WHERE {_HAS_ID}
"""


def entry_with_id(tree: Tree, entry_id: str) -> Block | None:
    """The live entry that has an id, hidden or not, with its file."""
    row = one(_ENTRY_WITH_ID, [tree.tenant_id, tree.pk, entry_id])
    if row is None:
        return None
    block, file = instance(Block, row[:_BLOCK]), instance(File, row[_BLOCK:])
    if block is not None and file is not None:
        block.file, block.path = file, file.path
    return block


# The driver reads JSON by itself, where Django has it read binary JSON.
_ENTRY_COLUMNS = ", ".join(
    {"metadata": "b.metadata::json", "path": "f.path", "authors": authors_sql("b")}.get(name, f"b.{name}")
    for name in EntryRow._fields
)
_READ_WITH_ID = f"""
SELECT {_ENTRY_COLUMNS} FROM tree_block b
JOIN tree_file f ON f.tenant_id = b.tenant_id AND f.tree_id = b.tree_id AND f.id = b.file_id
WHERE {_HAS_ID}
"""


def read_with_id(tree: Tree, entry_id: str) -> EntryRow | None:
    """The same for who only reads it, as it is now."""
    row = one(_READ_WITH_ID, [tree.tenant_id, tree.tenant_id, tree.pk, entry_id])
    return None if row is None else EntryRow(*row)


# Key by key: for all at once the planner may think it cheaper to go through the tree's files, of which it knows no more
# than how large they usually are.
_READ = f"""
SELECT {_ENTRY_COLUMNS}
FROM unnest(%s::uuid[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT * FROM tree_block WHERE tenant_id = %s AND tree_id = %s AND id = wanted.id OFFSET 0
) b
CROSS JOIN LATERAL (
    SELECT * FROM tree_file WHERE tenant_id = %s AND tree_id = %s AND id = b.file_id OFFSET 0
) f
"""


def read_entries(tree: Tree, ids: Sequence[UUID]) -> dict[UUID, EntryRow]:
    """Entries by the keys of their blocks, each with the path that its file has now; without those that are gone."""
    with prepared() as cursor:
        cursor.execute(_READ, [tree.tenant_id, [*ids], *[tree.tenant_id, tree.pk] * 2])
        rows = [EntryRow(*row) for row in cursor.fetchall()]
    return {row.id: row for row in rows}


_LAST_REMOVALS = """
SELECT f.id, (
    SELECT max(removed_in) FROM tree_block
    WHERE tenant_id = %s AND file_id = f.id AND removed_in <= coalesce(%s, 9223372036854775807)
)
FROM unnest(%s::uuid[]) AS f (id)
"""


def last_removals(tree: Tree, file_ids: Sequence[UUID], revision: int | None) -> dict[UUID, int]:
    """By file: the newest revision, up to this one, in which one of its blocks went; without those that lost none."""
    with connection.cursor() as cursor:
        cursor.execute(_LAST_REMOVALS, [tree.tenant_id, revision, [*file_ids]])
        return {file_id: removed for file_id, removed in cursor.fetchall() if removed is not None}


# `tsv` is no field of the model: nothing but a ranking reads it.
_INSERT_BLOCKS = f"INSERT INTO tree_block ({', '.join(_BLOCK_NAMES)}, tsv) VALUES "
_TSV = "to_tsvector(%s::regconfig, %s) || array_to_tsvector(%s::text[])"
_BLOCK_VALUES = f"({', '.join(['%s'] * _BLOCK)}, NULL)"
_ENTRY_VALUES = f"({', '.join(['%s'] * _BLOCK)}, {_TSV})"
# The first of an entry's id, as far as the folder goes that its writer sees. Nobody is to learn by an id that they only
# know by name who had something to do with it elsewhere.
_FIRST_IN = """(
    SELECT min(coalesce(b.first_in, b.added_in)) FROM tree_block b
    WHERE b.tenant_id = %s AND b.tree_id = %s AND b.entry_id = %s AND b.kind = 'entry' AND (%s OR EXISTS (
        SELECT FROM tree_file f WHERE f.tenant_id = b.tenant_id AND f.id = b.file_id
          AND (f.path = %s OR f.path > %s COLLATE "C" AND f.path < %s COLLATE "C")
    ))
)"""
_RETURNING_VALUES = (
    f"({', '.join(_FIRST_IN if name == 'first_in' else '%s' for name in _BLOCK_NAMES)}, {_TSV})"
)


def insert_blocks(rows: Sequence[Block], *, language: str, known_below: str | None = None) -> None:
    """Add rows, entries with the terms that they are found by in a language.

    Entries may be there again, or have been, in files at or below a folder, `known_below`: they keep it in mind when
    they came first. Without one they are new.
    """
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        execute(*_insertion(rows[start : start + _ROWS_AT_ONCE], language, known_below))


def _insertion(rows: Sequence[Block], language: str, known_below: str | None = None) -> _Statement:
    values: list[object] = []
    places: list[str] = []
    for row in rows:
        is_entry = row.kind == BlockKind.ENTRY
        returns = is_entry and known_below is not None
        for name in _BLOCK_NAMES:
            value = getattr(row, name)
            if returns and name == "first_in":
                values += [row.tenant_id, row.tree_id, row.entry_id, known_below == "/", known_below]
                values += [f"{known_below}/", f"{known_below}0"]
            else:
                values.append(Jsonb(value) if isinstance(value, dict) else value)
        if is_entry:
            found = terms_of(row)
            values += [language, found.words, found.exact]
        places.append(_RETURNING_VALUES if returns else _ENTRY_VALUES if is_entry else _BLOCK_VALUES)
    return _INSERT_BLOCKS + ", ".join(places), values


def terms_of(row: Block) -> Terms:
    # The rows of a migration have fields only.
    known: Terms | None = getattr(row, "known_terms", None)
    return known or entry_terms(row.summary, trimmed_body(row.text), row.tags, row.source, row.entry_id)


_SET_TERMS = f"UPDATE tree_block SET tsv = {_TSV} WHERE tenant_id = %s AND id = %s"


def set_terms(row: Block, *, language: str) -> None:
    """Give an entry that is there already the terms that it is found by in a language."""
    found = terms_of(row)
    execute(_SET_TERMS, [language, found.words, found.exact, row.tenant_id, row.pk])


def _these(ids: str) -> str:
    """An array of ids as one whose length no planner sees: for the few that it usually has a plan of its own would be
    made with each call, since the one for all is thought to look for more.
    """
    return f"ARRAY(SELECT unnest({ids}::uuid[]))"


_CLOSE_BLOCKS = f"UPDATE tree_block SET removed_in = %s WHERE tenant_id = %s AND id = ANY({_these('%s')})"


def close_blocks(rows: Iterable[Block], tenant_id: UUID, revision: int) -> None:
    execute(*_closure(rows, tenant_id, revision))


def _closure(rows: Iterable[Block], tenant_id: UUID, revision: int) -> _Statement:
    return _CLOSE_BLOCKS, [revision, tenant_id, [row.pk for row in rows]]


_DELETE_BLOCKS = "DELETE FROM tree_block WHERE tenant_id = %s AND id = ANY(%s)"


def delete_blocks(rows: Iterable[Block], tenant_id: UUID) -> None:
    """Take rows away for good, and with them what refers to them."""
    execute(_DELETE_BLOCKS, [tenant_id, [row.pk for row in rows]])


_SAVE_FILE = """
UPDATE tree_file SET changed_in = %s, modified_at = %s, size = %s, lines = %s, is_text = %s, newline = %s,
    sha256 = %s, next_expiry = %s
WHERE tenant_id = %s AND id = %s
"""


def save_file(file: File) -> None:
    """Keep what describes a file's content."""
    execute(*_description(file))


def _description(file: File) -> _Statement:
    described = [file.changed_in, file.modified_at, file.size, file.lines, file.is_text, file.newline]
    return _SAVE_FILE, [*described, file.sha256, file.next_expiry, file.tenant_id, file.pk]


def append_blocks(file: File, rows: Sequence[Block], *, language: str) -> None:
    """Add rows to a file, and keep what describes it."""
    _at_once(_description(file), _insertion(rows, language))


def replace_block(file: File, old: Block, new: Block, *, revision: int, language: str) -> None:
    """Put a row that is no entry in the place of another, and keep what describes their file."""
    _at_once(_closure([old], file.tenant_id, revision), _description(file), _insertion([new], language))


_MARK_SUPERSEDED = """
UPDATE tree_block SET superseded_by = %s, superseded_in = %s, spliced = %s WHERE tenant_id = %s AND id = %s
"""


def mark_superseded(file: File, block: Block, *, by: str, revision: int, spliced: int) -> None:
    """Say that an entry is superseded, and keep what describes its file.

    None of these columns is in an index, so that none is written.
    """
    _at_once(_description(file), (_MARK_SUPERSEDED, [by, revision, spliced, block.tenant_id, block.pk]))


def _at_once(*changes: _Statement) -> None:
    """Changes of different rows in one statement: to send each by itself would double what they cost.

    Where rows are on several servers an insertion goes by itself, which beside others would not go where they go.
    """
    *others, (last, values) = changes
    if settings.DISTRIBUTED and last.startswith("INSERT"):
        _at_once(*others)
        others = []
    named = ", ".join(f"change_{n} AS ({sql})" for n, (sql, _) in enumerate(others, start=1))
    execute(
        f"WITH {named} {last}" if named else last, [value for _, given in others for value in given] + values
    )


# What a change adds to the counts of a tree, and what it takes from them. Its own rows are found by its number, and
# those that it only superseded by their ids.
_CHANGE = f"""
WITH change AS (
    SELECT 1 AS sign, words FROM tree_block b
    WHERE tenant_id = %(tenant_id)s AND tree_id = %(tree_id)s AND added_in = %(number)s AND {_HOLDS}
    UNION ALL
    SELECT -1, words FROM tree_block b
    WHERE tenant_id = %(tenant_id)s AND tree_id = %(tree_id)s AND removed_in = %(number)s AND added_in < %(number)s
      AND {_ENTRY} AND {active_sql("b", "%(number)s - 1")}
    UNION ALL
    SELECT -1, words FROM tree_block b
    WHERE tenant_id = %(tenant_id)s AND id = ANY({_these("%(superseded)s")}) AND {live_at_sql("b")}
      AND added_in < %(number)s AND {_ENTRY}
)
"""
_COUNTED = f"""
UPDATE tree_tree
SET revision = %(number)s, index_behind = %(index_behind)s,
    entry_count = entry_count + (SELECT coalesce(sum(sign), 0) FROM change),
    term_count = term_count + (SELECT coalesce(sum(sign * words), 0) FROM change),
    {audit.ADVANCED}
WHERE tenant_id = %(tenant_id)s AND id = %(tree_id)s
RETURNING audit_number, audit_digest
"""
_NOTED = f"""
INSERT INTO tree_revision ({", ".join(names(Revision))})
VALUES ({", ".join(f"%({name})s" for name in names(Revision))})
"""
_RECORD = f"{_CHANGE}, head AS ({_COUNTED}), noted AS ({_NOTED}) {audit.ADDED}"


def record(
    revision: Revision, *, index_behind: bool, superseded: Sequence[UUID], event: Mapping[str, object]
) -> None:
    """Count a revision in its tree, and write its row and its event, whose values `audit.event_values` gives.

    `superseded` are the rows that it superseded as they stand.
    """
    values = {name: getattr(revision, name) for name in names(Revision)}
    values |= {"index_behind": index_behind, "superseded": [*superseded], **event}
    # As in `_at_once`.
    if settings.DISTRIBUTED:
        placed = one(_CHANGE + _COUNTED, values)
        execute(_NOTED, values)
        audit.add(placed, event)
    else:
        execute(_RECORD, values)


_COUNT = f"""
UPDATE tree_tree t SET entry_count = c.entries, term_count = c.terms FROM (
    SELECT count(*) AS entries, coalesce(sum(words), 0) AS terms FROM tree_block b
    WHERE tenant_id = %(tenant)s AND tree_id = %(tree)s AND {_HOLDS}
) c WHERE t.tenant_id = %(tenant)s AND t.id = %(tree)s
"""


def count_entries(tree: Tree) -> None:
    """Count all anew that the tree's row says of its entries, after rows were changed in place."""
    execute(_COUNT, {"tenant": tree.tenant_id, "tree": tree.pk})
