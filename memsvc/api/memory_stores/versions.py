from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api.memory_stores import answers, ids, pages
from memsvc.api.memory_stores.base_views import StoreView
from memsvc.api.memory_stores.serializers import FullViewQuery, VersionsQuery
from memsvc.api.serializers import Nothing
from memsvc.tree import reads
from memsvc.tree.errors import MemoryNotFound
from memsvc.tree.history.redaction import redact_version
from memsvc.tree.reads import VersionFilter
from memsvc.tree.results import VersionsPage
from tenants.actors import ActorKind
from tenants.scopes import Scope

# Whom an `api_key_id` may name.
_API_ACTORS = (ActorKind.KEY, ActorKind.JOB, ActorKind.OPERATOR, ActorKind.SYSTEM)


class MemoryVersionsView(StoreView):
    """The versions of a store's memories, newest first, also of those that are gone."""

    scopes = {"GET": Scope.READ}
    queries = {"GET": VersionsQuery}

    def get(self, request: Request, store_id: str) -> Response:
        access, cursor = self.access, self.cursor
        page = VersionsPage([], None)
        if (wanted := self._wanted()) is not None:
            page = reads.list_versions(
                access, wanted, with_content=self.with_content, cursor=cursor, limit=self.limit
            )
        found = (answers.version(self.store, version) for version in page.items)
        return Response(pages.listing(found, page.next, self.filters))

    def _wanted(self) -> VersionFilter | None:
        """What is asked for; None where there can't be any."""
        params = self.params
        try:
            memory = ids.file_of(params["memory_id"]) if params["memory_id"] is not None else None
        except MemoryNotFound:
            return None
        return VersionFilter(
            memory=memory,
            operation=params["operation"],
            actor=params["api_key_id"],
            actor_kinds=_API_ACTORS if params["api_key_id"] is not None else None,
            run_id=params["session_id"],
            since=params["created_at[gte]"],
            until=params["created_at[lte]"],
        )


class MemoryVersionView(StoreView):
    """One version: what a revision made of a memory. It outlives the memory."""

    scopes = {"GET": Scope.READ}
    queries = {"GET": FullViewQuery}

    def get(self, request: Request, store_id: str, version_id: str) -> Response:
        file, number = ids.version_of(version_id)
        found = reads.read_version(self.access, file, number, with_content=self.with_content)
        return Response(answers.version(self.store, found))


class RedactMemoryVersionView(StoreView):
    """Take out what a version held, for good; that there was one, when and by whom, stays."""

    scopes = {"POST": Scope.ADMIN}

    def post(self, request: Request, store_id: str, version_id: str) -> Response:
        self.body(Nothing)
        return Response(answers.version(self.store, redact_version(self.access, *ids.version_of(version_id))))
