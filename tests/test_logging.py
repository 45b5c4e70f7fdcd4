import json
import logging
import sys

import pytest
from django.db import IntegrityError
from django.test import Client

from memsvc.logging import JsonFormatter, PlainFormatter, request_id
from tenants.models import Tenant
from tests.people import make_key, make_tenant
from tests.tree.support import from_outside

KEY = "msk_a1B2c3D4_" + "x7Y8z9" * 7 + "w"


def record(message: str, *arguments: object, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("memsvc.test", logging.INFO, __file__, 1, message, arguments, None)
    vars(made).update(extra)
    return made


@pytest.mark.parametrize("formatter", [PlainFormatter(), JsonFormatter()])
def test_the_secret_part_of_a_key_is_never_logged(formatter: logging.Formatter) -> None:
    try:
        raise ValueError(f"bad key {KEY}")
    except ValueError:
        made = record("refused %s", KEY, header=f"Bearer {KEY}")
        made.exc_info = sys.exc_info()

    line = formatter.format(made)

    assert KEY not in line
    assert "msk_a1B2c3D4_…" in line


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("formatter", [PlainFormatter(), JsonFormatter()])
def test_the_values_of_a_failing_row_are_not_logged(formatter: logging.Formatter) -> None:
    made, slug = record("failed"), "private\n\nwords"
    try:
        with from_outside():
            Tenant(slug=slug, name="One").save()
    except IntegrityError:
        made.exc_info = sys.exc_info()

    line = formatter.format(made)

    assert "IntegrityError" in line
    assert "violates check constraint" in line
    assert "private" not in line
    assert "words" not in line


def test_a_json_line_holds_the_request_id_and_the_extra_fields() -> None:
    token = request_id.set("request-1")
    try:
        line = json.loads(JsonFormatter().format(record("hello %s", "Zoë", status=200)))
    finally:
        request_id.reset(token)

    assert line.pop("time")
    assert line == {
        "level": "INFO",
        "logger": "memsvc.test",
        "request_id": "request-1",
        "message": "hello Zoë",
        "status": 200,
    }


def test_every_answer_names_its_request(client: Client) -> None:
    first, second = (client.get("/nowhere")["X-Request-ID"] for _ in range(2))

    assert first != second


@pytest.mark.parametrize("given", [KEY, f"a-{KEY[:20]}", KEY.upper()])
def test_a_request_id_that_looks_like_a_key_is_neither_echoed_nor_logged(
    client: Client, caplog: pytest.LogCaptureFixture, given: str
) -> None:
    lines: list[str] = []
    caplog.handler.setFormatter(JsonFormatter())
    with caplog.at_level(logging.INFO, "memsvc.access"):
        answer = client.get("/nowhere", headers={"x-request-id": given})
        lines.append(caplog.text)

    assert given not in answer["X-Request-ID"]
    assert len(answer["X-Request-ID"]) == 16
    assert lines[0]
    assert given not in lines[0]


def test_a_plain_request_id_of_the_caller_is_kept(client: Client) -> None:
    assert client.get("/nowhere", headers={"x-request-id": "trace-0123"})["X-Request-ID"] == "trace-0123"


@pytest.mark.parametrize("given", ["short", "x" * 65, "with blank", "new\nline-here", "ümlaut-id"])
def test_any_other_request_id_is_replaced(client: Client, given: str) -> None:
    assert client.get("/nowhere", headers={"x-request-id": given})["X-Request-ID"] != given


def test_the_access_log_has_neither_query_string_nor_path(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "memsvc.access"):
        client.get("/private-name/?q=private-question")

    (line,) = [entry.getMessage() for entry in caplog.records if entry.name == "memsvc.access"]
    assert line.startswith("GET /- 404 ")
    assert "private" not in caplog.text


@pytest.mark.django_db
def test_the_access_log_tells_whose_request_it_was_and_from_where(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    key, text = make_key(make_tenant())
    caplog.handler.setFormatter(JsonFormatter())
    with caplog.at_level(logging.INFO, "memsvc.access"):
        client.get("/v1/me", headers={"authorization": f"Bearer {text}"}, REMOTE_ADDR="192.0.2.7")
        client.get("/v1/memory_stores", headers={"x-api-key": text}, REMOTE_ADDR="192.0.2.7")
        client.get("/v1/me", headers={"authorization": f"Bearer {text}x"}, REMOTE_ADDR="2001:db8::1")
        client.get("/v1/me", REMOTE_ADDR="")

    lines = [json.loads(line) for line in caplog.text.splitlines() if '"memsvc.access"' in line]
    known = (str(key.tenant_id), str(key.pk), "192.0.2.7")
    assert [(line["tenant_id"], line["key_id"], line["client"]) for line in lines] == [
        known,
        known,
        ("-", "-", "2001:db8::1"),
        ("-", "-", "-"),
    ]
    assert all(part in lines[0]["message"] for part in known)
    assert text.rpartition("_")[2] not in caplog.text
