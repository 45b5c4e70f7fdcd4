from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api.memory_stores import answers, pages
from memsvc.api.memory_stores.base_views import BaseView, StoreView
from memsvc.api.memory_stores.serializers import StoreInput, StorePatch, StoresQuery
from memsvc.api.serializers import Nothing
from memsvc.api.trees import require_every_tree
from memsvc.tree import trees
from memsvc.tree.trees import StoreFilter
from tenants.scopes import Scope


class MemoryStoresView(BaseView):
    """The tenant's trees that the key opens, as memory stores, newest first."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    queries = {"GET": StoresQuery}

    def get(self, request: Request) -> Response:
        wanted = StoreFilter(
            only=self.caller.key.only_trees,
            archived=self.params["include_archived"],
            since=self.params["created_at[gte]"],
            until=self.params["created_at[lte]"],
        )
        page = trees.stores_page(self.caller.tenant, wanted, cursor=self.cursor, limit=self.limit)
        return Response(pages.listing(map(answers.store, page.items), page.next, self.filters))

    def post(self, request: Request) -> Response:
        data = self.body(StoreInput)
        require_every_tree(self.caller, data["name"])
        made = trees.create_store(
            self.caller.tenant,
            data["name"],
            description=data["description"],
            metadata=data["metadata"],
            actor=self.caller.actor,
        )
        return Response(answers.store(made))


class MemoryStoreView(StoreView):
    """One store. DELETE takes its memories and all their versions with it, for good."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE, "DELETE": Scope.ADMIN}

    def get(self, request: Request, store_id: str) -> Response:
        return Response(answers.store(self.access.tree))

    def post(self, request: Request, store_id: str) -> Response:
        data = self.body(StorePatch)
        tree = trees.describe_tree(
            self.access, data["description"], title=data["name"], metadata=data["metadata"]
        )
        return Response(answers.store(tree))

    def delete(self, request: Request, store_id: str) -> Response:
        trees.delete_tree(self.access)
        return Response({"id": store_id, "type": "memory_store_deleted"})

    def tree_in_answer(self) -> UUID | None:
        # The answer to a DELETE must outlive the tree, and none of them holds content.
        return None


class ArchiveMemoryStoreView(StoreView):
    """Make a store read-only, for good; its versions can still be redacted."""

    scopes = {"POST": Scope.WRITE}

    def post(self, request: Request, store_id: str) -> Response:
        self.body(Nothing)
        return Response(answers.store(trees.archive_tree(self.access)))

    def tree_in_answer(self) -> UUID | None:
        return None
