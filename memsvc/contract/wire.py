"""How the values of the contract are JSON: written, read and described from their types alone.

A dataclass is an object with a member for each of its fields, in the order of its constructor's parameters. Where the
two differ, the field's type says so: `Annotated` with the marks below.
"""

import base64
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from datetime import UTC, date, datetime
from enum import Enum, StrEnum
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType, get_original_bases
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    TypeAliasType,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

type Json = Any
type Schema = dict[str, Any]
# Classes that are described elsewhere, by name.
type Names = Mapping[Any, str]

TEXT: Final[Schema] = {"type": "string"}
NUMBER: Final[Schema] = {"type": "integer"}
FRACTION: Final[Schema] = {"type": "number"}
FLAG: Final[Schema] = {"type": "boolean"}
TIME: Final[Schema] = {"type": "string", "format": "date-time"}
BASE64: Final[Schema] = {"type": "string", "format": "byte"}


class Wire(Enum):
    UNSENT = "unsent"  # no member: it stands in a header, or nowhere
    FLAT = "flat"  # its own members stand among those of the object that has it
    WRITTEN = "written"  # follows from other members, so it isn't read
    ANY_OBJECT = "any object"  # whatever is in it is left as it is


@dataclass(frozen=True, slots=True)
class Named:
    """The member has another name than the field."""

    name: str


@dataclass(frozen=True, slots=True)
class Inside:
    """The member stands in an object of this name."""

    name: str


@dataclass(frozen=True, slots=True)
class Note:
    """What the description says besides the type. Of `enum` a newer server may know more."""

    description: str | None = None
    enum: tuple[str, ...] | None = None
    format: str | None = None


def one_of(*values: str) -> Note:
    return Note(enum=values)


@dataclass(frozen=True, slots=True)
class Form:
    """How values of a type are JSON. `read` raises ValueError for what isn't; `write` is None where they are it."""

    describe: Callable[[Names], Schema]
    read: Callable[[Json], Any]
    write: Callable[[Any], Json] | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """`attribute` is where its value is; `inside` the name of the object that it stands in, if it is one of its own."""

    name: str
    attribute: str
    kind: Any
    form: Form
    inside: str
    flat: bool
    written: bool
    optional: bool


def to_json(value: Any, kind: Hashable = None) -> Json:
    """A value in plain JSON values. `kind` is its type, where its class alone doesn't say it (`Page[Listed]`)."""
    write = form_of(cast(Hashable, type(value)) if kind is None else kind).write
    return write(value) if write else value


def from_json[Value](kind: type[Value], data: Json) -> Value:
    """A value from JSON. Members that aren't known are left alone: a newer server may send more. Raises ValueError."""
    return cast(Value, form_of(cast(Hashable, kind)).read(data))


def schema_of(kind: Any, names: Names | None = None) -> Schema:
    """The JSON schema of a type; the classes in it that have a name are referred to."""
    return form_of(kind).describe({each: name for each, name in (names or {}).items() if each is not kind})


# Classes of other rooms that are sent, and the types of their members by attribute.
EXTERNAL: Final[dict[type, Mapping[str, Any]]] = {}


@cache
def form_of(kind: Hashable) -> Form:
    form = FORMS.get(kind) or _made_form(kind)

    def describe(names: Names) -> Schema:
        name = names.get(kind)
        return {"$ref": f"#/components/schemas/{name}"} if name else form.describe(names)

    return Form(describe, form.read, form.write)


def _made_form(kind: Any) -> Form:
    origin, args = get_origin(kind), get_args(kind)
    if isinstance(kind, TypeAliasType):
        return form_of(kind.__value__)
    if origin is Annotated:
        return _annotated(args[0], args[1:])
    if origin in (Union, UnionType):
        return _optional(args) if NoneType in args else _one_of(args)
    if origin in (Sequence, tuple, frozenset):
        return _array(form_of(args[0]), frozenset if origin is frozenset else tuple)
    if origin is Mapping:
        return _mapping(args[0], form_of(args[1]))
    if origin is Literal:
        return _annotated(str, (Note(enum=args),))
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return Form(lambda names: enum(*(each.value for each in kind)), kind)
    if is_dataclass(origin or kind):
        return object_form(kind)
    raise TypeError(f"{kind} is not sent as JSON")


class _Wrong(ValueError):
    """What a value is not, to be said of the member that has it."""


