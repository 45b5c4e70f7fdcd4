"""Beside deep-memory-agent: the same bytes for clean cases, and each reads what the other wrote."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memsvc import agents
from memsvc.tree import reads, services
from tests.format.samples import SampleTree, all_trees
from tests.people import make_tenant
from tests.tree.support import access_to

peer = pytest.importorskip("deep_memory_agent", reason="deep-memory-agent is in the dependency group `peers`")

WHEN = datetime(2026, 8, 24, 10, 15, tzinfo=UTC)
ENTRIES: list[dict[str, Any]] = [
    {
        "category": "facts",
        "body": "ACME is on the Team plan.",
        "summary": "ACME plan",
        "tags": ("acme", "pricing"),
    },
    {"category": "rules", "body": "Never deploy on Friday.\n\n- not even small things", "summary": "Deploys"},
    {
        "category": "preferences",
        "body": "Prefers uv.",
        "summary": "Path: uv",
        "tags": ("python",),
        "confidence": "high",
    },
    {"category": "events", "body": "Talked about prices.", "summary": "Call", "source": "user_message"},
    {"category": "errors", "body": "Forgot the migration."},
    {
        "category": "procedure",
        "body": "## When to use\n\nAlways.",
        "summary": "Deploying",
        "title": "Deploy: prod!",
    },
    {
        "category": "facts",
        "body": "ACME is on Enterprise.",
        "summary": "ACME plan",
        "tags": ("acme",),
        "supersedes": 0,
        "when": WHEN.replace(hour=11),
    },
    {"category": "events", "body": "Another month.", "when": datetime(2026, 9, 1, tzinfo=UTC)},
]


def filled(package: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, module: Any) -> Any:
    """A store of one of the two packages with all entries, whose ids are counted."""
    numbers = iter(range(100))
    monkeypatch.setattr(module, "new_entry_id", lambda when: f"mem_{when:%Y-%m-%d}_{next(numbers):06x}")
    store = package.MemoryStore(package.build_memory_backend(folder, for_deep_agent=False))
    store.ensure_tree()
    ids: list[str] = []
    for given in ENTRIES:
        fields = {"when": WHEN, **given}
        if "supersedes" in fields:
            fields["supersedes"] = ids[fields["supersedes"]]
        if "confidence" in fields:
            fields["confidence"] = package.Confidence(fields["confidence"])
        category = package.MemoryCategory(fields.pop("category"))
        ids.append(store.write(category, fields.pop("body"), **fields).entry.entry_id)
    return store


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any, Path, Path]:
    from deep_memory_agent import store as peer_store

    from memsvc.agents import file_memory

    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    return (
        filled(agents, ours, monkeypatch, file_memory),
        filled(peer, theirs, monkeypatch, peer_store),
        ours,
        theirs,
    )


def test_the_files_are_the_same_byte_for_byte(both: Any) -> None:
    _, _, ours, theirs = both

    assert tree(ours) == tree(theirs)


def test_each_reads_what_the_other_wrote(both: Any) -> None:
    _, _, ours, theirs = both
    crossed = agents.MemoryStore(agents.build_memory_backend(theirs, for_deep_agent=False))
    back = peer.MemoryStore(peer.build_memory_backend(ours, for_deep_agent=False))

    assert texts(crossed) == texts(back)


def texts(store: Any) -> set[tuple[str, ...]]:
    return {
        (hit.path, hit.entry.entry_id, hit.entry.body, hit.entry.summary, str(hit.entry.superseded_by))
        for hit in store.search(include_superseded=True, limit=50)
    }


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("memory_index", {}),
    ("memory_index", {"kind": "semantic"}),
    ("memory_index", {"kind": "procedural"}),
    ("memory_search", {"query": "acme"}),
    ("memory_search", {"query": "ACME", "include_superseded": True}),
    ("memory_search", {"kind": "procedural"}),
    ("memory_search", {"tags": ["python"]}),
    # Not for a query of which entries hold some words only: ours ranks, the peer finds nothing.
    ("memory_search", {"query": "xylophone"}),
    ("memory_read", {"path": "/memory/semantic_memory/facts.md"}),
    # Not for a missing file: the peer names its path without the mount.
    ("memory_read", {"path": "/etc/passwd"}),
    ("memory_update", {"entry_id": "mem_x", "content": "x"}),
    ("memory_write", {"category": "procedure", "content": "x", "summary": "s"}),
]


@pytest.mark.parametrize(("name", "args"), CALLS)
def test_the_tools_answer_the_same(both: Any, name: str, args: dict[str, Any]) -> None:
    ours, theirs, *_ = both

    def ask(package: Any, store: Any) -> str:
        tools = [*package.build_recall_tools(store), *package.build_write_tools(store)]
        return str(next(tool for tool in tools if tool.name == name).invoke(args))

    assert ask(agents, ours) == ask(peer, theirs)


def test_every_name_of_the_peer_is_here_but_for_consolidation() -> None:
    later = {
        "ConsolidatedItem",
        "ConsolidationProposal",
        "ConsolidationResult",
        "consolidate_memory",
        "__version__",
    }

    assert set(peer.__all__) - set(agents.__all__) == later


def test_signatures_are_the_peer_s() -> None:
    import inspect

    for name in (
        "create_memory_search_agent",
        "create_memory_manager_agent",
        "build_memory_backend",
        "resolve_backend",
    ):
        ours, theirs = inspect.signature(getattr(agents, name)), inspect.signature(getattr(peer, name))
        assert [(p.name, p.kind, p.default) for p in ours.parameters.values()] == [
            (p.name, p.kind, p.default) for p in theirs.parameters.values()
        ]
    for name in ("write", "get", "search", "recent_episodes", "read_file", "ensure_tree"):
        ours = inspect.signature(getattr(agents.MemoryStore, name))
        theirs = inspect.signature(getattr(peer.MemoryStore, name))
        assert list(ours.parameters)[: len(theirs.parameters)] == list(theirs.parameters)
        more = list(ours.parameters.values())[len(theirs.parameters) :]
        assert all(each.kind is each.KEYWORD_ONLY and each.default is not each.empty for each in more)


@pytest.mark.django_db(transaction=True)
def test_the_peer_s_own_store_works_on_our_backend() -> None:
    from deepagents.backends import CompositeBackend, StateBackend

    from memsvc.testing import fresh_backend

    backend = CompositeBackend(default=StateBackend(), routes={"/memory/": fresh_backend()})
    # The peer lists with a pattern from the root, which also asks the default: that has to work outside a graph.
    backend.default = fresh_backend()
    store = peer.MemoryStore(backend)
    assert len(store.ensure_tree()) == 7
    old = store.write(peer.MemoryCategory.FACTS, "one", summary="s", when=WHEN)
    new = store.write(peer.MemoryCategory.FACTS, "two", supersedes=old.entry.entry_id, when=WHEN)

    assert [hit.entry.entry_id for hit in agents.MemoryStore(backend).search()] == [new.entry.entry_id]
    assert [hit.entry.entry_id for hit in store.search()] == [new.entry.entry_id]


QUERIES = [
    "",
    "the",
    "THE ",
    "plan",
    "and the",
    "s, ",
    "e\n",
    "##",
    "`",
    "é",
    "agent",
    "mem_",
    "a",
    "%",
    "no such",
]


def assert_found_alike(memory: Path) -> None:
    """Whatever is asked for, our service answers what the peer's own store answers, in its order."""
    store = peer.MemoryStore(peer.build_memory_backend(memory, for_deep_agent=False))
    access = access_to(make_tenant())
    services.import_files(access, [(f"/memory/{path}", data) for path, data in sorted(tree(memory).items())])
    written = [hit.entry for hit in store.search(include_superseded=True, limit=500)]
    words = {word for entry in written for word in entry.body.split()[:2]}
    pieces = {entry.body[5:40] for entry in written} | {f"{e.summary} {e.body[:9]}" for e in written}
    pieces |= {" ".join([entry.body[-9:], *entry.tags]) for entry in written}

    assert len(written) > 5
    for query in [*QUERIES, *sorted(words), *sorted(pieces)]:
        for superseded in (False, True):
            theirs = store.search(query, include_superseded=superseded, limit=500)
            wanted = reads.EntryFilter(active=None if superseded else True)
            ours = reads.search_substring(access, query, wanted, limit=500)
            assert [each.entry.entry_id for each in ours.items] == [hit.entry.entry_id for hit in theirs], (
                query
            )


@pytest.mark.django_db
def test_the_substring_mode_finds_what_the_peer_finds_in_its_order(both: Any) -> None:
    assert_found_alike(both[3])


@pytest.mark.django_db
@pytest.mark.parametrize("sample", all_trees("clean_*"))
def test_so_it_does_in_the_sample_trees(sample: SampleTree) -> None:
    assert_found_alike(sample.folder / "memory")
