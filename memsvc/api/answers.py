"""What is answered: values of the contract as responses, and rows as values of the contract."""

from dataclasses import fields
from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api.preconditions import is_known, quoted
from memsvc.contract.accounts import DayUsage, KeyInfo, Me, TreeDetail, TreeInfo
from memsvc.contract.wire import to_json
from memsvc.tree.models import Tree
from memsvc.tree.trees import TreeSize
from tenants.authentication import Caller
from tenants.models import ApiKey, KeyUsage


def answer(value: object, kind: Any = None, *, status: int = 200) -> Response:
    """A value with its etag, if it has one; `kind` is its type, where its class alone doesn't say it."""
    etag = getattr(value, "etag", None)
    headers = {"ETag": quoted(etag)} if etag else {}
    return Response(to_json(value, kind), status=status, headers=headers)


def answer_if_changed(
    request: Request, value: object, etag: str | None, *, weak: bool = False
) -> HttpResponse:
    """A value, unless the client says that it has this very state."""
    tag = f"W/{quoted(etag)}" if weak else quoted(etag)
    if is_known(request, etag):
        return HttpResponse(status=304, headers={"ETag": tag})
    return Response(to_json(value), headers={"ETag": tag})


def me(caller: Caller, limits: dict[str, int | None]) -> Me:
    tenant, key = caller.tenant, caller.key
    return Me(
        tenant_id=str(tenant.pk),
        tenant_slug=tenant.slug,
        tenant_name=tenant.name,
        key_id=str(key.pk),
        key_name=key.name,
        key_prefix=key.prefix,
        expires_at=key.expires_at,
        scopes=caller.scopes,
        tree=key.tree or None,
        path_prefix=key.path_prefix,
        limits=limits,
    )


def key_info(found: ApiKey) -> KeyInfo:
    """A key without its secret part, which nobody can read again."""
    return KeyInfo(
        id=str(found.pk),
        name=found.name,
        prefix=found.prefix,
        scopes=frozenset(found.scopes),
        tree=found.tree or None,
        path_prefix=found.path_prefix,
        created_at=found.created_at,
        expires_at=found.expires_at,
        revoked_at=found.revoked_at,
        last_used_at=found.last_used_at,
    )


def day_usage(found: KeyUsage) -> DayUsage:
    key = found.key
    return DayUsage(found.day, str(key.pk), key.name, key.prefix, found.requests)


def tree_info(found: Tree) -> TreeInfo:
    return TreeInfo(**_of_tree(found))


def tree_detail(found: Tree, size: TreeSize) -> TreeDetail:
    return TreeDetail(**_of_tree(found), files=size.files, entries=size.entries, bytes=size.bytes)


def _of_tree(found: Tree) -> dict[str, Any]:
    return {each.name: getattr(found, each.name) for each in fields(TreeInfo)}
