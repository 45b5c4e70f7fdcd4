"""What was found as hits: what of each answers the query, and where in its file it begins."""

from collections.abc import Sequence
from typing import Any

from memsvc.contract.entries import Hit
from memsvc.database.rows import prepared
from memsvc.format import count_lines
from memsvc.format.fences import BOM, entry_spans
from memsvc.recall.highlights import Highlighter
from memsvc.tree.models import EntryRow
from memsvc.tree.reads.entries import read_blocks
from memsvc.tree.snapshot import Snapshot
from memsvc.tree.visibility import live_at_sql, visible_sql

# Between each hit and the one above it in its file, so that nothing is counted twice: the line that says that an entry
# is superseded belongs to it.
_LINES_ABOVE = """
WITH hit AS MATERIALIZED (
    SELECT id, file_id, position, lag(position, 1, -9223372036854775808)
        OVER (PARTITION BY file_id ORDER BY position) AS above
    FROM unnest(%(ids)s::uuid[], %(files)s::uuid[], %(positions)s::bigint[]) AS hit (id, file_id, position)
)
SELECT hit.id, 1 + sum(coalesce(between_them.lines, 0)) OVER (PARTITION BY file_id ORDER BY position)
FROM hit CROSS JOIN LATERAL (
    SELECT sum((b.lines + (b.spliced > 0 AND {superseded})::int)::int) AS lines FROM tree_block b
    WHERE b.tenant_id = %(tenant)s AND b.file_id = hit.file_id AND {live}
      AND b.position >= hit.above AND b.position < hit.position
      AND {visible}
) AS between_them
"""
_NOW = _LINES_ABOVE.format(
    superseded="b.superseded_in IS NOT NULL", live=live_at_sql("b"), visible=visible_sql("b", "%(at)s")
)
_THEN = _LINES_ABOVE.format(
    superseded="coalesce(b.superseded_in <= %(revision)s, false)",
    live=live_at_sql("b", "%(revision)s"),
    visible=visible_sql("b", "%(at)s"),
)


def hits_of(now: Snapshot, blocks: Sequence[EntryRow], text: str) -> list[Hit]:
    """Blocks as the hits of a query, in their order and without a score."""
    if not blocks:
        return []
    values: dict[str, Any] = {
        "tenant": now.access.tree.tenant_id,
        "ids": [block.id for block in blocks],
        "files": [block.file_id for block in blocks],
        "positions": [block.position for block in blocks],
        "at": now.at,
        "revision": now.revision,
    }
    with prepared() as cursor:
        cursor.execute(_NOW if now.revision is None else _THEN, values)
        first = {pk: int(line) for pk, line in cursor.fetchall()}
    mark = Highlighter(text)
    hits: list[Hit] = []
    for block, found in zip(blocks, read_blocks(now, blocks), strict=True):
        # An entry begins at its fence. Above that its block has what keeps it apart from the text before it.
        head = block.head.encode()
        fence = max((span.start for span in entry_spans(head)), default=0)
        above = count_lines(head[:fence].removeprefix(BOM).decode())
        hits.append(Hit.of(found, highlights=mark(found.entry.body), line=first[block.id] + above))
    return hits
