"""Writes with an Idempotency-Key: done once, whatever happens to requests, answers and workers."""

import io
import os
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone
from rest_framework.test import APIClient

from memsvc.database.ids import uuid7
from memsvc.database.tenancy import tenant_transaction
from memsvc.transfer.formats import import_file
from tenants import idempotency
from tenants.models import StoredAnswer, Tenant
from tenants.secrets import keyed_digest
from tests.api.conftest import client_with
from tests.api.support import ENTRIES, FILES, problem, put, send
from tests.people import make_key, make_tenant

KEY = {"Idempotency-Key": "run-7/step-3"}
FACT = {"category": "facts", "body": "Berlin is the seat."}
INTERCHANGE = b"""\
{"format": "memsvc-export", "version": 1}
{"type": "memory", "external_id": "a", "kind": "semantic", "content": "x", "created_at": "2026-01-02T03:04:05Z"}
"""


def add(client: APIClient, headers: dict[str, str] = KEY, **fields: Any) -> Any:
    return client.post(ENTRIES, {**FACT, **fields}, format="json", headers=headers)


def revision(client: APIClient) -> int:
    return int(client.get("/v1/trees/default").json()["revision"])


def test_a_repeat_gets_the_first_answer_and_changes_nothing(api: APIClient) -> None:
    first, again = add(api), add(api)

    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.headers["Content-Type"] == first.headers["Content-Type"]
    assert revision(api) == 1


def test_without_a_key_each_request_counts(api: APIClient) -> None:
    add(api, {})
    add(api, {})

    assert revision(api) == 2
    assert not StoredAnswer.objects.exists()


def zipped() -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("memory/a.md", "text")
    return archive.getvalue()


def test_every_kind_of_write_is_done_once(api: APIClient) -> None:
    entry = add(api, {}).json()["id"]
    put(api, "b.md", "one")
    archive = zipped()
    writes: dict[str, Callable[[dict[str, str]], Any]] = {
        "put": lambda h: put(api, "a.md", "one", **h),
        "edit": lambda h: api.patch(
            f"{FILES}/a.md", {"old_string": "one", "new_string": "two"}, format="json", headers=h
        ),
        "append": lambda h: api.patch(f"{FILES}/a.md", {"append": "three"}, format="json", headers=h),
        "move": lambda h: api.post(
            f"{FILES}:move", {"source": "/b.md", "destination": "/c.md"}, format="json", headers=h
        ),
        "delete": lambda h: api.delete(f"{FILES}/a.md", headers=h),
        "retire": lambda h: api.delete(f"{ENTRIES}/{entry}", headers=h),
        "import": lambda h: send(
            api,
            "POST",
            "/v1/trees/default/imports",
            archive,
            content_type="application/zip",
            headers=h,
        ),
        "rehearse an import": lambda h: send(
            api,
            "POST",
            "/v1/trees/default/imports?dry_run=true",
            INTERCHANGE,
            content_type="application/jsonl",
            headers=h,
        ),
        "rehearse an undo": lambda h: api.post(
            "/v1/trees/default:undo", {"revision": 1, "dry_run": True}, format="json", headers=h
        ),
        "scaffold": lambda h: api.post("/v1/trees/default:scaffold", {}, format="json", headers=h),
        "make-a-tree": lambda h: api.post("/v1/trees", {"name": "other"}, format="json", headers=h),
    }

    for name, write in writes.items():
        before = revision(api)
        first = write({"Idempotency-Key": name.replace(" ", "-")})
        after = revision(api)
        again = write({"Idempotency-Key": name.replace(" ", "-")})

        assert first.status_code in (200, 201), (name, first.content)
        assert (again.status_code, again.content) == (first.status_code, first.content), name
        assert again.headers["Idempotent-Replayed"] == "true", name
        assert again.headers.get("ETag") == first.headers.get("ETag"), name
        assert revision(api) == after, name
        assert (after == before) == name.startswith(("rehearse", "make")), name


