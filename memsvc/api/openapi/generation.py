"""How drf-spectacular is told about the views and fields of this API."""

import json
from collections.abc import Iterable
from typing import Any, cast

from django.http import HttpRequest
from drf_spectacular.drainage import warn
from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import build_mock_request
from drf_spectacular.utils import OpenApiExample, OpenApiParameter
from rest_framework.request import Request
from rest_framework.views import APIView

from memsvc.api import batch, fields
from memsvc.api.memory_stores import fields as store_fields
from memsvc.api.openapi.memory_stores import STORE_OPERATIONS
from memsvc.api.openapi.operations import OPERATIONS, Operation
from memsvc.api.openapi.schemas import (
    BASE64,
    BYTES,
    COMPONENTS,
    FLAG,
    FRACTION,
    NUMBER,
    TEXT,
    UUID,
    array,
    described,
    enum,
    nullable,
    ref,
)
from memsvc.api.serializers import BatchInput, Query
from memsvc.api.views import TenantView
from memsvc.contract.wire import Schema
from memsvc.format import metadata
from memsvc.format.frontmatter import MAX_NUMBER
from memsvc.tree.reads.metadata import OPERATORS as OPERATORS_OF_METADATA
from memsvc.tree.trees import MAX_METADATA_PAIRS
from tenants.scopes import Scope

_SCALARS: list[Schema] = [
    {**TEXT, "maxLength": metadata.MAX_TEXT_BYTES},
    {**FRACTION, "minimum": -MAX_NUMBER, "maximum": MAX_NUMBER},
    FLAG,
]
EVERY_OPERATION = OPERATIONS | STORE_OPERATIONS
PATH_NAMES = {
    "tree": "The exact name of a tree; `default` is always there.",
    "path": "The absolute path of a file without its first slash. Its slashes may stay as they are.",
    "entry_id": "The id of an entry.",
    "number": "The number of a revision.",
    "key_id": "The id of a key.",
    "store_id": "The id of a memory store: `memstore_…`.",
    "memory_id": "The id of a memory: `mem_…`.",
    "version_id": "The id of a version of a memory: `memver_…`.",
}
PATH_KINDS: dict[str, Schema] = {"number": {**NUMBER, "minimum": 0, "maximum": 10**18 - 1}, "key_id": UUID}
CONDITIONS = {
    "If-Match": "An `ETag` that an answer gave, or `*`: refused with 412 when something else is there by now.",
    "If-None-Match": "In a read, the ETags that are known: 304 when one still holds. "
    "In a change, `*`: only if nothing is there.",
}
REFUSALS = {
    400: "The request can't be understood.",
    401: "No valid key.",
    403: "The key may not do this.",
    404: "There is no such thing, or it isn't open to this key.",
    409: "The tree is in a state in which this can't be done.",
    410: "The revision is older than the history that is kept; `oldest` is the first that can be read.",
    412: "What is there is not what the request expects.",
    413: "More than is taken at once.",
    416: "The window lies behind the end of the file.",
}


