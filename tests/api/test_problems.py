"""The one shape of an error, whatever went wrong and wherever."""

import json
from io import BytesIO
from typing import Any

import psycopg.errors
import pytest
from django.conf import LazySettings
from django.db import DataError, InternalError, OperationalError
from django.http import UnreadablePostError
from rest_framework.test import APIClient

from memsvc.api import problems
from memsvc.api.parsers import MAX_DEPTH, copy_body
from memsvc.api.views import TenantView
from memsvc.format import CodedError, refusals
from memsvc.transfer.refusals import ImportRefused
from memsvc.tree import errors
from tenants.authentication import REFUSAL
from tenants.scopes import Scope
from tests.api.support import ENTRIES, FILES, SEARCH, paths, post, problem, send

FILE = f"{FILES}/a.md"


def every_subclass[E: CodedError](kind: type[E]) -> set[type[E]]:
    found = {kind}
    for below in kind.__subclasses__():
        found |= every_subclass(below)
    return found


def test_every_error_of_the_tree_has_a_status() -> None:
    """Kinds of errors have no code, as they are not raised themselves; a batch answers with what went wrong in it."""
    kinds = {errors.TreeError, errors.AtPath, errors.NotFound, errors.Conflict, errors.EditRefused}

    for kind in every_subclass(errors.TreeError) - kinds - {errors.BatchFailed}:
        assert 400 <= kind.code.status < 600, kind


def test_every_error_of_the_format_has_a_code() -> None:
    for kind in every_subclass(refusals.FormatError) - {ImportRefused}:
        answer = problems.handle(kind("text"))
        assert answer is not None
        assert answer.status_code == 400


# Who asks


def test_no_key_is_told_to_bring_one(db: None) -> None:
    answer = APIClient().get("/v1/me")

    assert problem(answer) == (401, "unauthenticated")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.json()["detail"] == REFUSAL


def test_a_missing_scope_is_named(reader: APIClient) -> None:
    answer = reader.delete(FILE)

    assert problem(answer) == (403, "missing_scope")
    assert "'write'" in answer.json()["detail"]


def test_a_view_that_forgets_a_scope_does_not_start() -> None:
    with pytest.raises(TypeError, match="declares scopes"):

        class Forgetful(TenantView):
            scopes = {"GET": Scope.READ}

            def get(self) -> None: ...

            def post(self) -> None: ...


# Where to


def test_an_unknown_url_is_a_problem(db: None) -> None:
    for url in ("/", "/v1", "/v1/", "/v1/nothing", "/v1/me/", "/../../etc/passwd", "//evil.example/x"):
        assert problem(APIClient().get(url)) == (404, "not_found")


def test_people_get_a_page(db: None) -> None:
    assert APIClient().get("/admin/nothing/").headers["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"])
def test_a_method_that_is_not_there_is_a_problem(api: APIClient, method: str) -> None:
    assert problem(send(api, method, "/v1/me", b"")) == (405, "method_not_allowed")


def test_a_host_that_is_not_ours_is_a_problem(api: APIClient) -> None:
    assert problem(api.get("/v1/me", headers={"Host": "evil.example"})) == (400, "invalid_request")


# Bodies


@pytest.mark.parametrize(
    "body",
    [
        b'{"pattern":',
        b"",
        b"[1,2]",
        b'"text"',
        b"7",
        b"null",
        b'{"pattern": NaN}',
        b'{"pattern": Infinity}',
        b'{"pattern": "a", "pattern": "b"}',
        b'{"pattern": "a\xff"}',
        b"\xff\xfe{\x00}\x00",
        b'{"pattern": ' + b"9" * 5000 + b"}",
        b'{"pattern": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"pattern": ' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}",
    ],
)
def test_json_that_is_none_is_refused(api: APIClient, body: bytes) -> None:
    status, code = problem(send(api, "POST", f"{FILES}:grep", body, content_type="application/json"))

    assert (status, code) in {(400, "invalid_json"), (400, "invalid_request")}


def test_json_in_another_wrapping_is_refused(api: APIClient) -> None:
    for content_type in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ):
        answer = send(api, "POST", f"{FILES}:grep", b'{"pattern": "a"}', content_type=content_type)
        assert problem(answer) == (415, "unsupported_media_type")


@pytest.mark.parametrize("content_type", ["application/json", "application/octet-stream"])
def test_a_body_over_the_limit_is_refused(api: APIClient, settings: LazySettings, content_type: str) -> None:
    settings.MAX_BODY_BYTES = 1000

    answer = api.put(FILE, b'{"content": "' + b"x" * 1000 + b'"}', content_type=content_type)

    assert problem(answer) == (413, "body_too_large")
    assert paths(api) == []


def test_a_compressed_body_is_refused(api: APIClient) -> None:
    for url, method in ((FILE, "PUT"), (f"{FILES}:grep", "POST"), ("/v1/trees/default/imports", "POST")):
        content_type = "application/zip" if url.endswith("imports") else "application/json"
        answer = send(
            api, method, url, b"xxx", content_type=content_type, headers={"Content-Encoding": "gzip"}
        )
        assert problem(answer) == (415, "unsupported_media_type")


def test_a_body_of_unknown_length_is_refused(api: APIClient) -> None:
    for method, url in (("PUT", FILE), ("POST", f"{FILES}:grep"), ("POST", "/v1/trees/default/imports")):
        answer = send(api, method, url, b"", headers={"Transfer-Encoding": "chunked"})
        assert problem(answer) == (411, "length_required")
    assert paths(api) == []


