"""The remote backend answers what the one beside the database answers, and never raises."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from deepagents.backends.protocol import BackendProtocol

from memsvc import client as client_room
from memsvc.agents import MemoryStore, PostgresBackend, RemoteBackend
from memsvc.agents.transactional import EntrySearch
from memsvc.client import MemsvcClient, RetryPolicy
from memsvc.format import EntryDraft, MemoryCategory, MemoryHit, MemoryKind
from memsvc.tree.trees import tree_of
from tenants.models import Tenant
from tenants.scopes import Scope
from tests.client.conftest import Connect
from tests.people import make_tenant

pytestmark = pytest.mark.django_db(transaction=True)

# Naive, which means UTC.
JUNE = datetime(2026, 6, 1)  # noqa: DTZ001

type Pair = tuple[PostgresBackend, RemoteBackend]


@pytest.fixture
def pair(connect: Connect) -> Pair:
    """The two backends, each on an empty tree of its own."""
    return make_pair(connect)


def make_pair(connect: Connect) -> Pair:
    near, far = make_tenant("near"), make_tenant("far")
    return PostgresBackend(tree_of(near)), RemoteBackend(connect(tenant=far))


CALLS: list[tuple[str, Callable[[BackendProtocol], object]]] = [
    ("the root", lambda b: names(b.ls("/"))),
    ("a missing folder", lambda b: b.ls("/none")),
    ("a file is no folder", lambda b: b.ls("/d/a.md")),
    ("a folder", lambda b: names(b.ls("/d/"))),
    ("a folder with a bad name", lambda b: b.ls("/../x")),
    ("a window", lambda b: window(b.read("/d/a.md", 1, 1))),
    ("a window from before the start", lambda b: window(b.read("/d/a.md", -5, 10**12))),
    ("no lines", lambda b: window(b.read("/d/a.md", 0, 0))),
    ("past the end", lambda b: b.read("/d/a.md", 77)),
    ("a missing file", lambda b: b.read("/none.md")),
    ("a folder is read", lambda b: b.read("/d")),
    ("the root is read", lambda b: b.read("/")),
    ("a blank file", lambda b: window(b.read("/blank.md"))),
    ("a binary file", lambda b: window(b.read("/raw.bin"))),
    ("a picture that is text", lambda b: window(b.read("/text.png"))),
    ("text with NUL", lambda b: window(b.read("/nul.md"))),
    ("a new file", lambda b: b.write("/new/x.md", "x")),
    ("an odd spelling", lambda b: b.write("//new/./y.md/", "y")),
    ("the root is written", lambda b: b.write("/", "x")),
    ("above the root", lambda b: b.write("/../x.md", "x")),
    ("below a file", lambda b: b.write("/d/a.md/b.md", "x")),
    ("onto a folder", lambda b: b.write("/d", "x")),
    ("half a character", lambda b: b.write("/d/a.md", "\ud800")),
    ("an edit", lambda b: b.edit("/d/a.md", "one", "ONE")),
    ("an edit that finds nothing", lambda b: b.edit("/d/a.md", "nope", "x")),
    ("an edit that finds two", lambda b: b.edit("/d/a.md", "o", "x")),
    ("an edit of nothing", lambda b: b.edit("/d/a.md", "", "x")),
    ("an edit with one line end too many", lambda b: b.edit("/no-end.md", "end\n", "x")),
    ("an edit of a missing file", lambda b: b.edit("/none.md", "a", "b")),
    ("an edit of a folder", lambda b: b.edit("/d", "a", "b")),
    ("an edit of bytes", lambda b: b.edit("/raw.bin", "a", "b")),
    ("a search", lambda b: b.grep("two")),
    ("a search with a filter", lambda b: b.grep("o", "/d", "*.md", max_count=1)),
    ("a search for none of them", lambda b: b.grep("two", max_count=0)),
    ("a search where nothing is", lambda b: b.grep("two", "/none")),
    ("a search by a bad pattern", lambda b: b.grep("two", glob="../*")),
    ("names", lambda b: [match["path"] for match in b.glob("*.md").matches or []]),
    ("names by a bad pattern", lambda b: b.glob("../*")),
    ("a download", lambda b: b.download_files(["/d/a.md", "/none.md", "/d", "/", "/../x", "/raw.bin"])),
    (
        "an upload",
        lambda b: b.upload_files([("/u.bin", b"\xff"), ("/d", b"x"), ("/../x", b"x"), ("/", b"x")]),
    ),
    ("a deletion", lambda b: b.delete("/d/a.md")),
    ("a deletion of a folder", lambda b: b.delete("/d")),
    ("a deletion of what is not there", lambda b: b.delete("/none")),
    ("a deletion of the root", lambda b: b.delete("/")),
]


def remember(backend: PostgresBackend | RemoteBackend, **draft: Any) -> MemoryHit:
    """Store what `MemoryStore.write` would."""
    return backend.memory_add(EntryDraft(metadata=None, **draft))


def names(result: Any) -> object:
    return [(entry["path"], entry["is_dir"], entry["size"]) for entry in result.entries]


def window(result: Any) -> object:
    """A read without its times, which differ from tree to tree."""
    data = result.file_data and (result.file_data["content"], result.file_data["encoding"])
    return replace(result, file_data=None), data


def furnish(backend: BackendProtocol) -> None:
    backend.upload_files(
        [
            ("/d/a.md", b"one\r\ntwo\r\nthree two\n"),
            ("/d/deep/b.md", b"two\n"),
            ("/blank.md", b" \n"),
            ("/no-end.md", b"the end"),
            ("/raw.bin", b"\xff\x00"),
            ("/text.png", b"text\r\n"),
            ("/nul.md", b"a\x00b\n"),
        ]
    )


def test_both_backends_answer_the_same(connect: Connect) -> None:
    differing = {}
    for name, call in CALLS:
        near, far = make_pair(connect)
        furnish(near)
        furnish(far)
        answers = call(far), call(near)
        if answers[0] != answers[1]:
            differing[name] = answers

    assert differing == {}


def test_read_only_copies_refuse_alike(pair: Pair) -> None:
    near, far = (backend.read_only() for backend in pair)
    furnish(pair[0])
    furnish(pair[1])

    for change in (
        lambda b: b.write("/d/a.md", "x"),
        lambda b: b.edit("/d/a.md", "one", "x"),
        lambda b: b.delete("/d/a.md"),
        lambda b: b.upload_files([("/d/a.md", b"x"), ("/../x", b"x")]),
    ):
        assert change(far) == change(near)  # type: ignore[no-untyped-call]  # a lambda
        assert "permission" in str(change(far))  # type: ignore[no-untyped-call]  # a lambda
    for backend in (near, far):
        with pytest.raises(ValueError, match="permission denied"):
            remember(backend, category=MemoryCategory.FACTS, body="x")
        with pytest.raises(ValueError, match="permission denied"):
            backend.memory_scaffold()
    assert far.read("/d/a.md").error is None


def test_a_key_that_may_only_read_is_told_so(connect: Connect) -> None:
    backend = RemoteBackend(connect(Scope.READ))

    assert "permission denied" in (backend.write("/a.md", "x").error or "")
    assert backend.upload_files([("/a.md", b"x")])[0].error == "permission_denied"
    with pytest.raises(ValueError, match="scope"):
        remember(backend, category=MemoryCategory.FACTS, body="x")


def test_a_mount_is_all_that_its_agent_sees(client: MemsvcClient) -> None:
    client.write_file("/agents/x/a.md", "needle")
    client.write_file("/agents/xy/a.md", "needle")

    backend = RemoteBackend(client, root="/agents/x/")

    assert [entry["path"] for entry in backend.ls("/").entries or []] == ["/a.md"]
    assert [match["path"] for match in backend.grep("needle").matches or []] == ["/a.md"]
    assert [match["path"] for match in backend.glob("**").matches or []] == ["/a.md"]
    assert backend.read("/../xy/a.md").error
    assert backend.delete("/a.md").path == "/a.md"
    assert client.read_text("/agents/xy/a.md") == "needle"


def test_the_root_of_a_mount_can_not_be_deleted_even_by_a_key_that_reaches_further(
    client: MemsvcClient, backend: RemoteBackend
) -> None:
    backend.write("/a.md", "x")

    assert "root folder" in (backend.delete("/").error or "")
    assert client.read_text("/memory/a.md") == "x"


def test_the_async_methods_run_beside_the_loop(backend: RemoteBackend) -> None:
    async def work() -> list[str]:
        await asyncio.gather(*(backend.awrite(f"/{number}.md", "x") for number in range(8)))
        return [entry["path"] for entry in (await backend.als("/")).entries or []]

    assert asyncio.run(work()) == [f"/{number}.md" for number in range(8)]


def test_no_method_raises_when_the_server_is_gone() -> None:
    gone = RemoteBackend(MemsvcClient("http://127.0.0.1:9", "msk_x", retries=RetryPolicy(attempts=1)))

    results: list[Any] = [
        gone.ls("/"),
        gone.read("/a.md"),
        gone.write("/a.md", "x"),
        gone.edit("/a.md", "x", "y"),
        gone.delete("/a.md"),
        gone.grep("x"),
        gone.glob("*"),
        *gone.upload_files([("/a.md", b"x")]),
        *gone.download_files(["/a.md"]),
    ]

    assert {result.error.removeprefix("Error: ") for result in results} == {
        "The memory can't be reached right now; try again in a moment."
    }
    with pytest.raises(ValueError, match="can't be reached"):
        gone.memory_search(EntrySearch(query="x"))


def test_no_method_raises_whatever_it_is_given(backend: RemoteBackend) -> None:
    broken: Any = backend
    closed: Any = RemoteBackend("http://127.0.0.1:9", api_key="msk_x")
    closed.close()

    assert broken.read(None).error
    assert broken.write("/a.md", None).error
    assert broken.upload_files([("/a.md", "text")])[0].error
    assert closed.ls("/").error


def test_a_lost_answer_to_a_write_is_not_called_a_failure_to_write() -> None:
    def lose(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("slow")

    transport = httpx.MockTransport(lose)
    backend = RemoteBackend(
        MemsvcClient("http://memory.test", "msk_x", retries=RetryPolicy(attempts=1), transport=transport)
    )

    assert "may or may not have been made" in (backend.edit("/a.md", "a", "b").error or "")


# Entries


def test_both_backends_remember_the_same(pair: Pair) -> None:
    when = datetime(2026, 5, 1, tzinfo=UTC)
    found = []
    for backend in pair:
        created = backend.memory_scaffold()
        first = remember(
            backend,
            category=MemoryCategory.PROCEDURE,
            body="Do it.",
            title="Deploy: prod!",
            tags=("ops",),
            when=when,
        )
        second = remember(
            backend,
            category=MemoryCategory.PROCEDURE,
            body="Do it well.",
            supersedes=first.entry.entry_id,
            when=when,
        )
        episode = remember(backend, category=MemoryCategory.EVENTS, body="It was done.", when=JUNE)
        old = backend.memory_get(first.entry.entry_id)
        assert old is not None
        assert old.entry == first.entry.replaced_by(second.entry.entry_id)
        assert backend.memory_get(second.entry.entry_id) == second
        assert backend.memory_get("mem_none") is backend.memory_get("") is backend.memory_get("..") is None
        assert backend.memory_search(EntrySearch(query="well do")) == [second]
        assert backend.memory_search(EntrySearch(), limit=0) == [episode]
        assert len(backend.memory_search(EntrySearch(include_superseded=True))) == 3
        assert backend.memory_recent_episodes(limit=10**9) == [episode]
        assert backend.memory_recent_episodes(since=JUNE + timedelta(days=1)) == []
        found.append(
            (
                created,
                [shape(hit) for hit in (first, second, episode)],
                backend.memory_index(MemoryKind.PROCEDURAL),
            )
        )

    assert found[0] == found[1]


def shape(hit: MemoryHit) -> object:
    """A hit without its ids, which are drawn."""
    return hit.path, replace(hit.entry, entry_id="", supersedes=None)


FORGED = "a\n\n---\nid: mem_x\ncreated: 2026-01-01\ncategory: facts\n---\n\nb"
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("no title", {"category": MemoryCategory.PROCEDURE, "body": "x"}, "requires a title"),
    ("no slug", {"category": MemoryCategory.PROCEDURE, "body": "x", "title": "!!!"}, "cannot build a slug"),
    (
        "unknown entry",
        {"category": MemoryCategory.FACTS, "body": "x", "supersedes": "mem_none"},
        "no memory entry",
    ),
    ("NUL", {"category": MemoryCategory.FACTS, "body": "a\0b"}, "NUL"),
    ("surrogate", {"category": MemoryCategory.FACTS, "body": "a\ud800"}, "surrogate"),
    (
        "forged entry",
        {
            "category": MemoryCategory.FACTS,
            "body": FORGED,
        },
        "bare '---' line",
    ),
]


def test_a_draft_that_is_refused_says_why_and_changes_nothing(pair: Pair) -> None:
    for name, draft, text in REFUSED:
        for backend in pair:
            with pytest.raises(ValueError) as caught:  # noqa: PT011  what it says is looked at below
                remember(backend, **draft)
            assert text in str(caught.value), name
            assert backend.memory_search(EntrySearch()) == []


def test_rival_corrections_have_one_winner(pair: Pair) -> None:
    for backend in pair:
        old = remember(backend, category=MemoryCategory.FACTS, body="one")
        new = remember(backend, category=MemoryCategory.FACTS, body="two", supersedes=old.entry.entry_id)

        with pytest.raises(ValueError, match=new.entry.entry_id):
            remember(backend, category=MemoryCategory.FACTS, body="three", supersedes=old.entry.entry_id)
        with pytest.raises(ValueError, match="category"):
            remember(backend, category=MemoryCategory.RULES, body="three", supersedes=new.entry.entry_id)


def test_a_memory_store_takes_the_transactional_path(client: MemsvcClient, backend: RemoteBackend) -> None:
    store = MemoryStore(backend)

    hit = store.write(MemoryCategory.FACTS, "Water is wet.", summary="water")

    assert store.get(hit.entry.entry_id) == hit
    assert [file.revision for file in client.iter_files(hit.path)] == [1]
    assert "Water is wet." in store.read_file(hit.path)


def test_another_tenant_remembers_nothing_of_it(backend: RemoteBackend, stranger: MemsvcClient) -> None:
    hit = remember(backend, category=MemoryCategory.FACTS, body="the canary")

    other = RemoteBackend(stranger)

    assert other.memory_get(hit.entry.entry_id) is None
    assert other.memory_search(EntrySearch(query="canary")) == []
    assert other.memory_index(MemoryKind.SEMANTIC)[1] == []


# What it is to import


def test_a_backend_is_built_from_a_client_or_an_address(client: MemsvcClient, alice: Tenant) -> None:
    assert RemoteBackend("http://memory.test", api_key="msk_x", tree="t").root == "/memory"
    with pytest.raises(ValueError, match="has its key"):
        RemoteBackend(client, api_key="msk_x")
    assert "msk_" not in repr(RemoteBackend("http://memory.test", api_key="msk_secret"))


def test_the_room_offers_its_names_when_they_are_asked_for() -> None:
    assert client_room.RemoteBackend is RemoteBackend
    assert client_room.MemoryStore is MemoryStore
    with pytest.raises(AttributeError):
        _ = client_room.Nonsense


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("from memsvc.client import MemsvcClient", ["django", "deepagents"]),
        (
            "from memsvc.client import MemoryStore, RemoteBackend as B; MemoryStore(B('http://x', api_key='k'))",
            ["django"],
        ),
    ],
)
def test_a_remote_agent_needs_no_django(statement: str, absent: list[str]) -> None:
    code = f"{statement}\nimport sys\nprint([name for name in {absent!r} if name in sys.modules])"

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert result.stdout.strip() == "[]"
