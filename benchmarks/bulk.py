"""Many tenants and many entries at once, by SQL: written one by one, they would take longer than what is measured."""

from typing import Any

from django.db import connection
from django.db.models import Model

from memsvc.database.rights import OWNER, connected_as
from memsvc.database.rows import names
from memsvc.recall.models import EmbeddedTree, Vector
from memsvc.tree import statements
from memsvc.tree.files import GAP
from memsvc.tree.models import Block, File, Revision, Tree
from tenants.models import Tenant

_AT_ONCE = 20_000


def _copied(model: type[Model], joined: str, *columns: str, **other: str) -> str:
    """Insert rows of a table `r` once more, with other values in some columns."""
    every = {name: f"r.{name}" for name in (*names(model), *columns)} | other
    table = model._meta.db_table
    return f"INSERT INTO {table} ({', '.join(every)}) SELECT {', '.join(every.values())} FROM {table} r {joined};\n"


_COPIES = (
    """
CREATE TEMPORARY TABLE copy AS
    SELECT uuidv7() AS tenant, uuidv7() AS tree, number FROM generate_series(1, %(count)s) AS number;
CREATE TEMPORARY TABLE copied_file AS
    SELECT uuidv7() AS id, f.id AS old, copy.tenant, copy.tree FROM tree_file f, copy WHERE tree_id = %(tree)s;
CREATE TEMPORARY TABLE copied_block AS
    SELECT uuidv7() AS id, b.id AS old, f.id AS file, f.tenant, f.tree
    FROM tree_block b JOIN copied_file f ON f.old = b.file_id ORDER BY f.tree, b.added_in;
ANALYZE copy, copied_file, copied_block;
"""
    + _copied(
        Tenant, "JOIN copy c ON r.id = %(tenant)s", id="c.tenant", slug="left(r.slug, 50) || '-' || c.number"
    )
    + _copied(Tree, "JOIN copy c ON r.id = %(tree)s", id="c.tree", tenant_id="c.tenant")
    + _copied(File, "JOIN copied_file c ON c.old = r.id", id="c.id", tenant_id="c.tenant", tree_id="c.tree")
    + _copied(
        Block,
        "JOIN copied_block c ON c.old = r.id",
        "tsv",
        id="c.id",
        tenant_id="c.tenant",
        tree_id="c.tree",
        file_id="c.file",
    )
    + _copied(
        Revision, "JOIN copy c ON r.tree_id = %(tree)s", id="uuidv7()", tenant_id="c.tenant", tree_id="c.tree"
    )
    + _copied(
        Vector,
        "JOIN copied_block c ON c.old = r.block_id",
        id="uuidv7()",
        tenant_id="c.tenant",
        tree_id="c.tree",
        block_id="c.id",
    )
    + _copied(
        EmbeddedTree,
        "JOIN copy c ON r.tree_id = %(tree)s",
        id="uuidv7()",
        tenant_id="c.tenant",
        tree_id="c.tree",
    )
    + "DROP TABLE copy, copied_file, copied_block"
)


@connected_as(OWNER)
def copy_to_new_tenants(tree: Tree, count: int) -> None:
    """Give so many new tenants a tree each that is like this one, with its history and vectors."""
    with connection.cursor() as cursor:
        cursor.execute(_COPIES, {"count": count, "tree": tree.pk, "tenant": tree.tenant_id})
    gather_statistics()


