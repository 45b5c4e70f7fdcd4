"""What was done stands in the audit, and nothing of that can be changed without being found."""

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import close_old_connections, connection
from django.test import override_settings
from rest_framework.test import APIClient

from memsvc.contract.audit import AuditEventRead, digest_of
from memsvc.contract.erasures import ErasureKind, ErasureRequest
from memsvc.contract.requests import AuditFilter
from memsvc.database.tenancy import tenant_transaction
from memsvc.transfer.exports import record_export
from memsvc.tree import services
from memsvc.tree.access import Access
from memsvc.tree.audit import audit_chains, audit_faults, audit_page
from memsvc.tree.erasure import erase
from memsvc.tree.errors import FileNotFound
from memsvc.tree.history.redaction import redact_version
from memsvc.tree.models import File
from memsvc.tree.retention import prune_to
from memsvc.tree.trees import archive_tree, create_tree, delete_tree, describe_tree
from tenants import audit, keys
from tenants.actors import Actor, ActorKind
from tenants.models import AuditEvent, Role, Tenant, User
from tenants.scopes import Scope
from tenants.services import (
    create_tenant,
    keep_history,
    remove_member,
    resume_tenant,
    revoke_key,
    set_member,
    suspend_tenant,
)
from tests.api.conftest import client_with
from tests.api.support import add_entry, put, streamed
from tests.people import make_expired_key, make_key, make_revoked_key, make_tenant
from tests.tree.processes import order_for, writers
from tests.tree.support import access_to, add, of_tenant

OPERATOR = Actor(ActorKind.OPERATOR, "root", "root", reason="asked for by phone")


def events(tenant: Tenant, **wanted: Any) -> list[AuditEventRead]:
    """Oldest first."""
    return [*audit_page(tenant, AuditFilter(**wanted), limit=1000).items][::-1]


def actions(tenant: Tenant, **wanted: Any) -> list[str]:
    return [each.action for each in events(tenant, **wanted)]


def found_in(tenant: Tenant) -> list[str]:
    return [*map(str, audit_faults(tenant, {}))]


