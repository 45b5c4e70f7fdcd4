"""The vectors of a tree's entries: made by jobs, after the writes that call for them.

A mark per tree and model says through which revision the entries have their vectors. Revisions are committed in
their order, so whatever a tree lacks was added after its mark.
"""

import logging
import random
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import batched
from uuid import UUID

from django.db import connection

from memsvc.database.ids import uuid7
from memsvc.database.rows import execute, one, prepared
from memsvc.database.sweeps import GROUP, failing_alone
from memsvc.database.tenancy import tenant_transaction
from memsvc.format.entries import trimmed_body
from memsvc.recall import ann_index
from memsvc.recall.chunking import chunks
from memsvc.recall.embedding import Embedder, EmbeddingError, Vector, Vectors, embedder
from memsvc.recall.ranking import as_halfvec
from memsvc.tree.models import Tree
from memsvc.tree.scope import unlocked_transaction
from memsvc.tree.visibility import expired_sql, live_at_sql, visible_sql
from tenants.services import all_tenant_ids

logger = logging.getLogger(__name__)

# How many entries one call makes vectors for, so that one large tree doesn't hold up the others.
ENTRIES_AT_ONCE = 1000
# Entries whose texts are in memory together, and parts that are stored together.
_TEXTS_AT_ONCE = 64
_PARTS_AT_ONCE = 128
_QUERIES_KEPT = 512
# What stands for an entry without a text, because every entry has a vector and some models refuse an empty text.
_BLANK = "(blank)"


def embed_query(text: str) -> Vector | None:
    """The vector of a query by the model of the settings. None where there is no model, or it can't answer now."""
    asked = chunks(text)[:1]
    try:
        model = embedder()
        return _vector_of_query(model.name, asked[0]) if model and asked else None
    except EmbeddingError as error:
        # Search goes on with words alone.
        logger.warning("no vector for a query: %s", error)
        return None


@lru_cache(maxsize=_QUERIES_KEPT)
def _vector_of_query(name: str, text: str) -> Vector:
    model = embedder()
    assert model is not None, name
    vector = model.embed_query(text)
    vector.setflags(write=False)
    return vector


def stale_trees(limit: int) -> list[Tree]:
    """Trees of all tenants that have revisions which the model of the settings has not seen, in no order."""
    model = embedder()
    if model is None:
        return []
    tenants = all_tenant_ids()
    # So that none waits behind others whose jobs fail.
    random.shuffle(tenants)
    found: list[Tree] = []
    for group in batched(tenants, GROUP, strict=False):
        with failing_alone("Looking for trees that lack vectors"), connection.cursor() as cursor:
            cursor.execute(_STALE_TREES, [[*group], model.name, limit - len(found)])
            found += [Tree(tenant_id=tenant_id, pk=tree_id) for tenant_id, tree_id in cursor.fetchall()]
        if len(found) >= limit:
            break
    return found


_STALE_TREES = "SELECT tenant, tree FROM memsvc_stale_trees(%s, %s, %s)"


def embed_tree(tree: Tree, limit: int = ENTRIES_AT_ONCE) -> int:
    """Make the vectors that a tree's entries lack, newest first and for at most `limit` of them. Returns for how many.

    Once none is lacking, those of a large tree are put into the index, which counts as well; then the vectors of
    closed entries and those of other models go, and the tree is no longer stale. No transaction is open while the
    model works. Raises `EmbeddingError`; what was stored by then stays.
    """
    model = embedder()
    if model is None:
        return 0
    key = [tree.tenant_id, tree.pk]
    with unlocked_transaction(tree):
        execute(_MAKE_MARK, [uuid7(), model.name, *key])
        row = one(_BEGUN, [model.name, *key])
    if row is None:
        # The tree is gone.
        return 0
    mark, indexed, revision = row
    with unlocked_transaction(tree), connection.cursor() as cursor:
        cursor.execute(_LACKING, [*key, mark, revision, model.name, limit])
        lacking = [block for (block,) in cursor.fetchall()]
    done = 0
    for some in batched(lacking, _TEXTS_AT_ONCE, strict=False):
        done += _embed(tree, model, some)
    if done < limit and not indexed:
        done += ann_index.enter(tree, model, limit - done)
    _settle(tree, model, mark, revision)
    return done


