from collections.abc import Callable

import pytest
from django.contrib.auth.models import AnonymousUser
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from memsvc.database.tenancy import tenant_transaction
from tenants.authentication import REFUSAL, KeyAuthentication, key_in_header
from tenants.models import ApiKey, Tenant
from tenants.scopes import Scope
from tenants.secrets import parse_key_text
from tenants.services import resume_tenant, revoke_key, suspend_tenant
from tests.people import (
    READ,
    make_expired_key,
    make_key,
    make_key_of_suspended_tenant,
    make_revoked_key,
)

AssertNumQueries = Callable[..., object]


def authenticate(header: str | None) -> tuple[object, object]:
    extra = {} if header is None else {"HTTP_AUTHORIZATION": header}
    return KeyAuthentication().authenticate(Request(APIRequestFactory().get("/", **extra)))  # type: ignore[arg-type]


def test_a_key_tells_tenant_scopes_and_actor(alice: Tenant, bob: Tenant) -> None:
    key, text = make_key(alice, READ)
    make_key(bob)

    user, caller = authenticate(f"Bearer {text}")

    assert isinstance(user, AnonymousUser)
    assert (caller.tenant, caller.key, caller.scopes) == (alice, key, {Scope.READ})  # type: ignore[attr-defined]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_written_as_one_likes(alice: Tenant, scheme: str) -> None:
    _, text = make_key(alice)

    assert authenticate(f"{scheme} {text}")


def test_looking_a_key_up_costs_one_query(alice: Tenant, django_assert_num_queries: AssertNumQueries) -> None:
    _, text = make_key(alice)

    with django_assert_num_queries(1):  # type: ignore[attr-defined]  # 1. key and tenant
        authenticate(f"Bearer {text}")


def wrong_headers(text: str) -> list[str | None]:
    prefix, _, secret = text.rpartition("_")
    return [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Basic {text}",
        text,
        f"Bearer {text[:-1]}",
        f"Bearer {text}x",
        f"Bearer {text} {text}",
        f"Bearer {text},Bearer {text}",
        f"Bearer {prefix}_{secret.swapcase()}",
        f"Bearer msk_00000000_{secret}",
        f"Bearer {text}\n",
        f"Bearer {text}\x00",
        f"Bearer \x00{text}",
        f"Bearer {text[:-1]}é",
        f"Bearer {text[:-1]}\ud800",
        f"Bearer {text[:-1]}１",
        "Bearer " + "a" * 100_000,
        f"Bearer {text}" + " " * 1000,
    ]


def test_every_way_to_be_wrong_gets_the_same_refusal(alice: Tenant) -> None:
    _, text = make_key(alice)
    others = [make_revoked_key(alice), make_expired_key(alice), make_key_of_suspended_tenant()]

    for header in [*wrong_headers(text), *(f"Bearer {other}" for other in others)]:
        with pytest.raises(AuthenticationFailed) as refused:
            authenticate(header)
        assert (refused.value.status_code, str(refused.value.detail)) == (401, REFUSAL)


def test_a_header_that_is_no_key_costs_no_query(
    db: None, django_assert_num_queries: AssertNumQueries
) -> None:
    with django_assert_num_queries(0), pytest.raises(AuthenticationFailed):  # type: ignore[attr-defined]
        authenticate("Bearer nonsense")


def test_a_slip_of_the_pen_costs_no_query(alice: Tenant, django_assert_num_queries: AssertNumQueries) -> None:
    _, text = make_key(alice)
    secret = text.index("_", 4) + 1
    other = "A" if text[secret] != "A" else "B"
    slips = [
        f"{text[:secret]}{other}{text[secret + 1 :]}",
        f"{text[:4]}{text[4:12][::-1]}{text[12:]}" if text[4:12] != text[4:12][::-1] else f"{text}A",
        text[:-1],
        text[:-2] + text[:-3:-1] if text[-1] != text[-2] else f"{text}A",
    ]

    for slip in slips:
        with django_assert_num_queries(0), pytest.raises(AuthenticationFailed):  # type: ignore[attr-defined]
            authenticate(f"Bearer {slip}")


def test_a_key_from_before_checksums_stays_valid(alice: Tenant) -> None:
    key, _ = make_key(alice)
    old = parse_key_text(f"msk_{key.prefix}_{'aB3' * 14}x")
    assert old is not None
    with tenant_transaction(alice.pk):
        ApiKey.objects.filter(pk=key.pk).update(digest=old.digest)

    assert key_in_header(f"Bearer {old.text}") == key


def test_revoking_holds_from_the_next_request(alice: Tenant) -> None:
    key, text = make_key(alice)
    assert authenticate(f"Bearer {text}")

    revoke_key(key=key)

    with pytest.raises(AuthenticationFailed):
        authenticate(f"Bearer {text}")


def test_suspending_shuts_out_one_tenant_until_it_is_resumed(alice: Tenant, bob: Tenant) -> None:
    _, alices = make_key(alice)
    _, bobs = make_key(bob)

    suspend_tenant(tenant=alice)
    with pytest.raises(AuthenticationFailed):
        authenticate(f"Bearer {alices}")
    assert authenticate(f"Bearer {bobs}")

    resume_tenant(tenant=alice)
    assert authenticate(f"Bearer {alices}")


def test_a_scope_that_this_release_does_not_know_grants_nothing(alice: Tenant) -> None:
    key, text = make_key(alice, READ)
    ApiKey.objects.filter(pk=key.pk).update(scopes=["read", "teleport"])

    _, caller = authenticate(f"Bearer {text}")

    assert caller.scopes == {Scope.READ}  # type: ignore[attr-defined]
