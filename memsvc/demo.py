"""The main job from end to end, on a database and a server of its own: `python -m memsvc.demo` or `make demo`.

Two tenants; a tree is imported; agents store, correct and recall over HTTP with nothing but an API key; the other
tenant sees nothing; the export opens on disk. Says what it does and sees, and exits with 1 if anything is off. The
agents are real deepagents graphs; what their model says is scripted, unless MEMSVC_MODEL names a real one.
"""

import asyncio
import os
import re
import signal
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from memsvc import testing
from memsvc.agents import (
    MemoryStore,
    build_memory_backend,
    create_memory_manager_agent,
    create_memory_search_agent,
    render_entry,
)
from memsvc.client import MemsvcClient, RemoteBackend
from memsvc.client.errors import NotFound
from memsvc.format import MemoryCategory, MemoryEntry, MemoryHit, new_entry_id, parent_of
from memsvc.format.layout import entry_path
from memsvc.format.scaffold import SCAFFOLD

if TYPE_CHECKING:
    from memsvc.tree.models import Tree

SAMPLE_TREE: Final = Path(__file__).resolve().parents[2] / "shared" / "trees" / "clean_support_bot" / "memory"
WRITERS: Final = 8
NOTES_EACH: Final = 3
EVERYTHING: Final = 100_000

type Step = Callable[[str], AIMessage]


def main() -> int:
    # So that a stop from outside still takes the server and the database down.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    account = Account()
    with tempfile.TemporaryDirectory(prefix="memsvc-demo-") as folder:
        run(account, Path(folder))
    return account.end()


def run(account: "Account", folder: Path) -> None:
    account.step("A database and a server of its own")
    trees = {name: testing.fresh_tree(name) for name in ("ACME", "Globex")}
    url = testing.server_url()
    account.note(f"the service answers at {url}")

    account.step("Two tenants, each with a key")
    keys = {name: make_key(tree) for name, tree in trees.items()}
    for name, key in keys.items():
        account.note(f"{name}: {key[:12]}… may read, write and export")

    with MemsvcClient(url, keys["ACME"]) as acme, MemsvcClient(url, keys["Globex"]) as globex:
        account.step("A memory tree is imported into ACME's")
        import_tree(account, trees["ACME"], acme, folder / "own")

        account.step("A manager agent stores a fact and corrects it, over HTTP")
        successor = store_and_correct(account, RemoteBackend(acme))

        account.step(f"{WRITERS} agents write at once")
        asyncio.run(write_at_once(account, url, keys["ACME"]))

        account.step("A recall agent answers from memory")
        recall(account, RemoteBackend(acme), successor)

        account.step("Globex's key sees nothing of it")
        look_as_stranger(account, globex, successor)

        account.step("The export opens on disk, with no service at all")
        open_export(account, acme, folder)


def import_tree(account: "Account", tree: "Tree", client: MemsvcClient, own: Path) -> None:
    from memsvc.transfer.imports import import_directory
    from memsvc.tree.access import Access
    from tenants.actors import SYSTEM

    source = SAMPLE_TREE if SAMPLE_TREE.is_dir() else write_own_tree(own)
    report = import_directory(Access(tree=tree, actor=SYSTEM), source)
    entries = sum(file.entries for file in report.files)
    account.note(
        f"{source.parent.name}: {len(report.files)} files, {entries} entries, revision {report.revision}"
    )
    read = {file.path: client.read_bytes(file.path).data for file in client.iter_files()}
    account.check("every file reads back byte for byte", read == files_on_disk(source))


