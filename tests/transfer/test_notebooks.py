"""MEMORY.md files of pydantic-deep, in each of the layouts that its releases have used."""

import io

import pytest

from memsvc.contract.imports import ImportReport
from memsvc.transfer.imports import import_notebooks
from memsvc.tree.access import Access
from tests.transfer.support import everything, outcomes, zip_of

PINNED = b"Pinned\r\n<!-- deep:pin-end -->\n\n- a note\n\n- another"


def take(access: Access, files: dict[str, bytes], *, dry_run: bool = False) -> ImportReport:
    return import_notebooks(access, io.BytesIO(zip_of(files)), dry_run=dry_run)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        (".deep/memory/main/MEMORY.md", "/agents/main/MEMORY.md"),
        ("project/.deep/memory/researcher/MEMORY.md", "/agents/researcher/MEMORY.md"),
        (".pydantic-deep/main/MEMORY.md", "/agents/main/MEMORY.md"),
        (".deep/memory/team/a/main/MEMORY.md", "/agents/team/a/main/MEMORY.md"),
        ("main/MEMORY.md", "/agents/main/MEMORY.md"),
        ("MEMORY.md", "/agents/main/MEMORY.md"),
    ],
)
def test_a_notebook_is_kept_byte_for_byte(memory: Access, name: str, path: str) -> None:
    take(memory, {name: PINNED})

    assert everything(memory) == {path: PINNED}


def test_topics_come_along_and_other_files_are_left_out(memory: Access) -> None:
    left_out = {
        ".deep/memory/main/.memory-operations.json": b"{}",
        ".deep/memory/main/AGENTS.md": b"# Rules",
        ".deep/memory/.memory-store.sqlite3": b"x",
        "README.md": b"# Project",
    }

    report = take(
        memory,
        {".deep/memory/main/MEMORY.md": b"m", ".deep/memory/main/postgres.md": b"p", **left_out},
    )

    assert everything(memory) == {"/agents/main/MEMORY.md": b"m", "/agents/main/postgres.md": b"p"}
    assert {name for name, outcome in outcomes(report).items() if outcome == "skipped"} == set(left_out)
    assert take(memory, {".deep/memory/main/MEMORY.md": b"m"}).revision == report.revision == 1


@pytest.mark.parametrize("dry_run", [True, False])
def test_of_two_notebooks_of_one_agent_the_first_counts(memory: Access, dry_run: bool) -> None:
    twice = {".deep/memory/main/MEMORY.md": b"a", ".pydantic-deep/main/MEMORY.md": b"b"}

    report = take(memory, twice, dry_run=dry_run)

    assert outcomes(report) == {
        "/agents/main/MEMORY.md": "created",
        ".pydantic-deep/main/MEMORY.md": "refused",
    }
    assert everything(memory) == ({} if dry_run else {"/agents/main/MEMORY.md": b"a"})