def _annotated(kind: Any, marks: tuple[Any, ...]) -> Form:
    form = _ANY_OBJECT if Wire.ANY_OBJECT in marks else form_of(kind)
    notes = {
        keyword: [*value] if keyword == "enum" else value
        for mark in marks
        if isinstance(mark, Note)
        for keyword in ("enum", "format", "description")
        if (value := getattr(mark, keyword))
    }
    return Form(lambda names: {**form.describe(names), **notes}, form.read, form.write)


def _optional(kinds: tuple[Any, ...]) -> Form:
    form = form_of(Union[tuple(each for each in kinds if each is not NoneType)])  # noqa: UP007
    write = form.write
    return Form(
        lambda names: nullable(form.describe(names)),
        lambda data: None if data is None else form.read(data),
        (lambda value: None if value is None else write(value)) if write else None,
    )


def _one_of(kinds: tuple[type, ...]) -> Form:
    """One of several classes; which one, JSON doesn't say, so it is left as it is when it is read."""
    return Form(
        lambda names: {"anyOf": [form_of(each).describe(names) for each in kinds]}, _require_object, to_json
    )


def _array(item: Form, kind: type[tuple[Any, ...] | frozenset[Any]]) -> Form:
    def read(data: Json) -> Any:
        if not isinstance(data, list):
            raise _Wrong("is no list")
        return kind(map(item.read, data))

    def write(value: Any) -> Json:
        ordered = sorted(value) if kind is frozenset else value
        return [*map(item.write, ordered)] if item.write else [*ordered]

    return Form(lambda names: array(item.describe(names)), read, write)


def _mapping(key: type, value: Form) -> Form:
    write = value.write or (lambda each: each)
    return Form(
        lambda names: {"type": "object", "additionalProperties": value.describe(names)},
        lambda data: {key(name): value.read(each) for name, each in _require_object(data).items()},
        lambda given: {str(name): write(each) for name, each in given.items()},
    )


def object_form(kind: Any) -> Form:
    """The form of a dataclass, as its fields say."""
    owner: Any = get_origin(kind) or kind
    members = members_of(kind)

    def describe(names: Names) -> Schema:
        described: dict[str, Schema] = {}
        for member in members:
            form = {member.name: member.form.describe(names)}
            if member.flat:
                form = member.form.describe({})["properties"]
            if member.inside:
                described[member.inside] = closed(
                    **described.get(member.inside, closed())["properties"], **form
                )
            else:
                described |= form
        return closed(**described)

    # Entries come by the hundred, so what can be seen from the type is looked up once.
    columns = [(each.inside, each.name, each.attribute, each.form.write) for each in _columns(members)]
    names = [name for _, name, _, _ in columns]
    conversions = [(name, convert) for _, name, _, convert in columns if convert]
    values = _getter([attribute for _, _, attribute, _ in columns])

    def write(value: Any) -> Json:
        written = dict(zip(names, values(value), strict=True))
        for name, convert in conversions:
            written[name] = convert(written[name])
        return written

    places = list(enumerate(columns))
    converted = [(place, convert) for place, (_, _, _, convert) in places if convert]
    # In their order: a member and its place, or an object and the places of those that stand in it.
    layout: dict[str, int | list[tuple[str, int]]] = {}
    for place, (inside, name, _, _) in places:
        if inside:
            layout.setdefault(inside, []).append((name, place))  # type: ignore[union-attr]  # no member has its name
        else:
            layout[name] = place
    outline = list(layout.items())

    def write_grouped(value: Any) -> Json:
        sent = [*values(value)]
        for place, convert in converted:
            sent[place] = convert(sent[place])
        return {
            name: sent[at] if isinstance(at, int) else {each: sent[place] for each, place in at}
            for name, at in outline
        }

    sources = [
        (each.inside, each.name, each.attribute, each.form.read, each.flat, each.optional)
        for each in members
        if not each.written
    ]

    def read(data: Json) -> Any:
        whole, given = _require_object(data), {}
        for inside, name, attribute, convert, flat, optional in sources:
            try:
                source = _require_object(whole.get(inside)) if inside else whole
                if flat or name in source or not optional:
                    given[attribute] = convert(source if flat else source.get(name))
            except _Wrong as wrong:
                raise ValueError(f"'{name}' {wrong}") from None
        return owner(**given)

    grouped = any(inside for inside, *_ in columns)
    return Form(describe, read, write_grouped if grouped else write)


