"""From the Authorization header to a typed caller; no view ever sees a key."""

from dataclasses import dataclass, replace

from django.contrib.auth.models import AnonymousUser
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from memsvc.contract.errors import ErrorCode
from memsvc.database.rows import columns, instance, names, one
from tenants.actors import Actor
from tenants.addresses import client_address
from tenants.audit import REFUSALS, route_of
from tenants.last_use import LAST_USES
from tenants.models import ApiKey, Tenant
from tenants.scopes import Scope
from tenants.secrets import parse_key_text

MAX_HEADER_LENGTH = 512
# One text for every reason, so that a stranger learns nothing from trying.
REFUSAL = "A valid API key is needed: send it as 'Authorization: Bearer msk_…'."


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose request it is, and what it may do: `request.auth` of every authenticated request."""

    tenant: Tenant
    key: ApiKey
    scopes: frozenset[Scope]
    actor: Actor


class KeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer msk_…`; every way in which a key can be wrong gets the same 401."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, Caller]:
        key, address = self.key_in(request), client_address(request)
        if key is None:
            raise AuthenticationFailed(REFUSAL)
        # For whoever has the request of the server only, such as the access log.
        request._request.memsvc_key = key  # type: ignore[attr-defined]
        caller = caller_of(key, address)
        if not key.is_valid:
            REFUSALS.note_refusal(key, caller.actor, route_of(request), ErrorCode.UNAUTHENTICATED)
            raise AuthenticationFailed(REFUSAL)
        LAST_USES.note_use(key, address)
        return AnonymousUser(), caller

    def key_in(self, request: Request) -> ApiKey | None:
        """The key that was sent, whether it still opens anything or not."""
        return key_in_header(request.META.get("HTTP_AUTHORIZATION", ""))

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def key_in_header(header: str) -> ApiKey | None:
    """The key in an Authorization header, valid or not, with its tenant; one query at most."""
    if len(header) > MAX_HEADER_LENGTH:
        return None
    scheme, _, credentials = header.partition(" ")
    return key_with_text(credentials.strip(" ")) if scheme.lower() == "bearer" else None


def key_with_text(credentials: str) -> ApiKey | None:
    """The key with a text, valid or not, with its tenant; one query at most."""
    text = parse_key_text(credentials) if len(credentials) <= MAX_HEADER_LENGTH else None
    key = key_with_prefix(text.prefix) if text else None
    return key if text and key and text.matches(key.digest) else None


def key_with_prefix(prefix: str) -> ApiKey | None:
    """The key that has a public part, of whatever tenant, with that tenant."""
    row = one(_KEY_WITH_PREFIX, [prefix])
    key = instance(ApiKey, row[_TENANT:]) if row else None
    tenant = instance(Tenant, row[:_TENANT]) if row else None
    if key and tenant:
        key.tenant = tenant
    return key


_TENANT = len(names(Tenant))
_KEY_WITH_PREFIX = f"""
SELECT {columns(Tenant, "(found.tenant)")}, {columns(ApiKey, "(found.key)")} FROM memsvc_key(%s) AS found
"""


def caller_of(key: ApiKey, address: str | None) -> Caller:
    known = {scope.value for scope in Scope}
    scopes = frozenset(Scope(scope) for scope in key.scopes if scope in known)
    return Caller(tenant=key.tenant, key=key, scopes=scopes, actor=replace(key.actor, address=address or ""))
