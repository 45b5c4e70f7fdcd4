"""What the commands of this app take and print in the same way."""

from argparse import ArgumentParser

from django.core.management.base import CommandError

from memsvc.tree.access import Access
from memsvc.tree.errors import TreeNotFound
from memsvc.tree.trees import DEFAULT_TREE, list_trees, tree_of
from tenants.management.arguments import operator, tenant_named


def add_tenant_and_tree(parser: ArgumentParser, *, tree_help: str = "which of its trees") -> None:
    parser.add_argument("tenant", help="the slug of the tenant")
    parser.add_argument("--tree", default=DEFAULT_TREE, help=f"{tree_help} (default: {DEFAULT_TREE})")


def access_to(slug: str, tree: str, reason: str = "") -> Access:
    """The whole of a tenant's tree, for the operator; an error that names the trees when there is none such."""
    tenant = tenant_named(slug)
    try:
        return Access(tree=tree_of(tenant, tree), actor=operator(reason))
    except TreeNotFound as error:
        known = ", ".join(each.name for each in list_trees(tenant)) or DEFAULT_TREE
        raise CommandError(f"{error} Tenant '{tenant.slug}' has: {known}.") from error
