"""The two agents as real deepagents graphs, driven by a scripted model."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from deepagents import FilesystemPermission
from deepagents.backends import CompositeBackend, FilesystemBackend, LocalShellBackend, StateBackend
from deepagents.backends.protocol import BackendProtocol
from langchain_core.tools import tool

from memsvc.agents import (
    MANAGER_AGENT_PROMPT,
    READ_ONLY_MEMORY_PERMISSIONS,
    SEARCH_AGENT_PROMPT,
    MemoryCategory,
    MemoryStore,
    PostgresBackend,
    create_memory_manager_agent,
    create_memory_search_agent,
)
from memsvc.client import RemoteBackend
from memsvc.format import SCAFFOLD
from memsvc.testing import fresh_backend, fresh_tree
from tenants.scopes import Scope
from tenants.services import create_key
from tests.agents.scripted import Call, ScriptedModel, answers_of, model_calling

FACTS = "/memory/semantic_memory/facts.md"
RECALL_TOOLS = {"memory_index", "memory_search", "memory_read", "memory_get"}
WRITE_TOOLS = {"memory_write", "memory_update"}


def everything_under_memory(backend: BackendProtocol) -> dict[str, bytes]:
    files = MemoryStore(backend)._files
    found = files.glob("**/*", path="/memory").matches or []
    answers = files.download_files([match["path"] for match in found])
    return {answer.path: answer.content or b"" for answer in answers}


@pytest.mark.parametrize("in_loop", [False, True])
def test_the_manager_stores_corrects_and_finds(backend: BackendProtocol, in_loop: bool) -> None:
    write: Call = ("memory_write", {"category": "facts", "content": "Ann uses pip", "summary": "Ann"})
    (stored,) = answers_of(create_memory_manager_agent(model_calling(write), backend=backend))
    old = stored.content.split()[1]

    updated, found = answers_of(
        create_memory_manager_agent(
            model_calling(
                ("memory_update", {"entry_id": old, "content": "Ann uses uv"}),
                ("memory_search", {"query": "ann"}),
            ),
            backend=backend,
        ),
        in_loop=in_loop,
    )

    assert updated.content.endswith(f"superseding {old}.")
    assert "Ann uses uv" in found.content
    assert "pip" not in found.content


@pytest.mark.parametrize("in_loop", [False, True])
def test_parallel_calls_of_one_turn_all_count(backend: BackendProtocol, in_loop: bool) -> None:
    calls: list[Call] = [
        ("memory_write", {"category": "facts", "content": f"fact {n}", "summary": f"fact {n}"})
        for n in range(6)
    ]

    answers = answers_of(create_memory_manager_agent(model_calling(calls), backend=backend), in_loop=in_loop)

    assert all(answer.content.startswith("Stored mem_") for answer in answers)
    assert len(MemoryStore(backend).search()) == 6


def test_the_manager_may_use_the_file_tools_on_memory(backend: BackendProtocol) -> None:
    answers = answers_of(
        create_memory_manager_agent(
            model_calling(
                ("write_file", {"file_path": "/memory/notes/plan.md", "content": "# Plan\n"}),
                (
                    "edit_file",
                    {"file_path": "/memory/notes/plan.md", "old_string": "Plan", "new_string": "Plans"},
                ),
                ("read_file", {"file_path": "/memory/notes/plan.md"}),
                ("ls", {"path": "/memory/notes"}),
            ),
            backend=backend,
        )
    )

    assert [answer.status for answer in answers] == ["success"] * 4
    assert "# Plans" in answers[2].content
    assert everything_under_memory(backend)["/memory/notes/plan.md"] == b"# Plans\n"


WRITES: list[Call] = [
    ("write_file", {"file_path": FACTS, "content": "x"}),
    ("write_file", {"file_path": "/memory/new.md", "content": "x"}),
    ("write_file", {"file_path": "/memory/.x", "content": "x"}),
    ("write_file", {"file_path": "/memory/a/.b/c.md", "content": "x"}),
    ("write_file", {"file_path": "//memory/x.md", "content": "x"}),
    ("write_file", {"file_path": "/memory//x.md", "content": "x"}),
    ("write_file", {"file_path": "/memory/./x.md", "content": "x"}),
    ("write_file", {"file_path": "/memory/../memory/x.md", "content": "x"}),
    ("edit_file", {"file_path": FACTS, "old_string": "Facts", "new_string": "Lies"}),
    ("edit_file", {"file_path": "/memory/.hidden.md", "old_string": "a", "new_string": "b"}),
    ("delete", {"file_path": FACTS}),
    ("delete", {"file_path": "/memory/semantic_memory"}),
    ("delete", {"file_path": "/memory"}),
    ("delete", {"file_path": "/memory/"}),
    ("delete", {"file_path": "/"}),
]


@pytest.mark.parametrize("in_loop", [False, True])
def test_the_search_agent_reads_and_cannot_write_by_any_tool(backend: BackendProtocol, in_loop: bool) -> None:
    manager = MemoryStore(backend)
    manager.ensure_tree()
    hit = manager.write(MemoryCategory.FACTS, "Ann drinks tea", summary="Ann")
    before = everything_under_memory(backend)

    found, *refused = answers_of(
        create_memory_search_agent(
            model_calling(("memory_search", {"query": "tea"}), *WRITES), backend=backend
        ),
        in_loop=in_loop,
    )

    assert hit.entry.entry_id in found.content
    assert [answer.status for answer in refused] == ["error"] * len(WRITES)
    assert everything_under_memory(backend) == before


def test_the_refusal_of_a_write_says_permission_denied(backend: BackendProtocol) -> None:
    (refused,) = answers_of(create_memory_search_agent(model_calling(WRITES[0]), backend=backend))

    assert "permission denied" in refused.content


def test_the_backend_itself_refuses_the_search_agent(
    backend: BackendProtocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memsvc.agents.factories.READ_ONLY_MEMORY_PERMISSIONS", [])
    MemoryStore(backend).ensure_tree()
    before = everything_under_memory(backend)

    answers_of(create_memory_search_agent(model_calling(*WRITES), backend=backend))

    assert everything_under_memory(backend) == before


def test_the_search_agent_may_write_scratch_files(backend: BackendProtocol) -> None:
    (written,) = answers_of(
        create_memory_search_agent(
            model_calling(("write_file", {"file_path": "/scratch.md", "content": "x"})),
            backend=CompositeBackend(default=StateBackend(), routes={"/memory/": fresh_route(backend)}),
        )
    )

    assert written.status == "success"


def fresh_route(backend: BackendProtocol) -> BackendProtocol:
    """What serves `/memory/`, to be mounted elsewhere."""
    return backend.routes["/memory/"] if isinstance(backend, CompositeBackend) else backend


def test_the_search_agent_has_no_shell(tmp_path: Path) -> None:
    shell = LocalShellBackend(root_dir=tmp_path, virtual_mode=True)
    disk = FilesystemBackend(root_dir=tmp_path / "memory", virtual_mode=True)
    (tmp_path / "memory").mkdir()
    model = model_calling(
        ("execute", {"command": "echo x > memory/x.md"}),
        ("write_file", {"file_path": "//memory/x.md", "content": "x"}),
    )

    answers_of(
        create_memory_search_agent(model, backend=CompositeBackend(default=shell, routes={"/memory/": disk}))
    )

    assert not (tmp_path / "memory" / "x.md").exists()


def test_tools_and_prompts(tmp_path: Path) -> None:
    searching, managing = model_calling(), model_calling()
    answers_of(create_memory_search_agent(searching, memory_dir=tmp_path))
    answers_of(create_memory_manager_agent(managing, memory_dir=tmp_path))

    assert searching.tool_names >= RECALL_TOOLS
    assert not searching.tool_names & WRITE_TOOLS
    assert managing.tool_names >= RECALL_TOOLS | WRITE_TOOLS
    assert SEARCH_AGENT_PROMPT in searching.system_text
    assert MANAGER_AGENT_PROMPT in managing.system_text


@pytest.mark.parametrize("create", [create_memory_search_agent, create_memory_manager_agent])
class TestBothFactories:
    def test_make_the_scaffold_on_disk(self, create: Any, tmp_path: Path) -> None:
        create(ScriptedModel(script=[]), memory_dir=tmp_path / "new" / "memory")

        written = {
            "/memory/" + path.relative_to(tmp_path / "new" / "memory").as_posix(): path.read_text()
            for path in (tmp_path / "new").rglob("*.md")
        }
        assert written == dict(SCAFFOLD)

    def test_take_exactly_one_of_directory_and_backend(self, create: Any, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="one of memory_dir or backend"):
            create(ScriptedModel(script=[]))
        with pytest.raises(ValueError, match="not both"):
            create(ScriptedModel(script=[]), memory_dir=tmp_path, backend=StateBackend())

    def test_replace_the_prompt_and_take_more_tools_and_a_name(self, create: Any, tmp_path: Path) -> None:
        @tool
        def weather() -> str:
            """Tell the weather."""
            return "sunny"

        model = model_calling(("weather", {}))
        graph = create(
            model, memory_dir=tmp_path, system_prompt="Be brief.", tools=[weather], name="rememberer"
        )
        (answer,) = answers_of(graph)

        assert graph.name == "rememberer"
        assert answer.content == "sunny"
        assert "Be brief." in model.system_text
        assert "## The memory" not in model.system_text

    def test_pass_the_caller_s_permissions_on(self, create: Any, tmp_path: Path) -> None:
        deny = FilesystemPermission(operations=["read"], paths=["/memory/preferences.md"], mode="deny")
        (answer,) = answers_of(
            create(
                model_calling(("read_file", {"file_path": "/memory/preferences.md"})),
                memory_dir=tmp_path,
                permissions=[deny],
            )
        )

        assert answer.status == "error"


def test_a_model_for_consolidation_is_refused_for_now(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not available yet"):
        create_memory_manager_agent(
            ScriptedModel(script=[]), memory_dir=tmp_path, consolidation_model=ScriptedModel(script=[])
        )
    assert list(tmp_path.iterdir()) == []


def test_the_rule_denies_every_write_to_memory() -> None:
    (rule,) = READ_ONLY_MEMORY_PERMISSIONS

    assert (rule.operations, rule.paths, rule.mode) == (["write"], ["/memory/**", "/memory"], "deny")


@pytest.mark.django_db(transaction=True)
def test_a_search_agent_can_be_built_on_a_read_only_backend() -> None:
    backend = fresh_backend()
    MemoryStore(backend).write(MemoryCategory.FACTS, "Ann drinks tea")

    assert "Ann drinks tea" in what_is_recalled(backend.read_only())


@pytest.mark.django_db(transaction=True)
def test_to_recall_over_http_a_key_that_may_read_is_enough(live_url: str) -> None:
    tree = fresh_tree()
    MemoryStore(PostgresBackend(tree)).write(MemoryCategory.FACTS, "Ann drinks tea")
    _, key = create_key(tenant=tree.tenant, name="reader", scopes=(Scope.READ,))

    with closing(RemoteBackend(live_url, api_key=key)) as backend:
        assert "Ann drinks tea" in what_is_recalled(backend)


def what_is_recalled(backend: BackendProtocol) -> str:
    graph = create_memory_search_agent(model_calling(("memory_search", {"query": "tea"})), backend=backend)
    (found,) = answers_of(graph)
    return found.content
