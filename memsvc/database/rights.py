"""What each role may do in the database: the policies of every tenant's rows, the grants, and how roles are made.

Three roles use it, each by a URL of its own. The owner (`DATABASE_OWNER_URL`) migrates, and holds tables, views and
functions. The service (`DATABASE_URL`) works inside the tenant that its transaction has entered
(`memsvc.database.tenancy`). The admin (`DATABASE_ADMIN_URL`) works inside the tenants of the person who looks, or in
all of them for an operator. Neither of these two owns anything, or can become somebody else.

What reaches across tenants besides goes through functions of the owner whose names begin with `memsvc_`; each is listed
with its reason in docs/threat-model.md.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, transaction
from django.db.backends.utils import CursorWrapper
from psycopg import sql
from psycopg.sql import Identifier

SERVICE: Final = DEFAULT_DB_ALIAS
OWNER: Final = "owner"
ADMIN: Final = "admin"

# A setting of the transaction; after the first one on a connection it is empty, and no longer null.
_ENTERED: Final = "nullif(current_setting('memsvc.tenant_id', true), '')::uuid"
# What a page of the admin says of the person who asks: see memsvc.curation.database.
_SEEN: Final = (
    "current_setting('memsvc.operator', true) = 'on'"
    " OR {column} = ANY (string_to_array(nullif(current_setting('memsvc.tenants', true), ''), ',')::uuid[])"
)

# Whose a row of this table is says its own key.
_TENANTS: Final = "tenants_tenant"
# What may be added, and never changed or taken away.
INSERT_ONLY: Final = frozenset({"tenants_auditevent", "tree_erasure"})
_READ_ONLY: Final = "django_migrations"

# A tenant's blocks once more, for conditions that no index serves under a policy: those of full text and of LIKE are
# not leakproof, so Postgres would go through all of the tenant's rows first. The condition of a view is one like the
# others. It is no weaker here: whoever serves can't define the function that would see a row before it.
SEARCHED: Final = "tree_block_of_tenant"
_SEARCHED_TABLE: Final = "tree_block"


def require_url(alias: str) -> None:
    """Raise `ImproperlyConfigured` where nothing says as which role to connect."""
    if alias not in connections:
        variable = f"DATABASE_{alias.upper()}_URL"
        raise ImproperlyConfigured(f"{variable} is not set: it says as which role this is done.")


@contextmanager
def connected_as(alias: str) -> Iterator[None]:
    """Let this thread work as another role, whatever it calls. Raises `ImproperlyConfigured` where it has no URL."""
    require_url(alias)
    own = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = connections[alias]
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = own


def tenant_tables() -> dict[str, str]:
    """The tables with rows of tenants, and in which column each says whose a row is."""
    models = [model for model in apps.get_models() if model._meta.managed and not model._meta.proxy]
    found = {each._meta.db_table: "tenant_id" for each in models if hasattr(each, "tenant_id")}
    return found | {_TENANTS: "id"}


def make_roles() -> list[str]:
    """Make the roles that serve, or give them the passwords of their URLs. Returns what was done, for people.

    The owner needs to be allowed to create roles only where one is missing.
    """
    try:
        return _make_roles()
    except DatabaseError as error:
        # Roles are those of the whole server, and no lock is: another database's owner may have made them just now.
        if getattr(error.__cause__, "sqlstate", None) not in _MADE_MEANWHILE:
            raise
        return _make_roles()


# Of a row that is there already, of a role that is, and of one that was changed at the same time.
_MADE_MEANWHILE: Final = ("23505", "42710", "XX000")


def _make_roles() -> list[str]:
    done = []
    owner = connections[OWNER]
    owner.ensure_connection()
    database = str(owner.settings_dict["NAME"])
    with transaction.atomic(using=OWNER), owner.cursor() as cursor:
        # Who may make temporary tables may make functions of that kind too, and these see rows before a view's
        # condition does.
        _run(cursor, "REVOKE TEMPORARY ON DATABASE {} FROM PUBLIC", database)
        for alias in (SERVICE, ADMIN):
            name, password = role_of(alias), str(connections[alias].settings_dict["PASSWORD"])
            cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [name])
            verb = "ALTER" if cursor.rowcount else "CREATE"
            statement = sql.SQL(verb + " ROLE {} LOGIN").format(Identifier(name))
            if password:
                # Hashed here, so that it stands in no log of the server.
                hashed = owner.connection.pgconn.encrypt_password(password.encode(), name.encode())
                statement += sql.SQL(" PASSWORD {}").format(sql.Literal(hashed.decode()))
            if verb == "CREATE" or password:
                cursor.execute(statement)
            _run(cursor, "GRANT CONNECT ON DATABASE {} TO {}", database, name)
            done.append(f"{'made' if verb == 'CREATE' else 'kept'} {name}")
    return done


def grant_rights() -> None:
    """Give every table its policies, and the roles what they may do. What stands already is left alone.

    Runs as the owner, after each migration.
    """
    service, admin, owner = map(role_of, (SERVICE, ADMIN, OWNER))
    with transaction.atomic(using=OWNER), connections[OWNER].cursor() as cursor:
        standing = {table.name for table in connections[OWNER].introspection.get_table_list(cursor)}
        for table, column in tenant_tables().items():
            if table in standing:
                _wall_off(cursor, table, column, admin=admin, owner=owner)
        if _SEARCHED_TABLE in standing:
            _define_view(cursor)
        for role in (service, admin):
            _run(cursor, "GRANT USAGE ON SCHEMA public TO {}", role)
            for statement in _GRANTS:
                _run(cursor, statement, role)
            for table in sorted((INSERT_ONLY | {_READ_ONLY}) & standing):
                _run(cursor, "REVOKE UPDATE, DELETE ON {} FROM {}", table, role)
            if _READ_ONLY in standing:
                _run(cursor, "REVOKE INSERT ON {} FROM {}", _READ_ONLY, role)
        for function in _crossings(cursor):
            cursor.execute(sql.SQL("REVOKE EXECUTE ON FUNCTION {} FROM PUBLIC").format(sql.SQL(function)))
            for role in (service, admin):
                granted = sql.SQL("GRANT EXECUTE ON FUNCTION {} TO {}")
                cursor.execute(granted.format(sql.SQL(function), Identifier(role)))


_GRANTS: Final = (
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {}",
    "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {}",
)


def _wall_off(cursor: CursorWrapper, table: str, column: str, *, admin: str, owner: str) -> None:
    """Let a table show its rows by policies only, also to its owner."""
    policies = {
        "tenant": ("PUBLIC", f"{column} = {_ENTERED}"),
        "admin": (f'"{admin}"', _SEEN.format(column=column)),
        "owner": (f'"{owner}"', "true"),
    }
    cursor.execute(_POLICIES, [table])
    if dict(cursor.fetchall()) == {name: f"{role}: {shown}" for name, (role, shown) in policies.items()}:
        return
    _run(cursor, "ALTER TABLE {} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY", table)
    for name, (role, shown) in policies.items():
        _run(cursor, "DROP POLICY IF EXISTS {} ON {}", name, table)
        _run(cursor, f"CREATE POLICY {{}} ON {{}} TO {role} USING ({shown})", name, table)
        # Postgres gives an expression back in words of its own, so what was meant is kept beside it.
        comment = sql.SQL("COMMENT ON POLICY {} ON {} IS {}")
        cursor.execute(comment.format(Identifier(name), Identifier(table), f"{role}: {shown}"))


_POLICIES: Final = """
SELECT polname, coalesce(obj_description(p.oid, 'pg_policy'), '')
FROM pg_policy p JOIN pg_class c ON c.oid = polrelid
WHERE polrelid = to_regclass(%s) AND relrowsecurity AND relforcerowsecurity
"""


def _define_view(cursor: CursorWrapper) -> None:
    cursor.execute(
        "SELECT attname FROM pg_attribute"
        " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        [_SEARCHED_TABLE],
    )
    columns = ", ".join(f'"{name}"' for (name,) in cursor.fetchall())
    definition = f"SELECT {columns} FROM {_SEARCHED_TABLE} WHERE tenant_id = {_ENTERED}"
    cursor.execute("SELECT obj_description(to_regclass(%s), 'pg_class')", [SEARCHED])
    if cursor.fetchone() == (definition,):
        return
    _run(cursor, "DROP VIEW IF EXISTS {}", SEARCHED)
    _run(cursor, f"CREATE VIEW {{}} AS {definition}", SEARCHED)
    cursor.execute(sql.SQL("COMMENT ON VIEW {} IS {}").format(Identifier(SEARCHED), definition))


def role_of(alias: str) -> str:
    return str(connections[alias].settings_dict["USER"])


def role_faults(alias: str) -> list[str]:
    """What a role can do that those who serve must not, each as the rest of a sentence."""
    with connections[alias].cursor() as cursor:
        cursor.execute(_FAULTS)
        faults = dict(zip((column.name for column in cursor.description), cursor.fetchone(), strict=True))
    return [said for name, said in _FAULTS_SAID.items() if faults[name]]


_FAULTS: Final = """
SELECT rolsuper, rolbypassrls, rolcreaterole,
    EXISTS (SELECT FROM pg_class WHERE relowner = r.oid AND relnamespace = 'public'::regnamespace) AS owns,
    EXISTS (SELECT FROM pg_auth_members WHERE member = r.oid) AS becomes,
    has_schema_privilege(r.oid, 'public', 'CREATE')
        OR has_database_privilege(r.oid, current_database(), 'TEMPORARY') AS creates
