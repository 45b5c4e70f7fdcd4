"""What was made elsewhere, brought in under the tree's lock: files, and entries by themselves with their ids.

Files that the tree does not have come in byte for byte. Where both have a file or an entry and they differ, or the
tree has had it and it is gone, `OnConflict` says what counts; each difference is told.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import batched, chain
from posixpath import splitext
from uuid import UUID

from django.db.models import Max

from memsvc.contract.imports import Differs, Done, ImportDifference, ImportedEntry, ImportedFile, Outcome
from memsvc.format import (
    MAX_SEGMENT_BYTES,
    SCAFFOLD,
    BlockKind,
    MemoryEntry,
    Metadata,
    append_to,
    cut_file,
    last_part,
    parent_of,
    router_of,
)
from memsvc.format.entries import closed_body
from memsvc.tree import entries, files, router, statements
from memsvc.tree.arrivals import ExternalEntry, PreparedEntry, PreparedFile
from memsvc.tree.blocks import content, entry_of, rendered
from memsvc.tree.commands import OnConflict
from memsvc.tree.errors import IsFolder, PathTaken
from memsvc.tree.merging import DONE, Merged, Piece, copied, joined, merge, pieces_of
from memsvc.tree.models import Block, File, Redaction
from memsvc.tree.scope import Change
from memsvc.tree.visibility import is_active, live_at, visible

_IDS_AT_ONCE = 1000
_KEPT = "the tree knows more of it; see the differences"

# By id, the row of an entry that the tree has, None for one that it had.
type _Known = Mapping[str, UUID | None]


class Import:
    """One import in progress, inside the tree's lock."""

    def __init__(self, change: Change, on_conflict: OnConflict) -> None:
        self.files: list[ImportedFile] = []
        self.differences: list[ImportDifference] = []
        self._change = change
        self._on_conflict = on_conflict
        # What came in, by id: a digest of what it says where it came by itself.
        self._came: dict[str, bytes] = {}
        self._superseding: list[MemoryEntry] = []
        # By path, the entries that came by themselves.
        self._appended: dict[str, list[ExternalEntry]] = {}
        self._merged: list[str] = []

    def finish(self) -> None:
        """Tell the index, and mark what the entries that came in supersede."""
        indexes = {each.path for each in self.files if each.outcome in (Outcome.CREATED, Outcome.CHANGED)}
        for path in self._merged:
            place = router_of(path)
            file = files.find(self._change, path)
            if place and place[0] not in indexes and file:
                router.upsert_row(self._change, router.described(self._change, file))
        on: dict[str, date | None] = {path: _day_of(new) for path, new in self._appended.items()}
        for entry in self._superseding:
            if superseded := self._supersede_target(entry):
                on.setdefault(superseded, None)
        for path in sorted(on):
            described = router.described(self._change, files.require(self._change, path))
            router.upsert_row(
                self._change, replace(described, on=on[path]), make_index=path in self._appended
            )

    # --- files ---------------------------------------------------------------------------------------------------

    def bring_files(self, group: Sequence[PreparedFile]) -> None:
        """Bring in files at different paths."""
        past = self._stood_at([each.arrival.path for each in group])
        entries_in = {each.arrival.path: [row for row in each.rows if row.entry_id] for each in group}
        rows = list(chain.from_iterable(entries_in.values()))
        known = self._known([name for row in rows for name in (row.entry_id, row.supersedes) if name])
        places = Counter(
            entry_id for some in entries_in.values() for entry_id in {row.entry_id for row in some}
        )
        # Those of which the tree knows nothing, neither their path nor an entry in them.
        unknown = [
            each
            for each in group
            if each.arrival.path not in past
            and not any(row.entry_id in known for row in each.rows)
            and not self._was_here(each)
        ]
        new = files.create_all(self._change, unknown)
        for each in group:
            if each.arrival.path in new:
                self._note_came(entries_in[each.arrival.path], known)
                self.files.append(ImportedFile(each.arrival.path, Outcome.CREATED))
                continue
            try:
                self.files.append(self._bring_file(each, past.get(each.arrival.path, []), known, places))
            except (IsFolder, PathTaken) as error:
                self._note(each.arrival.path, "", Differs.FILE, Done.KEPT)
                self.files.append(ImportedFile(each.arrival.path, Outcome.REFUSED, str(error)))

    def _was_here(self, prepared: PreparedFile) -> bool:
        """Whether this is a file of this very tree as it was exported, so that nothing in it is new."""
        arrival = prepared.arrival
        if arrival.revision is None or arrival.revision > self._change.tree.revision:
            return False
        return arrival.base == prepared.sha256

    def _bring_file(
        self, prepared: PreparedFile, past: Sequence[File], known: _Known, places: Mapping[str, int]
    ) -> ImportedFile:
        arrival, change = prepared.arrival, self._change
        path, data = arrival.path, arrival.data
        file = files.find(change, path)
        if file is None:
            return self._bring_absent(prepared, past, known)
        if file.sha256 == prepared.sha256 and file.next_expiry is None:
            return ImportedFile(path, Outcome.UNCHANGED)
        every = list(files.live_blocks(file))
        ours = files.visible_at(change, every)
        now = content(ours)
        if now == data:
            return ImportedFile(path, Outcome.UNCHANGED)
        mine, theirs = pieces_of(ours), pieces_of(prepared.rows)
        edited = hashlib.sha256(now).hexdigest() == arrival.base
        base = mine if edited else self._base(prepared, theirs)
        erased_at = self._erased_at(past)
        empty = base is None and erased_at is None and _says_nothing(path, ours)
        if empty and not self._held([file], theirs):
            # There is no text of anybody's that the import's could differ from.
            base = [piece for piece in mine if not piece.entry_id]
        merged = merge(
            path,
            mine,
            theirs,
            base,
            known=self._texts(prepared, known),
            on_conflict=self._on_conflict,
            erased_at=erased_at,
            brought=frozenset() if edited else {entry_id for entry_id, n in places.items() if n > 1},
        )
        self.differences += merged.differences
        if edited or self._on_conflict is OnConflict.TAKE:
            self._fill(file, prepared, data, every)
            self._note_came([row for row in prepared.rows if row.entry_id], known)
            return ImportedFile(path, Outcome.CHANGED)
        more = self._more(merged)
        self._put_beside(path, merged.beside)
        if not merged.changed and not more:
            return ImportedFile(path, Outcome.SKIPPED, _KEPT)
        self._fill(file, prepared, joined(merged.kept, more, file.newline), every)
        self._note_came(_rows_of(prepared, [*merged.kept, *more]), known)
        return ImportedFile(path, Outcome.CHANGED)

    def _bring_absent(self, prepared: PreparedFile, past: Sequence[File], known: _Known) -> ImportedFile:
        """Bring in a file that the tree hasn't, but for what the tree had and let go, or has elsewhere."""
        path, pieces = prepared.arrival.path, pieces_of(prepared.rows)
        was_here, erased_at = self._was_here(prepared), self._erased_at(past)
        # Nor can text that was erased be told from what never stood here.
        gone = self._on_conflict is OnConflict.KEEP and (
            was_here or erased_at is not None or self._held(past, pieces)
        )
        if self._on_conflict is OnConflict.TAKE:
            for entry_id in sorted({row.entry_id for row in prepared.rows} & known.keys()):
                differs = Differs.RETIRED if known[entry_id] is None else Differs.ELSEWHERE
                self._note(path, entry_id, differs, Done.TAKEN)
        else:
            merged = merge(
                path,
                [],
                pieces,
                (pieces if was_here else None) if gone else [],
                known=self._texts(prepared, known),
                on_conflict=self._on_conflict,
                erased_at=erased_at,
            )
            self.differences += [each for each in merged.differences if each.differs is not Differs.TEXT]
            more = self._more(merged)
            is_whole = not more and merged.kept == pieces
            data = prepared.arrival.data if is_whole else joined(merged.kept, more, prepared.newline)
            pieces = [*merged.kept, *more]
        if past or gone:
            self._note(path, "", Differs.DELETED, Done.KEPT if gone else DONE[self._on_conflict])
        if self._on_conflict is OnConflict.TAKE:
            data = prepared.arrival.data
        elif not pieces and prepared.arrival.data:
            return ImportedFile(path, Outcome.SKIPPED, _KEPT)
        self._fill(files.create(self._change, path), prepared, data, [])
        self._note_came(_rows_of(prepared, pieces), known)
        return ImportedFile(path, Outcome.CREATED)

    def _fill(self, file: File, prepared: PreparedFile, data: bytes, every: Sequence[Block]) -> None:
        made = {rendered(row): row for row in prepared.rows if row.entry_id}
        expiries = files.expiries_of(prepared.rows)
        files.fill(self._change, file, data, expiries=expiries, made=made, every=every)
        self._merged.append(file.path)

    def _note_came(self, rows: Sequence[Block], known: _Known) -> None:
        self._came |= dict.fromkeys((row.entry_id for row in rows), b"")
        self._superseding += [
            entry_of(row) for row in rows if row.supersedes and known.get(row.supersedes) is not None
        ]

    def _more(self, merged: Merged) -> list[Piece]:
        """What goes behind the blocks of a file: without the copies that the tree has, or had."""
        known = self._known([piece.entry_id for piece in merged.copies])
        return [*merged.new, *(piece for piece in merged.copies if piece.entry_id not in known)]

    def _put_beside(self, path: str, data: bytes) -> None:
        """Keep the import's text in a file of its own, under a name that says so, once for each text."""
        if not data:
            return
        folder, _, name = path.rpartition("/")
        stem, extension = splitext(name)
        mark = f" (imported {hashlib.sha256(data).hexdigest()[:8]}){extension[:20]}"
        room = MAX_SEGMENT_BYTES - len(mark.encode())
        beside = f"{folder}/{stem.encode()[:room].decode(errors='ignore')}{mark}"
        if self._stood_at([beside]):
            return
        files.fill(self._change, files.create(self._change, beside), data)
        self._merged.append(beside)
        self.files.append(ImportedFile(beside, Outcome.CREATED))

    def _base(self, prepared: PreparedFile, theirs: list[Piece]) -> list[Piece] | None:
        """What the import and the tree come from: the file as it was exported from this tree; None if unknown."""
        arrival, tree = prepared.arrival, self._change.tree
        if self._was_here(prepared):
            return theirs
        if arrival.revision is None or not tree.history_from <= arrival.revision <= tree.revision:
            return None
        then = File.objects.of(tree).live_at(arrival.revision).filter(path=arrival.path).first()
        if then is None:
            return None
        rows = Block.objects.of(tree).live_at(arrival.revision).filter(file_id=then.content_id)
        return pieces_of(rows.order_by("position"), arrival.revision)

    def _held(self, past: Sequence[File], came: Sequence[Piece]) -> bool:
        """Whether the files that stood here once held all of a text."""
        wanted = {line for piece in came if not piece.entry_id for line in _lines(piece.raw)}
        if not past:
            return False
        rows = Block.objects.of(self._change.tree).filter(file_id__in={file.content_id for file in past})
        for row in rows.exclude(kind=BlockKind.ENTRY).iterator(chunk_size=100):
            wanted -= set(_lines(rendered(row)))
        return not wanted

    def _stood_at(self, paths: Sequence[str]) -> dict[str, list[File]]:
        """All files that stand or stood at these paths before this change."""
        found: dict[str, list[File]] = {}
        for file in File.objects.of(self._change.tree).filter(path__in=paths):
            found.setdefault(file.path, []).append(file)
        return found

    def _erased_at(self, past: Sequence[File]) -> datetime | None:
        """When something that a file here once held was last taken out of the history for good."""
        if not past:
            return None
        erased = Redaction.objects.of(self._change.tree).filter(
            file_id__in={file.content_id for file in past}
        )
        newest: datetime | None = erased.aggregate(newest=Max("at"))["newest"]
        return newest

    def _known(self, ids: Sequence[str]) -> _Known:
        """By id, the rows of entries that the tree has, and None for entries that it had, before this change."""
        found: dict[str, UUID | None] = {}
        every = Block.objects.of(self._change.tree).entries().exclude(added_in=self._change.number)
        for some in batched(ids, _IDS_AT_ONCE):
            named = every.filter(entry_id__in=some).annotate(there=live_at(None) & visible(self._change.at))
            for entry_id, pk, there in named.values_list("entry_id", "pk", "there"):
                found[entry_id] = pk if there else found.get(entry_id)
        return found

    def _texts(self, prepared: PreparedFile, known: _Known) -> dict[str, bytes | None]:
        """What the known entries of a file say where the tree has them; read only where it is to be compared."""
        there = {row.entry_id: known[row.entry_id] for row in prepared.rows if row.entry_id in known}
        texts: dict[str, bytes | None] = {name: None if pk is None else b"" for name, pk in there.items()}
        if self._on_conflict is OnConflict.BOTH:
            rows = Block.objects.of(self._change.tree).filter(pk__in=[pk for pk in there.values() if pk])
            texts |= {row.entry_id: rendered(row) for row in rows}
        return texts

    def _note(self, path: str, entry_id: str, differs: Differs, done: Done) -> None:
        self.differences.append(ImportDifference(path, entry_id, differs, done))

    # --- entries by themselves -----------------------------------------------------------------------------------

    def bring_entries(self, groups: Iterable[list[PreparedEntry]]) -> list[ImportedEntry]:
        """Put the entries whose ids are new behind what their files hold; the answer is in the order that they had."""
        outcomes: list[tuple[int, ImportedEntry]] = []
        for group in groups:
            path = group[0].external.path
            ids = [each.external.entry.entry_id for each in group]
            named = Block.objects.of(self._change.tree).live_at(None).entries().filter(duplicate=False)
            blocks = list(named.filter(entry_id__in=ids).select_related("file"))
            present = {block.entry_id: block for block in files.visible_at(self._change, blocks)}
            known = self._known(ids)
            erased_at = self._erased_at(self._stood_at([path]).get(path, []))
            new: list[PreparedEntry] = []
            for each in group:
                entry = each.external.entry
                gone = entry.entry_id in known or (erased_at is not None and entry.created <= erased_at)
                outcome, reason = self._bring_entry(each, present.get(entry.entry_id), gone, new)
                outcomes.append((each.number, ImportedEntry(entry.entry_id, path, outcome, reason)))
            if new:
                self._append(path, new)
        return [outcome for _, outcome in sorted(outcomes, key=lambda numbered: numbered[0])]

    def _bring_entry(
        self, prepared: PreparedEntry, present: Block | None, gone: bool, new: list[PreparedEntry]
    ) -> tuple[Outcome, str]:
        """Replace an entry, or put it among the `new` ones; the answer is its outcome and the reason."""
        entry, digest = prepared.external.entry, hashlib.sha256(prepared.text.encode()).digest()
        came = self._came.get(entry.entry_id)
        if came in (b"", digest) or (present and present.added_in == self._change.number):
            return Outcome.UNCHANGED, ""
        if present is None and came is None:
            self._came[entry.entry_id] = digest
            if gone:
                self._note(prepared.external.path, entry.entry_id, Differs.RETIRED, DONE[self._on_conflict])
            if gone and self._on_conflict is OnConflict.KEEP:
                return Outcome.SKIPPED, "the tree had an entry with this id, and it is gone"
            new.append(prepared)
            return Outcome.CREATED, ""
        if present and _says(entry_of(present), present.metadata) == _says(entry, prepared.external.metadata):
            if present.superseded_by and not entry.superseded_by:
                self._note(prepared.external.path, entry.entry_id, Differs.SUPERSEDED, Done.KEPT)
            return Outcome.UNCHANGED, ""
        seen = present is not None and self._change.access.sees(present.file.path)
        takes = self._on_conflict is OnConflict.TAKE and seen and came is None
        done = DONE[self._on_conflict] if takes or self._on_conflict is OnConflict.BOTH else Done.KEPT
        self._note(prepared.external.path, entry.entry_id, Differs.ENTRY, done)
        if takes and present:
            self._came[entry.entry_id] = digest
            self._replace(present, prepared)
            return Outcome.CHANGED, "the entry that was there under this id is overwritten"
        if self._on_conflict is OnConflict.BOTH:
            piece = Piece(prepared.text.encode(), entry.entry_id)
            copy_id = copied(prepared.external.path, piece).entry_id
            if copy_id in self._came or self._known([copy_id]):
                return Outcome.UNCHANGED, ""
            self._came[copy_id] = digest
            copy = replace(prepared.external, entry=replace(entry, entry_id=copy_id))
            new.append(replace(prepared, external=copy, text=copy.block.raw.decode(), row=None))
            return Outcome.CREATED, f"beside the one that is there, as {copy_id}"
        return Outcome.SKIPPED, "an entry with this id is there already and says something else"

    def _replace(self, present: Block, prepared: PreparedEntry) -> None:
        file = files.require(self._change, present.file.path)
        every = list(files.live_blocks(file))
        pieces: list[Piece] = []
        for row in files.visible_at(self._change, every):
            data = rendered(row)
            gap = data[: len(data) - len(data.lstrip(b"\r\n"))]
            pieces.append(Piece(gap + prepared.text.encode() if row.pk == present.pk else data))
        at = prepared.external.expires_at
        expiries = {(present.entry_id, ""): at} if at else files.NO_EXPIRIES
        files.fill(self._change, file, joined(pieces, [], file.newline), expiries=expiries, every=every)
        self._merged.append(file.path)

    def _append(self, path: str, new: Sequence[PreparedEntry]) -> None:
        change = self._change
        file = files.find(change, path) or files.create(change, path)
        rows = self._rows_below(file, files.live_blocks(file).last(), new)
        if rows is not None:
            files.extend(change, file, rows)
        else:
            every = list(files.live_blocks(file))
            data = content(files.visible_at(change, every))
            last, parts = last_part(cut_file(path, data)), [data]
            for each in new:
                last = append_to(last, each.text, newline=file.newline)
                parts.append(last)
            expiries = {
                (each.external.entry.entry_id, ""): each.external.expires_at
                for each in new
                if each.external.expires_at
            }
            files.fill(change, file, b"".join(parts), expiries=expiries, every=every)
        self._appended.setdefault(path, []).extend(each.external for each in new)
        self._superseding += [each.external.entry for each in new if each.external.entry.supersedes]

    def _rows_below(
        self, file: File, above: Block | None, new: Sequence[PreparedEntry]
    ) -> list[Block] | None:
        """The rows that were made for entries, below the last block of a file; None where they don't fit there."""
        last = rendered(above) if above else b""
        # Free text is one text: an earlier piece of it may open a code block.
        is_piece = above is not None and above.kind == BlockKind.TEXT and file.size != len(last)
        if file.newline != "\n" or file.next_expiry or is_piece or (last and not last.endswith(b"\n")):
            return None
        gaps = [append_to(last, ""), *(each.gap for each in new[:-1])]
        if any(gap.strip() for gap in gaps):
            return None
        rows = [each.row for each in new if each.row is not None and each.row.raw is None]
        if len(rows) < len(new):
            return None
        for row, gap in zip(rows, gaps, strict=True):
            row.head = gap.decode() + row.head
            row.size += len(gap)
            row.lines += gap.count(b"\n")
        return rows

    def _supersede_target(self, entry: MemoryEntry) -> str:
        """Mark what an entry supersedes, and answer its file; "" where nothing is to be marked."""
        target = statements.entry_with_id(self._change.tree, entry.supersedes or "")
        if target is None or not is_active(target) or target.category != entry.category:
            return ""
        if not files.visible_at(self._change, [target]) or not self._change.access.sees(target.file.path):
            return ""
        entries.mark_superseded(self._change, target.file, target, by=entry.entry_id)
        return target.file.path


