"""The two memory agents: one that recalls and can't write, one that writes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from deepagents import FilesystemPermission, create_deep_agent
from deepagents.backends.protocol import BackendProtocol
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.graph.state import CompiledStateGraph

from memsvc.agents.prompts import MANAGER_AGENT_PROMPT, SEARCH_AGENT_PROMPT
from memsvc.agents.read_only import with_read_only_memory
from memsvc.agents.store import MemoryStore
from memsvc.agents.tools import build_recall_tools, build_write_tools
from memsvc.agents.transactional import mounted
from memsvc.agents.wiring import resolve_backend
from memsvc.format.layout import MEMORY_ROOT

# The graph's own file tools ask these rules; what holds in any case is the read-only backend underneath.
READ_ONLY_MEMORY_PERMISSIONS: Final = [
    FilesystemPermission(
        operations=["write"], paths=[f"{MEMORY_ROOT}**", MEMORY_ROOT.rstrip("/")], mode="deny"
    )
]


def create_memory_search_agent(
    model: str | BaseChatModel,
    *,
    memory_dir: str | Path | None = None,
    backend: BackendProtocol | None = None,
    system_prompt: str | None = None,
    tools: Sequence[BaseTool] = (),
    name: str = "memory_search_agent",
    **kwargs: Any,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """An agent that answers from memory and can't change it, by its tools, the graph's rules and the backend itself.

    Exactly one of `memory_dir` and `backend` (which serves `/memory/`) is needed, else ValueError. `system_prompt`
    replaces ours as a whole; `kwargs` go to `create_deep_agent`, with `permissions` after the deny rule.
    """
    writable = mounted(resolve_backend(memory_dir, backend))
    try:
        MemoryStore(writable).ensure_tree()
    except ValueError as refusal:
        # To recall, a key that may only read is enough.
        if "permission denied" not in str(refusal):
            raise
    guarded = with_read_only_memory(writable)
    return create_deep_agent(
        model,
        [*build_recall_tools(MemoryStore(guarded)), *tools],
        system_prompt=system_prompt or SEARCH_AGENT_PROMPT,
        backend=guarded,
        permissions=[*READ_ONLY_MEMORY_PERMISSIONS, *(kwargs.pop("permissions", None) or ())],
        name=name,
        **kwargs,
    )


def create_memory_manager_agent(
    model: str | BaseChatModel,
    *,
    memory_dir: str | Path | None = None,
    backend: BackendProtocol | None = None,
    system_prompt: str | None = None,
    tools: Sequence[BaseTool] = (),
    consolidation_model: str | BaseChatModel | None = None,
    name: str = "memory_manager_agent",
    **kwargs: Any,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The agent that keeps the memory: all memory tools, and deepagents' file tools on `/memory/`.

    Exactly one of `memory_dir` and `backend` (which serves `/memory/`) is needed, else ValueError. `system_prompt`
    replaces ours as a whole; `kwargs` go to `create_deep_agent`. There is no consolidation yet, so that naming a
    `consolidation_model` raises ValueError.
    """
    served = mounted(resolve_backend(memory_dir, backend))
    store = MemoryStore(served)
    memory_tools = [
        *build_recall_tools(store),
        *build_write_tools(store, consolidation_model=consolidation_model),
    ]
    store.ensure_tree()
    return create_deep_agent(
        model,
        [*memory_tools, *tools],
        system_prompt=system_prompt or MANAGER_AGENT_PROMPT,
        backend=served,
        name=name,
        **kwargs,
    )
