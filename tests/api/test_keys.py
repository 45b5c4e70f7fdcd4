from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from tenants.models import ApiKey, StoredAnswer, Tenant
from tenants.scopes import Scope
from tests.api.conftest import client_with
from tests.api.support import post, problem
from tests.people import make_expired_key, make_key

KEYS = "/v1/keys"


@pytest.fixture
def admin(alice: Tenant) -> APIClient:
    """Alice's operator, with every right."""
    return client_with(make_key(alice, *Scope, name="operator")[1])


def names(client: APIClient) -> list[str]:
    return [key["name"] for key in client.get(KEYS).json()["items"]]


def test_a_key_is_made_and_shown_once(admin: APIClient) -> None:
    post(admin, "/v1/trees", name="team")
    made = post(admin, KEYS, name="night shift", scopes=["write", "read"], tree="team", path_prefix="/a/")
    assert made.status_code == 201
    key = made.json()
    text = key.pop("key")

    assert (key["name"], key["scopes"], key["tree"], key["path_prefix"]) == (
        "night shift",
        ["read", "write"],
        "team",
        "/a",
    )
    assert admin.get(f"{KEYS}/{key['id']}").json() == key
    assert client_with(text).get("/v1/me").json()["key"]["id"] == key["id"]
    assert text.split("_")[2] not in str(admin.get(KEYS).json())


def test_a_repeat_makes_no_second_key_and_shows_none(admin: APIClient) -> None:
    body, headers = {"name": "a", "scopes": ["read"]}, {"Idempotency-Key": "1"}
    first, again = (admin.post(KEYS, body, format="json", headers=headers) for _ in range(2))

    assert again.json() == {**first.json(), "key": None}
    assert names(admin) == ["a", "operator"]
    stored = StoredAnswer.objects.get()
    assert first.json()["key"].encode() not in bytes(stored.body)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "x" * 101},
        {"scopes": ["everything"]},
        {"scopes": "read"},
        {"path_prefix": "/a/../b"},
        {"expires_at": "2020-01-01T00:00:00Z"},
        {"prefix": "AAAAAAAA"},
    ],
)
def test_a_key_that_can_not_be_is_refused(admin: APIClient, wrong: dict[str, Any]) -> None:
    assert problem(post(admin, KEYS, **{"name": "a", "scopes": ["read"], **wrong}))[0] == 400
    assert names(admin) == ["operator"]


def test_keys_are_listed_in_pages_newest_first(admin: APIClient) -> None:
    for number in range(4):
        post(admin, KEYS, name=f"key {number}", scopes=[])

    first = admin.get(KEYS, {"limit": 2}).json()
    second = admin.get(KEYS, {"limit": 2, "cursor": first["next"]}).json()
    third = admin.get(KEYS, {"limit": 2, "cursor": second["next"]}).json()

    listed = [key["name"] for page in (first, second, third) for key in page["items"]]
    assert listed == ["key 3", "key 2", "key 1", "key 0", "operator"]
    assert third["next"] is None
    assert problem(admin.get(KEYS, {"cursor": "x"})) == (400, "invalid_text")


def test_a_revoked_key_opens_nothing_and_stays_listed(admin: APIClient) -> None:
    key = post(admin, KEYS, name="a", scopes=["read"]).json()

    revoked = admin.delete(f"{KEYS}/{key['id']}")
    again = admin.delete(f"{KEYS}/{key['id']}")

    assert (revoked.status_code, again.json()) == (200, revoked.json())
    assert revoked.json()["revoked_at"] is not None
    assert problem(client_with(key["key"]).get("/v1/me")) == (401, "unauthenticated")
    assert names(admin) == ["a", "operator"]


def test_a_rotated_key_works_on_for_the_overlap(admin: APIClient) -> None:
    old = post(admin, KEYS, name="a", scopes=["read"], tree="default", path_prefix="/a").json()

    new = post(admin, f"{KEYS}/{old['id']}:rotate", overlap_hours=2).json()

    assert {name: new[name] for name in ("name", "scopes", "tree", "path_prefix", "expires_at")} == {
        name: old[name] for name in ("name", "scopes", "tree", "path_prefix", "expires_at")
    }
    assert new["id"] != old["id"]
    for text in (old["key"], new["key"]):
        assert client_with(text).get("/v1/me").status_code == 200
    ends = ApiKey.objects.get(pk=old["id"]).expires_at
    assert ends is not None
    assert timedelta(hours=1.9) < ends - timezone.now() <= timedelta(hours=2)


def test_a_rotation_without_overlap_ends_the_old_key_at_once(admin: APIClient, alice: Tenant) -> None:
    old = post(admin, KEYS, name="a", scopes=["read"]).json()

    new = post(admin, f"{KEYS}/{old['id']}:rotate", overlap_hours=0).json()

    assert problem(client_with(old["key"]).get("/v1/me")) == (401, "unauthenticated")
    assert client_with(new["key"]).get("/v1/me").status_code == 200
    assert problem(post(admin, f"{KEYS}/{old['id']}:rotate")) == (409, "key_ended")
    make_expired_key(alice)
    expired = ApiKey.objects.get(name="expired")
    assert problem(post(admin, f"{KEYS}/{expired.pk}:rotate")) == (409, "key_ended")


def test_an_overlap_makes_no_key_live_longer(admin: APIClient) -> None:
    soon = (timezone.now() + timedelta(hours=1)).isoformat()
    old = post(admin, KEYS, name="a", scopes=["read"], expires_at=soon).json()

    new = post(admin, f"{KEYS}/{old['id']}:rotate", overlap_hours=48).json()

    assert admin.get(f"{KEYS}/{old['id']}").json()["expires_at"] == old["expires_at"] == new["expires_at"]
    assert problem(post(admin, f"{KEYS}/{new['id']}:rotate", overlap_hours=-1)) == (400, "invalid_request")


