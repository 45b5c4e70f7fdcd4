from collections.abc import Callable

import pytest

from memsvc.format import InvalidText
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from tests.tree.support import access_to, add, contents, paths

pytestmark = pytest.mark.django_db

FILES = ["/a", "/b/c", "/b/d/e", "/b0", "/memory/é.md", "/memory/z.md"]


@pytest.fixture
def filled(memory: Access) -> Access:
    services.upload_files(memory, [(path, b"text\n") for path in FILES])
    return memory


def test_all_files_are_listed_in_path_order(filled: Access) -> None:
    assert paths(filled) == sorted(FILES)


def test_a_prefix_is_a_folder_or_one_file(filled: Access) -> None:
    for prefix, expected in {
        "/b": ["/b/c", "/b/d/e"],
        "/b/c": ["/b/c"],
        "/missing": [],
        "/": sorted(FILES),
    }.items():
        assert [each.path for each in reads.list_files(filled, prefix).items] == expected


@pytest.mark.parametrize("limit", [1, 2, 5, 6, 7])
def test_pages_hold_every_file_once(filled: Access, limit: int) -> None:
    found, cursor = [], None
    while True:
        page = reads.list_files(filled, after=cursor, limit=limit)
        assert 0 < len(page.items) <= limit
        found += [each.path for each in page.items]
        cursor = page.next
        if cursor is None:
            break

    assert found == sorted(FILES)


@pytest.mark.parametrize("cursor", ["", "x", "W10", "WzFd", "ÿ", "eyJhIjoxfQ", "WyJhXHUwMDAwIl0"])
def test_a_foreign_cursor_is_refused(filled: Access, cursor: str) -> None:
    with pytest.raises(InvalidText, match="cursor"):
        reads.list_files(filled, after=cursor)


def test_sizes_and_lines_are_those_of_the_content(memory: Access) -> None:
    old = add(memory, "first").entry
    add(memory, "second", supersedes=old.entry_id)
    add(memory, "third", category="procedure", title="x")
    services.write_file(memory, "/odd.md", b"a\r\nb\rc\x0bd\xe2\x80\xa8e\n\xff")

    held = contents(memory)

    for each in reads.list_files(memory).items:
        lines = len(held[each.path].decode(errors="replace").splitlines())
        assert (each.size, each.lines) == (len(held[each.path]), lines)


def test_a_listing_of_the_past_says_what_it_said_then(filled: Access) -> None:
    seen = {1: reads.list_files(filled).items}
    steps: list[Callable[[], object]] = [
        lambda: services.append_file(filled, "/a", "more\n"),
        lambda: services.move(filled, "/b", "/z/b"),
        lambda: services.write_file(filled, "/a", ""),
        lambda: services.write_file(filled, "/empty", ""),
        lambda: services.move(filled, "/empty", "/still/empty"),
        lambda: services.delete(filled, "/z/b/c"),
        lambda: add(filled),
        lambda: add(filled, supersedes=reads.list_entries(filled).items[0].entry.entry_id),
    ]
    for number, step in enumerate(steps, start=2):
        step()
        seen[number] = reads.list_files(filled).items

    assert {number: reads.list_files(filled, revision=number).items for number in seen} == seen


def test_only_the_part_that_is_open_is_listed(filled: Access) -> None:
    assert paths(access_to(filled.tree.tenant, prefix="/b")) == ["/b/c", "/b/d/e"]
