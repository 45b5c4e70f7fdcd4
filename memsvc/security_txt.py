"""Whom to tell of a hole in this installation: `/.well-known/security.txt`, as RFC 9116 has it."""

from datetime import UTC, datetime

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe


def expiry(text: str) -> datetime | None:
    """An instant with its offset, as the settings name it; None for a text that is none."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at.astimezone(UTC) if at.tzinfo else None


@require_safe
def security_txt(request: HttpRequest) -> HttpResponse:
    """Not found where no contact is set: whoever runs the service says who answers."""
    expires = expiry(settings.SECURITY_EXPIRES)
    if not settings.SECURITY_CONTACT or expires is None:
        raise Http404("No contact is set.")
    contacts = "".join(f"Contact: {contact}\n" for contact in settings.SECURITY_CONTACT)
    return HttpResponse(
        f"{contacts}Expires: {expires:%Y-%m-%dT%H:%M:%SZ}\n", content_type="text/plain; charset=utf-8"
    )
