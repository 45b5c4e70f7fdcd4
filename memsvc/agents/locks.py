"""One writer at a time in this process, for backends that have no transactions."""

import threading
from typing import Final
from weakref import WeakKeyDictionary

from deepagents.backends import FilesystemBackend
from deepagents.backends.protocol import BackendProtocol

_guard: Final = threading.Lock()
_by_directory: Final[dict[str, threading.RLock]] = {}
_by_backend: Final[WeakKeyDictionary[BackendProtocol, threading.RLock]] = WeakKeyDictionary()


def lock_of(backend: BackendProtocol) -> threading.RLock:
    """The lock of the storage behind `backend`; two backends on one directory share theirs.

    It keeps writers of this process apart and no others: several processes need the service.
    """
    with _guard:
        if isinstance(backend, FilesystemBackend):
            return _by_directory.setdefault(str(backend.cwd), threading.RLock())
        return _by_backend.setdefault(backend, threading.RLock())
