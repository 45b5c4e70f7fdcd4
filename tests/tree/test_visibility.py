"""What a reader may see is said once, and means the same in all three languages that ask for it."""

import ast
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.db.models import Q

import memsvc
from memsvc.tree import services
from memsvc.tree.access import Access
from memsvc.tree.models import Block, File
from memsvc.tree.visibility import (
    FOR_GOOD,
    active,
    active_sql,
    is_active,
    is_live_at,
    is_visible,
    live_at,
    live_at_sql,
    must_be_counted,
    to_be_counted,
    visible,
    visible_sql,
)

SOURCE = Path(memsvc.__file__).parent
RULE = SOURCE / "tree" / "visibility.py"

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
INSTANTS = [NOON - timedelta(hours=1), NOON, NOON + timedelta(microseconds=1)]
REVISIONS = [None, 1, 2, 3]

# Every way in which a block may have come and gone, expire, and be superseded: in its own text, or by a revision.
STAYS = [
    (added, removed)
    for added in (1, 2, 3)
    for removed in (None, 2, 3, 4)
    if removed is None or removed > added
]
EXPIRIES = [None, *INSTANTS]
ENDS = [("", None), ("mem_next", None), ("mem_next", 1), ("mem_next", 2), ("mem_next", 3)]


# --- the three languages agree ---------------------------------------------------------------------------------


@pytest.fixture
def rows(memory: Access) -> list[Block]:
    """A block for every combination of what the rule looks at."""
    services.write_file(memory, "/a.md", "one\n")
    file = File.objects.get(path="/a.md")
    made = [
        Block(
            tenant_id=file.tenant_id,
            tree_id=file.tree_id,
            file=file,
            position=position,
            kind="text",
            size=1,
            lines=1,
            added_in=added,
            removed_in=removed,
            expires_at=expires_at,
            superseded_by=by,
            superseded_in=superseded,
        )
        for position, ((added, removed), expires_at, (by, superseded)) in enumerate(
            product(STAYS, EXPIRIES, ENDS), start=1
        )
    ]
    Block.objects.all().delete()
    Block.objects.bulk_create(made)
    return list(Block.objects.all())


def in_sql(condition: str, **values: Any) -> set[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT b.id FROM tree_block b WHERE {condition}", values)
        return {pk for (pk,) in cursor.fetchall()}


def in_queryset(condition: Q) -> set[UUID]:
    return set(Block.objects.filter(condition).values_list("pk", flat=True))


def at_hand(rows: list[Block], condition: Callable[[Block], bool]) -> set[UUID]:
    return {row.pk for row in rows if condition(row)}


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
def test_all_languages_have_the_same_rows_stand(rows: list[Block], revision: int | None) -> None:
    sql = live_at_sql("b") if revision is None else live_at_sql("b", "%(revision)s")

    assert in_sql(sql, revision=revision) == in_queryset(live_at(revision))
    assert in_queryset(live_at(revision)) == at_hand(rows, lambda row: is_live_at(row, revision))


@pytest.mark.django_db
@pytest.mark.parametrize("at", [*INSTANTS, FOR_GOOD])
def test_all_languages_see_the_same_rows(rows: list[Block], at: datetime | None) -> None:
    sql = visible_sql("b", FOR_GOOD if at is FOR_GOOD else "%(at)s")

    assert in_sql(sql, at=at) == in_queryset(visible(at))
    assert in_queryset(visible(at)) == at_hand(rows, lambda row: is_visible(row, at))
    assert in_sql(f"NOT ({sql})", at=at) == in_queryset(~visible(at))
    assert in_queryset(~visible(at)) == at_hand(rows, lambda row: not is_visible(row, at))


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
def test_all_languages_have_the_same_entries_hold(rows: list[Block], revision: int | None) -> None:
    sql = active_sql("b") if revision is None else active_sql("b", "%(revision)s")

    assert in_sql(sql, revision=revision) == in_queryset(active(revision))
    assert in_queryset(active(revision)) == at_hand(rows, lambda row: is_active(row, revision))
    assert in_queryset(~active(revision)) == at_hand(rows, lambda row: not is_active(row, revision))


@pytest.mark.django_db
@pytest.mark.parametrize("at", INSTANTS)
def test_a_block_is_seen_until_the_instant_at_which_it_expires(rows: list[Block], at: datetime) -> None:
    seen = at_hand(rows, lambda row: row.expires_at is None or row.expires_at > at)

    assert in_queryset(visible(at)) == seen
    assert in_queryset(visible(FOR_GOOD)) == at_hand(rows, lambda row: row.expires_at is None)


@pytest.mark.django_db
@pytest.mark.parametrize("at", INSTANTS)
def test_the_same_files_have_to_be_counted_in_a_queryset_and_at_hand(memory: Access, at: datetime) -> None:
    for number, (size, expiry) in enumerate(product((0, 1), EXPIRIES)):
        services.write_file(memory, f"/{number}.md", "one\n")
        File.objects.filter(path=f"/{number}.md").update(size=size, next_expiry=expiry)

    found = set(File.objects.filter(to_be_counted(at)))
    told = set(File.objects.exclude(to_be_counted(at)))

    assert found == {file for file in File.objects.all() if must_be_counted(file, at)}
    assert told == set(File.objects.all()) - found


# --- nothing else says it --------------------------------------------------------------------------------------

# A time of expiry that is compared with an instant, or a block's that is asked for at all.
_LOOKUP = re.compile(r"(.*__)?(expires_at__\w+|next_expiry__(lt|gt)e?)")
_SQL = re.compile(r"\b(expires_at\s*(IS\b|<|>|=)|next_expiry\s*(<|>))")
_ORDER = ast.Lt | ast.LtE | ast.Gt | ast.GtE


def rules_in(source: str) -> Iterator[str]:
    """Where Python, or SQL in it, says for itself when something expires."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                named = {_name(each) for each in (left, *others)}
                ordered = any(isinstance(op, _ORDER) for op in ops)
                asked = any(isinstance(op, ast.Is | ast.IsNot) for op in ops)
                if ("expires_at" in named and (ordered or asked)) or ("next_expiry" in named and ordered):
                    yield ast.unparse(node)
            case ast.keyword(arg=str(name)) if _LOOKUP.fullmatch(name):
                yield name
            case ast.Call(func=func) if _name(func) in ("Q", "filter", "exclude", "get"):
                yield from (each.arg for each in node.keywords if each.arg == "expires_at")
            case ast.Constant(value=str(text)):
                yield from (found[0] for found in _SQL.finditer(text))


def _name(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


@pytest.mark.parametrize(
    "source",
    [
        "row.expires_at is None",
        "at >= row.expires_at",
        "row.expires_at is None or row.expires_at > at",
        "file.next_expiry <= at",
        "rows.filter(expires_at__gt=at)",
        "rows.exclude(expires_at=None)",
        "Q(block__expires_at__isnull=True)",
        "'SELECT FROM tree_block b WHERE b.expires_at IS NULL'",
        "f'{names} WHERE expires_at >= now() {more}'",
    ],
)
def test_a_second_spelling_would_be_found(source: str) -> None:
    assert list(rules_in(source))


@pytest.mark.parametrize(
    "source", ["row.expires_at = at", "make(expires_at=at)", "file.next_expiry is None", "'expires_at: when'"]
)
def test_what_only_names_the_time_is_none(source: str) -> None:
    assert not list(rules_in(source))


def test_whether_something_has_expired_is_asked_in_one_module() -> None:
    spelt = {path: found for path in SOURCE.rglob("*.py") if (found := list(rules_in(path.read_text())))}

    assert spelt.keys() == {RULE}, spelt
