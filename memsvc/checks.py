"""System checks: a wrongly configured service says what is wrong and does not start."""

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from memsvc.database import distribution, rights
from memsvc.security_txt import expiry

MIN_SECRET_LENGTH = 50
MIN_SECRET_DISTINCT = 8
# For migrations, jobs, backups and a person with psql.
RESERVED_CONNECTIONS = 10
KNOWN_VARIABLES = frozenset(
    f"MEMSVC_{name}"
    for name in (
        "ACCESS_COUNTS",
        "ALLOWED_HOSTS",
        "BEHIND_PROXY",
        "BIND",
        "CSRF_TRUSTED_ORIGINS",
        "DATA_DIR",
        "DEBUG",
        "DISTRIBUTED",
        "EMBEDDER",
        "EMBEDDING_KEY",
        "EMBEDDING_MODEL",
        "EMBEDDING_URL",
        "ENV",
        "HSTS_SECONDS",
        "IDLE_IN_TRANSACTION_TIMEOUT",
        "KEY_PEPPER",
        "LOCK_TIMEOUT",
        "LOG_FORMAT",
        "LOG_LEVEL",
        "MAX_BODY_BYTES",
        "MAX_IMPORT_BYTES",
        "MODEL",
        "PG_ACCOUNT",
        "PG_SPILL",
        "PID_FILE",
        "POOL_SIZE",
        "PREPARED_STATEMENTS",
        "SECRET_KEY",
        "SECRET_KEY_FALLBACKS",
        "SECURITY_CONTACT",
        "SECURITY_EXPIRES",
        "STATEMENT_TIMEOUT",
        "STATIC_ROOT",
        "THREADS",
        "TRUSTED_PROXIES",
        "WORKERS",
    )
)


@register(Tags.security)
def check_secret_key(**kwargs: Any) -> list[CheckMessage]:
    try:
        secret = settings.SECRET_KEY
    except ImproperlyConfigured:
        secret = ""
    return _secret_problem("MEMSVC_SECRET_KEY", secret, "memsvc.E001")


@register(Tags.security)
def check_key_pepper(**kwargs: Any) -> list[CheckMessage]:
    return _secret_problem("MEMSVC_KEY_PEPPER", settings.KEY_PEPPER, "memsvc.E002")


def _secret_problem(variable: str, secret: str, id: str) -> list[CheckMessage]:
    hint = "Generate one with: python -c 'import secrets; print(secrets.token_urlsafe(48))'"
    if not secret:
        return [Error(f"{variable} is not set.", hint=hint, id=id)]
    if len(secret) < MIN_SECRET_LENGTH or len(set(secret)) < MIN_SECRET_DISTINCT:
        return [Error(f"{variable} is too short or too uniform to be a secret.", hint=hint, id=id)]
    return []


@register(Tags.security)
def check_debug(**kwargs: Any) -> list[CheckMessage]:
    if settings.DEBUG and not settings.LOCAL:
        return [
            Error("MEMSVC_DEBUG is on outside local mode: error pages would show settings.", id="memsvc.E003")
        ]
    return []


@register(Tags.security)
def check_allowed_hosts(**kwargs: Any) -> list[CheckMessage]:
    if settings.LOCAL:
        return []
    hint = "For example MEMSVC_ALLOWED_HOSTS=memory.example.com"
    if not settings.ALLOWED_HOSTS or "*" in settings.ALLOWED_HOSTS:
        return [
            Error("MEMSVC_ALLOWED_HOSTS must name the hosts that are served.", hint=hint, id="memsvc.E004")
        ]
    return [
        Error(f"MEMSVC_ALLOWED_HOSTS: {host} is where anybody may have a host.", hint=hint, id="memsvc.E030")
        for host in settings.ALLOWED_HOSTS
        if _is_public_suffix(host)
    ]


def _is_public_suffix(host: str) -> bool:
    """Whether a pattern takes hosts of everybody: those of `.com`, or of `.co.uk` and its like, by their looks."""
    if not host.startswith("."):
        return False
    *own, top = host.strip(".").split(".")
    return not own or (len(own) == 1 and len(top) == 2 and len(own[0]) <= 3)


@register(Tags.security)
def check_security_contact(**kwargs: Any) -> list[CheckMessage]:
    if not settings.SECURITY_CONTACT:
        return []
    problems: list[CheckMessage] = []
    wrong = [
        each for each in settings.SECURITY_CONTACT if not re.fullmatch(r"(mailto:|https://)[!-~]+", each)
    ]
    if wrong:
        hint = "For example MEMSVC_SECURITY_CONTACT=mailto:security@example.com"
        message = f"MEMSVC_SECURITY_CONTACT takes mailto: and https: URIs, not {', '.join(map(repr, wrong))}."
        problems.append(Error(message, hint=hint, id="memsvc.E031"))
    expires = expiry(settings.SECURITY_EXPIRES)
    if expires is None or expires <= datetime.now(tz=UTC):
        hint = "Name an instant within a year, such as MEMSVC_SECURITY_EXPIRES=2030-01-31T00:00:00Z"
        message = "MEMSVC_SECURITY_CONTACT needs MEMSVC_SECURITY_EXPIRES, an instant to come with its offset."
        problems.append(Error(message, hint=hint, id="memsvc.E032"))
    return problems


