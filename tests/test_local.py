import os
import re
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import manage

ROOT = Path(__file__).resolve().parent.parent
SHOW = """
import os
from memsvc import local
local.prepare(database=False)
print({name: os.environ.get(name) for name in (*local.SECRETS, "DATABASE_URL", "MEMSVC_ENV")})
"""


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        command, cwd=ROOT, env=clean | environment, text=True, capture_output=True, check=False
    )


def prepared(**environment: str) -> str:
    done = run(sys.executable, "-c", SHOW, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_secrets_are_made_once_for_all_and_are_private(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        seen = set(pool.map(lambda _: prepared(MEMSVC_DATA_DIR=str(tmp_path)), range(4)))

    assert len(seen) == 1
    assert len(set(re.findall(r"'([\w-]{64})'", seen.pop()))) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["secrets"]
    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o600


def test_what_the_environment_sets_stays(tmp_path: Path) -> None:
    environment = {"MEMSVC_ENV": "local", "MEMSVC_KEY_PEPPER": "mine", "DATABASE_URL": "postgresql://db/mine"}

    shown = prepared(MEMSVC_DATA_DIR=str(tmp_path), **environment)

    assert "'MEMSVC_KEY_PEPPER': 'mine', 'DATABASE_URL': 'postgresql://db/mine'" in shown


def test_in_production_nothing_is_made(tmp_path: Path) -> None:
    shown = prepared(MEMSVC_DATA_DIR=str(tmp_path), DATABASE_URL="postgresql://db/memsvc")

    assert "'MEMSVC_SECRET_KEY': None" in shown
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (["migrate"], True),
        (["runserver"], True),
        (["check"], False),
        (["check", "--database", "default"], True),
        (["migrate", "--help"], False),
        (["help"], False),
        ([], False),
    ],
)
def test_a_command_that_needs_no_database_starts_none(arguments: list[str], needed: bool) -> None:
    assert manage.needs_database(arguments) is needed


def test_make_help_lists_every_chore() -> None:
    chores = set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))

    listed = run("make", "help")

    assert listed.returncode == 0, listed.stderr
    assert set(re.findall(r"^  make (\w+) +\S", listed.stdout, re.MULTILINE)) == chores
    assert chores == {"help", "setup", "run", "stop", "test", "check", "demo", "bench"}
