"""What a program or a remote agent imports to use a memsvc server. Needs neither Django nor a database.

`MemsvcClient` and, for event loops, `AsyncMemsvcClient` have a typed method for everything that the REST interface
does. `RemoteBackend` is a deepagents backend over it, and `MemoryStore(RemoteBackend(url, api_key=key))` the memory of
an agent. The names are loaded when they are first used: deepagents costs seconds, and a program that only sends
requests shall not pay them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from memsvc.client.connection import RetryPolicy as RetryPolicy
    from memsvc.client.errors import MemsvcError as MemsvcError
    from memsvc.client.http import AsyncMemsvcClient as AsyncMemsvcClient
    from memsvc.client.http import MemsvcClient as MemsvcClient

_HOME: Final = {
    "AsyncMemsvcClient": "memsvc.client.http",
    "MemsvcClient": "memsvc.client.http",
    "MemsvcError": "memsvc.client.errors",
    "MemoryStore": "memsvc.agents",
    "RemoteBackend": "memsvc.agents",
    "RetryPolicy": "memsvc.client.connection",
}

__all__ = ["AsyncMemsvcClient", "MemoryStore", "MemsvcClient", "MemsvcError", "RemoteBackend", "RetryPolicy"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
