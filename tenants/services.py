"""What changes tenants and keys. Every function owns its transaction."""

import re
from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, connection
from django.utils import timezone

from memsvc.contract.errors import ErrorCode, Refused
from memsvc.database.rows import columns, instance
from memsvc.database.tenancy import tenant_transaction
from memsvc.format import FormatError, canonical_folder, checked_text
from tenants import audit
from tenants.actors import SYSTEM, Actor
from tenants.models import SLUG_PATTERN, ApiKey, Membership, OneTree, Role, Tenant, User
from tenants.scopes import Scope
from tenants.secrets import new_key_text

MAX_TENANT_NAME_BYTES = 200
MAX_KEY_NAME_BYTES = 100
MAX_HISTORY_DAYS = 36_500


class TenantError(Refused):
    """Base of what tenants and keys refuse; `str(error)` is a sentence for whoever asked."""

    code = ErrorCode.INVALID_REQUEST


class InvalidTenant(TenantError):
    """A slug or name that a tenant can't have."""


class TenantExists(TenantError):
    def __init__(self, slug: str) -> None:
        super().__init__(f"There is already a tenant '{slug}'; choose another slug.")


class InvalidKey(TenantError):
    """A name, scope, tree, folder or expiry that a key can't have."""


def create_tenant(*, slug: str, name: str = "", actor: Actor = SYSTEM) -> Tenant:
    """Raises InvalidTenant, or TenantExists when the slug is taken. Its trees come at their first use."""
    if not re.fullmatch(SLUG_PATTERN, slug, re.ASCII):
        raise InvalidTenant(
            f"'{slug}' is no slug: use up to 63 lower-case letters, digits and inner hyphens."
        )
    try:
        name = checked_text(name or slug, field="name", max_bytes=MAX_TENANT_NAME_BYTES)
    except FormatError as error:
        raise InvalidTenant(str(error)) from error
    tenant = Tenant(slug=slug, name=name)
    try:
        with tenant_transaction(tenant.pk):
            tenant.save(force_insert=True)
            audit.record(actor, "tenant.create", tenant)
            return tenant
    except IntegrityError as error:
        raise TenantExists(slug) from error


def all_tenants() -> list[Tenant]:
    """Every tenant by its slug, for those who run the service."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns(Tenant, 't')} FROM memsvc_tenants() AS t")
        return [tenant for row in cursor.fetchall() if (tenant := instance(Tenant, row))]


def all_tenant_ids() -> list[UUID]:
    """The ids of every tenant, for sweeps."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM memsvc_tenants()")
        return [tenant_id for (tenant_id,) in cursor.fetchall()]


def suspend_tenant(*, tenant: Tenant, actor: Actor = SYSTEM) -> None:
    """Shut out all its keys, from the next request on; what it stored stays. A second call changes nothing."""
    with tenant_transaction(tenant.pk):
        if Tenant.objects.filter(pk=tenant.pk, suspended_at=None).update(suspended_at=timezone.now()):
            audit.record(actor, "tenant.suspend", tenant)
        tenant.refresh_from_db(fields=["suspended_at"])


def resume_tenant(*, tenant: Tenant, actor: Actor = SYSTEM) -> None:
    with tenant_transaction(tenant.pk):
        if Tenant.objects.filter(pk=tenant.pk, suspended_at__isnull=False).update(suspended_at=None):
            audit.record(actor, "tenant.resume", tenant)
    tenant.suspended_at = None


def keep_history(*, tenant: Tenant, days: int | None, actor: Actor = SYSTEM) -> None:
    """Keep so many days of its trees' history, or all of it. Raises InvalidTenant.

    What is older stays until `manage.py history_prune` comes by; what that has removed doesn't come back.
    """
    if days is not None and not 1 <= days <= MAX_HISTORY_DAYS:
        raise InvalidTenant(
            f"History is kept for 1 to {MAX_HISTORY_DAYS} days, or all of it; not for {days}."
        )
    with tenant_transaction(tenant.pk):
        Tenant.objects.filter(pk=tenant.pk).update(history_days=days)
        audit.record(actor, "tenant.history", tenant, object_id="all" if days is None else f"{days} days")
    tenant.history_days = days


def set_member(*, tenant: Tenant, user: User, role: Role, actor: Actor = SYSTEM) -> Membership:
    """Give a person this role in a tenant, in place of the one they had."""
    with tenant_transaction(tenant.pk):
        membership, _ = Membership.objects.update_or_create(tenant=tenant, user=user, defaults={"role": role})
        audit.record(actor, f"member.{role}", tenant, object_id=user.pk)
    return membership


def remove_member(*, membership: Membership, actor: Actor = SYSTEM) -> None:
    """Take a person out of a tenant; the account stays. A second call changes nothing."""
    with tenant_transaction(membership.tenant_id):
        if Membership.objects.filter(pk=membership.pk).delete()[0]:
            audit.record(actor, "member.remove", membership.tenant, object_id=membership.user_id)


def create_key(
    *,
    tenant: Tenant,
    name: str,
    scopes: Iterable[Scope],
    tree: OneTree | None = None,
    path_prefix: str = "/",
    expires_at: datetime | None = None,
    created_by: User | None = None,
    actor: Actor = SYSTEM,
) -> tuple[ApiKey, str]:
    """A new key and its text, which can never be read again. Raises InvalidKey.

    No scope means that it may do nothing; no `tree` means every tree of the tenant.
    """
    if expires_at is not None and expires_at <= timezone.now():
        raise InvalidKey("The expiry lies in the past; choose a later one or none.")
    text = new_key_text()
    try:
        name = checked_text(name, field="name", max_bytes=MAX_KEY_NAME_BYTES).strip()
        if not name:
            raise InvalidKey("A key needs a name that says who uses it.")
        key = ApiKey(
            tenant=tenant,
            name=name,
            prefix=text.prefix,
            digest=text.digest,
            scopes=sorted({Scope(scope).value for scope in scopes}),
            tree=tree.name if tree else "",
            tree_id=tree.id if tree else None,
            path_prefix=canonical_folder(path_prefix),
            expires_at=expires_at,
            created_by=created_by,
        )
    except ValueError as error:
        raise InvalidKey(str(error)) from error
    with tenant_transaction(tenant.pk):
        key.save(force_insert=True)
        audit.record(actor, "key.create", tenant, object_id=key.pk)
    return key, text.text


def revoke_key(*, key: ApiKey, actor: Actor = SYSTEM) -> None:
    """Shut a key out from the next request on, for good. A second call keeps the first time."""
    with tenant_transaction(key.tenant_id):
        if ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now()):
            audit.record(actor, "key.revoke", key.tenant, object_id=key.pk)
        key.refresh_from_db(fields=["revoked_at"])
