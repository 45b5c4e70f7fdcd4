from typing import Any

import pytest
from django.conf import settings
from rest_framework.test import APIClient

from memsvc.tree.trees import create_tree
from tenants.models import StoredAnswer, Tenant
from tenants.scopes import Scope
from tenants.secrets import keyed_digest
from tests.api.conftest import client_with
from tests.api.support import FILES, post, problem, put
from tests.people import READ, WRITE, make_key

TREES = "/v1/trees"


def names(client: APIClient) -> list[str]:
    return [item["name"] for item in client.get(TREES).json()["items"]]


def test_me_tells_whose_key_it_is_and_what_it_may_do(alice: Tenant) -> None:
    key, text = make_key(alice, READ, WRITE, name="night shift", tree="team", path_prefix="/agents")

    me = client_with(text).get("/v1/me").json()

    assert me.pop("limits") == {
        "history_days": None,
        "max_body_bytes": settings.MAX_BODY_BYTES,
        "max_import_bytes": settings.MAX_IMPORT_BYTES,
        "max_file_bytes": 32 * 1024 * 1024,
        "max_batch": 500,
        "max_page": 1000,
        "max_items": 1000,
    }
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
    empty = {"files": 0, "entries": 0, "bytes": 0}
    assert api.get(f"{TREES}/user%2042%20%E2%80%93%20%C3%BC").json() == made.json() | empty
    assert problem(post(api, TREES, name="user 42 – ü")) == (409, "tree_exists")


@pytest.mark.parametrize("name", ["", "  ", "a\x00", "x" * 256, 7, None, ["a"]])
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


def test_trees_are_listed_in_pages_each_once(api: APIClient) -> None:
    for number in range(5):
        post(api, TREES, name=f"user {number}")

    seen: list[str] = []
    cursor: str | None = None
    while cursor is not None or not seen:
        page = api.get(TREES, {"limit": 2} | ({"cursor": cursor} if cursor else {})).json()
        seen += [item["name"] for item in page["items"]]
        cursor = page["next"]

    assert seen == [f"user {number}" for number in range(5)]
    assert problem(api.get(TREES, {"cursor": "x"})) == (400, "invalid_text")
    assert problem(api.get(TREES, {"limit": 0})) == (400, "invalid_request")


def test_a_tree_tells_how_much_is_in_it(api: APIClient, alice: Tenant) -> None:
    put(api, "agents/a.md", "12345")
    put(api, "b.md", "678")
    part = client_with(make_key(alice, path_prefix="/agents")[1])

    whole, seen = (client.get(f"{TREES}/default").json() for client in (api, part))

    assert (whole["files"], whole["bytes"], whole["entries"]) == (2, 8, 0)
    assert (seen["files"], seen["bytes"]) == (1, 5)
    assert whole["archived_at"] is None


def test_a_tree_has_a_description(api: APIClient, reader: APIClient, alice: Tenant) -> None:
    post(api, TREES, name="team", description="What the team knows.")
    url = f"{TREES}/team"
    assert api.get(url).json()["description"] == "What the team knows."

    changed = api.patch(url, {"description": ""}, format="json")

    assert (changed.status_code, changed.json()["description"], changed.json()["revision"]) == (200, "", 0)
    assert problem(api.patch(url, {"name": "other"}, format="json")) == (400, "invalid_request")
    assert problem(api.patch(url, {"description": "x" * 5000}, format="json"))[0] == 400
    assert problem(reader.patch(url, {"description": "x"}, format="json")) == (403, "missing_scope")
    part = client_with(make_key(alice, path_prefix="/agents")[1])
    assert problem(part.patch(url, {"description": "x"}, format="json")) == (403, "forbidden")


def test_a_tree_is_cloned_as_of_a_revision(api: APIClient, alice: Tenant) -> None:
    put(api, "a.md", "one")
    put(api, "a.md", "two")

    made = post(api, f"{TREES}/default:clone", name="before", revision=1)
    post(api, f"{TREES}/default:clone", name="now")

    assert (made.status_code, made.json()["name"], made.json()["revision"]) == (201, "before", 1)
    assert api.get(f"{TREES}/before/files/a.md").json()["content"] == "one"
    assert api.get(f"{TREES}/now/files/a.md").json()["content"] == "two"
    assert problem(post(api, f"{TREES}/default:clone", name="now")) == (409, "tree_exists")
    assert problem(post(api, f"{TREES}/default:clone", name="x", revision=9)) == (404, "revision_not_found")
    for limited in (make_key(alice, tree="default"), make_key(alice, path_prefix="/agents")):
        refused = post(client_with(limited[1]), f"{TREES}/default:clone", name="mine")
        assert problem(refused) == (403, "forbidden")


def test_an_archived_tree_is_read_only_for_good(api: APIClient) -> None:
    put(api, "a.md", "text")
    archived = post(api, f"{TREES}/default:archive")

    assert archived.status_code == 200
    assert archived.json()["archived_at"] is not None
    assert problem(put(api, "a.md", "other")) == (409, "tree_archived")
    assert problem(post(api, f"{TREES}/default:scaffold")) == (409, "tree_archived")
    assert api.get(f"{FILES}/a.md").json()["content"] == "text"
    assert post(api, f"{TREES}/default:archive").json() == archived.json()
    assert post(api, f"{TREES}/default:clone", name="goes on").status_code == 201


def test_a_tree_is_deleted_by_who_repeats_its_name(api: APIClient, alice: Tenant) -> None:
    name = "ann@example.org"
    post(api, TREES, name=name)
    url = f"{TREES}/ann%40example.org"
    api.put(f"{url}/files/a.md", {"content": "x"}, format="json", headers={"Idempotency-Key": "a.md"})
    admin = client_with(make_key(alice, Scope.ADMIN)[1])

    assert problem(api.delete(f"{url}?confirm={name}")) == (403, "missing_scope")
    for wrong in ("", "?confirm=", "?confirm=Ann@example.org"):
        assert problem(admin.delete(url + wrong)) == (400, "invalid_request")
    assert StoredAnswer.objects.count() == 1
    key = {"Idempotency-Key": "delete-it"}
    answers = [admin.delete(f"{url}?confirm={name}", headers=key) for _ in range(2)]

    assert [answer.json() for answer in answers] == [{"name": name, "deleted": True}] * 2
    assert [answer.key for answer in StoredAnswer.objects.all()] == [keyed_digest("delete-it")]
    assert problem(api.get(url)) == (404, "tree_not_found")
    assert names(api) == []


def test_a_key_of_a_folder_can_not_delete_the_tree(api: APIClient, alice: Tenant) -> None:
    put(api, "a.md")
    part = client_with(make_key(alice, Scope.ADMIN, path_prefix="/agents")[1])

    assert problem(part.delete(f"{TREES}/default?confirm=default")) == (403, "forbidden")
    assert names(api) == ["default"]


def test_no_list_is_cut_in_silence(api: APIClient) -> None:
    for number in range(3):
        put(api, f"{number}.md", "needle")
    for url in (TREES, FILES, "/v1/trees/default/revisions"):
        everything = api.get(url, {"limit": 10**6}).json()
        assert everything["next"] is None, url
        if len(everything["items"]) > 1:
            assert api.get(url, {"limit": 1}).json()["next"] is not None, url
    found = post(api, f"{FILES}:grep", pattern="needle", max_count=2).json()
    assert (len(found["items"]), found["truncated"]) == (2, True)
