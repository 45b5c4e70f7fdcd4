"""Tenants are walls: Bob, with every right in his own tree, sees, changes and learns nothing of Alice's."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from django.db import IntegrityError, connection, transaction

from memsvc.database.ids import uuid7
from memsvc.format import SCAFFOLD, MemoryCategory
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.errors import EntryNotFound, FileNotFound, FolderNotFound, RevisionNotFound
from memsvc.tree.models import Block, File, Redaction, Revision, Tree
from memsvc.tree.reads import EntryFilter
from memsvc.tree.trees import create_tree
from tenants.models import Tenant
from tests.tree.support import (
    FACTS,
    access_to,
    add,
    contents,
    draft,
    entry_text,
    from_outside,
    of_tenant,
    paths,
    revisions,
    rows,
)

pytestmark = pytest.mark.django_db

SECRET = "The code is 4711."


@pytest.fixture
def secret(memory: Access) -> str:
    """An entry of Alice's; its id."""
    return add(memory, SECRET, summary="the code", tags=("secret",)).entry.entry_id


@pytest.fixture(params=["another tenant", "another tree of the same tenant"])
def other(request: pytest.FixtureRequest, bob: Tenant, alice: Tenant) -> Access:
    """Somebody with every right, elsewhere."""
    if request.param == "another tenant":
        return access_to(bob)
    create_tree(alice, "elsewhere")
    return access_to(alice, "elsewhere")


READS: dict[str, tuple[Callable[[Access, str], object], object]] = {
    "list_files": (lambda access, _: reads.list_files(access).items, []),
    "list_folder": (lambda access, _: reads.list_folder(access, "/"), []),
    "grep": (lambda access, _: reads.grep(access, "4711").items, []),
    "glob": (lambda access, _: reads.glob(access, "**/*"), []),
    "list_entries": (lambda access, _: reads.list_entries(access, EntryFilter(active=None)).items, []),
    "search_entries": (lambda access, _: reads.search_entries(access, "4711").items, []),
    "search_substring": (lambda access, _: reads.search_substring(access, "4711").items, []),
    "search_entries for all": (lambda access, _: reads.search_entries(access, "").items, []),
    "recent_episodes": (lambda access, _: reads.recent_episodes(access), []),
    "read_index": (lambda access, _: reads.read_index(access).exists, False),
    "snapshot": (lambda access, _: contents(access), {}),
    "read_file": (lambda access, _: reads.read_file(access, FACTS), FileNotFound),
    "read_lines": (lambda access, _: reads.read_lines(access, FACTS), FileNotFound),
    "stat": (lambda access, _: reads.stat(access, FACTS), FileNotFound),
    "a folder": (lambda access, _: reads.list_folder(access, "/memory"), FolderNotFound),
    "get_entry": (lambda access, secret: reads.get_entry(access, secret), EntryNotFound),
    "a revision": (lambda access, _: reads.list_files(access, revision=1), RevisionNotFound),
}


@pytest.mark.parametrize("read", READS)
def test_no_read_shows_anything(memory: Access, secret: str, other: Access, read: str) -> None:
    act, expected = READS[read]
    add(memory, "An episode: 4711.", "events")

    if isinstance(expected, type):
        with pytest.raises(expected):
            act(other, secret)
    else:
        assert act(other, secret) == expected


@pytest.mark.parametrize("revision", [None, 1])
def test_reads_of_a_tree_of_ones_own_show_only_that(
    memory: Access, secret: str, other: Access, revision: int | None
) -> None:
    own = add(other, "The code is 4712.").entry

    assert [each.entry for each in reads.list_entries(other, revision=revision).items] == [own]
    assert [each.entry for each in reads.search_entries(other, "code", revision=revision).items] == [own]
    assert [each.path for each in reads.grep(other, "471", revision=revision).items] == [FACTS]
    assert SECRET.encode() not in b"".join(contents(other, revision).values())
    with pytest.raises(EntryNotFound):
        reads.get_entry(other, secret, revision=revision)


WRITES: dict[str, Callable[[Access, str], object]] = {
    "write_file": lambda access, _: services.write_file(access, FACTS, "mine\n"),
    "edit_file": lambda access, _: services.edit_file(access, FACTS, "4711", "x"),
    "append_file": lambda access, _: services.append_file(access, FACTS, "more\n"),
    "delete": lambda access, _: services.delete(access, FACTS),
    "delete a folder": lambda access, _: services.delete(access, "/memory"),
    "move": lambda access, _: services.move(access, "/memory", "/mine"),
    "add_entry": lambda access, _: add(access, "mine", summary="mine", tags=("mine",)),
    "supersede": lambda access, secret: add(access, "mine", supersedes=secret),
    "retire_entry": lambda access, secret: services.retire_entry(access, secret),
    "scaffold": lambda access, _: services.scaffold(access),
    "upload_files": lambda access, _: services.upload_files(access, [(FACTS, b"mine\n")]),
    "import_files": lambda access, _: services.import_files(
        access, [(FACTS, b"mine\n"), ("/memory/index.md", b"")]
    ),
    "write an entry with her id": lambda access, secret: services.write_file(
        access, FACTS, entry_text(secret)
    ),
    "delete all of ones own": lambda access, _: (
        services.scaffold(access),
        services.delete(access, "/memory"),
    ),
}


@pytest.mark.parametrize("write", WRITES)
def test_no_write_changes_anything(memory: Access, secret: str, other: Access, write: str) -> None:
    before, listed = contents(memory), reads.list_files(memory).items
    entries, index = reads.list_entries(memory).items, rows(memory)

    # The same answers as for what never was.
    with suppress(FileNotFound, EntryNotFound):
        WRITES[write](other, secret)

    assert (contents(memory), reads.list_files(memory).items) == (before, listed)
    assert (reads.list_entries(memory).items, rows(memory), revisions(memory)) == (entries, index, [1])


