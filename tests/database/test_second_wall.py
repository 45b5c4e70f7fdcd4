"""Everything once more with the tenant filter taken out of every statement: policies alone keep tenants apart.

Both tenants have trees, files and entries of the same names, so that a statement that asks for a name, and for no
tenant, would find the other's.
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from memsvc import jobs
from memsvc.contract.erasures import ErasureKind, ErasureRequest
from memsvc.curation import permissions
from memsvc.database import rights
from memsvc.recall import vectors
from memsvc.recall.accesses import ACCESS_COUNTS
from memsvc.recall.context import context
from memsvc.recall.search import Mode, Query, search
from memsvc.transfer.exports import export_zip
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.cloning import clone_tree
from memsvc.tree.erasure import delete_tenant, erase, list_erasures
from memsvc.tree.trees import list_trees, measure_all, tree_of
from tenants import idempotency, keys
from tenants.models import Role, StoredAnswer, Tenant
from tenants.scopes import Scope
from tenants.services import keep_history, suspend_tenant
from tests.api.conftest import client_with
from tests.api.support import refusal, streamed
from tests.api.test_matrix import EVERY_METHOD, ROUTES, call, names_of
from tests.curation.conftest import House, login, make_house
from tests.curation.test_admin import PAGES, detail, listing, text
from tests.people import make_key, make_tenant
from tests.tree.support import FACTS, access_to, add, contents, entry_text, from_outside

pytestmark = pytest.mark.django_db(transaction=True)

CANARY = "wonderland"


def filled(name: str, body: str) -> Access:
    """A tree named like the other tenant's, with a file and an entry of the same names."""
    tenant = make_tenant(name)
    access = access_to(tenant)
    make_key(tenant)
    services.scaffold(access)
    services.write_file(access, "/secret.md", f"{body}\n", message=body)
    services.write_file(access, FACTS, entry_text("mem_same", f"The word is {body}."))
    return access


@pytest.fixture
def alice() -> Access:
    # Made first, so that it is hers that a statement without a tenant finds.
    return filled("alice", CANARY)


@pytest.fixture
def bob(alice: Access) -> Access:
    return filled("bob", "builder")


@pytest.fixture
def untouched(alice: Access, bob: Access) -> Iterator[None]:
    """Alice's rows, which are the same when the test has ended."""
    before = rows_of(alice.tree.tenant)
    yield
    assert rows_of(alice.tree.tenant) == before


def rows_of(tenant: Tenant) -> dict[str, list[Any]]:
    """All rows of a tenant, in every table."""
    found = {}
    with from_outside(), connection.cursor() as cursor:
        for table, column in rights.tenant_tables().items():
            cursor.execute(f"SELECT t::text FROM {table} t WHERE {column} = %s ORDER BY 1", [tenant.pk])
            found[table] = cursor.fetchall()
    return found


