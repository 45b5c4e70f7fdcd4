"""The files that a new memory tree begins with."""

from collections.abc import Mapping
from types import MappingProxyType

from memsvc.format.layout import (
    EPISODIC_DIR,
    PREFERENCES_PATH,
    PROCEDURAL_DIR,
    ROOT_INDEX_PATH,
    SEMANTIC_DIR,
)

MEMORY_DIRECTORIES = (EPISODIC_DIR, SEMANTIC_DIR, PROCEDURAL_DIR)

# In the order in which they are made. The bytes are part of the format: other tools compare with them.
SCAFFOLD: Mapping[str, str] = MappingProxyType(
    {
        ROOT_INDEX_PATH: """\
# Memory index

Router for the whole memory tree. Load a file before relying on its content;
this index only says what exists and roughly what is in it.

| File | Description | Tags | Updated |
| --- | --- | --- | --- |
| episodic_memory/index.md | What happened, sharded by month | episodic | |
| semantic_memory/index.md | What is true: facts and rules | semantic | |
| procedural_memory/index.md | How things are done, one file each | procedural | |
| preferences.md | How the user wants the agent to behave | preferences | |
""",
        PREFERENCES_PATH: """\
# Preferences

How the user wants the agent to behave. Treated as semantic memory: a changed
preference supersedes the previous one rather than sitting next to it.
""",
        f"{EPISODIC_DIR}index.md": """\
# Episodic memory index

Sessions, feedback and mistakes, each entry tied to the moment it happened.
Files are sharded by month (`events/2026-08.md`) so no single file outgrows the
context window. Episodes are raw history: stable conclusions drawn from them
belong in semantic or procedural memory, put there by consolidation.

| File | Description | Tags | Updated |
| --- | --- | --- | --- |
""",
        f"{SEMANTIC_DIR}index.md": """\
# Semantic memory index

Statements believed to be true right now, detached from any single episode. A
fact that changes is *superseded*, not appended to: the new entry carries
`supersedes`, the old one gets `superseded_by`, and only the new one is active.

| File | Description | Tags | Updated |
| --- | --- | --- | --- |
| facts.md | Facts about the user, their work and their world | facts | |
| rules.md | Constraints and policies that govern behaviour | rules | |
""",
        f"{PROCEDURAL_DIR}index.md": """\
# Procedural memory index

One file per operating procedure, each with the same sections: when to use,
preconditions, steps, tools required, known failures.

| File | Description | Tags | Updated |
| --- | --- | --- | --- |
""",
        f"{SEMANTIC_DIR}facts.md": """\
# Facts

Statements believed to be true right now.
""",
        f"{SEMANTIC_DIR}rules.md": """\
# Rules

Constraints and policies that govern how the agent acts.
""",
    }
)

# A `str.format` template for the body of a procedure.
PROCEDURE_TEMPLATE = """\
# {title}

## When to use

{when_to_use}

## Preconditions

{preconditions}

## Steps

{steps}

## Tools required

{tools}

## Known failures

{known_failures}
"""
