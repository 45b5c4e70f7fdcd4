"""The names of deep-memory-agent, and what README and docs say about those that are missing."""

import re
from pathlib import Path

import pytest

from memsvc import agents

ROOT = Path(__file__).resolve().parents[2]
# What the modules of deep-memory-agent 0.1.4 define for others: the names of its API reference and of its prompts.
NAMES = frozenset(
    re.findall(
        r"\w+",
        """
    READ_ONLY_MEMORY_PERMISSIONS create_memory_manager_agent create_memory_search_agent
    build_memory_backend resolve_backend
    ConsolidatedItem ConsolidationProposal ConsolidationResult consolidate_memory
    Confidence MemoryEntry new_entry_id parse_entries render_document render_entry split_document
    IndexRow index_target parse_index read_index_rows render_index_table update_index
    CATEGORY_KIND EPISODIC_DIR KIND_DIRECTORIES MEMORY_ROOT MemoryCategory MemoryKind PREFERENCES_PATH PROCEDURAL_DIR
    ROOT_INDEX_PATH SEMANTIC_DIR category_directory entry_path index_path shard_label slugify
    MANAGER_AGENT_PROMPT MEMORY_STRUCTURE_PROMPT SEARCH_AGENT_PROMPT
    MEMORY_DIRECTORIES PROCEDURE_TEMPLATE ensure_memory_tree
    MemoryHit MemoryStore
    build_recall_tools build_write_tools
    """,
    )
)


@pytest.mark.parametrize("page", ["README.md", "docs/agents.md"])
def test_what_is_missing_is_said(page: str) -> None:
    missing = {name for name in NAMES if not hasattr(agents, name)}
    (said,) = re.findall(r"still missing, ([^.]*)\.", (ROOT / page).read_text())

    assert len(NAMES) == 47
    assert set(re.findall(r"`(\w+)`", said)) - {"consolidation_model", "memory_consolidate"} == missing
    assert NAMES - missing <= set(agents.__all__)