class ApiSchema(AutoSchema):
    """One operation: what `OPERATIONS` says about it, and what its view says."""

    @property
    def operation(self) -> Operation:
        name = type(self.view).__name__
        if (name, self.method) not in EVERY_OPERATION:
            warn(f"{self.method} of {name} is not described in memsvc/api/openapi/operations.py")
        return EVERY_OPERATION.get((name, self.method), Operation(summary=name, answers={200: {}}))

    @property
    def tenant_view(self) -> TenantView:
        return cast(TenantView, self.view)

    def get_operation_id(self) -> str:
        name = type(self.view).__name__.removesuffix("View")
        return f"{self.method.lower()}{name}"

    def get_summary(self) -> str:
        return self.operation.summary

    def get_description(self) -> str:  # type: ignore[override]  # so it is in drf-spectacular itself
        scope = self.tenant_view.scopes[self.method]
        text = (type(self.view).__doc__ or "").strip()
        return f"{text}\n\nNeeds the scope `{scope}`.".strip()

    def get_tags(self) -> list[str]:
        return [self.view.__module__.removeprefix("memsvc.api.").partition(".")[0]]

    def get_override_parameters(self) -> list[Any]:
        shape = self.tenant_view.queries.get(self.method)
        return [*([shape] if shape else []), *self._path_parameters(), *self._header_parameters()]

    def _path_parameters(self) -> Iterable[OpenApiParameter]:
        for name, text in PATH_NAMES.items():
            if f"{{{name}}}" in self.path:
                kind = PATH_KINDS.get(name, {**TEXT, "minLength": 1})
                yield OpenApiParameter(name, kind, OpenApiParameter.PATH, required=True, description=text)

    def _header_parameters(self) -> Iterable[OpenApiParameter]:
        for name in self.operation.conditions:
            yield OpenApiParameter(name, str, OpenApiParameter.HEADER, description=CONDITIONS[name])
        if self.method != "GET" and self.tenant_view.scopes[self.method] is not Scope.READ:
            yield OpenApiParameter(
                "Idempotency-Key",
                {**TEXT, "pattern": "^[!-~]{1,255}$"},
                OpenApiParameter.HEADER,
                description="Makes a repeat of this very request answer what the first one did, and do nothing.",
            )

    def get_request_serializer(self) -> Any:
        operation = self.operation
        if operation.body is BatchInput:
            return {"application/json": self._batch()}
        json = {"application/json": operation.body} if operation.body else {}
        return {**json, **dict.fromkeys(operation.raw, BYTES)}

    def _batch(self) -> Schema:
        def step(name: str) -> Schema:
            shape, _ = batch.OPERATIONS[name]
            known = self.resolve_serializer(shape, "request").ref
            return {"allOf": [known, {"type": "object", "properties": {"op": enum(name)}}]}

        return {
            "type": "object",
            "required": ["operations"],
            "properties": {
                "operations": {**array({"anyOf": [step(name) for name in batch.OPERATIONS]}), "minItems": 1},
                "message": TEXT,
            },
        }

    def get_serializer_name(self, serializer: Any, direction: Any) -> str:
        # An operation of a batch is not the call of the same name.
        name: str = super().get_serializer_name(serializer, direction)
        return f"Batch{name}" if type(serializer).__module__ == batch.__name__ else name

    def get_response_serializers(self) -> Any:
        operation, answers = self.operation, {}
        for status, answered in operation.answers.items():
            for media_type in operation.media:
                answers[status, media_type] = (
                    described(answered) if media_type == "application/json" else BYTES
                )
        shape, media_type = self.tenant_view.error_shape
        statuses = ("400", "401", "403", *map(str, operation.refusals), "default")
        return answers | {(status, media_type): ref(shape) for status in statuses}

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        for status, body in bodies.items():
            body["description"] = (
                REFUSALS.get(int(status), "Done.") if status.isdigit() else "Any other problem."
            )
        if self.method == "GET" and self.operation.conditions:
            bodies["304"] = {"description": "The client has this state already."}
        return bodies

    def get_examples(self) -> list[OpenApiExample]:
        operation, found = self.operation, []
        if operation.example is not None:
            found.append(OpenApiExample("Request", operation.example, request_only=True))
        if operation.answered is not None:
            media_type = operation.media[0]
            found.append(
                OpenApiExample("Answer", operation.answered, response_only=True, media_type=media_type)
            )
        return found


def request_of(method: str, path: str, view: APIView, request: Request | None) -> Request:
    """A request for `view` to be asked about, which has it already when DRF makes its own, as when it is served."""
    plain = HttpRequest()
    plain.method = method
    view.setup(plain)
    made: Request = build_mock_request(method, path, view, request)
    return made


def with_answers(result: dict[str, Any], **context: Any) -> dict[str, Any]:
    """The finished document: with the schemas of the answers, and nothing in it but plain JSON values."""
    result["components"]["schemas"] |= COMPONENTS
    plain: dict[str, Any] = json.loads(json.dumps(result))
    return plain


class BearerKey(OpenApiAuthenticationExtension):
    target_class = "tenants.authentication.KeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer", "description": "An API key: `msk_…`."}


class EitherHeader(OpenApiAuthenticationExtension):
    target_class = "memsvc.api.memory_stores.authentication.EitherHeaderAuthentication"
    name = "keyHeader"

    def get_security_requirement(self, auto_schema: AutoSchema) -> list[dict[str, list[Any]]]:
        return [{BearerKey.name: []}, {self.name: []}]

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        text = "The same key without `Bearer`; not both."
        return {"type": "apiKey", "in": "header", "name": "x-api-key", "description": text}


