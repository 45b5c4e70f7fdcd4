"""A run's id over real HTTP and through both backends: what is given is what the history says."""

import asyncio
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from memsvc.agents import MemoryStore, PostgresBackend, RemoteBackend
from memsvc.client import AsyncMemsvcClient, MemsvcClient
from memsvc.format import InvalidText, MemoryCategory
from memsvc.tree import reads
from memsvc.tree.access import Access
from memsvc.tree.trees import tree_of
from tenants.actors import SYSTEM, Actor, ActorKind
from tenants.models import Tenant
from tests.people import make_key

pytestmark = pytest.mark.django_db(transaction=True)

RUN_IDS = [
    "run-1",
    " ends with a blank ",
    "100 %",
    "München 🐘",
    "a,b;c=d:/?#[]@!$&'()*+\"\\<>^`{|}~",
    "🐘" * 200,
]
REFUSED = ["x" * 201, "a\0b", "a\r\nX-Evil: 1", "\x85", "\ud800"]

type Open = Callable[[str], RemoteBackend | PostgresBackend]


@pytest.fixture(params=["remote", "postgres"])
def open_backend(request: pytest.FixtureRequest, live_url: str, alice: Tenant) -> Iterator[Open]:
    """Makes a backend of Alice's tree in a run."""
    if request.param == "postgres":
        yield lambda run_id: PostgresBackend(tree_of(alice), run_id=run_id)
        return
    key = make_key(alice)[1]
    opened: list[RemoteBackend] = []

    def open_remote(run_id: str) -> RemoteBackend:
        opened.append(RemoteBackend(live_url, api_key=key, run_id=run_id))
        return opened[-1]

    yield open_remote
    for backend in opened:
        backend.close()


def runs(tenant: Tenant) -> list[str]:
    page = reads.list_revisions(Access(tree_of(tenant), SYSTEM))
    return [each.run_id for each in reversed(page.items)]


@pytest.mark.parametrize("run_id", RUN_IDS)
def test_every_write_of_an_agent_keeps_its_run(open_backend: Open, alice: Tenant, run_id: str) -> None:
    backend = open_backend(run_id)

    backend.write("/a.md", "one\n")
    backend.edit("/a.md", "one", "two")
    backend.upload_files([("/b.md", b"x")])
    MemoryStore(backend).write(category=MemoryCategory.FACTS, body="Berlin is the seat.")
    backend.delete("/a.md")

    assert len(runs(alice)) >= 5
    assert set(runs(alice)) == {run_id}


@pytest.mark.parametrize("run_id", REFUSED)
def test_what_names_no_run_makes_no_backend(open_backend: Open, run_id: str) -> None:
    with pytest.raises(InvalidText, match="run_id"):
        open_backend(run_id)


def test_without_one_there_is_none(open_backend: Open, alice: Tenant) -> None:
    open_backend("").write("/a.md", "one\n")

    assert runs(alice) == [""]


def test_an_actor_may_bring_its_run(alice: Tenant) -> None:
    actor = Actor(ActorKind.JOB, "7", "nightly", run_id="run-of-the-actor")
    PostgresBackend(tree_of(alice), actor=actor).write("/a.md", "x")
    PostgresBackend(tree_of(alice), actor=actor, run_id="run-of-the-backend").write("/b.md", "x")

    assert {"run-of-the-actor", "run-of-the-backend"} == set(runs(alice))


def test_a_client_has_its_run_already(client: MemsvcClient) -> None:
    with pytest.raises(ValueError, match="with a URL only"):
        RemoteBackend(client, run_id="run-1")


@pytest.mark.parametrize("run_id", RUN_IDS)
def test_the_client_reads_filters_and_pages_by_it(live_url: str, alice: Tenant, run_id: str) -> None:
    key = make_key(alice)[1]
    with MemsvcClient(live_url, key) as plain, MemsvcClient(live_url, key, run_id=run_id) as client:
        for number in range(3):
            plain.write_file(f"/plain/{number}.md", "x")
            client.write_file(f"/{number}.md", "x")

        first = plain.list_revisions(run_id=run_id, limit=2)
        assert first.next is not None
        second = plain.list_revisions(run_id=run_id, limit=2, cursor=first.next)

        assert [each.number for each in (*first.items, *second.items)] == [6, 4, 2]
        assert second.next is None
        assert {each.run_id for each in first.items} == {run_id}
        assert [each.number for each in plain.list_revisions(run_id="").items] == [5, 3, 1]
        assert plain.get_revision(2).revision.run_id == run_id
        assert plain.blame("/0.md").revisions[2].run_id == run_id
        entry = client.add_entry(MemoryCategory.FACTS, "Berlin").entry.entry_id
        assert [each.revision.run_id for each in plain.entry_history(entry)] == [run_id]


def test_the_client_of_event_loops_sends_it_too(live_url: str, alice: Tenant) -> None:
    key = make_key(alice)[1]

    async def write() -> None:
        async with AsyncMemsvcClient(live_url, key, run_id="München") as client:
            await client.write_file("/a.md", "x")

    asyncio.run(write())

    assert runs(alice) == ["München"]


@pytest.mark.parametrize(
    "value", [b"caf\xe9", "München".encode(), b"a b", b"a\tb", b"%", b"%00", b"%FF", b"x" * 201, b"%41" * 201]
)
def test_a_server_refuses_bytes_that_name_no_run(live_url: str, alice: Tenant, value: bytes) -> None:
    address = urlsplit(live_url)
    connection = HTTPConnection(address.hostname or "", address.port, timeout=30)
    headers: dict[str, str | bytes] = {
        "Authorization": f"Bearer {make_key(alice)[1]}",
        "Memsvc-Run-Id": value,
    }
    connection.request("PUT", "/v1/trees/default/files/a.md", b"x", headers)
    answer = connection.getresponse()

    assert answer.status == 400
    assert b'"invalid_text"' in answer.read()
    assert runs(alice) == []
    connection.close()


def test_blanks_around_a_header_are_no_part_of_it(live_url: str, alice: Tenant) -> None:
    address = urlsplit(live_url)
    connection = HTTPConnection(address.hostname or "", address.port, timeout=30)
    headers: dict[str, str | bytes] = {
        "Authorization": f"Bearer {make_key(alice)[1]}",
        "Memsvc-Run-Id": "  %20a%20  ",
    }
    connection.request("PUT", "/v1/trees/default/files/a.md", b"x", headers)

    assert connection.getresponse().status == 201
    assert runs(alice) == [" a "]
    connection.close()
