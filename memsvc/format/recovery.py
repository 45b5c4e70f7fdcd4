"""What to do about other writers and readers of the format: read what they meant, write what they can read."""

import re

from memsvc.format.entries import (
    Confidence,
    MemoryEntry,
    UnusableEntry,
    decoded,
    instant_of,
    read_entry,
    trimmed_body,
)
from memsvc.format.fences import EntrySpan, entry_spans
from memsvc.format.frontmatter import usual_summary
from memsvc.format.layout import MemoryCategory

_LITERAL = re.compile(
    r"""---\n
    id:\ (?P<id>\S+)\n
    created:\ (?P<created>\S+)\n
    type:\ (?:episodic|semantic|procedural)\n
    category:\ (?P<category>events|feedbacks|errors|facts|rules|preferences|procedure)\n
    source:\ (?P<source>[^\n]+)\n
    confidence:\ (?P<confidence>low|medium|high)\n
    tags:\ \[(?P<tags>[^\n]*)\]\n
    (?:supersedes:\ (?P<supersedes>\S+)\n)?
    (?:superseded_by:\ (?P<superseded_by>\S+)\n)?
    (?:summary:\ (?P<summary>[^\n]+)\n)?
    ---\n""",
    re.VERBOSE,
)
_CODE_FENCE = re.compile(rb" {0,3}(`{3,}|~{3,})")


def recovered_entry(raw: bytes) -> MemoryEntry | None:
    """Read an entry's block literally, line by line, where that gives other values than YAML does.

    Writers that quote too little lose values: `summary: Ticket closed #4711` reads short, and `tags: [#urgent]`
    makes the block unusable. In a block that has exactly the shape such a writer gives it, the lines still say what
    was meant. None for any other shape, and where both readings agree.
    """
    spans = entry_spans(raw)
    if not spans:
        return None
    literal = _literal_entry(raw, spans[0])
    return literal if literal is not None and literal != _read_entry(raw, spans[0]) else None


def for_peers(raw: bytes, meta_end: int) -> bytes:
    """Return an entry's block with `***` for each `---` in its body that other readers take for the next entry.

    Those are the lines below a blank one and the body's first; in code they stay, where `***` would mean something
    else.
    """
    lines = raw[meta_end:].split(b"\n")
    code_fence = b""
    above_is_blank = True
    for i, line in enumerate(lines):
        fence = _CODE_FENCE.match(line)
        if code_fence:
            code_fence = b"" if fence and fence[1].startswith(code_fence) else code_fence
        elif fence:
            code_fence = fence[1]
        elif above_is_blank and line.strip() == b"---":
            lines[i] = line.replace(b"---", b"***")
        above_is_blank = not line.strip()
    return raw[:meta_end] + b"\n".join(lines)


def _literal_entry(raw: bytes, span: EntrySpan) -> MemoryEntry | None:
    match = _LITERAL.fullmatch(decoded(raw[span.start : span.meta_end]).replace("\r\n", "\n"))
    if match is None:
        return None
    created, summary = instant_of(match["created"]), _meant_summary(match["summary"] or "")
    if created is None or summary is None:
        return None
    return MemoryEntry(
        entry_id=match["id"],
        created=created,
        category=MemoryCategory(match["category"]),
        body=trimmed_body(decoded(raw[span.meta_end : span.end])),
        summary=summary,
        source=match["source"],
        confidence=Confidence(match["confidence"]),
        tags=tuple(match["tags"].split(", ")) if match["tags"] else (),
        supersedes=match["supersedes"],
        superseded_by=match["superseded_by"],
    )


def _meant_summary(text: str) -> str | None:
    """What a writer that only escapes quotes meant by this text; None if it wouldn't have written it."""
    quoted = len(text) > 1 and text.startswith('"') and text.endswith('"')
    meant = text[1:-1].replace('\\"', '"') if quoted else text
    return meant if usual_summary(meant) == text else None


def _read_entry(raw: bytes, span: EntrySpan) -> MemoryEntry | None:
    try:
        return read_entry(raw[span.frontmatter_start : span.frontmatter_end], raw[span.meta_end : span.end])[
            0
        ]
    except UnusableEntry:
        return None
