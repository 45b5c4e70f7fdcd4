from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memsvc.format import Confidence, InvalidText, MemoryCategory, MemoryKind
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.reads import EntryFilter
from tests.tree.support import FACTS, access_to, add, entry_text

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 8, 24, 12, tzinfo=UTC)


def bodies(
    access: Access, *, oldest_first: bool = False, revision: int | None = None, **wanted: Any
) -> list[str]:
    page = reads.list_entries(access, EntryFilter(**wanted), oldest_first=oldest_first, revision=revision)
    return [each.entry.body for each in page.items]


@pytest.fixture
def filled(memory: Access) -> Access:
    add(memory, "fact", tags=("Law", "a,b"), source="alice", when=NOON)
    add(memory, "rule", "rules", when=NOON + timedelta(hours=1), confidence=Confidence.HIGH)
    add(memory, "event", "events", when=NOON - timedelta(days=40))
    add(memory, "preference", "preferences", tags=("law",), when=NOON + timedelta(hours=2))
    add(memory, "procedure", "procedure", title="x", when=NOON + timedelta(hours=3))
    return memory


def test_the_newest_comes_first(filled: Access) -> None:
    assert bodies(filled) == ["procedure", "preference", "rule", "fact", "event"]
    assert bodies(filled, oldest_first=True) == ["event", "fact", "rule", "preference", "procedure"]


def test_of_equal_instants_the_one_written_last_comes_first(memory: Access) -> None:
    for n in range(5):
        add(memory, str(n), when=NOON)

    assert bodies(memory) == ["4", "3", "2", "1", "0"]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"kind": MemoryKind.SEMANTIC}, ["preference", "rule", "fact"]),
        ({"kind": MemoryKind.EPISODIC}, ["event"]),
        ({"category": MemoryCategory.RULES}, ["rule"]),
        ({"tags": ("LAW",)}, ["preference", "fact"]),
        ({"tags": ("law", "a,b")}, ["fact"]),
        ({"tags": ("a",)}, []),
        ({"source": "alice"}, ["fact"]),
        ({"confidence": Confidence.HIGH}, ["rule"]),
        ({"since": NOON + timedelta(hours=1)}, ["procedure", "preference", "rule"]),
        ({"until": NOON + timedelta(hours=1)}, ["fact", "event"]),
        ({"since": NOON.replace(tzinfo=None), "until": NOON + timedelta(hours=1)}, ["fact"]),
        ({"path_prefix": "/memory/semantic_memory/"}, ["rule", "fact"]),
        ({"path_prefix": FACTS}, ["fact"]),
        ({"path_prefix": "/memory/sem"}, []),
    ],
)
def test_filters_narrow_now_and_in_the_past(
    filled: Access, wanted: dict[str, Any], expected: list[str]
) -> None:
    assert bodies(filled, **wanted) == expected

    services.delete(filled, "/memory")
    assert bodies(filled, **wanted) == []
    assert bodies(filled, revision=5, **wanted) == expected


def test_superseded_entries_come_only_when_asked_for(memory: Access) -> None:
    old = add(memory, "old").entry.entry_id
    add(memory, "new", supersedes=old)
    services.append_file(
        memory, FACTS, "\n" + entry_text("mem_x", "by hand", more="superseded_by: mem_gone\n")
    )

    assert bodies(memory) == ["new"]
    assert (
        sorted(bodies(memory, active=False))
        == sorted(bodies(memory, active=False, revision=3))
        == ["by hand", "old"]
    )
    assert sorted(bodies(memory, active=None)) == ["by hand", "new", "old"]
    assert (bodies(memory, revision=1), bodies(memory, revision=1, active=False)) == (["old"], [])


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("oldest_first", [True, False])
def test_pages_hold_every_entry_once(memory: Access, limit: int, oldest_first: bool) -> None:
    for n in range(7):
        add(memory, str(n), when=NOON + timedelta(hours=n // 3))

    found, cursor = [], None
    while True:
        page = reads.list_entries(memory, oldest_first=oldest_first, cursor=cursor, limit=limit)
        found += [each.entry.body for each in page.items]
        if page.next is None:
            break
        cursor = page.next

    expected = [str(n) for n in range(7)]
    assert found == (expected if oldest_first else expected[::-1])


@pytest.mark.parametrize("cursor", ["x", "WyJhIl0", "WzEsMl0"])
def test_a_foreign_cursor_is_refused(filled: Access, cursor: str) -> None:
    with pytest.raises(InvalidText, match="cursor"):
        reads.list_entries(filled, cursor=cursor)


def test_entries_in_any_file_of_the_tree_are_listed_under_their_own_category(memory: Access) -> None:
    services.write_file(memory, "/notebook/trip.md", entry_text("mem_a", "rule", category="rules"))
    services.write_file(memory, "/notebook/index.md", entry_text("mem_b", "no memory file"))
    services.write_file(memory, "/.obsidian/x.md", entry_text("mem_c", "no memory file"))

    assert bodies(memory, category=MemoryCategory.RULES) == bodies(memory) == ["rule"]


def test_only_the_part_that_is_open_is_listed(filled: Access) -> None:
    agent = access_to(filled.tree.tenant, prefix="/memory/semantic_memory")

    assert bodies(agent) == bodies(agent, revision=5) == ["rule", "fact"]


# --- recent episodes --------------------------------------------------------------------------------------------


def test_recent_episodes_are_the_newest_ones_oldest_first(memory: Access) -> None:
    for n in range(6):
        add(memory, str(n), ["events", "errors", "feedbacks"][n % 3], when=NOON + timedelta(days=n))
    add(memory, "no episode", when=NOON + timedelta(days=9))

    assert [each.entry.body for each in reads.recent_episodes(memory, limit=3)] == ["3", "4", "5"]
    since = reads.recent_episodes(memory, since=NOON + timedelta(days=4))
    assert [each.entry.body for each in since] == ["4", "5"]


def test_superseded_episodes_are_left_out(memory: Access) -> None:
    old = add(memory, "old", "events").entry.entry_id
    add(memory, "corrected", "events", supersedes=old)

    assert [each.entry.body for each in reads.recent_episodes(memory)] == ["corrected"]


@pytest.mark.parametrize("limit", [0, -1])
def test_fewer_than_one_episode_is_refused(memory: Access, limit: int) -> None:
    with pytest.raises(InvalidText, match="limit"):
        reads.recent_episodes(memory, limit=limit)