@register(Tags.security)
def check_trusted_proxies(**kwargs: Any) -> list[CheckMessage]:
    if settings.TRUSTED_PROXIES >= 0:
        return []
    hint = "How many proxies in front add to X-Forwarded-For; 0 for none."
    return [Error("MEMSVC_TRUSTED_PROXIES can't be negative.", hint=hint, id="memsvc.E018")]


@register()
def check_mode(**kwargs: Any) -> list[CheckMessage]:
    problems: list[CheckMessage] = []
    if settings.MODE not in ("local", "production"):
        problems.append(Error("MEMSVC_ENV must be local or production.", id="memsvc.E005"))
    if not settings.LOCAL and not settings.DATABASE_URL:
        problems.append(Error("DATABASE_URL is not set, and MEMSVC_ENV is not local.", id="memsvc.E006"))
    return problems


@register()
def check_pool(**kwargs: Any) -> list[CheckMessage]:
    problems: list[CheckMessage] = []
    if settings.POOL_SIZE < settings.THREADS:
        message = f"{settings.THREADS} threads share {settings.POOL_SIZE} connections: requests would fail under load."
        problems.append(
            Error(message, hint="Raise MEMSVC_POOL_SIZE or lower MEMSVC_THREADS.", id="memsvc.E007")
        )
    if settings.DATABASES["default"]["CONN_MAX_AGE"] != 0:
        problems.append(Error("CONN_MAX_AGE must be 0 with a connection pool.", id="memsvc.E008"))
    return problems