def test_both_may_use_the_same_paths_and_ids(memory: Access, stranger: Access) -> None:
    for access, body in ((memory, "alice"), (stranger, "bob")):
        services.scaffold(access)
        services.write_file(access, FACTS, entry_text("mem_same", body))

    assert [reads.get_entry(access, "mem_same").entry.body for access in (memory, stranger)] == [
        "alice",
        "bob",
    ]
    assert paths(memory) == paths(stranger) == sorted(SCAFFOLD)


def test_a_cursor_of_another_tenant_shows_only_ones_own(memory: Access, stranger: Access) -> None:
    for access in (memory, stranger):
        for n in range(4):
            add(access, f"{access.actor.name} {n}")
    cursor = reads.list_entries(memory, limit=2).next

    found = reads.list_entries(stranger, cursor=cursor).items

    assert {each.entry.body.rpartition(" ")[0] for each in found} <= {stranger.actor.name}


# --- what the database refuses, even to the owner of the tables ----------------------------------------------------


@pytest.fixture
def rows_of_both(memory: Access, stranger: Access) -> tuple[File, File]:
    """Alice's and Bob's facts.md."""
    add(memory)
    add(stranger)
    found = []
    for access in (memory, stranger):
        with of_tenant(access):
            found.append(File.objects.of(access.tree).get(path=FACTS))
    mine, hers = found
    return mine, hers


def block_in(file: File, *, tenant: object, tree: object) -> Block:
    return Block(
        tenant_id=tenant, tree_id=tree, file_id=file.pk, added_in=1, position=1, kind="text", size=0, lines=0
    )  # type: ignore[misc]  # on purpose


def refused(act: Callable[[], object]) -> None:
    with (
        from_outside(),
        pytest.raises(IntegrityError, match="violates foreign key constraint"),
        transaction.atomic(),
    ):
        act()


@pytest.mark.django_db(transaction=True)
def test_a_block_stands_only_in_a_file_of_its_tenant_and_tree(
    memory: Access, rows_of_both: tuple[File, File], alice: Tenant
) -> None:
    mine, hers = rows_of_both
    second = create_tree(alice, "second")

    refused(block_in(hers, tenant=mine.tenant_id, tree=mine.tree_id).save)
    refused(block_in(hers, tenant=mine.tenant_id, tree=hers.tree_id).save)
    refused(block_in(mine, tenant=hers.tenant_id, tree=mine.tree_id).save)
    refused(block_in(mine, tenant=mine.tenant_id, tree=second.pk).save)


@pytest.mark.django_db(transaction=True)
def test_no_row_changes_sides(rows_of_both: tuple[File, File]) -> None:
    mine, hers = rows_of_both

    refused(lambda: Block.objects.filter(file_id=mine.pk).update(file_id=hers.pk))
    refused(lambda: Block.objects.filter(file_id=mine.pk).update(tenant_id=hers.tenant_id))
    refused(lambda: File.objects.filter(pk=mine.pk).update(tree_id=hers.tree_id))


@pytest.mark.django_db(transaction=True)
def test_files_and_revisions_stand_only_in_a_tree_of_their_tenant(
    memory: Access, stranger: Access, rows_of_both: tuple[File, File]
) -> None:
    mine, hers = rows_of_both
    mine.pk, mine.path, mine.tree_id = uuid7(), "/other.md", hers.tree_id
    with of_tenant(memory):
        crossed = Revision.objects.of(memory.tree)[0]
    crossed.pk, crossed.number, crossed.tree_id = uuid7(), 99, hers.tree_id

    refused(lambda: mine.save(force_insert=True))
    refused(lambda: crossed.save(force_insert=True))


@pytest.mark.django_db(transaction=True)
def test_a_file_was_never_one_of_another_tree(rows_of_both: tuple[File, File]) -> None:
    mine, hers = rows_of_both

    refused(lambda: File.objects.filter(pk=mine.pk).update(former_of=hers.pk))


def test_every_key_of_the_database_begins_with_the_tenant() -> None:
    """Of the tree's tables: every foreign key, and every unique key but the primary ones."""
    tables = [model._meta.db_table for model in (Tree, File, Block, Revision, Redaction)]
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT c.conname, a.attname FROM pg_constraint c
            JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
            WHERE c.conrelid::regclass::text = ANY(%s) AND c.contype IN ('f', 'u')
            UNION
            SELECT i.indexrelid::regclass::text, a.attname FROM pg_index i
            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
            WHERE i.indrelid::regclass::text = ANY(%s) AND i.indisunique AND NOT i.indisprimary
            """,
            [tables, tables],
        )
        first_columns = dict(cursor.fetchall())

    assert len(first_columns) >= 10
    assert {name for name, column in first_columns.items() if column != "tenant_id"} == set()


def test_a_tree_goes_with_all_that_is_in_it_and_nothing_else(memory: Access, stranger: Access) -> None:
    old = add(memory).entry.entry_id
    add(memory, supersedes=old)
    services.move(memory, FACTS, "/memory/facts.md")
    add(stranger)

    memory.tree.delete()

    assert Block.objects.filter(tenant_id=memory.tree.tenant_id).count() == 0
    assert [each.entry.category for each in reads.list_entries(stranger).items] == [MemoryCategory.FACTS]
    assert draft().category is MemoryCategory.FACTS
