"""Who wrote an entry, as both clients and both backends have it."""

import asyncio

import pytest

from memsvc.client import AsyncMemsvcClient, MemsvcClient
from memsvc.contract.entries import Authorship
from memsvc.format import MemoryCategory
from memsvc.tree import reads
from memsvc.tree.access import Access
from memsvc.tree.trees import tree_of
from tenants.actors import SYSTEM
from tenants.models import Tenant
from tests.people import make_key

pytestmark = pytest.mark.django_db(transaction=True)


def test_both_clients_have_what_the_service_knows(live_url: str, alice: Tenant) -> None:
    stored, key = make_key(alice)
    with MemsvcClient(live_url, api_key=key, run_id="run-17") as client:
        made = client.add_entry(MemoryCategory.FACTS, "Berlin is the seat.")
        found = client.get_entry(made.entry.entry_id)
        listed = client.list_entries().items[0]
        hit = client.search("Berlin").items[0]

    async def read() -> Authorship | None:
        async with AsyncMemsvcClient(live_url, api_key=key) as waiting:
            return (await waiting.get_entry(made.entry.entry_id)).written

    known = reads.get_entry(Access(tree_of(alice), SYSTEM), made.entry.entry_id)
    assert known.written is not None
    assert found.written == Authorship(1, known.written.at, "key", str(stored.pk), stored.name, "run-17")
    assert {found.changed, listed.written, hit.changed, asyncio.run(read())} == {found.written}
