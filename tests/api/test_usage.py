from datetime import date, timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from memsvc.database.tenancy import tenant_transaction
from tenants.last_use import LAST_USES
from tenants.models import ApiKey, KeyUsage, Tenant
from tenants.scopes import Scope
from tests.api.conftest import client_with
from tests.api.support import add_entry, post, problem, put
from tests.people import make_key

USAGE = "/v1/usage"


@pytest.fixture
def admin(alice: Tenant) -> APIClient:
    return client_with(make_key(alice, Scope.ADMIN, name="operator")[1])


def test_requests_are_counted_by_day_and_key(
    admin: APIClient, api: APIClient, stranger: APIClient, alice: Tenant
) -> None:
    for _ in range(3):
        api.get("/v1/me")
    stranger.get("/v1/me")
    LAST_USES.flush()
    api.get("/v1/me")
    api.get("/v1/trees/missing")
    LAST_USES.flush()

    usage = admin.get(USAGE).json()

    (counted,) = usage["items"]
    assert (counted["day"], counted["key"]["name"], counted["requests"]) == (
        timezone.now().date().isoformat(),
        "agent",
        5,
    )
    assert usage["next"] is None


def test_what_is_stored_is_told(admin: APIClient, api: APIClient, stranger: APIClient) -> None:
    put(stranger, "a.md", "not mine")
    put(api, "a.md", "12345")
    post(api, "/v1/trees", name="other")
    assert admin.get(USAGE).json()["stored"] == {"trees": 2, "files": 1, "entries": 0, "bytes": 5}

    add_entry(api)
    api.delete("/v1/trees/default/files/a.md")

    stored = admin.get(USAGE).json()["stored"]
    assert (stored["trees"], stored["entries"]) == (2, 1)


def test_usage_comes_in_pages_newest_first(admin: APIClient, alice: Tenant) -> None:
    first, second = make_key(alice, name="first")[0], make_key(alice, name="second")[0]
    today = date(2026, 3, 10)
    for ago in range(3):
        for key in (first, second):
            KeyUsage.objects.create(tenant=alice, key=key, day=today - timedelta(days=ago), requests=ago)

    seen: list[tuple[str, str]] = []
    cursor: str | None = None
    while cursor is not None or not seen:
        page = admin.get(USAGE, {"limit": 4} | ({"cursor": cursor} if cursor else {})).json()
        seen += [(item["day"], item["key"]["name"]) for item in page["items"]]
        cursor = page["next"]

    assert seen == [(f"2026-03-{day:02}", name) for day in (10, 9, 8) for name in ("second", "first")]
    some = admin.get(USAGE, {"since": "2026-03-09", "until": "2026-03-09"}).json()["items"]
    assert [item["day"] for item in some] == ["2026-03-09"] * 2
    for wrong in ({"cursor": "x"}, {"since": "yesterday"}):
        assert problem(admin.get(USAGE, wrong))[0] == 400


def test_usage_is_for_keys_of_the_whole_tenant(alice: Tenant) -> None:
    for limited in (
        make_key(alice, Scope.ADMIN, tree="team"),
        make_key(alice, Scope.ADMIN, path_prefix="/a"),
    ):
        assert problem(client_with(limited[1]).get(USAGE)) == (403, "forbidden")


def test_keys_that_are_not_used_any_more_are_told(alice: Tenant, bob: Tenant) -> None:
    operator, text = make_key(alice, *Scope, name="operator")
    now = timezone.now()
    long_ago, lately = now - timedelta(days=91), now - timedelta(days=89)
    cases: dict[str, dict[str, Any]] = {
        "never used": {"created_at": long_ago},
        "used long ago": {"created_at": long_ago, "last_used_at": long_ago},
        "used lately": {"created_at": long_ago, "last_used_at": lately},
        "new": {"created_at": lately},
        "revoked": {"created_at": long_ago, "revoked_at": lately},
        "expired": {"created_at": long_ago, "expires_at": lately},
    }
    for owner in (bob, alice):
        for name, fields in cases.items():
            key, _ = make_key(owner, name=name)
            with tenant_transaction(owner.pk):
                ApiKey.objects.filter(pk=key.pk).update(**fields)

    told = client_with(text).get("/v1/usage").json()["unused_keys"]

    assert [key["name"] for key in told] == ["never used", "used long ago"]
    assert operator.prefix not in str(told)
