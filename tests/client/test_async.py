"""What is the async client's own: tasks, cancellation, streams and types. Its answers: test_operations.py."""

import asyncio
import tracemalloc
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, assert_type

import httpx
import pytest

from memsvc.client import AsyncMemsvcClient, MemsvcClient, MemsvcError, RetryPolicy
from memsvc.client.errors import ConnectionFailed, InvalidRequest
from memsvc.client.records import FileBytes, Listed, Page, Written
from memsvc.format import MemoryCategory
from tenants.models import Tenant
from tests.people import READ, WRITE, make_key

MIB = 1024 * 1024

type Call = Callable[[Any], Any]


@pytest.fixture
def key(transactional_db: None, alice: Tenant) -> str:
    return make_key(alice)[1]


def one_connection() -> httpx.AsyncHTTPTransport:
    """With it a call that leaves its connection behind would be the last one."""
    return httpx.AsyncHTTPTransport(verify=False, limits=httpx.Limits(max_connections=1))


def test_fifty_tasks_share_one_client(live_url: str, key: str) -> None:
    async def remember(client: AsyncMemsvcClient, number: int) -> str:
        added = await client.add_entry(MemoryCategory.FACTS, f"Fact {number}.")
        assert (await client.get_entry(added.entry.entry_id)).entry.body == f"Fact {number}."
        return added.entry.entry_id

    async def main() -> tuple[list[str], int]:
        async with AsyncMemsvcClient(live_url, key) as client:
            ids = await asyncio.gather(*[remember(client, number) for number in range(50)])
            return ids, (await client.describe()).revision

    ids, revision = asyncio.run(main())

    assert (len(set(ids)), revision) == (50, 50)


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.read_text("/none.md"),
        lambda client: client.read_lines("/a.md", offset=9),
        lambda client: client.read_text("/b.bin"),
        lambda client: client.write_file("/a.md", "x", create_only=True),
        lambda client: client.edit_file("/a.md", "nowhere", "x"),
        lambda client: client.list_folder("/a.md"),
        lambda client: client.read_bytes("/../a.md"),
        lambda client: client.append_file("/a.md", "\ud800"),
        lambda client: client.get_entry(""),
        lambda client: client.batch([{"op": "nonsense"}]),
        lambda client: client.create_tree("default"),
        lambda client: client.undo(revision=99),
        lambda client: client.list_keys(),
        lambda client: client.export_zip(),
    ],
)
def test_both_clients_raise_the_same(
    live_url: str, alice: Tenant, transactional_db: None, call: Call
) -> None:
    key = make_key(alice, READ, WRITE)[1]

    with MemsvcClient(live_url, key) as client:
        client.upload_files([("/a.md", b"one\n"), ("/b.bin", b"\x00\xff")])
        with pytest.raises(MemsvcError) as expected:
            list(call(client))

    async def main() -> MemsvcError:
        async with AsyncMemsvcClient(live_url, key) as client:
            answer = call(client)
            with pytest.raises(MemsvcError) as caught:
                await (anext(answer) if isinstance(answer, AsyncGenerator) else answer)
            return caught.value

    assert facts_of(asyncio.run(main())) == facts_of(expected.value)


def facts_of(error: MemsvcError) -> object:
    members = {name: value for name, value in error.members.items() if name != "request_id"}
    return type(error), error.status, error.code, error.detail, error.problems, members


def test_what_is_wrong_is_told_where_the_call_is_awaited() -> None:
    async def main() -> None:
        async with AsyncMemsvcClient("http://memory.test", "msk_x") as client:
            calls: list[Coroutine[Any, Any, object]] = [client.read_bytes("/.."), client.grep("\ud800")]
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert [type(result) for result in results] == [InvalidRequest, InvalidRequest]

    asyncio.run(main())


class LosesTheFirstAnswer(httpx.AsyncHTTPTransport):
    """The request arrives, its answer does not; the next one does."""

    lost = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        if self.lost:
            return response
        self.lost = True
        await response.aread()
        await response.aclose()
        raise httpx.ReadError("reset")


def test_a_write_whose_answer_was_lost_is_done_once(live_url: str, key: str) -> None:
    transport = LosesTheFirstAnswer()

    async def main() -> tuple[int, str]:
        async with AsyncMemsvcClient(
            live_url, key, transport=transport, retries=RetryPolicy(first_wait=0)
        ) as client:
            await client.append_file("/a.md", "once")
            return (await client.describe()).revision, await client.read_text("/a.md")

    assert asyncio.run(main()) == (1, "once")
    assert transport.lost


def test_a_server_that_is_not_there_can_not_be_reached() -> None:
    async def main() -> None:
        retries = RetryPolicy(attempts=2, first_wait=0)
        async with AsyncMemsvcClient("http://127.0.0.1:9", "msk_x", retries=retries) as client:
            await client.me()

    with pytest.raises(ConnectionFailed) as caught:
        asyncio.run(main())
    assert caught.value.sent is False


# Cancellation


def test_a_cancelled_call_hangs_up() -> None:
    """On a server that takes the request and never answers."""

    async def main() -> bytes:
        asked, ended = asyncio.Event(), asyncio.get_running_loop().create_future()

        async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            asked.set()
            ended.set_result(await reader.read())
            writer.close()

        async with await asyncio.start_server(never_answer, "127.0.0.1", 0) as server:
            host, port = server.sockets[0].getsockname()
            async with AsyncMemsvcClient(f"http://{host}:{port}", "msk_x") as client:
                call = asyncio.create_task(client.me())
                await asked.wait()
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
                # While the client is still open: nothing but the cancelled call can have hung up.
                rest: bytes = await asyncio.wait_for(ended, timeout=30)
                return rest

    assert asyncio.run(main()) == b""


