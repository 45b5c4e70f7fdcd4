"""Log lines on standard error, plain or JSON, each with its request's id. Never a key, content or a query string."""

import json
import logging
import re
import secrets
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from memsvc.format.keys import looks_like_key
from tenants.addresses import client_address

REQUEST_ID_HEADER = "X-Request-ID"
_ACCEPTED_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}", re.ASCII)
_KEY = re.compile(r"\bmsk_([A-Za-z0-9]+)_[A-Za-z0-9]+")
# PostgreSQL quotes the values of the failing row after its message.
_ROW_VALUES = re.compile(r"\nDETAIL:.*?(?=\n\nThe above exception|\n\nDuring handling|\Z)", re.DOTALL)
_RECORD_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

NO_REQUEST = "-"
request_id: ContextVar[str] = ContextVar("request_id", default=NO_REQUEST)
access_log = logging.getLogger("memsvc.access")


def configuration(*, level: str, format: str) -> dict[str, Any]:
    """A dictConfig; `format` is "plain" or "json"."""
    return {
        "version": 1,
        "disable_existing_loggers": False,  # True would silence django.request and django.security
        "formatters": {
            "plain": {"()": PlainFormatter},
            "json": {"()": JsonFormatter},
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": format}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "level": level, "propagate": True},
            # Its warnings hold the path of each 4xx, which the access log has without names of files.
            "django.request": {"level": "ERROR"},
            # It tells each of the jobs that look for work every few seconds.
            "procrastinate": {"level": "WARNING"},
        },
    }


def without_keys(text: str) -> str:
    """`text` with the secret part of API keys taken out."""
    return _KEY.sub(r"msk_\1_…", text)


class DiscreetFormatter(logging.Formatter):
    def formatException(self, *arguments: Any) -> str:
        return _ROW_VALUES.sub("", super().formatException(*arguments))


class PlainFormatter(DiscreetFormatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        record.request_id = request_id.get()
        return without_keys(super().format(record))


class JsonFormatter(DiscreetFormatter):
    """One object a line: the standard fields, and whatever the caller gave as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname,
            "logger": record.name,
            "request_id": request_id.get(),
            "message": record.getMessage(),
        }
        line |= {
            name: value
            for name, value in vars(record).items()
            if name not in _RECORD_ATTRIBUTES | {"request"}
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return without_keys(json.dumps(line, ensure_ascii=False, default=str))


class RequestLogMiddleware:
    """Gives each request an id, the caller's own where it is a plain one, and logs one line for each answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get(REQUEST_ID_HEADER, "")
        is_accepted = _ACCEPTED_REQUEST_ID.fullmatch(given) and not looks_like_key(given)
        identifier = given if is_accepted else secrets.token_hex(8)
        token = request_id.set(identifier)
        started = time.perf_counter()
        try:
            response = self.get_response(request)
            response[REQUEST_ID_HEADER] = identifier
            # Whose request it was, once that is known.
            key = getattr(request, "memsvc_key", None)
            fields = {
                "method": request.method,
                # The route and not the path: names of trees and files may be personal data.
                "route": request.resolver_match.route if request.resolver_match else "-",
                "status": response.status_code,
                "ms": round((time.perf_counter() - started) * 1000, 1),
                "tenant_id": str(key.tenant_id) if key else "-",
                "key_id": str(key.pk) if key else "-",
                "client": client_address(request) or "-",
            }
            access_log.info("%s /%s %s %s ms tenant=%s key=%s client=%s", *fields.values(), extra=fields)
            return response
        finally:
            request_id.reset(token)
