"""The backend is one over both of its ports: the same cases in the process of the database and over HTTP."""

import asyncio
import base64
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from deepagents.backends import CompositeBackend, StateBackend

from memsvc.agents import MemoryCategory, MemoryEntry, MemoryStore, PostgresBackend, RemoteBackend
from memsvc.agents.backends.base import TreeBackend
from memsvc.client import MemsvcClient, RetryPolicy
from memsvc.client.memory_tool import MemoryTool
from memsvc.format import render_document
from memsvc.testing import fresh_tree, running_server
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.models import Tree
from tenants.actors import SYSTEM
from tenants.scopes import Scope
from tests.people import make_key

pytestmark = pytest.mark.django_db(transaction=True)

# Of a tree, with the options that both backends have.
type Mount = Callable[..., TreeBackend]


def key_of(tree: Tree) -> str:
    return make_key(tree.tenant, Scope.READ, Scope.WRITE)[1]


@pytest.fixture
def tree(transactional_db: None) -> Tree:
    return fresh_tree()


@pytest.fixture
def client(live_url: str, tree: Tree) -> Iterator[MemsvcClient]:
    with MemsvcClient(live_url, key_of(tree)) as client:
        yield client


@pytest.fixture(params=["postgres", "remote"])
def mount(request: pytest.FixtureRequest, tree: Tree) -> Mount:
    if request.param == "postgres":
        return lambda **options: PostgresBackend(tree, **options)
    client = request.getfixturevalue("client")
    return lambda **options: RemoteBackend(client, **options)


def test_a_root_that_may_be_deleted_is_emptied_and_nothing_beside_it(mount: Mount, tree: Tree) -> None:
    services.write_file(Access(tree, SYSTEM), "/memory.md", "beside")
    backend = mount(root_deletable=True)
    backend.write("/a/b.md", "x")

    assert "root folder" in (mount().delete("/").error or "")
    assert "permission denied" in (backend.read_only().delete("/").error or "")
    assert "root folder" in (mount(root="/", root_deletable=True).delete("/").error or "")
    assert backend.delete("//./").path == "/"

    assert backend.ls("/").entries == []
    assert [item.path for item in reads.list_folder(Access(tree, SYSTEM), "/")] == ["/memory.md"]


def test_what_is_outside_of_a_mount_is_not_there(mount: Mount, tree: Tree) -> None:
    services.write_file(Access(tree, SYSTEM), "/agents/main/MEMORY.md", "secret")
    services.write_file(Access(tree, SYSTEM), "/memory-of-others.md", "secret")
    backend = mount()

    assert backend.ls("/").entries == []
    assert backend.grep("secret").matches == []
    assert backend.glob("**/*").matches == []
    assert backend.read("/agents/main/MEMORY.md").error == "File '/agents/main/MEMORY.md' not found"
    assert backend.read("/../memory-of-others.md").error
    assert mount(root="/agents/main").read("/MEMORY.md").error is None


def test_a_read_only_form_refuses_every_change_and_reads(mount: Mount) -> None:
    mount().write("/a.md", "x")
    backend = mount().read_only()

    assert type(backend) is type(mount())
    assert backend.write("/a.md", "y").error == "permission denied: '/a.md' may be read here but not changed"
    assert (backend.edit("/a.md", "x", "y").error or "").startswith("Error: permission denied: '/a.md'")
    assert "permission denied" in (backend.delete("/a.md").error or "")
    assert {answer.error for answer in backend.upload_files([("/a.md", b"y"), ("/../x", b"y")])} == {
        "permission_denied"
    }
    with pytest.raises(ValueError, match="permission denied"):
        MemoryStore(backend).write(MemoryCategory.FACTS, "y")
    with pytest.raises(ValueError, match="permission denied"):
        MemoryStore(backend).ensure_tree()
    assert backend.download_files(["/a.md"])[0].content == b"x"
    assert MemoryStore(backend).search() == []


@pytest.mark.parametrize("wrong", [None, 7, b"/a.md", ["/a.md"]])
def test_a_value_of_another_type_is_an_error_and_not_an_exception(mount: Mount, wrong: Any) -> None:
    backend: Any = mount()

    assert backend.read(wrong).error
    assert backend.write(wrong, "x").error
    assert backend.write("/a.md", wrong if wrong != b"/a.md" else 7).error
    assert backend.edit(wrong, "a", "b").error
    assert backend.delete(wrong or 7).error
    assert backend.download_files([wrong])[0].error
    assert backend.ls("/").entries == []


def test_only_bytes_are_uploaded_and_the_others_are_told(mount: Mount) -> None:
    backend: Any = mount()
    contents = ["text", 7, None, bytearray(b"b"), memoryview(b"c"), b"d"]

    answers = backend.upload_files([(f"/{at}", content) for at, content in enumerate(contents)])

    assert [answer.error for answer in answers] == [*["the content must be bytes"] * 3, None, None, None]
    assert [answer.content for answer in backend.download_files(["/3", "/4", "/5"])] == [b"b", b"c", b"d"]


def test_large_files_and_long_lists_of_them_arrive(mount: Mount) -> None:
    backend = mount()
    large = [(f"/large/{number}.bin", bytes([number]) * 3_000_000) for number in range(3)]
    huge = [("/huge.bin", b"\xff" * 9_000_000)]
    many = [(f"/many/{number}.md", b"x") for number in range(250)]

    verdicts = backend.upload_files([*large, *huge, *many])
    found = backend.download_files([path for path, _ in [*large, *huge, *many]])

    assert {verdict.error for verdict in verdicts} == {None}
    assert [answer.content for answer in found] == [content for _, content in [*large, *huge, *many]]


