import pytest

from memsvc.format import InvalidText, MemoryCategory
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.reads import EntryFilter
from tests.tree.support import FACTS, access_to, add

pytestmark = pytest.mark.django_db


def bodies(access: Access, query: str, revision: int | None = None) -> list[str]:
    return [each.entry.body for each in reads.search_entries(access, query, revision=revision).items]


@pytest.mark.parametrize(
    ("body", "query"),
    [
        ("Argo CD runs on staging.", "argo staging"),
        ("Argo CD runs on staging.", "STAGING  \n argo"),
        ("two\nlines", "two lines"),
        ("Die Straße ist gesperrt.", "strasse"),
        ("Die Strasse ist gesperrt.", "Straße"),
        ("caf\u00e9", "cafe\u0301"),
        ("\ufb01ne", "fine"),
        ("100 % \\ _x_", "% \\ _x_"),
    ],
)
def test_words_are_found_in_any_form_and_order(memory: Access, body: str, query: str) -> None:
    add(memory, "something else")
    add(memory, body)

    assert bodies(memory, query) == [body]


@pytest.mark.parametrize("field", ["summary", "source", "tags", "id"])
def test_every_field_is_searched(memory: Access, field: str) -> None:
    entry = add(memory, "body", summary="the Summary", source="a Source", tags=("one Tag",)).entry

    query = {"summary": "summary", "source": "source", "tags": "tag", "id": entry.entry_id[4:20]}[field]

    assert bodies(memory, query) == ["body"]


def test_an_empty_query_admits_all_newest_first(memory: Access) -> None:
    for n in range(3):
        add(memory, str(n))

    assert bodies(memory, " \n") == ["2", "1", "0"]


def test_superseded_and_changed_text_is_not_found_but_in_the_past(memory: Access) -> None:
    old = add(memory, "needle").entry.entry_id
    add(memory, "thread", supersedes=old)

    assert (bodies(memory, "needle"), bodies(memory, "needle", revision=1)) == ([], ["needle"])
    found = reads.search_entries(memory, "needle", EntryFilter(active=None)).items
    assert [each.entry.entry_id for each in found] == [old]


def test_filters_and_pages_hold_for_searches(memory: Access) -> None:
    for n in range(5):
        add(memory, f"needle {n}", "facts" if n % 2 else "rules")
    rules = EntryFilter(category=MemoryCategory.RULES)

    first = reads.search_entries(memory, "needle", rules, limit=2)
    rest = reads.search_entries(memory, "needle", rules, limit=2, cursor=first.next)

    assert [each.entry.body for each in (*first.items, *rest.items)] == ["needle 4", "needle 2", "needle 0"]
    assert rest.next is None


@pytest.mark.parametrize("query", ["a\0b", "\ud800", "x" * 5000])
def test_a_query_that_no_text_can_hold_is_refused(memory: Access, query: str) -> None:
    with pytest.raises(InvalidText, match="query"):
        reads.search_entries(memory, query)


def test_only_the_part_that_is_open_is_searched(memory: Access) -> None:
    add(memory, "needle in facts")
    add(memory, "needle in rules", "rules")

    assert bodies(access_to(memory.tree.tenant, prefix=FACTS), "needle") == ["needle in facts"]
    services.delete(memory, FACTS)
    assert bodies(memory, "needle") == ["needle in rules"]