def store_and_correct(account: "Account", backend: RemoteBackend) -> str:
    store = MemoryStore(backend)
    manager = create_memory_manager_agent(
        model_saying(
            call("memory_search", query="Norden seat"),
            call(
                "memory_write",
                category="facts",
                content="The customer Norden has its seat in Hamburg.",
                summary="seat of Norden: Hamburg",
                tags=["norden"],
                source="user",
                confidence="high",
            ),
            say(lambda seen: f"I'll remember that. {seen}"),
        ),
        backend=backend,
    )
    account.quote("user", "Remember: our customer Norden has its seat in Hamburg.")
    account.quote("agent", ask(manager, "Remember: our customer Norden has its seat in Hamburg."))
    stored = store.search("Norden Hamburg")
    account.check("the fact is stored, with its router row", bool(stored) and is_in_index(store, stored[0]))

    corrector = create_memory_manager_agent(
        model_saying(
            call("memory_search", query="Norden"),
            lambda seen: tool_calls(
                (
                    "memory_update",
                    {
                        "entry_id": id_in(seen),
                        "content": "The customer Norden has its seat in Bremen.",
                        "summary": "seat of Norden: Bremen",
                    },
                )
            ),
            say(lambda seen: f"Corrected. {seen}"),
        ),
        backend=backend,
    )
    account.quote("user", "Norden moved: its seat is in Bremen now. Correct what you know.")
    account.quote("agent", ask(corrector, "Norden moved: its seat is in Bremen now. Correct what you know."))
    old = store.get(stored[0].entry.entry_id) if stored else None
    new = store.search("Norden Bremen")
    account.check(
        "the old fact names its successor, and only the new one is active",
        old is not None
        and len(new) == 1
        and old.entry.superseded_by == new[0].entry.entry_id
        and store.search("Norden Hamburg") == [],
    )
    return new[0].entry.entry_id if new else ""


async def write_at_once(account: "Account", url: str, key: str) -> None:
    """Each agent with connections of its own, as if it ran on a machine of its own."""
    clients = [MemsvcClient(url, key) for _ in range(WRITERS)]
    notes = [
        [f"Note {writer}-{number} of writer {writer}." for number in range(NOTES_EACH)]
        for writer in range(WRITERS)
    ]
    try:
        agents = [
            create_memory_manager_agent(model_writing(mine), backend=RemoteBackend(client))
            for client, mine in zip(clients, notes, strict=True)
        ]
        await asyncio.gather(
            *(
                agent.ainvoke(
                    {"messages": [HumanMessage("Remember each of these as a fact: " + " ".join(mine))]}
                )
                for agent, mine in zip(agents, notes, strict=True)
            )
        )
        found = MemoryStore(RemoteBackend(clients[0])).search("Note of writer", limit=EVERYTHING)
    finally:
        for client in clients:
            client.close()
    bodies = [hit.entry.body for hit in found]
    account.note(f"{len(found)} notes in {len({hit.path for hit in found})} file(s)")
    account.check(
        f"all {WRITERS * NOTES_EACH} notes are there, none twice",
        all(sum(note in body for body in bodies) == 1 for mine in notes for note in mine),
    )
    account.check("no two entries share an id", len({hit.entry.entry_id for hit in found}) == len(found))


def recall(account: "Account", backend: RemoteBackend, entry_id: str) -> None:
    agent = create_memory_search_agent(
        model_saying(
            call("memory_index", kind="semantic"),
            call("memory_search", query="Norden seat"),
            say(lambda seen: f"In Bremen [{id_in(seen)}]." if "Bremen" in seen else "Memory doesn't say."),
        ),
        backend=backend,
    )
    account.quote("user", "Where does our customer Norden have its seat?")
    answer = ask(
        agent, "Where does our customer Norden have its seat? Name the ids of the entries that you rely on."
    )
    account.quote("agent", answer)
    account.check(
        "the answer is the corrected one, with its entry's id", "Bremen" in answer and entry_id in answer
    )


def look_as_stranger(account: "Account", stranger: MemsvcClient, entry_id: str) -> None:
    try:
        stranger.get_entry(entry_id)
        known = True
    except NotFound:
        known = False
    account.check("the entry is not found by its id", not known)
    account.check(
        "searches and listings are empty",
        not stranger.search("Norden").items and not stranger.list_folder("/"),
    )
    account.check("so is a search in all files", not stranger.grep("Norden").items)


def open_export(account: "Account", client: MemsvcClient, folder: Path) -> None:
    archive = folder / "export.zip"
    with archive.open("wb") as file:
        file.writelines(client.export_zip())
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder / "opened")
    memory = folder / "opened" / "memory"
    account.note(f"{archive.stat().st_size:,} bytes of zip, {len(files_on_disk(memory))} files")

    served = {file.path: client.read_bytes(file.path).data for file in client.iter_files("/memory")}
    account.check("the files are the service's, byte for byte", files_on_disk(memory) == served)
    on_disk = entries_of(MemoryStore(build_memory_backend(memory, for_deep_agent=False)))
    remote = entries_of(MemoryStore(RemoteBackend(client)))
    account.note(f"{len(on_disk)} entries on disk, {len(remote)} in the service")
    account.check(
        "a plain MemoryStore on that directory finds the very same entries", on_disk == remote != {}
    )
    again = b"".join(client.export_zip())
    account.check("the same revision gives the same bytes again", again == archive.read_bytes())