def test_a_key_gives_no_more_than_it_has(alice: Tenant) -> None:
    key, text = make_key(alice, Scope.ADMIN, Scope.READ, name="limited", tree="team", path_prefix="/a")
    limited = client_with(text)
    good = {"name": "b", "scopes": ["read"], "tree": "team", "path_prefix": "/a/b"}

    for beyond in (
        {"scopes": ["read", "write"]},
        {"tree": "default"},
        {"tree": ""},
        {"path_prefix": "/"},
        {"path_prefix": "/ab"},
    ):
        assert problem(post(limited, KEYS, **{**good, **beyond})) == (403, "forbidden"), beyond
    assert post(limited, KEYS, **good).status_code == 201
    ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() + timedelta(hours=1))
    assert problem(post(limited, KEYS, **good)) == (403, "forbidden")
    later = (timezone.now() + timedelta(hours=2)).isoformat()
    assert problem(post(limited, KEYS, **good, expires_at=later)) == (403, "forbidden")
    sooner = (timezone.now() + timedelta(minutes=9)).isoformat()
    assert post(limited, KEYS, **good, expires_at=sooner).status_code == 201


def test_a_limited_key_knows_only_the_keys_within_its_limits(alice: Tenant) -> None:
    limited = client_with(make_key(alice, Scope.ADMIN, name="own", tree="team", path_prefix="/a")[1])
    inside, _ = make_key(alice, Scope.ADMIN, name="inside", tree="team", path_prefix="/a/b")
    mighty, _ = make_key(alice, name="mighty", tree="team", path_prefix="/a/c")
    outside = [
        make_key(alice, name="every tree", path_prefix="/a/b")[0],
        make_key(alice, name="other tree", tree="other", path_prefix="/a")[0],
        make_key(alice, name="beside", tree="team", path_prefix="/ab")[0],
        make_key(alice, name="above", tree="team")[0],
    ]

    assert names(limited) == ["mighty", "inside", "own"]
    for key in outside:
        for answer in (
            limited.get(f"{KEYS}/{key.pk}"),
            limited.delete(f"{KEYS}/{key.pk}"),
            post(limited, f"{KEYS}/{key.pk}:rotate"),
        ):
            assert problem(answer) == (404, "key_not_found")
    assert post(limited, f"{KEYS}/{inside.pk}:rotate").status_code == 201
    # It may end a key that can do more than itself, but not get one into its hands.
    assert problem(post(limited, f"{KEYS}/{mighty.pk}:rotate")) == (403, "forbidden")
    assert limited.delete(f"{KEYS}/{mighty.pk}").status_code == 200


def test_a_refused_rotation_leaves_the_old_key_as_it_was(alice: Tenant) -> None:
    weak = client_with(make_key(alice, Scope.ADMIN)[1])
    strong, text = make_key(alice)

    assert problem(post(weak, f"{KEYS}/{strong.pk}:rotate", overlap_hours=0)) == (403, "forbidden")
    assert client_with(text).get("/v1/me").status_code == 200


def test_a_strangers_key_is_not_there(admin: APIClient, bob: Tenant) -> None:
    foreign, text = make_key(bob, name="bob's")

    assert names(admin) == ["operator"]
    assert problem(admin.get(f"{KEYS}/{foreign.pk}")) == (404, "key_not_found")
    assert problem(admin.delete(f"{KEYS}/{foreign.pk}")) == (404, "key_not_found")
    assert problem(post(admin, f"{KEYS}/{foreign.pk}:rotate")) == (404, "key_not_found")
    assert client_with(text).get("/v1/me").status_code == 200


def test_a_key_opens_its_tree_and_not_the_next_one_of_that_name(admin: APIClient) -> None:
    post(admin, "/v1/trees", name="team")
    made = post(admin, KEYS, name="team's", scopes=[*Scope], tree="team").json()
    team = client_with(made["key"])
    assert team.get("/v1/trees/team").status_code == 200
    old_store = team.get("/v1/memory_stores").json()["data"][0]["id"]

    assert admin.delete("/v1/trees/team?confirm=team").status_code == 200
    post(admin, "/v1/trees", name="team")
    new_store = admin.get("/v1/memory_stores").json()["data"][0]["id"]

    assert problem(team.get("/v1/trees/team")) == (404, "tree_not_found")
    assert problem(team.get("/v1/trees/team/files")) == (404, "tree_not_found")
    assert team.get("/v1/trees").json()["items"] == []
    assert team.get("/v1/memory_stores").json()["data"] == []
    for store in (old_store, new_store):
        assert team.get(f"/v1/memory_stores/{store}/memories").status_code == 404
    assert problem(post(team, KEYS, name="b", scopes=["read"], tree="team")) == (404, "tree_not_found")
    assert team.get("/v1/me").json()["tree"] == "team"
    later = post(admin, KEYS, name="b", scopes=["read"], tree="team").json()
    assert problem(team.get(f"{KEYS}/{later['id']}"))[0] == 404


def test_a_key_for_a_tree_that_is_not_there_is_refused(admin: APIClient) -> None:
    assert problem(post(admin, KEYS, name="a", scopes=["read"], tree="later")) == (404, "tree_not_found")
    assert names(admin) == ["operator"]

    made = post(admin, KEYS, name="a", scopes=["read"], tree="default").json()

    assert client_with(made["key"]).get("/v1/trees/default").status_code == 200
