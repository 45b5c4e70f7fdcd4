"""`PostgresBackend`: what no other backend has to promise. The protocol itself is in test_protocol.py."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from deepagents.backends import CompositeBackend, StateBackend
from deepagents.backends.protocol import BackendProtocol
from django.db import connection, transaction

from memsvc.agents import MemoryCategory, MemoryStore, PostgresBackend, TransactionalMemory
from memsvc.agents.backends.local import PostgresBackend as ItsModule
from memsvc.agents.transactional import transactional_memory
from memsvc.database.tenancy import tenant_transaction
from memsvc.testing import fresh_backend, fresh_tree
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.errors import Busy, Unavailable
from memsvc.tree.models import Revision
from tenants.actors import SYSTEM, Actor, ActorKind

pytestmark = pytest.mark.django_db(transaction=True)

ANN = Actor(ActorKind.KEY, "key-1", "Ann's agent")


def test_it_is_found_in_the_package_and_is_transactional() -> None:
    backend = fresh_backend()

    assert PostgresBackend is ItsModule
    assert isinstance(backend, TransactionalMemory)
    assert (
        transactional_memory(CompositeBackend(default=StateBackend(), routes={"/memory/": backend}))
        is backend
    )


@pytest.mark.parametrize(
    ("root", "path"), [("/memory/", "/a.md"), ("/", "/memory/a.md"), ("/memory/x", "/a.md")]
)
def test_the_root_is_a_folder_of_the_tree(root: str, path: str) -> None:
    tree = fresh_tree()
    backend = PostgresBackend(tree, root=root)

    assert backend.write(path, "x").path == path

    stored = root.rstrip("/") + path
    assert reads.read_file(Access(tree, SYSTEM), stored).data == b"x"
    assert backend.read("/../memory/a.md").error is not None


def test_a_store_works_on_a_mount_of_the_memory_and_on_the_whole_tree() -> None:
    tree = fresh_tree()
    hit = MemoryStore(PostgresBackend(tree)).write(MemoryCategory.FACTS, "Ann drinks tea")

    assert MemoryStore(PostgresBackend(tree, root="/")).get(hit.entry.entry_id) == hit
    assert transactional_memory(PostgresBackend(tree, root="/agents/")) is None


def test_two_tenants_never_see_each_other() -> None:
    ours, theirs = fresh_backend(), fresh_backend()
    hit = MemoryStore(ours).write(MemoryCategory.FACTS, "our secret")
    ours.write("/plan.md", "our secret")

    assert theirs.ls("/").entries == []
    assert theirs.grep("secret").matches == []
    assert theirs.read("/plan.md").error == "File '/plan.md' not found"
    assert theirs.download_files(["/plan.md"])[0].error == "file_not_found"
    assert theirs.edit("/plan.md", "our", "their").error == "Error: File '/plan.md' not found"
    assert theirs.delete("/plan.md").error == "File '/plan.md' not found"
    assert MemoryStore(theirs).get(hit.entry.entry_id) is None
    assert MemoryStore(theirs).search("secret") == []


def test_every_revision_names_the_actor() -> None:
    tree = fresh_tree()
    backend = PostgresBackend(tree, actor=ANN)

    backend.write("/a.md", "x")
    MemoryStore(backend).write(MemoryCategory.FACTS, "y")

    with tenant_transaction(tree.tenant_id):
        actors = set(Revision.objects.filter(tree=tree).values_list("actor_kind", "actor_id", "actor_name"))
    assert actors == {("key", "key-1", "Ann's agent")}


def test_an_entry_with_a_retirement_and_its_index_row_are_one_revision() -> None:
    tree = fresh_tree()
    store = MemoryStore(PostgresBackend(tree))
    store.ensure_tree()
    old = store.write(MemoryCategory.FACTS, "one")

    store.write(MemoryCategory.FACTS, "two", supersedes=old.entry.entry_id)

    with tenant_transaction(tree.tenant_id):
        numbers = Revision.objects.filter(tree=tree).order_by("number").values_list("number", flat=True)
        assert list(numbers) == [1, 2, 3]


def test_files_written_whole_are_found_as_entries_and_in_the_index() -> None:
    backend = fresh_backend()
    store = MemoryStore(backend)
    store.ensure_tree()
    hit = store.write(MemoryCategory.FACTS, "from a tool", summary="One")

    text = store.read_file(hit.path)
    backend.write("/semantic_memory/more.md", text.replace(hit.entry.entry_id, "mem_2026-01-01_abcdef"))

    found = store.get("mem_2026-01-01_abcdef")
    assert found is not None
    assert found.path == "/memory/semantic_memory/more.md"
    assert "more.md" in {row.path for row in store.index(found.entry.kind)[1]}


WRITES: list[tuple[Callable[[Any], Any], str]] = [
    (
        lambda backend: backend.write("/a.md", "y"),
        "permission denied: '/a.md' may be read here but not changed",
    ),
    (lambda backend: backend.edit("/a.md", "x", "y"), "Error: permission denied: '/a.md' may be read here"),
    (lambda backend: backend.delete("/a.md"), "permission denied: '/a.md'"),
    (lambda backend: backend.write("/.x", "y"), "permission denied"),
    (lambda backend: backend.upload_files([("/a.md", b"y")])[0], "permission_denied"),
]


@pytest.mark.parametrize(("write", "said"), WRITES)
def test_the_read_only_form_refuses_every_change(write: Any, said: str) -> None:
    backend = fresh_backend()
    backend.write("/a.md", "x")

    assert write(backend.read_only()).error.startswith(said)
    assert backend.download_files(["/a.md"])[0].content == b"x"
    with pytest.raises(ValueError, match="permission denied"):
        MemoryStore(backend.read_only()).write(MemoryCategory.FACTS, "y")
    with pytest.raises(ValueError, match="permission denied"):
        MemoryStore(backend.read_only()).ensure_tree()


def test_the_root_is_not_deleted_and_its_parts_are() -> None:
    backend = PostgresBackend(fresh_tree())
    backend.write("/a/b.md", "x")

    for root in ("/", "", "//", "/."):
        assert "root" in (backend.delete(root).error or "")
    assert backend.delete("/a").path == "/a"
    assert backend.ls("/").entries == []


def test_a_path_that_no_row_can_hold_is_an_error_and_not_an_exception() -> None:
    backend = fresh_backend()
    for path in ("/" + "x" * 300, "/" + "x/" * 2000, "/a\0b", "/\ud800", "/a\nb", "/..", "/a/../b"):
        assert backend.write(path, "x").error
        assert backend.upload_files([(path, b"x")])[0].error == "invalid_path"
        assert backend.download_files([path])[0].error == "invalid_path"
    assert backend.ls("/").entries == []


def test_an_open_transaction_of_the_caller_stays_open_and_its_own() -> None:
    backend = fresh_backend()
    with transaction.atomic():
        assert backend.write("/a.md", "x").error is None
        assert backend.read("/a.md").error is None
        transaction.set_rollback(True)

    assert backend.ls("/").entries == []


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Let a function of a module fail a number of times before it works; the list counts the calls."""

    def fail(module: object, name: str, error: Exception, times: int) -> list[int]:
        real = getattr(module, name)
        calls: list[int] = []

        def function(*args: Any, **kwargs: Any) -> Any:
            calls.append(1)
            if len(calls) <= times:
                raise error
            return real(*args, **kwargs)

        monkeypatch.setattr(module, name, function)
        return calls

    return fail


