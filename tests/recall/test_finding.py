"""What people and agents type, and what must be found first: by words alone, so that each answer has one reason."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from memsvc.recall.search import Mode, Query, search
from memsvc.tree.access import Access
from memsvc.tree.reads import EntryFilter, read_file
from memsvc.tree.services import write_file
from memsvc.tree.trees import describe_tree
from tests.tree.support import add, entry_text

pytestmark = pytest.mark.django_db

IDENTIFIERS = [
    "ADR-016 chose Postgres over the document store.",
    "ADR-017 dropped the message broker.",
    "The entry point is C:\\repo\\main.py on the build machine.",
    "Rename foo_bar before the release of v1.2.",
    "The old helper foo-bar stays until v1.20 is out.",
    "Write to ops@example.org when the disk is full.",
    "The module memsvc.tree.services holds the writes.",
    "The parser is written in C++ and the tests in C#.",
    "Call +49 30 1234567 for the door.",
    "Error E0308 means that the types differ.",
    "PostgresBackend mounts a folder of the tree.",
]


def found(access: Access, query: str, mode: Mode = Mode.LEXICAL, limit: int = 10) -> list[str]:
    return [hit.entry.body for hit in search(access, Query(text=query, mode=mode), limit=limit).items]


def store(access: Access, bodies: Sequence[str], category: str = "facts") -> None:
    for body in bodies:
        add(access, body, category)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("ADR-016", 0),
        ("what did adr-017 decide?", 1),
        ("C:\\repo\\main.py", 2),
        ("main.py", 2),
        ("foo_bar", 3),
        ("v1.2", 3),
        ("foo-bar", 4),
        ("v1.20", 4),
        ("ops@example.org", 5),
        ("memsvc.tree.services", 6),
        ("C++", 7),
        ("C#", 7),
        ("1234567", 8),
        ("E0308", 9),
        ("postgres backend", 10),
        ("PostgresBackend", 10),
    ],
)
def test_identifiers_are_found_as_they_are_written(memory: Access, query: str, first: int) -> None:
    store(memory, IDENTIFIERS)

    assert found(memory, query)[0] == IDENTIFIERS[first]


UNSPACED = [
    "外币汇率换算表在财务文件夹里。",
    "下周的会议改到星期四。",
    "東京の支社は来月引っ越します。",
    "サーバーの再起動は深夜に行う。",
    "서울 지사의 회의는 목요일입니다.",
    "배포는 매주 금요일에 합니다.",
    "การประชุมเลื่อนไปวันพฤหัสบดี",
    "新しいiPhoneの設定を確認する。",
]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("汇率", 0),
        ("会议", 1),
        ("星期四", 1),
        ("東京", 2),
        ("引っ越し", 2),
        ("再起動", 3),
        ("回议 서울 회의", 4),
        ("배포", 5),
        ("금요일", 5),
        ("ประชุม", 6),
        ("iPhone 設定", 7),
        ("表", 0),
    ],
)
def test_scripts_without_spaces_are_found_by_their_characters(memory: Access, query: str, first: int) -> None:
    store(memory, UNSPACED)

    assert found(memory, query)[0] == UNSPACED[first]


GERMAN = [
    "Die Donaudampfschifffahrtsgesellschaft hat ihren Sitz in Wien.",
    "Unsere Verträge laufen zum Jahresende aus.",
    "Der Müller liefert das Mehl am Dienstag.",
    "Die Straße vor dem Lager ist gesperrt.",
]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Dampfschifffahrt", 0),
        ("Vertrag", 1),
        ("muller", 2),
        ("Strasse", 3),
        ("MÜLLER", 2),
    ],
)
def test_german_compounds_endings_and_umlauts(memory: Access, query: str, first: int) -> None:
    describe_tree(memory, language="german")
    store(memory, GERMAN)

    assert found(memory, query)[0] == GERMAN[first]


ACCENTS = ["Le café de la gare ouvre à sept heures.", "Señor Núñez vive en Málaga.", "Žižkov je v Praze."]


@pytest.mark.parametrize(
    ("query", "first"),
    [("cafe gare", 0), ("CAFÉ", 0), ("cafe\u0301", 0), ("Nunez Malaga", 1), ("zizkov", 2)],
)
def test_accents_may_be_left_out(memory: Access, query: str, first: int) -> None:
    store(memory, ACCENTS)

    assert found(memory, query)[0] == ACCENTS[first]


@pytest.mark.parametrize(
    "query", ["kuberntes", "Kubernets upgrade", "kubern", "kubernettes cluster", "kubernetes"]
)
def test_misspelt_and_unfinished_words_find_what_was_meant(memory: Access, query: str) -> None:
    store(memory, ["Lunch is at noon.", "The Kubernetes nodes run Debian.", "The lift is out of order."])

    assert found(memory, query)[0] == "The Kubernetes nodes run Debian."


def test_who_asks_for_what_is_not_so_gets_it_first(memory: Access) -> None:
    store(
        memory,
        ["Anna eats meat on Sundays.", "Bert does not eat meat at all.", "Meat is sold at the market."],
    )

    assert found(memory, "who does not eat meat?")[0] == "Bert does not eat meat at all."


def test_stop_words_and_single_letters_are_found_as_they_stand(memory: Access) -> None:
    store(
        memory,
        ["To be or not to be, that is the question.", "The language C is older.", "R draws the plots."],
    )

    assert found(memory, "to be or not to be")[0].startswith("To be")
    assert found(memory, "the language C")[0] == "The language C is older."
    assert found(memory, "R")[0] == "R draws the plots."
    assert "To be or not to be, that is the question." in found(memory, "that is the")


def test_an_entry_is_found_by_its_tags_alone(memory: Access) -> None:
    add(memory, "Invoices go out on the first.", tags=("billing", "ACME Corp"))
    add(memory, "The roof was mended.", tags=("building",))

    assert found(memory, "billing")[0] == "Invoices go out on the first."
    assert found(memory, "anything about acme corp?")[0] == "Invoices go out on the first."


@pytest.mark.parametrize(
    ("query", "days_ago"),
    [
        ("what happened yesterday?", 1),
        ("what did we decide 3 days ago", 3),
        ("what was done today?", 0),
    ],
)
def test_words_about_time_prefer_what_is_of_that_time(memory: Access, query: str, days_ago: int) -> None:
    today = datetime.now(tz=UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    for days in (0, 1, 3, 8, 40):
        # Facts, which are in one file on the first of a month too.
        add(memory, f"We decided what was done, case {days}.", "facts", when=today - timedelta(days=days))

    assert found(memory, query)[0] == f"We decided what was done, case {days_ago}."


@pytest.mark.parametrize(
    "query",
    [
        "a & b | !c <-> (d",
        "'; DROP TABLE tree_block; --",
        "%_\\",
        "foo:* bar:A",
        "\\",
        "''",
        "((((",
        "*",
        "🙂",
        "\u202e",
        "a" * 4000,
        "x " * 2000,
        "=~!",
        "汇" * 1000,
    ],
)
@pytest.mark.parametrize("mode", list(Mode))
def test_a_query_is_data_and_never_syntax(memory: Access, query: str, mode: Mode) -> None:
    add(memory, "Nothing of the kind.")

    search(memory, Query(text=query, mode=mode))


def test_an_empty_query_browses_newest_first(memory: Access) -> None:
    store(memory, ["one", "two", "three"])

    assert found(memory, "", Mode.HYBRID) == ["three", "two", "one"]
    assert found(memory, " \n", Mode.HYBRID) == ["three", "two", "one"]


def test_filters_come_before_the_ranking_and_give_full_pages(memory: Access) -> None:
    for number in range(60):
        add(memory, f"The kettle of room {number} is broken.", tags=("kettle",) if number % 10 == 0 else ())

    wanted = EntryFilter(tags=("kettle",))
    page = search(memory, Query(text="broken kettle", mode=Mode.LEXICAL, wanted=wanted), limit=6)

    assert len(page.items) == 6
    assert all(hit.entry.tags == ("kettle",) for hit in page.items)


def test_pages_hold_every_hit_once_although_the_tree_changes(memory: Access) -> None:
    store(
        memory, [f"Kettle number {word} whistles." for word in ("one", "two", "three", "four", "five", "six")]
    )
    query = Query(text="kettle", mode=Mode.LEXICAL)
    seen: list[str] = []
    cursor = None
    while True:
        page = search(memory, query, cursor=cursor, limit=2)
        seen += [hit.entry.body for hit in page.items]
        store(memory, [f"Another kettle came after {len(seen)} others had been seen."])
        cursor = page.next
        if cursor is None:
            break

    assert len(seen) == len(set(seen)) == 6


def test_a_hit_says_where_it_is_and_why(memory: Access) -> None:
    add(memory, "Something else.")
    add(memory, "The backup of the Hamburg site runs at four in the morning.")

    hit = search(memory, Query(text="when do Hamburg backups run?", mode=Mode.LEXICAL)).items[0]

    (highlight,) = hit.highlights
    marked = {highlight.text[start:end] for start, end in highlight.ranges}
    assert {"backup", "Hamburg", "runs"} == marked
    assert hit.parts["bm25"] > 0
    assert hit.path == "/memory/semantic_memory/facts.md"
    lines = read_file(memory, hit.path).data.decode().splitlines()
    assert hit.line is not None
    assert lines[hit.line - 1 : hit.line + 1] == ["---", f"id: {hit.entry.entry_id}"]


@pytest.mark.parametrize(
    "above",
    [
        "---\nid: mem_open\n\n<!-- -->\n\n",
        "",
        "\n\n",
        " \n\t\n",
        "\ufeff",
        "\ufeff\n\n",
        "Notes.\n\n\n",
        "\r\n\r\n",
    ],
)
def test_an_entry_begins_at_its_fence(memory: Access, above: str) -> None:
    text = above + entry_text("mem_1", "A kettle.") + "\n\n" + entry_text("mem_2", "Another kettle of old.")
    write_file(memory, "/memory/notes.md", text)
    lines = text.splitlines()

    hits = search(memory, Query(text="kettle", mode=Mode.LEXICAL)).items

    assert {hit.entry.entry_id: hit.line for hit in hits} == {
        entry_id: lines.index(f"id: {entry_id}") for entry_id in ("mem_1", "mem_2")
    }
