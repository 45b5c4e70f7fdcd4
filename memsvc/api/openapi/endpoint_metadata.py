"""What each operation is called, takes and answers: one line of the description per method of a view.

What can be seen from the view itself (its parameters, scopes, documentation) is taken from there.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from memsvc.api import serializers
from memsvc.api.erasures import ErasureInput
from memsvc.api.keys import KeyInput, RotateInput
from memsvc.api.openapi.schemas import BYTES
from memsvc.api.serializers import Input
from memsvc.contract.accounts import (
    KeyInfo,
    Me,
    NewKey,
    Scaffolded,
    TreeDeleted,
    TreeDetail,
    TreeInfo,
    UsagePage,
)
from memsvc.contract.audit import AuditEventRead
from memsvc.contract.context import Context
from memsvc.contract.entries import (
    Authorship,
    EntryAccesses,
    EntryRead,
    EntryRetired,
    EntryWritten,
    HitsPage,
    RouterIndex,
)
from memsvc.contract.erasures import Erased, ErasureCertificate
from memsvc.contract.files import (
    BatchResult,
    Deleted,
    Downloaded,
    Edited,
    FoundFiles,
    Items,
    Listed,
    Matches,
    Moved,
    Page,
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
from memsvc.contract.wire import to_json
from memsvc.tree.results import OperationResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """`answers` are the types of the successful ones, or schemas, by status; `refusals` the statuses of problems
    besides the common ones.

    `example` is a body, `answered` an answer; `media` the types of the answer, and `raw` those of a raw body.
    """

    summary: str
    answers: dict[int, Any]
    body: type[Input] | None = None
    raw: tuple[str, ...] = ()
    example: Any = None
    answered: Any = None
    media: tuple[str, ...] = ("application/json",)
    refusals: tuple[int, ...] = ()
    conditions: tuple[str, ...] = field(default=())


_WHOSE = {"created_at": "2026-03-01T09:00:00Z", "modified_at": "2026-03-02T10:30:00Z"}
_LISTED = {
    "path": "/memory/semantic/facts.md",
    "is_dir": False,
    "size": 312,
    "lines": 14,
    "revision": 7,
} | _WHOSE
_ERASURE = {
    "id": "019cb5d0-6a1e-7b3f-8c2d-4e5f60718293",
    "at": "2026-03-05T08:00:00Z",
    "kind": "entry",
    "actor": {"kind": "key", "id": "019cb5cf-0d3a-7c11-9a55-1b2c3d4e5f60"},
    "counts": {"entry": 1, "message": 1, "vector": 1},
}
_TREE = {
    "name": "default",
    "description": "",
    "language": "english",
    "revision": 7,
    "history_from": 0,
    "created_at": "2026-03-01T09:00:00Z",
    "archived_at": None,
}
_ENTRY = {
    "id": "mem_20260301_a1b2c3d4",
    "category": "facts",
    "kind": "semantic",
    "created": "2026-03-01T09:00:00Z",
    "source": "agent",
    "confidence": "high",
    "tags": ["acme"],
    "summary": "ACME's seat",
    "body": "ACME moved to Berlin.",
    "supersedes": None,
    "superseded_by": None,
    "is_active": True,
    "metadata": {"project": "apollo", "priority": 3},
    "path": "/memory/semantic/facts.md",
    "expires_at": None,
    "revision": 7,
}
_AUTHORSHIP = to_json(
    Authorship(
        revision=7,
        at=datetime(2026, 3, 2, 10, 30, tzinfo=UTC),
        actor_kind="key",
        actor_id="019c0000-0000-7000-8000-000000000001",
        actor_name="support agent",
        run_id="run-17",
    )
)
_ENTRY_READ = _ENTRY | {"written": _AUTHORSHIP, "changed": _AUTHORSHIP}
_HIT = _ENTRY_READ | {
    "score": 1.75,
    "parts": {"bm25": 4.2, "similarity": 0.71, "neighbours": 0.0, "title": 0.15, "confidence": 1.02},
    "highlights": [{"text": "ACME moved to Berlin.", "ranges": [[0, 4]]}],
    "line": 12,
    "duplicates": [],
}
_ENTRY_WRITTEN = _ENTRY | {"superseded": None, "file_created": True, "peer_readable": True, "warnings": []}
_WRITTEN = {"path": "/notes.md", "revision": 8, "created": True, "changed": True, "size": 6, "warnings": []}
_REVISION = to_json(
    RevisionRead(
        number=7,
        at=datetime(2026, 3, 2, 10, 30, tzinfo=UTC),
        actor_kind="key",
        actor_id="019c0000-0000-7000-8000-000000000001",
        actor_name="support agent",
        action="entry.add",
        message="",
    )
)
_MOVED = {
    "source": "/notes.md",
    "destination": "/archive/notes.md",
    "revision": 9,
    "files": 1,
    "warnings": [],
}
_MOVE = {"source": "/notes.md", "destination": "/archive/notes.md"}
_DIFF = {
    "path": "/notes.md",
    "action": "changed",
    "source": None,
    "unified": "--- a/notes.md\n+++ b/notes.md\n@@ -1 +1 @@\n-old\n+new\n",
    "hunks": [
        {"old_start": 1, "old_lines": 1, "new_start": 1, "new_lines": 1, "lines": ["-old\n", "+new\n"]}
    ],
    "old_sha256": "1f" * 32,
    "new_sha256": "2e" * 32,
}
_RAW_TYPES = ("text/markdown", "text/plain", "application/octet-stream")
ZIP = "application/zip"

_KEY = {
    "id": "019c0000-0000-7000-8000-000000000001",
    "name": "support agent",
    "prefix": "aB3dE6gH",
    "scopes": ["read", "write"],
    "tree": None,
    "path_prefix": "/",
    "created_at": "2026-03-01T09:00:00Z",
    "expires_at": None,
    "revoked_at": None,
    "last_used_at": None,
}

# By the name of the view and the method.
ENDPOINTS: dict[tuple[str, str], Endpoint] = {
    ("MeView", "GET"): Endpoint(
        summary="Whose key this is",
        answers={200: Me},
        answered={
            "tenant": {"id": "019c0000-0000-7000-8000-000000000002", "slug": "acme", "name": "ACME"},
            "key": {
                "id": "019c0000-0000-7000-8000-000000000001",
                "name": "support agent",
                "prefix": "aB3dE6gH",
                "expires_at": None,
            },
            "scopes": ["read", "write"],
            "tree": None,
            "path_prefix": "/",
            "limits": {"max_body_bytes": 10485760, "max_batch": 500, "history_days": None},
        },
    ),
    ("KeysView", "GET"): Endpoint(
        summary="List keys",
        answers={200: Page[KeyInfo]},
        answered={"items": [_KEY], "next": None},
    ),
    ("KeysView", "POST"): Endpoint(
        summary="Make a key",
        body=KeyInput,
        answers={201: NewKey},
        example={"name": "support agent", "scopes": ["read", "write"]},
        answered=_KEY | {"key": "msk_aB3dE6gH_… (shown this once)"},
    ),
    ("KeyView", "GET"): Endpoint(
        summary="Read a key", answers={200: KeyInfo}, answered=_KEY, refusals=(404,)
    ),
    ("KeyView", "DELETE"): Endpoint(
        summary="Revoke a key, for good",
        answers={200: KeyInfo},
        answered=_KEY | {"revoked_at": "2026-03-05T08:00:00Z"},
        refusals=(404,),
    ),
    ("RotateKeyView", "POST"): Endpoint(
        summary="Put a new key in the place of another",
        body=RotateInput,
        answers={201: NewKey},
        example={"overlap_hours": 24},
        answered=_KEY
        | {
            "id": "019c0000-0000-7000-8000-000000000003",
            "prefix": "hG6eD3bA",
            "key": "msk_hG6eD3bA_… (shown this once)",
        },
        refusals=(404, 409),
    ),
    ("UsageView", "GET"): Endpoint(
        summary="Count what is stored and what was asked",
        answers={200: UsagePage},
        answered={
            "items": [
                {
                    "day": "2026-03-05",
                    "key": {"id": _KEY["id"], "name": _KEY["name"], "prefix": _KEY["prefix"]},
                    "requests": 1204,
                }
            ],
            "next": None,
            "stored": {"trees": 3, "files": 40, "entries": 900, "bytes": 262144},
        },
    ),
    ("AuditView", "GET"): Endpoint(
        summary="List what was done and what was refused",
        answers={200: Page[AuditEventRead]},
        answered={
            "items": [
                {
                    "chain": "019c0000-0000-7000-8000-000000000009",
                    "number": 7,
                    "digest": "9f2c1d0e5b7a48c6d3e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a1b0c9",
                    "at": "2026-03-05T08:00:00Z",
                    "action": "entry.add",
                    "outcome": "done",
                    "times": 1,
                    "actor": {"kind": "key", "id": _KEY["id"], "name": _KEY["name"]},
                    "address": "203.0.113.7",
                    "request_id": "4f1d2c3b5a697887",
                    "tree_id": "019c0000-0000-7000-8000-000000000009",
                    "tree": "default",
                    "revision": 7,
                    "object": "",
                    "reason": "",
                }
            ],
            "next": None,
        },
        refusals=(404,),
    ),
    ("AuditExportView", "GET"): Endpoint(
        summary="Export the whole audit as JSON Lines",
        answers={200: BYTES},
        media=("application/jsonl",),
        answered="(an event a line, chain by chain)",
        refusals=(404,),
    ),
    ("ErasuresView", "GET"): Endpoint(
        summary="List what was erased",
        answers={200: Page[ErasureCertificate]},
        answered={"items": [_ERASURE], "next": None},
    ),
    ("ErasuresView", "POST"): Endpoint(
        summary="Erase for good",
        body=ErasureInput,
        answers={200: Erased},
        example={
            "tree": "default",
            "kind": "entry",
            "value": "mem_2026-03-01_0f3a9c1d2e4b5a67",
            "dry_run": True,
        },
        answered={
            "dry_run": True,
            "revision": 12,
            "places": [
                {"place": "entry", "where": "/memory/semantic_memory/facts.md", "count": 1},
                {"place": "message", "where": "7", "count": 1},
                {"place": "vector", "where": "", "count": 1},
            ],
            "certificate": None,
        },
        refusals=(404, 409),
    ),
    ("TreesView", "GET"): Endpoint(
        summary="List the trees that the key opens",
        answers={200: Page[TreeInfo]},
        answered={"items": [_TREE], "next": None},
    ),
    ("TreesView", "POST"): Endpoint(
        summary="Make a tree",
        body=serializers.TreeInput,
        answers={201: TreeInfo},
        example={"name": "customer 42"},
        answered=_TREE | {"name": "customer 42", "revision": 0},
        refusals=(409,),
    ),
    ("TreeDetailView", "GET"): Endpoint(
        summary="Describe a tree",
        answers={200: TreeDetail},
        answered=_TREE | {"files": 12, "entries": 340, "bytes": 81920},
        refusals=(404,),
    ),
    ("TreeDetailView", "PATCH"): Endpoint(
        summary="Give a tree another description or language",
        body=serializers.TreePatch,
        answers={200: TreeInfo},
        example={"description": "What we know about ACME"},
        answered=_TREE | {"description": "What we know about ACME"},
        refusals=(404, 409),
    ),
    ("TreeDetailView", "DELETE"): Endpoint(
        summary="Delete a tree with its history, for good",
        answers={200: TreeDeleted},
        answered={"name": "customer 42", "deleted": True},
        refusals=(404,),
    ),
    ("CloneView", "POST"): Endpoint(
        summary="Clone a tree as of a revision",
        body=serializers.CloneInput,
        answers={201: TreeInfo},
        example={"name": "a copy", "revision": 7},
        answered=_TREE | {"name": "a copy", "revision": 1},
        refusals=(404, 409, 410),
    ),
    ("ArchiveView", "POST"): Endpoint(
        summary="Make a tree read-only, for good",
        body=serializers.Nothing,
        answers={200: TreeInfo},
        example={},
        answered=_TREE | {"archived_at": "2026-03-05T08:00:00Z"},
        refusals=(404,),
    ),
    ("ScaffoldView", "POST"): Endpoint(
        summary="Make what is missing of the memory layout",
        body=serializers.Nothing,
        answers={200: Scaffolded},
        example={},
        answered={"created": ["/memory/index.md"]},
        refusals=(404, 409),
    ),
    ("FilesView", "GET"): Endpoint(
        summary="List files",
        answers={200: Page[Listed]},
        answered={"items": [_LISTED], "next": None},
        refusals=(404, 409, 410),
    ),
    ("FileView", "GET"): Endpoint(
        summary="Read a file",
        answers={200: Window},
        media=("application/json", *_RAW_TYPES),
        answered={
            "path": "/notes.md",
            "content": "first line\n",
            "encoding": "utf-8",
            "total_lines": 1,
            "start_line": 1,
            "end_line": 1,
            "next_offset": None,
            "no_lines_requested": False,
            "size": 11,
            **_WHOSE,
            "revision": 7,
        },
        refusals=(404, 409, 410, 416),
        conditions=("If-None-Match",),
    ),
    ("FileView", "PUT"): Endpoint(
        summary="Write a whole file",
        body=serializers.FileContentInput,
        raw=("application/octet-stream",),
        answers={200: Written, 201: Written},
        example={"content": "hello\n", "message": "first note"},
        answered=_WRITTEN,
        refusals=(404, 409, 412, 413),
        conditions=("If-Match", "If-None-Match"),
    ),
    ("FileView", "PATCH"): Endpoint(
        summary="Replace a piece of a file, or append to it",
        body=serializers.PatchInput,
        answers={200: Edited | Written},
        example={"old_string": "hello", "new_string": "good morning"},
        answered={"path": "/notes.md", "revision": 9, "occurrences": 1, "size": 13, "warnings": []},
        refusals=(404, 409, 412, 413),
        conditions=("If-Match", "If-None-Match"),
    ),
    ("FileView", "DELETE"): Endpoint(
        summary="Delete a file or a folder",
        answers={200: Deleted},
        answered={"path": "/notes.md", "revision": 10, "files": 1, "warnings": []},
        refusals=(404, 409, 412),
        conditions=("If-Match", "If-None-Match"),
    ),
    ("GrepView", "POST"): Endpoint(
        summary="Find the lines that hold a text",
        body=serializers.GrepInput,
        answers={200: Matches},
        example={"pattern": "Berlin", "path": "/memory", "glob": "*.md"},
        answered={
            "items": [{"path": "/memory/semantic/facts.md", "line": 12, "text": "ACME moved to Berlin."}],
            "truncated": False,
        },
        refusals=(404, 409, 410),
    ),
    ("GlobView", "POST"): Endpoint(
        summary="Find files by a pattern of their path",
        body=serializers.GlobInput,
        answers={200: FoundFiles},
        example={"pattern": "**/*.md"},
        answered={"items": [_LISTED], "next": None, "truncated": False},
        refusals=(404, 409, 410),
    ),
    ("MoveView", "POST"): Endpoint(
        summary="Move a file or a folder",
        body=serializers.MoveInput,
        answers={200: Moved},
        example=_MOVE,
        answered=_MOVED,
        refusals=(404, 409),
    ),
    ("UploadView", "POST"): Endpoint(
        summary="Write many files",
        body=serializers.UploadInput,
        answers={200: Items[Uploaded]},
        example={"files": [{"path": "/notes.md", "content": "aGVsbG8K"}]},
        answered={"items": [{"path": "/notes.md", "error": None, "warnings": []}]},
        refusals=(404, 413),
    ),
    ("DownloadView", "POST"): Endpoint(
        summary="Read many whole files",
        body=serializers.DownloadInput,
        answers={200: Items[Downloaded]},
        example={"paths": ["/notes.md"]},
        answered={"items": [{"path": "/notes.md", "content": "aGVsbG8K", "error": None}]},
        refusals=(404, 410),
    ),
    ("EntriesView", "GET"): Endpoint(
        summary="List entries",
        answers={200: Page[EntryRead]},
        answered={"items": [_ENTRY_READ], "next": None},
        refusals=(404, 410),
    ),
    ("EntriesView", "POST"): Endpoint(
        summary="Add an entry",
        body=serializers.EntryInput,
        answers={201: EntryWritten},
        example={
            "category": "facts",
            "body": "ACME moved to Berlin.",
            "summary": "ACME's seat",
            "tags": ["acme"],
            "metadata": {"project": "apollo", "priority": 3},
        },
        answered=_ENTRY_WRITTEN,
        refusals=(404, 409, 413),
    ),
    ("EntryView", "GET"): Endpoint(
        summary="Read an entry",
        answers={200: EntryRead},
        answered=_ENTRY_READ,
        refusals=(404, 410),
        conditions=("If-None-Match",),
    ),
    ("EntryView", "DELETE"): Endpoint(
        summary="Retire an entry",
        answers={200: EntryRetired},
        answered={"id": _ENTRY["id"], "path": _ENTRY["path"], "revision": 8, "warnings": []},
        refusals=(404, 409, 412),
        conditions=("If-Match", "If-None-Match"),
    ),
    ("SupersedeView", "POST"): Endpoint(
        summary="Supersede an entry",
        body=serializers.SuccessorInput,
        answers={201: EntryWritten},
        example={"body": "ACME moved to Hamburg."},
        answered=_ENTRY_WRITTEN
        | {
            "id": "mem_20260302_e5f6a7b8",
            "body": "ACME moved to Hamburg.",
            "supersedes": _ENTRY["id"],
            "superseded": _ENTRY["id"],
            "file_created": False,
        },
        refusals=(404, 409, 413),
    ),
    ("EntryHistoryView", "GET"): Endpoint(
        summary="Read the history of an entry",
        answers={200: Items[EntryVersion]},
        answered={
            "items": [
                {
                    "revision": _REVISION,
                    "action": "added",
                    "path": _ENTRY["path"],
                    "entry": {
                        name: value
                        for name, value in _ENTRY.items()
                        if name not in ("path", "expires_at", "revision")
                    },
                }
            ]
        },
        refusals=(404,),
    ),
    ("EntryAccessesView", "GET"): Endpoint(
        summary="Read how often an entry was found or read",
        answers={200: EntryAccesses},
        answered={"id": _ENTRY["id"], "count": 12, "last_at": "2026-03-02T09:30:00Z"},
        refusals=(404,),
    ),
    ("SearchView", "POST"): Endpoint(
        summary="Search entries",
        body=serializers.SearchInput,
        answers={200: HitsPage},
        example={
            "query": "Where is ACME's seat?",
            "kind": "semantic",
            "metadata": {"project": "apollo", "priority": {"gte": 3}},
        },
        answered={"items": [_HIT], "next": None, "truncated": False},
        refusals=(404, 409, 410),
    ),
    ("ContextView", "GET"): Endpoint(
        summary="Read a block for a system prompt",
        answers={200: Context},
        answered={
            "format": "markdown",
            "content": "[facts 2026-03-01 mem_20260301_a1b2c3d4]\n> ACME moved to Berlin.",
            "tokens": 26,
            "budget": 100,
            "entries": ["mem_20260301_a1b2c3d4"],
            "duplicates": {},
            "left_out": 0,
            "revision": 7,
        },
        refusals=(404, 410),
        conditions=("If-None-Match",),
    ),
    ("EpisodesView", "GET"): Endpoint(
        summary="Read the newest episodes",
        answers={200: Items[EntryRead]},
        answered={
            "items": [
                _ENTRY_READ
                | {
                    "category": "events",
                    "kind": "episodic",
                    "path": "/memory/episodic/events/2026-03-01.md",
                }
            ]
        },
        refusals=(404,),
    ),
    ("IndexView", "GET"): Endpoint(
        summary="Read a router index",
        answers={200: RouterIndex},
        answered={
            "path": "/memory/semantic/index.md",
            "exists": True,
            "preamble": "# Semantic memory",
            "rows": [{"path": "facts.md", "description": "Facts", "tags": ["acme"], "updated": "2026-03-01"}],
        },
        refusals=(404, 410),
    ),
    ("BatchView", "POST"): Endpoint(
        summary="Make many changes as one revision",
        body=serializers.BatchInput,
        answers={200: BatchResult[OperationResult]},
        example={
            "operations": [
                {"op": "write", "path": "/notes.md", "content": "hello\n"},
                {"op": "add_entry", "category": "facts", "body": "ACME moved to Berlin."},
            ]
        },
        answered={"revision": 8, "results": [_WRITTEN, _ENTRY_WRITTEN]},
        refusals=(404, 409, 412, 413),
    ),
    ("RevisionsView", "GET"): Endpoint(
        summary="List revisions",
        answers={200: Page[RevisionRead]},
        answered={"items": [_REVISION], "next": None},
        refusals=(404,),
    ),
    ("RevisionView", "GET"): Endpoint(
        summary="Read what a revision changed",
        answers={200: RevisionDetail},
        answered=_REVISION
        | {
            "files": [{"path": _ENTRY["path"], "action": "created", "source": None}],
            "entries": [{"id": _ENTRY["id"], "path": _ENTRY["path"], "action": "added"}],
        },
        refusals=(404, 410),
    ),
    ("DiffView", "GET"): Endpoint(
        summary="Compare two revisions",
        answers={200: Items[FileDiff]},
        media=("application/json", "text/x-diff"),
        answered={"items": [_DIFF]},
        refusals=(404, 410, 413),
    ),
    ("BlameView", "GET"): Endpoint(
        summary="Say who wrote each line of a file",
        answers={200: Blame},
        answered={
            "path": "/notes.md",
            "lines": [{"line": 1, "text": "hello", "revision": 7, "entry_id": None}],
            "revisions": {"7": _REVISION},
        },
        refusals=(404, 409, 410),
    ),
    ("RestoreView", "POST"): Endpoint(
        summary="Restore what a revision had",
        body=serializers.RestoreInput,
        answers={200: Restored},
        example={"path": "/notes.md", "message": "the old text was right"},
        answered={"revision": 11, "paths": ["/notes.md"], "warnings": []},
        refusals=(404, 409, 410),
    ),
    ("UndoView", "POST"): Endpoint(
        summary="Undo a revision, or what an actor did",
        body=serializers.UndoInput,
        answers={200: Undone},
        example={"revision": 7, "dry_run": True},
        answered={"revision": 11, "undone": [7], "paths": ["/notes.md"], "conflicts": [], "warnings": []},
        refusals=(404, 409, 410),
    ),
    ("ZipExportView", "GET"): Endpoint(
        summary="Export the files as a zip archive",
        answers={200: BYTES},
        media=(ZIP,),
        answered="(the bytes of the archive)",
        refusals=(404, 410),
    ),
    ("JsonLinesExportView", "GET"): Endpoint(
        summary="Export the files and entries as JSON Lines",
        answers={200: BYTES},
        media=("application/jsonl",),
        answered="(a header, then one document or memory a line)",
        refusals=(404, 410),
    ),
    ("BundleExportView", "GET"): Endpoint(
        summary="Export the history as a git bundle",
        answers={200: BYTES},
        media=("application/x-git-bundle",),
        answered="(the bytes of the bundle)",
        refusals=(404, 409, 410),
    ),
    ("ImportsView", "POST"): Endpoint(
        summary="Import a tree, or another system's memories",
        raw=(ZIP, "application/jsonl", "application/vnd.sqlite3", "application/octet-stream"),
        answers={200: ImportReport},
        answered={
            "revision": 12,
            "dry_run": False,
            "files": [
                {
                    "path": "/notes.md",
                    "outcome": "skipped",
                    "reason": "the tree knows more of it; see the differences",
                    "entries": 0,
                    "opaque": [],
                }
            ],
            "warnings": [],
            "entries": [],
            "differences": [
                {"path": "/notes.md", "entry_id": "", "differs": "text", "done": "kept"},
            ],
            "more_differences": 0,
            "counts": {"created": 0, "changed": 0, "unchanged": 0, "skipped": 1, "refused": 0},
            "entry_counts": {"created": 0, "changed": 0, "unchanged": 0, "skipped": 0, "refused": 0},
        },
        refusals=(404, 409, 413),
    ),
}
