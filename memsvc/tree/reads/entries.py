"""Entries: one by its id, many by filters or words, newest first."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import BooleanField, DateTimeField, F, Func, Q, UUIDField, Value
from django.db.models.lookups import GreaterThan, LessThan

from memsvc.contract.entries import Authorship, EntryRead
from memsvc.contract.files import Page
from memsvc.format import (
    CATEGORY_KIND,
    Confidence,
    InvalidText,
    MemoryCategory,
    MemoryKind,
    canonical_folder,
    checked_text,
    in_utc,
)
from memsvc.format.terms import tag_keys
from memsvc.format.text import folded
from memsvc.tree import statements
from memsvc.tree.access import Access
from memsvc.tree.blocks import entry_of
from memsvc.tree.cursors import after_entry, cursor_of_entry
from memsvc.tree.entries import entry_etag
from memsvc.tree.errors import EntryNotFound
from memsvc.tree.models import BlockQuerySet, EntryRow, Revision
from memsvc.tree.reads.metadata import with_metadata
from memsvc.tree.snapshot import Snapshot, snapshot
from memsvc.tree.visibility import active

MAX_FOUND = 1000
MAX_QUERY_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFilter:
    """Which entries are wanted; a field that is left out admits all.

    Tags are compared without case: of `tags` an entry must have all, of `any_tags` one. `actor` is the id of who
    wrote the text. `since` is inclusive and `until` exclusive, both of the instant that an entry is about. `active`
    is True for entries that hold, False for superseded ones, None for both. `metadata` has for each name a value, or an
    object of operators (`memsvc.tree.reads.metadata`).
    """

    kind: MemoryKind | None = None
    category: MemoryCategory | None = None
    tags: tuple[str, ...] = ()
    any_tags: tuple[str, ...] = ()
    source: str | None = None
    actor: str | None = None
    confidence: Confidence | None = None
    since: datetime | None = None
    until: datetime | None = None
    path_prefix: str | None = None
    active: bool | None = True
    metadata: Mapping[str, object] | None = None


EVERY_ACTIVE = EntryFilter()


def get_entry(access: Access, entry_id: str, *, revision: int | None = None) -> EntryRead:
    """The entry with an id, superseded or not. Of several that the access sees, the first in path order has it."""
    entry_id = _searchable(entry_id, "id")
    with snapshot(access, revision) as now:
        block = statements.read_with_id(access.tree, entry_id) if revision is None else None
        is_seen = block is not None and now.shows(block) and access.sees(block.path)
        found = read_blocks(now, [block] if block and is_seen else _first_named(now, entry_id))
    if not found:
        raise EntryNotFound(entry_id)
    return found[0]


def _first_named(now: Snapshot, entry_id: str) -> list[EntryRow]:
    """The slow way: for earlier revisions, and where the entry that has the id is out of sight."""
    named = now.blocks().entries().filter(entry_id=entry_id)
    blocks = _within(now, named, None).with_paths_and_authors(now.access.tree).read()
    paths = _paths(now, blocks)
    return sorted(blocks, key=lambda block: (paths.get(block.file_id, block.path), block.position))[:1]


def list_entries(
    access: Access,
    wanted: EntryFilter = EVERY_ACTIVE,
    *,
    oldest_first: bool = False,
    cursor: str | None = None,
    limit: int = 100,
    revision: int | None = None,
) -> Page[EntryRead]:
    """Entries by filters, newest first, of equal instants the one written last; up to `limit` (1 to 1,000) a page."""
    return _page(access, wanted, [], oldest_first=oldest_first, cursor=cursor, limit=limit, revision=revision)


def search_entries(
    access: Access,
    query: str = "",
    wanted: EntryFilter = EVERY_ACTIVE,
    *,
    cursor: str | None = None,
    limit: int = 20,
    revision: int | None = None,
) -> Page[EntryRead]:
    """Entries whose summary, body, tags, source or id hold all words of the query.

    Case, white space and the form of accented letters don't matter. An empty query admits all; newest first.
    """
    needles = dict.fromkeys(folded(_searchable(query, "query")).split())
    return _page(access, wanted, needles, oldest_first=False, cursor=cursor, limit=limit, revision=revision)


def recent_episodes(access: Access, *, since: datetime | None = None, limit: int = 100) -> list[EntryRead]:
    """The newest `limit` active episodes from `since` on, oldest of them first."""
    if limit < 1:
        raise InvalidText("limit: ask for at least one episode")
    page = list_entries(access, EntryFilter(kind=MemoryKind.EPISODIC, since=since), limit=limit)
    return [*reversed(page.items)]


def _page(
    access: Access,
    wanted: EntryFilter,
    needles: Iterable[str],
    *,
    oldest_first: bool,
    cursor: str | None,
    limit: int,
    revision: int | None,
) -> Page[EntryRead]:
    limit = max(1, min(limit, MAX_FOUND))
    with snapshot(access, revision) as now:
        entries = matching(now, wanted).with_paths_and_authors(access.tree)
        for needle in needles:
            entries = entries.filter(search_text__contains=needle)
        if cursor is not None:
            created, pk = after_entry(cursor)
            place = Row(Value(created, DateTimeField()), Value(pk, UUIDField()))
            compared = GreaterThan if oldest_first else LessThan
            entries = entries.filter(Q(compared(Row(F("created"), F("pk")), place)))
        order = ("created", "pk") if oldest_first else ("-created", "-pk")
        rows = entries.order_by(*order)[: limit + 1].read()
        items = read_blocks(now, rows[:limit])
    last = rows[limit - 1] if len(rows) > limit else None
    return Page(items=items, next=cursor_of_entry(last.created, last.id) if last else None)


def matching(now: Snapshot, wanted: EntryFilter) -> BlockQuerySet:
    """The entries of a moment that the access sees and that pass a filter."""
    entries = now.blocks().entries().searched()
    if wanted.category is not None:
        entries = entries.filter(category=wanted.category)
    if wanted.kind is not None:
        entries = entries.filter(category__in=[c for c, kind in CATEGORY_KIND.items() if kind is wanted.kind])
    if wanted.tags:
        entries = entries.filter(tag_keys__contains=tag_keys(_searchable(tag, "tags") for tag in wanted.tags))
    if wanted.any_tags:
        entries = entries.filter(
            tag_keys__overlap=tag_keys(_searchable(tag, "tags") for tag in wanted.any_tags)
        )
    if wanted.actor is not None:
        theirs = Revision.objects.of(now.access.tree).filter(actor_id=_searchable(wanted.actor, "actor"))
        numbers = theirs.values("number")
        unchanged = Q(changed_in__isnull=True, added_in__in=numbers)
        entries = entries.filter(unchanged | Q(changed_in__in=numbers))
    if wanted.source is not None:
        entries = entries.filter(source=_searchable(wanted.source, "source"))
    if wanted.confidence is not None:
        entries = entries.filter(confidence=wanted.confidence)
    if wanted.since is not None:
        entries = entries.filter(created__gte=in_utc(wanted.since))
    if wanted.until is not None:
        entries = entries.filter(created__lt=in_utc(wanted.until))
    if wanted.metadata is not None:
        entries = entries.filter(with_metadata(wanted.metadata))
    if wanted.active is not None:
        holds = active(now.revision)
        entries = entries.filter(holds if wanted.active else ~holds)
    return _within(now, entries, wanted.path_prefix)


class Row(Func):
    """Columns that are compared one after the other, which goes straight to the place in their index."""

    function = "ROW"
    output_field = BooleanField()


def _within(now: Snapshot, entries: BlockQuerySet, path_prefix: str | None) -> BlockQuerySet:
    """Entries in files that the access sees and that lie under a folder."""
    prefixes = [prefix for prefix in (now.access.prefix, canonical_folder(path_prefix)) if prefix != "/"]
    if now.revision is not None:
        files = now.files()
        for prefix in prefixes:
            files = files.at_or_below(prefix)
        ids = [id for pair in files.values_list("pk", "former_of") for id in pair if id]
        return entries.filter(file_id__in=ids)
    for prefix in prefixes:
        below = Q(file__path__gt=prefix + "/", file__path__lt=prefix + "0")
        entries = entries.filter(below | Q(file__path=prefix))
    return entries


def read_blocks(now: Snapshot, rows: Iterable[EntryRow]) -> list[EntryRead]:
    """Blocks, each with its path, as entries of a moment."""
    blocks = list(rows)
    paths = _paths(now, blocks)
    known: dict[str, dict[int, Authorship]] = {}
    found: list[EntryRead] = []
    for block in blocks:
        told = block.authors
        if (authors := known.get(told)) is None:
            authors = known[told] = _authors(told)
        read = EntryRead(
            path=paths.get(block.file_id, block.path),
            entry=entry_of(block, now.revision),
            revision=block.added_in,
            etag=entry_etag(block, now.revision),
            expires_at=block.expires_at,
            metadata=block.metadata,
            written=authors.get(block.added_in if block.first_in is None else block.first_in),
            changed=authors.get(block.changed_in or block.added_in),
        )
        found.append(read)
    return found


def _authors(told: str) -> dict[int, Authorship]:
    """By the numbers of revisions who made them, out of what `authors_sql` gives."""
    return {
        number: Authorship(number, datetime.fromisoformat(at), *by)
        for number, at, *by in json.loads(f"[{told}]")
    }


def _paths(now: Snapshot, blocks: list[EntryRow]) -> dict[object, str]:
    """Where the files of these blocks stood, when it isn't now that is asked about."""
    if now.revision is None:
        return {}
    ids = {block.file_id for block in blocks}
    return {file.content_id: file.path for file in now.files().of_contents(ids)}


def _searchable(text: str, field: str) -> str:
    return checked_text(text, field=field, max_bytes=MAX_QUERY_BYTES)