FROM pg_roles r WHERE rolname = current_user
"""
_FAULTS_SAID: Final = {
    "rolsuper": "is a superuser",
    "rolbypassrls": "has BYPASSRLS",
    "rolcreaterole": "may create roles",
    "owns": "owns tables",
    "becomes": "is a member of another role and can become that",
    "creates": "may create tables and functions",
}


def tables_without_policies() -> list[str]:
    """Tables of tenants' rows, by their column, whether a model has them or not, that are not walled off."""
    with connections[SERVICE].cursor() as cursor:
        cursor.execute(_UNWALLED, [_TENANTS])
        return [table for (table,) in cursor.fetchall()]


# No policy but those three may show a row.
_UNWALLED: Final = """
SELECT c.relname FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = CASE c.relname WHEN %s THEN 'id' ELSE 'tenant_id' END
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND NOT (
    c.relrowsecurity AND c.relforcerowsecurity
    AND (SELECT array_agg(polname ORDER BY polname) = '{admin,owner,tenant}' FROM pg_policy WHERE polrelid = c.oid)
    AND EXISTS (
        SELECT FROM pg_policy WHERE polrelid = c.oid AND polname = 'tenant' AND pg_get_expr(polqual, polrelid) LIKE
            format('(%%s = (NULLIF(current_setting(''memsvc.tenant_id''%%%%', a.attname)
    )
)
ORDER BY c.relname
"""


def _crossings(cursor: CursorWrapper) -> Iterator[str]:
    cursor.execute(
        "SELECT oid::regprocedure::text FROM pg_proc"
        " WHERE prosecdef AND proname LIKE 'memsvc\\_%%' AND pronamespace = 'public'::regnamespace"
    )
    yield from (name for (name,) in cursor.fetchall())


def _run(cursor: CursorWrapper, statement: str, *names: str) -> None:
    cursor.execute(sql.SQL(statement).format(*map(Identifier, names)))