def _columns(members: Iterable[Member], prefix: str = "") -> Iterator[Member]:
    """The members, and in the place of flat ones those that they are made of."""
    for member in members:
        if member.flat:
            parts = _columns(members_of(member.kind), f"{prefix}{member.attribute}.")
            yield from (replace(part, inside=member.inside or part.inside) for part in parts)
        else:
            yield replace(member, attribute=prefix + member.attribute)


def _getter(attributes: Sequence[str]) -> Callable[[Any], Iterable[Any]]:
    get = attrgetter(*attributes)
    return get if len(attributes) > 1 else lambda value: (get(value),)


@cache
def members_of(kind: Any) -> tuple[Member, ...]:
    """The members of a dataclass, in their order."""
    return tuple(_members(kind))


def _members(kind: Any) -> Iterator[Member]:
    owner = get_origin(kind) or kind
    # What stands for the parameters of a generic class, its own or one that it is made from.
    filling = {
        variable: argument
        for each in (kind, *get_original_bases(owner))
        for variable, argument in zip(
            getattr(get_origin(each), "__type_params__", ()), get_args(each), strict=False
        )
    }
    hints, optional = EXTERNAL.get(owner), set()
    if hints is None:
        every = get_type_hints(owner, include_extras=True)
        params = sorted(fields(owner), key=lambda each: each.kw_only is True)
        hints = {each.name: every[each.name] for each in params} | _written(owner)
        optional = {
            each.name for each in params if (each.default, each.default_factory) != (MISSING, MISSING)
        }
    for attribute, hint in hints.items():
        open_ = getattr(hint, "__parameters__", ())
        filled = hint[tuple(filling[each] for each in open_)] if open_ else filling.get(hint, hint)
        said = getattr(filled, "__metadata__", ())
        if Wire.UNSENT not in said:
            yield Member(
                name=next((each.name for each in said if isinstance(each, Named)), attribute),
                attribute=attribute,
                kind=get_args(filled)[0] if said else filled,
                form=form_of(filled),
                inside=next((each.name for each in said if isinstance(each, Inside)), ""),
                flat=Wire.FLAT in said,
                written=Wire.WRITTEN in said,
                optional=attribute in optional,
            )


def _written(owner: type) -> dict[str, Any]:
    """The properties that are sent behind the fields: those of which the type says that they are written."""
    types = {
        name: get_type_hints(value.fget, include_extras=True).get("return")
        for name, value in vars(owner).items()
        if isinstance(value, property)
    }
    return {name: hint for name, hint in types.items() if Wire.WRITTEN in getattr(hint, "__metadata__", ())}


def closed(**members: Schema) -> Schema:
    """An object with all of these members and no other."""
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def array(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def enum(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def _plain(schema: Schema, reason: str, *kinds: type) -> Form:
    def read(data: Json) -> Any:
        # Not by isinstance: a bool is an int to Python.
        if type(data) not in kinds:
            raise _Wrong(reason)
        return data

    return Form(lambda names: dict(schema), read)


def _require_object(data: Json) -> dict[str, Json]:
    if not isinstance(data, dict):
        raise _Wrong("is no object")
    return data


def _instant(at: datetime) -> str:
    """In UTC, whatever offset it was given with: the one form in which every later read has it, too."""
    text = (at if at.tzinfo is UTC else at.astimezone(UTC)).isoformat()
    return text[:-6] + "Z"


_ANY_OBJECT: Final = Form(lambda names: {"type": "object"}, _require_object, dict)
_TEXT: Final = _plain(TEXT, "is no text", str)
# What types have a form of their own.
FORMS: Final[dict[Any, Form]] = {
    object: Form(lambda names: {}, lambda data: data),
    str: _TEXT,
    int: _plain(NUMBER, "is no whole number", int),
    float: _plain(FRACTION, "is no number", int, float),
    bool: _plain(FLAG, "is neither true nor false", bool),
    datetime: Form(
        lambda names: dict(TIME),
        lambda data: datetime.fromisoformat(_TEXT.read(data)),
        _instant,
    ),
    date: Form(
        lambda names: {"type": "string", "format": "date"},
        lambda data: date.fromisoformat(_TEXT.read(data)),
        date.isoformat,
    ),
    bytes: Form(
        lambda names: dict(BASE64),
        lambda data: base64.b64decode(_TEXT.read(data), validate=True),
        lambda value: base64.b64encode(value).decode("ascii"),
    ),
}
