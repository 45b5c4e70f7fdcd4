"""The server's JSON as records. Members that are not known here are left alone: a newer server may send more.

Whatever is missing or of another type raises ValueError, which the client reports as an unexpected answer.
"""

import base64
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from typing import cast

from memsvc.client import records
from memsvc.format.entries import Confidence, MemoryEntry
from memsvc.format.frontmatter import Metadata
from memsvc.format.indexes import IndexRow
from memsvc.format.layout import MemoryCategory

type Json = Mapping[str, object]


def text(data: Json, name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str):
        raise ValueError(f"'{name}' is no text")
    return value


def optional_text(data: Json, name: str) -> str | None:
    return None if data.get(name) is None else text(data, name)


def number(data: Json, name: str) -> int:
    value = data.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"'{name}' is no whole number")
    return value


def fraction(data: Json, name: str) -> float:
    value = data.get(name)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ValueError(f"'{name}' is no number")
    return float(value)


def optional_fraction(data: Json, name: str) -> float | None:
    return None if data.get(name) is None else fraction(data, name)


def optional_number(data: Json, name: str) -> int | None:
    return None if data.get(name) is None else number(data, name)


def flag(data: Json, name: str) -> bool:
    value = data.get(name)
    if not isinstance(value, bool):
        raise ValueError(f"'{name}' is neither true nor false")
    return value


def moment(data: Json, name: str) -> datetime:
    return datetime.fromisoformat(text(data, name))


def optional_moment(data: Json, name: str) -> datetime | None:
    return None if data.get(name) is None else moment(data, name)


def mapping(data: Json, name: str) -> Json:
    value = data.get(name)
    if not isinstance(value, dict):
        raise ValueError(f"'{name}' is no object")
    return value


def objects(data: Json, name: str) -> list[Json]:
    value = data.get(name)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError(f"'{name}' is no list of objects")
    return value


def texts(data: Json, name: str) -> tuple[str, ...]:
    value = data.get(name)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"'{name}' is no list of texts")
    return tuple(value)


def numbers(data: Json, name: str) -> tuple[int, ...]:
    value = data.get(name)
    if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
        raise ValueError(f"'{name}' is no list of whole numbers")
    return tuple(value)


def page[Item](data: Json, item: Callable[[Json], Item]) -> records.Page[Item]:
    return records.Page(tuple(item(one) for one in objects(data, "items")), optional_text(data, "next"))


def me(data: Json) -> records.Me:
    tenant, key = mapping(data, "tenant"), mapping(data, "key")
    return records.Me(
        tenant_id=text(tenant, "id"),
        tenant_slug=text(tenant, "slug"),
        tenant_name=text(tenant, "name"),
        key_id=text(key, "id"),
        key_name=text(key, "name"),
        key_prefix=text(key, "prefix"),
        expires_at=optional_moment(key, "expires_at"),
        scopes=frozenset(texts(data, "scopes")),
        tree=optional_text(data, "tree"),
        path_prefix=text(data, "path_prefix"),
        limits=mapping(data, "limits"),
    )


def tree_info(data: Json) -> records.TreeInfo:
    return records.TreeInfo(
        name=text(data, "name"),
        description=text(data, "description"),
        language=text(data, "language"),
        revision=number(data, "revision"),
        history_from=number(data, "history_from"),
        created_at=moment(data, "created_at"),
        archived_at=optional_moment(data, "archived_at"),
    )


def tree_detail(data: Json) -> records.TreeDetail:
    return records.TreeDetail(
        name=text(data, "name"),
        description=text(data, "description"),
        language=text(data, "language"),
        revision=number(data, "revision"),
        history_from=number(data, "history_from"),
        created_at=moment(data, "created_at"),
        archived_at=optional_moment(data, "archived_at"),
        files=number(data, "files"),
        entries=number(data, "entries"),
        bytes=number(data, "bytes"),
    )


