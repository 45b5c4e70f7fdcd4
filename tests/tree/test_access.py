"""A service that forgets to ask whether its access may write changes nothing all the same."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memsvc
from memsvc.format import Block as Cut
from memsvc.format import BlockKind
from memsvc.tree import entries, files, services
from memsvc.tree.access import Access
from memsvc.tree.blocks import row_of
from memsvc.tree.errors import Forbidden, ReadOnly
from memsvc.tree.models import Block, File
from memsvc.tree.scope import Change, Exemption, unit_of_work
from tests.tree.support import FACTS, ROOT_INDEX, add, contents, days_pass, in_days, paths, revisions, text

pytestmark = pytest.mark.django_db

INSIDE = "/memory"
OUTSIDE = "/other/a.md"


def _file(change: Change, path: str = OUTSIDE) -> File:
    return File.objects.of(change.tree).get(path=path)


def _entry(change: Change) -> Block:
    return Block.objects.of(change.tree).entries().get(file__path=OUTSIDE)


def _row(change: Change) -> Block:
    return row_of(Cut(BlockKind.TEXT, b"new\n"), _file(change), position=1 << 40, revision=change.number)


# Each changes what stands outside of the folder that is open, and checks nothing.
CARELESS: dict[str, Callable[[Change], Any]] = {
    "create": lambda change: files.create(change, "/other/b.md"),
    "fill": lambda change: files.fill(change, _file(change), b"new\n"),
    "fill with what is there": lambda change: files.fill(
        change, _file(change), files.content_now(change, _file(change))
    ),
    "extend": lambda change: files.extend(change, _file(change), [_row(change)]),
    "save": lambda change: files.save(change, _file(change)),
    "close": lambda change: files.close_files(change, [_file(change)]),
    "move out": lambda change: files.rename(change, _file(change, "/memory/a.md"), "/other/b.md"),
    "move in": lambda change: files.rename(change, _file(change), "/memory/b.md"),
    "insert": lambda change: files.insert_blocks(change, _file(change), [_row(change)]),
    "append": lambda change: files.append_blocks(change, _file(change), [_row(change)]),
    "replace": lambda change: files.replace_block(change, _file(change), _entry(change), _row(change)),
    "close a block": lambda change: files.close_blocks(change, _file(change), [_entry(change)]),
    "retire": lambda change: entries.mark_superseded(change, _file(change), _entry(change), by="mem_next"),
}


@pytest.fixture
def tree(memory: Access) -> Access:
    """The whole of a tree with an entry outside of the folder that is open."""
    services.write_file(memory, "/memory/a.md", "inside\n")
    entry = "---\nid: mem_out\ncreated: 2026-01-02\ncategory: facts\n---\n\nOutside.\n"
    services.write_file(memory, OUTSIDE, entry)
    return memory


@pytest.mark.parametrize("act", [pytest.param(act, id=name) for name, act in CARELESS.items()])
def test_what_is_outside_of_the_folder_is_not_changed(tree: Access, act: Callable[[Change], Any]) -> None:
    before, agent = (contents(tree), revisions(tree)), Access(tree.tree, tree.actor, prefix=INSIDE)

    with pytest.raises(Forbidden), unit_of_work(agent, "careless") as change:
        act(change)

    assert (contents(tree), revisions(tree)) == before


@pytest.mark.parametrize("act", [pytest.param(act, id=name) for name, act in CARELESS.items()])
def test_one_that_may_only_read_changes_nothing(tree: Access, act: Callable[[Change], Any]) -> None:
    before = (contents(tree), revisions(tree))

    with pytest.raises(ReadOnly), unit_of_work(tree.read_only(), "careless") as change:
        act(change)

    assert (contents(tree), revisions(tree)) == before


@pytest.mark.parametrize("act", [pytest.param(act, id=name) for name, act in CARELESS.items()])
def test_one_that_may_does_it(tree: Access, act: Callable[[Change], Any]) -> None:
    with unit_of_work(tree, "careful") as change:
        act(change)


def test_what_was_done_before_the_refusal_is_undone(tree: Access) -> None:
    agent = Access(tree.tree, tree.actor, prefix=INSIDE)

    def write_two(change: Change) -> None:
        files.fill(change, files.create(change, "/memory/b.md"), b"inside\n")
        files.create(change, "/other/b.md")

    with pytest.raises(Forbidden), unit_of_work(agent, "careless") as change:
        write_two(change)

    assert "/memory/b.md" not in paths(tree)


def test_an_exemption_ends_where_it_was_asked_for(tree: Access) -> None:
    agent = Access(tree.tree, tree.actor, prefix=INSIDE)

    with unit_of_work(agent, "careless") as change:
        with change.exempt(Exemption.INDEX):
            with change.exempt(Exemption.EXPIRED):
                change.require_write(OUTSIDE)
            change.require_write(OUTSIDE)
        with pytest.raises(Forbidden):
            change.require_write(OUTSIDE)


def test_the_index_above_the_folder_goes_along(memory: Access) -> None:
    agent = Access(memory.tree, memory.actor, prefix=FACTS)

    add(agent, "Berlin is the seat.")

    assert "facts.md" in text(memory, "/memory/semantic_memory/index.md")
    with pytest.raises(Forbidden):
        services.write_file(agent, ROOT_INDEX, "mine")


def test_what_nobody_sees_any_more_gives_way_wherever_it_stands(memory: Access) -> None:
    add(memory, "Gone by then.", "procedure", title="x", expires_at=in_days(1))
    services.move(memory, "/memory/procedural_memory/x.md", "/a")
    days_pass(memory, 2)

    services.write_file(Access(memory.tree, memory.actor, prefix="/a/b"), "/a/b/c.md", "free\n")

    assert text(memory, "/a/b/c.md") == "free\n"


WRITES = {"insert_blocks", "append_blocks", "replace_block", "close_blocks", "mark_superseded", "save_file"}


def test_no_service_writes_rows_but_by_way_of_files() -> None:
    """`redacting` is no change: it takes rows out of revisions that are past, of a file that it has checked."""
    found = {
        (path.name, node.attr)
        for path in (Path(memsvc.__file__).parent).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "statements"
        if node.attr in WRITES
    }

    assert found == {("files.py", name) for name in WRITES} | {("redaction.py", "insert_blocks")}
