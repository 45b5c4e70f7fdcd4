"""Where hits stand: their rows, each with its file, and the line of the file at which each begins."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate
from typing import Any
from uuid import UUID

from memsvc.format.fences import BOM, entry_spans
from memsvc.tree.models import Block
from memsvc.tree.reads.moment import Moment
from tenants.rows import prepared

# One pass over each file counts what lies between its hits: a line that retires an entry belongs to it.
_LINES_BETWEEN = """
WITH hit AS (
    SELECT file_id, array_agg(position ORDER BY position) AS positions, max(position) AS last
    FROM unnest(%(files)s::uuid[], %(positions)s::bigint[]) AS hit (file_id, position) GROUP BY file_id
)
SELECT b.file_id, width_bucket(b.position, hit.positions), sum((b.lines + (b.spliced > 0 AND {retired})::int)::int)
FROM hit JOIN tree_block b ON b.file_id = hit.file_id AND b.position < hit.last
WHERE b.tenant_id = %(tenant)s AND {stands} AND (b.expires_at IS NULL OR b.expires_at > %(at)s)
GROUP BY 1, 2
"""
_NOW = _LINES_BETWEEN.format(retired="b.superseded_in IS NOT NULL", stands="b.removed_in IS NULL")
_THEN = _LINES_BETWEEN.format(
    retired="coalesce(b.superseded_in <= %(revision)s, false)",
    stands="b.added_in <= %(revision)s AND (b.removed_in IS NULL OR b.removed_in > %(revision)s)",
)


def first_lines(now: Moment, blocks: Sequence[Block]) -> dict[UUID, int]:
    """The lines, counted from 1, at which entries begin in their files: those of their opening fences."""
    if not blocks:
        return {}
    values: dict[str, Any] = {
        "tenant": now.access.tree.tenant_id,
        "files": [block.file_id for block in blocks],
        "positions": [block.position for block in blocks],
        "at": now.at,
        "revision": now.revision,
    }
    between: dict[tuple[UUID, int], int] = {}
    with prepared() as cursor:
        cursor.execute(_NOW if now.revision is None else _THEN, values)
        between = {(file_id, place): lines for file_id, place, lines in cursor.fetchall()}
    found: dict[UUID, int] = {}
    for file_id, its in _by_file(blocks).items():
        above = accumulate(between.get((file_id, place), 0) for place in range(len(its)))
        found |= {block.pk: 1 + lines + _lines_above(block) for block, lines in zip(its, above, strict=True)}
    return found


def _lines_above(block: Block) -> int:
    """How many lines of an entry's block stand above its fence: what keeps it apart from the text before it."""
    head = block.head.encode()
    fence = max((span.start for span in entry_spans(head)), default=0)
    return len(head[:fence].removeprefix(BOM).decode().splitlines())


def _by_file(blocks: Sequence[Block]) -> dict[UUID, list[Block]]:
    """The blocks of each file, in its order."""
    files: dict[UUID, list[Block]] = defaultdict(list)
    for block in sorted(blocks, key=lambda block: block.position):
        files[block.file_id].append(block)
    return files
