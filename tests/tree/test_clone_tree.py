from datetime import UTC, datetime, timedelta

import pytest

from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.cloning import clone_tree
from memsvc.tree.errors import Forbidden, RevisionNotFound, TreeExists
from memsvc.tree.models import Block, File, Tree
from tenants.models import Tenant
from tests.tree.support import access_to, add, contents, entry_text

pytestmark = pytest.mark.django_db


def clone(access: Access, name: str = "copy", revision: int | None = None) -> Access:
    return Access(clone_tree(access, name, revision=revision), access.actor)


@pytest.fixture
def source(alice: Tenant) -> Access:
    """A tree with a past: superseded, retired, moved, doubled and binary things, and lines that end in two ways."""
    access = access_to(alice)
    services.scaffold(access)
    first = add(access, "Bonn is the seat.")
    second = add(access, "Berlin is the seat.", supersedes=first.entry.entry_id)
    services.write_file(access, "/bin.md", b"\xff\x00")
    services.write_file(access, "/a.md", entry_text("mem_double", "First."))
    services.write_file(access, "/b.md", entry_text("mem_double", "Second.") + "tail\r\n")
    services.write_file(access, "/bin.md", "now text\r\n")
    services.move(access, "/a.md", "/c/a.md")
    services.delete(access, "/c/a.md")
    add(access, "It rains.", "events", expires_at=datetime.now(tz=UTC) + timedelta(days=1))
    services.retire_entry(access, second.entry.entry_id)
    services.edit_file(access, "/b.md", "tail", "tail\nend")
    return access


def described(access: Access, revision: int | None = None) -> list[tuple[str, int, int]]:
    files = reads.list_files(access, revision=revision).items
    return [(file.path, file.size, file.lines) for file in files]


def test_a_clone_is_the_tree_as_it_was_in_each_revision(source: Access) -> None:
    newest = Tree.objects.get(pk=source.tree.pk).revision

    for revision in range(newest + 1):
        copy = clone(source, f"copy {revision}", revision)

        assert contents(copy) == contents(source, revision), revision
        assert described(copy) == described(source, revision), revision
        assert copy.tree.revision == 1
        for listed in reads.list_files(copy).items:
            data = reads.read_file(copy, listed.path)
            assert data.is_text == (b"\xff" not in data.data), (revision, listed.path)


def test_without_a_revision_a_clone_is_the_newest(source: Access) -> None:
    copy = clone(source)

    assert contents(copy) == contents(source)
    assert [entry.entry for entry in reads.list_entries(copy).items] == [
        entry.entry for entry in reads.list_entries(source).items
    ]


def test_source_and_clone_change_apart(source: Access) -> None:
    before = contents(source)
    copy = clone(source)

    written = services.write_file(copy, "/bin.md", "other")
    add(copy, "Only here.")
    add(source, "Only there.")

    assert written.revision == 2
    assert contents(source)["/bin.md"] == before["/bin.md"]
    assert contents(copy, 1) == before
    assert len(reads.list_entries(copy).items) == len(reads.list_entries(source).items)


def test_a_clone_may_be_superseded_in_and_edited(source: Access) -> None:
    copy = clone(source, revision=3)
    (entry,) = [found.entry for found in reads.list_entries(copy).items]

    add(copy, "Berlin it is.", supersedes=entry.entry_id)

    assert len(reads.list_entries(copy).items) == 1


def test_what_expires_does_so_in_the_clone(source: Access) -> None:
    copy = clone(source)
    assert len(reads.recent_episodes(copy)) == 1

    Block.objects.of(copy.tree).filter(expires_at__isnull=False).update(expires_at=datetime.now(tz=UTC))
    File.objects.of(copy.tree).filter(next_expiry__isnull=False).update(next_expiry=datetime.now(tz=UTC))

    assert reads.recent_episodes(copy) == []


def test_a_clone_costs_the_same_number_of_queries_for_any_tree(
    alice: Tenant, django_assert_max_num_queries: object
) -> None:
    access = access_to(alice)
    services.upload_files(access, [(f"/f{number}.md", b"text") for number in range(50)])

    with django_assert_max_num_queries(25):  # type: ignore[operator]  # pytest-django's fixture
        clone(access)


def test_what_can_not_be_cloned_is_refused(source: Access, alice: Tenant) -> None:
    for revision in (-1, 999):
        with pytest.raises(RevisionNotFound):
            clone(source, revision=revision)
    with pytest.raises(TreeExists):
        clone(source, "default")
    with pytest.raises(Forbidden):
        clone(access_to(alice, prefix="/c"))
    assert [tree.name for tree in Tree.objects.filter(tenant=alice)] == ["default"]


def test_a_clone_stays_in_its_tenant(source: Access, bob: Tenant) -> None:
    clone(source)

    assert not Tree.objects.filter(tenant=bob).exists()
    assert set(Block.objects.values_list("tenant_id", flat=True)) == {source.tree.tenant_id}
