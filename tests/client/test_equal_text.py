"""What is the same text, the same letter and the same line is so at every door."""

import unicodedata
from pathlib import Path

import pytest

from memsvc.agents import MemoryStore, PostgresBackend, RemoteBackend, build_memory_backend
from memsvc.client import MemsvcClient
from memsvc.client.memory_tool import MemoryTool
from memsvc.format import MemoryCategory
from memsvc.tree.trees import tree_of
from tenants.models import Tenant
from tests.client.conftest import Connect
from tests.tree.support import entry_text

pytestmark = pytest.mark.django_db(transaction=True)

# A text, and what finds it.
ALIKE: list[tuple[str, list[str]]] = [
    (
        "Rain in İstanbul today",
        ["istanbul", "ISTANBUL", "İSTANBUL", "i\u0307stanbul", "I\u0307stanbul", "ıstanbul"],
    ),
    ("The roses of ISPARTA", ["ısparta", "isparta", "Isparta"]),
    ("In der Straße nebenan", ["strasse", "STRASSE", "STRAẞE", "straße", "Strasse NEBENAN"]),
    ("IN DER SCHLOSSGASSE", ["schloßgasse"]),
    ("Η ΟΔΟΣ ΣΟΦΟΣ", ["οδος", "οδοσ", "σοφος"]),
    ("An oﬃce with a ﬁle", ["office", "FILE"]),
    ("Ein cafe\u0301 am Eck", ["café", "CAFÉ", "cafe\u0301"]),
    ("Ẹ̀kọ́ ni ìlẹ̀kùn", ["ẹ̀kọ́", "ẸKỌ́".replace("Ẹ", "Ẹ\u0300"), unicodedata.normalize("NFD", "ẹ̀kọ́")]),
    ("ＦＵＬＬ width", ["full", "FULL", "ｆｕｌｌ"]),
    ("ﾊﾝｶﾞｸ の字", ["ハンガク"]),
    ("한글 이름", [unicodedata.normalize("NFD", "한글")]),
    ("نمی\u200cخواهم بروم", ["نمی\u200cخواهم", "نمیخواهم"]),
    ("co\u00adoperate ☕\ufe0f", ["cooperate", "CO\u00adOPERATE"]),
]


@pytest.fixture
def postgres(alice: Tenant) -> PostgresBackend:
    return PostgresBackend(tree_of(alice), root="/")


@pytest.fixture
def remote(client: MemsvcClient) -> RemoteBackend:
    return RemoteBackend(client, root="/")


@pytest.fixture
def stores(tmp_path: Path, alice: Tenant, client: MemsvcClient) -> dict[str, MemoryStore]:
    return {
        "files": MemoryStore(build_memory_backend(tmp_path / "memory", for_deep_agent=False)),
        "PostgresBackend": MemoryStore(PostgresBackend(tree_of(alice))),
        "RemoteBackend": MemoryStore(RemoteBackend(client)),
    }


def test_letters_that_are_one_are_found_at_every_door(
    stores: dict[str, MemoryStore], client: MemsvcClient
) -> None:
    for store in (stores["files"], stores["PostgresBackend"]):
        for text, _ in ALIKE:
            store.write(MemoryCategory.FACTS, text)

    missed = []
    for text, queries in ALIKE:
        for query in queries:
            doors = {name: [hit.entry.body for hit in store.search(query)] for name, store in stores.items()}
            doors |= {
                mode: [hit.entry.body for hit in client.search(query, mode=mode).items]
                for mode in ("words", "substring", "lexical")
            }
            missed += [(name, text, query) for name, bodies in doors.items() if text not in bodies[:1]]
    assert missed == []


