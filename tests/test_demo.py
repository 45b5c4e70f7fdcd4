import os
import subprocess
import sys
from pathlib import Path

import pytest

from examples import support_team
from memsvc.agents import MemoryStore, build_memory_backend

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.django_db
def test_the_demo_shows_that_everything_holds_and_ends_by_itself() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MEMSVC_MODEL"}

    result = subprocess.run(
        [sys.executable, "-m", "examples.support_team"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert (result.returncode, result.stdout.splitlines()[-1:]) == (0, ["Everything is as it should be."]), (
        result.stdout + result.stderr
    )


def test_a_claim_that_does_not_hold_is_told_and_makes_it_fail(capsys: pytest.CaptureFixture[str]) -> None:
    account = support_team.Account()
    account.check("water is wet", True)
    account.check("pigs fly", False)

    assert account.end() == 1
    assert "OFF  pigs fly" in capsys.readouterr().out


def test_the_memory_that_it_brings_has_entries_of_each_kind_and_rows_for_all_files() -> None:
    store = MemoryStore(build_memory_backend(support_team.MEMORY, for_deep_agent=False))

    found = store.search()

    assert {hit.entry.kind for hit in found} == {"episodic", "semantic", "procedural"}
    rows = {row.path for kind in (None, *{hit.entry.kind for hit in found}) for row in store.index(kind)[1]}
    names = {path.rsplit("/memory/")[-1] for path in support_team.files_on_disk(support_team.MEMORY)}
    assert {name for name in names - {"index.md"} if not any(name.endswith(row) for row in rows)} == set()
