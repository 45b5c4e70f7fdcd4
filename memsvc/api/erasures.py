from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api.answers import answer
from memsvc.api.serializers import Input, PageQuery
from memsvc.api.trees import require_every_tree
from memsvc.api.views import TenantView, access_of
from memsvc.contract.erasures import ErasureCertificate, ErasureRequest
from memsvc.contract.files import Page
from memsvc.tree.erasure import erase, list_erasures
from memsvc.tree.trees import tree_of
from tenants.scopes import Scope


class ErasureInput(Input):
    """What to erase of a tree, for good."""

    asks = ErasureRequest


class ErasuresView(TenantView):
    """What was erased, newest first: certificates without content. POST erases for good, or says what would go."""

    scopes = {"GET": Scope.ADMIN, "POST": Scope.ADMIN}
    queries = {"GET": PageQuery}
    long_running = True

    def get(self, request: Request) -> Response:
        require_every_tree(self.caller, "erasures")
        page = list_erasures(self.caller.tenant, cursor=self.params["cursor"], limit=self.params["limit"])
        return answer(page, Page[ErasureCertificate])

    def post(self, request: Request) -> Response:
        wanted = ErasureRequest(**self.body(ErasureInput))
        tree = tree_of(self.caller.tenant, wanted.tree, only=self.caller.key.only_trees)
        return answer(erase(access_of(self.caller, tree), wanted))

    def storable(self, answer: Any) -> Any:
        # Where it was found are paths.
        return {**answer, "places": []}
