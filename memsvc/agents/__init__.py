"""Agents with a memory: the deepagents side of memsvc.

The names of deep-memory-agent are here with the same signature and meaning, all but those of consolidation, which is
still to come. They work over any deepagents backend; over `PostgresBackend` and `RemoteBackend` the same
calls are transactions. Only `PostgresBackend` needs Django, and is loaded when it is first used.
"""

from typing import TYPE_CHECKING, Any

from memsvc.agents.backends.remote import RemoteBackend
from memsvc.agents.factories import (
    READ_ONLY_MEMORY_PERMISSIONS,
    create_memory_manager_agent,
    create_memory_search_agent,
)
from memsvc.agents.indexes import read_index_rows, update_index
from memsvc.agents.prompts import MANAGER_AGENT_PROMPT, MEMORY_STRUCTURE_PROMPT, SEARCH_AGENT_PROMPT
from memsvc.agents.store import MemoryStore, ensure_memory_tree
from memsvc.agents.tools import build_recall_tools, build_write_tools
from memsvc.agents.transactional import TransactionalMemory
from memsvc.agents.wiring import build_memory_backend, resolve_backend
from memsvc.format import (
    CATEGORY_KIND,
    EPISODIC_DIR,
    KIND_DIRECTORIES,
    MEMORY_DIRECTORIES,
    MEMORY_ROOT,
    PREFERENCES_PATH,
    PROCEDURAL_DIR,
    PROCEDURE_TEMPLATE,
    ROOT_INDEX_PATH,
    SEMANTIC_DIR,
    Confidence,
    IndexRow,
    MemoryCategory,
    MemoryEntry,
    MemoryHit,
    MemoryKind,
    category_directory,
    entry_path,
    index_path,
    index_target,
    new_entry_id,
    parse_entries,
    parse_index,
    render_document,
    render_entry,
    render_index_table,
    shard_label,
    slugify,
    split_document,
)

if TYPE_CHECKING:
    from memsvc.agents.backends.local import PostgresBackend as PostgresBackend

# Without PostgresBackend: `from memsvc.agents import *` has to work where there is no Django.
__all__ = [
    "CATEGORY_KIND",
    "EPISODIC_DIR",
    "KIND_DIRECTORIES",
    "MANAGER_AGENT_PROMPT",
    "MEMORY_DIRECTORIES",
    "MEMORY_ROOT",
    "MEMORY_STRUCTURE_PROMPT",
    "PREFERENCES_PATH",
    "PROCEDURAL_DIR",
    "PROCEDURE_TEMPLATE",
    "READ_ONLY_MEMORY_PERMISSIONS",
    "ROOT_INDEX_PATH",
    "SEARCH_AGENT_PROMPT",
    "SEMANTIC_DIR",
    "Confidence",
    "IndexRow",
    "MemoryCategory",
    "MemoryEntry",
    "MemoryHit",
    "MemoryKind",
    "MemoryStore",
    "RemoteBackend",
    "TransactionalMemory",
    "build_memory_backend",
    "build_recall_tools",
    "build_write_tools",
    "category_directory",
    "create_memory_manager_agent",
    "create_memory_search_agent",
    "ensure_memory_tree",
    "entry_path",
    "index_path",
    "index_target",
    "new_entry_id",
    "parse_entries",
    "parse_index",
    "read_index_rows",
    "render_document",
    "render_entry",
    "render_index_table",
    "resolve_backend",
    "shard_label",
    "slugify",
    "split_document",
    "update_index",
]


def __getattr__(name: str) -> Any:
    # Its module imports the database models, which a remote agent does without.
    if name == "PostgresBackend":
        from memsvc.agents.backends.local import PostgresBackend

        return PostgresBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
