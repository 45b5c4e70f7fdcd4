"""The memory of a support team, from end to end: `make demo`, or `python -m examples.support_team`.

Two customers of a host, each a tenant with a key. ACME brings the memory that lies beside this file; its agents store,
correct and recall over HTTP with nothing but the key; Globex sees nothing of it; the export opens on disk. Each step
says what it does and looks at what came of it; the program ends with 1 if anything is off.

To try it with your service, put its URL and your keys in the place of `testing`. The agents are real deepagents graphs;
what their model says is scripted, unless MEMSVC_MODEL names one.
"""

import asyncio
import shutil
import signal
import sys
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from examples.scripted_model import calls, id_in, model, says
from memsvc import testing
from memsvc.agents import (
    MemoryStore,
    build_memory_backend,
    create_memory_manager_agent,
    create_memory_search_agent,
)
from memsvc.client import MemsvcClient, RemoteBackend
from memsvc.client.errors import NotFound
from memsvc.format import MemoryEntry

MEMORY: Final = Path(__file__).parent / "memory"
WRITERS: Final = 8
NOTES_EACH: Final = 3
EVERYTHING: Final = 100_000


def main() -> int:
    # So that a stop from outside still takes the server and its database down.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    account = Account()
    with tempfile.TemporaryDirectory(prefix="memsvc-demo-") as folder:
        run(account, Path(folder))
    return account.end()


def run(account: "Account", folder: Path) -> None:
    account.step("A service with two tenants, each with a key")
    acme_key, globex_key = key_of_new_tenant("ACME"), key_of_new_tenant("Globex")
    url = testing.server_url()
    account.note(f"{url} opens for {acme_key[:12]}… and for {globex_key[:12]}…")

    with MemsvcClient(url, acme_key) as acme, MemsvcClient(url, globex_key) as globex:
        account.step("ACME brings a memory along")
        bring_memory(account, acme, folder)

        account.step("An agent stores a fact, and another one corrects it")
        entry_id = store_and_correct(account, RemoteBackend(acme))

        account.step(f"{WRITERS} agents write at once")
        asyncio.run(write_at_once(account, url, acme_key))

        account.step("An agent that can't write answers from memory")
        recall(account, RemoteBackend(acme), entry_id)

        account.step("Globex's key sees nothing of it")
        look_as_stranger(account, globex, entry_id)

        account.step("The export opens on disk, with no service at all")
        open_export(account, acme, folder)


def bring_memory(account: "Account", client: MemsvcClient, folder: Path) -> None:
    archive = shutil.make_archive(str(folder / "own"), "zip", MEMORY.parent, MEMORY.name)
    report = client.import_zip(Path(archive))
    account.note(f"{len(report.files)} files in revision {report.revision}")
    account.check("every file reads back byte for byte", files_served(client) == files_on_disk(MEMORY))


def store_and_correct(account: "Account", backend: RemoteBackend) -> str:
    """The id of the entry that holds in the end."""
    store = MemoryStore(backend)
    fact = {
        "category": "facts",
        "content": "The customer Norden has its seat in Hamburg.",
        "summary": "seat of Norden: Hamburg",
        "tags": ["norden"],
        "source": "user",
        "confidence": "high",
    }
    manager = create_memory_manager_agent(
        model(
            calls("memory_search", {"query": "Norden seat"}),
            calls("memory_write", fact),
            says(lambda seen: f"I'll remember that. {seen}"),
        ),
        backend=backend,
    )
    account.ask(manager, "Remember: our customer Norden has its seat in Hamburg.")
    stored = store.search("Norden Hamburg")
    account.check("the fact is stored", len(stored) == 1)
    rows = {row.path: row.description for row in store.index(stored[0].entry.kind)[1]}
    account.check("the index says what its file says now", rows["facts.md"] == stored[0].entry.summary)

    corrector = create_memory_manager_agent(
        model(
            calls("memory_search", {"query": "Norden"}),
            calls(
                "memory_update",
                lambda seen: {
                    "entry_id": id_in(seen),
                    "content": "The customer Norden has its seat in Bremen.",
                    "summary": "seat of Norden: Bremen",
                },
            ),
            says(lambda seen: f"Corrected. {seen}"),
        ),
        backend=backend,
    )
    account.ask(corrector, "Norden moved: its seat is in Bremen now. Correct what you know.")
    old, new = store.get(stored[0].entry.entry_id), store.search("Norden Bremen")
    account.check("the corrected fact is found", len(new) == 1)
    account.check(
        "the old one names it, and is found no more",
        old is not None
        and old.entry.superseded_by == new[0].entry.entry_id
        and store.search("Norden Hamburg") == [],
    )
    return new[0].entry.entry_id


