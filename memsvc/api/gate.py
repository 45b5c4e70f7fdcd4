"""The gate for URLs: what can't be a name is refused before any view or query sees it."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, unquote, unquote_to_bytes

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase

from memsvc.api.problems import API_ROOT, is_for_people, not_found, problem
from memsvc.contract.errors import ErrorCode

_TREES = f"{API_ROOT}trees/"
_SLASH = re.compile("%2f", re.IGNORECASE)
_COLON = re.compile("%3a", re.IGNORECASE)


class UrlGateMiddleware:
    """Refuses NUL, and percent-escapes that are no UTF-8, in the path and the query of every URL.

    There is no such page in the admin; elsewhere the refusal is a problem.
    Django would read such escapes as another name than the one that was sent, and a NUL would reach the database,
    which can't look for it. In the API a `%2F` is refused as well where it would split the id of an entry in two. In
    the name of a tree it is marked, and so is a `%3A`, which would begin an action: see `marked` and `unmarked`.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if problem_found := problem_with_url(request.META):
            if is_for_people(request):
                return not_found(request, Http404(problem_found))
            return problem(ErrorCode.INVALID_REQUEST, problem_found)
        tree, rest = _tree_in(_raw_path(request.META))
        if tree != (sent := marked(tree)):
            request.path_info = f"{_TREES}{unquote(sent)}{unquote(rest)}"
        return self.get_response(request)


def problem_with_url(meta: Mapping[str, Any]) -> str:
    """What is wrong with the URL of a WSGI request, or the empty text."""
    path, query = _raw_path(meta), meta.get("QUERY_STRING", "")
    for part, name in ((path, "path"), (query, "query")):
        data = unquote_to_bytes(part.encode("latin-1", "replace"))
        if b"\0" in data:
            return f"The {name} of the URL holds a NUL."
        if not _is_utf8(data):
            return f"The {name} of the URL holds bytes that are no UTF-8."
    if _hides_a_slash(path):
        return "A name in the URL holds a '/' (%2F): such an entry can't be reached here."
    return ""


def marked(tree: str) -> str:
    """A percent-encoded name with a mark for each `/` and `:` that is part of it. No URL from outside holds a NUL."""
    return _SLASH.sub("\0s", _COLON.sub("\0c", tree))


def unmarked(tree: str) -> str:
    return tree.replace("\0s", "/").replace("\0c", ":")


def _raw_path(meta: Mapping[str, Any]) -> str:
    # Django has decoded PATH_INFO by now, and left escapes that are no UTF-8 in it as if they had been meant.
    # The servers tell the URL as it was sent under one of two names.
    url = meta.get("RAW_URI") or meta.get("REQUEST_URI") or quote(meta.get("PATH_INFO", ""), safe="/:")
    return str(url).partition("?")[0]


def _tree_in(path: str) -> tuple[str, str]:
    """The name of the tree in a path, and what follows it, both as they were sent; empty for another path."""
    if not path.startswith(_TREES):
        return "", ""
    tree, slash, rest = path.removeprefix(_TREES).partition("/")
    return tree, slash + rest


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _hides_a_slash(path: str) -> bool:
    """Whether a `%2F` stands behind the tree and not in the path of a file, where it can only be a separator."""
    _, rest = _tree_in(path)
    return not rest.startswith("/files/") and "%2f" in rest.lower()
