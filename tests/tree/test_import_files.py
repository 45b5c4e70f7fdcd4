import pytest

from memsvc.format import InvalidPath, MemoryKind
from memsvc.tree import reads, services, statements
from memsvc.tree.access import Access
from memsvc.tree.commands import OnConflict
from memsvc.tree.errors import Forbidden
from memsvc.tree.models import Block, File
from tests.tree.support import (
    FACTS,
    SEMANTIC_INDEX,
    AssertNumQueries,
    access_to,
    add,
    contents,
    days_pass,
    entry_text,
    in_days,
    of_tenant,
    revisions,
    rows,
)

pytestmark = pytest.mark.django_db

INDEX = b"| File | Description | Tags | Updated |\n| --- | --- | --- | --- |\n| gone.md | was here | | |\n"


def test_every_file_arrives_byte_for_byte_in_one_revision(memory: Access) -> None:
    tree = {FACTS: b"\xef\xbb\xbf# Facts\r\n", SEMANTIC_INDEX: INDEX, "/a.bin": b"\0\xff"}

    result = services.import_files(memory, tree.items())

    assert [(each.path, each.outcome) for each in result.files] == [(path, "created") for path in tree]
    assert (contents(memory), revisions(memory)) == (tree, [1])


def test_what_is_there_already_is_unchanged(memory: Access) -> None:
    services.import_files(memory, [("/a.md", b"a"), ("/b.md", b"b"), ("/other.md", b"stays")])

    again = services.import_files(
        memory, [("/a.md", b"a"), ("/b.md", b"B"), ("/c.md", b"c")], on_conflict=OnConflict.TAKE
    )

    assert [each.outcome for each in again.files] == ["unchanged", "changed", "created"]
    assert contents(memory)["/other.md"] == b"stays"


def test_the_same_import_twice_makes_no_revision(memory: Access) -> None:
    for _ in range(2):
        result = services.import_files(memory, [("/a.md", b"a")])

    assert (result.revision, revisions(memory)) == (1, [1])


def test_the_next_change_gives_imported_files_their_rows(memory: Access) -> None:
    services.import_files(
        memory, [(SEMANTIC_INDEX, INDEX), ("/memory/semantic_memory/team.md", b"# The team\n")]
    )

    add(memory, summary="A fact")

    assert rows(memory, MemoryKind.SEMANTIC) == {
        "facts.md": "A fact",
        "gone.md": "was here",
        "team.md": "The team",
    }


def test_imported_entries_keep_their_ids_and_duplicates_stay(memory: Access) -> None:
    files = {"/memory/a.md": entry_text("mem_twice", "a"), "/memory/b.md": entry_text("mem_twice", "b")}

    services.import_files(memory, [(path, text.encode()) for path, text in files.items()])

    assert reads.get_entry(memory, "mem_twice").path == "/memory/a.md"
    assert [each.path for each in reads.list_entries(memory, oldest_first=True).items] == list(files)


def test_what_is_no_path_refuses_the_whole(memory: Access) -> None:
    with pytest.raises(InvalidPath):
        services.import_files(memory, [("/a.md", b"a"), ("/../x", b"x")])

    assert (contents(memory), revisions(memory)) == ({}, [])


@pytest.mark.parametrize(("there", "bad"), [("/a/b/c", "/a/b"), ("/a/b", "/a/b/c")])
@pytest.mark.parametrize("on_conflict", OnConflict)
def test_a_file_and_a_folder_never_share_a_path(
    memory: Access, there: str, bad: str, on_conflict: OnConflict
) -> None:
    services.write_file(memory, there, "text")
    services.write_file(memory, "/a/bb", "text")

    result = services.import_files(
        memory, [("/a/b0", b"x"), (bad, b"x"), ("/c", b"x")], on_conflict=on_conflict
    )

    assert {each.path: each.outcome for each in result.files} == {
        "/a/b0": "created",
        bad: "refused",
        "/c": "created",
    }
    assert sorted(contents(memory)) == sorted([there, "/a/bb", "/a/b0", "/c"])


def test_what_has_disappeared_is_not_in_the_way(memory: Access) -> None:
    for path in ("/memory/a.md", "/memory/folder/b.md", "/memory/c.md"):
        services.write_file(memory, path, entry_text(f"mem_{path[-4]}"))
    Block.objects.of(memory.tree).update(expires_at=in_days(1))
    File.objects.of(memory.tree).update(next_expiry=in_days(1))
    statements.count_entries(memory.tree)
    days_pass(memory, 2)
    files = {"/memory/a.md": b"a", "/memory/c.md/d.md": b"c", "/memory/folder": b"folder", "/new.md": b"new"}

    result = services.import_files(memory, files.items())

    assert {each.outcome for each in result.files} == {"created"}
    assert contents(memory) == files


def test_the_last_of_two_files_at_one_path_stays(memory: Access) -> None:
    result = services.import_files(
        memory,
        [("/a.md", b"one\n"), ("/b.md", b"b"), ("a.md", b"two\n")],
        on_conflict=OnConflict.TAKE,
    )

    assert [(each.path, each.outcome) for each in result.files] == [
        ("/a.md", "created"),
        ("/b.md", "created"),
        ("/a.md", "changed"),
    ]
    assert (contents(memory), revisions(memory)) == ({"/a.md": b"two\n", "/b.md": b"b"}, [1])


def test_a_file_reads_the_same_however_it_came(memory: Access, stranger: Access) -> None:
    files = {
        "/memory/empty.md": b"",
        "/memory/mixed.md": b"\xef\xbb\xbfone\r\ntwo\n" + entry_text("mem_a").encode(),
        "/memory/index.md": INDEX,
        "/memory/long.md": b"a line of a long text\n" * 10_000,
        "/picture.png": b"\0\xff",
    }
    for path, data in files.items():
        services.write_file(stranger, path, data)

    services.import_files(memory, files.items())

    def described(access: Access) -> object:
        rows = File.objects.of(access.tree).exclude(path="/memory/index.md").order_by("path")
        blocks = Block.objects.of(access.tree).exclude(file__path="/memory/index.md")
        with of_tenant(access):
            return (
                list(
                    rows.values(
                        "path", "parent", "size", "lines", "is_text", "newline", "sha256", "next_expiry"
                    )
                ),
                list(
                    blocks.order_by("file__path", "position").values(
                        "position", "kind", "head", "text", "raw", "size", "lines", "entry_id", "search_text"
                    )
                ),
            )

    assert described(memory) == described(stranger)


def test_a_hundred_more_files_cost_no_more_statements(
    memory: Access, django_assert_max_num_queries: AssertNumQueries
) -> None:
    files = [(f"/notes/{number}.md", entry_text(f"mem_{number}").encode()) for number in range(150)]

    # 1 savepoint  2 lock  3 what stood there?  4 which ids are known?  5 what is in the way?  6 files  7 ids?
    # 8 blocks  9 revision and event  10 savepoint
    with django_assert_max_num_queries(10):
        services.import_files(memory, files)

    assert contents(memory) == dict(files)


def test_nothing_is_imported_outside_the_part_that_is_open(memory: Access) -> None:
    with pytest.raises(Forbidden):
        services.import_files(access_to(memory.tree.tenant, prefix="/memory"), [("/a.md", b"a")])
