"""Fields of requests. Text passes the gate of `memsvc.format`; nothing is taken for what it isn't.

A number may come as text, because query parameters do. A FormatError (`invalid_text`, `invalid_path` …) goes up as
it is: its code is part of the interface.
"""

import binascii
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING
from dataclasses import fields as dataclass_fields
from datetime import datetime, tzinfo
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from rest_framework import serializers

from memsvc.api.parsers import parse_object
from memsvc.api.problems import InvalidJson
from memsvc.contract.requests import Between, Choice, MaxBytes, PageSize, Takes
from memsvc.contract.wire import Named, Wire
from memsvc.format import checked_metadata, checked_text, spelt_path

MAX_LINE_BYTES = 4096
MAX_TAG_BYTES = 256
MAX_TAGS = 100
MAX_FILTER_BYTES = 16 * 1024
# Both ends of Postgres' bigint.
MAX_NUMBER = 2**63 - 1
MIN_NUMBER = -(2**63)


class TextField(serializers.Field[str, Any, str, Any]):
    """Text that can be stored: no lone surrogate, no NUL unless it is content, no more than `max_bytes`."""

    def __init__(self, *, max_bytes: int = MAX_LINE_BYTES, nul_allowed: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self._max_bytes = max_bytes
        self._nul_allowed = nul_allowed

    def to_internal_value(self, data: Any) -> str:
        return checked_text(
            require_text(data),
            field=self.field_name or "item",
            max_bytes=self._max_bytes,
            nul_allowed=self._nul_allowed,
        )


class PathField(serializers.Field[str, Any, str, Any]):
    """The path of a file; what a new one may be called, the service says."""

    def to_internal_value(self, data: Any) -> str:
        return spelt_path(require_text(data))


class FolderField(serializers.Field[str, Any, str, Any]):
    """The path of a folder, with or without a slash at its end; "" and "/" are the root."""

    def to_internal_value(self, data: Any) -> str:
        text = require_text(data)
        return "/" if text in ("", "/") else spelt_path(text.removesuffix("/"))


class BytesField(serializers.Field[bytes, Any, str, Any]):
    """Bytes in base64 (RFC 4648, with padding)."""

    def to_internal_value(self, data: Any) -> bytes:
        try:
            return b64decode(require_text(data), validate=True)
        except (binascii.Error, ValueError):
            raise serializers.ValidationError("This is not base64.", code="invalid") from None


class NumberField(serializers.Field[int, Any, int, Any]):
    """A whole number from `minimum` to `maximum`."""

    def __init__(self, *, minimum: int = MIN_NUMBER, maximum: int = MAX_NUMBER, **options: Any) -> None:
        super().__init__(**options)
        self.minimum = minimum
        self.maximum = maximum

    def to_internal_value(self, data: Any) -> int:
        number = _whole_number(data)
        if not self.minimum <= number <= self.maximum:
            raise serializers.ValidationError(
                f"This must be from {self.minimum} to {self.maximum}.", code="out_of_range"
            )
        return number


class FractionField(serializers.Field[float, Any, float, Any]):
    """A number, whole or not, from `minimum` to `maximum`; with `above` it must be more than the minimum."""

    def __init__(self, *, minimum: float, maximum: float, above: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.minimum, self.maximum, self.above = minimum, maximum, above

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            raise serializers.ValidationError("This must be a number.", code="invalid")
        # Not a number is in no range.
        if not self.minimum <= data <= self.maximum or (self.above and data == self.minimum):
            least = f"above {self.minimum:g}" if self.above else f"from {self.minimum:g}"
            raise serializers.ValidationError(
                f"This must be {least}, up to {self.maximum:g}.", code="out_of_range"
            )
        return float(data)


class WeightsField[Choice: StrEnum](serializers.Field[dict[Choice, float], Any, dict[str, float], Any]):
    """An object of numbers from 0 to `maximum`, by values of `choices`."""

    def __init__(self, choices: type[Choice], *, maximum: float, **options: Any) -> None:
        super().__init__(**options)
        self.key, self.weight = EnumField(choices), FractionField(minimum=0, maximum=maximum)

    def to_internal_value(self, data: Any) -> dict[Choice, float]:
        if not isinstance(data, dict):
            raise serializers.ValidationError("This must be an object.", code="invalid")
        return {
            self.key.to_internal_value(name): self.weight.to_internal_value(weight)
            for name, weight in data.items()
        }


class LimitField(serializers.Field[int, Any, int, Any]):
    """How many items an answer may have: at least 1; more than `maximum` is taken for `maximum`."""

    def __init__(self, *, default: int, maximum: int) -> None:
        super().__init__(default=default)
        self.maximum = maximum

    def to_internal_value(self, data: Any) -> int:
        number = _whole_number(data)
        if number < 1:
            raise serializers.ValidationError("This must be at least 1.", code="out_of_range")
        return min(number, self.maximum)


class FlagField(serializers.Field[bool, Any, bool, Any]):
    """true or false."""

    def to_internal_value(self, data: Any) -> bool:
        if isinstance(data, bool):
            return data
        if data in ("true", "false"):
            return bool(data == "true")
        raise serializers.ValidationError("This must be true or false.", code="invalid")


class EnumField[Choice: StrEnum](serializers.Field[Choice, Any, str, Any]):
    """One of the values of `choices`."""

    def __init__(self, choices: type[Choice], **options: Any) -> None:
        super().__init__(**options)
        self.choices = choices

    def to_internal_value(self, data: Any) -> Choice:
        try:
            return self.choices(data)
        except ValueError:
            known = ", ".join(choice.value for choice in self.choices)
            raise serializers.ValidationError(
                f"This must be one of: {known}.", code="invalid_choice"
            ) from None


class InstantField(serializers.DateTimeField):
    """A moment in ISO 8601; without an offset it is in UTC."""

    def to_internal_value(self, value: Any) -> datetime:
        return super().to_internal_value(require_text(value))

    def enforce_timezone(self, value: datetime) -> datetime:
        """The moment with the offset that it was given with."""
        in_utc = super().enforce_timezone(value)
        return value if value.tzinfo else in_utc


class ExpiryField(InstantField):
    """When an entry disappears; null is never, and absent what it is in the entry that is superseded, if any."""

    def __init__(self) -> None:
        super().__init__(required=False, allow_null=True)


class ZoneField(TextField):
    """An IANA time zone, as `Europe/Berlin`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_bytes=64, **options)

    def to_internal_value(self, data: Any) -> tzinfo:  # type: ignore[override]
        name = super().to_internal_value(data)
        try:
            return ZoneInfo(name)
        except (ValueError, OSError, ZoneInfoNotFoundError):
            message = "This must be an IANA time zone, as Europe/Berlin."
            raise serializers.ValidationError(message, code="invalid") from None


class TagsField(serializers.ListField):
    """A list of tags."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=TextField(max_bytes=MAX_TAG_BYTES), max_length=MAX_TAGS, **options)

    def to_internal_value(self, data: Any) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(super().to_internal_value(data))


class EntryMetadataField(serializers.Field[dict[str, Any], Any, dict[str, Any], Any]):
    """An object of names with text, a number, true or false, or a list of these."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        return dict(checked_metadata(_require_object(data)))


class MetadataFilterField(serializers.Field[dict[str, Any], Any, dict[str, Any], Any]):
    """An object of names with a value, or an object of operators; in a query string as JSON."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, str):
            return _require_object(data)
        text = checked_text(data, field=self.field_name or "item", max_bytes=MAX_FILTER_BYTES)
        try:
            return parse_object(text.encode())
        except InvalidJson as error:
            raise serializers.ValidationError(
                f"This must be a JSON object: {error.detail}", code="invalid"
            ) from None


def _require_object(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise serializers.ValidationError("This must be an object.", code="invalid")
    return data


def require_text(data: Any) -> str:
    if not isinstance(data, str):
        raise serializers.ValidationError("This must be text.", code="invalid")
    return data


def _whole_number(data: Any) -> int:
    if isinstance(data, int) and not isinstance(data, bool):
        return data
    # More digits than any bigint has are refused before they are counted.
    if isinstance(data, str) and len(data) <= 20 and data.isascii() and data.removeprefix("-").isdecimal():
        return int(data)
    raise serializers.ValidationError("This must be a whole number.", code="invalid")


def fields_of(request: type) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
    """The fields of a request of the contract, by the names under which they are sent."""
    hints = get_type_hints(request, include_extras=True)
    made = {}
    for each in dataclass_fields(request):
        hint = hints[each.name]
        kind, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if Wire.UNSENT not in marks:
            name = next((mark.name for mark in marks if isinstance(mark, Named)), each.name)
            made[name] = _field_of(kind, marks, each.default)
    return made


def _field_of(kind: Any, marks: Iterable[Any], standard: Any) -> serializers.Field[Any, Any, Any, Any]:
    kinds = (
        [each for each in get_args(kind) if each is not NoneType] if get_origin(kind) is UnionType else [kind]
    )
    only = kinds[0]
    options = {} if standard is MISSING else {"default": standard}
    for mark in marks:
        match mark:
            case Choice():
                return EnumField(mark.of, default=mark.of(standard))
            case PageSize():
                return LimitField(default=mark.default, maximum=mark.maximum)
            case MaxBytes():
                return TextField(max_bytes=mark.bytes, **options)
            case Between() if get_origin(only) is Mapping:
                return WeightsField(get_args(only)[0], maximum=mark.maximum, **options)
            case Between() if only is int:
                return NumberField(minimum=int(mark.minimum), **options)
            case Between():
                return FractionField(minimum=mark.minimum, maximum=mark.maximum, above=mark.above, **options)
            case Takes.FOLDER:
                return FolderField(**options)
            case Takes.ZONE:
                return ZoneField(**options)
            case Takes.CONTENT:
                return TextField(max_bytes=settings.MAX_BODY_BYTES, nul_allowed=True, **options)
            case Takes.METADATA:
                return EntryMetadataField(**options)
            case Takes.EXPIRY:
                return ExpiryField()
            case Takes.FILTER:
                return MetadataFilterField(**options)
    if get_origin(only) is Sequence:
        return TagsField(**options)
    if issubclass(only, StrEnum):
        return EnumField(only, **options)
    plain: dict[type, type[serializers.Field[Any, Any, Any, Any]]] = {
        str: TextField,
        bool: FlagField,
        datetime: InstantField,
    }
    return plain[only](**options)