@pytest.mark.django_db
class TestWhatIsTold:
    def test_every_revision_has_its_event(self) -> None:
        tenant = make_tenant()
        access = access_to(tenant)
        added = add(access)
        services.write_file(access, "/a.md", "a\n")

        told = events(tenant, tree="default")

        assert [each.action for each in told] == ["tree.create", "entry.add", "file.write"]
        assert [each.revision for each in told] == [None, 1, 2]
        assert {each.tree for each in told} == {"default"}
        assert (told[1].actor_kind, told[1].actor_id) == ("key", access.actor.id)
        assert added.entry.body not in repr(told)
        assert "/a.md" not in repr(told)
        assert found_in(tenant) == []

    def test_a_write_that_fails_has_none(self) -> None:
        tenant = make_tenant()
        access = access_to(tenant)
        with pytest.raises(FileNotFound):
            services.delete(access, "/missing.md")
        assert actions(tenant) == ["tenant.create", "tree.create"]

    def test_what_is_done_to_tenants_keys_and_people(self) -> None:
        tenant = create_tenant(slug="acme", actor=OPERATOR)
        key, _ = make_key(tenant, *Scope)
        member = set_member(
            tenant=tenant, user=User.objects.create(username="ann"), role=Role.OWNER, actor=OPERATOR
        )
        suspend_tenant(tenant=tenant, actor=OPERATOR)
        suspend_tenant(tenant=tenant, actor=OPERATOR)
        resume_tenant(tenant=tenant, actor=OPERATOR)
        keep_history(tenant=tenant, days=30, actor=OPERATOR)
        made, _ = keys.issue_key(own=key, actor=key.actor, name="another", scopes=[Scope.READ])
        new, _ = keys.rotate_key(own=key, actor=key.actor, key_id=made.pk, overlap=timedelta(hours=1))
        revoke_key(key=new, actor=key.actor)
        revoke_key(key=new, actor=key.actor)
        remove_member(membership=member, actor=OPERATOR)

        told = events(tenant)

        assert [(each.action, each.object_id) for each in told] == [
            ("tenant.create", ""),
            ("key.create", str(key.pk)),
            ("member.owner", str(member.user_id)),
            ("tenant.suspend", ""),
            ("tenant.resume", ""),
            ("tenant.history", "30 days"),
            ("key.create", str(made.pk)),
            ("key.create", str(new.pk)),
            ("key.end", str(made.pk)),
            ("key.revoke", str(new.pk)),
            ("member.remove", str(member.user_id)),
        ]
        assert [(each.actor_kind, each.actor_id, each.reason) for each in told[:1]] == [
            ("operator", "root", "asked for by phone")
        ]
        assert told[6].actor_name == "agent"
        assert found_in(tenant) == []

    def test_what_is_done_to_trees(self) -> None:
        tenant = make_tenant()
        access = access_to(tenant)
        services.write_file(access, "/a.md", "one\n")
        services.write_file(access, "/a.md", "two\n")
        with of_tenant(access):
            file = File.objects.get(tree=access.tree)
        redact_version(access, file.pk, 1)
        prune_to(access.tree, 2)
        describe_tree(access, "What it is.")
        other = Access(create_tree(tenant, "other", actor=access.actor), access.actor)
        add(other)
        archive_tree(access)
        delete_tree(other)

        assert actions(tenant)[1:] == [
            "tree.create",
            "file.write",
            "file.write",
            "version.redact",
            "history.prune",
            "tree.describe",
            "tree.create",
            "entry.add",
            "tree.archive",
            "tree.delete",
        ]
        assert found_in(tenant) == []

    @pytest.mark.parametrize(
        ("proxies", "forwarded", "address"),
        [
            (0, "198.51.100.1", "127.0.0.1"),
            (1, "198.51.100.1", "198.51.100.1"),
            (1, "10.9.8.7, 198.51.100.1", "198.51.100.1"),
            (2, "10.9.8.7, 198.51.100.1, 192.0.2.3", "198.51.100.1"),
            (2, "198.51.100.1", ""),
            (1, "nonsense", ""),
            (1, "2001:DB8::1", "2001:db8::1"),
        ],
    )
    def test_where_it_came_from(self, proxies: int, forwarded: str, address: str) -> None:
        tenant = make_tenant()
        with override_settings(TRUSTED_PROXIES=proxies):
            client = client_with(make_key(tenant)[1])
            written = put(client, "a.md", **{"X-Forwarded-For": forwarded})

        [told] = events(tenant, action="file.write")
        assert told.address == address
        assert told.request_id == written["X-Request-ID"]

    def test_an_export_is_told(self) -> None:
        tenant = make_tenant()
        client = client_with(make_key(tenant)[1])
        put(client, "a.md")
        for name in ("zip", "jsonl", "bundle"):
            streamed(client.get(f"/v1/trees/default/export.{name}"))
        assert client.get("/v1/trees/default/export.zip?revision=9").status_code == 404

        assert actions(tenant, action="tree.export") == ["tree.export"] * 3


