"""Looking a tree over: do the router indexes agree with the files, and can every entry be used?"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from memsvc.format.documents import Block, BlockKind, cut_file
from memsvc.format.fences import ends_indented
from memsvc.format.indexes import parse_row
from memsvc.format.paths import is_memory_file, is_router, parent_of, router_of
from memsvc.format.text import count_lines
from memsvc.transfer.reports import Contents
from memsvc.tree import reads
from memsvc.tree.access import Access


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be; `kind` is stable."""

    kind: str
    path: str
    detail: str


@dataclass(slots=True)
class _Seen:
    paths: set[str] = field(default_factory=set)
    rows: dict[str, set[str]] = field(default_factory=dict)
    opaque: list[Finding] = field(default_factory=list)
    otherwise: list[Finding] = field(default_factory=list)
    contents: Contents = field(default_factory=Contents)


def check_tree(access: Access) -> list[Finding]:
    """Rows without a file, or out of step with it, files without a row, entries that can't be used, ids that exist
    twice; by path.
    """
    seen = _Seen()
    with reads.export_source(access) as taken:
        heads = taken.heads()
        for listed, chunks in taken.files():
            data = b"".join(chunks)
            blocks = cut_file(listed.path, data)
            _look_at(seen, listed.path, blocks)
            if is_memory_file(listed.path):
                seen.otherwise += _read_otherwise(listed.path, data, blocks, heads.get(listed.path, []))
        misstated = reads.misstatements(access)
    found = [*_disagreements(seen), *seen.opaque, *seen.otherwise]
    found += [Finding("stale_row", each.index, f"the row {each.row!r} {each.reason}") for each in misstated]
    found += [
        Finding("no_entry", path, f"line {problem.line}: {problem.reason}")
        for path, problem in seen.contents.problems
        if problem.code != "unusable_entry"
    ]
    found += [
        Finding("duplicate_id", path, f"entry {entry_id} is in {seen.contents.path_of[entry_id]} too")
        for entry_id, path in seen.contents.duplicates
    ]
    found += [
        Finding("dangling_reference", path, f"refers to entry {entry_id}, which is nowhere in the tree")
        for entry_id, path in seen.contents.dangling()
    ]
    return sorted(found, key=lambda finding: (finding.path, finding.kind, finding.detail))


def _look_at(seen: _Seen, path: str, blocks: Sequence[Block]) -> None:
    seen.paths.add(path)
    if is_router(path):
        rows = (parse_row(block.raw) for block in blocks if block.kind is BlockKind.ROW)
        seen.rows[path] = {row.path for row in rows if row is not None}
        return
    _, opaque = seen.contents.add(path, blocks)
    seen.opaque += [Finding("opaque_block", path, f"line {block.line}: {block.reason}") for block in opaque]


def _read_otherwise(
    path: str, data: bytes, blocks: Sequence[Block], stored: Sequence[tuple[str, str]]
) -> Iterator[Finding]:
    """Entries that were stored when other rules held, which their file will be read by once it changes."""
    before = Counter(entry_id for entry_id, _ in stored)
    now = Counter(block.entry.entry_id for block in blocks if block.entry)
    changes = [(entry_id, "text, no entry") for entry_id in before - now]
    changes += [(entry_id, "an entry") for entry_id in now - before]
    changes += [
        (entry_id, "an entry whose frontmatter ends further below")
        for entry_id, head in stored
        if ends_indented(head) and entry_id in now
    ]
    for entry_id, read_as in changes:
        at = re.search(rb"^id[ \t]*:[ \t]+[\"']?" + re.escape(entry_id.encode()), data, re.MULTILINE)
        line = count_lines(data[: at.start()].decode(errors="replace")) + 1 if at else 1
        yield Finding(
            "read_otherwise",
            path,
            f"line {line}: {entry_id} is read as {read_as} from the next change of the file on",
        )


def _disagreements(seen: _Seen) -> Iterator[Finding]:
    for router, rows in seen.rows.items():
        for row in rows:
            if f"{parent_of(router)}/{row}" not in seen.paths:
                yield Finding("row_without_file", router, f"the row {row!r} names a file that is not there")
    for path in seen.paths:
        place = router_of(path)
        if place is None:
            continue
        router, row = place
        # Where nobody made an index, none lacks a row.
        if router in seen.rows and row not in seen.rows[router]:
            yield Finding("file_without_row", path, f"{router} has no row for it")
