"""Copying a tree as it was in one revision: rows to rows, without taking its files apart again."""

from datetime import UTC, datetime
from typing import Any

from django.db import connection

from memsvc.database.ids import uuid7
from memsvc.format import dominant_newline
from memsvc.tree.access import Access
from memsvc.tree.blocks import content
from memsvc.tree.files import decodes
from memsvc.tree.models import Block, File, Revision, Tree
from memsvc.tree.scope import locked_transaction, record_revision
from memsvc.tree.trees import create_tree, require_whole
from memsvc.tree.visibility import live_at_sql, visible_sql

# A large tree takes longer than the limit for single requests allows.
_STATEMENT_SECONDS = 600

_COPIED_FILES = f"""
SELECT id, coalesce(former_of_id, id), changed_in > %(revision)s
FROM tree_file f
WHERE tenant_id = %(tenant)s AND tree_id = %(source)s AND {live_at_sql("f", "%(revision)s")}
ORDER BY id
"""
# Files of one moment under new ids, which are in the order of the old ones: that decides between entries of the same
# time. No table of its own: whoever serves may make none, not even for a while.
_COPIED = (
    "unnest(%(new)s::uuid[], %(old)s::uuid[], %(content)s::uuid[], %(outdated)s::boolean[])"
    " AS c (new_id, old_id, content_id, outdated)"
)

_FILES = f"""
INSERT INTO tree_file (id, tenant_id, tree_id, added_in, path, parent, size, lines, is_text, newline, sha256,
                       next_expiry, pruned_in, created_in, changed_in, created_at, modified_at)
SELECT c.new_id, f.tenant_id, %(copy)s, 1, f.path, f.parent, f.size, f.lines, f.is_text, f.newline,
       CASE WHEN c.outdated THEN '' ELSE f.sha256 END, f.next_expiry, 0, 1, 1, f.created_at,
       CASE WHEN c.outdated THEN %(at)s ELSE f.modified_at END
FROM {_COPIED} JOIN tree_file f ON f.tenant_id = %(tenant)s AND f.id = c.old_id
"""

_OWN_COLUMNS = (
    *("position", "kind", "head", "text", "raw", "size", "lines", "reason", "expires_at", "entry_id"),
    *("category", "created", "claimed", "source", "confidence", "summary", "tags", "tag_keys", "supersedes"),
    *("metadata", "row_path", "search_text", "tsv"),
)

_BLOCKS = f"""
INSERT INTO tree_block (id, tenant_id, tree_id, file_id, added_in, {", ".join(_OWN_COLUMNS)},
                        duplicate, superseded_by, superseded_in, spliced)
SELECT uuidv7(), tenant_id, %(copy)s, new_id, 1, {", ".join(_OWN_COLUMNS)}, duplicate_then,
       CASE WHEN superseded_in > %(revision)s THEN '' ELSE superseded_by END,
       CASE WHEN superseded_in <= %(revision)s THEN 1 END,
       CASE WHEN superseded_in <= %(revision)s THEN spliced ELSE 0 END
FROM (
    SELECT b.*, c.new_id,
           b.kind = 'entry' AND row_number() OVER (
               PARTITION BY b.kind, b.entry_id ORDER BY f.path, b.position
           ) > 1 AS duplicate_then
    FROM {_COPIED}
    JOIN tree_file f ON f.tenant_id = %(tenant)s AND f.id = c.old_id
    JOIN tree_block b ON b.tenant_id = %(tenant)s AND b.file_id = c.content_id
    WHERE {live_at_sql("b", "%(revision)s")}
      AND b.size > 0 -- nothing is left of what was redacted
    ORDER BY b.id
) rows
"""

# What a file's row says is true of its newest content only.
_COUNTS = f"""
UPDATE tree_file f SET size = t.size, lines = t.lines, next_expiry = t.next_expiry
FROM (
    SELECT c.new_id, coalesce(sum(b.size + b.spliced), 0) AS size, min(b.expires_at) AS next_expiry,
           coalesce(sum(b.lines + (b.spliced > 0)::int), 0) AS lines
    FROM {_COPIED}
    LEFT JOIN tree_block b ON b.tenant_id = %(tenant)s AND b.file_id = c.new_id
         AND {visible_sql("b", "now()")}
    WHERE c.outdated GROUP BY c.new_id
) t
WHERE f.tenant_id = %(tenant)s AND f.id = t.new_id
"""

# Outdated files of which bytes, and not the newest row, tell whether they are text and how their lines end.
_UNSURE = f"""
SELECT f.id FROM {_COPIED} JOIN tree_file f ON f.tenant_id = %(tenant)s AND f.id = c.new_id
WHERE c.outdated AND (NOT f.is_text OR f.newline <> E'\\n' OR EXISTS (
    SELECT FROM tree_block b WHERE b.tenant_id = %(tenant)s AND b.file_id = f.id
       AND (b.raw IS NOT NULL OR strpos(b.head, E'\\r') + strpos(b.text, E'\\r') > 0)
))
"""


def clone_tree(access: Access, name: str, *, revision: int | None = None) -> Tree:
    """A new tree with the files of a revision of another (of the newest, without one), as its own revision 1.

    Writers of the source wait meanwhile. Raises `TreeExists`, `RevisionNotFound` and `RevisionPruned`.
    """
    require_whole(access)
    with locked_transaction(access.tree) as source:
        number = source.revision if revision is None else revision
        source.require_revision(number)
        copy = create_tree(
            source.tenant,
            name,
            description=source.description,
            language=source.language,
            actor=access.actor,
        )
        _copy(source, copy, number)
        record_revision(
            access.actor,
            copy,
            1,
            "tree.clone",
            at=datetime.now(tz=UTC),
            message=f"clone of '{source.name}' as of revision {number}",
            index_behind=source.index_behind,
        )
        copy.refresh_from_db()
    return copy


def _copy(source: Tree, copy: Tree, revision: int) -> None:
    values: dict[str, Any] = {
        "tenant": source.tenant_id,
        "source": source.pk,
        "copy": copy.pk,
        "revision": revision,
        "at": Revision.objects.of(source).filter(number=revision).values_list("at", flat=True).first(),
    }
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = '{_STATEMENT_SECONDS}s'")
        cursor.execute(_COPIED_FILES, values)
        files = cursor.fetchall()
        values |= {
            "new": [uuid7() for _ in files],
            "old": [old for old, _, _ in files],
            "content": [content_id for _, content_id, _ in files],
            "outdated": [is_outdated for _, _, is_outdated in files],
        }
        for statement in (_FILES, _BLOCKS, _COUNTS, _UNSURE):
            cursor.execute(statement, values)
        unsure = [row[0] for row in cursor.fetchall()]
    for file in File.objects.of(copy).filter(pk__in=unsure):
        data = content(Block.objects.of_file(file))
        file.is_text, file.newline = decodes(data), dominant_newline(data)
        file.save(update_fields=["is_text", "newline"])
