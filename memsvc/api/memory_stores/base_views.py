"""What the views of this door share."""

from functools import cached_property
from typing import Any, ClassVar
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api.memory_stores import answers, envelope, ids, pages
from memsvc.api.memory_stores.authentication import EitherHeaderAuthentication
from memsvc.api.memory_stores.serializers import MAX_LISTED_IN_FULL, BaseQuery, View
from memsvc.api.problems import InvalidRequest
from memsvc.api.serializers import Query
from memsvc.api.views import METHODS, TenantView, access_of
from memsvc.tree.access import Access
from memsvc.tree.results import Memory
from memsvc.tree.trees import store_with_id


class BaseView(TenantView):
    """A view of this door: its credentials, its errors, its lists."""

    authentication_classes = (EitherHeaderAuthentication,)
    error_shape = ("StoreError", "application/json")
    queries: ClassVar[dict[str, type[Query]]] = {}

    def __init_subclass__(cls) -> None:
        # Clients add `beta=true` to every call.
        cls.queries = {**{method.upper(): BaseQuery for method in METHODS}, **cls.queries}
        super().__init_subclass__()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.method not in ("GET", "HEAD") and {"If-Match", "If-None-Match"} & request.headers.keys():
            # Taken silently, it would let a client believe in a guard that isn't there.
            raise InvalidRequest("If-Match and If-None-Match are not taken here; send a precondition.")

    def get_exception_handler(self) -> Any:
        return envelope.handle

    @property
    def with_content(self) -> bool:
        return bool(self.params["view"] is View.FULL)

    @property
    def limit(self) -> int:
        """How many items a page has: fewer where each comes with its content."""
        limit: int = self.params["limit"]
        return min(limit, MAX_LISTED_IN_FULL) if self.params.get("view") is View.FULL else limit

    @cached_property
    def filters(self) -> str:
        return pages.filters_of(self.request.path, self.params)

    @property
    def cursor(self) -> str | None:
        return pages.place_in(self.params["page"], self.filters)


# Of the whole header: servers in between take a few thousand bytes for all of them.
_MOST_TOLD = 20


class StoreView(BaseView):
    """A view of one store: the tree with the id in the URL, as far as the key opens it."""

    @cached_property
    def access(self) -> Access:
        tree_id, key = ids.tree_of(self.kwargs["store_id"]), self.caller.key
        return access_of(self.caller, store_with_id(self.caller.tenant, tree_id, only=key.only_trees))

    @property
    def store(self) -> UUID:
        return self.access.tree.pk

    def answer(self, found: Memory) -> Response:
        """A memory that was written. Its shape is fixed, so that what its writer has to know goes into a header."""
        told = ", ".join(f"{each.line} {each.code}" for each in found.warnings[:_MOST_TOLD])
        body = answers.memory(self.store, found, with_content=self.with_content)
        return Response(body, headers={"Memsvc-Warnings": told} if told else None)

    def tree_in_answer(self) -> UUID | None:
        return self.store
