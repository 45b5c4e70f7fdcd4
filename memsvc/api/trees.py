from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api import answers
from memsvc.api.serializers import Nothing, TreeInput
from memsvc.api.views import TenantView, TreeView, opens
from memsvc.tree import services
from memsvc.tree.errors import Forbidden
from memsvc.tree.trees import create_tree, list_trees
from tenants.scopes import Scope


class TreesView(TenantView):
    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}

    def get(self, request: Request) -> Response:
        trees = [tree for tree in list_trees(self.caller.tenant) if opens(self.caller.key, tree.name)]
        return Response(answers.items(map(answers.tree, trees), next=None))

    def post(self, request: Request) -> Response:
        name = self.body(TreeInput)["name"]
        key = self.caller.key
        if key.tree or key.path_prefix != "/":
            raise Forbidden(name, key.tree or key.path_prefix)
        return Response(answers.tree(create_tree(self.caller.tenant, name)), status=201)


class TreeDetailView(TreeView):
    scopes = {"GET": Scope.READ}

    def get(self, request: Request, tree: str) -> Response:
        return Response(answers.tree(self.access.tree))


class ScaffoldView(TreeView):
    """Make what is missing of the memory layout."""

    scopes = {"POST": Scope.WRITE}

    def post(self, request: Request, tree: str) -> Response:
        self.body(Nothing)
        return Response({"created": services.scaffold(self.access)})
