"""One rule for new names, at every door; names from before it stay in use."""

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest

from memsvc.agents import PostgresBackend, RemoteBackend
from memsvc.client import MemsvcClient, MemsvcError
from memsvc.client.memory_tool import MemoryTool
from memsvc.format import MemoryCategory
from memsvc.transfer.exports import export_zip
from memsvc.tree import services
from memsvc.tree.trees import tree_of
from tenants.models import Tenant
from tests.client.conftest import Connect
from tests.people import make_key
from tests.tree.support import access_to

pytestmark = pytest.mark.django_db(transaction=True)

OLD = "/memory/old.md"
SPELT = [
    "کتاب\u200cها.md",
    "స్\u200c.md",
    "ක්\u200dෂණ.md",
    "ស្រី\u200c៊.md",
    "ไทย\u200bแลนด์.md",
    "ᠮᠣᠩᠭᠣᠯ\u180eᠠ.md",
    "葛\U000e0100飾.md",
    "👩🏽\u200d❤\ufe0f\u200d👨🏼.md",
    "1\ufe0f\u20e3 Inbox.md",
    "Ideas /later .md ",
]
DECEIVING = [
    "no\u200dtes.md",
    "کتاب\u200c.md",
    "کتاب\u200c\u200dها.md",
    "me\u200bmory.md",
    "a\ufe0f.md",
    "👩\u200d.md",
    "turn\u202eround.md",
    "soft\u00adhyphen.md",
]


class Tree:
    def __init__(self, client: MemsvcClient, http: httpx.Client, tenant: Tenant) -> None:
        self.client, self.http = client, http
        self.remote, self.postgres = (
            RemoteBackend(client, root="/"),
            PostgresBackend(tree_of(tenant), root="/"),
        )
        self.access = access_to(tenant)

    def post(self, url: str, **body: Any) -> Any:
        return self.http.post(url, json=body).json()

    def ask(self, command: str, **paths: str) -> None:
        below = {name: path.replace("/memory/", "/memories/") for name, path in paths.items()}
        MemoryTool(self.client).run({"command": command, "file_text": "x", **below})

    @property
    def memories(self) -> str:
        stores = self.http.get("/v1/memory_stores").json()["data"]
        return next(
            f"/v1/memory_stores/{each['id']}/memories" for each in stores if each["name"] == "default"
        )

    @property
    def memory(self) -> str:
        return f"{self.memories}/{self.post(self.memories, path=OLD, content='x')['id']}"

    def with_old(self) -> "Tree":
        self.client.write_file(OLD, "x")
        return self

    def names(self) -> set[str]:
        return {file.path for file in self.client.iter_files("/memory")}


def zipped(path: str) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr(path[1:], "x")
    return sink.getvalue()


def in_lines(path: str) -> bytes:
    header = {"format": "memsvc-export", "version": 1}
    return "\n".join(map(json.dumps, [header, {"type": "document", "path": path, "content": "x"}])).encode()


DOORS: dict[str, Callable[[Tree, str], object]] = {
    "put": lambda tree, path: tree.client.write_file(path, "x"),
    "append": lambda tree, path: tree.client.append_file(path, "x"),
    "upload": lambda tree, path: tree.client.upload_files([(path, b"x")]),
    "move": lambda tree, path: tree.with_old().client.move(OLD, path),
    "batch": lambda tree, path: tree.client.batch([{"op": "write", "path": path, "content": "x"}]),
    "PostgresBackend.write": lambda tree, path: tree.postgres.write(path, "x"),
    "PostgresBackend.upload_files": lambda tree, path: tree.postgres.upload_files([(path, b"x")]),
    "RemoteBackend.write": lambda tree, path: tree.remote.write(path, "x"),
    "RemoteBackend.upload_files": lambda tree, path: tree.remote.upload_files([(path, b"x")]),
    "memory tool, create": lambda tree, path: tree.ask("create", path=path),
    "memory tool, rename": lambda tree, path: tree.with_old().ask("rename", old_path=OLD, new_path=path),
    "memory store, create": lambda tree, path: tree.post(tree.memories, path=path, content="x"),
    "memory store, update": lambda tree, path: tree.post(tree.memory, path=path),
    "zip": lambda tree, path: tree.client.import_zip(zipped(path)),
    "jsonl": lambda tree, path: tree.client.import_archive(in_lines(path), format="jsonl"),
}


@pytest.fixture
def tree(connect: Connect, alice: Tenant, live_url: str) -> Iterator[Tree]:
    headers = {"Authorization": f"Bearer {make_key(alice)[1]}"}
    with httpx.Client(base_url=live_url, headers=headers, timeout=30) as http:
        yield Tree(connect(), http, alice)


@pytest.mark.parametrize("door", DOORS)
def test_a_name_is_taken_where_it_is_spelling_and_refused_where_it_only_deceives(
    tree: Tree, door: str
) -> None:
    taken = set()
    for name in [*SPELT, *DECEIVING]:
        with suppress(MemsvcError):
            DOORS[door](tree, f"/memory/{name}")
        taken |= {each for each in [*SPELT, *DECEIVING] if f"/memory/{each}" in tree.names()}
        if OLD in tree.names():
            tree.client.delete(OLD)

    assert taken == set(SPELT)


def test_both_backends_refuse_in_the_same_words(tree: Tree) -> None:
    path = "/memory/no\u200dtes.md"

    assert tree.postgres.write(path, "x") == tree.remote.write(path, "x")
    assert tree.postgres.upload_files([(path, b"x")]) == tree.remote.upload_files([(path, b"x")])


def test_names_that_a_procedure_gets_keep_their_joiners(tree: Tree) -> None:
    written = tree.client.add_entry(MemoryCategory.PROCEDURE, "Walk.", title="می\u200cخواهم بروم\u200c")

    assert written.path == "/memory/procedural_memory/می\u200cخواهم-بروم.md"


@pytest.mark.parametrize("name", DECEIVING)
def test_a_name_from_before_stays_in_use(tree: Tree, name: str) -> None:
    old = f"/memory/{name}"
    services.import_files(tree.access, [(old, b"one\n")])

    for backend in (tree.postgres, tree.remote):
        assert [each["path"] for each in backend.grep("one").matches or []] == [old]
        assert backend.write(old, "one\n").error is None
        assert backend.edit(old, "one", "one one").error is None
        assert backend.edit(old, "one one", "one").error is None
    back = b"".join(export_zip(tree.access))
    tree.client.move(old, OLD)
    assert tree.client.read_text(OLD) == "one\n"
    tree.client.delete(OLD)
    tree.client.import_zip(back, on_conflict="take")
    assert old in tree.names()
    assert tree.postgres.delete(old).error is None


def test_a_memory_store_takes_names_of_at_most_20_segments(tree: Tree) -> None:
    memory = tree.memory
    longest, deeper = "/d" * 20, "/e" * 21

    assert tree.post(memory, path=longest)["path"] == longest
    for url in (tree.memories, memory):
        refusal = tree.http.post(url, json={"path": deeper, "content": "x"})
        assert (refusal.status_code, "20 segments" in refusal.text) == (400, True)
    tree.client.write_file(deeper, "from another door")
    found = {each["path"]: each["id"] for each in tree.http.get(tree.memories).json()["data"]}
    assert tree.http.get(f"{tree.memories}/{found[deeper]}").json()["content"] == "from another door"