def test_a_precondition_that_held_the_first_time_is_not_asked_again(api: APIClient) -> None:
    create_only = {"If-None-Match": "*", **KEY}

    assert put(api, "a.md", "one", **create_only).status_code == 201
    assert put(api, "a.md", "one", **create_only).status_code == 201
    assert problem(put(api, "a.md", "one", **{"If-None-Match": "*"})) == (412, "precondition_failed")


@pytest.mark.parametrize(
    "other",
    [
        lambda api: add(api, body="Bonn is the seat."),
        lambda api: api.post("/v1/trees", {"name": "x"}, format="json", headers=KEY),
        lambda api: put(api, "a.md", **KEY),
        lambda api: api.delete(f"{FILES}/a.md", headers=KEY),
    ],
)
def test_a_key_is_for_one_request(api: APIClient, other: Any) -> None:
    add(api)

    assert problem(other(api)) == (422, "idempotency_key_reused")
    assert revision(api) == 1


def test_the_order_of_names_in_a_body_is_nothing(api: APIClient) -> None:
    add(api)
    turned = {name: FACT[name] for name in reversed(FACT)}

    assert api.post(ENTRIES, turned, format="json", headers=KEY).status_code == 201
    assert revision(api) == 1


def test_an_answer_is_for_the_key_that_it_was_given_to(api: APIClient, alice: Tenant) -> None:
    add(api)
    colleague = client_with(make_key(alice)[1])

    assert problem(add(colleague)) == (422, "idempotency_key_reused")


def test_tenants_know_nothing_of_each_others_keys(api: APIClient, stranger: APIClient) -> None:
    first, foreign = add(api), add(stranger)

    assert foreign.status_code == 201
    assert "Idempotent-Replayed" not in foreign.headers
    assert foreign.json()["id"] != first.json()["id"]


def test_after_a_refusal_the_key_is_free(api: APIClient) -> None:
    edit = {"old_string": "one", "new_string": "two"}
    refused = api.patch(f"{FILES}/a.md", edit, format="json", headers=KEY)
    put(api, "a.md", "one")
    done = api.patch(f"{FILES}/a.md", edit, format="json", headers=KEY)

    assert problem(refused) == (404, "file_not_found")
    assert done.status_code == 200
    assert "Idempotent-Replayed" not in done.headers


@pytest.mark.parametrize("key", ["", " ", "a b", "ä", "x" * 256, "a\tb"])
def test_a_key_is_visible_ascii(api: APIClient, key: str) -> None:
    assert problem(add(api, {"Idempotency-Key": key})) == (400, "invalid_request")
    assert revision(api) == 0


def test_a_key_may_have_255_characters(api: APIClient) -> None:
    assert add(api, {"Idempotency-Key": "x" * 255}).status_code == 201


def test_reads_take_no_key(api: APIClient) -> None:
    for _ in range(2):
        answer = api.post(f"{FILES}:grep", {"pattern": "x"}, format="json", headers=KEY)
        assert "Idempotent-Replayed" not in answer.headers
    assert not StoredAnswer.objects.exists()


def test_answers_are_kept_for_a_week(
    api: APIClient, stranger: APIClient, alice: Tenant, bob: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "_ONE_IN", 1)
    add(api)
    add(stranger)
    ours, theirs = alice.pk, bob.pk
    for tenant in (ours, theirs):
        with tenant_transaction(tenant):
            old = timezone.now() - idempotency.KEPT_FOR - timedelta(minutes=1)
            StoredAnswer.objects.update(created_at=old)

    add(api, {"Idempotency-Key": "another"})  # takes the old ones of its tenant away

    assert (kept_answers(ours), kept_answers(theirs)) == (kept("another"), kept(KEY["Idempotency-Key"]))
    call_command("purge_idempotency", stdout=io.StringIO())
    assert (kept_answers(ours), kept_answers(theirs)) == (kept("another"), [])