def key_info(data: Json) -> records.KeyInfo:
    return records.KeyInfo(
        id=text(data, "id"),
        name=text(data, "name"),
        prefix=text(data, "prefix"),
        scopes=frozenset(texts(data, "scopes")),
        tree=optional_text(data, "tree"),
        path_prefix=text(data, "path_prefix"),
        created_at=moment(data, "created_at"),
        expires_at=optional_moment(data, "expires_at"),
        revoked_at=optional_moment(data, "revoked_at"),
        last_used_at=optional_moment(data, "last_used_at"),
    )


def new_key(data: Json) -> records.NewKey:
    return records.NewKey(key_info(data), optional_text(data, "key"))


def key_usage(data: Json) -> records.KeyUsage:
    key = mapping(data, "key")
    return records.KeyUsage(
        day=date.fromisoformat(text(data, "day")),
        key_id=text(key, "id"),
        key_name=text(key, "name"),
        requests=number(data, "requests"),
    )


def usage(data: Json, requests: Iterable[records.KeyUsage]) -> records.Usage:
    stored = mapping(data, "stored")
    return records.Usage(
        trees=number(stored, "trees"),
        files=number(stored, "files"),
        entries=number(stored, "entries"),
        bytes=number(stored, "bytes"),
        requests=tuple(requests),
    )


def listed(data: Json) -> records.Listed:
    return records.Listed(
        path=text(data, "path"),
        is_dir=flag(data, "is_dir"),
        size=number(data, "size"),
        lines=number(data, "lines"),
        revision=number(data, "revision"),
        created_at=optional_moment(data, "created_at"),
        modified_at=optional_moment(data, "modified_at"),
    )


def window(data: Json, etag: str | None) -> records.Window:
    content, binary = text(data, "content"), text(data, "encoding") == "base64"
    return records.Window(
        path=text(data, "path"),
        text="" if binary else content,
        binary=base64.b64decode(content, validate=True) if binary else None,
        total_lines=optional_number(data, "total_lines"),
        start_line=optional_number(data, "start_line"),
        end_line=optional_number(data, "end_line"),
        next_offset=optional_number(data, "next_offset"),
        no_lines_requested=flag(data, "no_lines_requested"),
        size=number(data, "size"),
        created_at=moment(data, "created_at"),
        modified_at=moment(data, "modified_at"),
        revision=number(data, "revision"),
        etag=etag,
    )


def warnings(data: Json) -> tuple[records.WriteWarning, ...]:
    # An older server tells nothing.
    told = objects(data, "warnings") if "warnings" in data else []
    return tuple(
        records.WriteWarning(
            text(each, "path"), number(each, "line"), text(each, "code"), text(each, "reason")
        )
        for each in told
    )


def written(data: Json, etag: str | None) -> records.Written:
    return records.Written(
        path=text(data, "path"),
        revision=number(data, "revision"),
        created=flag(data, "created"),
        changed=flag(data, "changed"),
        size=number(data, "size"),
        etag=etag,
        warnings=warnings(data),
    )


def edited(data: Json, etag: str | None) -> records.Edited:
    return records.Edited(
        path=text(data, "path"),
        revision=number(data, "revision"),
        occurrences=optional_number(data, "occurrences") or 0,
        size=number(data, "size"),
        etag=etag,
        warnings=warnings(data),
    )


def deleted(data: Json) -> records.Deleted:
    return records.Deleted(
        text(data, "path"), number(data, "revision"), number(data, "files"), warnings=warnings(data)
    )


def moved(data: Json) -> records.Moved:
    return records.Moved(
        text(data, "source"),
        text(data, "destination"),
        number(data, "revision"),
        number(data, "files"),
        warnings=warnings(data),
    )


def matches(data: Json) -> records.Matches:
    items = (
        records.Match(text(item, "path"), number(item, "line"), text(item, "text"))
        for item in objects(data, "items")
    )
    return records.Matches(tuple(items), flag(data, "truncated"))


def found_files(data: Json) -> records.FoundFiles:
    return records.FoundFiles(tuple(map(listed, objects(data, "items"))), flag(data, "truncated"))


def uploaded(data: Json) -> records.Uploaded:
    return records.Uploaded(text(data, "path"), optional_text(data, "error"), warnings=warnings(data))