@register(Tags.database)
def check_max_connections(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Only with `check --database default`: it asks the server."""
    if "default" not in (databases or ()):
        return []
    if refusal := _refusal(rights.SERVICE):
        return [Error(f"The database cannot be reached: {refusal}", id="memsvc.E009")]
    with connections[rights.SERVICE].cursor() as cursor:
        cursor.execute("SELECT current_setting('max_connections')::int")
        (limit,) = cursor.fetchone()
    wanted = settings.WORKERS * (settings.POOL_SIZE + settings.ADMIN_POOL_SIZE)
    if wanted + RESERVED_CONNECTIONS <= limit:
        return []
    message = (
        f"{settings.WORKERS} workers, each with {settings.POOL_SIZE} connections and {settings.ADMIN_POOL_SIZE} more "
        f"for the admin, and {RESERVED_CONNECTIONS} in reserve, exceed the server's max_connections = {limit}."
    )
    return [Error(message, hint="Lower MEMSVC_WORKERS or MEMSVC_POOL_SIZE.", id="memsvc.E010")]


@register(Tags.database)
def check_roles(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Only with `check --database default`: that the service and the admin can't get round the policies."""
    if "default" not in (databases or ()):
        return []
    problems: list[CheckMessage] = []
    for alias, variable in ((rights.SERVICE, "DATABASE_URL"), (rights.ADMIN, "DATABASE_ADMIN_URL")):
        if refusal := _refusal(alias):
            message = f"The role of {variable} can't connect: {refusal}"
            problems.append(Error(message, hint=_MAKE_ROLES, id="memsvc.E014"))
        else:
            problems += _role_problems(alias, variable)
    if not problems and rights.role_of(rights.SERVICE) == rights.role_of(rights.ADMIN):
        message = "DATABASE_URL and DATABASE_ADMIN_URL name the same role."
        problems.append(Error(message, hint=_MAKE_ROLES, id="memsvc.E015"))
    return problems


@register(Tags.database)
def check_distribution(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Only with `check --database default`: that the service knows whether tenants' rows are on several servers."""
    if "default" not in (databases or ()) or _refusal(rights.SERVICE):
        return []
    if not distribution.is_distributed():
        if not settings.DISTRIBUTED:
            return []
        message = "MEMSVC_DISTRIBUTED is on, and this database isn't distributed: writes send more than they need to."
        return [Warning(message, hint="Take it away, or run `manage.py distribute`.", id="memsvc.W020")]
    problems: list[CheckMessage] = []
    if not settings.DISTRIBUTED:
        message = "The rows of tenants are on several servers, which hear nothing of what the service enters."
        problems.append(Error(message, hint="Set MEMSVC_DISTRIBUTED=on.", id="memsvc.E020"))
    for alias in (rights.SERVICE, rights.ADMIN):
        if not _refusal(alias) and not distribution.role_hears(alias):
            role = rights.role_of(alias)
            message = f"The servers that have the rows of tenants don't hear what the role '{role}' enters."
            hint = f"As its owner: ALTER ROLE {role} SET citus.propagate_set_commands = 'local'"
            problems.append(Error(message, hint=hint, id="memsvc.E021"))
    if faults := distribution.schema_faults():
        message = f"Something can't be distributed by tenant: {'; '.join(faults)}"
        problems.append(Warning(message, hint="See docs/scaling.md.", id="memsvc.W021"))
    return problems


_MAKE_ROLES = (
    "Let DATABASE_URL and DATABASE_ADMIN_URL name two roles that own nothing, and DATABASE_OWNER_URL the one that owns "
    "the tables; then run `manage.py database_roles` and `manage.py migrate`."
)


def _refusal(alias: str) -> str:
    """Why nobody can connect; empty when one can. A pool tries for seconds, and then keeps it to itself."""
    options = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    parameters = connections[alias].get_connection_params()
    try:
        psycopg.connect(**{name: value for name, value in parameters.items() if name in options}).close()
    except psycopg.Error as error:
        return str(error).strip()
    return ""


def _role_problems(alias: str, variable: str) -> list[CheckMessage]:
    role = rights.role_of(alias)
    faults = rights.role_faults(alias)
    problems: list[CheckMessage] = [
        Error(
            f"{variable}: the role '{role}' {fault}, so no policy binds it.",
            hint=_MAKE_ROLES,
            id="memsvc.E016",
        )
        for fault in faults
    ]
    if alias == rights.SERVICE and (open_tables := rights.tables_without_policies()):
        message = f"Tables that show every tenant's rows to everyone: {', '.join(open_tables)}."
        problems.append(Error(message, hint="Run `manage.py migrate`.", id="memsvc.E017"))
    return problems


@register()
def check_embedder(**kwargs: Any) -> list[CheckMessage]:
    name = settings.EMBEDDER
    given = {
        "MEMSVC_EMBEDDING_URL": settings.EMBEDDING_URL,
        "MEMSVC_EMBEDDING_MODEL": settings.EMBEDDING_MODEL,
        "MEMSVC_EMBEDDING_KEY": settings.EMBEDDING_KEY,
    }
    if name == "openai":
        return _endpoint_problems(given)
    problems: list[CheckMessage] = [
        Warning(f"{variable} is set, but only MEMSVC_EMBEDDER=openai reads it.", id="memsvc.W003")
        for variable, value in given.items()
        if value
    ]
    if name not in ("minilm", "none") and not _has_module(name):
        hint = "One of minilm, none, openai, or the dotted path of a LangChain Embeddings."
        problems.append(Error(f"MEMSVC_EMBEDDER: there is no {name}.", hint=hint, id="memsvc.E011"))
    return problems


def _endpoint_problems(given: dict[str, str]) -> list[CheckMessage]:
    # A local endpoint may want no key.
    missing = [name for name in ("MEMSVC_EMBEDDING_URL", "MEMSVC_EMBEDDING_MODEL") if not given[name]]
    problems: list[CheckMessage] = [
        Error(f"MEMSVC_EMBEDDER=openai needs {name}.", id="memsvc.E012") for name in missing
    ]
    url = urlsplit(given["MEMSVC_EMBEDDING_URL"])
    if given["MEMSVC_EMBEDDING_URL"] and not (url.scheme in ("http", "https") and url.hostname):
        hint = "For example https://api.openai.com/v1"
        problems.append(Error("MEMSVC_EMBEDDING_URL is no http(s) URL.", hint=hint, id="memsvc.E013"))
    return problems


def _has_module(path: str) -> bool:
    """Whether the module of a dotted path is there. It is not loaded, which may take seconds."""
    try:
        return find_spec(path.rpartition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


@register()
def check_static_files(**kwargs: Any) -> list[CheckMessage]:
    if settings.LOCAL or Path(settings.STATIC_ROOT or "", "staticfiles.json").exists():
        return []
    message = f"{settings.STATIC_ROOT} holds no collected static files: pages of the admin would fail."
    return [Warning(message, hint="Run `manage.py collectstatic --no-input`.", id="memsvc.W002")]


@register()
def check_unknown_variables(**kwargs: Any) -> list[CheckMessage]:
    unknown = sorted(
        name for name in os.environ if name.startswith("MEMSVC_") and name not in KNOWN_VARIABLES
    )
    return [Warning(f"{name} is set, but nothing reads it.", id="memsvc.W001") for name in unknown]
