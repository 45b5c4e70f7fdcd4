"""What is answered: the results of the tree as JSON objects, each with all its members, always."""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC

from memsvc.format import IndexRow, MemoryEntry, Metadata
from memsvc.recall.accesses import Accesses
from memsvc.recall.context import Context, ContextFormat
from memsvc.recall.hits import Hit, HitsPage
from memsvc.tree.models import Tree
from memsvc.tree.results import (
    Blame,
    Deleted,
    Edited,
    EntryRead,
    EntryRetired,
    EntryVersion,
    EntryWritten,
    FileContent,
    FileDiff,
    IndexView,
    Listed,
    Match,
    Moved,
    OperationResult,
    Page,
    Restored,
    RevisionDetail,
    RevisionRead,
    Told,
    Undone,
    Uploaded,
    Written,
)
from memsvc.tree.trees import TreeSize
from tenants.authentication import Caller
from tenants.models import ApiKey, KeyUsage

type Json = dict[str, object]


def items(found: Iterable[Json], **more: object) -> Json:
    return {"items": list(found), **more}


def me(caller: Caller, limits: Json) -> Json:
    tenant, key = caller.tenant, caller.key
    return {
        "tenant": {"id": tenant.pk, "slug": tenant.slug, "name": tenant.name},
        "key": {"id": key.pk, "name": key.name, "prefix": key.prefix, "expires_at": key.expires_at},
        "scopes": sorted(caller.scopes),
        "tree": key.tree or None,
        "path_prefix": key.path_prefix,
        "limits": limits,
    }


def key(found: ApiKey) -> Json:
    """A key without its secret part, which nobody can read again."""
    return {
        "id": found.pk,
        "name": found.name,
        "prefix": found.prefix,
        "scopes": found.scopes,
        "tree": found.tree or None,
        "path_prefix": found.path_prefix,
        "created_at": found.created_at,
        "expires_at": found.expires_at,
        "revoked_at": found.revoked_at,
        "last_used_at": found.last_used_at,
    }


def usage(found: KeyUsage) -> Json:
    key = {"id": found.key.pk, "name": found.key.name, "prefix": found.key.prefix}
    return {"day": found.day, "key": key, "requests": found.requests}


def tree(found: Tree) -> Json:
    return {
        "name": found.name,
        "description": found.description,
        "language": found.language,
        "revision": found.revision,
        "history_from": found.history_from,
        "created_at": found.created_at,
        "archived_at": found.archived_at,
    }


def tree_detail(found: Tree, size: TreeSize) -> Json:
    return tree(found) | {"files": size.files, "entries": size.entries, "bytes": size.bytes}


def listed(found: Listed) -> Json:
    return {
        "path": found.path,
        "is_dir": found.is_dir,
        "size": found.size,
        "lines": found.lines,
        "revision": found.revision,
        "created_at": found.created_at,
        "modified_at": found.modified_at,
    }


def window(page: Page) -> Json:
    return {
        "path": page.path,
        "content": page.text if page.binary is None else base64_text(page.binary),
        "encoding": "utf-8" if page.binary is None else "base64",
        "total_lines": page.total_lines,
        "start_line": page.start_line,
        "end_line": page.end_line,
        "next_offset": page.next_offset,
        "no_lines_requested": page.no_lines_requested,
        "size": page.size,
        "created_at": page.created_at,
        "modified_at": page.modified_at,
        "revision": page.revision,
    }


def match(found: Match) -> Json:
    return {"path": found.path, "line": found.line, "text": found.text}


def warnings(result: Told) -> list[Json]:
    """What the writer of a file has to know: of what looks like an entry and can't be found."""
    return [
        {"path": each.path, "line": each.line, "code": each.code, "reason": each.reason}
        for each in result.warnings
    ]


def written(result: Written) -> Json:
    return {
        "path": result.path,
        "revision": result.revision,
        "created": result.created,
        "changed": result.changed,
        "size": result.size,
        "warnings": warnings(result),
    }


def edited(result: Edited) -> Json:
    return {
        "path": result.path,
        "revision": result.revision,
        "occurrences": result.occurrences,
        "size": result.size,
        "warnings": warnings(result),
    }


def deleted(result: Deleted) -> Json:
    return {
        "path": result.path,
        "revision": result.revision,
        "files": result.files,
        "warnings": warnings(result),
    }


def moved(result: Moved) -> Json:
    return {
        "source": result.source,
        "destination": result.destination,
        "revision": result.revision,
        "files": result.files,
        "warnings": warnings(result),
    }


def uploaded(result: Uploaded) -> Json:
    return {"path": result.path, "error": result.error, "warnings": warnings(result)}


