"""Rows as models without the query builder, for statements that run with every request.

Putting one of them together with Django's builder takes several times longer than Postgres takes to run it, and
planning it anew each time takes Postgres longer than to run it: so parameters are bound by the server here, and what
a connection sends again and again is prepared.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections, models
from django.db.backends.postgresql.base import ServerBindingCursor
from django.db.backends.utils import CursorWrapper


@cache
def names(model: type[models.Model]) -> list[str]:
    """The attributes of a model, in the order of its columns; each column here has its attribute's name."""
    return [field.attname for field in model._meta.concrete_fields]


def columns(model: type[models.Model], alias: str) -> str:
    return ", ".join(f"{alias}.{name}" for name in names(model))


def instance[M: models.Model](model: type[M], values: Sequence[Any]) -> M | None:
    """A row as a model; None where an outer join found nothing."""
    if values[0] is None:
        return None
    if converters := _converters(model):
        values = list(values)
        for place, convert in converters:
            values[place] = convert(values[place], None, connection)
    return model.from_db(connection.alias, names(model), values)


@cache
def _converters(model: type[models.Model]) -> list[tuple[int, Callable[..., Any]]]:
    """Columns that the driver leaves as they come, by their place: JSON is text until its field has read it."""
    fields = enumerate(model._meta.concrete_fields)
    return [(place, field.from_db_value) for place, field in fields if hasattr(field, "from_db_value")]


@contextmanager
def prepared() -> Iterator[CursorWrapper]:
    """A cursor for single statements whose values do not stand in their text."""
    # Looked up once: `connection` does it with each attribute that it is asked for.
    held = connections[DEFAULT_DB_ALIAS]
    # As Django's own cursor() does, which binds on the client and so can't prepare.
    held.close_if_health_check_failed()
    held.ensure_connection()
    with held.wrap_database_errors:
        cursor = ServerBindingCursor(held.connection)  # type: ignore[call-arg]  # the stubs know psycopg2's
    with held._prepare_cursor(cursor) as wrapped:  # type: ignore[attr-defined]
        yield wrapped


def one(sql: str, parameters: Sequence[Any] | Mapping[str, Any]) -> Sequence[Any] | None:
    """The first row of a statement."""
    with prepared() as cursor:
        cursor.execute(sql, parameters)
        row: Sequence[Any] | None = cursor.fetchone()
    return row


def execute(sql: str, parameters: Sequence[Any] | Mapping[str, Any]) -> None:
    with prepared() as cursor:
        cursor.execute(sql, parameters)
