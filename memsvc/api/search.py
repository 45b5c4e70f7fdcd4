from datetime import UTC
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api.answers import answer
from memsvc.api.entries import filter_of
from memsvc.api.moments import revision_of
from memsvc.api.serializers import SearchInput
from memsvc.api.views import TreeView
from memsvc.contract.entries import HitsPage
from memsvc.contract.requests import ScoringName
from memsvc.recall.mneme import Scoring
from memsvc.recall.mneme_search import search_as_mneme
from memsvc.recall.search import Query, search
from memsvc.tree.reads import EntryFilter
from tenants.scopes import Scope


class SearchView(TreeView):
    """The entries that answer a query, best first, each with what put it there."""

    scopes = {"POST": Scope.READ}

    def post(self, request: Request, tree: str) -> Response:
        data = self.body(SearchInput)
        by_mneme = data["scoring"] is ScoringName.MNEME
        return answer((self._by_mneme if by_mneme else self._ranked)(data))

    def _ranked(self, data: dict[str, Any]) -> HitsPage:
        query = Query(
            text=data["query"],
            mode=data["mode"],
            wanted=self._filter(data),
            recency=data["recency"],
            zone=data["timezone"] or UTC,
        )
        return search(
            self.access,
            query,
            cursor=data["cursor"],
            limit=data["limit"],
            revision=revision_of(self.access, data),
        )

    def _by_mneme(self, data: dict[str, Any]) -> HitsPage:
        given = {
            "half_life_days": data["half_life_days"],
            "use_confidence": data["use_confidence"],
            "weights": data["authority_weights"],
        }
        return search_as_mneme(
            self.access,
            data["query"],
            wanted=self._filter(data),
            scoring=Scoring(**{name: value for name, value in given.items() if value is not None}),
            limit=data["limit"],
            revision=revision_of(self.access, data),
        )

    def _filter(self, data: dict[str, Any]) -> EntryFilter:
        return filter_of(data, active=None if data["include_superseded"] else True)