def downloaded(path: str, found: FileContent | None, error: str | None) -> Json:
    return {"path": path, "content": base64_text(found.data) if found else None, "error": error}


def entry(found: EntryRead | EntryWritten) -> Json:
    return memory_entry(found.entry, found.metadata) | {
        "path": found.path,
        "expires_at": found.expires_at,
        "revision": found.revision,
    }


def memory_entry(memory: MemoryEntry, metadata: Metadata) -> Json:
    return {
        "id": memory.entry_id,
        "category": memory.category,
        "kind": memory.kind,
        # The one form in which every later read gives it, too.
        "created": memory.created.astimezone(UTC),
        "source": memory.source,
        "confidence": memory.confidence,
        "tags": list(memory.tags),
        "summary": memory.summary,
        "body": memory.body,
        "supersedes": memory.supersedes,
        "superseded_by": memory.superseded_by,
        "is_active": memory.is_active,
        "metadata": dict(metadata),
    }


def hits(page: HitsPage) -> Json:
    return items(map(hit, page.items), next=page.next) | {"truncated": page.truncated}


def hit(hit: Hit) -> Json:
    return entry(hit.found) | {
        "score": hit.score,
        "parts": dict(hit.parts),
        "highlights": [asdict(highlight) for highlight in hit.highlights],
        "line": hit.line,
        "duplicates": list(hit.duplicates),
    }


# Whose message a context is, where it is one.
CONTEXT_ROLES = {ContextFormat.MESSAGES: "system", ContextFormat.HARNESS: "user"}


def context(found: Context) -> Json:
    return {
        "format": found.format,
        **_block(found),
        "tokens": found.tokens,
        "budget": found.budget,
        "entries": found.entries,
        "duplicates": {entry_id: list(ids) for entry_id, ids in found.duplicates.items()},
        "left_out": found.left_out,
        "revision": found.revision,
    }


def _block(found: Context) -> Json:
    role = CONTEXT_ROLES.get(found.format)
    if role is None:
        return {"content": found.content}
    return {"messages": [{"role": role, "content": found.content}] if found.content else []}


def accesses(entry: MemoryEntry, counted: Mapping[str, Accesses]) -> Json:
    found = counted.get(entry.entry_id)
    return {
        "id": entry.entry_id,
        "count": found.count if found else 0,
        "last_at": found.last_at if found else None,
    }


def entry_written(result: EntryWritten) -> Json:
    return entry(result) | {
        "superseded": result.superseded,
        "file_created": result.file_created,
        "peer_readable": result.peer_readable,
        "warnings": warnings(result),
    }


def entry_retired(result: EntryRetired) -> Json:
    return {
        "id": result.entry_id,
        "path": result.path,
        "revision": result.revision,
        "warnings": warnings(result),
    }


def index(view: IndexView) -> Json:
    rows = [index_row(row) for row in view.rows]
    return {"path": view.path, "exists": view.exists, "preamble": view.preamble, "rows": rows}


def index_row(row: IndexRow) -> Json:
    return {"path": row.path, "description": row.description, "tags": list(row.tags), "updated": row.updated}


def revision(found: RevisionRead) -> Json:
    return {
        "number": found.number,
        "at": found.at,
        "actor": {"kind": found.actor_kind, "id": found.actor_id, "name": found.actor_name},
        "action": found.action,
        "message": found.message,
    }


def revision_detail(found: RevisionDetail) -> Json:
    return revision(found.revision) | {
        "files": [
            {"path": change.path, "action": change.action, "source": change.source} for change in found.files
        ],
        "entries": [
            {"id": change.entry_id, "path": change.path, "action": change.action} for change in found.entries
        ],
    }


def file_diff(found: FileDiff) -> Json:
    return asdict(found)


def blame(found: Blame) -> Json:
    return {
        "path": found.path,
        "lines": [asdict(line) for line in found.lines],
        "revisions": {str(number): revision(made) for number, made in found.revisions.items()},
    }


def entry_version(found: EntryVersion) -> Json:
    return {
        "revision": revision(found.revision),
        "action": found.action,
        "path": found.path,
        "entry": memory_entry(found.entry, found.metadata),
    }


def restored(result: Restored) -> Json:
    return asdict(result)


def undone(result: Undone) -> Json:
    return asdict(result)


def operation(result: OperationResult) -> Json:
    """What the single call would have answered."""
    match result:
        case Written():
            return written(result)
        case Edited():
            return edited(result)
        case Deleted():
            return deleted(result)
        case Moved():
            return moved(result)
        case EntryWritten():
            return entry_written(result)
        case EntryRetired():
            return entry_retired(result)


def base64_text(data: bytes) -> str:
    return b64encode(data).decode("ascii")
