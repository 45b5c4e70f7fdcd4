"""Rows as models without the query builder, for statements that run with every request.

Putting one of them together with Django's builder takes several times longer than Postgres takes to run it.
"""

from collections.abc import Sequence
from typing import Any

from django.db import connection, models


def names(model: type[models.Model]) -> list[str]:
    """The attributes of a model, in the order of its columns; each column here has its attribute's name."""
    return [field.attname for field in model._meta.concrete_fields]


def columns(model: type[models.Model], alias: str) -> str:
    return ", ".join(f"{alias}.{name}" for name in names(model))


def instance[M: models.Model](model: type[M], values: Sequence[Any]) -> M | None:
    """A row as a model; None where an outer join found nothing."""
    return model.from_db(connection.alias, names(model), values) if values[0] is not None else None


def one(sql: str, parameters: Sequence[Any]) -> Sequence[Any] | None:
    """The first row of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        row: Sequence[Any] | None = cursor.fetchone()
    return row


def execute(sql: str, parameters: Sequence[Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
