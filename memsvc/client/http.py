"""The two typed clients for the REST interface: one method for each thing that a server does. Needs no Django.

with MemsvcClient("https://memory.example.com", api_key) as memory:
    memory.add_entry(MemoryCategory.FACTS, "ACME moved to Berlin.", summary="ACME's seat", tags=["acme"])
    for found in memory.search("acme").items:
        print(found.path, found.entry.summary)

async with AsyncMemsvcClient("https://memory.example.com", api_key) as memory:
    people, plans = await asyncio.gather(memory.search("people"), memory.search("plans"))

Both have the methods of `memsvc.client.calls`. Here is what differs: how they open, close, and give things in pieces.
"""

from collections.abc import AsyncGenerator, Iterator
from types import TracebackType
from typing import Final, Self

import httpx

from memsvc.client.calls import AsOf, Calls
from memsvc.client.connection import DEFAULT_TIMEOUT, AsyncConnection, Connection, RetryPolicy, headers_of
from memsvc.client.records import Listed
from memsvc.contract.requests import run_id_headers

# The name of an export, and its media type.
_ZIP: Final = ("export.zip", "application/zip")
_JSONL: Final = ("export.jsonl", "application/jsonl")
_BUNDLE: Final = ("export.bundle", "application/x-git-bundle")


class MemsvcClient(Calls[Connection]):
    """One tree of a memsvc server, by API key.

    Every method answers with a frozen value of `memsvc.client.records` and raises a `MemsvcError`
    (`memsvc.client.errors`) when it was not done. Calls that failed for a passing reason are repeated, and done
    once all the same. One client may be used from many threads; it keeps its connections open until `close()`.

    `revision` in a read gives the tree as of that revision, by its number or by an instant; `if_match` in a change is
    the etag that a read gave and makes the change fail with PreconditionFailed when somebody else was faster.
    `run_id` says which run of an agent asks: up to 200 characters, kept with every revision that the client makes.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        tree: str = "default",
        run_id: str = "",
        timeout: float | httpx.Timeout = DEFAULT_TIMEOUT,
        retries: RetryPolicy | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        headers = headers_of(api_key) | run_id_headers(run_id)
        http = httpx.Client(headers=headers, timeout=timeout, transport=transport)
        super().__init__(Connection(http, base_url, retries), tree)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the client can't be used afterwards."""
        self._connection.close()

    def iter_files(self, prefix: str = "/", *, revision: AsOf | None = None) -> Iterator[Listed]:
        """All files below a folder, by path, page after page."""
        page = self.list_files(prefix, revision=revision)
        yield from page.items
        while page.next is not None:
            page = self.list_files(prefix, cursor=page.next, revision=revision)
            yield from page.items

    def export_zip(self, *, revision: AsOf | None = None) -> Iterator[bytes]:
        """The tree as a zip archive, in pieces as they come; the same revision always gives the same bytes."""
        return self._connection.pieces(self._export, *_ZIP, revision)

    def export_jsonl(self, *, revision: AsOf | None = None) -> Iterator[bytes]:
        """Each file and each entry as JSON Lines (interchange v1), in pieces as they come."""
        return self._connection.pieces(self._export, *_JSONL, revision)

    def export_bundle(self, *, revision: AsOf | None = None) -> Iterator[bytes]:
        """The whole history as a git bundle, which `git clone` takes: a commit for each revision."""
        return self._connection.pieces(self._export, *_BUNDLE, revision)

    def export_audit(self) -> Iterator[bytes]:
        """The whole audit as JSON Lines, in pieces as they come; `python -m memsvc.client.audit` checks it."""
        return self._connection.pieces(self._export_audit)


class AsyncMemsvcClient(Calls[AsyncConnection]):
    """One tree of a memsvc server, by API key, for programs that run an event loop.

    It has every method of `MemsvcClient`, with the same answers and errors, to be awaited; listings and exports in
    pieces are gone through with `async for`. One client may be used by any number of tasks of one event loop; it
    keeps its connections open until `aclose()`.

    A call whose task is cancelled gives its connection back. A change that was cancelled may have been made.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        tree: str = "default",
        run_id: str = "",
        timeout: float | httpx.Timeout = DEFAULT_TIMEOUT,
        retries: RetryPolicy | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        headers = headers_of(api_key) | run_id_headers(run_id)
        http = httpx.AsyncClient(headers=headers, timeout=timeout, transport=transport)
        super().__init__(AsyncConnection(http, base_url, retries), tree)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; the client can't be used afterwards."""
        await self._connection.aclose()

    async def iter_files(self, prefix: str = "/", *, revision: AsOf | None = None) -> AsyncGenerator[Listed]:
        """All files below a folder, by path, page after page."""
        page = await self.list_files(prefix, revision=revision)
        for file in page.items:
            yield file
        while page.next is not None:
            page = await self.list_files(prefix, cursor=page.next, revision=revision)
            for file in page.items:
                yield file

    def export_zip(self, *, revision: AsOf | None = None) -> AsyncGenerator[bytes]:
        """The tree as a zip archive, in pieces as they come; the same revision always gives the same bytes."""
        return self._connection.pieces(self._export, *_ZIP, revision)

    def export_jsonl(self, *, revision: AsOf | None = None) -> AsyncGenerator[bytes]:
        """Each file and each entry as JSON Lines (interchange v1), in pieces as they come."""
        return self._connection.pieces(self._export, *_JSONL, revision)

    def export_bundle(self, *, revision: AsOf | None = None) -> AsyncGenerator[bytes]:
        """The whole history as a git bundle, which `git clone` takes: a commit for each revision."""
        return self._connection.pieces(self._export, *_BUNDLE, revision)

    def export_audit(self) -> AsyncGenerator[bytes]:
        """The whole audit as JSON Lines, in pieces as they come; `python -m memsvc.client.audit` checks it."""
        return self._connection.pieces(self._export_audit)
