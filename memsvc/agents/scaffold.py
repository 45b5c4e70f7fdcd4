"""The files that every memory begins with."""

from deepagents.backends.protocol import BackendProtocol

from memsvc.agents.store import MemoryStore


def ensure_memory_tree(backend: BackendProtocol) -> list[str]:
    """Create what is missing of the memory layout; answers the paths in order. Nothing is overwritten.

    ValueError when a file can't be read or written: then the memory is not there, whatever was created before.
    """
    return MemoryStore(backend).ensure_tree()
