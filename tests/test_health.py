from pathlib import Path

import httpx
import pytest
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder
from django.db.utils import ConnectionHandler
from django.test import Client
from pytest_django import DjangoDbBlocker, Settings

from memsvc import health
from memsvc.database.rights import OWNER


def test_healthz_needs_no_database(client: Client) -> None:
    response = client.get("/healthz")

    assert (response.status_code, response.json()) == (200, {"status": "ok"})
    assert response["Cache-Control"] == "no-store"


def test_a_probe_may_come_by_plain_http_under_any_host(client: Client, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["memory.example.com"]
    settings.SECURE_SSL_REDIRECT = True

    assert client.get("/healthz", headers={"host": "10.0.0.7:8000"}).status_code == 200


@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_a_probe_only_reads(client: Client, method: str) -> None:
    assert getattr(client, method)("/healthz").status_code == 404


@pytest.mark.django_db
def test_readyz_says_ready_when_all_migrations_are_applied(client: Client) -> None:
    response = client.get("/readyz")

    assert (response.status_code, response.json()) == (200, {"status": "ready"})


@pytest.mark.django_db(transaction=True)
def test_readyz_counts_the_migrations_that_wait(client: Client) -> None:
    recorder = MigrationRecorder(connections[OWNER])
    recorder.record_unapplied("tenants", "0001_first")
    try:
        response = client.get("/readyz")
    finally:
        recorder.record_applied("tenants", "0001_first")

    assert (response.status_code, response["Content-Type"]) == (503, "application/problem+json")
    assert response["Retry-After"] == "1"
    assert response.json() == {
        "type": "about:blank",
        "title": "Not ready",
        "status": 503,
        "code": "migrations_pending",
        "detail": "Migrations that are not applied: 1. Run `manage.py migrate`.",
    }


def test_readyz_says_so_when_the_database_does_not_answer(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, django_db_blocker: DjangoDbBlocker
) -> None:
    nowhere = {"ENGINE": "django.db.backends.postgresql", "NAME": "memsvc", "HOST": str(tmp_path)}
    monkeypatch.setattr(health, "connection", ConnectionHandler({"default": nowhere})["default"])

    with django_db_blocker.unblock():
        response = client.get("/readyz")

    assert (response.status_code, response.json()["code"]) == (503, "database_unavailable")
    assert str(tmp_path) not in response.text


@pytest.mark.django_db(transaction=True)
def test_the_real_server_is_healthy_and_ready(live_url: str) -> None:
    assert httpx.get(f"{live_url}/healthz").json() == {"status": "ok"}
    assert httpx.get(f"{live_url}/readyz").json() == {"status": "ready"}
