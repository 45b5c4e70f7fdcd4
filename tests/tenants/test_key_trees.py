"""A key that is limited to one tree opens this very tree, and not what bears its name."""

from datetime import timedelta
from importlib import import_module

import pytest
from django.db import connection

from memsvc.database.tenancy import tenant_transaction
from memsvc.tree.errors import TreeNotFound
from memsvc.tree.trees import create_tree, delete_tree, list_trees, tree_for_key, tree_of, trees_page
from tenants.keys import keys_seen_by, rotate_key
from tenants.models import ApiKey, Tenant
from tenants.scopes import Scope
from tests.people import make_key
from tests.tree.support import access_to

BIND = import_module("migrations.tenants.0007_key_tree").BIND


def of_old(key: ApiKey, tree: str) -> ApiKey:
    """The key as a release made it that knew names only."""
    with tenant_transaction(key.tenant_id):
        ApiKey.objects.filter(pk=key.pk).update(tree=tree, tree_id=None)
        key.refresh_from_db()
    return key


def delete(tenant: Tenant, name: str) -> None:
    delete_tree(access_to(tenant, name))


def test_the_next_tree_of_the_name_is_another_one(alice: Tenant) -> None:
    key, _ = make_key(alice, tree="team")
    first = tree_of(alice, "team", only=key.only_trees)
    delete(alice, "team")

    second = create_tree(alice, "team")

    assert key.only_trees == frozenset({first.pk}) != frozenset({second.pk})
    assert trees_page(alice, only=key.only_trees).items == []
    with pytest.raises(TreeNotFound):
        tree_of(alice, "team", only=key.only_trees)


def test_a_limited_key_makes_no_default_tree_once_its_own_is_gone(alice: Tenant) -> None:
    key, _ = make_key(alice, tree="default")
    delete(alice, "default")

    with pytest.raises(TreeNotFound):
        tree_of(alice, "default", only=key.only_trees)

    assert list_trees(alice) == []


def test_a_key_needs_its_tree_to_be_there_but_for_the_default_one(alice: Tenant, bob: Tenant) -> None:
    create_tree(bob, "team")

    with pytest.raises(TreeNotFound):
        tree_for_key(alice, "team")
    limit = tree_for_key(alice, "default")

    assert limit is not None
    assert [tree.pk for tree in list_trees(alice)] == [limit.id]
    assert tree_for_key(alice, "") is None


def test_old_keys_are_bound_to_the_tree_of_their_name(alice: Tenant, bob: Tenant) -> None:
    create_tree(bob, "gone")
    team, other, every = create_tree(alice, "team"), make_key(alice, tree="other")[0], make_key(alice)[0]
    bound, lost = of_old(make_key(alice)[0], "team"), of_old(make_key(alice)[0], "gone")
    assert bound.only_trees == lost.only_trees == frozenset()

    with tenant_transaction(alice.pk):
        with connection.cursor() as cursor:
            cursor.execute(BIND)
        for key in (bound, lost, every, other):
            key.refresh_from_db()

    assert (bound.only_trees, lost.only_trees, every.only_trees) == (frozenset({team.pk}), frozenset(), None)
    assert other.only_trees == frozenset({tree_of(alice, "other").pk})
    create_tree(alice, "gone")
    with pytest.raises(TreeNotFound):
        tree_of(alice, "gone", only=lost.only_trees)


def test_a_key_that_opens_no_tree_sees_no_others_and_its_successor_opens_none_either(alice: Tenant) -> None:
    operator, _ = make_key(alice, *Scope, name="operator")
    lost = of_old(make_key(alice, Scope.ADMIN)[0], "gone")

    assert keys_seen_by(lost, limit=10) == []
    successor, _ = rotate_key(own=operator, actor=operator.actor, key_id=lost.pk, overlap=timedelta(0))

    assert (successor.tree, successor.only_trees) == ("gone", frozenset())
