"""The description of the API against what the API is: made from `docs/openapi.yaml`, so that nothing is forgotten."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis
import yaml
from django.core.management import call_command
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator
from rest_framework.test import APIClient
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from memsvc.api.memory_stores.ids import memory_id, store_id, version_id
from memsvc.database.ids import uuid7
from memsvc.database.tenancy import tenant_transaction
from memsvc.tree.access import Access
from memsvc.tree.models import File
from memsvc.tree.services import write_file
from memsvc.tree.trees import create_tree
from tenants.actors import SYSTEM
from tenants.models import Tenant
from tenants.scopes import Scope
from tests.api.conftest import client_with
from tests.api.support import add_entry, put, send, streamed
from tests.people import READ, make_key, make_tenant

FILE = Path(__file__).parents[2] / "docs" / "openapi.yaml"
DESCRIPTION: dict[str, Any] = yaml.safe_load(FILE.read_text())
SCHEMA = schemathesis.openapi.from_dict(DESCRIPTION)
OPERATIONS = [(path, method) for path, methods in DESCRIPTION["paths"].items() for method in methods]
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
REQUESTS_PER_OPERATION = 6

every_operation = pytest.mark.parametrize(("path", "method"), OPERATIONS)


def test_the_file_is_current(tmp_path: Path) -> None:
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "now.yaml"))

    assert (tmp_path / "now.yaml").read_text() == FILE.read_text(), (
        "run: .venv/bin/python manage.py spectacular --file docs/openapi.yaml"
    )


@every_operation
def test_every_operation_is_described(path: str, method: str) -> None:
    operation = DESCRIPTION["paths"][path][method]

    assert operation["summary"]
    assert operation["security"][0] == {"apiKey": []}
    assert all(parameter["schema"] for parameter in operation.get("parameters", []))
    assert {"401", "403", "default"} <= operation["responses"].keys()
    assert [example for content in contents(operation) for example in content.get("examples", {}).values()]


@every_operation
def test_every_example_is_valid(path: str, method: str) -> None:
    for content in contents(DESCRIPTION["paths"][path][method]):
        validator = Draft202012Validator({**content["schema"], "components": DESCRIPTION["components"]})
        for example in content.get("examples", {}).values():
            validator.validate(example["value"])


def contents(operation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for part in [operation.get("requestBody", {}), *operation["responses"].values()]:
        yield from part.get("content", {}).values()


def test_the_description_is_served_to_anyone(live_url: str) -> None:
    served = APIClient().get("/v1/openapi.json")

    assert served.headers["Content-Type"] == "application/json"
    assert served.json() == DESCRIPTION


def test_the_docs_page_needs_no_outside_host() -> None:
    answer = APIClient().get("/v1/docs")

    page = answer.content.decode()
    assert answer.status_code == 200
    assert "swagger-ui-bundle.js" in page
    assert "//" not in page.replace("<!DOCTYPE html>", "")
    assert "<style" not in page
    assert "<script>" not in page
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]


# Everything that the description allows


@pytest.fixture
def known(transactional_db: None) -> dict[str, Any]:
    """A tree with something in it, keys of all rights and of a reader, and the names that lead to what is there."""
    tenant = make_tenant("described")
    (_, reader), (_, owner) = make_key(tenant, READ), make_key(tenant, *Scope)
    client = client_with(owner)
    put(client, "notes.md", "one\ntwo\n")
    entry = add_entry(client)
    with tenant_transaction(tenant.pk):
        notes = File.objects.get(tenant=tenant, path="/notes.md")
    return {
        "keys": [owner, reader],
        "store_id": store_id(notes.tree_id),
        "memory_id": memory_id(notes.pk),
        "version_id": version_id(notes.pk, 1),
        "tree": "default",
        "path": "notes.md",
        "entry_id": entry["id"],
        "number": 1,
        "key_id": str(make_key(tenant)[0].pk),
    }


@every_operation
def test_whatever_is_sent_the_answer_is_as_described(
    live_url: str, known: dict[str, Any], path: str, method: str
) -> None:
    operation = SCHEMA[path][method.upper()]

    @settings(
        max_examples=REQUESTS_PER_OPERATION,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), key=st.sampled_from(known["keys"]), strays=st.integers(0, 3))
    def ask(case: Any, key: str, strays: int) -> None:
        # Random names lead nowhere: three in four requests are about what is there.
        if strays:
            case.path_parameters = {name: known[name] for name in case.path_parameters or {}}
        case.call_and_validate(
            base_url=live_url, headers={"Authorization": f"Bearer {key}"}, checks=CHECKS, timeout=30
        )

    ask()


@schemathesis.serializer("application/zip")
def sent_as_they_are(context: Any, value: Any) -> Any:
    return value


# Whose trees they are


@every_operation
def test_a_stranger_learns_nothing(alice: Tenant, bob: Tenant, path: str, method: str) -> None:
    """Neither another tenant's key nor one for another tree can tell a tree that is there from one that never was."""
    secret, canary = create_tree(alice, "secret"), "canary-7c1f"
    write_file(Access(tree=secret, actor=SYSTEM), "/secret.md", canary)
    with tenant_transaction(alice.pk):
        file = File.objects.get(tenant=alice, path="/secret.md")
    own = client_with(make_key(alice, *Scope)[1])
    entry = add_entry(own, canary)
    key_id = str(make_key(alice, name="secret")[0].pk)
    names = {
        "path": "secret.md",
        "entry_id": entry["id"],
        "number": 1,
        "key_id": key_id,
        "memory_id": memory_id(file.pk),
        "version_id": version_id(file.pk, 1),
    }
    store, no_store = store_id(secret.pk), store_id(uuid7())
    for key in (make_key(bob, *Scope)[1], make_key(alice, *Scope, tree="another")[1]):
        client = client_with(key)
        there, nowhere = (
            answer_to(client, path, method, {**names, "tree": tree, "store_id": known})
            for tree, known in (("secret", store), ("absent", no_store))
        )

        assert canary not in body_of(there)
        if "{tree}" in path or "{store_id}" in path:
            assert there.status_code in (403, 404)
            assert without_names(there) == without_names(nowhere)
        else:
            assert "secret" not in body_of(there)


def without_names(answer: Any) -> dict[str, Any]:
    """A problem without what the request itself brought in: the tree's name and the request's id."""
    text = body_of(answer).replace("secret", "absent")
    return {**json.loads(text), "request_id": ""}


def body_of(answer: Any) -> str:
    return (streamed(answer) if answer.streaming else answer.content).decode()


def answer_to(client: APIClient, path: str, method: str, names: dict[str, Any]) -> Any:
    """The answer to an operation's own example."""
    operation = DESCRIPTION["paths"][path][method]
    bodies = operation.get("requestBody", {}).get("content", {})
    media_type = next(iter(bodies), "application/json")
    example = bodies.get(media_type, {}).get("examples", {}).get("Request", {}).get("value", {})
    body = json.dumps(example).encode() if media_type == "application/json" else b"PK"
    needed = {
        parameter["name"]: "/secret.md"
        for parameter in operation.get("parameters", [])
        if parameter["in"] == "query" and parameter.get("required")
    }
    url = path.format(**names) + "?" + urlencode(needed)
    return send(client, method.upper(), url, body, content_type=media_type)
