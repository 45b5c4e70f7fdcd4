"""Which entries a filter by their metadata admits.

A filter has for each name a value, or an object of operators; all of them must hold. Nothing is converted: 1 is not
"1", and true is not 1. What an entry has as a list equals each of its items; a list that is asked for must be held
with all its items.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from django.db.models import F, Func, JSONField, Q, TextField, Value
from django.db.models.fields.json import DataContains
from django.db.models.functions import Collate
from django.db.models.lookups import (
    Exact,
    GreaterThan,
    GreaterThanOrEqual,
    IsNull,
    LessThan,
    LessThanOrEqual,
)

from memsvc.format import InvalidMetadata
from memsvc.format.metadata import checked_name, checked_scalar, checked_value

# Each is looked for in each entry.
MAX_VALUES: Final = 100

type _Order = type[GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual]


def with_metadata(wanted: Mapping[str, object]) -> Q:
    """The condition that a filter puts on entries. Raises `InvalidMetadata` and `InvalidText`."""
    conditions = [
        (name, word, value)
        for name, asked in wanted.items()
        for word, value in _asked(checked_name(name), asked).items()
    ]
    if sum(len(value) if isinstance(value, list | tuple) else 1 for _, _, value in conditions) > MAX_VALUES:
        raise InvalidMetadata(f"a filter by metadata takes at most {MAX_VALUES} values; leave some out")
    condition = Q()
    for name, word, value in conditions:
        condition &= OPERATORS[word](name, value)
    return condition


def _asked(name: str, asked: object) -> Mapping[str, object]:
    """The operators of a name; a value alone is to be equal."""
    if not isinstance(asked, Mapping):
        return {"eq": asked}
    if not asked or not asked.keys() <= OPERATORS.keys():
        raise InvalidMetadata(f"metadata.{name} takes the operators {', '.join(OPERATORS)}, and no others")
    return asked


def _held(name: str) -> Func:
    """What an entry has under a name. Not `metadata__name`, for which digits are a place in a list."""
    place = (F("metadata"), Value(name, TextField()))
    return Func(*place, function="jsonb_extract_path", output_field=JSONField())


def _held_text(name: str) -> Func:
    place = (F("metadata"), Value(name, TextField()))
    return Func(*place, function="jsonb_extract_path_text", output_field=TextField())


def _equal(name: str, value: object) -> Q:
    return Q(DataContains(_held(name), Value(checked_value(name, value), JSONField())))


def _not_equal(name: str, value: object) -> Q:
    return Q(IsNull(_held(name), True)) | ~_equal(name, value)


def _one_of(name: str, values: object) -> Q:
    if not isinstance(values, list | tuple) or not values:
        raise InvalidMetadata(f"metadata.{name}: 'in' takes a list of at least one value")
    condition = Q()
    for value in values:
        condition |= _equal(name, checked_scalar(name, value))
    return condition


def _exists(name: str, value: object) -> Q:
    if not isinstance(value, bool):
        raise InvalidMetadata(f"metadata.{name}: 'exists' takes true or false")
    return Q(IsNull(_held(name), not value))


def _ordered(order: _Order, name: str, value: object) -> Q:
    """Numbers by their size, text by its code points; nothing else has an order."""
    bound = checked_scalar(name, value) if not isinstance(value, bool) else None
    match bound:
        case str():
            held, kind = order(Collate(_held_text(name), "C"), Value(bound, TextField())), "string"
        case int() | float():
            held, kind = order(_held(name), Value(bound, JSONField())), "number"
        case _:
            raise InvalidMetadata(f"metadata.{name}: only numbers and text are more or less than others")
    typed = Func(_held(name), function="jsonb_typeof", output_field=TextField())
    return Q(Exact(typed, Value(kind, TextField()))) & Q(held)


OPERATORS: Final[Mapping[str, Callable[[str, object], Q]]] = {
    "eq": _equal,
    "ne": _not_equal,
    "in": _one_of,
    "exists": _exists,
    "gt": partial(_ordered, GreaterThan),
    "gte": partial(_ordered, GreaterThanOrEqual),
    "lt": partial(_ordered, LessThan),
    "lte": partial(_ordered, LessThanOrEqual),
}