_MAKE_MARK = """
INSERT INTO recall_embeddedtree (id, tenant_id, tree_id, model, revision)
SELECT %s, tenant_id, id, %s, 0 FROM tree_tree WHERE tenant_id = %s AND id = %s FOR KEY SHARE
ON CONFLICT (tenant_id, tree_id, model) DO NOTHING
"""
_BEGUN = """
SELECT m.revision, m.indexed, t.revision
FROM tree_tree t JOIN recall_embeddedtree m ON m.tenant_id = t.tenant_id AND m.tree_id = t.id AND m.model = %s
WHERE t.tenant_id = %s AND t.id = %s
"""
_STANDS = f"b.kind = 'entry' AND {live_at_sql('b')} AND {visible_sql('b', 'now()')}"
_WITHOUT_VECTOR = f"""
FROM tree_block b
WHERE b.tenant_id = %s AND b.tree_id = %s AND b.added_in > %s AND b.added_in <= %s AND {_STANDS}
  AND NOT EXISTS (
      SELECT FROM recall_vector v
      WHERE v.tenant_id = b.tenant_id AND v.tree_id = b.tree_id AND v.block_id = b.id AND v.model = %s
  )
"""
_LACKING = f"SELECT b.id {_WITHOUT_VECTOR} ORDER BY b.added_in DESC LIMIT %s"


def _embed(tree: Tree, model: Embedder, blocks: Sequence[UUID]) -> int:
    with unlocked_transaction(tree), connection.cursor() as cursor:
        cursor.execute(_TEXTS, [tree.tenant_id, tree.pk, list(blocks)])
        texts = cursor.fetchall()
    done = 0
    for some in _together([(block, chunks(_text(*text)) or [_BLANK]) for block, *text in texts]):
        vectors = model.embed([part for _, cut in some for part in cut])
        done += _store(tree, model, some, vectors)
    return done


_TEXTS = f"""
SELECT b.id, b.summary, b.text FROM tree_block b
WHERE b.tenant_id = %s AND b.tree_id = %s AND b.id = ANY(%s) AND {_STANDS}
"""


def _text(summary: str, text: str) -> str:
    """What a model sees of an entry."""
    body = trimmed_body(text)
    return body if body.startswith(summary.rstrip("….")) else f"{summary}\n\n{body}"


type _Cut = tuple[UUID, list[str]]


def _together(entries: Sequence[_Cut]) -> Iterator[list[_Cut]]:
    """Entries that are embedded and stored at once: an entry's vectors are all there, or none is."""
    group: list[_Cut] = []
    for entry in entries:
        if group and sum(len(cut) for _, cut in [*group, entry]) > _PARTS_AT_ONCE:
            yield group
            group = []
        group.append(entry)
    if group:
        yield group


def _store(tree: Tree, model: Embedder, entries: Sequence[_Cut], vectors: Vectors) -> int:
    """Store the vectors of those entries that still stand. Returns how many these are."""
    places = [(block, part) for block, cut in entries for part in range(len(cut))]
    texts = [as_halfvec(vector.tolist()) for vector in vectors]
    with unlocked_transaction(tree), prepared() as cursor:
        mark = one(_LOCK_MARK, [tree.tenant_id, tree.pk, model.name])
        if mark is None:
            return 0
        indexed = model.dimensions if mark[1] else 0
        cursor.execute(_STANDING, [tree.tenant_id, tree.pk, list({block for block, _ in places})])
        expiries = dict(cursor.fetchall())
        kept = [(*place, text) for place, text in zip(places, texts, strict=True) if place[0] in expiries]
        new: list[list[object]] = [
            [uuid7() for _ in kept],
            [block for block, _, _ in kept],
            [part for _, part, _ in kept],
            [text for _, _, text in kept],
            [expiries[block] for block, _, _ in kept],
        ]
        cursor.execute(_STORE, [tree.tenant_id, tree.pk, model.name, indexed, *new])
        return len({block for (block,) in cursor.fetchall()})


# Whoever stores or settles holds the mark: else vectors of an entry that is closed meanwhile could be stored after
# another worker has deleted those of closed entries. Writers of the tree don't come here. Nothing is found when the
# tree is gone, or a worker with another model has finished it.
_LOCK_MARK = """
SELECT m.revision, m.indexed
FROM tree_tree t JOIN recall_embeddedtree m ON m.tenant_id = t.tenant_id AND m.tree_id = t.id
WHERE m.tenant_id = %s AND m.tree_id = %s AND m.model = %s
FOR KEY SHARE OF t FOR UPDATE OF m
"""