def test_a_body_that_was_cut_off_is_refused() -> None:
    with pytest.raises(problems.InvalidRequest):
        copy_body(BytesIO(b"half"), BytesIO(), {"CONTENT_LENGTH": "8"})


def test_a_body_that_does_not_arrive_is_not_waited_for() -> None:
    answer = problems.handle(UnreadablePostError("timed out"))

    assert answer is not None
    assert (answer.status_code, json.loads(answer.content)["code"]) == (408, "request_timeout")


@pytest.mark.parametrize("escape", ["\\ud800", "\\udfff\\ud800"])
@pytest.mark.parametrize(
    ("method", "url", "field"),
    [
        ("PUT", FILE, "content"),
        ("PATCH", FILE, "append"),
        ("POST", ENTRIES, "body"),
        ("POST", ENTRIES, "summary"),
        ("POST", SEARCH, "query"),
        ("POST", f"{FILES}:grep", "pattern"),
        ("POST", f"{FILES}:glob", "pattern"),
        ("POST", f"{FILES}:move", "source"),
        ("POST", f"{FILES}:grep", "path"),
        ("POST", f"{FILES}:grep", "\\ud800"),
        ("POST", "/v1/trees", "name"),
    ],
)
def test_half_a_character_is_refused_everywhere(
    api: APIClient, method: str, url: str, field: str, escape: str
) -> None:
    rest = '"category": "facts", "body": "x", ' if url == ENTRIES and field == "summary" else ""
    rest = '"category": "facts", ' if url == ENTRIES and field == "body" else rest
    rest = '"destination": "/b.md", ' if url.endswith(":move") else rest
    body = f'{{{rest}"{field}": "a{escape}"}}'.encode()

    status, code = problem(send(api, method, url, body, content_type="application/json"))

    assert (status, code.partition("_")[0]) == (400, "invalid")
    assert paths(api) == []


# Fields and parameters


def test_an_unknown_field_is_named(api: APIClient) -> None:
    answer = post(api, f"{FILES}:grep", pattern="a", globb="*")

    assert problem(answer) == (400, "invalid_request")
    assert answer.json()["errors"] == [
        {
            "field": "globb",
            "message": "There is no such field; known are: revision, at, pattern, path, glob, max_count.",
            "code": "unknown_field",
        }
    ]


@pytest.mark.parametrize(
    ("url", "params"),
    [
        ("/v1/me", {"tenant": "other"}),
        (FILES, {"limit": 0}),
        (FILES, {"limit": -1}),
        (FILES, {"limit": "many"}),
        (FILES, {"limit": "1_0"}),
        (FILES, {"limit": "9" * 5000}),
        (FILES, {"limit": ["1", "2"]}),
        (FILES, {"depth": 2}),
        (FILES, {"ordering": "tenant__keys__digest"}),
        (FILES, {"revision": -1}),
        (FILES, {"revision": 2**63}),
        (FILES, {"format": "xml"}),
        (FILE, {"offset": 2**63}),
        (FILE, {"offset": "1.5"}),
        (ENTRIES, {"tenant__keys__digest__startswith": "a"}),
        (ENTRIES, {"status": "every"}),
        (ENTRIES, {"since": "0000-00-00"}),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(api: APIClient, url: str, params: dict[str, Any]) -> None:
    answer = api.get(url, params)

    assert problem(answer) == (400, "invalid_request")
    assert answer.json()["errors"][0]["field"] in params


@pytest.mark.parametrize(
    "cursor", ["eyJ0ZW5hbnQiOjF9", "x", "WyJcdWQ4MDAiXQ", "WyJcdTAwMDAiXQ", "é", "W1tbW1s", "MQ"]
)
@pytest.mark.parametrize("url", [FILES, ENTRIES])
def test_a_forged_cursor_is_refused(api: APIClient, url: str, cursor: str) -> None:
    assert problem(api.get(url, {"cursor": cursor}))[0] == 400


def test_a_limit_over_the_highest_is_the_highest(api: APIClient) -> None:
    assert api.get(FILES, {"limit": 10**12}).status_code == 200


# The database


def database_error(kind: type[Exception], cause: type[psycopg.Error] | None) -> Exception:
    error = kind("could not … SELECT secret FROM …")
    error.__cause__ = cause() if cause else None
    return error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (database_error(OperationalError, None), 503),
        (database_error(OperationalError, psycopg.errors.LockNotAvailable), 503),
        (database_error(OperationalError, psycopg.errors.AdminShutdown), 503),
        (database_error(OperationalError, psycopg.errors.QueryCanceled), 503),
        (database_error(OperationalError, psycopg.errors.TooManyConnections), 503),
        (database_error(InternalError, psycopg.errors.IdleInTransactionSessionTimeout), 503),
        (database_error(OperationalError, psycopg.errors.SerializationFailure), 503),
        (database_error(OperationalError, psycopg.errors.ProgramLimitExceeded), 400),
        (database_error(DataError, psycopg.errors.NumericValueOutOfRange), 400),
        (database_error(DataError, None), 400),
    ],
)
def test_an_error_of_the_database_is_told_by_its_state(error: Exception, status: int) -> None:
    answer = problems.handle(error)

    assert answer is not None
    assert answer.status_code == status
    assert answer.headers.get("Retry-After") == ("1" if status == 503 else None)
    assert b"SELECT" not in answer.content


def test_a_fault_of_ours_tells_nothing(api: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("memsvc.api.files.reads.list_files", broken)

    answer = api.get(FILES)

    assert problem(answer) == (500, "internal_error")
    assert "secret" not in json.dumps(answer.json())
    assert answer.json()["request_id"] == answer.headers["X-Request-ID"]
