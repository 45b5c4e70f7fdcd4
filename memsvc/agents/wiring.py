"""Which backend serves `/memory/`: a directory on disk, or one that the caller brings."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend
from deepagents.backends.protocol import BackendProtocol

from memsvc.format.layout import MEMORY_ROOT

# grep leaves larger files out; a year of entries in one file stays well below.
_MAX_GREP_MEGABYTES = 10


def build_memory_backend(memory_dir: str | Path, *, for_deep_agent: bool = True) -> CompositeBackend:
    """`/memory/` in a directory on disk, which is created if need be.

    Everything else goes to the graph's state, which exists only while a deep agent runs; with `for_deep_agent=False`
    it goes to an empty scratch folder, so that the backend works on its own.
    """
    folder = Path(memory_dir).expanduser().resolve()
    folder.mkdir(parents=True, exist_ok=True)
    rest: BackendProtocol = (
        StateBackend() if for_deep_agent else FilesystemBackend(root_dir=_scratch_folder(), virtual_mode=True)
    )
    disk = FilesystemBackend(root_dir=folder, virtual_mode=True, max_file_size_mb=_MAX_GREP_MEGABYTES)
    return CompositeBackend(default=rest, routes={MEMORY_ROOT: disk})


@cache
def _scratch_folder() -> Path:
    """One empty folder for the life of this process: composites ask their default backend, too, when they search."""
    folder = Path(tempfile.mkdtemp(prefix="memsvc-scratch-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def resolve_backend(
    memory_dir: str | Path | None = None, backend: BackendProtocol | None = None
) -> BackendProtocol:
    """The backend for an agent: the one given, or one on `memory_dir`. ValueError for both and for neither."""
    if memory_dir is not None and backend is not None:
        raise ValueError("pass either memory_dir or backend, not both")
    if backend is not None:
        return backend
    if memory_dir is not None:
        return build_memory_backend(memory_dir)
    raise ValueError("one of memory_dir or backend is required")