ACTS: dict[str, Callable[[Access], object]] = {
    "contents": contents,
    "list_entries": lambda bob: reads.list_entries(bob),
    "get_entry": lambda bob: reads.get_entry(bob, "mem_same"),
    "search by words": lambda bob: search(bob, Query(text="word", mode=Mode.LEXICAL)),
    "search for a piece": lambda bob: search(bob, Query(text="wor", mode=Mode.SUBSTRING)),
    "search for all words": lambda bob: search(bob, Query(text="word", mode=Mode.WORDS)),
    "search misspelt": lambda bob: search(bob, Query(text="wonderlnad", mode=Mode.LEXICAL)),
    "context": lambda bob: context(bob, "word"),
    "grep": lambda bob: reads.grep(bob, "word"),
    "glob": lambda bob: reads.glob(bob, "**"),
    "read_index": lambda bob: reads.read_index(bob),
    "list_revisions": lambda bob: reads.list_revisions(bob),
    "diff": lambda bob: reads.diff(bob, 1),
    "blame": lambda bob: reads.blame(bob, FACTS),
    "entry_history": lambda bob: reads.entry_history(bob, "mem_same"),
    "export": lambda bob: b"".join(export_zip(bob)),
    "list_trees": lambda bob: [(tree.pk, tree.name) for tree in list_trees(bob.tree.tenant)],
    "measure_all": lambda bob: measure_all(bob.tree.tenant),
    "keys": lambda bob: keys.keys_seen_by(make_key(bob.tree.tenant, *Scope)[0], limit=10),
    "write": lambda bob: services.write_file(bob, "/secret.md", "overwritten\n"),
    "edit": lambda bob: services.edit_file(bob, "/secret.md", "builder", "gone"),
    "append": lambda bob: services.append_file(bob, "/secret.md", "more\n"),
    "move": lambda bob: services.move(bob, "/secret.md", "/moved.md"),
    "delete": lambda bob: services.delete(bob, "/secret.md"),
    "delete all": lambda bob: services.delete(bob, "/memory"),
    "supersede": lambda bob: add(bob, "Another.", supersedes="mem_same"),
    "retire": lambda bob: services.retire_entry(bob, "mem_same"),
    "restore": lambda bob: services.restore(bob, 1),
    "undo": lambda bob: services.undo(bob, revision=2),
    "clone": lambda bob: contents(Access(clone_tree(bob, "copy"), bob.actor)),
    "history": lambda bob: keep_history(tenant=bob.tree.tenant, days=1),
    "suspend": lambda bob: suspend_tenant(tenant=bob.tree.tenant),
    "erase an entry": lambda bob: erased(bob, ErasureKind.ENTRY, "mem_same"),
    "erase a file": lambda bob: erased(bob, ErasureKind.PATH, "/secret.md"),
    "erase what an actor wrote": lambda bob: erased(bob, ErasureKind.ACTOR, bob.actor.id),
    "erase a tree": lambda bob: erased(bob, ErasureKind.TREE, "default"),
    "delete a tenant": lambda bob: delete_tenant(bob.tree.tenant, bob.actor),
}


def erased(bob: Access, kind: ErasureKind, value: str) -> object:
    # Whose actor it is says the tenant alone.
    request = ErasureRequest(tree="default", kind=kind, value=value, erase_paths=True)
    return erase(bob, request), list_erasures(bob.tree.tenant)


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.usefixtures("untouched")
def test_services_and_reads_stay_inside(bob: Access, without_tenant_filter: None, act: str) -> None:
    # The tree as a request comes by it: by its name.
    named = Access(tree_of(bob.tree.tenant), bob.actor)

    assert CANARY not in repr(ACTS[act](named))
    assert named.tree.pk == bob.tree.pk


def test_without_policies_the_same_would_find_the_other(
    alice: Access, bob: Access, without_tenant_filter: Callable[..., Any]
) -> None:
    """That the filter is really out."""
    with from_outside(), connection.execute_wrapper(without_tenant_filter):
        assert {tree.pk for tree in list_trees(bob.tree.tenant)} == {alice.tree.pk, bob.tree.pk}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.usefixtures("untouched")
def test_every_endpoint_stays_inside(
    alice: Access, bob: Access, without_tenant_filter: None, route: str
) -> None:
    # Names of trees, files and entries are those of both; ids are Alice's.
    names = names_of(alice.tree.tenant, "mem_same", number=2)
    for method in EVERY_METHOD:
        client = client_with(make_key(bob.tree.tenant, *Scope)[1])
        answer = call(client, route, method, names)
        content = streamed(answer) if answer.streaming else answer.content
        assert answer.status_code < 500, (method, content)
        assert CANARY.encode() not in content, method
        if answer.status_code >= 400:
            refusal(answer)


