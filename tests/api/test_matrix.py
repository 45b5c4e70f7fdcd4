"""Every route with every method for everyone: made from the list of URLs, so that no endpoint can be forgotten."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import URLPattern
from rest_framework.test import APIClient

from memsvc.api.memory_stores.ids import memory_id, store_id, version_id
from memsvc.api.urls import urlpatterns
from memsvc.api.views import METHODS, TenantView
from memsvc.database.tenancy import tenant_transaction
from memsvc.tree.models import File
from memsvc.tree.trees import create_tree
from tenants.models import ApiKey, Tenant
from tenants.scopes import Scope
from tests.api.conftest import client_with
from tests.api.support import add_entry, problem, put, raw, refusal, send, streamed
from tests.people import (
    make_expired_key,
    make_key,
    make_key_of_suspended_tenant,
    make_revoked_key,
)

ROUTES = {str(pattern.pattern): pattern for pattern in urlpatterns}
EVERY_METHOD = [method.upper() for method in METHODS]
# Bodies with which a call would succeed for the one whose tree it is.
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("v1/keys", "POST"): {"name": "new", "scopes": ["read"]},
    ("v1/erasures", "POST"): {"tree": "default", "kind": "path", "value": "/secret.md"},
    ("v1/trees", "POST"): {"name": "new"},
    ("v1/trees/<str:tree>", "PATCH"): {"description": "overwritten"},
    ("v1/trees/<str:tree>:clone", "POST"): {"name": "copy"},
    ("v1/trees/<str:tree>/files/<anytext:path>", "PUT"): {"content": "overwritten"},
    ("v1/trees/<str:tree>/files/<anytext:path>", "PATCH"): {"old_string": "c", "new_string": "gone"},
    ("v1/trees/<str:tree>/files:grep", "POST"): {"pattern": "canary"},
    ("v1/trees/<str:tree>/files:glob", "POST"): {"pattern": "**"},
    ("v1/trees/<str:tree>/files:move", "POST"): {"source": "/secret.md", "destination": "/mine.md"},
    ("v1/trees/<str:tree>/files:upload", "POST"): {"files": [{"path": "/secret.md", "content": ""}]},
    ("v1/trees/<str:tree>/files:download", "POST"): {"paths": ["/secret.md"]},
    ("v1/trees/<str:tree>/entries", "POST"): {"category": "facts", "body": "x"},
    ("v1/trees/<str:tree>/entries/<str:entry_id>:supersede", "POST"): {"body": "x"},
    ("v1/trees/<str:tree>/revisions/<number:number>:restore", "POST"): {"message": "back"},
    ("v1/trees/<str:tree>:undo", "POST"): {"revision": 1},
    ("v1/trees/<str:tree>/search", "POST"): {"query": "canary"},
    ("v1/trees/<str:tree>/batch", "POST"): {"operations": [{"op": "delete", "path": "/secret.md"}]},
    ("v1/memory_stores", "POST"): {"name": "new"},
    ("v1/memory_stores/<str:store_id>", "POST"): {"description": "overwritten"},
    ("v1/memory_stores/<str:store_id>/memories", "POST"): {"path": "/new.md", "content": "new"},
    ("v1/memory_stores/<str:store_id>/memories/<str:memory_id>", "POST"): {"content": "overwritten"},
    ("v1/memory_stores/<str:store_id>/memories/<str:memory_id>", "PATCH"): {"content": "overwritten"},
}


@pytest.fixture
def secret(api: APIClient, alice: Tenant) -> Iterator[dict[str, str]]:
    """A tree of Alice's with a file and an entry, which are just as they were when the test has ended."""
    url = "/v1/trees/default"
    put(api, "secret.md", "canary")
    entry = add_entry(api, "canary")
    create_tree(alice, "private")
    yield names_of(alice, entry["id"])
    assert raw(api, "secret.md") == b"canary"
    assert api.get(f"{url}/entries/{entry['id']}").json()["is_active"] is True
    assert api.get(url).json()["revision"] == 2


def names_of(tenant: Tenant, entry_id: str, *, number: int = 1) -> dict[str, str]:
    """What stands in URLs for a tenant's secret.md, as written in a revision, its entry and its agent's key."""
    with tenant_transaction(tenant.pk):
        key = ApiKey.objects.get(tenant=tenant, name="agent")
        file = File.objects.get(tenant=tenant, path="/secret.md")
    return {
        "store_id": store_id(file.tree_id),
        "memory_id": memory_id(file.pk),
        "version_id": version_id(file.pk, number),
        "tree": "default",
        "path": "secret.md",
        "entry_id": entry_id,
        "number": str(number),
        "key_id": str(key.pk),
    }


def call(client: APIClient, route: str, method: str, names: dict[str, str]) -> Any:
    url = "/" + route
    for name, value in names.items():
        for kind in ("str", "anytext", "number", "uuid"):
            url = url.replace(f"<{kind}:{name}>", value)
    if route.endswith("/blame"):
        url += "?path=/secret.md"
    if route.endswith("/imports"):
        return send(client, method, url, b"no zip", content_type="application/zip")
    body = json.dumps(BODIES.get((route, method), {})).encode()
    return send(client, method, url, body, content_type="application/json")


def view_of(route: str) -> type[TenantView]:
    pattern = ROUTES[route]
    assert isinstance(pattern, URLPattern)
    return pattern.callback.view_class  # type: ignore[attr-defined, no-any-return]  # set by as_view()


@pytest.mark.parametrize("route", ROUTES)
def test_no_key_that_is_not_good_opens_anything(alice: Tenant, secret: dict[str, str], route: str) -> None:
    clients = [
        APIClient(),
        client_with("msk_AAAAAAAA_" + "A" * 43),
        client_with(make_revoked_key(alice)),
        client_with(make_expired_key(alice)),
        client_with(make_key_of_suspended_tenant()),
    ]

    refusals = [call(client, route, method, secret) for client in clients for method in EVERY_METHOD]

    assert {refusal(refused) for refused in refusals} == {(401, "unauthenticated")}
    assert len({json.dumps(refused.json() | {"request_id": ""}) for refused in refusals}) == 1


@pytest.mark.parametrize("route", ROUTES)
def test_a_key_may_do_what_its_scope_says_and_no_more(
    alice: Tenant, secret: dict[str, str], route: str
) -> None:
    needed = {method: view_of(route).scopes.get(method) for method in EVERY_METHOD}

    for scope in Scope:
        client = client_with(make_key(alice, scope)[1])
        for method in EVERY_METHOD:
            # With the right scope it is done: see the endpoint's own tests.
            if needed[method] is not scope:
                expected = (403, "missing_scope") if needed[method] else (405, "method_not_allowed")
                assert refusal(call(client, route, method, secret)) == expected, (scope, method)


@pytest.mark.parametrize("route", ROUTES)
def test_a_stranger_learns_and_changes_nothing(bob: Tenant, secret: dict[str, str], route: str) -> None:
    stranger = client_with(make_key(bob, *Scope)[1])
    for method in EVERY_METHOD:
        for tree in ("default", "private"):
            answer = call(stranger, route, method, {**secret, "tree": tree})

            content = streamed(answer) if answer.streaming else answer.content
            assert answer.status_code < 500, method
            assert b"canary" not in content, method
            if "<str:store_id>" in route and method in view_of(route).scopes:
                assert refusal(answer) == (404, "memory_store_not_found"), method
            if tree == "private" and "<str:tree>" in route and method in view_of(route).scopes:
                assert problem(answer) == (404, "tree_not_found"), method
