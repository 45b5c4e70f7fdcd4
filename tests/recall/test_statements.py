"""The ranking statements as Postgres gets them, beside this file in `golden/`, to be read and to be reviewed in a diff.

Each is compared with what a search really sends, but for layout. After a change that is meant, write them anew:

    RENEW_GOLDEN=1 python -m pytest tests/recall/test_statements.py

and look at what `git diff` shows.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from memsvc.recall import ann_index
from memsvc.recall.search import Mode, Query, search
from memsvc.recall.vectors import embed_tree
from memsvc.tree.access import Access
from memsvc.tree.reads import EntryFilter
from tests.recall.test_plans import sent
from tests.tree.support import add

pytestmark = pytest.mark.django_db

GOLDEN = Path(__file__).parent / "golden"
FILTER = EntryFilter(tags=("room 7",), source="user", path_prefix="/memory/semantic_memory")


@pytest.fixture
def filled(memory: Access) -> Access:
    for body in ("The kettle needs a new lid.", "The ladder stands in the cellar."):
        add(memory, body, tags=("room 7",), source="user")
    return memory


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("lexical", Query(text="kettle", mode=Mode.LEXICAL)),
        ("hybrid", Query(text="kettle")),
        ("filtered", Query(text="kettle", wanted=FILTER)),
    ],
)
def test_a_search_sends(filled: Access, name: str, query: Query) -> None:
    embed_tree(filled.tree)

    assert_is_golden(name, ranking_statement(filled, query))


def test_a_search_of_a_large_tree_sends(filled: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ann_index, "LARGE", 2)
    while embed_tree(filled.tree):
        pass

    assert_is_golden("semantic", ranking_statement(filled, Query(text="kettle", mode=Mode.SEMANTIC)))


def test_a_search_of_an_earlier_revision_sends(filled: Access) -> None:
    query = Query(text="kettle", mode=Mode.LEXICAL)

    assert_is_golden("past", ranking_statement(filled, query, revision=1))


def ranking_statement(access: Access, query: Query, revision: int | None = None) -> str:
    """The first that ranks; where the index of a large tree finds too little, another one follows."""
    with sent() as statements:
        search(access, query, revision=revision)
    return next(statement for statement, _ in statements if "fused AS" in statement)


def assert_is_golden(name: str, statement: str) -> None:
    file = GOLDEN / f"{name}.sql"
    laid_out = one_clause_per_line(statement)
    if os.environ.get("RENEW_GOLDEN"):
        file.write_text(laid_out, encoding="utf-8")
    assert laid_out == file.read_text(encoding="utf-8")


# --- layout -----------------------------------------------------------------------------------------------------

WIDTH = 100
TOKEN = re.compile(r"--[^\n]*|'(?:[^']|'')*'|\"[^\"]*\"|%\(\w+\)s|[(),]|\s+|[^\s(),'\"]+")
CLAUSES = {"WITH", "SELECT", "FROM", "WHERE", "UNION", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "JOIN"}
JOINS = {"CROSS", "INNER", "FULL", "LEFT"}
CONDITIONS = {"AND", "OR"}
CASES = {"WHEN", "ELSE", "END"}

type Group = list[str | Group]


def one_clause_per_line(statement: str) -> str:
    """The same statement with each clause in a line of its own, and what stands in brackets below it, indented."""
    tokens = iter(found[0] for found in TOKEN.finditer(statement))
    return "\n".join(lines_of(grouped(tokens), "")) + "\n"


def grouped(tokens: Iterator[str]) -> Group:
    """Tokens up to a closing bracket, each bracket in them as a group of its own."""
    group: Group = []
    for token in tokens:
        if token == ")":
            break
        if token == "(":
            group.append(grouped(tokens))
        elif token == ",":
            group = [*group[:-1], ","] if group[-1:] == [" "] else [*group, ","]
        else:
            group.append(token if token.strip() else " ")
    return group


def flat(group: Group) -> str:
    return "".join(each if isinstance(each, str) else f"({flat(each)})" for each in group).strip()


def clauses_of(group: Group) -> list[Group]:
    clauses: list[Group] = [[]]
    for each in group:
        joined = each == "JOIN" and flat(clauses[-1]) in JOINS
        if isinstance(each, str) and each in CLAUSES | JOINS and not joined:
            clauses.append([])
        clauses[-1].append(each)
    return [clause for clause in clauses if flat(clause)]


def pieces_of(clause: Group) -> list[Group]:
    """What a clause that is too long for a line is cut into."""
    is_list = clause[0] in ("WITH", "SELECT")
    pieces: list[Group] = [[]]
    for each in clause:
        word = each if isinstance(each, str) else ""
        if word in (CASES if is_list else CONDITIONS) or word.startswith("--"):
            pieces.append([])
        pieces[-1].append(each)
        if (is_list and word == ",") or word.startswith("--"):
            pieces.append([])
    return [piece for piece in pieces if flat(piece)]


def lines_of(group: Group, indent: str) -> Iterator[str]:
    for clause in clauses_of(group):
        pieces = [clause] if fitting(clause, indent) is not None else pieces_of(clause)
        yield from lines_of_piece(pieces[0], indent)
        for piece in pieces[1:]:
            # The tables of a WITH stand below one another.
            deeper = 0 if clause[0] == "WITH" else 2 if flat(piece).startswith(("WHEN", "ELSE", "--")) else 1
            yield from lines_of_piece(piece, indent + "    " * deeper)


def lines_of_piece(piece: Group, indent: str) -> Iterator[str]:
    line = indent
    for each in piece:
        if isinstance(each, str):
            line += each if line.strip() else each.lstrip()
        elif (inside := fitting(each, line)) is not None:
            line += f"({inside})"
        else:
            yield f"{line}("
            yield from lines_of(each, f"{indent}    ")
            line = f"{indent})"
    yield line.rstrip()


def fitting(group: Group, before: str) -> str | None:
    """A group in one line, if it fits behind what stands there."""
    text = flat(group)
    return text if len(before) + len(text) < WIDTH and "--" not in text else None
