"""Metadata of entries: what a frontmatter holds besides the keys that the format knows."""

from collections.abc import Mapping
from typing import Final

from memsvc.format.frontmatter import KNOWN_KEYS, MAX_NUMBER, Scalar, Value
from memsvc.format.refusals import FormatError, InvalidText
from memsvc.format.text import checked_text

MAX_PAIRS: Final = 50
MAX_NAME_BYTES: Final = 128
MAX_TEXT_BYTES: Final = 4096
MAX_ITEMS: Final = 100

# Where an entry keeps what it has brought from another system.
ORIGIN: Final = "origin"

# What the format or the service says about an entry. Other values under these names would only pretend to.
RESERVED_NAMES: Final = KNOWN_KEYS | {
    *(ORIGIN, "kind", "body", "expires_at", "revision"),
    *("status", "trust", "author", "actor"),
}


class InvalidMetadata(FormatError):
    """Metadata that an entry doesn't take, or that can't be asked for."""

    code = "invalid_metadata"


def metadata_of(extra: Mapping[str, Value]) -> dict[str, Value]:
    """The metadata among the keys of a frontmatter that the format doesn't know.

    Left out are reserved names, names that are too long, and keys without a value.
    """
    return {
        name: value
        for name, value in extra.items()
        if value is not None and name not in RESERVED_NAMES and len(name.encode()) <= MAX_NAME_BYTES
    }


def checked_metadata(given: Mapping[str, object]) -> dict[str, Value]:
    """Return `given` if an entry takes it: names with text, a number, true or false, or a list of these.

    Raises `InvalidMetadata`, and `InvalidText` for text that can't be stored.
    """
    if len(given) > MAX_PAIRS:
        raise InvalidMetadata(f"metadata takes at most {MAX_PAIRS} names; leave some out")
    return {checked_name(name): checked_value(name, value) for name, value in given.items()}


def checked_name(name: object) -> str:
    """Return a name that metadata may have."""
    checked = checked_text(name, field="a name in metadata", max_bytes=MAX_NAME_BYTES)
    if not checked.strip():
        raise InvalidMetadata("a name in metadata must not be empty")
    if checked in RESERVED_NAMES:
        raise InvalidMetadata(f"metadata can't have the name '{checked}', which has a meaning of its own")
    return checked


def checked_value(name: str, value: object) -> Value:
    """Return what a name may stand for: a scalar, or a list of them."""
    if not isinstance(value, list | tuple):
        return checked_scalar(name, value)
    if len(value) > MAX_ITEMS:
        raise InvalidMetadata(f"metadata.{name} takes at most {MAX_ITEMS} items; leave some out")
    return [checked_scalar(name, item) for item in value]


def checked_scalar(name: str, value: object) -> Scalar:
    """Return text, a number, true or false, as it is."""
    match value:
        case str():
            return checked_text(value, field=f"metadata.{name}", max_bytes=MAX_TEXT_BYTES)
        case bool():
            return value
        case int() | float() if abs(value) <= MAX_NUMBER:
            return value
        case int() | float():
            raise InvalidMetadata(
                f"metadata.{name} is a number beyond ±{MAX_NUMBER}, which not every reader reads alike; "
                "make it text"
            )
    raise InvalidMetadata(f"metadata.{name} must be text, a number, true or false, or a list of these")


def storable_metadata(given: Mapping[str, object]) -> dict[str, Value]:
    """As much of `given` as an entry takes, in its order."""
    taken: dict[str, Value] = {}
    for name, value in given.items():
        try:
            taken[checked_name(name)] = checked_value(name, value)
        except (InvalidMetadata, InvalidText):
            continue
        if len(taken) == MAX_PAIRS:
            break
    return taken
