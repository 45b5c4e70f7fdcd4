import httpx
import pytest
from django.test import Client


def test_healthz_needs_no_database(client: Client) -> None:
    response = client.get("/healthz")

    assert (response.status_code, response.json()) == (200, {"status": "ok"})


@pytest.mark.django_db
def test_readyz_says_ready_when_all_migrations_are_applied(client: Client) -> None:
    response = client.get("/readyz")

    assert (response.status_code, response.json()) == (200, {"status": "ready"})


@pytest.mark.django_db(transaction=True)
def test_the_real_server_answers_probes(live_url: str) -> None:
    response = httpx.get(f"{live_url}/healthz")

    assert response.status_code == 200
    assert response.headers["Cache-Control"] == "no-store"
