"""Finding and making a tenant's trees."""

import unicodedata

from django.db import IntegrityError, transaction

from memsvc.format import checked_text
from memsvc.tree import statements
from memsvc.tree.errors import TreeExists, TreeNotFound
from memsvc.tree.models import Tree
from tenants.models import Tenant

DEFAULT_TREE = "default"
MAX_NAME_BYTES = 255


def tree_of(tenant: Tenant, name: str = DEFAULT_TREE) -> Tree:
    """A tenant's tree by its exact name; the default one is made at its first use. Raises `TreeNotFound`."""
    tree = statements.tree_named(tenant.pk, unicodedata.normalize("NFC", name))
    if tree is not None:
        return tree
    if name != DEFAULT_TREE:
        raise TreeNotFound(name)
    return Tree.objects.get_or_create(tenant=tenant, name=DEFAULT_TREE)[0]


def create_tree(tenant: Tenant, name: str) -> Tree:
    """A new, empty tree. The name is free text up to 255 bytes, and its own: raises `TreeExists`."""
    name = unicodedata.normalize("NFC", checked_text(name, field="name", max_bytes=MAX_NAME_BYTES))
    try:
        with transaction.atomic():
            return Tree.objects.create(tenant=tenant, name=name)
    except IntegrityError as error:
        raise TreeExists(name) from error


def list_trees(tenant: Tenant) -> list[Tree]:
    return list(Tree.objects.filter(tenant=tenant).order_by("name"))
