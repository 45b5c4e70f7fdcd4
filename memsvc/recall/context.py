"""What an agent should have before it: a block for a system prompt, made out of a tree's entries, within a budget."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from memsvc import format as memory_format
from memsvc.contract.context import Context, ContextFormat
from memsvc.format import MemoryCategory
from memsvc.recall import harness, templates
from memsvc.recall.accesses import note_accesses
from memsvc.recall.budget import Packer
from memsvc.recall.notebooks import (
    CHARACTERS_A_TOKEN,
    MAX_LINES,
    Keep,
    excerpt,
    notebook_path,
    notebook_tokens,
)
from memsvc.recall.search import Mode, Query, query_vector, search_uncounted
from memsvc.recall.templates import Part, Piece, Shape
from memsvc.recall.tokens import estimated
from memsvc.tree.access import Access
from memsvc.tree.errors import FileNotFound, IsFolder
from memsvc.tree.reads import EntryFilter, list_entries, read_file
from memsvc.tree.reads.entries import MAX_QUERY_BYTES
from memsvc.tree.snapshot import snapshot

DEFAULT_BUDGET: Final = 2000
MAX_BUDGET: Final = 32_000
# What a notebook may take when nobody says how much: as much as a notebook of pydantic-deep may hold.
NOTEBOOK_BUDGET: Final = 65_536 // CHARACTERS_A_TOKEN
# What preferences and rules may take of the budget when a question has to be answered as well.
RULES_SHARE: Final = 0.5
# Shorter entries than this many tokens are rare, so no more of them are looked for than would fit.
_TOKENS_AN_ENTRY: Final = 20
_FEWEST, _MOST = 20, 300
_RULES: Final = (MemoryCategory.PREFERENCES, MemoryCategory.RULES)


_SHAPES: Final[Mapping[ContextFormat, Callable[[int], Shape]]] = {
    ContextFormat.MARKDOWN: templates.markdown,
    ContextFormat.XML: templates.xml,
    ContextFormat.MESSAGES: templates.messages,
}


def context(
    access: Access,
    query: str = "",
    *,
    budget: int = DEFAULT_BUDGET,
    format: ContextFormat = ContextFormat.MARKDOWN,
    revision: int | None = None,
) -> Context:
    """Preferences and rules, then what answers the query, best first; without a query the newest entries.

    `format` is any but those of notebooks, see `notebook_context` and `harness_context`. Raises `RevisionNotFound`
    and `InvalidText`.
    """
    text = memory_format.checked_text(query, field="query", max_bytes=MAX_QUERY_BYTES).strip()
    # Now, because a model may think for seconds and below a transaction is open. Its answer is kept for then.
    mode = Mode.HYBRID if text and query_vector(text) else Mode.LEXICAL
    limit = max(_FEWEST, min(budget // _TOKENS_AN_ENTRY, _MOST))
    with snapshot(access, revision) as now:
        seen = now.tree.revision if revision is None else revision
        rules = _rules(access, limit, revision)
        others = _answers(access, Query(text=text, mode=mode), limit, revision) if text else []
        if not others and not (text and rules):
            others = _newest(access, limit, revision)
    packer = Packer(_SHAPES[format](budget), budget, estimated)
    packer.add(rules, share=RULES_SHARE if text else 1.0)
    shown = set(packer.entries)
    packer.add(piece for piece in others if piece.entry.entry_id not in shown)
    if not packer.entries:
        packer.add([*others, *rules], least=1)
    content, tokens = packer.block()
    entries = packer.entries
    if revision is None:
        note_accesses(access, entries)
    left_out = len(_ids([*rules, *others]) - _ids(packer.pieces))
    duplicates = {piece.entry.entry_id: [*piece.duplicates] for piece in packer.pieces if piece.duplicates}
    return _tagged(
        Context(
            format=format,
            content=content,
            tokens=tokens,
            budget=budget,
            entries=entries,
            duplicates=duplicates,
            left_out=left_out,
            revision=seen,
        )
    )


def notebook_context(
    access: Access,
    agent: str,
    *,
    budget: int | None = None,
    keep: Keep = Keep.TAIL,
    max_lines: int = MAX_LINES,
    revision: int | None = None,
) -> Context:
    """An agent's notebook as pydantic-deep shows it to the agent; empty where the access sees none.

    Of a long one `max_lines` lines are kept, or instead, with a budget, as many as there is room for. A token is
    counted as four characters here, as it is there. Raises `InvalidPath` and `RevisionNotFound`.
    """
    path = notebook_path(agent)
    with snapshot(access, revision) as now:
        seen = now.tree.revision if revision is None else revision
        content = _notebook(access, path, revision)
    room, most = (NOTEBOOK_BUDGET, max_lines) if budget is None else (budget, None)
    shown = excerpt(agent, content, keep=keep, max_lines=most, characters=room * CHARACTERS_A_TOKEN)
    return _of_notebook(ContextFormat.PYDANTIC_DEEP, shown.text, room, shown.dropped, seen)


def harness_context(
    access: Access,
    agent: str,
    query: str = "",
    *,
    budget: int = DEFAULT_BUDGET,
    max_lines: int = MAX_LINES,
    revision: int | None = None,
) -> Context:
    """An agent's notebook and the names of its topic files as pydantic-deep's harness memory shows them.

    Of a notebook that is too long the last lines are kept, with a query those that hold its words. A token is counted
    as four characters. Raises `InvalidPath`, `InvalidText` and `RevisionNotFound`.
    """
    path = notebook_path(agent)
    asked = harness.Asked(memory_format.checked_text(query, field="query", max_bytes=MAX_QUERY_BYTES))
    with snapshot(access, revision) as now:
        seen = now.tree.revision if revision is None else revision
        content = _notebook(access, path, revision)
        topics = harness.topics_beside(now, path, asked)
    characters = budget * CHARACTERS_A_TOKEN
    shown = harness.snapshot(content, topics, asked, max_lines=max_lines, characters=characters)
    return _of_notebook(ContextFormat.HARNESS, shown.text, budget, shown.dropped, seen)


def _of_notebook(format: ContextFormat, content: str, budget: int, left_out: int, revision: int) -> Context:
    return _tagged(
        Context(
            format=format,
            content=content,
            tokens=notebook_tokens(content),
            budget=budget,
            entries=[],
            left_out=left_out,
            revision=revision,
        )
    )


def _tagged(found: Context) -> Context:
    """With an etag that changes when the block does, whatever else happens in the tree."""
    equal = {entry_id: [*ids] for entry_id, ids in found.duplicates.items()}
    told = [found.format, found.content, found.budget, found.entries, found.left_out, equal]
    return replace(found, etag=hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32])


def _notebook(access: Access, path: str, revision: int | None) -> str:
    try:
        return read_file(access, path, revision=revision).data.decode(errors="replace")
    except (FileNotFound, IsFolder):
        return ""


def _rules(access: Access, limit: int, revision: int | None) -> list[Piece]:
    """Preferences and rules together, newest first."""
    found = [
        found
        for category in _RULES
        for found in list_entries(
            access, EntryFilter(category=category), limit=limit, revision=revision
        ).items
    ]
    newest = sorted(found, key=lambda each: each.ordered_at, reverse=True)[:limit]
    return [Piece(Part.RULES, each.entry) for each in newest]


def _answers(access: Access, query: Query, limit: int, revision: int | None) -> list[Piece]:
    hits = search_uncounted(access, query, limit=limit, revision=revision).items
    return [Piece(Part.RELEVANT, hit.entry, hit.score, hit.duplicates) for hit in hits]


def _newest(access: Access, limit: int, revision: int | None) -> list[Piece]:
    found = list_entries(access, limit=limit, revision=revision).items
    return [Piece(Part.NEWEST, each.entry) for each in found]


def _ids(pieces: Iterable[Piece]) -> set[str]:
    """All that pieces show or name."""
    return {entry_id for piece in pieces for entry_id in (piece.entry.entry_id, *piece.duplicates)}
