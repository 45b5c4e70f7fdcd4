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
from memsvc.api.openapi.endpoint_metadata import ENDPOINTS, Endpoint
from memsvc.api.openapi.memory_stores import STORE_ENDPOINTS
from memsvc.api.openapi.schemas import BYTES, COMPONENTS, UUID, described, ref
from memsvc.api.serializers import BatchInput
from memsvc.api.views import WRITE_HEADERS, TenantView
from memsvc.contract.wire import NUMBER, TEXT, Schema, array, enum, nullable
from tenants.scopes import Scope

EVERY_ENDPOINT = ENDPOINTS | STORE_ENDPOINTS
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
    """One operation: what `ENDPOINTS` says about it, and what its view says."""

    @property
    def endpoint(self) -> Endpoint:
        name = type(self.view).__name__
        if (name, self.method) not in EVERY_ENDPOINT:
            warn(f"{self.method} of {name} is not described in memsvc/api/openapi/endpoint_metadata.py")
        return EVERY_ENDPOINT.get((name, self.method), Endpoint(summary=name, answers={200: {}}))

    @property
    def tenant_view(self) -> TenantView:
        return cast(TenantView, self.view)

    def get_operation_id(self) -> str:
        name = type(self.view).__name__.removesuffix("View")
        return f"{self.method.lower()}{name}"

    def get_summary(self) -> str:
        return self.endpoint.summary

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
        for name in self.endpoint.conditions:
            yield OpenApiParameter(name, str, OpenApiParameter.HEADER, description=CONDITIONS[name])
        if self.method != "GET" and self.tenant_view.scopes[self.method] is not Scope.READ:
            for name, (pattern, text) in WRITE_HEADERS.items():
                kind = {**TEXT, "pattern": f"^{pattern}$"}
                yield OpenApiParameter(name, kind, OpenApiParameter.HEADER, description=text)

    def get_request_serializer(self) -> Any:
        endpoint = self.endpoint
        if endpoint.body is BatchInput:
            return {"application/json": self._batch()}
        json = {"application/json": endpoint.body} if endpoint.body else {}
        return {**json, **dict.fromkeys(endpoint.raw, BYTES)}

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
        endpoint, answers = self.endpoint, {}
        for status, answered in endpoint.answers.items():
            for media_type in endpoint.media:
                answers[status, media_type] = (
                    described(answered) if media_type == "application/json" else BYTES
                )
        shape, media_type = self.tenant_view.error_shape
        statuses = ("400", "401", "403", *map(str, endpoint.refusals), "default")
        return answers | {(status, media_type): ref(shape) for status in statuses}

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        for status, body in bodies.items():
            body["description"] = (
                REFUSALS.get(int(status), "Done.") if status.isdigit() else "Any other problem."
            )
        if self.method == "GET" and self.endpoint.conditions:
            bodies["304"] = {"description": "The client has this state already."}
        return bodies

    def get_examples(self) -> list[OpenApiExample]:
        endpoint, found = self.endpoint, []
        if endpoint.example is not None:
            found.append(OpenApiExample("Request", endpoint.example, request_only=True))
        if endpoint.answered is not None:
            media_type = endpoint.media[0]
            found.append(
                OpenApiExample("Answer", endpoint.answered, response_only=True, media_type=media_type)
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
    """What a field says of itself; null is taken for one that is absent wherever it has a default."""

    target_class = fields.Field
    match_subclasses = True

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Any) -> Schema:
        schema: Schema = self.target.described()
        return schema if self.target.required else nullable(schema)