async def write_at_once(account: "Account", url: str, key: str) -> None:
    """Each agent with connections of its own, as if it ran on a machine of its own."""
    notes = [
        [f"Note {writer}-{n} of writer {writer}." for n in range(NOTES_EACH)] for writer in range(WRITERS)
    ]
    backends = [RemoteBackend(url, api_key=key) for _ in notes]

    async def write(mine: list[str], backend: RemoteBackend) -> None:
        facts = [{"category": "facts", "content": note, "summary": note} for note in mine]
        agent = create_memory_manager_agent(
            model(calls("memory_write", *facts), says(lambda seen: seen)), backend=backend
        )
        await agent.ainvoke({"messages": [("user", f"Remember each of these as a fact: {' '.join(mine)}")]})

    await asyncio.gather(*map(write, notes, backends))
    found = MemoryStore(backends[0]).search("Note of writer", limit=EVERYTHING)
    for backend in backends:
        backend.close()
    account.check(
        f"all {WRITERS * NOTES_EACH} notes are there, none twice",
        all(sum(note in hit.entry.body for hit in found) == 1 for mine in notes for note in mine),
    )
    account.check("no two entries share an id", len({hit.entry.entry_id for hit in found}) == len(found))


def recall(account: "Account", backend: RemoteBackend, entry_id: str) -> None:
    agent = create_memory_search_agent(
        model(
            calls("memory_index", {"kind": "semantic"}),
            calls("memory_search", {"query": "Norden seat"}),
            says(lambda seen: f"In Bremen [{id_in(seen)}]." if "Bremen" in seen else "Memory doesn't say."),
        ),
        backend=backend,
    )
    answer = account.ask(agent, "Where is the seat of our customer Norden? Name the ids of what you rely on.")
    account.check("it is the corrected fact, with its id", "Bremen" in answer and entry_id in answer)


def look_as_stranger(account: "Account", stranger: MemsvcClient, entry_id: str) -> None:
    try:
        stranger.get_entry(entry_id)
        known = True
    except NotFound:
        known = False
    account.check("the entry is not found by its id", not known)
    seen = [stranger.search("Norden").items, stranger.grep("Norden").items, stranger.list_folder("/")]
    account.check("searches and listings are empty", not any(seen))


def open_export(account: "Account", client: MemsvcClient, folder: Path) -> None:
    archive = folder / "export.zip"
    archive.write_bytes(b"".join(client.export_zip()))
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder)
    memory = folder / "memory"
    account.check("the files are the service's, byte for byte", files_on_disk(memory) == files_served(client))
    on_disk = entries_of(MemoryStore(build_memory_backend(memory, for_deep_agent=False)))
    account.note(f"{len(on_disk)} entries")
    account.check(
        "a MemoryStore on that folder finds the very same entries",
        on_disk == entries_of(MemoryStore(RemoteBackend(client))) != {},
    )
    again = b"".join(client.export_zip())
    account.check("the same revision gives the same bytes again", again == archive.read_bytes())


@dataclass
class Account:
    """Tells each step on stdout, and keeps what was off."""

    steps: int = 0
    failures: list[str] = field(default_factory=list)

    def step(self, title: str) -> None:
        self.steps += 1
        print(f"\n{self.steps}. {title}", flush=True)

    def note(self, text: str) -> None:
        print(f"   {text}", flush=True)

    def ask(self, agent: Any, question: str) -> str:
        answer = str(agent.invoke({"messages": [("user", question)]})["messages"][-1].text)
        self.note(f"user: {question}")
        self.note(f"agent: {' '.join(answer.split())}")
        return answer

    def check(self, claim: str, holds: bool) -> None:
        self.note(f"{'ok  ' if holds else 'OFF '} {claim}")
        if not holds:
            self.failures.append(claim)

    def end(self) -> int:
        if self.failures:
            print(f"\n{len(self.failures)} of the claims above do not hold.")
            return 1
        print("\nEverything is as it should be.")
        return 0


def key_of_new_tenant(name: str) -> str:
    """What an operator does with `manage.py tenant_create` and `manage.py key_create`."""
    tree = testing.fresh_tree(name)
    from tenants.scopes import Scope
    from tenants.services import create_key

    return create_key(tenant=tree.tenant, name="demo", scopes=(Scope.READ, Scope.WRITE, Scope.EXPORT))[1]


def files_on_disk(memory: Path) -> dict[str, bytes]:
    """The files of a memory folder, by their paths in a tree."""
    files = (file for file in memory.rglob("*") if file.is_file())
    return {f"/memory/{file.relative_to(memory).as_posix()}": file.read_bytes() for file in files}


def files_served(client: MemsvcClient) -> dict[str, bytes]:
    return {file.path: client.read_bytes(file.path).data for file in client.iter_files("/memory")}


def entries_of(store: MemoryStore) -> dict[str, tuple[str, MemoryEntry]]:
    hits = store.search(include_superseded=True, limit=EVERYTHING)
    return {hit.entry.entry_id: (hit.path, hit.entry) for hit in hits}


if __name__ == "__main__":
    sys.exit(main())
