"""The index of vectors, for large trees: HNSW, which looks at a few of them and may miss one.

One index holds the vectors of one size, of all trees that are large; a vector is in it by what its row says, so that
small trees, whose vectors are all compared, cost it nothing. A migration makes that of the local model, and
`manage.py vector_index` that of any other.
"""

from typing import Final

from django.db import connection

from memsvc.database.rows import one
from memsvc.recall.embedding import Embedder
from memsvc.tree.models import Tree
from memsvc.tree.scope import unlocked_transaction

# Entries from which on a tree is large.
LARGE: Final = 20_000
# What the index takes.
MAX_DIMENSIONS: Final = 4_000
# Of so many it knows at least how near they are, before it says which are the nearest.
_LOOKED_AT: Final = 100
_AT_ONCE: Final = 200


def index_name(dimensions: int) -> str:
    return f"vector_near_{dimensions}"


def make_index(dimensions: int) -> bool:
    """Make the index of vectors of a size, while others read and write. Returns whether it wasn't there.

    Must be called outside a transaction; what an interrupted call left is made anew.
    """
    name = index_name(dimensions)
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        cursor.execute(_IS_VALID, [name])
        (valid,) = cursor.fetchone() or (None,)
        if valid:
            return False
        if valid is not None:
            cursor.execute(f"DROP INDEX CONCURRENTLY {name}")
        cursor.execute(
            f"CREATE INDEX CONCURRENTLY {name} ON recall_vector"
            f" USING hnsw ((embedding::halfvec({dimensions})) halfvec_ip_ops) WHERE indexed = {dimensions}"
        )
    return True


_IS_VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)"


def enter(tree: Tree, model: Embedder, limit: int) -> int:
    """Put up to `limit` vectors of a tree into their index, where it is large. Returns how many."""
    done = 0
    while done < limit:
        most = min(_AT_ONCE, limit - done)
        with unlocked_transaction(tree):
            if not is_for(tree, model):
                return done
            row = one(_ENTER, [model.dimensions, tree.tenant_id, tree.tenant_id, tree.pk, model.name, most])
        some = row[0] if row else 0
        done += some
        if some < most:
            return done
    return done


_ENTER = """
WITH entered AS (
    UPDATE recall_vector SET indexed = %s WHERE tenant_id = %s AND id IN (
        SELECT id FROM recall_vector
        WHERE tenant_id = %s AND tree_id = %s AND model = %s AND indexed = 0 LIMIT %s
    ) RETURNING 1
)
SELECT count(*) FROM entered
"""


def is_for(tree: Tree, model: Embedder) -> bool:
    """Whether a tree is large, and its vectors have an index that they can be in."""
    if not one(_IS_LARGE, [tree.tenant_id, tree.pk, LARGE]):
        return False
    row = one(_IS_VALID, [index_name(model.dimensions)])
    return bool(row and row[0])


_IS_LARGE = "SELECT 1 FROM tree_tree WHERE tenant_id = %s AND id = %s AND entry_count >= %s"


def lacks(tree: Tree, model: Embedder) -> bool:
    """Whether some of a tree's vectors are not in the index."""
    return bool(one(_LACKS, [tree.tenant_id, tree.pk, model.name]))


_LACKS = """
SELECT 1 FROM recall_vector WHERE tenant_id = %s AND tree_id = %s AND model = %s AND indexed = 0 LIMIT 1
"""


def use(tree: Tree, model: str) -> bool:
    """Whether a tree's vectors are in the index; if so, this transaction's searches of it go on until they have found
    enough that stands.
    """
    if tree.entry_count < LARGE or not one(_IS_USED, [tree.tenant_id, tree.pk, model]):
        return False
    with connection.cursor() as cursor:
        # Each alone, as `memsvc.database.tenancy` enters a tenant.
        cursor.execute("SET LOCAL hnsw.iterative_scan = 'relaxed_order'")
        cursor.execute(f"SET LOCAL hnsw.ef_search = {_LOOKED_AT}")
    return True


_IS_USED = """
SELECT 1 FROM recall_embeddedtree WHERE tenant_id = %s AND tree_id = %s AND model = %s AND indexed
"""
