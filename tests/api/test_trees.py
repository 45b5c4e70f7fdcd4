from typing import Any

import pytest
from rest_framework.test import APIClient

from memsvc.tree.trees import create_tree
from tenants.models import Tenant
from tests.api.conftest import client_with
from tests.api.support import FILES, post, problem, put
from tests.people import READ, WRITE, make_key

TREES = "/v1/trees"


def names(client: APIClient) -> list[str]:
    return [item["name"] for item in client.get(TREES).json()["items"]]


def test_me_tells_whose_key_it_is_and_what_it_may_do(alice: Tenant) -> None:
    key, text = make_key(alice, READ, WRITE, name="night shift", tree="team", path_prefix="/agents")

    me = client_with(text).get("/v1/me").json()

    assert me.pop("limits").keys() == {"max_body_bytes", "max_import_bytes", "max_file_bytes", "max_batch"}
    assert me == {
        "tenant": {"id": str(alice.pk), "slug": alice.slug, "name": "alice"},
        "key": {"id": str(key.pk), "name": "night shift", "prefix": key.prefix, "expires_at": None},
        "scopes": ["read", "write"],
        "tree": "team",
        "path_prefix": "/agents",
    }


def test_a_tree_is_made_and_listed(api: APIClient) -> None:
    made = post(api, TREES, name="user 42 – ü")

    assert made.status_code == 201
    assert (made.json()["name"], made.json()["revision"]) == ("user 42 – ü", 0)
    assert names(api) == ["user 42 – ü"]
    assert api.get(f"{TREES}/user%2042%20%E2%80%93%20%C3%BC").json() == made.json()
    assert problem(post(api, TREES, name="user 42 – ü")) == (409, "tree_exists")


@pytest.mark.parametrize("name", ["", "  ", "a/b", "a\x00", "x" * 256, 7, None, ["a"]])
def test_a_tree_needs_a_name(api: APIClient, name: Any) -> None:
    assert problem(post(api, TREES, name=name))[0] == 400
    assert names(api) == []


def test_the_default_tree_is_there_at_first_use(api: APIClient) -> None:
    assert api.get(f"{TREES}/default").json()["revision"] == 0
    assert problem(api.get(f"{TREES}/other")) == (404, "tree_not_found")


def test_trees_are_apart(api: APIClient) -> None:
    post(api, TREES, name="other")
    put(api, "a.md")

    assert api.get(f"{TREES}/other/files").json()["items"] == []
    assert api.get(f"{TREES}/default").json()["revision"] == 1


def test_a_key_of_one_tree_opens_no_other(api: APIClient, alice: Tenant) -> None:
    create_tree(alice, "team")
    put(api, "a.md")
    team = client_with(make_key(alice, tree="team")[1])

    assert names(team) == ["team"]
    assert team.get(f"{TREES}/team/files").status_code == 200
    assert problem(team.get(FILES)) == (404, "tree_not_found")
    assert problem(put(team, "b.md")) == (404, "tree_not_found")
    assert problem(post(team, TREES, name="mine")) == (403, "forbidden")


def test_a_key_of_a_folder_makes_no_tree(alice: Tenant) -> None:
    inside = client_with(make_key(alice, path_prefix="/a")[1])

    assert problem(post(inside, TREES, name="mine")) == (403, "forbidden")


def test_a_stranger_sees_no_tree(api: APIClient, stranger: APIClient, alice: Tenant) -> None:
    create_tree(alice, "secret")

    assert names(stranger) == []
    for url in (f"{TREES}/secret", f"{TREES}/secret/files", f"{TREES}/secret/entries"):
        assert problem(stranger.get(url)) == (404, "tree_not_found")
    assert post(stranger, TREES, name="secret").status_code == 201


def test_the_layout_is_made_once(api: APIClient) -> None:
    first = post(api, f"{TREES}/default:scaffold").json()["created"]
    again = post(api, f"{TREES}/default:scaffold").json()["created"]

    assert "/memory/index.md" in first
    assert again == []
