"""The gate for URLs: what can't be a name is refused before any view or query sees it."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from memsvc.api.problems import API_ROOT, problem

_TREES = f"{API_ROOT}trees/"


class UrlGateMiddleware:
    """Refuses NUL, and percent-escapes that are no UTF-8, in the path and the query of every URL.

    Django would read such escapes as another name than the one that was sent, and a NUL would reach the database,
    which can't look for it. In the API a `%2F` is refused as well wherever it would split a name in two.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if problem_found := problem_with_url(request.META):
            return problem(400, "invalid_request", problem_found)
        return self.get_response(request)


def problem_with_url(meta: Mapping[str, Any]) -> str:
    """What is wrong with the URL of a WSGI request, or the empty text."""
    # Django has decoded PATH_INFO by now, and left escapes that are no UTF-8 in it as if they had been meant.
    # The servers tell the URL as it was sent under one of two names.
    url = meta.get("RAW_URI") or meta.get("REQUEST_URI") or quote(meta.get("PATH_INFO", ""))
    path, query = url.partition("?")[0], meta.get("QUERY_STRING", "")
    for part, name in ((path, "path"), (query, "query")):
        data = unquote_to_bytes(part.encode("latin-1", "replace"))
        if b"\0" in data:
            return f"The {name} of the URL holds a NUL."
        if not _is_utf8(data):
            return f"The {name} of the URL holds bytes that are no UTF-8."
    if _hides_a_slash(path):
        return "A name in the URL holds a '/' (%2F): such a tree or entry can't be reached here."
    return ""


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _hides_a_slash(path: str) -> bool:
    """Whether a `%2F` stands before the path of a file, where it can only be a separator anyway."""
    if not path.startswith(_TREES):
        return False
    tree, _, rest = path.removeprefix(_TREES).partition("/")
    resource = rest.partition("/")[0]
    names = tree + resource if resource == "files" else tree + rest
    return "%2f" in names.lower()
