"""What the roles may do: as Postgres sees it, and nothing that the service would have to think of."""

from collections.abc import Iterator
from io import StringIO
from uuid import UUID, uuid4

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, connections, transaction
from psycopg import sql
from psycopg.errors import InsufficientPrivilege

from memsvc.database import rights
from memsvc.database.tenancy import tenant_transaction
from memsvc.embedded import ADMIN_ROLE, SERVICE_ROLE
from memsvc.testing import OWNER_ROLE
from memsvc.tree.access import Access
from memsvc.tree.models import Block, Tree
from tenants.models import Tenant
from tests.people import make_tenant
from tests.tree.support import access_to, add, from_outside

pytestmark = pytest.mark.django_db(transaction=True)

# Tables that hold nothing of a tenant, and why.
WITHOUT_TENANT = {
    "auth_group": "Django's, empty",
    "auth_group_permissions": "Django's, empty",
    "auth_permission": "Django's, of models",
    "django_admin_log": "what people did in the admin; shown to nobody but themselves",
    "django_content_type": "Django's, of models",
    "django_migrations": "of the schema",
    "django_session": "keyed by 32 random characters",
    "procrastinate_events": "of jobs, which hold ids only",
    "procrastinate_jobs": "ids of tenants and trees",
    "procrastinate_periodic_defers": "of sweeps",
    "procrastinate_workers": "of processes",
    "tenants_user": "people, who may belong to several tenants",
    "tenants_user_groups": "Django's, empty",
    "tenants_user_user_permissions": "Django's, empty",
}


@pytest.fixture
def both() -> tuple[Access, Access]:
    """Two tenants with an entry each."""
    ours, theirs = access_to(make_tenant("alice")), access_to(make_tenant("bob"))
    add(ours, "Alice's.")
    add(theirs, "Bob's.")
    return ours, theirs


@pytest.fixture
def service(database_url: str) -> Iterator[psycopg.Connection]:
    """A connection as the role that serves, with nothing of ours in between."""
    with psycopg.connect(database_url, autocommit=True) as direct:
        yield direct


def test_every_table_is_walled_off_or_holds_nothing_of_a_tenant(superuser: psycopg.Connection) -> None:
    rows = superuser.execute(
        "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class"
        " WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace"
    ).fetchall()

    walled = {name for name, is_forced in rows if is_forced}
    assert walled == set(rights.tenant_tables())
    assert {name for name, _ in rows} - walled == set(WITHOUT_TENANT)
    assert rights.tables_without_policies() == []


@pytest.mark.parametrize(
    ("opened", "table"),
    [
        ("CREATE TABLE forgotten (id uuid, tenant_id uuid)", "forgotten"),
        ("ALTER TABLE tree_block DISABLE ROW LEVEL SECURITY", "tree_block"),
        ("ALTER TABLE tree_block NO FORCE ROW LEVEL SECURITY", "tree_block"),
        ("CREATE POLICY everybody ON tree_block USING (true)", "tree_block"),
        ("DROP POLICY tenant ON tree_block", "tree_block"),
        ("ALTER POLICY tenant ON tree_block USING (tenant_id IS NOT NULL)", "tree_block"),
        ("ALTER TABLE tenants_tenant DISABLE ROW LEVEL SECURITY", "tenants_tenant"),
    ],
)
def test_a_table_that_is_open_is_found(opened: str, table: str) -> None:
    with from_outside(), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(opened)
        found = rights.tables_without_policies()
        transaction.set_rollback(True)

    assert found == [table]
    assert rights.tables_without_policies() == []


@pytest.mark.parametrize("entered", [None, "", "00000000-0000-7000-8000-000000000000", "{ours}"])
def test_another_tenants_rows_are_not_there(
    service: psycopg.Connection, both: tuple[Access, Access], entered: str | None
) -> None:
    ours, theirs = both
    setting = entered and entered.format(ours=ours.tree.tenant_id)
    for table, column in rights.tenant_tables().items():
        with service.transaction():
            if setting is not None:
                service.execute("SELECT set_config('memsvc.tenant_id', %s, true)", [setting])
            # What the admin's role goes by says nothing to this one.
            service.execute("SELECT set_config('memsvc.operator', 'on', true)")
            service.execute("SELECT set_config('memsvc.tenants', %s, true)", [str(theirs.tree.tenant_id)])
            query = sql.SQL("SELECT {} FROM {}").format(sql.Identifier(column), sql.Identifier(table))
            seen = {tenant for (tenant,) in service.execute(query)}
            searched = service.execute("SELECT tenant_id FROM tree_block_of_tenant").fetchall()
        expected = {ours.tree.tenant_id} if entered == "{ours}" else set()
        assert seen <= expected, table
        assert {tenant for (tenant,) in searched} == expected
        if table in ("tenants_tenant", "tree_tree", "tree_block"):
            assert seen == expected, table


@pytest.mark.parametrize("setting", ["*", "all", "x", "{ours},{theirs}", "' OR true --"])
def test_a_setting_that_is_no_tenant_shows_nothing(
    service: psycopg.Connection, both: tuple[Access, Access], setting: str
) -> None:
    ours, theirs = (access.tree.tenant_id for access in both)
    given = setting.format(ours=ours, theirs=theirs)
    with service.transaction():
        service.execute("SELECT set_config('memsvc.tenant_id', %s, true)", [given])
        with pytest.raises(psycopg.errors.InvalidTextRepresentation), service.transaction():
            service.execute("SELECT * FROM tree_block")


def test_a_tenant_is_entered_for_one_transaction(
    service: psycopg.Connection, both: tuple[Access, Access]
) -> None:
    with service.transaction():
        service.execute("SELECT set_config('memsvc.tenant_id', %s, true)", [str(both[0].tree.tenant_id)])
        assert service.execute("SELECT count(*) FROM tree_tree").fetchone() == (1,)
    assert service.execute("SELECT count(*) FROM tree_tree").fetchone() == (0,)