@pytest.mark.usefixtures("untouched")
def test_jobs_and_commands_stay_inside(
    alice: Access, bob: Access, without_tenant_filter: None, tmp_path: Path
) -> None:
    tenant = bob.tree.tenant
    vectors.embed_tree(bob.tree)
    vectors.forget_expired()
    search(bob, Query(text="word", mode=Mode.LEXICAL))
    ACCESS_COUNTS.flush()
    keep_history(tenant=tenant, days=1)
    key, _ = make_key(tenant, name="to be revoked")
    for command in (
        ("memory_export", tenant.slug, str(tmp_path / "out.zip")),
        ("memory_import", tenant.slug, str(tmp_path / "out.zip"), "--on-conflict", "take"),
        ("memory_check", tenant.slug),
        ("history_prune", tenant.slug),
        ("key_create", tenant.slug, "--name", "x", "--scope", "read"),
        ("key_revoke", key.prefix),
        ("tenant_history", tenant.slug, "--all"),
        ("erase", tenant.slug, "entry", "mem_same", "--dry-run"),
        ("erase", tenant.slug, "path", "/secret.md", "--erase-paths"),
        ("audit_verify", tenant.slug),
    ):
        told = StringIO()
        # What memory_check finds in the filled tree is no fault of the wall.
        with suppress(CommandError) if command[0] == "memory_check" else nullcontext():
            call_command(*command, stdout=told, stderr=told)
        assert CANARY not in told.getvalue()
    assert CANARY.encode() not in (tmp_path / "out.zip").read_bytes()
    vectors.embed_tree(bob.tree)
    # Ids go across, to a job that works inside: Alice's tree lacks vectors.
    assert [tree.pk for tree in vectors.stale_trees(10)] == [alice.tree.pk]
    assert jobs.defer_stale_trees() == 1


def test_old_answers_go_of_the_tenant_that_is_entered(
    alice: Access, bob: Access, without_tenant_filter: None
) -> None:
    for access in (alice, bob):
        with from_outside():
            StoredAnswer(tenant=access.tree.tenant, key="k", fingerprint="f").save(force_insert=True)
    long_ago = timezone.now() - idempotency.KEPT_FOR - timedelta(days=1)
    with from_outside():
        StoredAnswer.objects.filter(tenant=bob.tree.tenant).update(created_at=long_ago)

    assert idempotency.purge() == 1

    with from_outside():
        assert [answer.tenant_id for answer in StoredAnswer.objects.all()] == [alice.tree.tenant_id]


@pytest.fixture
def houses() -> tuple[House, House]:
    return make_house("alice", CANARY), make_house("bob", "builder")


@pytest.fixture
def moderator(houses: tuple[House, House], monkeypatch: pytest.MonkeyPatch) -> Client:
    """Of Bob's tenant, in an admin that forgets to ask whose rows it shows."""
    client = login("moderator", (houses[1].tenant, Role.OWNER))
    monkeypatch.setattr(permissions, "_all_or", lambda user, membership: Tenant.objects.all())
    return client


@pytest.mark.parametrize("page", PAGES)
def test_every_page_of_the_admin_stays_inside(
    moderator: Client, houses: tuple[House, House], without_tenant_filter: None, page: str
) -> None:
    alice, bob = houses
    before = rows_of(alice.tenant)

    shown = moderator.get(listing(page))
    assert shown.status_code == 200
    assert detail(page, bob.objects[page]) in text(shown)
    for forbidden in (CANARY, alice.tenant.slug, str(alice.tenant.pk)):
        assert forbidden not in text(shown)
    for view in ("change", "history", "delete"):
        assert moderator.get(detail(page, alice.objects[page], view)).status_code in (403, 404)
    for action in ("suspend", "resume", "keep_history", "remove", "revoke", "delete_selected"):
        chosen = alice.objects[page].pk
        answer = moderator.post(
            listing(page), {"action": action, "_selected_action": [chosen], "post": "yes"}
        )
        assert CANARY not in text(answer)
    assert rows_of(alice.tenant) == before
