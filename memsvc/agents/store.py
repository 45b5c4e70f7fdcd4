"""`MemoryStore`: episodic, semantic and procedural memory behind a deepagents backend."""

from datetime import datetime

from deepagents.backends.protocol import BackendProtocol

from memsvc.agents.file_memory import FileMemory
from memsvc.agents.files import checked_memory_path, read_page, text_of
from memsvc.agents.transactional import EntryMemory, EntrySearch, mounted, transactional_memory
from memsvc.format import Confidence, EntryDraft, IndexRow, MemoryCategory, MemoryHit, MemoryKind

DEFAULT_SEARCH_LIMIT = 20


class MemoryStore:
    """Reads and writes the memory under `/memory/` of a backend.

    Over `PostgresBackend` and `RemoteBackend` each call is one transaction of the service; over any other backend the
    files themselves are read and changed. A call that can't be done raises ValueError with a text for the model, and
    has changed nothing.
    """

    def __init__(self, backend: BackendProtocol) -> None:
        self._backend = backend
        self._files = mounted(backend)
        self._memory: EntryMemory = transactional_memory(self._files) or FileMemory(self._files)

    @property
    def backend(self) -> BackendProtocol:
        """The backend that the store was made with."""
        return self._backend

    def ensure_tree(self) -> list[str]:
        """Create the files that every memory has and this one lacks; answers their paths."""
        return self._memory.memory_scaffold()

    def read_file(self, path: str, offset: int = 0, limit: int = 2000) -> str:
        """The text of up to `limit` lines, from the 0-based line `offset` on."""
        return self.read_lines(path, offset, limit)[0]

    def read_lines(self, path: str, offset: int, limit: int) -> tuple[str, int | None, int | None]:
        """As `read_file`, with the offset of the next line, if there is one, and the number of lines, if known."""
        page = read_page(self._files, checked_memory_path(path), offset, limit)
        if page is None:
            raise ValueError(f"File '{path}' not found")
        return text_of(page, path), page.next_offset, page.total_lines

    def has_file(self, path: str) -> bool:
        return read_page(self._files, checked_memory_path(path), 0, 1) is not None

    def write(
        self,
        category: MemoryCategory,
        body: str,
        *,
        summary: str = "",
        tags: tuple[str, ...] = (),
        source: str = "agent",
        confidence: Confidence = Confidence.MEDIUM,
        supersedes: str | None = None,
        title: str | None = None,
        when: datetime | None = None,
    ) -> MemoryHit:
        """Append an entry to the file of its category, and keep the router index in step.

        `supersedes` retires that entry, which must be active and of the same category. `title` names a procedure's
        file; without it a superseding procedure stays in the file of the old one. `when` is the instant that the
        entry refers to: naive means UTC, None means now.
        """
        return self._memory.memory_add(
            EntryDraft(
                category=category,
                body=body,
                summary=summary,
                tags=tags,
                source=source,
                confidence=confidence,
                supersedes=supersedes,
                title=title,
                when=when,
                metadata=None,
            )
        )

    def get(self, entry_id: str) -> MemoryHit | None:
        """The entry with this id, superseded or not; None when there is none."""
        return self._memory.memory_get(entry_id)

    def search(
        self,
        query: str = "",
        *,
        kind: MemoryKind | None = None,
        category: MemoryCategory | None = None,
        tags: tuple[str, ...] = (),
        include_superseded: bool = False,
        limit: int = DEFAULT_SEARCH_LIMIT,
        ranked: bool = False,
    ) -> list[MemoryHit]:
        """Entries that hold every word of `query` and carry all `tags`, newest first, at least one and at most `limit`.

        Case doesn't matter. An empty query matches everything. With `ranked` those that answer `query`, best
        first: over `PostgresBackend` and `RemoteBackend` by words and by meaning, elsewhere by how many of its words
        they hold.
        """
        wanted = EntrySearch(
            query=query,
            kind=kind,
            category=category,
            tags=tags,
            include_superseded=include_superseded,
            ranked=ranked,
        )
        return self._memory.memory_search(wanted, limit)

    def recent_episodes(self, *, since: datetime | None = None, limit: int = 100) -> list[MemoryHit]:
        """The newest `limit` active episodes created at `since` or later, oldest first."""
        return self._memory.memory_recent_episodes(since=since, limit=limit)

    def index(self, kind: MemoryKind | None = None) -> tuple[str, list[IndexRow]]:
        """A router index, of the whole tree or of one kind: its path and its rows."""
        return self._memory.memory_index(kind)


def ensure_memory_tree(backend: BackendProtocol) -> list[str]:
    """Create what is missing of the memory layout; answers the paths in order. Nothing is overwritten.

    ValueError when a file can't be read or written: then the memory is not there, whatever was created before.
    """
    return MemoryStore(backend).ensure_tree()
