"""The notebooks of pydantic-deep: a MEMORY.md for each agent, topics beside it, and where they stand in a tree.

`.deep/memory/<agent>/MEMORY.md` and `.pydantic-deep/<agent>/MEMORY.md` become `/agents/<agent>/MEMORY.md`; what stands
between (a namespace) stays before the agent, and so do folders of any other name.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

NOTEBOOK: Final = "MEMORY.md"
AGENTS_FOLDER: Final = "agents/"

_ROOTS: Final = (".deep/memory/", ".pydantic-deep/")
# What an agent is told, not what it remembers.
_CONTEXT_FILES: Final = frozenset({"AGENTS.md", "SOUL.md", "DEEP.md"})
_DEFAULT_AGENT: Final = "main/"


@dataclass(slots=True)
class Notebooks:
    """Names in an archive: by the name that they get in a tree, and those that are left out, with the reason."""

    taken: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    refused: list[tuple[str, str]] = field(default_factory=list)


def notebooks_in(names: Iterable[str]) -> Notebooks:
    found = Notebooks()
    every = list(names)
    agents = {name.removesuffix(NOTEBOOK) for name in every if f"/{name}".endswith(f"/{NOTEBOOK}")}
    for name in every:
        folder, slash, file = name.rpartition("/")
        if reason := _left_out(folder + slash, file, agents):
            found.skipped[name] = reason
            continue
        path = f"{AGENTS_FOLDER}{_place(folder + slash)}{file}"
        if path in found.taken:
            found.refused.append((name, f"would be the same file as {found.taken[path]!r}, which counts"))
        found.taken.setdefault(path, name)
    return found


def _left_out(folder: str, file: str, agents: set[str]) -> str:
    if folder not in agents:
        return f"is in no agent's folder, beside a {NOTEBOOK}"
    if file in _CONTEXT_FILES:
        return "tells an agent what it is to do, it is no memory"
    return "" if file.endswith(".md") else "is no markdown file"


def _place(folder: str) -> str:
    """The agent's folder, without the one in which the framework keeps all of them."""
    for root in _ROOTS:
        _, found, behind = f"/{folder}".rpartition(f"/{root}")
        if found:
            return behind or _DEFAULT_AGENT
    return folder or _DEFAULT_AGENT
