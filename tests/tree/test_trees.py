import pytest

from memsvc.format import InvalidText
from memsvc.tree import services
from memsvc.tree.access import Access
from memsvc.tree.errors import TreeExists, TreeNotFound
from memsvc.tree.models import Tree
from memsvc.tree.trees import create_tree, list_trees, tree_of
from tenants.models import Tenant
from tests.tree.support import access_to, add, contents

pytestmark = pytest.mark.django_db


def test_the_default_tree_is_made_at_its_first_use(alice: Tenant) -> None:
    assert list_trees(alice) == []

    assert tree_of(alice) == tree_of(alice, "default")
    assert [tree.name for tree in list_trees(alice)] == ["default"]


def test_other_trees_are_made_by_name(alice: Tenant) -> None:
    with pytest.raises(TreeNotFound, match="There is no tree named 'end user 42'"):
        tree_of(alice, "end user 42")

    made = create_tree(alice, "end user 42")

    assert tree_of(alice, "end user 42") == made


def test_a_name_is_taken_once_whatever_the_form_of_its_letters(alice: Tenant) -> None:
    create_tree(alice, "caf\u00e9")

    with pytest.raises(TreeExists):
        create_tree(alice, "cafe\u0301")
    assert tree_of(alice, "cafe\u0301").name == "caf\u00e9"


def test_names_are_exact(alice: Tenant) -> None:
    create_tree(alice, "Project")

    for other in ("project", "Project ", "Projec%"):
        with pytest.raises(TreeNotFound):
            tree_of(alice, other)


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 256])
def test_a_name_that_cannot_be_kept_is_refused(alice: Tenant, name: str) -> None:
    with pytest.raises(InvalidText):
        create_tree(alice, name)


def test_trees_of_one_tenant_know_nothing_of_each_other(memory: Access, alice: Tenant) -> None:
    create_tree(alice, "other")
    other = access_to(alice, "other")

    add(memory, "in the default tree")
    services.write_file(other, "/a.md", "a")

    assert contents(other) == {"/a.md": b"a"}
    assert [tree.revision for tree in list_trees(alice)] == [1, 1]


def test_a_change_of_a_tree_that_is_gone_is_refused(memory: Access) -> None:
    Tree.objects.filter(pk=memory.tree.pk).delete()

    with pytest.raises(TreeNotFound):
        services.write_file(memory, "/a.md", "text")
