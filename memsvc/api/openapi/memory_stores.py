"""What the operations of memory stores are called, take and answer."""

from typing import Any

from memsvc.api.memory_stores.serializers import MemoryInput, MemoryPatch, StoreInput, StorePatch
from memsvc.api.openapi.endpoint_metadata import Endpoint
from memsvc.api.openapi.schemas import ref
from memsvc.api.serializers import Nothing
from memsvc.contract.wire import TEXT, Schema, array, closed, enum, nullable

_STORE_ID = "memstore_019c0000000070008000000000000010"
_MEMORY_ID = "mem_019c0000000070008000000000000011"
_VERSION_ID = "memver_019c0000000070008000000000000011_7"
_STORE = {
    "id": _STORE_ID,
    "type": "memory_store",
    "name": "customer 42",
    "description": "What we know about customer 42",
    "metadata": {"region": "eu"},
    "created_at": "2026-03-01T09:00:00Z",
    "updated_at": "2026-03-01T09:00:00Z",
    "archived_at": None,
}
_CONTENT = {
    "content": "Prefers mail.\n",
    "content_sha256": "c95230116bd71d2906d563a40ab1bfdfaf370d47b13e258c42ac62c5ac2eb876",
    "content_size_bytes": 14,
}
_MEMORY = {
    "id": _MEMORY_ID,
    "type": "memory",
    "memory_store_id": _STORE_ID,
    "memory_version_id": _VERSION_ID,
    "path": "/preferences.md",
    **_CONTENT,
    "created_at": "2026-03-01T09:00:00Z",
    "updated_at": "2026-03-02T10:30:00Z",
}
_BASIC = _MEMORY | {"content": None}
_ACTOR = {"type": "api_actor", "api_key_id": "019c0000-0000-7000-8000-000000000001"}
_VERSION = {
    "id": _VERSION_ID,
    "type": "memory_version",
    "memory_store_id": _STORE_ID,
    "memory_id": _MEMORY_ID,
    "operation": "modified",
    "path": "/preferences.md",
    **_CONTENT,
    "created_at": "2026-03-02T10:30:00Z",
    "created_by": _ACTOR,
    "redacted_at": None,
    "redacted_by": None,
}
_REDACTED = dict.fromkeys(("path", *_CONTENT)) | {
    "redacted_at": "2026-03-05T08:00:00Z",
    "redacted_by": _ACTOR,
}
_PATCH = {
    "content": "Prefers letters.\n",
    "precondition": {"type": "content_sha256", "content_sha256": _CONTENT["content_sha256"]},
}


def _list(of: Schema) -> dict[int, Schema]:
    page = {**TEXT, "description": "The `page` that follows; null after the last one."}
    return {200: closed(data=array(of), next_page=nullable(page))}


def _deleted(kind: str) -> dict[int, Schema]:
    return {200: closed(id=TEXT, type=enum(kind))}


def _listed(*items: Any) -> Any:
    return {"data": list(items), "next_page": None}


def _update(summary: str) -> Endpoint:
    return Endpoint(
        summary=summary,
        body=MemoryPatch,
        answers={200: ref("Memory")},
        example=_PATCH,
        answered=_BASIC,
        refusals=(404, 409, 413),
    )


STORE_ENDPOINTS: dict[tuple[str, str], Endpoint] = {
    ("MemoryStoresView", "GET"): Endpoint(
        summary="List memory stores",
        answers=_list(ref("MemoryStore")),
        answered=_listed(_STORE),
    ),
    ("MemoryStoresView", "POST"): Endpoint(
        summary="Make a memory store",
        body=StoreInput,
        answers={200: ref("MemoryStore")},
        example={name: _STORE[name] for name in ("name", "description", "metadata")},
        answered=_STORE,
    ),
    ("MemoryStoreView", "GET"): Endpoint(
        summary="Describe a memory store",
        answers={200: ref("MemoryStore")},
        answered=_STORE,
        refusals=(404,),
    ),
    ("MemoryStoreView", "POST"): Endpoint(
        summary="Describe a memory store otherwise",
        body=StorePatch,
        answers={200: ref("MemoryStore")},
        example={"metadata": {"region": None}},
        answered=_STORE | {"metadata": {}},
        refusals=(404, 409),
    ),
    ("MemoryStoreView", "DELETE"): Endpoint(
        summary="Delete a memory store with its versions, for good",
        answers=_deleted("memory_store_deleted"),
        answered={"id": _STORE_ID, "type": "memory_store_deleted"},
        refusals=(404,),
    ),
    ("ArchiveMemoryStoreView", "POST"): Endpoint(
        summary="Make a memory store read-only, for good",
        body=Nothing,
        answers={200: ref("MemoryStore")},
        example={},
        answered=_STORE | {"archived_at": "2026-03-05T08:00:00Z", "updated_at": "2026-03-05T08:00:00Z"},
        refusals=(404,),
    ),
    ("MemoriesView", "GET"): Endpoint(
        summary="List memories",
        answers=_list({"anyOf": [ref("Memory"), ref("MemoryPrefix")]}),
        answered=_listed({"type": "memory_prefix", "path": "/notes/"}, _BASIC),
        refusals=(404,),
    ),
    ("MemoriesView", "POST"): Endpoint(
        summary="Make a memory",
        body=MemoryInput,
        answers={200: ref("Memory")},
        example={name: _MEMORY[name] for name in ("path", "content")},
        answered=_BASIC,
        refusals=(404, 409, 413),
    ),
    ("MemoryView", "GET"): Endpoint(
        summary="Read a memory", answers={200: ref("Memory")}, answered=_MEMORY, refusals=(404,)
    ),
    ("MemoryView", "POST"): _update("Rename a memory, give it other content, or both"),
    ("MemoryView", "PATCH"): _update("The same as POST"),
    ("MemoryView", "DELETE"): Endpoint(
        summary="Delete a memory; its versions stay",
        answers=_deleted("memory_deleted"),
        answered={"id": _MEMORY_ID, "type": "memory_deleted"},
        refusals=(404, 409),
    ),
    ("MemoryVersionsView", "GET"): Endpoint(
        summary="List versions of memories",
        answers=_list(ref("MemoryVersion")),
        answered=_listed(_VERSION | {"content": None}),
        refusals=(404,),
    ),
    ("MemoryVersionView", "GET"): Endpoint(
        summary="Read a version of a memory",
        answers={200: ref("MemoryVersion")},
        answered=_VERSION,
        refusals=(404,),
    ),
    ("RedactMemoryVersionView", "POST"): Endpoint(
        summary="Redact a version of a memory, for good",
        body=Nothing,
        answers={200: ref("MemoryVersion")},
        example={},
        answered=_VERSION | _REDACTED,
        refusals=(404, 409),
    ),
}