# SKIP LOCKED leaves out rows that are being deleted for good: waiting for them could end in a deadlock, because their
# tree waits for this transaction. Closing an entry doesn't lock it so.
_STANDING = f"""
SELECT b.id, b.expires_at FROM tree_block b
WHERE b.tenant_id = %s AND b.tree_id = %s AND b.id = ANY(%s) AND {_STANDS}
FOR KEY SHARE SKIP LOCKED
"""
_STORE = """
INSERT INTO recall_vector (id, tenant_id, tree_id, block_id, part, model, embedding, expires_at, indexed)
SELECT new.id, %s, %s, new.block_id, new.part, %s, new.embedding::halfvec, new.expires_at, %s
FROM unnest(%s::uuid[], %s::uuid[], %s::smallint[], %s::text[], %s::timestamptz[])
    AS new (id, block_id, part, embedding, expires_at)
ON CONFLICT (tenant_id, tree_id, block_id, model, part) DO NOTHING
RETURNING block_id
"""


def _settle(tree: Tree, model: Embedder, seen: int, revision: int) -> None:
    """Move the mark on to a revision, unless vectors are lacking still, and delete what is no longer wanted."""
    key = [tree.tenant_id, tree.pk]
    with unlocked_transaction(tree):
        row = one(_LOCK_MARK, [*key, model.name])
        # Another worker may have been here, and may know of later revisions.
        if row is None or row[0] > seen:
            return
        mark, was_indexed = row
        if one(_LACKS, [*key, mark, revision, model.name]):
            return
        indexed = was_indexed or ann_index.is_for(tree, model)
        if indexed and not was_indexed and ann_index.lacks(tree, model):
            return
        execute(_DELETE_CLOSED, [*key, *key, mark, model.name])
        # The marks first, which who stores such a vector holds: what comes after sees all that were stored.
        with prepared() as cursor:
            cursor.execute(_DELETE_OTHER_MARKS, [*key, model.name])
            if others := [name for (name,) in cursor.fetchall()]:
                cursor.execute(_DELETE_OTHERS, [*key, others])
        execute(_MOVE_MARK, [revision, indexed, *key, model.name])


_LACKS = f"SELECT 1 {_WITHOUT_VECTOR} LIMIT 1"
# First the blocks: as a join the planner, who doesn't know how large a tree is, may go through all its vectors.
_DELETE_CLOSED = """
DELETE FROM recall_vector WHERE tenant_id = %s AND tree_id = %s AND block_id = ANY(ARRAY(
    SELECT id FROM tree_block WHERE tenant_id = %s AND tree_id = %s AND removed_in > %s
)) AND model = %s
"""
# Before a model's first vector comes its mark, so that all its vectors are found by it.
_DELETE_OTHER_MARKS = """
DELETE FROM recall_embeddedtree WHERE tenant_id = %s AND tree_id = %s AND model <> %s RETURNING model
"""
_DELETE_OTHERS = "DELETE FROM recall_vector WHERE tenant_id = %s AND tree_id = %s AND model = ANY(%s)"
_MOVE_MARK = """
UPDATE recall_embeddedtree SET revision = %s, indexed = %s WHERE tenant_id = %s AND tree_id = %s AND model = %s
"""


def forget_expired() -> int:
    """Delete the vectors, of all tenants, whose entries have expired. Returns how many these were."""
    some: list[UUID] = []
    for group in batched(all_tenant_ids(), GROUP, strict=False):
        with failing_alone("Looking for expired vectors"), connection.cursor() as cursor:
            cursor.execute("SELECT memsvc_tenants_with_expired_vectors(%s)", [[*group]])
            some += [tenant_id for (tenant_id,) in cursor.fetchall()]
    deleted = 0
    for tenant_id in some:
        with (
            failing_alone(f"Deleting expired vectors of tenant {tenant_id}"),
            tenant_transaction(tenant_id),
            connection.cursor() as cursor,
        ):
            cursor.execute(_FORGET_EXPIRED, [tenant_id])
            deleted += cursor.rowcount
    return deleted


_FORGET_EXPIRED = f"DELETE FROM recall_vector v WHERE v.tenant_id = %s AND {expired_sql('v', 'now()')}"
