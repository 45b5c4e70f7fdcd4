"""Finding, making, describing, archiving and deleting a tenant's trees."""

import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from uuid import UUID

from django.db import IntegrityError, connection
from django.db.models import Count, Q, Sum
from django.utils import timezone

from memsvc.contract.accounts import LANGUAGES, Stored
from memsvc.contract.files import Page
from memsvc.database.tenancy import tenant_transaction
from memsvc.format import InvalidText, checked_text
from memsvc.tree import statements
from memsvc.tree.access import Access
from memsvc.tree.cursors import after_entry, after_text, cursor_of_entry, cursor_of_text
from memsvc.tree.errors import Forbidden, StoreNotFound, TreeArchived, TreeExists, TreeNotFound
from memsvc.tree.models import DEFAULT_LANGUAGE, Block, File, Tree
from memsvc.tree.scope import locked_transaction
from memsvc.tree.snapshot import snapshot
from memsvc.tree.visibility import to_be_counted
from tenants import audit
from tenants.actors import SYSTEM, Actor
from tenants.idempotency import forget_tree
from tenants.models import OneTree, Tenant

DEFAULT_TREE = "default"
MAX_NAME_BYTES = 255
MAX_DESCRIPTION_BYTES = 4096
MAX_METADATA_PAIRS = 16
NO_METADATA: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TreeSize:
    """What one access sees of a tree now: files, their bytes, and entries, superseded ones too."""

    files: int
    bytes: int
    entries: int


def tree_of(tenant: Tenant, name: str = DEFAULT_TREE, *, only: Collection[UUID] | None = None) -> Tree:
    """A tenant's tree by its exact name; the default one is made at its first use. Raises `TreeNotFound`.

    With `only`, the ids of trees, there are no others, and none is made.
    """
    name = unicodedata.normalize("NFC", name)
    tree = statements.tree_named(tenant.pk, name)
    if tree is not None and (only is None or tree.pk in only):
        # Asked for later, it would have to be read inside a transaction that has entered it.
        tree.tenant = tenant
        return tree
    if name != DEFAULT_TREE or only is not None:
        raise TreeNotFound(name)
    with tenant_transaction(tenant.pk):
        tree, made = Tree.objects.get_or_create(tenant=tenant, name=DEFAULT_TREE)
        if made:
            audit.record(SYSTEM, "tree.create", tenant, tree_id=tree.pk)
        return tree


def tree_for_key(tenant: Tenant, name: str, *, only: Collection[UUID] | None = None) -> OneTree | None:
    """To which tree a new key is limited; None for the empty name. As `tree_of`, so it raises `TreeNotFound`.

    A key for a tree that is not there yet would open whatever somebody gives that name.
    """
    if not name:
        return None
    tree = tree_of(tenant, name, only=only)
    return OneTree(tree.pk, tree.name)


def create_tree(
    tenant: Tenant,
    name: str,
    *,
    description: str = "",
    language: str = DEFAULT_LANGUAGE,
    actor: Actor = SYSTEM,
) -> Tree:
    """A new, empty tree. The name is free text up to 255 bytes, and its own: raises `TreeExists`.

    `language` is one of `LANGUAGES`: whose words are stemmed when entries are searched.
    """
    name = unicodedata.normalize("NFC", checked_text(name, field="name", max_bytes=MAX_NAME_BYTES))
    description, language = _checked_description(description), _checked_language(language)
    return _created(Tree(tenant=tenant, name=name, description=description, language=language), actor)


def create_store(
    tenant: Tenant,
    title: str,
    *,
    description: str = "",
    metadata: Mapping[str, str] = NO_METADATA,
    actor: Actor = SYSTEM,
) -> Tree:
    """A new, empty tree with a title that need not be its own; its name is made from its id."""
    tree = Tree(tenant=tenant, title=title, description=_checked_description(description))
    tree.name = f"memstore_{tree.pk.hex}"
    tree.metadata = _patched({}, metadata)
    return _created(tree, actor)


