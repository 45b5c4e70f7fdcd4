from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from memsvc.format import Confidence, InvalidText, MemoryCategory
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.cursors import cursor_of_text
from memsvc.tree.reads import EntryFilter
from tests.tree.support import FACTS, AssertNumQueries, access_to, add, entry_text

pytestmark = pytest.mark.django_db

WHEN = datetime(2026, 5, 1, tzinfo=UTC)


def bodies(access: Access, query: str, revision: int | None = None) -> list[str]:
    return [found.entry.body for found in reads.search_substring(access, query, revision=revision).items]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("GEARS on", True),
        ("  gears on \n", True),
        ("ears o", True),
        ("on gears", False),
        ("gears  on", False),
        ("ring\nagain", True),
        ("ring again", False),
        # From the summary into the body, and from the body into the tags.
        ("bicycle oil the", True),
        ("again workshop spring", True),
        ("100 % \\ _x_", True),
        ("100 %", True),
        ("1_0", False),
        ("Caf\u00e9", True),
        ("cafe\u0301", True),
        ("cafe", False),
        ("stra\u00dfe", True),
        ("strasse", True),
        ("hand-written", False),
        ("mem_", False),
    ],
)
def test_the_query_is_one_piece_of_the_text(memory: Access, query: str, found: bool) -> None:
    body = "Oil the gears on the chain ring\nagain; 100 % \\ _x_ at the CAFE\u0301 in the Stra\u00dfe"
    add(memory, body + "\nagain", summary="Bicycle", tags=("Workshop", "spring"), source="hand-written")
    add(memory, "Nothing of the kind")

    assert bodies(memory, query) == [body + "\nagain"] * found


def test_the_order_is_by_time_then_path_then_place(memory: Access) -> None:
    one = add(memory, "pump one", "rules", when=WHEN)
    two = add(memory, "pump two", when=WHEN)
    three = add(memory, "pump three", when=WHEN)
    four = add(memory, "pump four", when=WHEN.replace(month=4))
    five = add(memory, "pump five", when=WHEN.replace(month=6))
    expected = [each.entry.entry_id for each in (five, two, three, one, four)]

    for query in ("pump", ""):
        found, cursor = [], None
        while True:
            page = reads.search_substring(memory, query, limit=2, cursor=cursor)
            found += [each.entry.entry_id for each in page.items]
            if (cursor := page.next) is None:
                break
        assert found == expected


def test_what_only_looks_alike_takes_no_place_of_a_page(
    memory: Access, django_assert_num_queries: AssertNumQueries
) -> None:
    add(memory, "spare tube", when=WHEN)
    for _ in range(8):
        add(memory, "spare\ntube", when=WHEN.replace(month=6))

    # 1.-2. begin, its settings  3.-5. entries: two, four and then eight of them  6. end
    with django_assert_num_queries(6):
        page = reads.search_substring(memory, "spare tube", limit=1)

    assert ([found.entry.body for found in page.items], page.next) == (["spare tube"], None)


def test_a_page_costs_one_statement_whatever_ids_and_sources_hold(
    memory: Access, django_assert_num_queries: AssertNumQueries
) -> None:
    for _ in range(20):
        add(memory, "body", source="agent")
    services.append_file(memory, FACTS, "\n\n" + entry_text("agent", "agent", more="source: ''\n"))

    with django_assert_num_queries(4):  # 1.-2. begin, its settings  3. entries with their files  4. end
        assert bodies(memory, "agent") == ["agent"]


def test_filters_and_earlier_revisions_hold(memory: Access) -> None:
    old = add(memory, "valve", confidence=Confidence.HIGH).entry.entry_id
    add(memory, "tyre", supersedes=old)
    wanted = EntryFilter(category=MemoryCategory.FACTS, confidence=Confidence.HIGH, active=None)

    assert (bodies(memory, "valve"), bodies(memory, "valve", revision=1)) == ([], ["valve"])
    assert [found.entry.entry_id for found in reads.search_substring(memory, "VALVE", wanted).items] == [old]


def test_a_key_for_a_folder_finds_what_lies_in_it(memory: Access) -> None:
    add(memory, "lamp", "rules")
    narrow = access_to(memory.tree.tenant, prefix="/memory/procedural_memory")

    assert (bodies(memory, "lamp"), bodies(narrow, "lamp")) == (["lamp"], [])


@pytest.mark.parametrize(
    "cursor", ["x", cursor_of_text("x"), "WyIyMDI2LTAxLTAxIiwgIi94IiwgIjEiLCAiMSJd", "bnVsbA"]
)
def test_a_foreign_cursor_is_refused(memory: Access, cursor: str) -> None:
    with pytest.raises(InvalidText, match="cursor"):
        reads.search_substring(memory, cursor=cursor)


def test_what_was_stored_before_is_folded_anew(memory: Access) -> None:
    add(memory, "Rain in İstanbul, نمی\u200cخواهم, Ẹ̀kọ́", tags=("İzmir",))
    services.retire_entry(memory, add(memory, "İ gone").entry.entry_id)
    add(memory, "plain")
    as_folded = found_by()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tree_block SET search_text = 'i\u0307stanbul', tag_keys = '{x}', tsv = NULL "
            "WHERE text ~ '[^[:ascii:]]'"
        )
    assert found_by() != as_folded

    # With models as a migration has them: of their fields only.
    then = MigrationExecutor(connection).loader.project_state(("tree", "0011_folding")).apps
    import_module("migrations.tree.0011_folding").fill(then, None)

    assert found_by() == as_folded


def found_by() -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT text, search_text, tag_keys, tsv FROM tree_block WHERE kind = 'entry' ORDER BY id"
        )
        return list(cursor.fetchall())
