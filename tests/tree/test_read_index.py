import pytest

from memsvc.format import MemoryKind
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from tests.tree.support import SEMANTIC_INDEX, access_to, add

pytestmark = pytest.mark.django_db


def test_an_index_is_its_rows_in_path_order_and_what_stands_above(memory: Access) -> None:
    services.scaffold(memory)

    index = reads.read_index(memory)

    assert (index.path, index.exists) == ("/memory/index.md", True)
    assert index.preamble.startswith("# Memory index\n")
    assert [row.path for row in index.rows] == sorted(row.path for row in index.rows)
    assert len(index.rows) == 4


def test_an_index_that_is_not_there_says_so(memory: Access) -> None:
    index = reads.read_index(memory, MemoryKind.SEMANTIC)

    assert (index.path, index.exists, index.rows, index.preamble) == (SEMANTIC_INDEX, False, [], "")


def test_an_index_that_is_no_text_is_read_as_well_as_it_can(memory: Access) -> None:
    services.write_file(memory, SEMANTIC_INDEX, b"\xff\n")
    add(memory, summary="A fact")

    assert [row.description for row in reads.read_index(memory, MemoryKind.SEMANTIC).rows] == ["A fact"]


def test_the_past_says_what_it_said(memory: Access) -> None:
    add(memory, summary="first")
    add(memory, summary="second")

    said = [reads.read_index(memory, MemoryKind.SEMANTIC, revision=n).rows for n in (1, 2)]

    assert [rows[0].description for rows in said] == ["first", "second"]


def test_an_index_outside_the_part_that_is_open_is_not_there(memory: Access) -> None:
    services.scaffold(memory)

    assert not reads.read_index(access_to(memory.tree.tenant, prefix="/agents")).exists
