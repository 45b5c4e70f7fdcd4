"""Both clients do everything that REST does, and the same: one call for each operation of `docs/openapi.yaml`.

An operation that no call below makes fails the test, and so does a method that no call below uses.
"""

import asyncio
import io
import re
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from memsvc.client import AsyncMemsvcClient, MemsvcClient
from memsvc.format import MemoryCategory, MemoryKind
from tenants.models import Tenant
from tenants.scopes import Scope
from tests.people import make_key

SCHEMA = Path(__file__).parents[2] / "docs" / "openapi.yaml"
# Who uses these has a client already: they are there for programs written for another service.
FOREIGN = "/v1/memory_stores"

WHEN = datetime(2026, 5, 1, tzinfo=UTC)
DAYS = {"since": date(2026, 3, 1), "until": date(2026, 3, 2)}


@dataclass(frozen=True)
class Known:
    """What a prepared tree holds."""

    tree: str
    etag: str
    entry: str
    key: str


@dataclass(frozen=True)
class Case:
    operation: str
    method: str
    arguments: Callable[[Known], dict[str, Any]] = lambda known: {}

    def __str__(self) -> str:
        return f"{self.operation}-{self.method}"


READS = [
    Case("getMe", "me"),
    Case("getTrees", "list_trees"),
    Case("getTreeDetail", "describe"),
    Case("getKeys", "list_keys"),
    Case("getKey", "get_key", lambda known: {"key_id": known.key}),
    Case("getUsage", "usage", lambda known: DAYS),
    Case("getAudit", "list_audit", lambda known: {"action": "file.write", "limit": 2}),
    Case("getAuditExport", "export_audit"),
    Case("getErasures", "list_erasures"),
    Case("getFiles", "list_files", lambda known: {"prefix": "/", "limit": 2}),
    Case("getFiles", "iter_files", lambda known: {"prefix": "/memory", "revision": 2}),
    Case("getFiles", "list_folder", lambda known: {"folder": "/memory"}),
    Case("getFile", "read_lines", lambda known: {"path": "/a.md", "offset": 1}),
    Case("getFile", "read_bytes", lambda known: {"path": "/a.md", "revision": 2}),
    Case("getFile", "read_bytes_if_changed", lambda known: {"path": "/a.md", "etag": known.etag}),
    Case("getFile", "read_bytes_if_changed", lambda known: {"path": "/a.md", "etag": "another"}),
    Case("getFile", "read_text", lambda known: {"path": "/a.md"}),
    Case("postGrep", "grep", lambda known: {"pattern": "two"}),
    Case("postGlob", "glob", lambda known: {"pattern": "**/*.md"}),
    Case("postDownload", "download_files", lambda known: {"paths": ["/a.md", "/none.md"]}),
    Case("getEntries", "list_entries", lambda known: {"tags": ["wet"], "until": datetime(2100, 1, 1)}),  # noqa: DTZ001
    Case("getEntries", "list_entries", lambda known: {"metadata": {"depth": {"gt": 1}}}),
    Case("getEntry", "get_entry", lambda known: {"entry_id": known.entry}),
    Case("postSearch", "search", lambda known: {"query": "water"}),
    Case("postSearch", "search", lambda known: {"query": "water", "metadata": {"depth": 2.5}}),
    Case("getContext", "context", lambda known: {"query": "water", "token_budget": 300}),
    Case("getContext", "context_if_changed", lambda known: {"etag": "another", "format": "xml"}),
    Case("getContext", "context", lambda known: {"format": "harness", "agent": "main", "max_lines": 9}),
    Case("getContext", "context_for", lambda known: {"query": "water"}),
    Case("getContext", "notebook_context", lambda known: {"agent": "main", "keep": "head"}),
    Case("getEpisodes", "recent_episodes", lambda known: {"limit": 5}),
    Case("getIndex", "read_index", lambda known: {"kind": MemoryKind.SEMANTIC}),
    Case("getRevisions", "list_revisions", lambda known: {"path": "/a.md"}),
    Case("getRevision", "get_revision", lambda known: {"number": 2}),
    Case("getDiff", "diff", lambda known: {"old": 2, "path": "/a.md"}),
    Case("getBlame", "blame", lambda known: {"path": "/a.md"}),
    Case("getEntryAccesses", "entry_accesses", lambda known: {"entry_id": known.entry}),
    Case("getEntryHistory", "entry_history", lambda known: {"entry_id": known.entry}),
    Case("getZipExport", "export_zip", lambda known: {"revision": 3}),
    Case("getJsonLinesExport", "export_jsonl"),
    Case("getBundleExport", "export_bundle"),
]
WRITES = [
    Case("postTrees", "create_tree", lambda known: {"name": f"{known.tree} 2", "description": "new"}),
    Case("patchTreeDetail", "set_description", lambda known: {"description": "other"}),
    Case("patchTreeDetail", "set_language", lambda known: {"language": "german"}),
    Case("postClone", "clone_tree", lambda known: {"name": f"{known.tree} 3", "revision": 2}),
    Case("postArchive", "archive_tree"),
    Case("deleteTreeDetail", "delete_tree"),
    Case("postKeys", "create_key", lambda known: {"name": "night shift", "scopes": ["read"]}),
    Case("postRotateKey", "rotate_key", lambda known: {"key_id": known.key, "overlap_hours": 1}),
    Case("deleteKey", "revoke_key", lambda known: {"key_id": known.key}),
    Case("postErasures", "erase", lambda known: {"kind": "entry", "value": known.entry}),
    Case("putFile", "write_file", lambda known: {"path": "/b.md", "content": "b\n", "message": "why"}),
    Case("putFile", "write_file", lambda known: {"path": "/b.md", "content": "b\n", "create_only": True}),
    Case(
        "patchFile",
        "edit_file",
        lambda known: {
            "path": "/a.md",
            "old_string": "two",
            "new_string": "2",
            "if_match": known.etag,
        },
    ),
    Case("patchFile", "append_file", lambda known: {"path": "/a.md", "text": "three\n"}),
    Case("deleteFile", "delete", lambda known: {"path": "/memory/semantic_memory", "recursive": True}),
    Case("postMove", "move", lambda known: {"source": "/a.md", "destination": "/c/a.md"}),
    Case("postUpload", "upload_files", lambda known: {"files": [("/u.bin", b"\x00"), ("/../u", b"")]}),
    Case("postScaffold", "scaffold"),
    Case(
        "postEntries",
        "add_entry",
        lambda known: {"category": MemoryCategory.EVENTS, "body": "met ACME", "when": WHEN},
    ),
    Case(
        "postEntries",
        "add_entry",
        lambda known: {
            "category": MemoryCategory.FACTS,
            "body": "x",
            "metadata": {"n": [1, "a"]},
            "when": WHEN,
        },
    ),
    Case(
        "postSupersede",
        "supersede_entry",
        lambda known: {"entry_id": known.entry, "body": "Water wets.", "when": WHEN},
    ),
    Case(
        "postSupersede",
        "supersede_entry",
        lambda known: {"entry_id": known.entry, "body": "Water wets.", "when": WHEN, "metadata": {}},
    ),
    Case("deleteEntry", "retire_entry", lambda known: {"entry_id": known.entry}),
    Case("postRestore", "restore", lambda known: {"revision": 2, "path": "/a.md"}),
    Case("postRestore", "restore_entry", lambda known: {"entry_id": known.entry, "revision": 4}),
    Case("postUndo", "undo", lambda known: {"revision": 3}),
    Case("postBatch", "batch", lambda known: {"operations": [{"op": "delete", "path": "/a.md"}]}),
    Case("postImports", "import_zip", lambda known: {"archive": zip_of_one_file()}),
    Case(
        "postImports",
        "import_archive",
        lambda known: {
            "archive": zip_of_one_file(),
            "format": "zip",
            "on_conflict": "take",
            "dry_run": True,
        },
    ),
]