# What the account is made of


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

    def quote(self, who: str, text: str) -> None:
        self.note(f"{who}: {' '.join(text.split())}")

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


def make_key(tree: "Tree") -> str:
    from django.db import close_old_connections

    from tenants.scopes import Scope
    from tenants.services import create_key

    _, key = create_key(tenant=tree.tenant, name="demo", scopes=(Scope.READ, Scope.WRITE, Scope.EXPORT))
    close_old_connections()
    return key


def write_own_tree(folder: Path) -> Path:
    """A small memory for checkouts without the sample trees; answers its memory folder."""
    texts = {**SCAFFOLD}
    for body in ("The shop opens at nine.", "The shop closes at six.", "Deliveries come on Tuesdays."):
        entry = MemoryEntry(
            entry_id=new_entry_id(),
            created=datetime.now(UTC),
            category=MemoryCategory.FACTS,
            body=body,
            summary=body,
        )
        path = entry_path(entry.category)
        texts[path] = f"{texts[path]}\n{render_entry(entry)}"
    for path, text in texts.items():
        file = folder / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="")
    return folder / "memory"


def files_on_disk(memory: Path) -> dict[str, bytes]:
    """The files of a memory folder by their path in a tree."""
    files = (file for file in memory.rglob("*") if file.is_file())
    return {f"/memory/{file.relative_to(memory).as_posix()}": file.read_bytes() for file in files}


def entries_of(store: MemoryStore) -> dict[str, tuple[str, MemoryEntry]]:
    hits = store.search(include_superseded=True, limit=EVERYTHING)
    return {hit.entry.entry_id: (hit.path, hit.entry) for hit in hits}


def is_in_index(store: MemoryStore, hit: MemoryHit) -> bool:
    index, rows = store.index(hit.entry.kind)
    return any(f"{parent_of(index)}/{row.path}" == hit.path for row in rows)


# What the model says


class ScriptedModel(BaseChatModel):
    """Takes the steps in order; each is given what the last tool answered."""

    steps: list[Any]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> "ScriptedModel":
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        done = sum(isinstance(message, AIMessage) for message in messages)
        seen = next((message.text for message in reversed(messages) if isinstance(message, ToolMessage)), "")
        return ChatResult(generations=[ChatGeneration(message=self.steps[done](seen))])


def model_saying(*steps: Step) -> str | BaseChatModel:
    """The model that MEMSVC_MODEL names, or one that takes these steps."""
    return os.environ.get("MEMSVC_MODEL") or ScriptedModel(steps=list(steps))


def model_writing(notes: Sequence[str]) -> str | BaseChatModel:
    """One that stores all notes in one turn, as parallel tool calls."""
    writes = [("memory_write", {"category": "facts", "content": note, "summary": note}) for note in notes]
    return model_saying(lambda _: tool_calls(*writes), say(lambda seen: seen))


def call(tool: str, **arguments: object) -> Step:
    return lambda _: tool_calls((tool, arguments))


def say(make: Callable[[str], str]) -> Step:
    return lambda seen: AIMessage(make(seen))


def tool_calls(*calls: tuple[str, dict[str, Any]]) -> AIMessage:
    return AIMessage(
        "",
        tool_calls=[
            {"type": "tool_call", "id": f"call-{token_hex(8)}", "name": name, "args": arguments}
            for name, arguments in calls
        ],
    )


def id_in(hits: str) -> str:
    """The id of the first entry in the answer of memory_search."""
    found = re.search(r"\[(mem_[^\]]+)\]", hits)
    return found.group(1) if found else ""


def ask(agent: Any, question: str) -> str:
    messages = agent.invoke({"messages": [HumanMessage(question)]})["messages"]
    return str(messages[-1].text)


if __name__ == "__main__":
    sys.exit(main())
