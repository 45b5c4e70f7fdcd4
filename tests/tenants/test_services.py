import re
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.db import IntegrityError, connection
from django.utils import timezone

from memsvc.database.ids import uuid7
from memsvc.database.tenancy import tenant_transaction
from tenants.actors import Actor, ActorKind
from tenants.models import ApiKey, Membership, OneTree, Role, Tenant, User
from tenants.secrets import parse_key_text
from tenants.services import (
    InvalidKey,
    InvalidTenant,
    TenantExists,
    create_key,
    create_tenant,
    revoke_key,
    set_member,
)
from tests.people import READ, WRITE, make_key


@pytest.mark.parametrize("slug", ["", "A", "a_b", "-a", "a-", "a b", "a\n", "ä", "a" * 64, "a\x00"])
def test_a_slug_is_checked(db: None, slug: str) -> None:
    with pytest.raises(InvalidTenant):
        create_tenant(slug=slug)


@pytest.mark.parametrize("slug", ["a", "7", "acme", "acme-corp", "a" * 63])
def test_a_slug_of_letters_digits_and_hyphens_is_taken(db: None, slug: str) -> None:
    assert create_tenant(slug=slug).slug == slug


def test_a_slug_is_taken_once(alice: Tenant) -> None:
    with pytest.raises(TenantExists):
        create_tenant(slug=alice.slug)


@pytest.mark.parametrize("name", ["a\x00", "\ud800", "a" * 201])
def test_a_tenants_name_is_text_that_can_be_kept(db: None, name: str) -> None:
    with pytest.raises(InvalidTenant):
        create_tenant(slug="acme", name=name)


def test_the_database_refuses_a_slug_that_is_none(db: None) -> None:
    tenant = Tenant(slug="Not A Slug", name="")
    with pytest.raises(IntegrityError), tenant_transaction(tenant.pk):
        tenant.save(force_insert=True)


def test_a_key_has_a_public_part_and_256_random_bits(alice: Tenant) -> None:
    key, text = make_key(alice)

    assert re.fullmatch(rf"msk_{key.prefix}_[0-9A-Za-z]{{49}}", text)
    assert 62**43 > 2**256


def test_nothing_in_the_database_holds_the_key(alice: Tenant) -> None:
    key, text = make_key(alice)

    with connection.cursor() as cursor:
        cursor.execute("SELECT t::text FROM tenants_apikey t WHERE id = %s", [key.pk])
        (row,) = cursor.fetchone() or ("",)
    assert key.prefix in row
    assert text.rpartition("_")[2] not in row


def test_another_pepper_knows_no_key(alice: Tenant, settings: LazySettings) -> None:
    key, text = make_key(alice)
    parsed = parse_key_text(text)
    assert parsed is not None
    assert parsed.matches(key.digest)

    settings.KEY_PEPPER = "another"

    assert not parsed.matches(key.digest)


def test_the_repr_of_a_key_text_keeps_the_secret(alice: Tenant) -> None:
    _, text = make_key(alice)

    assert text not in repr(parse_key_text(text))


def test_a_key_names_itself_as_actor(alice: Tenant) -> None:
    key, _ = make_key(alice, name="night shift")

    assert key.actor == Actor(ActorKind.KEY, str(key.pk), "night shift")


def test_a_key_keeps_its_limits(alice: Tenant) -> None:
    later, team = timezone.now() + timedelta(days=1), uuid7()
    key, _ = create_key(
        tenant=alice,
        name="n",
        scopes=[WRITE, READ, READ],
        tree=OneTree(team, "team"),
        path_prefix="/memory/",
        expires_at=later,
    )
    key.refresh_from_db()

    assert (key.scopes, key.one_tree, key.path_prefix, key.expires_at) == (
        ["read", "write"],
        OneTree(team, "team"),
        "/memory",
        later,
    )


@pytest.mark.parametrize(
    "limits",
    [
        {"name": ""},
        {"name": "  "},
        {"name": "a\x00"},
        {"name": "a" * 101},
        {"path_prefix": "/../other"},
        {"path_prefix": "/a\x00"},
        {"scopes": ["root"]},
        {"expires_at": timezone.now()},
    ],
)
def test_a_key_with_impossible_limits_is_refused(alice: Tenant, limits: dict[str, object]) -> None:
    arguments = {"tenant": alice, "name": "agent", "scopes": [READ], **limits}

    with pytest.raises(InvalidKey):
        create_key(**arguments)  # type: ignore[arg-type]  # wrong on purpose

    assert not ApiKey.objects.exists()


def test_revoking_twice_keeps_the_first_time(alice: Tenant) -> None:
    key, _ = make_key(alice)

    revoke_key(key=key)
    first = key.revoked_at
    revoke_key(key=key)

    assert first is not None
    assert key.revoked_at == first


def test_a_member_has_one_role_in_a_tenant(alice: Tenant, bob: Tenant) -> None:
    user = User.objects.create_user("ann")

    set_member(tenant=alice, user=user, role=Role.VIEWER)
    set_member(tenant=alice, user=user, role=Role.OWNER)

    assert [(m.tenant, m.role) for m in Membership.objects.all()] == [(alice, "owner")]
    assert user.actor == Actor(ActorKind.MEMBER, str(user.pk), "ann")