def downloaded(data: Json) -> records.Downloaded:
    content = optional_text(data, "content")
    return records.Downloaded(
        path=text(data, "path"),
        content=None if content is None else base64.b64decode(content, validate=True),
        error=optional_text(data, "error"),
    )


def memory_entry(data: Json) -> MemoryEntry:
    return MemoryEntry(
        entry_id=text(data, "id"),
        created=moment(data, "created"),
        category=MemoryCategory(text(data, "category")),
        body=text(data, "body"),
        summary=text(data, "summary"),
        source=text(data, "source"),
        confidence=Confidence(text(data, "confidence")),
        tags=texts(data, "tags"),
        supersedes=optional_text(data, "supersedes"),
        superseded_by=optional_text(data, "superseded_by"),
    )


def metadata(data: Json) -> Metadata:
    return cast(Metadata, mapping(data, "metadata"))


def entry_read(data: Json) -> records.EntryRead:
    return records.EntryRead(
        path=text(data, "path"),
        entry=memory_entry(data),
        revision=number(data, "revision"),
        expires_at=optional_moment(data, "expires_at"),
        metadata=metadata(data),
    )


def hit(data: Json) -> records.Hit:
    found = entry_read(data)
    return records.Hit(
        path=found.path,
        entry=found.entry,
        revision=found.revision,
        expires_at=found.expires_at,
        metadata=found.metadata,
        score=optional_fraction(data, "score"),
        parts={name: fraction(mapping(data, "parts"), name) for name in mapping(data, "parts")},
        highlights=tuple(map(highlight, objects(data, "highlights"))),
        line=optional_number(data, "line"),
        duplicates=texts(data, "duplicates"),
    )


def highlight(data: Json) -> records.Highlight:
    ranges = data.get("ranges")
    if not isinstance(ranges, list):
        raise ValueError("'ranges' is no list")
    return records.Highlight(text(data, "text"), tuple((int(start), int(end)) for start, end in ranges))


def entry_written(data: Json) -> records.EntryWritten:
    return records.EntryWritten(
        path=text(data, "path"),
        entry=memory_entry(data),
        revision=number(data, "revision"),
        superseded=optional_text(data, "superseded"),
        file_created=flag(data, "file_created"),
        peer_readable=flag(data, "peer_readable"),
        warnings=warnings(data),
        expires_at=optional_moment(data, "expires_at"),
        metadata=metadata(data),
    )


def entry_retired(data: Json) -> records.EntryRetired:
    return records.EntryRetired(
        text(data, "id"), text(data, "path"), number(data, "revision"), warnings=warnings(data)
    )


def index_row(data: Json) -> IndexRow:
    return IndexRow(
        path=text(data, "path"),
        description=text(data, "description"),
        tags=texts(data, "tags"),
        updated=text(data, "updated"),
    )


def index_view(data: Json) -> records.IndexView:
    return records.IndexView(
        path=text(data, "path"),
        exists=flag(data, "exists"),
        preamble=text(data, "preamble"),
        rows=tuple(index_row(row) for row in objects(data, "rows")),
    )


def context(data: Json, etag: str | None) -> records.Context:
    if "messages" in data:
        content = "\n\n".join(text(message, "content") for message in objects(data, "messages"))
    else:
        content = text(data, "content")
    return records.Context(
        format=text(data, "format"),
        content=content,
        tokens=number(data, "tokens"),
        budget=number(data, "budget"),
        entries=texts(data, "entries"),
        left_out=number(data, "left_out"),
        revision=number(data, "revision"),
        etag=etag,
        duplicates={name: texts(mapping(data, "duplicates"), name) for name in mapping(data, "duplicates")},
    )


def batch_result(data: Json) -> records.BatchResult:
    return records.BatchResult(number(data, "revision"), tuple(objects(data, "results")))


def import_report(data: Json) -> records.ImportReport:
    return records.ImportReport(
        revision=number(data, "revision"),
        dry_run=flag(data, "dry_run"),
        files=tuple(imported_file(item) for item in objects(data, "files")),
        warnings=texts(data, "warnings"),
        entries=tuple(imported_entry(item) for item in objects(data, "entries")),
        differences=tuple(import_difference(item) for item in objects(data, "differences")),
        more_differences=number(data, "more_differences"),
    )