@pytest.mark.parametrize("error", [Busy(), Unavailable()])
def test_a_passing_fault_is_tried_again(failing: Any, error: Exception) -> None:
    backend = fresh_backend()
    backend.write("/a.md", "x")
    failing(reads, "read_file", error, 1)
    failing(services, "write_file", error, 1)

    assert backend.download_files(["/a.md"])[0].content == b"x"
    assert backend.write("/b.md", "y").error is None


def test_what_may_have_been_done_is_not_done_twice(failing: Any) -> None:
    backend = fresh_backend()
    edits = failing(services, "edit_file", Unavailable(), 1)
    adds = failing(services, "add_entry", Unavailable(), 1)

    assert (
        backend.edit("/a.md", "x", "y").error
        == "Error: The memory can't be reached right now; try again in a moment."
    )
    with pytest.raises(ValueError, match="can't be reached right now"):
        MemoryStore(backend).write(MemoryCategory.FACTS, "x")
    assert (len(edits), len(adds)) == (1, 1)


def test_a_fault_of_ours_is_a_generic_answer(failing: Any, caplog: pytest.LogCaptureFixture) -> None:
    backend = fresh_backend()
    failing(reads, "list_folder", RuntimeError("SELECT secret FROM /host/path"), 9)
    failing(reads, "get_entry", RuntimeError("SELECT secret FROM /host/path"), 9)

    assert backend.ls("/x").error == "The memory service could not do this for '/x' (internal_error)."
    with pytest.raises(ValueError, match="internal fault") as refusal:
        MemoryStore(backend).get("mem_x")
    assert "secret" not in str(refusal.value)
    assert "a backend call failed" in caplog.text


def in_threads(count: int, work: Callable[[int], object]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_no_call_keeps_a_connection() -> None:
    backend = fresh_backend()
    store = MemoryStore(backend)
    store.ensure_tree()
    kept: list[bool] = []

    def use_it(number: int) -> None:
        backend.write(f"/notes/{number}.md", "x")
        backend.read("/none.md")
        backend.glob("../*")
        store.write(MemoryCategory.FACTS, f"fact {number}")
        store.search("fact")
        kept.append(connection.connection is not None)

    in_threads(12, use_it)

    assert kept == [False] * 12


def test_a_backend_serves_many_loops() -> None:
    backend: BackendProtocol = fresh_backend()

    async def use_it(number: int) -> None:
        results = await asyncio.gather(*(backend.awrite(f"/{number}/{n}.md", "x") for n in range(5)))
        assert all(result.error is None for result in results)

    in_threads(4, lambda number: asyncio.run(use_it(number)))

    assert len(backend.glob("*.md").matches or []) == 20