async def answer_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, asyncio.IncompleteReadError):
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 29\r\n\r\n")
            await writer.drain()
            writer.write(b'{"items": [],   "next": null}')
            await writer.drain()
    writer.close()


async def list_files(client: AsyncMemsvcClient) -> object:
    return await client.list_files()


async def export(client: AsyncMemsvcClient) -> object:
    return [piece async for piece in client.export_zip()]


@pytest.mark.parametrize("call", [list_files, export])
@pytest.mark.parametrize("connected", [False, True])
@pytest.mark.parametrize("callers", [1, 3])
def test_a_call_may_be_cancelled_at_any_moment(
    call: Callable[[AsyncMemsvcClient], Coroutine[Any, Any, object]], connected: bool, callers: int
) -> None:
    """On a server that answers so fast that each turn of the event loop is another moment of the call."""

    async def cancel_after(turns: int, client: AsyncMemsvcClient) -> bool:
        tasks = [asyncio.create_task(call(client)) for _ in range(callers)]
        for _ in range(turns):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return all(task.cancelled() for task in tasks)

    async def main() -> set[bool]:
        cancelled = set()
        async with await asyncio.start_server(answer_at_once, "127.0.0.1", 0) as server:
            host, port = server.sockets[0].getsockname()
            for turns in range(45):
                async with AsyncMemsvcClient(
                    f"http://{host}:{port}",
                    "msk_x",
                    timeout=20,
                    retries=RetryPolicy(attempts=1),
                    transport=one_connection(),
                ) as client:
                    if connected:
                        await call(client)
                    cancelled.add(await cancel_after(turns, client))
                    # With the connection still taken, this would fail.
                    await call(client)
        return cancelled

    assert True in asyncio.run(main())


def test_a_change_that_is_cancelled_before_it_is_sent_is_not_made(live_url: str, key: str) -> None:
    async def main() -> str:
        async with AsyncMemsvcClient(live_url, key, transport=one_connection()) as client:
            change = asyncio.create_task(client.write_file("/a.md", "cancelled"))
            # It has begun, and is waiting for a connection.
            for _ in range(3):
                await asyncio.sleep(0)
            change.cancel()
            await asyncio.gather(change, return_exceptions=True)
            assert change.cancelled()
            # One connection: what is asked on it comes after all that was.
            written = await client.write_file("/b.md", "made")
            return f"{written.revision} {written.path}"

    assert asyncio.run(main()) == "1 /b.md"


# Streams


@pytest.mark.parametrize("leave", ["break", "cancel"])
def test_an_export_may_be_left_in_the_middle(live_url: str, key: str, leave: str) -> None:
    async def first_piece(client: AsyncMemsvcClient, begun: asyncio.Event) -> None:
        async with aclosing(client.export_zip()) as pieces:
            async for _ in pieces:
                begun.set()
                if leave == "break":
                    break
                await asyncio.Event().wait()

    async def main() -> str:
        async with AsyncMemsvcClient(live_url, key, transport=one_connection()) as client:
            await client.write_file("/a.bin", bytes(4 * MIB))
            await client.write_file("/b.md", "still here")
            begun = asyncio.Event()
            reading = asyncio.create_task(first_piece(client, begun))
            await begun.wait()
            if leave == "cancel":
                reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            return await client.read_text("/b.md")

    assert asyncio.run(main()) == "still here"


def peak_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_no_client_holds_what_it_sends_or_gets_in_memory(live_url: str, key: str, tmp_path: Path) -> None:
    size = 4 * MIB
    path = tmp_path / "big"
    path.write_bytes(bytes(size))
    lengths: list[int] = []

    async def main() -> None:
        async with AsyncMemsvcClient(live_url, key) as client:
            await client.write_file("/big.bin", path)
            lengths.append(sum([len(piece) async for piece in client.export_jsonl()]))

    def in_a_thread() -> None:
        with MemsvcClient(live_url, key) as client:
            client.write_file("/big too.bin", path)
            lengths.append(sum(len(piece) for piece in client.export_jsonl()))

    peaks = peak_of(lambda: asyncio.run(main())), peak_of(in_a_thread)

    assert min(lengths) > size
    assert max(peaks) < size / 2


# Types: what mypy says of this function is what an editor shows


def test_both_clients_are_typed(live_url: str, key: str) -> None:
    with MemsvcClient(live_url, key) as client:
        assert_type(client.write_file("/a.md", "one", message="why"), Written)
        assert_type(client.list_files(limit=1), Page[Listed])
        with pytest.raises(TypeError):
            client.read_text("/a.md", nonsense=1)  # type: ignore[call-arg]  # that is the test

    async def main() -> None:
        async with AsyncMemsvcClient(live_url, key) as client:
            assert_type(await client.write_file("/a.md", "two", message="why"), Written)
            assert_type(await client.list_files(limit=1), Page[Listed])
            assert_type(await client.read_bytes_if_changed("/a.md", "another"), FileBytes | None)
            assert_type(client.export_zip(), AsyncGenerator[bytes])
            with pytest.raises(TypeError):
                await client.read_text(path="/a.md", offset="1")  # type: ignore[call-arg]  # that is the test

    asyncio.run(main())
