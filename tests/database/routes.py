"""Whether a database that is distributed by tenant could send a statement to the one server that has the tenant's rows.

There is none here. But a plan of plain PostgreSQL says what such a server goes by: that each scan of a table with
tenants' rows is told its tenant by a constant, and in which order rows are changed.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import connections
from psycopg import ClientCursor

from memsvc.database import distribution

# A tenant that is said in the statement; what a policy adds is a call of current_setting instead.
_CONSTANT = re.compile(r"tenant_id = '[0-9a-f-]{36}'::uuid")
_ENTERING = re.compile(r"SET LOCAL memsvc\.[a-z_]+ = '(on|[0-9a-f,-]*)'")
# What has no plan, and concerns no rows.
_UTILITY = re.compile(
    r"\s*(SET|SHOW|BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|DECLARE|FETCH|CLOSE|EXPLAIN|CREATE|ALTER|DROP|REVOKE|GRANT|COMMENT|LISTEN|NOTIFY|LOCK)\b"
)
_DECLARED = re.compile(r"\s*DECLARE .*? FOR (?=SELECT|WITH)", re.DOTALL)


def faults_of(statement: str, plan: Callable[[], list[dict[str, Any]]]) -> list[str]:
    """What keeps a statement from its tenant's server, if anything."""
    text = statement.strip().rstrip(";")
    if ";" in re.sub(r"'[^']*'", "", text):
        return ["several statements in one string: each would be sent to the servers whole"]
    if "memsvc." in text and not _ENTERING.fullmatch(text):
        return ["enters a tenant otherwise than by SET LOCAL alone, which no other server would hear of"]
    if "set_config" in text:
        return ["set_config, which no other server would hear of"]
    if re.match(r"\s*CREATE\s+TEMP", text, re.IGNORECASE):
        return ["a temporary table, which one server has"]
    if _UTILITY.match(text):
        return []
    return sorted({fault for tree in plan() for fault in _faults(tree["Plan"])})


def _faults(node: Mapping[str, Any]) -> Iterator[str]:
    nodes = list(_walk(node, ()))
    tables = {each["Relation Name"] for each, _ in nodes if "Relation Name" in each}
    distributed = tables & set(distribution.distributed_tables())
    if not distributed:
        return
    if others := tables - distributed:
        yield f"{', '.join(sorted(others))} beside {', '.join(sorted(distributed))}: not on the same server"
    for each, above in nodes:
        if _is_scan(each) and each["Relation Name"] in distributed and not _names_tenant(each, above):
            yield f"{each['Relation Name']} is scanned without a constant tenant"
        if each.get("Operation") == "Insert" and (above or any(map(_is_cte, each.get("Plans", [])))):
            yield "an insertion inside or below a WITH"
        if each.get("Operation") == "Delete" and any(
            _reads_changed(below) for below in each.get("Plans", [])
        ):
            yield "a deletion of what another one in a WITH has returned"


def _walk(
    node: Mapping[str, Any], above: tuple[Any, ...]
) -> Iterator[tuple[Mapping[str, Any], tuple[Any, ...]]]:
    yield node, above
    for below in node.get("Plans", []):
        yield from _walk(below, (*above, node))


def _is_scan(node: Mapping[str, Any]) -> bool:
    return "Relation Name" in node and "Scan" in node["Node Type"]


def _is_cte(node: Mapping[str, Any]) -> bool:
    return str(node.get("Subplan Name", "")).startswith("CTE")


def _reads_changed(node: Mapping[str, Any]) -> bool:
    return any(_is_cte(each) and each["Node Type"] == "ModifyTable" for each, _ in _walk(node, ()))


def _names_tenant(node: Mapping[str, Any], above: tuple[Any, ...]) -> bool:
    # A bitmap's condition stands in the scan of its index, below; BitmapAnd has several.
    of_index = (
        [below for below, _ in _walk(node, ()) if "Index" in below["Node Type"]] if _is_bitmap(node) else []
    )
    said = " ".join(
        str(value)
        for each in (node, *of_index)
        for name, value in each.items()
        if name.endswith(("Cond", "Filter"))
    )
    # Of an empty list nothing is looked up, and the plan leaves the rest out.
    return bool(_CONSTANT.search(said)) or "ANY ('{}'" in said


def _is_bitmap(node: Mapping[str, Any]) -> bool:
    return bool(node["Node Type"] == "Bitmap Heap Scan")


def judged(statement: str, parameters: Any = None) -> list[str]:
    """The faults of a statement as this thread's connection would send it now."""
    connection = connections["default"]
    connection.ensure_connection()

    def plan() -> list[dict[str, Any]]:
        with ClientCursor(connection.connection) as cursor:
            cursor.execute("EXPLAIN (COSTS off, FORMAT json) " + _DECLARED.sub("", statement), parameters)
            row = cursor.fetchone()
        assert row is not None
        found: list[dict[str, Any]] = row[0]
        return found

    return faults_of(statement, plan)


@dataclass
class Watch:
    """What was sent, each text once, and what is wrong with some of it."""

    judged: set[str] = field(default_factory=set)
    found: dict[str, list[str]] = field(default_factory=dict)


@contextmanager
def watched() -> Iterator[Watch]:
    """Judge what this thread sends inside, as the role that serves."""
    watch = Watch()

    def send(execute: Callable[..., Any], sql: Any, parameters: Any, *args: Any) -> Any:
        text = sql if isinstance(sql, str) else sql.as_string(connections["default"].connection)
        if text not in watch.judged:
            watch.judged.add(text)
            if faults := judged(text, parameters):
                watch.found[" ".join(text.split())] = faults
        return execute(sql, parameters, *args)

    with connections["default"].execute_wrapper(send):
        yield watch
