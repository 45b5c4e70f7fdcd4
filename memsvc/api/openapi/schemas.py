"""What answers look like, as OpenAPI schemas; `memsvc.api.answers` makes them."""

from typing import Any

from memsvc.api.answers import CONTEXT_ROLES
from memsvc.format import Confidence, MemoryCategory, MemoryKind
from memsvc.recall.context import ContextFormat
from memsvc.transfer.reports import Outcome
from memsvc.tree.models import LANGUAGES
from memsvc.tree.results import Differs, Done
from tenants.scopes import Scope

type Schema = dict[str, Any]


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def obj(**members: Schema) -> Schema:
    """An object with all of these members and no other."""
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def array(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def enum(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def items(of: Schema, **more: Schema) -> Schema:
    return obj(items=array(of), **more)


TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
FRACTION: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
UUID: Schema = {"type": "string", "format": "uuid"}
BASE64: Schema = {"type": "string", "format": "byte"}
BYTES: Schema = {"type": "string", "format": "binary"}
NEXT: Schema = nullable({**TEXT, "description": "The `cursor` of the next page; null after the last one."})

_WARNING = obj(path=TEXT, line=NUMBER, code=TEXT, reason=TEXT)
WARNINGS: Schema = {
    **array(_WARNING),
    "description": "What looks like an entry and can't be found, or was mended; act on `code`, show `reason`.",
}

_HIT = {
    "score": nullable(FRACTION),
    "parts": {"type": "object", "additionalProperties": FRACTION},
    "highlights": array(obj(text=TEXT, ranges=array(array(NUMBER)))),
    "line": nullable(NUMBER),
    "duplicates": array(TEXT),
}
_KEY = {
    "id": UUID,
    "name": TEXT,
    "prefix": TEXT,
    "scopes": array(enum(*Scope)),
    "tree": nullable(TEXT),
    "path_prefix": TEXT,
    "created_at": TIME,
    "expires_at": nullable(TIME),
    "revoked_at": nullable(TIME),
    "last_used_at": nullable(TIME),
}
_TREE = {
    "name": TEXT,
    "description": TEXT,
    "language": enum(*LANGUAGES),
    "revision": NUMBER,
    "history_from": {**NUMBER, "description": "The oldest revision that can be read."},
    "created_at": TIME,
    "archived_at": nullable(TIME),
}
_ENTRY = {
    "id": TEXT,
    "category": enum(*MemoryCategory),
    "kind": enum(*MemoryKind),
    "created": TIME,
    "source": TEXT,
    "confidence": enum(*Confidence),
    "tags": array(TEXT),
    "summary": TEXT,
    "body": TEXT,
    "supersedes": nullable(TEXT),
    "superseded_by": nullable(TEXT),
    "is_active": FLAG,
    "metadata": {"type": "object", "description": "What the frontmatter says besides, as it stands there."},
}
_PLACED_ENTRY = {**_ENTRY, "path": TEXT, "expires_at": nullable(TIME), "revision": NUMBER}
_CONTEXT = {
    "tokens": NUMBER,
    "budget": NUMBER,
    "entries": array(TEXT),
    "duplicates": {"type": "object", "additionalProperties": array(TEXT)},
    "left_out": NUMBER,
    "revision": NUMBER,
}
_WRITTEN_ENTRY = {
    **_PLACED_ENTRY,
    "superseded": nullable(TEXT),
    "file_created": FLAG,
    "peer_readable": FLAG,
    "warnings": WARNINGS,
}
_ACTOR = obj(kind=TEXT, id=TEXT, name=TEXT)
_REVISION = {"number": NUMBER, "at": TIME, "actor": _ACTOR, "action": TEXT, "message": TEXT}
_FILE_CHANGE = obj(path=TEXT, action=enum("created", "changed", "moved", "deleted"), source=nullable(TEXT))
_ENTRY_CHANGE = obj(id=TEXT, path=TEXT, action=enum("added", "changed", "superseded", "removed"))
_HUNK = obj(old_start=NUMBER, old_lines=NUMBER, new_start=NUMBER, new_lines=NUMBER, lines=array(TEXT))

_STORE_ACTOR = {
    "anyOf": [
        obj(type=enum("api_actor"), api_key_id=TEXT),
        obj(type=enum("user_actor"), user_id=TEXT),
        obj(type=enum("session_actor"), session_id=TEXT),
    ]
}
STORE_COMPONENTS: dict[str, Schema] = {
    "MemoryStore": obj(
        id=TEXT,
        type=enum("memory_store"),
        name=TEXT,
        description=TEXT,
        metadata={"type": "object", "additionalProperties": TEXT},
        created_at=TIME,
        updated_at=TIME,
        archived_at=nullable(TIME),
    ),
    "Memory": obj(
        id=TEXT,
        type=enum("memory"),
        memory_store_id=TEXT,
        memory_version_id=TEXT,
        path=TEXT,
        content=nullable(TEXT),
        content_sha256=TEXT,
        content_size_bytes=NUMBER,
        created_at=TIME,
        updated_at=TIME,
    ),
    "MemoryPrefix": obj(type=enum("memory_prefix"), path=TEXT),
    "MemoryVersion": obj(
        id=TEXT,
        type=enum("memory_version"),
        memory_store_id=TEXT,
        memory_id=TEXT,
        operation=enum("created", "modified", "deleted"),
        path=nullable(TEXT),
        content=nullable(TEXT),
        content_sha256=nullable(TEXT),
        content_size_bytes=nullable(NUMBER),
        created_at=TIME,
        created_by=_STORE_ACTOR,
        redacted_at=nullable(TIME),
        redacted_by=nullable(_STORE_ACTOR),
    ),
    "StoreError": {
        "type": "object",
        "description": "Every error of memory stores has this shape. Act on `error.type`; show `error.message`.",
        "properties": {
            "type": enum("error"),
            "error": {
                "type": "object",
                "properties": {"type": TEXT, "message": TEXT, "code": TEXT},
                "required": ["type", "message", "code"],
            },
            "request_id": TEXT,
        },
        "required": ["type", "error", "request_id"],
        "additionalProperties": False,
    },
}

COMPONENTS: dict[str, Schema] = {
    "Me": obj(
        tenant=obj(id=UUID, slug=TEXT, name=TEXT),
        key=obj(id=UUID, name=TEXT, prefix=TEXT, expires_at=nullable(TIME)),
        scopes=array(TEXT),
        tree=nullable(TEXT),
        path_prefix=TEXT,
        limits={"type": "object", "additionalProperties": nullable(NUMBER)},
    ),
    "Key": obj(**_KEY),
    "NewKey": obj(
        **_KEY, key=nullable({**TEXT, "description": "The key itself; null when a repeat is answered."})
    ),
    "Usage": obj(day={**TEXT, "format": "date"}, key=obj(id=UUID, name=TEXT, prefix=TEXT), requests=NUMBER),
    "Stored": obj(trees=NUMBER, files=NUMBER, entries=NUMBER, bytes=NUMBER),
    "Tree": obj(**_TREE),
    "TreeDetail": obj(**_TREE, files=NUMBER, entries=NUMBER, bytes=NUMBER),
    "Listed": obj(
        path=TEXT,
        is_dir=FLAG,
        size=NUMBER,
        lines=NUMBER,
        revision=NUMBER,
        created_at=nullable(TIME),
        modified_at=nullable(TIME),
    ),
    "Window": obj(
        path=TEXT,
        content=TEXT,
        encoding=enum("utf-8", "base64"),
        total_lines=nullable(NUMBER),
        start_line=nullable(NUMBER),
        end_line=nullable(NUMBER),
        next_offset=nullable(NUMBER),
        no_lines_requested=FLAG,
        size=NUMBER,
        created_at=nullable(TIME),
        modified_at=nullable(TIME),
        revision=NUMBER,
    ),
    "Match": obj(path=TEXT, line=NUMBER, text=TEXT),
    "Written": obj(path=TEXT, revision=NUMBER, created=FLAG, changed=FLAG, size=NUMBER, warnings=WARNINGS),
    "Edited": obj(path=TEXT, revision=NUMBER, occurrences=NUMBER, size=NUMBER, warnings=WARNINGS),
    "Deleted": obj(path=TEXT, revision=NUMBER, files=NUMBER, warnings=WARNINGS),
    "Moved": obj(source=TEXT, destination=TEXT, revision=NUMBER, files=NUMBER, warnings=WARNINGS),
    "Uploaded": obj(path=TEXT, error=nullable(TEXT), warnings=WARNINGS),
    "Downloaded": obj(path=TEXT, content=nullable(BASE64), error=nullable(TEXT)),
    "Entry": obj(**_PLACED_ENTRY),
    "Hit": obj(**_PLACED_ENTRY, **_HIT),
    "Context": {
        "anyOf": [
            *(
                obj(**_CONTEXT, format=enum(name), messages=array(obj(role=enum(role), content=TEXT)))
                for name, role in CONTEXT_ROLES.items()
            ),
            obj(
                **_CONTEXT,
                format=enum(*(each for each in ContextFormat if each not in CONTEXT_ROLES)),
                content=TEXT,
            ),
        ]
    },
    "EntryWritten": obj(**_WRITTEN_ENTRY),
    "Accesses": obj(id=TEXT, count=NUMBER, last_at=nullable(TIME)),
    "EntryRetired": obj(id=TEXT, path=TEXT, revision=NUMBER, warnings=WARNINGS),
    "Index": obj(
        path=TEXT,
        exists=FLAG,
        preamble=TEXT,
        rows=array(obj(path=TEXT, description=TEXT, tags=array(TEXT), updated=TEXT)),
    ),
    "Revision": obj(**_REVISION),
    "RevisionDetail": obj(**_REVISION, files=array(_FILE_CHANGE), entries=array(_ENTRY_CHANGE)),
    "FileDiff": obj(
        path=TEXT,
        action=enum("created", "changed", "moved", "deleted"),
        source=nullable(TEXT),
        unified=TEXT,
        hunks=array(_HUNK),
        old_sha256=nullable(TEXT),
        new_sha256=nullable(TEXT),
    ),
    "Blame": obj(
        path=TEXT,
        lines=array(obj(line=NUMBER, text=TEXT, revision=NUMBER, entry_id=nullable(TEXT))),
        revisions={"type": "object", "additionalProperties": ref("Revision")},
    ),
    "EntryVersion": obj(
        revision=ref("Revision"),
        action=enum("kept", "added", "changed", "superseded", "moved", "removed"),
        path=TEXT,
        entry=obj(**_ENTRY),
    ),
    "Restored": obj(revision=NUMBER, paths=array(TEXT), warnings=WARNINGS),
    "Undone": obj(
        revision=NUMBER,
        undone=array(NUMBER),
        paths=array(TEXT),
        conflicts=array(obj(revision=NUMBER, path=TEXT, reason=TEXT)),
        warnings=WARNINGS,
    ),
    "BatchResult": obj(
        revision=NUMBER,
        results=array(
            {
                "anyOf": [
                    ref(name)
                    for name in ("Written", "Edited", "Deleted", "Moved", "EntryWritten", "EntryRetired")
                ]
            }
        ),
    ),
    "ImportReport": obj(
        revision=NUMBER,
        dry_run=FLAG,
        files=array(
            obj(
                path=TEXT,
                outcome=enum(*Outcome),
                reason=TEXT,
                entries=NUMBER,
                opaque=array(obj(line=NUMBER, reason=TEXT)),
            )
        ),
        warnings=array(TEXT),
        entries=array(obj(entry_id=TEXT, path=TEXT, outcome=enum(*Outcome), reason=TEXT)),
        differences=array(obj(path=TEXT, entry_id=TEXT, differs=enum(*Differs), done=enum(*Done))),
        more_differences=NUMBER,
        counts=obj(**{outcome.value: NUMBER for outcome in Outcome}),
        entry_counts=obj(**{outcome.value: NUMBER for outcome in Outcome}),
    ),
    **STORE_COMPONENTS,
    "Problem": {
        "type": "object",
        "description": "Every error has this shape (RFC 9457). Act on `code`; show `detail`.",
        "properties": {
            "type": TEXT,
            "title": TEXT,
            "status": NUMBER,
            "code": TEXT,
            "detail": TEXT,
            "request_id": TEXT,
            "errors": array(obj(field=TEXT, message=TEXT, code=TEXT)),
        },
        "required": ["type", "title", "status", "code", "detail", "request_id"],
    },
}
