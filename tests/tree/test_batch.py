import pytest

from memsvc.contract.entries import EntryWritten
from memsvc.format import InvalidPath
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.commands import Precondition
from memsvc.tree.errors import (
    AlreadySuperseded,
    BatchFailed,
    FileNotFound,
    PreconditionFailed,
    ReadOnly,
    TooLarge,
)
from memsvc.tree.operations import (
    AddEntry,
    AppendFile,
    DeletePath,
    EditFile,
    MovePath,
    RetireEntry,
    WriteFile,
)
from tests.tree.support import FACTS, add, contents, draft, revision, revisions

pytestmark = pytest.mark.django_db


def test_many_operations_are_one_revision(memory: Access) -> None:
    old, gone = add(memory, "old").entry, add(memory, "gone").entry

    answer = services.batch(
        memory,
        [
            WriteFile("/a.md", "one\n"),
            AppendFile("/a.md", "two\n"),
            EditFile("/a.md", "one", "1"),
            MovePath("/a.md", "/b.md"),
            WriteFile("/c.md", "c"),
            DeletePath("/c.md"),
            AddEntry(draft("new", supersedes=old.entry_id)),
            RetireEntry(gone.entry_id),
        ],
        message="tidying up",
    )

    assert answer.revision == 3
    assert revisions(memory) == [1, 2, 3]
    assert [type(each).__name__ for each in answer.results] == (
        ["Written", "Written", "Edited", "Moved", "Written", "Deleted", "EntryWritten", "EntryRetired"]
    )
    assert contents(memory)["/b.md"] == b"1\ntwo\n"
    assert [each.entry.body for each in reads.list_entries(memory).items] == ["new"]


def test_later_operations_see_what_earlier_ones_did(memory: Access) -> None:
    answer = services.batch(memory, [WriteFile("/x/a.md", "a"), MovePath("/x", "/y"), DeletePath("/y/a.md")])

    assert (contents(memory), answer.revision) == ({}, 1)


@pytest.mark.parametrize(
    ("operation", "cause"),
    [
        (EditFile("/missing.md", "a", "b"), FileNotFound),
        (WriteFile("/../x", "a"), InvalidPath),
        (WriteFile("/a.md", "another", Precondition(if_match="0" * 64)), PreconditionFailed),
    ],
)
def test_one_refused_operation_refuses_all_and_is_named(
    memory: Access, operation: EditFile | WriteFile, cause: type[Exception]
) -> None:
    with pytest.raises(BatchFailed) as refused:
        services.batch(
            memory, [WriteFile("/a.md", "a"), AddEntry(draft()), operation, WriteFile("/b.md", "b")]
        )

    assert refused.value.index == 2
    assert isinstance(refused.value.cause, cause)
    assert (contents(memory), revisions(memory)) == ({}, [])


def test_two_successors_of_one_entry_are_refused(memory: Access) -> None:
    old = add(memory, "old").entry.entry_id

    with pytest.raises(BatchFailed) as refused:
        services.batch(memory, [AddEntry(draft("a", supersedes=old)), AddEntry(draft("b", supersedes=old))])

    assert (refused.value.index, type(refused.value.cause)) == (1, AlreadySuperseded)
    assert reads.get_entry(memory, old).entry.is_active


def test_entries_of_one_batch_stand_in_their_order(memory: Access) -> None:
    answer = services.batch(memory, [AddEntry(draft(f"entry {n}")) for n in range(20)])

    written = [each.entry.entry_id for each in answer.results if isinstance(each, EntryWritten)]
    text = contents(memory)[FACTS].decode()
    assert [line.removeprefix("id: ") for line in text.splitlines() if line.startswith("id: ")] == written


def test_an_empty_batch_is_nothing(memory: Access) -> None:
    answer = services.batch(memory, [])

    assert (answer.revision, answer.results, revision(memory)) == (0, [], 0)


def test_a_batch_has_a_limit(memory: Access) -> None:
    with pytest.raises(TooLarge):
        services.batch(memory, [WriteFile("/a.md", "a")] * 501)


def test_a_read_only_access_has_no_batches(memory: Access) -> None:
    with pytest.raises((ReadOnly, BatchFailed)):
        services.batch(memory.read_only(), [WriteFile("/a.md", "a")])
