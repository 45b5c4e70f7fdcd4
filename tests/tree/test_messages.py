"""A revision's message is told to who sees every path that it touched, through every way of asking."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from memsvc.contract.requests import SuccessorRequest
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.history.changelog import changelog
from memsvc.tree.history.memory_versions import VersionFilter, list_versions, read_version
from memsvc.tree.operations import DeletePath, MovePath, WriteFile
from memsvc.tree.retention import prune_to
from tests.tree.support import entry_text, of_tenant

INSIDE, OUTSIDE = "/in/a.md", "/out/b.md"
ENTRY = "mem_1"


def blamed(access: Access) -> str:
    return reads.blame(access, INSIDE).revisions[2].message


def of_entry(access: Access) -> str:
    return next(
        each.revision.message for each in reads.entry_history(access, ENTRY) if each.revision.number == 2
    )


def of_versions(access: Access) -> str:
    [item] = [each for each in list_versions(access, VersionFilter()).items if each.path == INSIDE]
    assert read_version(access, item.memory, 2).revision.message == item.revision.message
    return item.revision.message


def of_bundle(access: Access) -> str:
    with changelog(access) as steps:
        return next(step.revision.message for step in steps if step.revision.number == 2)


EVERY_WAY: list[Callable[[Access], str]] = [
    lambda access: reads.list_revisions(access).items[0].message,
    lambda access: reads.get_revision(access, 2).revision.message,
    blamed,
    of_entry,
    of_versions,
    of_bundle,
]


@pytest.mark.parametrize("told", EVERY_WAY)
def test_the_message_of_a_shared_revision_is_told_to_nobody_who_sees_a_part_of_it(
    memory: Access, told: Callable[[Access], str]
) -> None:
    services.write_file(memory, "/c.md", "x")
    writes = [WriteFile(INSIDE, entry_text(ENTRY, "x").encode()), WriteFile(OUTSIDE, b"x")]
    services.batch(memory, writes, message="b is secret")

    assert told(memory) == "b is secret"
    assert told(replace(memory, prefix="/in")) == ""


@pytest.mark.parametrize("told", EVERY_WAY)
def test_a_message_about_the_folder_alone_is_told_in_it(
    memory: Access, told: Callable[[Access], str]
) -> None:
    services.write_file(memory, OUTSIDE, "x")
    services.write_file(memory, INSIDE, entry_text(ENTRY, "x"), message="a is new")

    assert told(replace(memory, prefix="/in")) == "a is new"


def messages(access: Access) -> list[str]:
    return [each.message for each in reads.list_revisions(access).items]


def test_the_row_of_an_index_outside_keeps_nobody_from_their_own_messages(memory: Access) -> None:
    services.scaffold(memory)
    own = replace(memory, prefix="/memory/semantic_memory/mine")
    services.write_file(own, "/memory/semantic_memory/mine/a.md", "# One\n", message="mine")
    services.write_file(memory, "/memory/semantic_memory/b.md", "# Two\n", message="theirs")

    assert [each.message for each in reads.list_revisions(own).items] == ["mine"]


def test_what_was_moved_over_the_border_or_deleted_beyond_it_counts(memory: Access) -> None:
    inside = replace(memory, prefix="/in")
    services.batch(memory, [WriteFile(INSIDE, b"x"), WriteFile("/in/b.md", b"x"), WriteFile(OUTSIDE, b"x")])
    services.move(memory, "/in/b.md", "/out/c.md", message="out")
    services.move(memory, "/out/c.md", "/in/c.md", message="in")
    services.batch(memory, [DeletePath(OUTSIDE), WriteFile(INSIDE, b"y")], message="gone")
    services.batch(
        memory,
        [WriteFile("/out/d.md", b"x"), MovePath("/out/d.md", "/in/d.md"), WriteFile(INSIDE, b"z")],
        message="by way of out",
    )
    services.move(memory, "/in/c.md", "/in/e.md", message="within")

    assert messages(memory) == ["within", "by way of out", "gone", "in", "out", ""]
    assert messages(inside) == ["within", "", "", "", "", ""]


def test_a_successor_that_stands_elsewhere_counts(memory: Access) -> None:
    services.write_file(memory, INSIDE, entry_text(ENTRY, "x"))
    services.supersede_entry(memory, SuccessorRequest(ENTRY, body="y", message="moved to Rome"))

    assert messages(memory) == ["moved to Rome", ""]
    assert messages(replace(memory, prefix="/in")) == ["", ""]


def test_of_revisions_that_are_let_go_no_message_is_told_in_a_folder(memory: Access) -> None:
    services.write_file(memory, INSIDE, "x\ny\n", message="first")
    services.write_file(memory, INSIDE, "x\nz\n", message="second")
    inside = replace(memory, prefix="/in")
    with of_tenant(memory):
        prune_to(memory.tree, 1)

    found = reads.blame(inside, INSIDE).revisions

    assert {number: each.message for number, each in found.items()} == {1: "", 2: "second"}
