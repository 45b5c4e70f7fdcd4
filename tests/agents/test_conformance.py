"""The conformance suite for backends, where its folder lies beside the checkout."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUITE = ROOT.parent / "shared" / "conformance"

pytestmark = pytest.mark.skipif(not SUITE.is_dir(), reason="the conformance suite is not beside the checkout")


# It makes its database on the server of these tests, which one that is run alone would not start.
@pytest.mark.usefixtures("django_db_setup")
# The random search over HTTP would take many minutes; the same code answers it in the first run.
@pytest.mark.parametrize(
    ("factory", "selection"),
    [("memsvc.testing:fresh_backend", []), ("memsvc.testing:fresh_remote_backend", ["-m", "not slow"])],
    ids=["postgres", "remote"],
)
def test_every_case_passes(factory: str, selection: list[str], tmp_path: Path) -> None:
    # pytest-django would block the database in tests that it doesn't know.
    options: list[str | Path] = [
        "-c",
        SUITE / "pytest.ini",
        f"--rootdir={SUITE}",
        "-p",
        "no:django",
        "-p",
        "no:cacheprovider",
    ]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", SUITE, *options, *selection],
        cwd=tmp_path,
        env=environment(factory, tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )

    summary = run.stdout[-4000:]
    assert run.returncode == 0, summary + run.stderr[-2000:]
    assert re.search(r"\d+ passed", summary)
    assert not re.search(r"failed|error|skipped|known=|xpass=", summary)


def environment(factory: str, scratch: Path) -> dict[str, str]:
    """For a process with a database of its own on the server of these tests; the suite's folder stays as it is."""
    return os.environ | {
        "BACKEND_FACTORY": factory,
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(scratch / "hypothesis"),
        "CONFORMANCE_EXAMPLES": "15",
        "CONFORMANCE_TIMEOUT": "120",
    }