@pytest.mark.django_db
class TestRefusals:
    def test_what_a_key_may_not_have_is_told_and_counted(self) -> None:
        tenant, other = make_tenant(), make_tenant()
        key, text = make_key(tenant, Scope.READ)
        client = client_with(text)
        theirs, _ = make_key(other)
        audit.REFUSALS.forget()

        for _ in range(3):
            assert put(client, "a.md").status_code == 403
        assert client.get("/v1/trees/nobodys").status_code == 404
        assert client.get("/v1/trees/default/files/missing.md").status_code == 404
        admin = client_with(make_key(tenant, *Scope)[1])
        assert admin.get(f"/v1/keys/{theirs.pk}").status_code == 404
        audit.REFUSALS.flush()

        told = {(each.action, each.outcome, each.times) for each in events(tenant) if each.outcome != "done"}
        assert told == {
            ("PUT /v1/trees/<str:tree>/files/<anytext:path>", "missing_scope", 3),
            ("GET /v1/trees/<str:tree>", "tree_not_found", 1),
            ("GET /v1/keys/<uuid:key_id>", "key_not_found", 1),
        }
        assert [each.actor_id for each in events(tenant, outcome="missing_scope")] == [str(key.pk)]
        assert [each for each in events(other) if each.outcome != "done"] == []

    @pytest.mark.parametrize("make", [make_revoked_key, make_expired_key])
    def test_a_key_that_has_ended_is_told(self, make: Callable[[Tenant], str]) -> None:
        tenant = make_tenant()
        client = client_with(make(tenant))
        audit.REFUSALS.forget()

        assert client.get("/v1/me").status_code == 401
        assert client_with("msk_a1B2c3D4_" + "x" * 43).get("/v1/me").status_code == 401
        audit.REFUSALS.flush()

        assert [(each.action, each.times) for each in events(tenant, outcome="unauthenticated")] == [
            ("GET /v1/me", 1)
        ]

    def test_whoever_tries_everything_fills_no_disk(self) -> None:
        tenant = make_tenant()
        key, _ = make_key(tenant, Scope.READ)
        audit.REFUSALS.forget()
        for number in range(audit.MOST_REFUSALS + 30):
            audit.REFUSALS.note_refusal(key, key.actor, f"GET /{number}", "forbidden")
        audit.REFUSALS.flush()

        told = [each for each in events(tenant) if each.outcome != "done"]
        assert len(told) == audit.MOST_REFUSALS + 1
        assert sum(each.times for each in told) == audit.MOST_REFUSALS + 30
        assert told[-1].outcome == "not_told_apart"


@pytest.mark.django_db
class TestEndpoint:
    @pytest.fixture
    def tenant(self) -> Tenant:
        return make_tenant()

    @pytest.fixture
    def admin(self, tenant: Tenant) -> APIClient:
        return client_with(make_key(tenant, *Scope)[1])

    def test_pages_hold_every_event_once(self, admin: APIClient) -> None:
        for number in range(7):
            put(admin, f"{number}.md")
        seen, cursor = [], ""
        while cursor is not None:
            page = admin.get(f"/v1/audit?limit=3{f'&cursor={cursor}' if cursor else ''}").json()
            seen += [(each["chain"], each["number"]) for each in page["items"]]
            cursor = page["next"]
        assert len(seen) == len(set(seen)) == 10
        answer = admin.get("/v1/audit", {"action": "file.write", "tree": "default", "limit": 1}).json()
        assert answer["items"][0]["revision"] == 7
        assert admin.get("/v1/audit", {"tree": "none"}).status_code == 404

    def test_a_key_of_one_tree_sees_what_was_about_it(self, admin: APIClient, tenant: Tenant) -> None:
        create_tree(tenant, "mine")
        create_tree(tenant, "other")
        put(admin, "a.md")
        limited = client_with(make_key(tenant, *Scope, tree="mine")[1])

        assert [each["tree"] for each in limited.get("/v1/audit").json()["items"]] == ["mine"]
        assert limited.get("/v1/audit?tree=other").status_code == 404
        assert streamed(limited.get("/v1/audit.jsonl")) == b""

    def test_a_key_of_a_folder_sees_none(self, tenant: Tenant) -> None:
        client = client_with(make_key(tenant, *Scope, path_prefix="/notes")[1])
        assert client.get("/v1/audit").status_code == 403
        assert client.get("/v1/audit.jsonl").status_code == 403

    def test_an_export_can_be_checked_by_anyone(self, admin: APIClient, tmp_path: Path) -> None:
        for number in range(3):
            add_entry(admin, f"The {number}th.")
        path, heads = tmp_path / "audit.jsonl", tmp_path / "heads"
        path.write_bytes(streamed(admin.get("/v1/audit.jsonl")))
        lines = path.read_text().splitlines(keepends=True)

        whole = check(path, "--heads", heads)
        assert (whole.returncode, whole.stdout) == (0, f"Whole: {len(lines)} events in 2 chains.\n")

        first = json.loads(lines[0])
        path.write_text(json.dumps({**first, "outcome": "forbidden"}) + "\n" + "".join(lines[1:]))
        assert check(path).stdout == (
            f"event {first['number']} of chain {first['chain']} is not what was written: its digest does not fit\n"
        )
        path.write_text("".join(lines[:-1]))
        assert check(path).returncode == 0
        missing = check(path, "--heads", heads)
        assert missing.returncode == 1
        assert "is missing" in missing.stdout
        path.write_text("{}\n")
        assert check(path).returncode == 2

    def test_names_of_the_digest_are_ids(self, admin: APIClient, tenant: Tenant) -> None:
        """A name that changes later, or is gone, changes no digest."""
        put(admin, "a.md")
        previous: dict[str, str] = {}
        for event in audit_chains(tenant):
            assert digest_of(event, previous.get(event.chain, "")) == event.digest
            previous[event.chain] = event.digest