def test_nothing_is_written_into_another_tenant(both: tuple[Access, Access]) -> None:
    ours, theirs = (access.tree for access in both)
    with pytest.raises(Exception, match="row-level security"), tenant_transaction(ours.tenant_id):
        Tree(tenant_id=theirs.tenant_id, name="planted").save(force_insert=True)
    with pytest.raises(Exception, match="row-level security"), tenant_transaction(ours.tenant_id):
        Block.objects.of(ours).update(tenant_id=theirs.tenant_id)
    with tenant_transaction(ours.tenant_id):
        assert Block.objects.filter(tenant_id=theirs.tenant_id).update(text="mine") == 0
        assert Block.objects.filter(tenant_id=theirs.tenant_id).delete()[0] == 0
        assert Tenant.objects.filter(pk=theirs.tenant_id).update(name="mine") == 0


@pytest.mark.parametrize(
    "statement",
    [
        f"SET ROLE {OWNER_ROLE}",
        "SET ROLE postgres",
        "SET SESSION AUTHORIZATION postgres",
        "SET session_replication_role = replica",
        "CREATE TABLE mine (id int)",
        "CREATE TEMPORARY TABLE mine (id int)",
        "CREATE FUNCTION pg_temp.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE SCHEMA mine",
        "CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE EXTENSION postgres_fdw",
        "CREATE ROLE mine",
        "ALTER TABLE tree_block DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE tree_block NO FORCE ROW LEVEL SECURITY",
        "DROP POLICY tenant ON tree_block",
        "CREATE POLICY mine ON tree_block USING (true)",
        "DROP VIEW tree_block_of_tenant",
        "TRUNCATE tree_block",
        "DROP TABLE tree_block",
        "ALTER TABLE tree_block ADD COLUMN mine int",
        "COPY tree_block FROM PROGRAM 'true'",
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "COPY (SELECT 1) TO '/tmp/mine'",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT rolpassword FROM pg_authid",
        "INSERT INTO django_migrations (app, name, applied) VALUES ('a', 'b', now())",
        "DELETE FROM django_migrations",
    ],
)
@pytest.mark.parametrize("role", [SERVICE_ROLE, ADMIN_ROLE])
def test_those_who_serve_cannot_become_more(role: str, statement: str) -> None:
    alias = rights.SERVICE if role == SERVICE_ROLE else rights.ADMIN
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() == (role,)
        with pytest.raises(DatabaseError) as refused:
            cursor.execute(statement)
    assert isinstance(refused.value.__cause__, InsufficientPrivilege)


def test_without_row_security_there_is_an_error_and_no_row(
    service: psycopg.Connection, both: tuple[Access, Access]
) -> None:
    service.execute("SET row_security = off")
    with pytest.raises(InsufficientPrivilege, match="row-level security"):
        service.execute("SELECT * FROM tree_block")


def test_the_admin_sees_whom_its_request_names(both: tuple[Access, Access]) -> None:
    ours, theirs = (access.tree.tenant_id for access in both)

    def seen(**settings: str) -> set[UUID]:
        with rights.connected_as(rights.ADMIN), transaction.atomic(), connection.cursor() as cursor:
            for name, value in settings.items():
                cursor.execute("SELECT set_config(%s, %s, true)", [f"memsvc.{name}", value])
            return set(Tree.objects.values_list("tenant_id", flat=True))

    assert seen() == seen(tenants="") == seen(operator="off") == set()
    assert seen(tenants=str(ours)) == {ours}
    assert seen(tenants=f"{ours},{theirs}") == seen(operator="on") == {ours, theirs}


def test_migrating_again_changes_nothing(superuser: psycopg.Connection) -> None:
    def policies() -> list[tuple[object, ...]]:
        return superuser.execute("SELECT oid, polname FROM pg_policy ORDER BY oid").fetchall()

    before = policies()

    call_command("database_roles", stdout=StringIO())
    call_command("migrate", verbosity=0)

    assert policies() == before


def test_a_role_gets_the_password_of_its_url(
    superuser: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, password = f"memsvc_try_{uuid4().hex[:8]}", "it's a 'secret'"
    monkeypatch.setitem(connections[rights.ADMIN].settings_dict, "USER", name)
    monkeypatch.setitem(connections[rights.ADMIN].settings_dict, "PASSWORD", password)
    told = StringIO()
    try:
        call_command("database_roles", stdout=told)
        call_command("database_roles", stdout=told)

        (stored,) = superuser.execute(
            "SELECT rolpassword FROM pg_authid WHERE rolname = %s", [name]
        ).fetchone() or ("",)
        assert stored.startswith("SCRAM-SHA-256$")
        assert (f"made {name}" in told.getvalue(), f"kept {name}" in told.getvalue()) == (True, True)
        assert password not in told.getvalue()
    finally:
        monkeypatch.undo()
        rights.grant_rights()
        role = sql.Identifier(name)
        superuser.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(role))


def test_who_may_create_no_roles_is_told(
    superuser: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"memsvc_try_{uuid4().hex[:8]}"
    monkeypatch.setitem(connections[rights.ADMIN].settings_dict, "USER", name)
    superuser.execute(f"ALTER ROLE {OWNER_ROLE} NOCREATEROLE")
    try:
        with pytest.raises(CommandError, match="permission denied to create role"):
            call_command("database_roles", stdout=StringIO())
        monkeypatch.undo()
        # Where both are there already, nothing needs to be created.
        call_command("database_roles", stdout=StringIO())
    finally:
        superuser.execute(f"ALTER ROLE {OWNER_ROLE} CREATEROLE")