class Field(OpenApiSerializerFieldExtension):
    """A field of `memsvc.api.fields`; null is taken for one that is absent wherever it has a default."""

    target_class: Any = fields.TextField
    match_subclasses = True
    schema: Schema = TEXT

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Any) -> Schema:
        schema = self.described()
        return schema if self.target.required else nullable(schema)

    def described(self) -> Schema:
        return dict(self.schema)


class Path(Field):
    target_class = fields.PathField
    schema = {**TEXT, "description": "An absolute path."}


class Zone(Field):
    target_class = fields.ZoneField
    schema = {**TEXT, "description": "An IANA time zone; UTC when it is absent."}


class Folder(Field):
    target_class = fields.FolderField
    schema = {**TEXT, "description": "The absolute path of a folder."}


class Bytes(Field):
    target_class = fields.BytesField
    schema = BASE64


class Flag(Field):
    target_class = fields.FlagField
    schema = FLAG


class Number(Field):
    target_class = fields.NumberField

    def described(self) -> Schema:
        return {**NUMBER, "minimum": self.target.minimum, "maximum": self.target.maximum}


class Limit(Field):
    target_class = fields.LimitField

    def described(self) -> Schema:
        return {**NUMBER, "minimum": 1, "description": f"At most {self.target.maximum} are answered."}


class Fraction(Field):
    target_class = fields.FractionField

    def described(self) -> Schema:
        least = "exclusiveMinimum" if self.target.above else "minimum"
        return {**FRACTION, least: self.target.minimum, "maximum": self.target.maximum}


class Weights(Field):
    target_class = fields.WeightsField

    def described(self) -> Schema:
        weight = {**FRACTION, "minimum": 0, "maximum": self.target.weight.maximum}
        names = {choice.value: weight for choice in self.target.key.choices}
        return {"type": "object", "properties": names, "additionalProperties": False}


class EntryMetadata(Field):
    target_class = fields.EntryMetadataField

    def described(self) -> Schema:
        return {
            "type": "object",
            "maxProperties": metadata.MAX_PAIRS,
            "propertyNames": {"minLength": 1, "maxLength": metadata.MAX_NAME_BYTES},
            "additionalProperties": {
                "anyOf": [*_SCALARS, {**array({"anyOf": _SCALARS}), "maxItems": metadata.MAX_ITEMS}]
            },
        }


class MetadataFilter(Field):
    target_class = fields.MetadataFilterField

    def described(self) -> Schema:
        text = f"For each name a value, or an object of operators: {', '.join(OPERATORS_OF_METADATA)}."
        if isinstance(self.target.parent, Query):
            return {**TEXT, "contentMediaType": "application/json", "description": f"A JSON object. {text}"}
        return {"type": "object", "description": text}


class Enum(Field):
    target_class = fields.EnumField

    def described(self) -> Schema:
        return enum(*(choice.value for choice in self.target.choices))


class ShortText(Field):
    target_class = store_fields.ShortTextField

    def described(self) -> Schema:
        return {**TEXT, "minLength": self.target.minimum, "maxLength": self.target.maximum}


class Metadata(Field):
    target_class = store_fields.MetadataField

    def described(self) -> Schema:
        value = {**TEXT, "maxLength": store_fields.MAX_METADATA_VALUE_CHARACTERS}
        return {
            "type": "object",
            "maxProperties": MAX_METADATA_PAIRS,
            "propertyNames": {"minLength": 1, "maxLength": store_fields.MAX_METADATA_KEY_CHARACTERS},
            "additionalProperties": nullable(value) if self.target.patch else value,
        }


class MemoryPath(Field):
    target_class = store_fields.MemoryPathField
    schema = {**TEXT, "description": "An absolute path in NFC, up to 1,024 bytes."}


class PathPrefix(Field):
    target_class = store_fields.PathPrefixField
    schema = {**TEXT, "description": "A folder, with a slash at its begin and its end."}


class Sha256(Field):
    target_class = store_fields.Sha256Field
    schema = {**TEXT, "pattern": "^[0-9a-fA-F]{64}$"}


class Ignored(Field):
    target_class = store_fields.IgnoredField
    schema = {**TEXT, "description": "Taken and ignored."}
