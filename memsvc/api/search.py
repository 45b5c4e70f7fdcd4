from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api import answers
from memsvc.api.moments import revision_of
from memsvc.api.serializers import SearchInput
from memsvc.api.views import TreeView
from memsvc.tree import reads
from tenants.scopes import Scope


class SearchView(TreeView):
    """Entries that hold all words of the query, or exactly that phrase; newest first."""

    scopes = {"POST": Scope.READ}

    def post(self, request: Request, tree: str) -> Response:
        data = self.body(SearchInput)
        wanted = reads.EntryFilter(
            kind=data["kind"],
            category=data["category"],
            tags=tuple(data["tags"]),
            source=data["source"],
            since=data["since"],
            until=data["until"],
            active=None if data["include_superseded"] else True,
        )
        page = reads.search_entries(
            self.access,
            data["query"],
            wanted,
            mode=data["mode"].value,
            cursor=data["cursor"],
            limit=data["limit"],
            revision=revision_of(self.access, data),
        )
        return Response(answers.items(map(answers.entry, page.items), next=page.next))
