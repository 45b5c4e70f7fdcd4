from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api.memory_stores import answers, ids, pages
from memsvc.api.memory_stores.base_views import StoreView
from memsvc.api.memory_stores.serializers import (
    DeleteMemoryQuery,
    FullViewQuery,
    MemoriesQuery,
    MemoryInput,
    MemoryPatch,
    ViewQuery,
)
from memsvc.tree import memories, reads
from tenants.scopes import Scope


class MemoriesView(StoreView):
    """A store's memories in path order; with `depth=1` those in one folder, and the folders in it."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    queries = {"GET": MemoriesQuery, "POST": ViewQuery}

    def get(self, request: Request, store_id: str) -> Response:
        page = reads.list_memories(
            self.access,
            self.params["path_prefix"],
            direct=self.params["depth"] == 1,
            with_content=self.with_content,
            cursor=self.cursor,
            limit=self.limit,
        )
        found = (answers.listed(self.store, item) for item in page.items)
        return Response(pages.listing(found, page.next, self.filters))

    def post(self, request: Request, store_id: str) -> Response:
        data = self.body(MemoryInput)
        made = memories.create_memory(self.access, data["path"], data["content"])
        return self.answer(made)


class MemoryView(StoreView):
    """One memory, whose id it keeps when it is renamed. POST and PATCH are the same call."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE, "PATCH": Scope.WRITE, "DELETE": Scope.WRITE}
    queries = {
        "GET": FullViewQuery,
        "POST": ViewQuery,
        "PATCH": ViewQuery,
        "DELETE": DeleteMemoryQuery,
    }

    def get(self, request: Request, store_id: str, memory_id: str) -> Response:
        found = reads.read_memory(self.access, ids.file_of(memory_id), with_content=self.with_content)
        return Response(answers.memory(self.store, found))

    def post(self, request: Request, store_id: str, memory_id: str) -> Response:
        return self._update(memory_id)

    def patch(self, request: Request, store_id: str, memory_id: str) -> Response:
        return self._update(memory_id)

    def _update(self, memory_id: str) -> Response:
        data, access = self.body(MemoryPatch), self.access
        changed = memories.update_memory(
            access,
            ids.file_of(memory_id),
            path=data["path"],
            text=data["content"],
            sha256=data["precondition"]["content_sha256"] if data["precondition"] else None,
        )
        return self.answer(changed)

    def delete(self, request: Request, store_id: str, memory_id: str) -> Response:
        access, expected = self.access, self.params["expected_content_sha256"]
        memories.delete_memory(access, ids.file_of(memory_id), sha256=expected)
        return Response({"id": memory_id, "type": "memory_deleted"})
