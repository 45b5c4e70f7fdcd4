import pytest
from django.db import connection

from memsvc.database.tenancy import enter_tenant
from memsvc.format import InvalidText
from memsvc.tree import services
from memsvc.tree.access import Access
from memsvc.tree.errors import Forbidden, TreeArchived, TreeExists, TreeNotFound
from memsvc.tree.models import Block, File, Revision, Tree
from memsvc.tree.trees import (
    TreeSize,
    archive_tree,
    create_tree,
    delete_tree,
    describe_tree,
    list_trees,
    measure,
    tree_of,
    trees_page,
)
from tenants.actors import SYSTEM
from tenants.models import Tenant
from tests.tree.support import AssertNumQueries, access_to, add, contents

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


def test_an_archived_tree_is_read_and_no_longer_changed(alice: Tenant) -> None:
    access = access_to(alice)
    kept = add(access)
    archived = archive_tree(access)

    for change in (
        lambda: add(access),
        lambda: services.write_file(access, "/a.md", "x"),
        lambda: services.delete(access, kept.path),
        lambda: services.scaffold(access),
        lambda: describe_tree(access, "new"),
    ):
        with pytest.raises(TreeArchived, match="is archived"):
            change()
    assert contents(access) != {}
    assert archive_tree(access).archived_at == archived.archived_at
    assert tree_of(alice).revision == 1


def test_deleting_a_tree_deletes_all_its_rows_and_no_others(alice: Tenant, bob: Tenant) -> None:
    access, other, foreign = access_to(alice), Access(create_tree(alice, "other"), SYSTEM), access_to(bob)
    for each in (access, other, foreign):
        old = add(each)
        add(each, "Bonn.", supersedes=old.entry.entry_id)
        services.move(each, old.path, "/moved.md")
    kept = [contents(each) for each in (other, foreign)]

    delete_tree(access)

    assert [contents(each) for each in (other, foreign)] == kept
    for model in (Block, File, Revision):
        assert not model.objects.filter(tree_id=access.tree.pk).exists()
    with pytest.raises(TreeNotFound):
        add(access)
    assert contents(access_to(alice)) == {}


def test_a_part_of_a_tree_is_no_tree(alice: Tenant) -> None:
    part = access_to(alice, prefix="/agents")

    for act in (archive_tree, delete_tree, lambda access: describe_tree(access, "x")):
        with pytest.raises(Forbidden):
            act(part)


def test_a_tree_is_measured_as_far_as_it_is_seen(alice: Tenant) -> None:
    access, part = access_to(alice), access_to(alice, prefix="/agents")
    old = add(access)
    add(access, "Bonn.", supersedes=old.entry.entry_id)
    services.write_file(access, "/agents/a.md", "12345")
    sizes = contents(access)

    assert measure(access) == TreeSize(files=len(sizes), bytes=sum(map(len, sizes.values())), entries=2)
    assert measure(part) == TreeSize(files=1, bytes=5, entries=0)


def test_thousands_of_trees_cost_nothing(alice: Tenant, django_assert_num_queries: AssertNumQueries) -> None:
    enter_tenant(alice.pk)
    Tree.objects.bulk_create(
        [Tree(tenant=alice, name=f"user-{number}@example.org") for number in range(2000)]
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE tree_tree")

    with django_assert_num_queries(1):
        tree_of(alice, "user-777@example.org")
    # Within the test's transaction a savepoint, the tenant, the page, and the savepoint's end.
    with django_assert_num_queries(4):
        page = trees_page(alice, limit=100)
    names: list[str] = []
    while True:
        names += [tree.name for tree in page.items]
        if page.next is None:
            break
        page = trees_page(alice, cursor=page.next, limit=100)

    assert names == sorted(names)
    assert len(set(names)) == len(names) == 2000
    for trees in (
        Tree.objects.filter(tenant=alice, name="user-777@example.org"),
        Tree.objects.filter(tenant=alice, name__gt="user-777").order_by("name")[:100],
    ):
        assert "tree_name_unique" in trees.explain()