def kept(key: str) -> list[str]:
    """What is kept of a key: nothing that can be read."""
    return [keyed_digest(key)]


def kept_answers(tenant: UUID) -> list[str]:
    with tenant_transaction(tenant):
        return [answer.key for answer in StoredAnswer.objects.all()]


def test_an_import_may_think_for_long_within_its_transaction(
    api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def look(*args: object, **options: object) -> object:
        with connection.cursor() as cursor:
            cursor.execute("SHOW idle_in_transaction_session_timeout")
            seen.append(cursor.fetchone()[0])
        return import_file(*args, **options)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr("memsvc.api.transfer.import_file", look)
    url = "/v1/trees/default/imports"
    answer = send(api, "POST", url, zipped(), content_type="application/zip", headers=KEY)

    assert (answer.status_code, seen) == (200, ["10min"])


# Over real HTTP


@pytest.fixture
def agent_key(transactional_db: None) -> str:
    return make_key(make_tenant("alice"))[1]


def agent(url: str, key: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {key}", **KEY}
    return httpx.Client(base_url=f"{url}/v1/trees/default", headers=headers, timeout=30)


@pytest.mark.django_db(transaction=True)
def test_of_many_that_arrive_together_one_is_done(live_url: str, agent_key: str) -> None:
    with agent(live_url, agent_key) as http, ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: http.post("/entries", json=FACT), range(8)))

        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.content for answer in answers}) == 1
        assert sum("Idempotent-Replayed" not in answer.headers for answer in answers) == 1
        assert len(http.get("/entries").json()["items"]) == 1


@pytest.mark.django_db(transaction=True)
def test_a_first_request_that_does_not_end_is_told_of(live_url: str, database_url: str) -> None:
    tenant = make_tenant("alice")
    claim = "INSERT INTO tenants_storedanswer (id, tenant_id, key, fingerprint, status, headers, body)"
    with agent(live_url, make_key(tenant)[1]) as http:
        with psycopg.connect(database_url) as first:
            first.execute("SELECT set_config('memsvc.tenant_id', %s, true)", [str(tenant.pk)])
            row = [uuid7(), tenant.pk, keyed_digest(KEY["Idempotency-Key"])]
            first.execute(f"{claim} VALUES (%s, %s, %s, 'of the first', 0, '{{}}', '')", row)
            second = http.post("/entries", json=FACT)
            first.rollback()
        third = http.post("/entries", json=FACT)

    assert (second.status_code, second.json()["code"]) == (409, "idempotency_in_flight")
    assert second.headers["Retry-After"] == "1"
    assert third.status_code == 201


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_is_killed_after_the_commit_has_done_it_once(
    dying_server: tuple[str, Path], agent_key: str
) -> None:
    url, marker = dying_server
    with agent(url, agent_key) as http:
        with pytest.raises(httpx.TransportError):
            http.post("/entries", json=FACT, headers={"X-Die": "1"})
        assert not marker.exists()
        again = http.post("/entries", json=FACT)

        assert again.status_code == 201
        assert again.headers["Idempotent-Replayed"] == "true"
        (entry,) = http.get("/entries").json()["items"]
        assert entry["id"] == again.json()["id"]


def _await(condition: Any) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def dying_server(database_url: str, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A server with one worker that dies once; its URL and the file that is gone when it has."""
    marker = tmp_path / "die-once"
    marker.touch()
    environment = os.environ | {"DATABASE_URL": database_url, "DIE_ONCE": str(marker)}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", "--workers=1", "tests.api.dying:application"],
            cwd=Path(__file__).parents[2],
            env=environment | {"MEMSVC_BIND": f"fd://{listener.fileno()}"},
            pass_fds=[listener.fileno()],
            stdin=subprocess.DEVNULL,
        )
        try:
            _await(lambda: _is_ready(url))
            yield url, marker
        finally:
            server.terminate()
            server.wait(timeout=30)


def _is_ready(url: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"{url}/readyz").status_code == 200
    return False
