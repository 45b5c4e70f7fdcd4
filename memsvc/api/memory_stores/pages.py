"""Cursors of this door: those of the tree, tied to the list and the filters that they belong to."""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from memsvc.api.memory_stores.answers import Json
from memsvc.format import InvalidText

_PREFIX = "page_"
# How a page looks, and how long it is, may change from one to the next.
_NOT_FILTERS = ("page", "limit", "view", "beta")


def listing(found: Iterable[Json], following: str | None, filters: str) -> Json:
    return {
        "data": list(found),
        "next_page": None if following is None else _PREFIX + _encoded(filters, following),
    }


def filters_of(path: str, params: Mapping[str, Any]) -> str:
    """A short name for what is listed: which list, and with which filters."""
    asked = {name: str(value) for name, value in params.items() if name not in _NOT_FILTERS}
    return sha256(json.dumps([path, asked], sort_keys=True).encode()).hexdigest()[:16]


def place_in(page: str | None, filters: str) -> str | None:
    """The cursor in a page of the same list. Raises `InvalidText` for any other."""
    if page is None:
        return None
    try:
        data = base64.urlsafe_b64decode(page.removeprefix(_PREFIX).encode("ascii"))
        known, _, cursor = data.decode("ascii").partition(" ")
    except (ValueError, binascii.Error):
        known, cursor = "", ""
    if not page.startswith(_PREFIX) or known != filters:
        raise InvalidText(
            "page: this is not the next_page of this list with these filters; start again without it"
        )
    return cursor


def _encoded(filters: str, cursor: str) -> str:
    return base64.urlsafe_b64encode(f"{filters} {cursor}".encode()).decode()
