"""Answers for probes: /healthz (the process serves) and /readyz (it can do its work)."""

from collections.abc import Callable
from functools import cache

from django.db import Error, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, HttpResponse, JsonResponse


class HealthMiddleware:
    """Answers before all else: a probe comes by plain HTTP, under a Host of its own, and every few seconds."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        probe = PROBES.get(request.path)
        if probe is None or request.method not in ("GET", "HEAD"):
            return self.get_response(request)
        response = probe()
        response["Cache-Control"] = "no-store"
        return response


def healthz() -> HttpResponse:
    return JsonResponse({"status": "ok"})


def readyz() -> HttpResponse:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        waiting = len(_migrations_on_disk() - set(MigrationRecorder(connection).applied_migrations()))
    except Error:
        return _not_ready("database_unavailable", "The database does not answer.")
    if waiting:
        return _not_ready(
            "migrations_pending", f"Migrations that are not applied: {waiting}. Run `manage.py migrate`."
        )
    return JsonResponse({"status": "ready"})


@cache
def _migrations_on_disk() -> frozenset[tuple[str, str]]:
    loader = MigrationLoader(None)
    return frozenset(loader.disk_migrations or {})


def _not_ready(code: str, detail: str) -> HttpResponse:
    problem = {"type": "about:blank", "title": "Not ready", "status": 503, "code": code, "detail": detail}
    headers = {"Retry-After": "1"}
    return JsonResponse(problem, status=503, content_type="application/problem+json", headers=headers)


PROBES: dict[str, Callable[[], HttpResponse]] = {"/healthz": healthz, "/readyz": readyz}
