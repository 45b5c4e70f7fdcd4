"""Over backends without transactions: what is there stays, and a failure is not taken for an empty file."""

from pathlib import Path
from typing import Any

import pytest
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend
from deepagents.backends.protocol import (
    FileDownloadResponse,
    GlobResult,
    ReadResult,
    WriteResult,
)

from memsvc.agents import (
    MemoryCategory,
    MemoryKind,
    MemoryStore,
    build_memory_backend,
    build_recall_tools,
    resolve_backend,
)
from memsvc.format import SCAFFOLD

FACTS = "semantic_memory/facts.md"
HAND_MADE = (
    "\ufeff# Facts\r\n\r\nKept by hand.\r\n\r\n---\r\n\r\n---\r\nid: mem_2020-01-01_aaaaaa\r\ncategory: facts\r\n"
    "created: 2020-01-01\r\nmood: good\r\nconfidence: HIGH\r\ntags:\r\n- a\r\n- b\r\n# a comment\r\n---\r\n\r\n"
    "  Old.\r\n\r\n"
    "---\r\nid: broken\r\ncreated: 2020-02-30\r\ncategory: facts\r\n---\r\n\r\nOpaque.\r\n"
)


class Failing(FilesystemBackend):
    """Fails where a test says so."""

    fails: dict[str, object]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        answers = super().download_files(paths)
        for answer in answers:
            if answer.path in self.fails.get("download", ()):  # type: ignore[operator]
                answer.content, answer.error = None, "/host/path: input/output error"
        return answers

    def write(self, file_path: str, content: str) -> WriteResult:
        if file_path in self.fails.get("write", ()):  # type: ignore[operator]
            return WriteResult(error="[Errno 28] No space left on device: '/host/path'")
        return super().write(file_path, content)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        if "glob" in self.fails:
            return GlobResult(error="timed out in /host/path")
        return super().glob(pattern, path=path)

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        if "read" in self.fails:
            raise OSError("/host/path")
        return super().read(file_path, offset, limit)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.fixture
def disk(folder: Path) -> MemoryStore:
    store = MemoryStore(build_memory_backend(folder, for_deep_agent=False))
    store.ensure_tree()
    return store


@pytest.fixture
def failing(folder: Path) -> tuple[MemoryStore, dict[str, object]]:
    folder.mkdir()
    backend = Failing(root_dir=folder, virtual_mode=True)
    backend.fails = {}
    store = MemoryStore(CompositeBackend(default=StateBackend(), routes={"/memory/": backend}))
    store.ensure_tree()
    return store, backend.fails


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_a_supersession_in_a_hand_made_file_adds_one_line(disk: MemoryStore, folder: Path) -> None:
    (folder / FACTS).write_bytes(HAND_MADE.encode())

    hit = disk.write(MemoryCategory.FACTS, "New.", supersedes="mem_2020-01-01_aaaaaa")

    line = f"superseded_by: {hit.entry.entry_id}\r\n"
    text = (folder / FACTS).read_bytes().decode()
    assert text.replace(line, "", 1).startswith(HAND_MADE)
    assert text.count(line) == 1
    assert text.count("\r\n") == text.count("\n")
    assert [found.entry.body for found in disk.search(include_superseded=True)] == ["New.", "  Old."]


def test_one_bad_block_blinds_nothing(disk: MemoryStore, folder: Path) -> None:
    bomb = (
        "---\nid: mem_b\ncategory: facts\ncreated: 2026-01-01\nsummary: &a [*a, *a]\ntags: "
        + "[" * 2000
        + "\n---\n\nx\n\n"
    )
    (folder / FACTS).write_text(bomb)

    hit = disk.write(MemoryCategory.FACTS, "fine")

    assert disk.search() == [hit]
    assert (folder / FACTS).read_text().startswith(bomb.rstrip())


def test_a_file_beyond_100000_lines_keeps_every_entry(disk: MemoryStore, folder: Path) -> None:
    first = disk.write(MemoryCategory.FACTS, "first")
    with (folder / FACTS).open("a") as file:
        file.write("a line\n" * 100_500)
    last = disk.write(MemoryCategory.FACTS, "last")

    assert disk.get(first.entry.entry_id) is not None
    assert disk.get(last.entry.entry_id) == last
    assert (folder / FACTS).read_text().count("a line\n") == 100_500


def test_a_file_that_is_no_utf8_is_not_written_to(disk: MemoryStore, folder: Path) -> None:
    (folder / FACTS).write_bytes(b"caf\xe9\n")
    before = contents(folder)

    with pytest.raises(ValueError, match="not valid UTF-8, so nothing was written"):
        disk.write(MemoryCategory.FACTS, "x")

    assert contents(folder) == before


def test_text_around_an_index_table_stays(disk: MemoryStore, folder: Path) -> None:
    index = folder / "semantic_memory/index.md"
    index.write_text(index.read_text() + "| odd | row |\n\nBelow the table.\n")

    disk.write(MemoryCategory.FACTS, "x", summary="s")

    assert index.read_text().endswith("| odd | row |\n\nBelow the table.\n")