def check(path: Path, *options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "memsvc.client.audit", path, *options]
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)


# --- what is done to rows from below -----------------------------------------------------------------------------

TAMPERED = {
    "a flipped bit": (
        "UPDATE tenants_auditevent SET revision = revision # 1 WHERE chain = %(tree)s AND number = 5",
        ["event 5 of chain {tree} is not what was written: its digest does not fit"],
    ),
    "another actor": (
        "UPDATE tenants_auditevent SET actor_id = 'x' WHERE chain = %(tree)s AND number = 5",
        ["event 5 of chain {tree} is not what was written: its digest does not fit"],
    ),
    "a deleted row": (
        "DELETE FROM tenants_auditevent WHERE chain = %(tree)s AND number = 5",
        ["event 5 of chain {tree} is missing"],
    ),
    "the last row deleted": (
        "DELETE FROM tenants_auditevent WHERE chain = %(tree)s AND number = 9",
        ["event 9 of chain {tree} is missing"],
    ),
    "all rows deleted": (
        "DELETE FROM tenants_auditevent WHERE chain = %(tree)s",
        ["event 1 of chain {tree} is missing, with all up to 9"],
    ),
    "a swapped pair": (
        "UPDATE tenants_auditevent SET number = 0 WHERE chain = %(tree)s AND number = 4;"
        "UPDATE tenants_auditevent SET number = 4 WHERE chain = %(tree)s AND number = 5;"
        "UPDATE tenants_auditevent SET number = 5 WHERE chain = %(tree)s AND number = 0",
        [
            "event 4 of chain {tree} is not what was written: its digest does not fit",
            "event 5 of chain {tree} is not what was written: its digest does not fit",
            "event 6 of chain {tree} is not what was written: its digest does not fit",
        ],
    ),
    "a row of another chain": (
        "UPDATE tenants_auditevent SET chain = %(tree)s, number = 10 WHERE chain = %(tenant)s AND number = 2",
        [
            "event 2 of chain {tenant} is missing",
            "event 10 of chain {tree} is not what was written: its digest does not fit",
            "event 10 of chain {tree} stands behind the end of the chain",
        ],
    ),
    "a tree that was never deleted": (
        "DELETE FROM tree_block; DELETE FROM tree_file; DELETE FROM tree_revision; DELETE FROM tree_tree",
        ["event 9 of chain {tree} is of a tree that is not there, and nothing says that it was deleted"],
    ),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("tampering", TAMPERED)
def test_tampering_is_found_and_named(superuser: psycopg.Connection, tampering: str) -> None:
    tenant = make_tenant()
    access = access_to(tenant)
    for number in range(9):
        add(access, f"The {number}th.")
    statement, expected = TAMPERED[tampering]
    ids = {"tree": str(access.tree.pk), "tenant": str(tenant.pk)}
    assert found_in(tenant) == []

    for each in statement.split(";"):
        superuser.execute(each, ids)

    assert sorted(found_in(tenant)) == sorted(each.format(**ids) for each in expected)
    told = StringIO()
    with pytest.raises(CommandError, match="1 tenants"):
        call_command("audit_verify", tenant.slug, stdout=told, stderr=told)
    assert expected[0].format(**ids) in told.getvalue()


@pytest.mark.django_db(transaction=True)
def test_the_end_of_a_chain_is_missed_even_where_its_row_was_changed_too(
    superuser: psycopg.Connection, tmp_path: Path
) -> None:
    tenant = make_tenant()
    access = access_to(tenant)
    for number in range(3):
        add(access, f"The {number}th.")
    command = ("audit_verify", tenant.slug, "--heads", str(tmp_path))
    call_command(*command, stdout=StringIO(), stderr=StringIO())
    superuser.execute("DELETE FROM tenants_auditevent WHERE chain = %s AND number = 3", [access.tree.pk])
    superuser.execute(
        "UPDATE tree_tree t SET audit_number = 2, audit_digest = e.digest FROM tenants_auditevent e"
        " WHERE t.id = %s AND e.chain = t.id AND e.number = 2",
        [access.tree.pk],
    )
    call_command("audit_verify", tenant.slug, stdout=StringIO(), stderr=StringIO())

    told = StringIO()
    with pytest.raises(CommandError):
        call_command(*command, stdout=told, stderr=StringIO())
    assert f"event 3 of chain {access.tree.pk} is missing" in told.getvalue()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "statement", ["UPDATE tenants_auditevent SET times = 2", "DELETE FROM tenants_auditevent"]
)
def test_who_serves_can_only_add(statement: str) -> None:
    tenant = make_tenant()
    with (
        pytest.raises(Exception, match="permission denied"),
        tenant_transaction(tenant.pk),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)


