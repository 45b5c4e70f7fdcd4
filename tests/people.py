"""Tenants and keys for tests: plain functions, each makes one thing."""

from contextlib import suppress
from datetime import timedelta
from secrets import token_hex

from django.utils import timezone

from memsvc.tree.errors import TreeExists
from memsvc.tree.trees import create_tree, tree_for_key
from tenants.authentication import key_with_text
from tenants.models import ApiKey, Tenant
from tenants.scopes import Scope
from tenants.services import create_key, create_tenant, revoke_key, suspend_tenant

READ, WRITE, EXPORT = Scope.READ, Scope.WRITE, Scope.EXPORT


def make_tenant(name: str = "tenant") -> Tenant:
    return create_tenant(slug=f"{name}-{token_hex(4)}", name=name)


def make_key(
    tenant: Tenant, *scopes: Scope, name: str = "agent", tree: str = "", path_prefix: str = "/"
) -> tuple[ApiKey, str]:
    """A key that may read, write and export unless scopes are named, and its text; its tree is made if need be."""
    if tree:
        with suppress(TreeExists):
            create_tree(tenant, tree)
    return create_key(
        tenant=tenant,
        name=name,
        scopes=scopes or (READ, WRITE, EXPORT),
        tree=tree_for_key(tenant, tree),
        path_prefix=path_prefix,
    )


def make_revoked_key(tenant: Tenant) -> str:
    key, text = make_key(tenant, name="revoked")
    revoke_key(key=key)
    return text


def make_expired_key(tenant: Tenant) -> str:
    key, text = make_key(tenant, name="expired")
    ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    return text


def make_key_of_suspended_tenant() -> str:
    tenant = make_tenant("suspended")
    _, text = make_key(tenant)
    suspend_tenant(tenant=tenant)
    return text


def opening(key_text: str) -> ApiKey | None:
    """The key with a text, if it opens anything now."""
    key = key_with_text(key_text)
    return key if key and key.is_valid else None