def test_a_missing_index_is_made_again(disk: MemoryStore, folder: Path) -> None:
    (folder / "semantic_memory/index.md").unlink()

    disk.write(MemoryCategory.FACTS, "x", summary="s")

    assert "facts.md" in {row.path for row in disk.index(MemoryKind.SEMANTIC)[1]}


def test_entries_in_unexpected_places_keep_their_meaning(disk: MemoryStore, folder: Path) -> None:
    hit = disk.write(MemoryCategory.EVENTS, "moved by hand")
    source = folder / hit.path.removeprefix("/memory/")
    (folder / "Notes").mkdir()
    source.rename(folder / "Notes" / "Kyōto 2026.md")

    (found,) = disk.search(kind=MemoryKind.EPISODIC)

    assert (found.path, found.entry) == ("/memory/Notes/Kyōto 2026.md", hit.entry)


def test_a_failing_read_before_a_write_is_not_an_empty_file(failing: Any, folder: Path) -> None:
    store, fails = failing
    store.write(MemoryCategory.FACTS, "kept")
    before = contents(folder)
    fails["download"] = {"/semantic_memory/facts.md"}

    with pytest.raises(ValueError, match=r"'/memory/semantic_memory/facts.md' could not be read$"):
        store.write(MemoryCategory.FACTS, "x")

    assert contents(folder) == before


def test_a_failing_search_says_so(failing: Any) -> None:
    store, fails = failing
    search = next(tool for tool in build_recall_tools(store) if tool.name == "memory_search")
    fails["glob"] = True

    assert search.invoke({"query": "x"}).startswith("Error: The memory could not be searched")


def test_a_file_that_cannot_be_read_fails_the_search(failing: Any) -> None:
    store, fails = failing
    store.write(MemoryCategory.FACTS, "x")
    fails["download"] = {"/semantic_memory/facts.md"}

    with pytest.raises(ValueError, match="could not be read"):
        store.search("x")


def test_a_write_that_fails_half_way_is_taken_back(failing: Any, folder: Path) -> None:
    store, fails = failing
    old = store.write(MemoryCategory.EVENTS, "one")
    before = contents(folder)
    fails["write"] = {"/episodic_memory/index.md"}

    with pytest.raises(ValueError, match=r"'/memory/episodic_memory/index.md' could not be written$"):
        store.write(MemoryCategory.EVENTS, "two", supersedes=old.entry.entry_id)
    with pytest.raises(ValueError, match="could not be written"):
        store.write(MemoryCategory.ERRORS, "a new file")

    assert contents(folder) == before


def test_a_scaffold_that_cannot_be_written_is_an_error(failing: Any, folder: Path) -> None:
    store, fails = failing
    (folder / "preferences.md").unlink()
    fails["write"] = {"/preferences.md"}

    with pytest.raises(ValueError, match="could not be written"):
        store.ensure_tree()


def test_an_exception_of_the_backend_names_no_path_of_the_host(failing: Any) -> None:
    store, fails = failing
    fails["read"] = True

    with pytest.raises(ValueError, match=r"^The memory could not be read: the backend failed \(OSError\)$"):
        store.read_file("/memory/index.md")


def test_state_outside_a_graph_is_an_error_and_not_an_empty_memory() -> None:
    with pytest.raises(ValueError, match="could not be read"):
        MemoryStore(StateBackend()).ensure_tree()


def test_two_backends_on_one_directory_take_turns(folder: Path) -> None:
    stores = [MemoryStore(build_memory_backend(folder, for_deep_agent=False)) for _ in range(4)]
    stores[0].ensure_tree()
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: stores[n % 4].write(MemoryCategory.FACTS, f"fact {n}"), range(40)))

    assert len(stores[0].search(limit=100)) == 40


class OnlyFiles(FilesystemBackend):
    """A backend that knows no transfer of bytes."""


def test_a_backend_without_downloads_is_read_by_pages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from deepagents.backends.protocol import BackendProtocol

    folder.mkdir()
    monkeypatch.setattr(OnlyFiles, "download_files", BackendProtocol.download_files, raising=False)
    store = MemoryStore(
        CompositeBackend(default=StateBackend(), routes={"/memory/": OnlyFiles(folder, virtual_mode=True)})
    )
    composite: Any = store.backend
    monkeypatch.setattr(type(composite), "download_files", BackendProtocol.download_files)

    assert store.ensure_tree() == list(SCAFFOLD)
    hit = store.write(MemoryCategory.FACTS, "x")
    (folder / "empty.md").write_text("")

    assert store.search() == [hit]


@pytest.mark.parametrize("for_deep_agent", [True, False])
def test_the_backend_of_a_directory(folder: Path, for_deep_agent: bool) -> None:
    backend = build_memory_backend(str(folder), for_deep_agent=for_deep_agent)

    assert folder.is_dir()
    assert list(backend.routes) == ["/memory/"]
    assert isinstance(backend.default, StateBackend) is for_deep_agent
    assert resolve_backend(backend=backend) is backend
    assert isinstance(resolve_backend(folder), CompositeBackend)
