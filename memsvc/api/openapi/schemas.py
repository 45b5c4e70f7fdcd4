"""What answers look like, as OpenAPI schemas: those of the contract, of the memory stores and of problems."""

from typing import Any

from memsvc.contract.accounts import DayUsage, KeyInfo, Me, NewKey, Stored, TreeDetail, TreeInfo
from memsvc.contract.context import Context
from memsvc.contract.entries import (
    Authorship,
    EntryAccesses,
    EntryRead,
    EntryRetired,
    EntryWritten,
    Hit,
    RouterIndex,
)
from memsvc.contract.files import (
    BatchResult,
    Deleted,
    Downloaded,
    Edited,
    Listed,
    Match,
    Moved,
    Uploaded,
    Window,
    Written,
)
from memsvc.contract.history import (
    Blame,
    EntryVersion,
    FileDiff,
    Restored,
    RevisionDetail,
    RevisionRead,
    Undone,
)
from memsvc.contract.imports import ImportReport
from memsvc.contract.wire import (
    NUMBER,
    TEXT,
    TIME,
    Schema,
    array,
    closed,
    enum,
    form_of,
    nullable,
    schema_of,
)
from memsvc.tree.results import OperationResult


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


UUID: Schema = {"type": "string", "format": "uuid"}
BYTES: Schema = {"type": "string", "format": "binary"}

# Under which name a class of the contract is described.
NAMES: dict[Any, str] = {
    Me: "Me",
    KeyInfo: "Key",
    NewKey: "NewKey",
    DayUsage: "Usage",
    Stored: "Stored",
    TreeInfo: "Tree",
    TreeDetail: "TreeDetail",
    Listed: "Listed",
    Window: "Window",
    Match: "Match",
    Written: "Written",
    Edited: "Edited",
    Deleted: "Deleted",
    Moved: "Moved",
    Uploaded: "Uploaded",
    Downloaded: "Downloaded",
    Authorship: "Authorship",
    EntryRead: "Entry",
    Hit: "Hit",
    Context: "Context",
    EntryWritten: "EntryWritten",
    EntryAccesses: "Accesses",
    EntryRetired: "EntryRetired",
    RouterIndex: "Index",
    RevisionRead: "Revision",
    RevisionDetail: "RevisionDetail",
    FileDiff: "FileDiff",
    Blame: "Blame",
    EntryVersion: "EntryVersion",
    Restored: "Restored",
    Undone: "Undone",
    BatchResult[OperationResult]: "BatchResult",
    ImportReport: "ImportReport",
}


def described(answer: Any) -> Schema:
    """The schema of a type of the contract, by name where it has one; a schema is one already."""
    return answer if isinstance(answer, dict) else form_of(answer).describe(NAMES)


_STORE_ACTOR = {
    "anyOf": [
        closed(type=enum("api_actor"), api_key_id=TEXT),
        closed(type=enum("user_actor"), user_id=TEXT),
        closed(type=enum("session_actor"), session_id=TEXT),
    ]
}
STORE_COMPONENTS: dict[str, Schema] = {
    "MemoryStore": closed(
        id=TEXT,
        type=enum("memory_store"),
        name=TEXT,
        description=TEXT,
        metadata={"type": "object", "additionalProperties": TEXT},
        created_at=TIME,
        updated_at=TIME,
        archived_at=nullable(TIME),
    ),
    "Memory": closed(
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
    "MemoryPrefix": closed(type=enum("memory_prefix"), path=TEXT),
    "MemoryVersion": closed(
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
    **{name: schema_of(kind, NAMES) for kind, name in NAMES.items()},
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
            "errors": array(closed(field=TEXT, message=TEXT, code=TEXT)),
        },
        "required": ["type", "title", "status", "code", "detail", "request_id"],
    },
}
