"""From where a request comes."""

from ipaddress import ip_address

from django.http import HttpRequest


def client_address(request: HttpRequest) -> str | None:
    """None behind a Unix socket, where the server sees no address."""
    try:
        return str(ip_address(request.META.get("REMOTE_ADDR", "")))
    except ValueError:
        return None