def import_difference(data: Json) -> records.ImportDifference:
    return records.ImportDifference(
        path=text(data, "path"),
        entry_id=text(data, "entry_id"),
        differs=text(data, "differs"),
        done=text(data, "done"),
    )


def imported_entry(data: Json) -> records.ImportedEntry:
    return records.ImportedEntry(
        entry_id=text(data, "entry_id"),
        path=text(data, "path"),
        outcome=text(data, "outcome"),
        reason=text(data, "reason"),
    )


def imported_file(data: Json) -> records.ImportedFile:
    opaque = (
        records.OpaqueBlock(number(block, "line"), text(block, "reason")) for block in objects(data, "opaque")
    )
    return records.ImportedFile(
        path=text(data, "path"),
        outcome=text(data, "outcome"),
        reason=text(data, "reason"),
        entries=number(data, "entries"),
        opaque=tuple(opaque),
    )


def revision(data: Json) -> records.Revision:
    actor = mapping(data, "actor")
    return records.Revision(
        number=number(data, "number"),
        at=moment(data, "at"),
        actor_kind=text(actor, "kind"),
        actor_id=text(actor, "id"),
        actor_name=text(actor, "name"),
        action=text(data, "action"),
        message=text(data, "message"),
    )


def revision_detail(data: Json) -> records.RevisionDetail:
    files = (
        records.FileChange(text(item, "path"), text(item, "action"), optional_text(item, "source"))
        for item in objects(data, "files")
    )
    entries = (
        records.EntryChange(text(item, "id"), text(item, "path"), text(item, "action"))
        for item in objects(data, "entries")
    )
    return records.RevisionDetail(revision(data), tuple(files), tuple(entries))


def file_diff(data: Json) -> records.FileDiff:
    return records.FileDiff(
        path=text(data, "path"),
        action=text(data, "action"),
        source=optional_text(data, "source"),
        unified=text(data, "unified"),
        hunks=tuple(hunk(item) for item in objects(data, "hunks")),
        old_sha256=optional_text(data, "old_sha256"),
        new_sha256=optional_text(data, "new_sha256"),
    )


def hunk(data: Json) -> records.Hunk:
    return records.Hunk(
        old_start=number(data, "old_start"),
        old_lines=number(data, "old_lines"),
        new_start=number(data, "new_start"),
        new_lines=number(data, "new_lines"),
        lines=texts(data, "lines"),
    )


def blame(data: Json) -> records.Blame:
    lines = (
        records.BlamedLine(
            line=number(item, "line"),
            text=text(item, "text"),
            revision=number(item, "revision"),
            entry_id=optional_text(item, "entry_id"),
        )
        for item in objects(data, "lines")
    )
    named = mapping(data, "revisions")
    revisions = (revision(mapping(named, name)) for name in named)
    return records.Blame(text(data, "path"), tuple(lines), {made.number: made for made in revisions})


def accesses(data: Json) -> records.Accesses:
    return records.Accesses(number(data, "count"), optional_moment(data, "last_at"))


def entry_version(data: Json) -> records.EntryVersion:
    return records.EntryVersion(
        revision=revision(mapping(data, "revision")),
        action=text(data, "action"),
        path=text(data, "path"),
        entry=memory_entry(mapping(data, "entry")),
        metadata=metadata(mapping(data, "entry")),
    )


def restored(data: Json) -> records.Restored:
    return records.Restored(number(data, "revision"), texts(data, "paths"), warnings=warnings(data))


def undo_conflict(data: Json) -> records.UndoConflict:
    return records.UndoConflict(number(data, "revision"), text(data, "path"), text(data, "reason"))


def undone(data: Json) -> records.Undone:
    return records.Undone(
        revision=number(data, "revision"),
        undone=numbers(data, "undone"),
        paths=texts(data, "paths"),
        conflicts=tuple(undo_conflict(item) for item in objects(data, "conflicts")),
        warnings=warnings(data),
    )
