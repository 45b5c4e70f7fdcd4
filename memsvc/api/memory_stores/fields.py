"""Fields of this door's requests."""

import re
from typing import Any

from rest_framework import serializers

from memsvc.api.fields import Field, TextField, require_text
from memsvc.contract.wire import TEXT, Schema, nullable
from memsvc.format import InvalidPath, checked_text, composed_path, spelt_path
from memsvc.tree.files import MAX_FILE_BYTES
from memsvc.tree.trees import MAX_METADATA_PAIRS

MAX_NAME_CHARACTERS = 255
MAX_DESCRIPTION_CHARACTERS = 1024
MAX_METADATA_KEY_CHARACTERS = 64
MAX_METADATA_VALUE_CHARACTERS = 512
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_SHA256 = re.compile("[0-9a-f]{64}")


class ShortTextField(Field[str]):
    """Text of `minimum` to `maximum` characters, as Python counts them."""

    def __init__(self, *, maximum: int, minimum: int = 0, controls: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self.minimum = minimum
        self.maximum = maximum
        self.controls = controls

    def to_internal_value(self, data: Any) -> str:
        name = self.field_name or "item"
        # No character has more than four bytes.
        text = checked_text(require_text(data), field=name, max_bytes=4 * self.maximum)
        if not self.minimum <= len(text) <= self.maximum:
            raise serializers.ValidationError(
                f"This must have {self.minimum} to {self.maximum:,} characters.", code="invalid"
            )
        if not self.controls and _CONTROL.search(text):
            raise serializers.ValidationError("This must not hold control characters.", code="invalid")
        return text

    def described(self) -> Schema:
        return {**TEXT, "minLength": self.minimum, "maxLength": self.maximum}


class MetadataField(Field[dict[str, Any]]):
    """Pairs of text; with `patch` a value may be null, which takes its pair away."""

    def __init__(self, *, patch: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.patch = patch

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise serializers.ValidationError("This must be an object.", code="invalid")
        key = ShortTextField(minimum=1, maximum=MAX_METADATA_KEY_CHARACTERS)
        value = ShortTextField(maximum=MAX_METADATA_VALUE_CHARACTERS)
        return {
            key.to_internal_value(name): None
            if self.patch and text is None
            else value.to_internal_value(text)
            for name, text in data.items()
        }

    def described(self) -> Schema:
        value = {**TEXT, "maxLength": MAX_METADATA_VALUE_CHARACTERS}
        return {
            "type": "object",
            "maxProperties": MAX_METADATA_PAIRS,
            "propertyNames": {"minLength": 1, "maxLength": MAX_METADATA_KEY_CHARACTERS},
            "additionalProperties": nullable(value) if self.patch else value,
        }


class MemoryPathField(Field[str]):
    """The path under which a memory will be; nothing in it is mended."""

    schema = {**TEXT, "description": "An absolute path in NFC, up to 1,024 bytes."}

    def to_internal_value(self, data: Any) -> str:
        return composed_path(require_text(data))


class MemoryTextField(TextField):
    """The content of a memory; how long it may be, the service says."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_bytes=MAX_FILE_BYTES, nul_allowed=True, **options)


class PathPrefixField(Field[str]):
    """A folder with a slash at its begin and its end, as a folder's path."""

    schema = {**TEXT, "description": "A folder, with a slash at its begin and its end."}

    def to_internal_value(self, data: Any) -> str:
        text = require_text(data)
        if text == "/":
            return text
        if not (text.startswith("/") and text.endswith("/")):
            raise InvalidPath("path_prefix must be a folder that begins and ends with a slash, as in /notes/")
        return spelt_path(text[:-1])


class Sha256Field(Field[str]):
    """64 hexadecimal digits."""

    schema = {**TEXT, "pattern": "^[0-9a-fA-F]{64}$"}

    def to_internal_value(self, data: Any) -> str:
        text = require_text(data).lower()
        if not _SHA256.fullmatch(text):
            raise serializers.ValidationError("This must be 64 hexadecimal digits.", code="invalid")
        return text


class IgnoredField(Field[None]):
    """What clients of others send and means nothing here."""

    schema = {**TEXT, "description": "Taken and ignored."}

    def to_internal_value(self, data: Any) -> None:
        return None
