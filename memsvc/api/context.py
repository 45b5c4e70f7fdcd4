from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from memsvc.api.answers import answer_if_changed
from memsvc.api.moments import revision_of
from memsvc.api.serializers import ContextQuery
from memsvc.api.views import TreeView
from memsvc.contract.context import Context, ContextFormat
from memsvc.recall.context import DEFAULT_BUDGET, context, harness_context, notebook_context
from memsvc.recall.notebooks import MAX_LINES, Keep
from memsvc.tree.access import Access
from tenants.scopes import Scope

_DEFAULT_AGENT = "main"


class ContextView(TreeView):
    """A block of memories for a system prompt, within a budget of tokens; stored text in it is quoted."""

    scopes = {"GET": Scope.READ}
    queries = {"GET": ContextQuery}

    def get(self, request: Request, tree: str) -> HttpResponse:
        found = _asked(self.access, self.params)
        # Weak: the block is the same, the revision that it is of may be a later one.
        return answer_if_changed(request, found, found.etag, weak=True)


def _asked(access: Access, params: dict[str, Any]) -> Context:
    revision, budget = revision_of(access, params), params["token_budget"]
    if params["format"] is ContextFormat.PYDANTIC_DEEP:
        return notebook_context(
            access,
            params["agent"] or _DEFAULT_AGENT,
            budget=budget,
            keep=params["keep"] or Keep.TAIL,
            max_lines=params["max_lines"] or MAX_LINES,
            revision=revision,
        )
    if params["format"] is ContextFormat.HARNESS:
        return harness_context(
            access,
            params["agent"] or _DEFAULT_AGENT,
            params["query"],
            budget=budget or DEFAULT_BUDGET,
            max_lines=params["max_lines"] or MAX_LINES,
            revision=revision,
        )
    return context(
        access, params["query"], budget=budget or DEFAULT_BUDGET, format=params["format"], revision=revision
    )