# 17,576 words, ever rarer, as those of a language are below its stop words.
_WORD = "syllable[rank / 676 + 1] || syllable[rank / 26 %% 26 + 1] || syllable[rank %% 26 + 1]"
_RANK = "floor(50 * power(17576 / 50.0 + 1, (hashint8(number * 31 + place) & 2147483647) / 2147483648.0) - 50)::int"
_ENTRIES = f"""
WITH syllables AS (
    SELECT array_agg(a || b ORDER BY a, b) AS syllable
    FROM unnest('{{b,d,f,g,k,l,m,n,p,r,s,t,v}}'::text[]) AS a, unnest('{{a,e}}'::text[]) AS b
), new AS (
    SELECT number, 'mem_2026-01-01_' || lpad(to_hex(number), 16, '0') AS entry_id, 'Note ' || number AS summary,
           string_agg({_WORD}, ' ' ORDER BY place) || '.' AS body
    FROM syllables, generate_series(%(first)s::bigint, %(last)s) AS number, generate_series(1, %(words)s) AS place,
         LATERAL (SELECT {_RANK} AS rank) AS ranks
    GROUP BY number
)
""" + _copied(
    Block,
    "JOIN new ON r.id = %(like)s ORDER BY number",
    "tsv",
    id="uuidv7()",
    position=f"r.position + (number - r.added_in) * {GAP}",
    added_in="number",
    entry_id="new.entry_id",
    created="r.created + number * interval '1 minute'",
    summary="new.summary",
    head="replace(replace(r.head, r.entry_id, new.entry_id), r.summary, new.summary)",
    text="body || E'\\n'",
    size="octet_length(replace(replace(r.head, r.entry_id, new.entry_id), r.summary, new.summary) || body) + 1",
    search_text="lower(concat_ws(E'\\n', new.summary, body, array_to_string(r.tags, E'\\n'), new.entry_id, r.source))",
    tsv="to_tsvector('english', concat_ws(' ', array_to_string(r.tags, ' '), new.summary, body, r.source))"
    " || array_to_tsvector(ARRAY['=' || new.entry_id])",
)
_REVISIONS = _copied(
    Revision,
    "JOIN generate_series(1, %(count)s) AS n ON r.tree_id = %(tree)s AND r.number = %(number)s",
    id="uuidv7()",
    number="r.number + n",
    at="r.at + n * interval '1 millisecond'",
)
_FILE = """
UPDATE tree_file f SET size = b.size, lines = b.lines, changed_in = b.changed_in, sha256 = ''
FROM (
    SELECT file_id, sum(size) AS size, sum(lines) AS lines, max(added_in) AS changed_in FROM tree_block
    WHERE file_id = %s AND removed_in IS NULL GROUP BY file_id
) b WHERE f.id = b.file_id
"""


@connected_as(OWNER)
def add_like(like: Block, count: int, *, words: int = 30) -> None:
    """Put so many entries below the last entry of a tree, each of words and of a revision of its own."""
    tree = like.tree
    assert like.added_in == tree.revision
    given: dict[str, Any] = {
        "tree": tree.pk,
        "like": like.pk,
        "words": words,
        "count": count,
        "number": like.added_in,
    }
    with connection.cursor() as cursor:
        # Each has the number of its revision.
        for first in range(tree.revision + 1, tree.revision + count + 1, _AT_ONCE):
            last = min(first + _AT_ONCE - 1, tree.revision + count)
            cursor.execute(_ENTRIES, given | {"first": first, "last": last})
        cursor.execute(_REVISIONS, given)
        cursor.execute(_FILE, [like.file_id])
    tree.revision += count
    tree.save(update_fields=["revision"])
    statements.count_entries(tree)
    gather_statistics()


@connected_as(OWNER)
def give_vectors(tree: Tree) -> None:
    """Give each entry that has no vector what lies between two that are there."""
    with connection.cursor() as cursor:
        cursor.execute(_OTHER_VECTORS, {"tenant": tree.tenant_id, "tree": tree.pk})
    gather_statistics()


_OTHER_VECTORS = """
CREATE TEMPORARY TABLE made AS
SELECT row_number() OVER (ORDER BY block_id) - 1 AS number, count(*) OVER () AS count, model, embedding
FROM recall_vector WHERE tenant_id = %(tenant)s AND tree_id = %(tree)s;
CREATE TEMPORARY TABLE lacking AS
SELECT id, row_number() OVER (ORDER BY id) AS number FROM tree_block b
WHERE tenant_id = %(tenant)s AND tree_id = %(tree)s AND kind = 'entry'
  AND id NOT IN (SELECT block_id FROM recall_vector WHERE tree_id = %(tree)s);
ANALYZE made, lacking;
INSERT INTO recall_vector (id, tenant_id, tree_id, block_id, part, model, embedding)
SELECT uuidv7(), %(tenant)s, %(tree)s, lacking.id, 0, one.model, l2_normalize(one.embedding + other.embedding)
FROM lacking
JOIN made one ON one.number = lacking.number %% one.count
JOIN made other ON other.number = (lacking.number / other.count + 7 * lacking.number) %% other.count;
DROP TABLE made, lacking;
"""


@connected_as(OWNER)
def gather_statistics() -> None:
    """What autovacuum does within a minute of so many new rows."""
    with connection.cursor() as cursor:
        cursor.execute(
            "ANALYZE tree_tree, tree_file, tree_block, tree_revision, recall_vector, recall_embeddedtree"
        )
