"""Nobody is called who wasn't asked for: the real processes, with every connect and send of theirs written down.

The sockets of native libraries count too, so the kernel's calls are traced and not Python's.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from psycopg.conninfo import conninfo_to_dict

from memsvc import testing
from memsvc.client import MemsvcClient
from memsvc.database.tenancy import tenant_transaction
from memsvc.recall.models import Vector
from memsvc.tree.models import Tree
from memsvc.tree.trees import tree_of
from tests.people import make_key, make_tenant

ROOT = Path(__file__).resolve().parent.parent
SWITCH = "ORT_DISABLE_TELEMETRY"
# By which onnxruntime knows that it runs in a build, where it keeps still of itself: an installation has none of them.
OF_BUILDS = (
    *("CI", "APPVEYOR", "BUILDKITE", "CIRCLECI", "CODEBUILD_BUILD_ID", "GITHUB_ACTIONS", "GITLAB_CI"),
    *("JENKINS_URL", "TEAMCITY_VERSION", "TF_BUILD", "TRAVIS"),
)
STRACE = shutil.which("strace")
# Far beyond what it takes: only for something that hangs.
PATIENCE = 120
# Where a call goes to, as strace writes it.
ADDRESS = re.compile(r"sa_family=AF_(?:UNIX|INET6?)\b[^}]*")
# An agent's program, which has deepagents, LangChain and what they bring.
AGENT = """
import sys
from memsvc.agents import create_memory_manager_agent
from memsvc.client import RemoteBackend
from tests.agents.scripted import answers_of, model_calling

memory = RemoteBackend(sys.argv[1], api_key=sys.argv[2])
calls = model_calling(("memory_write", {"category": "facts", "content": "Ann likes tea.", "summary": "Tea"}))
[stored] = answers_of(create_memory_manager_agent(calls, backend=memory))
assert stored.content.startswith("Stored "), stored
"""


def can_trace() -> bool:
    return (
        STRACE is not None and subprocess.run([STRACE, "-o", os.devnull, "true"], check=False).returncode == 0
    )


class TracedPython:
    """A Python with an empty home and without our switch in its environment, whose calls are written down."""

    def __init__(self, folder: Path, name: str, *options: str) -> None:
        self.home = folder / name / "home"
        self.home.mkdir(parents=True)
        self._calls = folder / name / "calls"
        self.executable = folder / name / "python"
        trace = f"{STRACE} -D -f -qq -e trace=connect,sendto,sendmsg,sendmmsg -o {self._calls} {' '.join(options)}"
        unset = " ".join(f"-u {name}" for name in (SWITCH, *OF_BUILDS))
        self.executable.write_text(
            f'#!/bin/sh\nexec env {unset} HOME={self.home} {trace} {sys.executable} "$@"\n'
        )
        self.executable.chmod(0o700)

    @contextmanager
    def running(self, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
        process = subprocess.Popen([self.executable, *arguments], cwd=ROOT, env=os.environ | environment)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(PATIENCE)

    def called(self) -> set[str]:
        """The addresses, without that of the service that names accounts: libpq asks it who its user is."""
        found = ADDRESS.findall(self._calls.read_text()) if self._calls.exists() else ()
        return {address for address in found if "/nscd/" not in address}

    def kept(self) -> list[str]:
        return [str(path.relative_to(self.home)) for path in self.home.rglob("*")]


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)


@pytest.mark.parametrize("module", ["memsvc.recall.minilm", "memsvc.recall.embedding, onnxruntime"])
@pytest.mark.parametrize("before", ["0", "false", "", None])
def test_a_model_leaves_nothing_in_the_home(tmp_path: Path, module: str, before: str | None) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in (SWITCH, *OF_BUILDS)}
    environment["HOME"] = str(tmp_path)
    subprocess.run(
        [sys.executable, "-c", f"import {module}"],
        cwd=ROOT,
        env=environment if before is None else environment | {SWITCH: before},
        check=True,
    )

    assert list(tmp_path.rglob("*")) == []


def has_vectors(tree: Tree) -> bool:
    with tenant_transaction(tree.tenant_id):
        return Vector.objects.filter(tree=tree).exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(not can_trace(), reason="needs strace (apt-get install strace) and the right to use it")
def test_server_worker_and_agent_call_only_whom_they_were_told_to(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, port = (conninfo_to_dict(database_url)[name] for name in ("host", "port"))
    if not str(host).startswith("/"):
        pytest.skip("the host of a database on the network would be looked up, and rightly")
    server, worker, agent = (TracedPython(tmp_path, name) for name in ("server", "worker", "agent"))
    # What a library calls that was not told to keep still: it shows that the others had the time to do it too.
    # Its calls fail before they are made.
    untold = TracedPython(
        tmp_path, "untold", "-e", "inject=connect,sendto,sendmsg,sendmmsg:error=ENETUNREACH"
    )
    tree = tree_of(make_tenant())
    _, key = make_key(tree.tenant)

    with ExitStack() as stack:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "executable", str(server.executable))
            url = stack.enter_context(testing.running_server())
        with worker.running("manage.py", "worker", DATABASE_URL=database_url):
            with agent.running("-c", AGENT, url, key) as program:
                assert program.wait(PATIENCE) == 0
            until(lambda: has_vectors(tree))
            with MemsvcClient(url, key) as client:
                assert client.search("What does Ann drink?", mode="semantic").items
            with untold.running("-c", "import onnxruntime, time; time.sleep(600)"):
                until(lambda: bool(untold.called()))

    database = f'sa_family=AF_UNIX, sun_path="{host}/.s.PGSQL.{port}"'
    service = f'sa_family=AF_INET, sin_port=htons({urlsplit(url).port}), sin_addr=inet_addr("127.0.0.1")'
    assert server.called() == worker.called() == {database}
    assert agent.called() == {service}
    assert [*server.kept(), *worker.kept(), *agent.kept()] == []
