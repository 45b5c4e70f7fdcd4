"""The description as it is served: for programs and, by Swagger UI from this server's own files, for people."""

import json
from functools import cache

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator


@require_safe
def openapi_json(request: HttpRequest) -> HttpResponse:
    return HttpResponse(description(), content_type="application/json")


@cache
def description() -> bytes:
    """The OpenAPI document; made once per process, for it takes a moment and never changes."""
    return json.dumps(SchemaGenerator().get_schema(request=None, public=True)).encode()


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    return render(request, "memsvc/docs.html")
