import psycopg
import pytest
from rest_framework.test import APIClient

from memsvc.database.tenancy import tenant_transaction
from tenants.models import StoredAnswer, Tenant
from tenants.scopes import Scope
from tests.api.conftest import client_with
from tests.api.support import ENTRIES, add_entry, post, problem, put, raw
from tests.people import make_key
from tests.tree.test_erasure import CANARY, traces

ERASURES = "/v1/erasures"


@pytest.fixture
def admin(alice: Tenant) -> APIClient:
    """Alice's key that may also erase, but not write."""
    return client_with(make_key(alice, Scope.READ, Scope.ADMIN)[1])


def test_an_entry_is_erased_and_a_certificate_is_left(api: APIClient, admin: APIClient) -> None:
    gone, kept = add_entry(api, f"She is {CANARY}.")["id"], add_entry(api, "Kept.")["id"]
    asked = {"tree": "default", "kind": "entry", "value": gone}

    would = post(admin, ERASURES, **asked, dry_run=True).json()
    assert (would["dry_run"], would["certificate"], would["revision"]) == (True, None, 2)
    assert api.get(f"{ENTRIES}/{gone}").status_code == 200
    done = post(admin, ERASURES, **asked).json()

    assert done["places"] == would["places"]
    assert {"place": "entry", "where": "/memory/semantic_memory/facts.md", "count": 1} in done["places"]
    assert done["revision"] == 3
    assert api.get(f"{ENTRIES}/{gone}").status_code == 404
    assert api.get(f"{ENTRIES}/{kept}").status_code == 200
    assert admin.get(ERASURES).json() == {"items": [done["certificate"]], "next": None}
    assert done["certificate"]["kind"] == "entry"
    assert done["certificate"]["actor"]["kind"] == "key"


@pytest.mark.django_db(transaction=True)
def test_stored_answers_and_their_keys_say_nothing_of_it(
    superuser: psycopg.Connection, api: APIClient, admin: APIClient, alice: Tenant
) -> None:
    add_entry(api, "Kept.")
    sent = {"Idempotency-Key": f"about-{CANARY}"}
    body = {"category": "facts", "body": f"She is {CANARY}.", "summary": CANARY}
    gone = api.post(ENTRIES, body, format="json", headers=sent).json()["id"]
    put(api, f"{CANARY}.md", CANARY, **{"Idempotency-Key": "second"})
    for kind, value in (("entry", gone), ("path", f"/{CANARY}.md")):
        asked = {"tree": "default", "kind": kind, "value": value, "erase_paths": True}
        key = {"Idempotency-Key": f"erase-{kind}"}
        first = admin.post(ERASURES, asked, format="json", headers=key).json()
        again = admin.post(ERASURES, asked, format="json", headers=key).json()

    assert again == {**first, "places": []}
    assert traces(superuser) == []
    assert traces(superuser, gone) == []
    assert problem(api.post(ENTRIES, body, format="json", headers=sent)) == (409, "answer_redacted")
    with tenant_transaction(alice.pk):
        assert StoredAnswer.objects.count() == 4


def test_it_takes_the_scope_admin_and_a_key_for_the_tree(
    api: APIClient, admin: APIClient, alice: Tenant
) -> None:
    put(api, "a.md", "text\n")
    post(api, "/v1/trees", name="other")
    asked = {"tree": "default", "kind": "path", "value": "/a.md"}
    of_other = client_with(make_key(alice, Scope.ADMIN, tree="other")[1])
    of_folder = client_with(make_key(alice, Scope.ADMIN, path_prefix="/a")[1])

    assert problem(post(api, ERASURES, **asked)) == (403, "missing_scope")
    assert problem(post(of_other, ERASURES, **asked)) == (404, "tree_not_found")
    assert problem(post(of_folder, ERASURES, **asked)) == (403, "forbidden")
    assert problem(of_other.get(ERASURES)) == (403, "forbidden")
    assert raw(api, "a.md") == b"text\n"
    assert post(of_other, ERASURES, tree="other", kind="tree", value="other").status_code == 200
    assert [each["name"] for each in api.get("/v1/trees").json()["items"]] == ["default"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"kind": "entry", "value": "missing"}, "entry_not_found"),
        ({"kind": "path", "value": "missing"}, "file_not_found"),
        ({"kind": "source", "value": "missing"}, "nothing_to_erase"),
        ({"kind": "path", "value": "/../a"}, "invalid_path"),
        ({"kind": "tenant", "value": "alice"}, "invalid_request"),
        ({"kind": "entry", "value": ""}, "invalid_text"),
        ({"kind": "entry", "value": "x", "tree": "missing"}, "tree_not_found"),
    ],
)
def test_what_can_not_be_erased_is_refused(admin: APIClient, body: dict[str, str], code: str) -> None:
    answer = post(admin, ERASURES, **{"tree": "default", **body})

    assert problem(answer)[1] == code
    assert admin.get(ERASURES).json()["items"] == []