def _created(tree: Tree, actor: Actor) -> Tree:
    try:
        with tenant_transaction(tree.tenant_id):
            tree.save(force_insert=True)
            audit.record(actor, "tree.create", Tenant(pk=tree.tenant_id), tree_id=tree.pk)
    except IntegrityError as error:
        raise TreeExists(tree.name) from error
    return tree


def list_trees(tenant: Tenant) -> list[Tree]:
    with tenant_transaction(tenant.pk):
        return list(Tree.objects.filter(tenant=tenant).order_by("name"))


def trees_page(
    tenant: Tenant, *, only: Collection[UUID] | None = None, cursor: str | None = None, limit: int = 100
) -> Page[Tree]:
    """A page of a tenant's trees by name, in code-point order; of those with the ids `only`, where given."""
    trees = Tree.objects.filter(tenant=tenant).order_by("name")
    if only is not None:
        trees = trees.filter(pk__in=only)
    if cursor is not None:
        trees = trees.filter(name__gt=after_text(cursor))
    with tenant_transaction(tenant.pk):
        found = list(trees[: limit + 1])
    items = found[:limit]
    return Page(items, cursor_of_text(items[-1].name) if len(found) > limit else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFilter:
    """Which trees are wanted: those with some ids, archived ones too, and from when to when made (inclusive)."""

    only: Collection[UUID] | None = None
    archived: bool = False
    since: datetime | None = None
    until: datetime | None = None


def store_with_id(tenant: Tenant, tree_id: UUID, *, only: Collection[UUID] | None = None) -> Tree:
    """A tree by its id; with `only`, there are no others than those. Raises `StoreNotFound`."""
    with tenant_transaction(tenant.pk):
        tree = Tree.objects.filter(tenant=tenant, pk=tree_id).first()
    if tree is None or (only is not None and tree.pk not in only):
        raise StoreNotFound
    return tree


def stores_page(
    tenant: Tenant, wanted: StoreFilter, *, cursor: str | None = None, limit: int = 20
) -> Page[Tree]:
    """A page of a tenant's trees, newest first."""
    trees = Tree.objects.filter(tenant=tenant).order_by("-created_at", "-pk")
    if wanted.only is not None:
        trees = trees.filter(pk__in=wanted.only)
    if not wanted.archived:
        trees = trees.filter(archived_at=None)
    if wanted.since is not None:
        trees = trees.filter(created_at__gte=wanted.since)
    if wanted.until is not None:
        trees = trees.filter(created_at__lte=wanted.until)
    if cursor is not None:
        at, row_id = after_entry(cursor)
        trees = trees.filter(Q(created_at__lt=at) | Q(created_at=at, pk__lt=row_id))
    with tenant_transaction(tenant.pk):
        found = list(trees[: limit + 1])
    items = found[:limit]
    more = cursor_of_entry(items[-1].created_at, items[-1].pk) if len(found) > limit else None
    return Page(items, more)


def measure(access: Access) -> TreeSize:
    """How much an access sees of its tree."""
    with snapshot(access) as now:
        files = now.files()
        untold = to_be_counted(now.at)
        listed = now.listed(list(files.filter(untold)))
        counted = files.exclude(untold).aggregate(count=Count("pk"), size=Sum("size"))
        entries = now.blocks().entries()
        if access.prefix != "/":
            entries = entries.filter(file__in=files.order_by().values("pk"))
        size = (counted["size"] or 0) + sum(file.size for file in listed)
        return TreeSize(counted["count"] + len(listed), size, entries.count())


def measure_all(tenant: Tenant) -> Stored:
    """How many trees a tenant has, and how much is in all of them together."""
    with tenant_transaction(tenant.pk):
        live = File.objects.filter(tenant=tenant).live_at(None).aggregate(count=Count("pk"), size=Sum("size"))
        entries = Block.objects.filter(tenant=tenant).live_at(None).entries().visible().count()
        trees = Tree.objects.filter(tenant=tenant).count()
    return Stored(trees=trees, files=live["count"], entries=entries, bytes=live["size"] or 0)


def describe_tree(
    access: Access,
    description: str | None = None,
    *,
    title: str | None = None,
    metadata: Mapping[str, str | None] = NO_METADATA,
    language: str | None = None,
) -> Tree:
    """Say otherwise what a tree is, which is for people and no part of its history.

    What is None stays. `metadata` is a patch: text sets a pair, None takes it away, the others stay. By the words of
    `language` its entries are found, also those that are there already.
    """
    if description is not None:
        description = _checked_description(description)
    if language is not None:
        language = _checked_language(language)
    require_whole(access)
    access.require_write()
    with locked_transaction(access.tree) as tree:
        if tree.archived_at is not None:
            raise TreeArchived(tree.name)
        told = (
            tree.title if title is None else title,
            tree.description if description is None else description,
            _patched(tree.metadata, metadata),
        )
        if told != (tree.title, tree.description, tree.metadata):
            tree.title, tree.description, tree.metadata = told
            tree.described_at = timezone.now()
            tree.save(update_fields=["title", "description", "metadata", "described_at"])
        if language is not None and language != tree.language:
            tree.language = language
            tree.save(update_fields=["language"])
            for block in Block.objects.of(tree).entries().iterator(chunk_size=500):
                statements.set_terms(block, language=language)
            statements.count_entries(tree)
        audit.record(access.actor, "tree.describe", tree, tree_id=tree.pk, revision=tree.revision)
    return tree


def _patched(metadata: Mapping[str, str], patch: Mapping[str, str | None]) -> dict[str, str]:
    pairs = {name: value for name, value in {**metadata, **patch}.items() if value is not None}
    if len(pairs) > MAX_METADATA_PAIRS:
        raise InvalidText(
            f"metadata would have {len(pairs)} pairs; it takes {MAX_METADATA_PAIRS}: take some away"
        )
    return pairs


def archive_tree(access: Access) -> Tree:
    """Let nobody change a tree any more, for good. A second call keeps the first time."""
    require_whole(access)
    access.require_write()
    with locked_transaction(access.tree) as tree:
        if tree.archived_at is None:
            tree.archived_at = timezone.now()
            tree.save(update_fields=["archived_at"])
            audit.record(access.actor, "tree.archive", tree, tree_id=tree.pk, revision=tree.revision)
    return tree


def delete_tree(access: Access) -> None:
    """Delete a tree with all its files and their history, and the stored answers that may quote from it.

    Its name is free afterwards. Keys that were limited to it open nothing more, whatever gets the name next.
    """
    require_whole(access)
    with locked_transaction(access.tree) as tree:
        forget_tree(tree.tenant_id, tree.pk)
        with connection.cursor() as cursor:
            # By table, because a cascade would look up each file's blocks one by one.
            for table in ("tree_redaction", "tree_block", "tree_file", "tree_revision"):
                cursor.execute(
                    f"DELETE FROM {table} WHERE tenant_id = %s AND tree_id = %s", [tree.tenant_id, tree.pk]
                )
            cursor.execute(
                "DELETE FROM tree_tree WHERE tenant_id = %s AND id = %s", [tree.tenant_id, tree.pk]
            )
        # Its own chain of events stays, and ends with this revision.
        tenant = Tenant(pk=tree.tenant_id)
        audit.record(access.actor, audit.TREE_DELETED, tenant, tree_id=tree.pk, revision=tree.revision)


def require_whole(access: Access) -> None:
    """Refuse an access that sees only a part of its tree."""
    if access.prefix != "/":
        raise Forbidden("/", access.prefix)


def _checked_language(language: str) -> str:
    if language not in LANGUAGES:
        raise InvalidText(f"language: choose one of {', '.join(LANGUAGES)}")
    return language


def _checked_description(description: str) -> str:
    return checked_text(description, field="description", max_bytes=MAX_DESCRIPTION_BYTES)
