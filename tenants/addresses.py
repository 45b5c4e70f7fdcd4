"""Where requests come from, past the proxies that stand before this server."""

from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest


def client_address(request: HttpRequest) -> str | None:
    """The address of who asked. None behind a Unix socket, and where what a proxy says is none.

    Each of `MEMSVC_TRUSTED_PROXIES` has added the address that it saw to `X-Forwarded-For`; what stands before these
    was sent by the client, who may write there anything.
    """
    seen = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",") if settings.TRUSTED_PROXIES else []
    seen.append(request.META.get("REMOTE_ADDR", ""))
    try:
        return str(ip_address(seen[-1 - settings.TRUSTED_PROXIES].strip()))
    except (IndexError, ValueError):
        return None
