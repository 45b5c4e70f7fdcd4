"""Keys that manage keys: one with the scope `admin` hands out, replaces and revokes what is no more than itself."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from unicodedata import normalize
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from memsvc.contract.errors import ErrorCode
from memsvc.database.tenancy import tenant_transaction
from tenants import audit
from tenants.actors import Actor
from tenants.models import ApiKey, OneTree
from tenants.scopes import Scope
from tenants.services import TenantError, create_key, revoke_key


class KeyNotFound(TenantError):
    """No such key, or none that the asking key may know of."""

    code = ErrorCode.KEY_NOT_FOUND


class KeyEnded(TenantError):
    """A key that is revoked or expired, and can't be replaced any more."""

    code = ErrorCode.KEY_ENDED


class BeyondOwnKey(TenantError):
    """A key was to get more than the one that makes it has."""

    code = ErrorCode.FORBIDDEN


def keys_seen_by(own: ApiKey, *, before: UUID | None = None, limit: int) -> list[ApiKey]:
    """Up to `limit` keys of the tenant that open nothing outside of what `own` opens, newest first."""
    keys = _seen_by(own)
    if before is not None:
        keys = keys.filter(pk__lt=before)
    with tenant_transaction(own.tenant_id):
        return list(keys[:limit])


def _seen_by(own: ApiKey) -> QuerySet[ApiKey]:
    keys = ApiKey.objects.filter(tenant_id=own.tenant_id).order_by("-pk")
    if own.only_trees is not None:
        keys = keys.filter(tree_id__in=own.only_trees)
    if own.path_prefix != "/":
        keys = keys.filter(Q(path_prefix=own.path_prefix) | Q(path_prefix__startswith=own.path_prefix + "/"))
    return keys


def key_seen_by(own: ApiKey, key_id: UUID) -> ApiKey:
    """Raises `KeyNotFound`."""
    with tenant_transaction(own.tenant_id):
        key = _seen_by(own).filter(pk=key_id).first()
    if key is None:
        raise KeyNotFound
    return key


def issue_key(
    *,
    own: ApiKey,
    actor: Actor,
    name: str,
    scopes: Iterable[Scope],
    tree: OneTree | None = None,
    path_prefix: str = "/",
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """A new key and its text, as `create_key` makes it. Raises `BeyondOwnKey` and `InvalidKey`."""
    with tenant_transaction(own.tenant_id):
        key, text = create_key(
            tenant=own.tenant,
            name=name,
            scopes=scopes,
            tree=tree,
            path_prefix=path_prefix,
            expires_at=expires_at,
            actor=actor,
        )
        _require_within(own, key)
    return key, text


def rotate_key(*, own: ApiKey, actor: Actor, key_id: UUID, overlap: timedelta) -> tuple[ApiKey, str]:
    """A new key in the place of another, which works on for the overlap. Raises `KeyNotFound` and `KeyEnded`."""
    with tenant_transaction(own.tenant_id):
        old = key_seen_by(own, key_id)
        # Of two rotations at once, the second finds what the first left.
        old = ApiKey.objects.select_for_update(of=("self",)).select_related("tenant").get(pk=old.pk)
        if not old.is_valid:
            raise KeyEnded
        key, text = issue_key(
            own=own,
            actor=actor,
            name=old.name,
            scopes=[Scope(scope) for scope in old.scopes],
            tree=old.one_tree,
            path_prefix=old.path_prefix,
            expires_at=old.expires_at,
        )
        end = timezone.now() + overlap
        if not overlap:
            revoke_key(key=old, actor=actor)
        elif old.expires_at is None or end < old.expires_at:
            old.expires_at = end
            old.save(update_fields=["expires_at"])
            audit.record(actor, "key.end", own.tenant, object_id=old.pk)
    return key, text


def require_tree(own: ApiKey, name: str) -> None:
    """Refuse another tree than the one that `own` is limited to, before anybody looks whether there is one."""
    if own.tree and normalize("NFC", name) != own.tree:
        raise _other_tree(own)


def _other_tree(own: ApiKey) -> BeyondOwnKey:
    return BeyondOwnKey(f"This key can give access to the tree '{own.tree}' only.")


def _require_within(own: ApiKey, key: ApiKey) -> None:
    beyond = sorted(set(key.scopes) - set(own.scopes))
    if beyond:
        raise BeyondOwnKey(f"This key can't give what it doesn't have: {', '.join(beyond)}.")
    if own.only_trees is not None and key.tree_id not in own.only_trees:
        raise _other_tree(own)
    if own.path_prefix != "/" and not f"{key.path_prefix}/".startswith(f"{own.path_prefix}/"):
        raise BeyondOwnKey(f"This key can give access to '{own.path_prefix}' only.")
    if own.expires_at is not None and (key.expires_at is None or key.expires_at > own.expires_at):
        raise BeyondOwnKey("This key expires and can't give access beyond its own end.")
