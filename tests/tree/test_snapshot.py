import pytest

from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.errors import RevisionNotFound
from tests.tree.support import access_to, add, contents

pytestmark = pytest.mark.django_db


def test_a_snapshot_holds_every_file_in_path_order(memory: Access) -> None:
    files = {"/b.bin": b"\0\xff", "/a/empty": b"", "/a.md": b"text\r\n", "/large.txt": b"line\n" * 300_000}
    services.upload_files(memory, list(files.items()))

    with reads.export_source(memory) as whole:
        held = [(listed.path, b"".join(data)) for listed, data in whole.files()]

    assert held == sorted(files.items())


def test_it_says_what_the_listing_says(memory: Access) -> None:
    for n in range(3):
        add(memory, str(n), category="procedure", title=str(n))

    for revision in (None, 1, 2, 3):
        with reads.export_source(memory, revision=revision) as whole:
            listed = [listed for listed, _ in whole.files()]
        assert listed == reads.list_files(memory, revision=revision).items


def test_it_knows_its_revision_and_its_time(memory: Access) -> None:
    with reads.export_source(memory) as empty:
        assert (empty.revision, empty.at) == (0, memory.tree.created_at)
    services.write_file(memory, "/a", "1")
    services.write_file(memory, "/a", "2")

    with reads.export_source(memory) as now, reads.export_source(memory, revision=1) as then:
        assert (now.revision, then.revision) == (2, 1)
        assert now.at > then.at > empty.at


def test_a_snapshot_of_the_past_is_the_tree_as_it_was(memory: Access) -> None:
    services.write_file(memory, "/a.md", "a\n")
    services.move(memory, "/a.md", "/b.md")
    services.delete(memory, "/b.md")

    assert [contents(memory, n) for n in range(4)] == [{}, {"/a.md": b"a\n"}, {"/b.md": b"a\n"}, {}]
    with pytest.raises(RevisionNotFound):
        contents(memory, 4)


def test_only_the_part_that_is_open_is_in_it(memory: Access) -> None:
    services.upload_files(memory, [("/memory/a", b"a"), ("/other", b"b")])

    assert contents(access_to(memory.tree.tenant, prefix="/memory")) == {"/memory/a": b"a"}


@pytest.mark.django_db(transaction=True)
def test_what_is_written_meanwhile_is_not_in_it(memory: Access) -> None:
    from concurrent.futures import ThreadPoolExecutor

    services.upload_files(memory, [(f"/{n}", b"before") for n in range(5)])

    with reads.export_source(memory) as whole, ThreadPoolExecutor(1) as elsewhere:
        held: dict[str, bytes] = {}
        for listed, data in whole.files():
            elsewhere.submit(services.write_file, memory, f"/{len(held)}", "after").result(timeout=30)
            elsewhere.submit(services.write_file, memory, "/new", "after").result(timeout=30)
            held[listed.path] = b"".join(data)

    assert held == {f"/{n}": b"before" for n in range(5)}
