"""If-Match and If-None-Match (RFC 9110, 13.1)."""

from rest_framework.request import Request

from memsvc.api.problems import InvalidRequest
from memsvc.tree.commands import Precondition


def quoted(etag: str | None) -> str:
    return f'"{etag}"'


def precondition_of(request: Request) -> Precondition | None:
    """What a change asks for; If-Match takes one tag (with or without quotes), If-None-Match only `*`."""
    wanted, unwanted = request.headers.get("If-Match"), request.headers.get("If-None-Match")
    if wanted is None and unwanted is None:
        return None
    if unwanted not in (None, "*"):
        raise InvalidRequest("If-None-Match of a change takes only '*': that nothing may be there yet.")
    return Precondition(
        if_match=None if wanted is None else entity_tag(wanted), if_none_match_any=unwanted is not None
    )


def entity_tag(text: str) -> str:
    """The one tag of an If-Match without its quotes, or `*`."""
    tag = text.strip().removeprefix("W/").strip('"')
    if not tag or not tag.isascii() or not tag.isprintable() or any(sign in tag for sign in '", '):
        raise InvalidRequest("If-Match takes one entity tag, as an answer's ETag header gave it.")
    return tag


def is_known(request: Request, etag: str | None) -> bool:
    """Whether If-None-Match says that the client has this very state."""
    tags = (tag.strip().removeprefix("W/") for tag in request.headers.get("If-None-Match", "").split(","))
    return any(tag in ("*", quoted(etag)) for tag in tags)
