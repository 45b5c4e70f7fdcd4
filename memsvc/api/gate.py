"""The gate for URLs: what can't be a name is refused before any view or query sees it."""

from collections.abc import Callable
from urllib.parse import unquote_to_bytes

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from memsvc.api.problems import API_ROOT, problem

_TREES = f"{API_ROOT}trees/"


class UrlGateMiddleware:
    """Refuses NUL, and percent-escapes that are no UTF-8, in the path and the query of every URL.

    Django would put U+FFFD in their place, which is another name than the one that was sent; and a NUL reaches the
    database, which can't look for it. In the API a `%2F` is refused as well wherever it would split a name in two.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if problem_found := problem_with_url(request.META):
            return problem(400, "invalid_request", problem_found)
        return self.get_response(request)


def problem_with_url(meta: dict[str, str]) -> str:
    """What is wrong with the URL of a WSGI request, or the empty text."""
    # WSGI hands over bytes as Latin-1: the path already unquoted, the query as it was sent.
    path = meta.get("PATH_INFO", "").encode("latin-1", "replace")
    query = unquote_to_bytes(meta.get("QUERY_STRING", "").encode("latin-1", "replace"))
    for part, name in ((path, "path"), (query, "query")):
        if b"\0" in part:
            return f"The {name} of the URL holds a NUL."
        if not _is_utf8(part):
            return f"The {name} of the URL holds bytes that are no UTF-8."
    if _hides_a_slash(meta.get("RAW_URI", "")):
        return "A name in the URL holds a '/' (%2F), which no tree and no entry has."
    return ""


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _hides_a_slash(raw_uri: str) -> bool:
    """Whether a `%2F` stands before the path of a file, where it can only be a separator anyway.

    The server tells the URL as it was sent under this name; where none does, the slash is one like others.
    """
    path = raw_uri.partition("?")[0]
    if not path.startswith(_TREES):
        return False
    tree, _, rest = path.removeprefix(_TREES).partition("/")
    resource = rest.partition("/")[0]
    names = tree + resource if resource == "files" else tree + rest
    return "%2f" in names.lower()
