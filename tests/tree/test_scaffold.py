import pytest

from memsvc.format import SCAFFOLD, MemoryKind
from memsvc.tree import services
from memsvc.tree.access import Access
from memsvc.tree.errors import Forbidden, ReadOnly
from tests.tree.support import FACTS, access_to, contents, revisions, rows

pytestmark = pytest.mark.django_db


def test_an_empty_tree_gets_the_whole_layout_byte_for_byte(memory: Access) -> None:
    created = services.scaffold(memory)

    assert created == list(SCAFFOLD)
    assert contents(memory) == {path: text.encode() for path, text in SCAFFOLD.items()}
    assert revisions(memory) == [1]


def test_a_second_call_makes_nothing(memory: Access) -> None:
    services.scaffold(memory)

    assert services.scaffold(memory) == []
    assert revisions(memory) == [1]


def test_what_is_there_stays_and_gets_its_row(memory: Access) -> None:
    services.write_file(memory, FACTS, "# My own facts\n")
    services.write_file(memory, "/memory/semantic_memory/team.md", "# The team\n")

    created = services.scaffold(memory)

    assert FACTS not in created
    assert contents(memory)[FACTS] == b"# My own facts\n"
    assert rows(memory, MemoryKind.SEMANTIC)["team.md"] == "The team"


def test_it_is_made_only_where_the_access_reaches(memory: Access) -> None:
    with pytest.raises(Forbidden):
        services.scaffold(access_to(memory.tree.tenant, prefix="/agents"))
    with pytest.raises(ReadOnly):
        services.scaffold(memory.read_only())

    assert contents(memory) == {}
