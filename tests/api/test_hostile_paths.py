"""Names that deceive are refused at both doors to files, and nothing is made by them."""

from urllib.parse import quote

import pytest
from rest_framework.test import APIClient

from tests.api.stores import make_memory, store_named, update
from tests.api.support import FILES, post, problem, put

HOSTILE = [
    *["/memory/\uff0e\uff0e/a.md", "/memory/\u2024\u2024/a.md", "/memory/\u2025/a.md", "/memory/a\uff0fb.md"],
    *[
        "/memory/invoice\u202egpj.md",
        "/memory/me\u200bmory.md",
        "/memory/a\ufeff.md",
        "/memory/a\U000e0061.md",
    ],
    *["/memory/\u3164.md", "/memory/a\u0378.md", "/memory/\x1b[31m.md", "/memory/a\u2028b.md"],
    *["/memory/../a.md", "/memory/./a.md", "/memory//a.md"],
    "/memory/" + "d/" * 300 + "x.md",
    "/memory/" + "d/" * 64 + "x.md",
]


@pytest.mark.parametrize("path", HOSTILE, ids=ascii)
def test_a_name_that_deceives_is_refused_at_both_doors(api: APIClient, path: str) -> None:
    put(api, "there.md", "x")
    store = store_named(api)
    memory = make_memory(api, store, "/memory/here.md")

    # A URL can't spell dot segments, which clients take away themselves.
    over_rest = [
        post(api, f"{FILES}:move", source="/there.md", destination=path),
        *([put(api, quote(path[1:]), "x")] if "/." not in path and "//" not in path else []),
    ]
    over_stores = [
        post(api, f"{store}/memories", path=path, content="x"),
        update(api, store, memory["id"], path=path),
    ]

    if path not in ("/memory/./a.md", "/memory//a.md"):
        assert {problem(answer) for answer in over_rest} == {(400, "invalid_path")}
    assert {(answer.status_code, answer.json()["error"]["code"]) for answer in over_stores} == {
        (400, "invalid_path")
    }
    standing = {each["path"] for each in api.get(FILES).json()["items"]}
    assert {"/memory/here.md"} < standing
    assert path not in standing