def zip_of_one_file() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("memory/z.md", b"zipped\n")
    return sink.getvalue()


class Recorded(httpx.HTTPTransport):
    """Remembers what was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(f"{request.method} {request.url.raw_path.decode()}")
        return super().handle_request(request)


class AsyncRecorded(httpx.AsyncHTTPTransport):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(f"{request.method} {request.url.raw_path.decode()}")
        return await super().handle_async_request(request)


@cache
def operations() -> dict[str, re.Pattern[str]]:
    """What a request of each operation looks like, method and path, by the operation's id."""
    paths = yaml.safe_load(SCHEMA.read_text())["paths"]
    return {
        operation["operationId"]: re.compile(f"{method.upper()} {_pattern(path)}")
        for path, methods in paths.items()
        if not path.startswith(FOREIGN)
        for method, operation in methods.items()
        if isinstance(operation, dict) and "operationId" in operation
    }


def _pattern(path: str) -> str:
    """A path of the schema as a pattern: only a file's path goes over several segments."""
    escaped = re.sub(r"\\\{(\w+)\\\}", r"{\1}", re.escape(path))
    return re.sub(r"\{\w+\}", r"[^/:?]+", escaped.replace("{path}", "[^?]+")) + r"(\?.*)?"


def test_each_operation_has_a_call() -> None:
    assert set(operations()) == {case.operation for case in READS + WRITES}