def test_tags_are_one_where_letters_are(stores: dict[str, MemoryStore], client: MemsvcClient) -> None:
    for store in (stores["files"], stores["PostgresBackend"]):
        store.write(MemoryCategory.FACTS, "x", tags=("İstanbul", "Straße", "نمی\u200cخواهم"))
        store.write(MemoryCategory.FACTS, "another", tags=("Strass",))

    for tag in ("istanbul", "ISTANBUL", "ıstanbul", "STRASSE", "STRAẞE", "نمیخواهم"):
        found = {
            name: [hit.entry.body for hit in store.search(tags=(tag,))] for name, store in stores.items()
        }
        found["any"] = [hit.entry.body for hit in client.search(any_tags=[tag]).items]
        assert all(bodies == ["x"] for bodies in found.values()), (tag, found)


def test_what_is_not_the_same_letter_is_not_found(
    stores: dict[str, MemoryStore], client: MemsvcClient
) -> None:
    stores["PostgresBackend"].write(MemoryCategory.FACTS, "żubr, ė, Oslo")

    for query in ("zubr", "e, o", "0slo"):
        assert client.search(query, mode="substring").items == ()


def test_a_pattern_names_files_in_any_form(
    client: MemsvcClient, connect: Connect, postgres: PostgresBackend, remote: RemoteBackend
) -> None:
    path, folder = "/Café/Über é.md", "/Café"
    client.write_file(path, "needle\n")
    stored = client.grep("needle").items[0].path
    globs = ["**/Über*.md", "Café/*.md", "*é.md", "**/{Über,x} é.md", "**/[Ü]ber é.md", "/Café/Über é.md"]

    for pattern in globs:
        for text in (pattern, loose(pattern)):
            assert [each.path for each in client.glob(text).items] == [stored], ascii(text)
            assert [each.path for each in client.grep("needle", glob=text).items] == [stored]
            for backend in (postgres, remote):
                assert [each["path"] for each in backend.glob(text).matches or []] == [stored]
                assert [each["path"] for each in backend.grep("needle", glob=text).matches or []] == [stored]
    assert [each.path for each in client.iter_files(loose(folder))] == [stored]
    assert [each.path for each in client.grep("needle", path=loose(folder)).items] == [stored]
    assert client.read_text(loose(path)) == "needle\n"
    assert len(client.list_revisions(path=loose(path)).items) == 1
    assert len(client.blame(loose(path)).lines) == 1
    assert [each.path for each in connect(path_prefix=loose(folder)).iter_files("/")] == [stored]


def loose(text: str) -> str:
    return unicodedata.normalize("NFD", text)


ODD_LINES = "\ufeffa\x0cb\x0bc\nd\x85e\u2028needle one\r\nf\rneedle two\x1c\nneedle three"


def test_a_line_has_one_number_at_every_door(
    client: MemsvcClient, postgres: PostgresBackend, remote: RemoteBackend
) -> None:
    path = "/memory/notes.md"
    client.write_file(
        path, ODD_LINES + "\n\n" + entry_text("mem_1", "A kettle\x0bof needle four\n\nneedle five")
    )
    lines = client.read_text(path).splitlines()

    tool = MemoryTool(client).run({"command": "view", "path": "/memories/notes.md"}).text
    assert tool.splitlines()[1:] == [f"{n:>6}\t{line}" for n, line in enumerate(lines, start=1)]
    assert [line.text for line in client.blame(path).lines] == lines
    assert [line.line for line in client.blame(path).lines] == [*range(1, len(lines) + 1)]
    for number, line in enumerate(lines, start=1):
        window = client.read_lines(path, offset=number - 1, limit=1)
        assert (window.text.rstrip("\n\x0c\x0b\x1c\x85\u2028"), window.total_lines) == (line, len(lines))
    hit = client.search("kettle", mode="lexical").items[0]
    assert hit.line is not None
    assert lines[hit.line - 1] == "---"

    near, far = postgres.grep("needle").matches or [], remote.grep("needle").matches or []
    found = [(each.line, each.text) for each in client.grep("needle").items]
    assert (
        found
        == [(each["line"], each["text"]) for each in near]
        == [(each["line"], each["text"]) for each in far]
    )
    assert len(found) == 5
    # What is shown may go on over more of a reader's lines: it begins at the one with its number.
    assert all(text.startswith(lines[number - 1]) for number, text in found)
