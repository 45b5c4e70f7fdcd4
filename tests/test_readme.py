"""Every example of the README is run as it stands, in its order, against the real server."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from memsvc.tree.trees import tree_of
from tenants.services import create_tenant
from tests.agents.scripted import ScriptedModel
from tests.people import make_key

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def environment(
    live_url: str, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    tenant = create_tenant(slug="demo", name="Demo")
    tree_of(tenant)
    monkeypatch.setenv("MEMSVC_URL", live_url)
    monkeypatch.setenv("MEMSVC_KEY", make_key(tenant)[1])
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)
    return dict(os.environ)


def test_the_examples_work(environment: dict[str, str]) -> None:
    names: dict[str, Any] = {"model": ScriptedModel(script=[AIMessage(content="I shall keep it short.")])}
    examples = EXAMPLE.findall((ROOT / "README.md").read_text())
    assert len(examples) >= 7
    for language, code in examples:
        if language == "python":
            exec(compile(code, "README.md", "exec"), names)
        else:
            run_in_shell(code, environment)
    names["client"].close()
    names["memory"].close()
    assert (Path("memory.zip")).stat().st_size > 0
    assert "Enterprise" in Path("exported/memory/semantic_memory/facts.md").read_text()


def run_in_shell(code: str, environment: dict[str, str]) -> None:
    # Examples name commands as one who stands in the checkout; this test stands elsewhere, to leave it clean.
    code = code.replace("python manage.py", shlex.join([sys.executable, str(ROOT / "manage.py")]))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert '"code"' not in done.stdout, done.stdout
