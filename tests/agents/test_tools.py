"""What the model reads from the memory tools, and that bad input is an answer that says what to do."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from deepagents.backends.protocol import BackendProtocol
from langchain_core.tools import BaseTool

from memsvc.agents import (
    Confidence,
    MemoryCategory,
    MemoryHit,
    MemoryStore,
    build_recall_tools,
    build_write_tools,
)
from memsvc.agents.transactional import mounted
from tests.agents.scripted import ScriptedModel

WHEN = datetime(2026, 8, 24, 10, 15, tzinfo=UTC)
FACTS = "/memory/semantic_memory/facts.md"


class Tools:
    def __init__(self, store: MemoryStore) -> None:
        self.by_name: dict[str, BaseTool] = {
            tool.name: tool for tool in [*build_recall_tools(store), *build_write_tools(store)]
        }

    def __getattr__(self, name: str) -> Any:
        return lambda **args: self.by_name[name].invoke(args)


@pytest.fixture
def tools(store: MemoryStore) -> Tools:
    return Tools(store)


def files_of(store: MemoryStore) -> BackendProtocol:
    """The files as the store sees them, under `/memory/`."""
    return mounted(store.backend)


def stored(store: MemoryStore, entry_id: str) -> MemoryHit:
    hit = store.get(entry_id)
    assert hit is not None
    return hit


def id_in(answer: str) -> str:
    assert answer.startswith("Stored mem_")
    return answer.split()[1]


def test_the_sets_are_those_of_the_reference(store: MemoryStore) -> None:
    assert [tool.name for tool in build_recall_tools(store)] == [
        "memory_index",
        "memory_search",
        "memory_read",
        "memory_get",
    ]
    assert [tool.name for tool in build_write_tools(store)] == ["memory_write", "memory_update"]


def test_a_consolidation_model_is_refused_while_there_is_no_consolidation(store: MemoryStore) -> None:
    with pytest.raises(ValueError, match="not available yet"):
        build_write_tools(store, consolidation_model=ScriptedModel(script=[]))


def test_every_tool_and_argument_is_described(tools: Tools) -> None:
    for tool in tools.by_name.values():
        assert len(tool.description) > 40
        for name, schema in tool.args.items():
            assert schema.get("description"), f"{tool.name}({name})"


def test_fixed_values_are_enums_in_the_schema(tools: Tools) -> None:
    args = tools.by_name["memory_write"].args
    assert args["category"]["enum"] == [category.value for category in MemoryCategory]
    assert args["confidence"]["enum"] == [confidence.value for confidence in Confidence]
    assert tools.by_name["memory_index"].args["kind"]["anyOf"][0]["enum"] == [
        "episodic",
        "semantic",
        "procedural",
    ]


def test_memory_index_lists_the_root_and_each_kind(tools: Tools) -> None:
    assert tools.memory_index() == (
        "/memory/index.md:\n"
        "- episodic_memory/index.md — What happened, sharded by month [tags: episodic] [updated: -]\n"
        "- preferences.md — How the user wants the agent to behave [tags: preferences] [updated: -]\n"
        "- procedural_memory/index.md — How things are done, one file each [tags: procedural] [updated: -]\n"
        "- semantic_memory/index.md — What is true: facts and rules [tags: semantic] [updated: -]"
    )
    assert tools.memory_index(kind="procedural") == "/memory/procedural_memory/index.md lists no files yet."
    assert tools.memory_index(kind="facts").startswith("Error: unknown memory kind 'facts'.")


def test_memory_search_shows_hits_newest_first(store: MemoryStore, tools: Tools) -> None:
    old = store.write(
        MemoryCategory.FACTS, "Ann: pip", summary="Tool", tags=("a", "b"), source="user", when=WHEN
    )
    new = store.write(
        MemoryCategory.FACTS,
        "x" * 801,
        confidence=Confidence.HIGH,
        supersedes=old.entry.entry_id,
        when=WHEN.replace(hour=11),
    )

    assert tools.memory_search(include_superseded=True) == (
        f"[{new.entry.entry_id}] {FACTS} | facts | 2026-08-24 | confidence: high | source: agent | tags: -\n"
        f"{'x' * 800}…\n\n"
        f"[{old.entry.entry_id}] {FACTS} | facts | 2026-08-24 | confidence: medium | source: user | tags: a, b"
        f" | SUPERSEDED BY {new.entry.entry_id}\nTool\nAnn: pip"
    )
    assert tools.memory_search(query="pip") == "No memory entry matched. Memory may simply not hold this yet."


def test_memory_search_shows_or_names_every_equal_entry(store: MemoryStore, tools: Tools) -> None:
    ids = [store.write(MemoryCategory.FACTS, "Paid the rent: +10%").entry.entry_id for _ in range(3)]
    ids.append(store.write(MemoryCategory.FACTS, "Paid the rent: -10%").entry.entry_id)

    told = tools.memory_search(query="rent")
    hits = store.search("rent", ranked=True)

    assert all(entry_id in told for entry_id in ids)
    assert sorted(each for hit in hits for each in (hit.entry.entry_id, *hit.duplicates)) == sorted(ids)
    assert [hit.duplicates for hit in store.search("rent")] == [()] * 4


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"kind": "facts"}, "Error: 'facts' is not a valid MemoryKind"),
        ({"category": "Facts"}, "Error: 'Facts' is not a valid MemoryCategory"),
        ({"limit": "many"}, "Error: limit: "),
        ({"tags": "a"}, "Error: tags: "),
        ({"query": None}, "Error: query: "),
    ],
)
def test_memory_search_says_what_was_wrong(tools: Tools, args: dict[str, Any], said: str) -> None:
    assert tools.memory_search(**args).startswith(said)


@pytest.mark.parametrize(("limit", "shown"), [(-5, 1), (0, 1), (2, 2), (500, 3)])
def test_memory_search_takes_any_number_as_limit(
    store: MemoryStore, tools: Tools, limit: int, shown: int
) -> None:
    for number in range(3):
        store.write(MemoryCategory.FACTS, f"fact {number}")

    assert tools.memory_search(limit=limit).count("| facts |") == shown


def test_memory_read_pages_and_says_how_to_go_on(tools: Tools) -> None:
    first = tools.memory_read(path="/memory/preferences.md", limit=3)
    rest = tools.memory_read(path="/memory/preferences.md", offset=3)

    assert first.startswith("# Preferences\n\nHow the user")
    assert first.endswith("\n[Cut after line 3 of 4. Read on with offset=3.]")
    assert rest == "preference supersedes the previous one rather than sitting next to it.\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"path": "/etc/passwd"}, "Error: '/etc/passwd' is outside the memory tree (/memory/)"),
        ({"path": "/memory/../x"}, "Error: '/memory/../x' is outside the memory tree (/memory/)"),
        ({"path": "/memory/none.md"}, "Error: File '/memory/none.md' not found"),
        ({"path": "/memory/semantic_memory"}, "Error: "),
        ({"path": "/memory/a\0b.md"}, "Error: "),
        ({"path": "/memory/\ud800.md"}, "Error: "),
        (
            {"path": "/memory/preferences.md", "offset": 99},
            "Error: Line offset 99 exceeds file length (4 lines)",
        ),
        ({}, "Error: path: Field required"),
    ],
)
def test_memory_read_says_what_was_wrong(tools: Tools, args: dict[str, Any], said: str) -> None:
    assert tools.memory_read(**args).startswith(said)


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_memory_read_of_a_blank_file_says_so(store: MemoryStore, tools: Tools, content: Any) -> None:
    path = "/memory/empty.md"
    files_of(store).write(path, content)

    assert tools.memory_read(path=path) == f"{path} is empty."
    assert store.read_file(path) == content or content


@pytest.mark.parametrize("name", ["picture.png", "latin1.md"])
def test_memory_read_does_not_show_what_is_no_text(store: MemoryStore, tools: Tools, name: str) -> None:
    files_of(store).upload_files([(f"/memory/{name}", b"caf\xe9 \xff\x00")])

    assert tools.memory_read(path=f"/memory/{name}") == f"Error: '/memory/{name}' is not a text file"


def test_memory_get_shows_one_entry_whole(store: MemoryStore, tools: Tools) -> None:
    hit = store.write(MemoryCategory.FACTS, "y" * 2000, summary="long", when=WHEN)

    answer = tools.memory_get(entry_id=hit.entry.entry_id)

    assert answer.startswith(f"[{hit.entry.entry_id}] {FACTS} | facts | 2026-08-24 | ")
    assert answer.endswith("\nlong\n" + "y" * 2000)
    assert tools.memory_get(entry_id="mem_x") == "Error: no memory entry with id 'mem_x'."


def test_memory_write_stores(store: MemoryStore, tools: Tools) -> None:
    answer = tools.memory_write(
        category="rules", content="Never on Friday", summary="Deploys", tags=["ops"], source="user_message"
    )

    hit = stored(store, id_in(answer))
    assert answer == f"Stored {hit.entry.entry_id} in /memory/semantic_memory/rules.md."
    assert (hit.entry.body, hit.entry.tags, hit.entry.source) == ("Never on Friday", ("ops",), "user_message")


def test_memory_write_says_when_a_procedure_of_that_name_exists(tools: Tools) -> None:
    args = {"category": "procedure", "content": "x", "summary": "s"}

    first = tools.memory_write(**args, title="Deploy: prod!")
    second = tools.memory_write(**args, title="deploy_prod")

    assert first.endswith("in /memory/procedural_memory/deploy-prod.md.")
    assert "in /memory/procedural_memory/deploy-prod.md.\nThat file existed already." in second


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"category": "fact"}, "Error: 'fact' is not a valid MemoryCategory\nUse one of: events, "),
        ({"confidence": "certain"}, "Error: 'certain' is not a valid Confidence\nUse one of: low, "),
        ({"category": "procedure"}, "Error: a procedure entry requires a title"),
        ({"category": "procedure", "title": "!!!"}, "Error: cannot build a slug from '!!!'"),
        ({"content": "a\0b"}, "Error: "),
        ({"summary": "\udfff"}, "Error: "),
        ({"tags": ["\ud800"]}, "Error: "),
        ({"tags": "ops"}, "Error: tags: "),
        ({"tags": [1]}, "Error: tags"),
        ({"content": None}, "Error: content: "),
        ({"content": "z" * 300_000}, "Error: "),
        ({"content": "---\nid: mem_1\ncategory: facts\ncreated: 2026-01-01\n---\n\nforged"}, "Error: entry "),
    ],
)
def test_bad_input_to_memory_write_is_answered_and_changes_nothing(
    store: MemoryStore, tools: Tools, args: dict[str, Any], said: str
) -> None:
    before = store.read_file(FACTS)

    answer = tools.memory_write(**{"category": "facts", "content": "x", "summary": "s"} | args)

    assert answer.startswith(said)
    assert len(answer) < 1000
    assert store.read_file(FACTS) == before
    assert store.search() == []


def test_memory_update_supersedes_and_keeps_what_is_left_out(store: MemoryStore, tools: Tools) -> None:
    old = store.write(MemoryCategory.FACTS, "pip", summary="Package manager", tags=("python",))

    answer = tools.memory_update(entry_id=old.entry.entry_id, content="uv")

    new = stored(store, id_in(answer))
    assert answer == f"Stored {new.entry.entry_id} in {FACTS}, superseding {old.entry.entry_id}."
    # The old summary may not stand above a new body.
    assert (new.entry.summary, new.entry.tags) == ("uv", ("python",))
    assert store.search() == [new]


def test_memory_update_can_clear_the_tags(store: MemoryStore, tools: Tools) -> None:
    old = store.write(MemoryCategory.FACTS, "pip", tags=("python",))

    new = stored(store, id_in(tools.memory_update(entry_id=old.entry.entry_id, content="uv", tags=[])))

    assert new.entry.tags == ()


def test_memory_update_keeps_a_procedure_in_its_file(store: MemoryStore, tools: Tools) -> None:
    old = store.write(MemoryCategory.PROCEDURE, "v1", title="Über Straße & mehr")

    new = stored(store, id_in(tools.memory_update(entry_id=old.entry.entry_id, content="v2")))

    assert new.path == old.path


def test_memory_update_refuses_unknown_and_superseded_entries(store: MemoryStore, tools: Tools) -> None:
    old = store.write(MemoryCategory.FACTS, "one")
    new = id_in(tools.memory_update(entry_id=old.entry.entry_id, content="two"))

    assert tools.memory_update(entry_id="mem_x", content="y") == "Error: no memory entry with id 'mem_x'."
    again = tools.memory_update(entry_id=old.entry.entry_id, content="three")
    assert again.startswith("Error: ")
    assert new in again
    assert [hit.entry.body for hit in store.search()] == ["two"]


def test_the_tools_work_in_an_event_loop(store: MemoryStore, tools: Tools) -> None:
    async def conversation() -> list[str]:
        written = await tools.by_name["memory_write"].ainvoke(
            {"category": "facts", "content": "Ann drinks tea", "summary": "Ann"}
        )
        found = await tools.by_name["memory_search"].ainvoke({"query": "tea"})
        # Some deployments call sync tools right on the loop's thread.
        read = tools.by_name["memory_get"].invoke({"entry_id": id_in(written)})
        return [written, found, read]

    written, found, read = asyncio.run(conversation())

    assert id_in(written) in found
    assert "Ann drinks tea" in read
