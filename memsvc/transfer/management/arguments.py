"""What the commands of this app take and print in the same way."""

import sys
from argparse import ArgumentParser

from django.core.management.base import CommandError, OutputWrapper

from memsvc.tree.access import Access
from memsvc.tree.errors import TreeNotFound
from memsvc.tree.models import Tree
from memsvc.tree.trees import DEFAULT_TREE, list_trees, tree_of
from tenants.actors import SYSTEM
from tenants.management.arguments import tenant_named
from tenants.models import Tenant

_STEPS_A_LINE = 100
_BAR_WIDTH = 30


def add_tenant_and_tree(parser: ArgumentParser, *, tree_help: str = "which of its trees") -> None:
    parser.add_argument("tenant", help="the slug of the tenant")
    parser.add_argument("--tree", default=DEFAULT_TREE, help=f"{tree_help} (default: {DEFAULT_TREE})")


def access_to(slug: str, tree: str) -> Access:
    """The whole of a tenant's tree, for the operator; an error that names the trees when there is none such."""
    return Access(tree=_tree_named(tenant_named(slug), tree), actor=SYSTEM)


def _tree_named(tenant: Tenant, name: str) -> Tree:
    try:
        return tree_of(tenant, name)
    except TreeNotFound as error:
        known = ", ".join(tree.name for tree in list_trees(tenant)) or DEFAULT_TREE
        raise CommandError(f"{error} Tenant '{tenant.slug}' has: {known}.") from error


class Progress:
    """Counts what is done on stderr, with a bar where it is known how much there is to do."""

    def __init__(self, stderr: OutputWrapper, *, unit: str = "files", total: int | None = None) -> None:
        self._stderr = stderr
        self._unit = unit
        self._total = total
        self._count = 0

    def __call__(self, path: str) -> None:
        self._count += 1
        if sys.stderr.isatty() or self._count % _STEPS_A_LINE == 0:
            self._stderr.write(f"  {self._line()}", ending="\r" if sys.stderr.isatty() else "\n")

    def _line(self) -> str:
        if not self._total:
            return f"{self._count} {self._unit}"
        done = min(_BAR_WIDTH, _BAR_WIDTH * self._count // self._total)
        return f"[{'#' * done}{'.' * (_BAR_WIDTH - done)}] {self._count} of {self._total} {self._unit}"
