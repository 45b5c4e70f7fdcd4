from datetime import UTC
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api import answers
from memsvc.api.moments import revision_of
from memsvc.api.serializers import SearchInput
from memsvc.api.views import TreeView
from memsvc.recall.search import Query, search
from memsvc.tree.reads import EntryFilter
from tenants.scopes import Scope


class SearchView(TreeView):
    """The entries that answer a query, best first, each with what put it there."""

    scopes = {"POST": Scope.READ}

    def post(self, request: Request, tree: str) -> Response:
        data = self.body(SearchInput)
        query = Query(
            text=data["query"],
            mode=data["mode"],
            wanted=filter_of(data),
            recency=data["recency"],
            zone=data["timezone"] or UTC,
        )
        page = search(
            self.access,
            query,
            cursor=data["cursor"],
            limit=data["limit"],
            revision=revision_of(self.access, data),
        )
        return Response(answers.hits(page))


def filter_of(data: dict[str, Any]) -> EntryFilter:
    return EntryFilter(
        kind=data["kind"],
        category=data["category"],
        tags=tuple(data["tags"]),
        any_tags=tuple(data["any_tags"]),
        source=data["source"],
        actor=data["actor"],
        confidence=data["confidence"],
        since=data["since"],
        until=data["until"],
        path_prefix=data["path_prefix"],
        active=None if data["include_superseded"] else True,
    )