LARGEST = bytes(range(256)) * (32 * 4096)


def test_the_largest_file_goes_through_both(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSVC_MAX_BODY_BYTES", str(len(LARGEST)))
    with running_server() as url, MemsvcClient(url, key_of(tree)) as client:
        for backend in (PostgresBackend(tree), RemoteBackend(client)):
            name = f"/{type(backend).__name__}.bin"
            verdicts = backend.upload_files([(name, LARGEST), (f"{name}.more", LARGEST + b"x")])

            assert (verdicts[0].error, verdicts[1].error is None) == (None, False)
            found = backend.download_files([name, f"{name}.more"])
            assert (found[0].content == LARGEST, found[1].error) == (True, "file_not_found")
            data = backend.read(name).file_data
            assert data is not None
            assert base64.b64decode(data["content"]) == LARGEST


def test_what_the_memory_tool_wrote_keeps_its_line_ends(mount: Mount, client: MemsvcClient) -> None:
    backend, tool = mount(), MemoryTool(client)
    backend.upload_files([("/notes.md", b"one\r\ntwo\r\nthree\r\n")])

    tool.run(
        {"command": "str_replace", "path": "/memories/notes.md", "old_str": "two\n", "new_str": "2\n2\n"}
    )
    assert backend.edit("/notes.md", "2\n2\nthree", "2\nthree").error is None
    tool.run({"command": "insert", "path": "/memories/notes.md", "insert_line": 1, "insert_text": "and"})

    assert backend.download_files(["/notes.md"])[0].content == b"one\r\nand\r\n2\r\nthree\r\n"
    data = backend.read("/notes.md").file_data
    assert data is not None
    assert data["content"] == "one\nand\n2\nthree\n"


# More than a page of either port.
EPISODES = 230


def test_a_search_goes_on_over_pages(mount: Mount) -> None:
    backend, start = mount(), datetime(2026, 5, 1, tzinfo=UTC)
    episodes = [
        MemoryEntry(
            entry_id=f"mem_2026-05-01_{number:04}",
            created=start + timedelta(minutes=number),
            category=MemoryCategory.EVENTS,
            body=f"kites, day {number}",
        )
        for number in range(EPISODES)
    ]
    assert backend.write("/episodic_memory/events/2026-05.md", render_document("", episodes)).error is None
    ids = [entry.entry_id for entry in episodes]
    store = MemoryStore(backend)

    def found(**options: Any) -> list[str]:
        return [hit.entry.entry_id for hit in store.search("kites", **options)]

    assert found(limit=1000) == ids[::-1]
    assert found(limit=215) == ids[::-1][:215]
    assert found(limit=0) == ids[-1:]
    assert [hit.entry.entry_id for hit in store.recent_episodes(limit=10**9)] == ids
    since = start + timedelta(minutes=5)
    recent = store.recent_episodes(since=since.replace(tzinfo=None), limit=210)
    assert [hit.entry.entry_id for hit in recent] == ids[-210:]
    assert len(store.recent_episodes(since=since, limit=1000)) == EPISODES - 5


def test_both_are_routes_of_one_composite(tree: Tree, client: MemsvcClient) -> None:
    near, far = PostgresBackend(tree), RemoteBackend(client, root="/agents/")
    mounted = CompositeBackend(default=StateBackend(), routes={"/memory/": near, "/agents/": far})

    written = mounted.upload_files([("/memory/a.md", b"tea"), ("/agents/b.md", b"tea"), ("/memory/..", b"x")])
    assert [answer.error for answer in written] == [None, None, "invalid_path"]
    assert mounted.edit("/agents/b.md", "tea", "more tea").path == "/agents/b.md"
    for folder, name in (("/memory", "a.md"), ("/agents", "b.md")):
        assert [match["path"] for match in mounted.grep("tea", folder).matches or []] == [f"{folder}/{name}"]
        assert [entry["path"] for entry in mounted.ls(folder).entries or []] == [f"{folder}/{name}"]
        assert "root folder" in (mounted.delete(folder).error or "")
    found = mounted.download_files(["/agents/b.md", "/memory/a.md"])
    assert [answer.content for answer in found] == [b"more tea", b"tea"]


def test_sync_calls_on_the_thread_of_a_running_loop(mount: Mount) -> None:
    backend = mount()

    async def on_the_loop() -> list[Any]:
        return [backend.write("/a.md", "x"), backend.read("/a.md"), MemoryStore(backend).search()]

    written, read, found = asyncio.run(on_the_loop())

    assert (written.error, read.file_data["content"], found) == (None, "x", [])


def test_a_fault_of_the_client_is_a_generic_answer_too(caplog: pytest.LogCaptureFixture) -> None:
    closed = RemoteBackend(MemsvcClient("http://127.0.0.1:9", "msk_x", retries=RetryPolicy(attempts=1)))
    closed.close()

    assert closed.ls("/x").error == "The memory service could not do this for '/x' (internal_error)."
    with pytest.raises(ValueError, match="internal fault"):
        MemoryStore(closed).get("mem_x")
    assert "a backend call failed" in caplog.text
