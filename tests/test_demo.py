import os
import subprocess
import sys
from pathlib import Path

import pytest

from memsvc import demo
from memsvc.agents import MemoryStore, build_memory_backend

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.django_db
def test_the_demo_shows_that_everything_holds_and_ends_by_itself() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MEMSVC_MODEL"}

    result = subprocess.run(
        [sys.executable, "-m", "memsvc.demo"],
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
    account = demo.Account()
    account.check("water is wet", True)
    account.check("pigs fly", False)

    assert account.end() == 1
    assert "OFF  pigs fly" in capsys.readouterr().out


def test_without_the_sample_trees_it_has_one_of_its_own(tmp_path: Path) -> None:
    memory = demo.write_own_tree(tmp_path)

    store = MemoryStore(build_memory_backend(memory, for_deep_agent=False))

    assert len(store.search()) == 3
    assert len(demo.files_on_disk(memory)) == 7