@pytest.mark.parametrize(("client", "close"), [(MemsvcClient, "close"), (AsyncMemsvcClient, "aclose")])
def test_each_method_is_called(client: type, close: str) -> None:
    methods = {name for name in dir(client) if not name.startswith("_")}

    assert methods == {case.method for case in READS + WRITES} | {close}


@pytest.fixture
def key(transactional_db: None, alice: Tenant) -> str:
    return make_key(alice, *Scope)[1]


def prepared(live_url: str, key: str, tree: str) -> Known:
    with MemsvcClient(live_url, key, tree=tree) as client:
        client.create_tree(tree)
        client.scaffold()
        client.write_file("/a.md", "one\n")
        etag = client.write_file("/a.md", "one\ntwo\n").etag
        metadata = {"depth": 2.5, "salt": False}
        added = client.add_entry(
            MemoryCategory.FACTS, "Water is wet.", tags=["wet"], when=WHEN, metadata=metadata
        )
        spare = client.create_key("spare", ["read"])
    assert etag is not None
    return Known(tree, etag, added.entry.entry_id, spare.info.id)


def answered(live_url: str, key: str, case: Case, known: Known) -> object:
    transport = Recorded()
    with MemsvcClient(live_url, key, tree=known.tree, transport=transport) as client:
        answer = getattr(client, case.method)(**case.arguments(known))
        answer = list(answer) if isinstance(answer, Iterator) else answer
    assert all(operations()[case.operation].fullmatch(request) for request in transport.asked)
    assert transport.asked
    return answer


async def awaited(live_url: str, key: str, case: Case, known: Known) -> object:
    transport = AsyncRecorded()
    async with AsyncMemsvcClient(live_url, key, tree=known.tree, transport=transport) as client:
        answer = getattr(client, case.method)(**case.arguments(known))
        if isinstance(answer, AsyncIterator):
            answer = [each async for each in answer]
        else:
            answer = await answer
    assert all(operations()[case.operation].fullmatch(request) for request in transport.asked)
    assert transport.asked
    return answer


@pytest.mark.parametrize("case", READS, ids=str)
def test_both_clients_read_the_same(live_url: str, key: str, case: Case) -> None:
    known = prepared(live_url, key, "a tree")

    answer = answered(live_url, key, case, known)
    again = asyncio.run(awaited(live_url, key, case, known))

    assert settled(again) == settled(answer)
    assert type(again) is type(answer)


@pytest.mark.parametrize("case", WRITES, ids=str)
def test_both_clients_change_the_same(live_url: str, key: str, case: Case) -> None:
    left, right = prepared(live_url, key, "left"), prepared(live_url, key, "right")

    answer = answered(live_url, key, case, left)
    again = asyncio.run(awaited(live_url, key, case, right))

    assert alike(again, right) == alike(answer, left)
    assert type(again) is type(answer)


def settled(answer: object) -> str:
    """An answer without what the server notes some time later."""
    return re.sub(r"last_used_at=(None|datetime\.datetime\([^)]*\))", "", repr(answer))


def alike(answer: object, known: Known) -> str:
    """An answer without what differs between two trees that were made alike: name, ids and times."""
    text = settled(answer).replace(known.tree, "tree")
    text = re.sub(r"datetime\.datetime\([^)]*\)", "a time", text)
    return re.sub(r"mem_[\d-]+_[0-9a-f]+|[0-9a-f]{64}|[0-9a-f-]{36}|msk_\w+|prefix='\w+'", "an id", text)