def _day_of(new: Sequence[ExternalEntry]) -> date:
    """The day of the newest entry that stays, or of the newest one where none does."""
    lasting = [each.entry for each in new if not each.expires_at]
    return max(entry.created for entry in lasting or [each.entry for each in new]).astimezone(UTC).date()


def _says(entry: MemoryEntry, metadata: Metadata) -> object:
    """What is compared: without what may have happened to an entry since it was written, its body as it is stored."""
    return replace(entry, body=closed_body(entry.body), superseded_by=None), dict(metadata)


def _says_nothing(path: str, rows: Iterable[Block]) -> bool:
    """Whether a file holds no text but what every new tree begins with, and an index no row of any other file."""
    begun = cut_file(path, SCAFFOLD.get(path, "").encode())
    text = {line for block in begun if block.kind is not BlockKind.ROW for line in _lines(block.raw)}
    for row in rows:
        if row.kind == BlockKind.ROW and f"{parent_of(path)}/{row.row_path}" not in SCAFFOLD:
            return False
        if row.kind not in (BlockKind.ROW, BlockKind.ENTRY) and not text.issuperset(_lines(rendered(row))):
            return False
    return True


def _rows_of(prepared: PreparedFile, pieces: Iterable[Piece]) -> list[Block]:
    ids = {piece.entry_id for piece in pieces if piece.entry_id}
    return [row for row in prepared.rows if row.entry_id in ids]


def _lines(data: bytes) -> Iterator[bytes]:
    return (line.strip() for line in data.split(b"\n") if line.strip())