@pytest.mark.django_db(transaction=True)
def test_eight_processes_leave_whole_chains() -> None:
    tenant = make_tenant()
    memory = access_to(tenant)
    with writers() as processes:
        processes.await_end(*[processes.order(order_for(memory, "facts", times=20)) for _ in range(8)])

    assert found_in(tenant) == []
    with of_tenant(memory):
        assert AuditEvent.objects.filter(chain=memory.tree.pk).count() == 160


@pytest.mark.django_db(transaction=True)
def test_acts_of_many_threads_on_trees_keys_and_the_tenant_wait_for_one_another() -> None:
    tenant = make_tenant()
    memory = access_to(tenant)
    key, _ = make_key(tenant)

    def a_tree_comes_and_goes(name: str) -> None:
        access = Access(create_tree(tenant, name, actor=memory.actor), memory.actor)
        add(access)
        delete_tree(access)

    def a_key_comes_and_goes(name: str) -> None:
        revoke_key(key=make_key(tenant, name=name)[0], actor=memory.actor)

    def something_is_erased(name: str) -> None:
        entry_id = add(memory, name).entry.entry_id
        erase(memory, ErasureRequest(tree="default", kind=ErasureKind.ENTRY, value=entry_id))

    def something_is_refused(name: str) -> None:
        audit.REFUSALS.note_refusal(key, key.actor, name, "forbidden")
        audit.REFUSALS.flush()

    acts: list[Callable[[str], object]] = [
        a_tree_comes_and_goes,
        a_key_comes_and_goes,
        something_is_erased,
        something_is_refused,
        lambda name: add(memory, name),
        lambda name: describe_tree(memory, name),
        lambda name: keep_history(tenant=tenant, days=len(name)),
        lambda name: record_export(memory, None),
    ]

    def in_turn(first: int) -> None:
        try:
            for number in range(len(acts)):
                acts[(first + number) % len(acts)](f"{first} {number}")
        finally:
            close_old_connections()

    with ThreadPoolExecutor(len(acts)) as threads:
        list(threads.map(in_turn, range(len(acts))))

    assert found_in(tenant) == []
    # The tenant, its tree and a key before; a tree is told as made and as gone, a key as made and as revoked.
    assert len(events(tenant)) == 3 + len(acts) * (3 + 2 + 2 + 1 + 4)
