"""Search as deep-memory-agent's `MemoryStore.search` does it: the query is one piece of an entry's text."""

from django.db.models import Case, DateTimeField, F, Func, IntegerField, Q, TextField, UUIDField, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Length, StrIndex
from django.db.models.lookups import GreaterThan

from memsvc.contract.entries import EntryRead
from memsvc.contract.files import Page
from memsvc.format import checked_text
from memsvc.format.text import case_folded, folded
from memsvc.tree.access import Access
from memsvc.tree.cursors import after_place, cursor_of_place
from memsvc.tree.models import BlockQuerySet
from memsvc.tree.reads.entries import (
    EVERY_ACTIVE,
    MAX_FOUND,
    MAX_QUERY_BYTES,
    EntryFilter,
    Row,
    matching,
    read_blocks,
)
from memsvc.tree.snapshot import snapshot


def search_substring(
    access: Access,
    query: str = "",
    wanted: EntryFilter = EVERY_ACTIVE,
    *,
    cursor: str | None = None,
    limit: int = 20,
    revision: int | None = None,
) -> Page[EntryRead]:
    """Entries whose summary, body and tags, joined by blanks, hold the query as it stands, its ends trimmed.

    Case doesn't matter, nor in which of its forms a character is written (see `case_folded`). An empty query admits
    all. Newest first, of equal instants by path and place in the file; up to `limit` (1 to 1,000) a page.
    """
    needle = case_folded(checked_text(query, field="query", max_bytes=MAX_QUERY_BYTES).strip())
    limit = max(1, min(limit, MAX_FOUND))
    found: list[tuple[EntryRead, str]] = []
    with snapshot(access, revision) as now:
        entries = _about(matching(now, wanted), needle).with_paths_and_authors(access.tree)
        entries = entries.order_by("-created", F("path").asc(), "position", "pk")
        size = limit + 1
        while True:
            chunk = entries.filter(_behind(cursor)) if cursor else entries
            rows = chunk[:size].read()
            for row, read in zip(rows, read_blocks(now, rows), strict=True):
                cursor = cursor_of_place(row.created, row.path, row.position, row.id)
                text = " ".join((read.entry.summary, read.entry.body, *read.entry.tags))
                if needle in case_folded(text):
                    found.append((read, cursor))
            if len(found) > limit or len(rows) < size:
                break
            # Folded text holds the query in more entries than those that spell it so.
            size = min(2 * size, MAX_FOUND)
    following = found[limit - 1][1] if len(found) > limit else None
    return Page(items=[read for read, _ in found[:limit]], next=following)


def _about(entries: BlockQuerySet, needle: str) -> BlockQuerySet:
    """Entries that hold the query when spelling and white space don't matter: all that can, and hardly others."""
    text = folded(needle)
    for word in dict.fromkeys(text.split()):
        # Beside the other condition, which no index knows.
        entries = entries.filter(search_text__contains=word)
    if not text:
        return entries
    fields = Func(F("search_text"), _behind_fields() * -1, function="left")
    joined = Func(fields, Value("\n"), Value(" "), function="replace", output_field=TextField())
    # Not by LIKE, of which the planner expects so few that it would read and sort all entries with these words.
    return entries.annotate(place=StrIndex(joined, Value(text))).filter(place__gt=0)


def _behind_fields() -> Combinable:
    """How many characters of the searched text are its last lines: the id and, where there is one, the source."""
    last, before = (
        Length(Func(F("search_text"), Value("\n"), Value(place), function="split_part")) + 1
        for place in (-1, -2)
    )
    return Case(When(source="", then=last), default=last + before, output_field=IntegerField())


def _behind(cursor: str) -> Q:
    created, path, position, pk = after_place(cursor)
    place = GreaterThan(
        Row(F("path"), F("position"), F("pk")),
        Row(Value(path), Value(position), Value(pk, UUIDField())),
    )
    return Q(created__lte=Value(created, DateTimeField())) & (Q(created__lt=created) | Q(place))
