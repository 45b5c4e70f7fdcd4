import pytest

from memsvc.format import InvalidText
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.errors import EntryNotFound
from tests.tree.support import FACTS, access_to, add, entry_text

pytestmark = pytest.mark.django_db


def test_a_superseded_entry_is_found_and_names_its_successor(memory: Access) -> None:
    old = add(memory, "old").entry.entry_id
    new = add(memory, "new", supersedes=old).entry.entry_id

    assert reads.get_entry(memory, old).entry.superseded_by == new
    assert reads.get_entry(memory, new).entry.supersedes == old


def test_the_etag_changes_with_the_text_and_with_the_supersession(memory: Access) -> None:
    entry = add(memory, "one").entry.entry_id
    etags = [reads.get_entry(memory, entry).etag]
    services.edit_file(memory, FACTS, "one", "two")
    etags.append(reads.get_entry(memory, entry).etag)
    add(memory, "three", supersedes=entry)
    etags.append(reads.get_entry(memory, entry).etag)

    assert len(set(etags)) == 3
    assert [reads.get_entry(memory, entry, revision=n).etag for n in (1, 2, 3)] == etags


@pytest.mark.parametrize("entry_id", ["", "mem_none", "%", "é"])
def test_an_unknown_id_is_missing(memory: Access, entry_id: str) -> None:
    add(memory)

    with pytest.raises(EntryNotFound):
        reads.get_entry(memory, entry_id)


@pytest.mark.parametrize("entry_id", ["a\0", "\ud800", "x" * 5000])
def test_an_id_that_none_can_have_is_refused(memory: Access, entry_id: str) -> None:
    with pytest.raises(InvalidText):
        reads.get_entry(memory, entry_id)


def test_of_several_with_one_id_the_first_in_path_order_has_it(memory: Access) -> None:
    for name in "cab":
        services.write_file(memory, f"/memory/{name}.md", entry_text("mem_same", name))

    assert reads.get_entry(memory, "mem_same").path == "/memory/a.md"
    assert [reads.get_entry(memory, "mem_same", revision=n).entry.body for n in (1, 2, 3)] == ["c", "a", "a"]


def test_of_several_with_one_id_an_access_gets_the_first_that_it_sees(memory: Access) -> None:
    for folder in ("a", "b", "c"):
        services.write_file(memory, f"/{folder}/x.md", entry_text("mem_same", folder))

    assert reads.get_entry(access_to(memory.tree.tenant, prefix="/b"), "mem_same").entry.body == "b"


def test_an_entry_that_cannot_be_used_is_never_found(memory: Access) -> None:
    broken = "---\nid: mem_broken\ncreated: 2026-02-30\ncategory: facts\n---\n\nbody\n"
    services.write_file(memory, FACTS, broken + "\n" + entry_text("mem_good"))

    with pytest.raises(EntryNotFound):
        reads.get_entry(memory, "mem_broken")
    assert reads.get_entry(memory, "mem_good").path == FACTS


def test_an_entry_outside_the_part_that_is_open_is_missing(memory: Access) -> None:
    entry = add(memory).entry.entry_id

    for revision in (1, None):
        with pytest.raises(EntryNotFound):
            reads.get_entry(access_to(memory.tree.tenant, prefix="/agents"), entry, revision=revision)
