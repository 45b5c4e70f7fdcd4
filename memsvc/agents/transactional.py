"""Backends that change entries in one transaction, and how to find one behind `/memory/`."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol, runtime_checkable

from deepagents.backends import CompositeBackend, StateBackend
from deepagents.backends.protocol import BackendProtocol

from memsvc.format import EntryDraft, IndexRow, MemoryCategory, MemoryHit, MemoryKind
from memsvc.format.layout import MEMORY_ROOT
from memsvc.format.paths import canonical_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySearch:
    """Which entries are wanted: those that hold every word of `query`; `ranked`, those that answer it.

    All `tags` must be there. `since` is the first instant that an entry may be about: naive means UTC.
    """

    query: str = ""
    kind: MemoryKind | None = None
    category: MemoryCategory | None = None
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    include_superseded: bool = False
    ranked: bool = False


class EntryMemory(Protocol):
    """What `MemoryStore` needs of a memory. Paths are absolute, under `/memory/`.

    Each call raises ValueError, with a text that says what to do, when it can't be done; then nothing was changed.
    """

    def memory_add(self, draft: EntryDraft) -> MemoryHit:
        """Store an entry. With `supersedes` and no `title`, a procedure stays in the file of the old one."""
        ...

    def memory_get(self, entry_id: str) -> MemoryHit | None:
        """The entry with this id, superseded or not."""
        ...

    def memory_search(self, wanted: EntrySearch, limit: int) -> list[MemoryHit]:
        """At least one and at most `limit` entries, newest first, or best first where they are ranked."""
        ...

    def memory_recent_episodes(self, *, since: datetime | None = None, limit: int = 100) -> list[MemoryHit]:
        """The newest `limit` active episodes, oldest first."""
        ...

    def memory_index(self, kind: MemoryKind | None = None) -> tuple[str, list[IndexRow]]:
        """A router index: its path and its rows, none where the index does not exist."""
        ...

    def memory_scaffold(self) -> list[str]:
        """Create the files that every memory has and this one lacks; answers their paths."""
        ...


@runtime_checkable
class TransactionalMemory(EntryMemory, Protocol):
    """A backend whose entry operations are transactions of the service. `root` is the tree's folder that it mounts."""

    @property
    def root(self) -> str: ...

    def read_only(self) -> BackendProtocol:
        """The same files for one who may not change them."""
        ...


class Mount:
    """Where a backend's "/" lies in the tree: the agent's "/a.md" is the tree's "/memory/a.md"."""

    def __init__(self, root: str) -> None:
        self.root: Final = canonical_folder(root)

    def to_tree(self, path: str) -> str:
        """The tree path of a canonical path as the agent writes it."""
        if self.root == "/":
            return path
        return self.root if path == "/" else self.root + path

    def to_agent(self, path: str) -> str:
        """The agent's path of a tree path below the root."""
        return path if self.root == "/" else path.removeprefix(self.root) or "/"


def mounted(backend: BackendProtocol) -> BackendProtocol:
    """`backend` as it serves `/memory/`: one that holds the memory folder alone is mounted there."""
    if isinstance(backend, TransactionalMemory) and _is_memory_root(backend.root):
        return CompositeBackend(default=StateBackend(), routes={MEMORY_ROOT: backend})
    return backend


def transactional_memory(backend: BackendProtocol) -> TransactionalMemory | None:
    """The backend behind `/memory/`, if it is a transactional one and its `/memory/` is the tree's."""
    serving, path = route_to(backend, MEMORY_ROOT)
    if not isinstance(serving, TransactionalMemory):
        return None
    return serving if _is_memory_root(Mount(serving.root).to_tree(canonical_folder(path))) else None


def route_to(backend: BackendProtocol, path: str) -> tuple[BackendProtocol, str]:
    """The backend that serves `path` in the end, and the path as that one sees it."""
    while isinstance(backend, CompositeBackend):
        for prefix, routed in backend.sorted_routes:
            folder = prefix.rstrip("/") + "/"
            if path.startswith(folder):
                backend, path = routed, "/" + path.removeprefix(folder)
                break
        else:
            backend = backend.default
    return backend, path


def _is_memory_root(folder: str) -> bool:
    return canonical_folder(folder) == canonical_folder(MEMORY_ROOT)
