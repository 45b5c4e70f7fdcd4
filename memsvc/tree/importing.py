"""Entries that were made elsewhere, brought in with the ids, times and supersede chains that they have."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from itertools import batched

from memsvc import format
from memsvc.format import NO_METADATA, MemoryEntry, Metadata
from memsvc.format.entries import closed_body
from memsvc.tree import entries, files, router, statements
from memsvc.tree.access import Access
from memsvc.tree.blocks import entry_of
from memsvc.tree.models import Block
from memsvc.tree.results import Imported, Told
from memsvc.tree.scope import Change

_IDS_AT_ONCE = 1000
# As rows and as text an entry takes far more memory than by itself.
_ENTRIES_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class ForeignEntry:
    """An entry to bring in: where to, and what its frontmatter has besides: metadata, and one line more."""

    path: str
    entry: MemoryEntry
    more: str = ""
    expires_at: datetime | None = None
    metadata: Metadata = NO_METADATA

    @property
    def text(self) -> str:
        """As it stands in a file. Put together when asked for, since an import holds thousands of them."""
        text = format.compose_entry(self.entry, self.metadata)
        if not self.more:
            return text
        head, fence, body = text.partition("\n---\n")
        return f"{head}\n{self.more}{fence}{body}"


@dataclass(frozen=True, slots=True)
class EntryImported:
    """What became of one entry: `outcome` is "created", "unchanged" or "skipped", which comes with a reason."""

    entry_id: str
    path: str
    outcome: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EntriesImported(Told):
    """A whole import; after a rehearsal `revision` is the one that was looked at."""

    revision: int
    files: list[Imported]
    entries: list[EntryImported]


def expiries_of(wanted: Sequence[ForeignEntry]) -> files.Expiries:
    return {(each.entry.entry_id, ""): each.expires_at for each in wanted if each.expires_at}


def bring_in(change: Change, access: Access, wanted: Sequence[ForeignEntry]) -> list[EntryImported]:
    """Put the entries whose ids are new behind what their files hold, and tell the index; others stay as they are.

    A present entry that a new one supersedes is retired, where it is active and of the same category.
    """
    present = _present(change, [each.entry.entry_id for each in wanted])
    came = {entry_id for entry_id, block in present.items() if block.added_in == change.number}
    known = {entry_id: _as_compared(entry_of(block)) for entry_id, block in present.items()}
    outcomes: list[EntryImported] = []
    new: dict[str, list[ForeignEntry]] = defaultdict(list)
    for each in wanted:
        access.require_write(each.path)
        entry_id = each.entry.entry_id
        if entry_id not in known:
            known[entry_id] = _as_compared(each.entry)
            new[each.path].append(each)
            outcomes.append(EntryImported(entry_id, each.path, "created"))
        elif entry_id in came or known[entry_id] == _as_compared(each.entry):
            outcomes.append(EntryImported(entry_id, each.path, "unchanged"))
        else:
            reason = "an entry with this id is there already and says something else"
            outcomes.append(EntryImported(entry_id, each.path, "skipped", reason))
    for path in sorted(new):
        _append(change, path, new[path])
    told: dict[str, date | None] = {path: _day_of(new[path]) for path in new}
    for path in sorted(new):
        for retired in _retire_targets(change, access, new[path]):
            told.setdefault(retired, None)
    for path in sorted(told):
        whole = router.described(change, files.require(change, path))
        router.mention(change, replace(whole, on=told[path]), make_index=path in new)
    return outcomes


def _present(change: Change, ids: Sequence[str]) -> Mapping[str, Block]:
    found: dict[str, Block] = {}
    every = Block.objects.of(change.tree).standing(None).entries().filter(duplicate=False)
    for start in range(0, len(ids), _IDS_AT_ONCE):
        some = every.filter(entry_id__in=ids[start : start + _IDS_AT_ONCE])
        found |= {block.entry_id: block for block in some}
    return found


def _as_compared(entry: MemoryEntry) -> MemoryEntry:
    """Without what may have happened to an entry since it was written, and as its body is stored."""
    return replace(entry, body=closed_body(entry.body), superseded_by=None)


def _append(change: Change, path: str, new: Sequence[ForeignEntry]) -> None:
    file = files.find(change, path) or files.create(change, path)
    data = files.content_now(change, file)
    last = format.last_part(format.cut_file(path, data))
    # What is no entry here is text, which is cut by its length and not where an entry ends.
    at_once = _ENTRIES_AT_ONCE if format.is_memory_file(path) else len(new)
    for some in batched(new, at_once):
        parts = []
        for each in some:
            last = format.append_to(last, each.text, newline=file.newline)
            parts.append(last)
        if some[0] is new[0]:
            files.fill(change, file, b"".join([data, *parts]), expiries=expiries_of(some))
        else:
            files.extend(change, file, b"".join(parts), expiries=expiries_of(some))


def _day_of(new: Sequence[ForeignEntry]) -> date:
    """The day of the newest entry that stays, or of the newest one where none does."""
    lasting = [each.entry for each in new if each.expires_at is None]
    return max(entry.created for entry in lasting or [each.entry for each in new]).astimezone(UTC).date()


def _retire_targets(change: Change, access: Access, new: Sequence[ForeignEntry]) -> Iterator[str]:
    """Retire what these entries supersede, and answer the files of that."""
    for entry in (each.entry for each in new if each.entry.supersedes):
        target = statements.entry_with_id(change.tree, entry.supersedes or "")
        if target is None or target.superseded_by or target.category != entry.category:
            continue
        if files.visible_at(change, [target]) and access.sees(target.file.path):
            entries.splice(change, target.file, target, by=entry.entry_id)
            yield target.file.path
