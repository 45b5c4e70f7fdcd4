from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api.answers import answer, tree_detail, tree_info
from memsvc.api.problems import InvalidRequest
from memsvc.api.serializers import CloneInput, DeleteTreeQuery, Nothing, PageQuery, TreeInput, TreePatch
from memsvc.api.views import TenantView, TreeView
from memsvc.contract.accounts import Scaffolded, TreeDeleted, TreeInfo
from memsvc.contract.files import Page
from memsvc.tree import services, trees
from memsvc.tree.cloning import clone_tree
from memsvc.tree.errors import Forbidden
from tenants.authentication import Caller
from tenants.scopes import Scope


class TreesView(TenantView):
    """The tenant's trees that the key opens, by name."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    queries = {"GET": PageQuery}

    def get(self, request: Request) -> Response:
        page = trees.trees_page(
            self.caller.tenant,
            only=self.caller.key.only_trees,
            cursor=self.params["cursor"],
            limit=self.params["limit"],
        )
        return answer(Page([*map(tree_info, page.items)], page.next), Page[TreeInfo])

    def post(self, request: Request) -> Response:
        data = self.body(TreeInput)
        require_every_tree(self.caller, data["name"])
        made = trees.create_tree(
            self.caller.tenant,
            data["name"],
            description=data["description"],
            language=data["language"],
            actor=self.caller.actor,
        )
        return answer(tree_info(made), status=201)


class TreeDetailView(TreeView):
    """One tree: what it is, and how much the key sees of it."""

    scopes = {"GET": Scope.READ, "PATCH": Scope.WRITE, "DELETE": Scope.ADMIN}
    queries = {"DELETE": DeleteTreeQuery}

    def get(self, request: Request, tree: str) -> Response:
        access = self.access
        return answer(tree_detail(access.tree, trees.measure(access)))

    def patch(self, request: Request, tree: str) -> Response:
        data = self.body(TreePatch)
        described = trees.describe_tree(self.access, data["description"], language=data["language"])
        return answer(tree_info(described))

    def delete(self, request: Request, tree: str) -> Response:
        """Delete a tree with its history, for good: `confirm` must repeat its name."""
        access = self.access
        if self.params["confirm"] != access.tree.name:
            raise InvalidRequest("confirm must be the name of the tree, exactly.")
        trees.delete_tree(access)
        return answer(TreeDeleted(access.tree.name, deleted=True))

    def tree_in_answer(self) -> UUID | None:
        # The answer to a DELETE must outlive the tree, and none of them holds content.
        return None


class CloneView(TreeView):
    """A new tree that begins with the files of this one, as of a revision."""

    scopes = {"POST": Scope.WRITE}

    def post(self, request: Request, tree: str) -> Response:
        data = self.body(CloneInput)
        access = self.access
        require_every_tree(self.caller, data["name"])
        return answer(tree_info(clone_tree(access, data["name"], revision=data["revision"])), status=201)


class ArchiveView(TreeView):
    """Make a tree read-only, for good."""

    scopes = {"POST": Scope.WRITE}

    def post(self, request: Request, tree: str) -> Response:
        self.body(Nothing)
        return answer(tree_info(trees.archive_tree(self.access)))


class ScaffoldView(TreeView):
    """Make what is missing of the memory layout."""

    scopes = {"POST": Scope.WRITE}

    def post(self, request: Request, tree: str) -> Response:
        self.body(Nothing)
        return answer(Scaffolded(services.scaffold(self.access)))


def require_every_tree(caller: Caller, name: str) -> None:
    """Refuse a key that is limited to one tree or folder: it can't open what it makes."""
    key = caller.key
    if key.tree or key.path_prefix != "/":
        raise Forbidden(name, key.tree or key.path_prefix)
