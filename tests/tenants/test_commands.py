import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from memsvc.tree.trees import create_tree
from tenants.models import ApiKey, Membership, Tenant, User
from tenants.services import all_tenants
from tests.people import make_key, opening


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=StringIO())
    return out.getvalue().strip()


def test_tenant_create_makes_a_tenant_and_says_what_comes_next(db: None) -> None:
    said = run("tenant_create", "acme", "--name", "Acme, Inc.")

    assert Tenant.objects.get(slug="acme").name == "Acme, Inc."
    assert "key_create acme" in said


def test_tenant_create_refuses_a_second_one(alice: Tenant) -> None:
    with pytest.raises(CommandError, match="choose another slug"):
        run("tenant_create", alice.slug)


def test_key_create_prints_nothing_but_the_key(alice: Tenant) -> None:
    create_tree(alice, "team")
    text = run(
        *("key_create", alice.slug, "--name", "agent", "--scope", "read", "--scope", "write"),
        *("--tree", "team", "--path-prefix", "/memory", "--expires-in-days", "30"),
    )
    key = opening(text)

    assert key is not None
    assert (key.tenant, key.scopes, key.tree, key.path_prefix) == (
        alice,
        ["read", "write"],
        "team",
        "/memory",
    )
    assert key.expires_at is not None


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["nobody", "--name", "n", "--scope", "read"], "tenant_create nobody"),
        (["alice", "--name", " ", "--scope", "read"], "needs a name"),
        (["alice", "--name", "n", "--scope", "read", "--expires-in-days", "0"], "past"),
        (["alice", "--name", "n", "--scope", "read", "--expires-in-days", "99999999999"], "too large"),
        (["alice", "--name", "n", "--scope", "read", "--path-prefix", "/.."], "segment"),
        (["alice", "--name", "n", "--scope", "read", "--tree", "later"], "no tree named 'later'"),
        (["alice", "--name", "n", "--scope", "root"], "invalid choice"),
        (["alice", "--name", "n"], "--scope"),
    ],
)
def test_key_create_says_what_is_wrong(alice: Tenant, arguments: list[str], hint: str) -> None:
    named = [alice.slug if argument == "alice" else argument for argument in arguments]

    with pytest.raises(CommandError, match=hint):
        run("key_create", *named)

    assert not ApiKey.objects.exists()


def test_key_revoke_takes_prefix_id_or_the_whole_key(alice: Tenant) -> None:
    keys = [make_key(alice) for _ in range(3)]
    names = [keys[0][0].prefix, str(keys[1][0].pk), keys[2][1]]

    for name in names:
        assert "Revoked" in run("key_revoke", name)

    assert not ApiKey.objects.filter(revoked_at=None).exists()


def test_key_revoke_never_repeats_a_secret(alice: Tenant) -> None:
    _, text = make_key(alice)
    ApiKey.objects.all().delete()

    with pytest.raises(CommandError) as refused:
        run("key_revoke", text)

    assert text.rpartition("_")[2] not in str(refused.value)


def test_fixture_tenants_makes_keys_of_every_kind(db: None) -> None:
    fixtures = json.loads(run("fixture_tenants", "--count", "2", "--json"))

    assert len({fixture["id"] for fixture in fixtures}) == 2
    for fixture in fixtures:
        writer, reader = (
            opening(fixture["key"]),
            opening(fixture["reader_key"]),
        )
        assert writer is not None
        assert reader is not None
        assert (str(writer.tenant_id), writer.tenant.slug) == (fixture["id"], fixture["slug"])
        assert (writer.scopes, reader.scopes) == (["export", "read", "write"], ["read"])
        for refused in ("revoked_key", "expired_key", "suspended_tenant_key"):
            assert opening(fixture[refused]) is None


def test_fixture_tenants_can_be_made_again_and_again(db: None) -> None:
    run("fixture_tenants")
    run("fixture_tenants")

    assert len(all_tenants()) == 4


def test_fixture_tenants_refuses_a_count_of_none(db: None) -> None:
    with pytest.raises(CommandError, match="at least 1"):
        run("fixture_tenants", "--count", "0")


def test_demo_tenant_shows_key_and_password_once(db: None) -> None:
    first = run("demo_tenant")
    again = run("demo_tenant")
    text = next(word for word in first.split() if word.startswith("msk_"))
    password = first.rpartition("password '")[2].rstrip("'")
    key = opening(text)
    admin = User.objects.get(username="admin")

    assert key is not None
    assert (key.tenant.slug, key.scopes) == ("demo", ["export", "read", "write"])
    assert admin.check_password(password)
    assert admin.is_superuser
    assert Membership.objects.get(user=admin).role == "owner"
    assert "msk_" not in again
    assert password not in again
    assert "key_create demo" in again
    assert ApiKey.objects.count() == 1
