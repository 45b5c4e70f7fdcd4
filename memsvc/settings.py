"""Settings, read once from the environment. docs/running.md lists the variables; memsvc/checks.py refuses bad ones.

Nothing starts here. `memsvc.local.prepare()` fills the environment for a start without configuration.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured
from django.utils.csp import CSP
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from memsvc import embedded, local, logging

env = environ.Env()


def read[T](cast: Callable[..., T], name: str, default: T) -> T:
    try:
        return cast(name, default=default)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}") from None


BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = embedded.data_folder()
MODE = local.mode()
LOCAL = MODE == local.LOCAL
DEBUG = read(env.bool, "MEMSVC_DEBUG", False)

# ── Secrets ──────────────────────────────────────────────────────────────────────────────────────
SECRET_KEY = read(env.str, "MEMSVC_SECRET_KEY", "")
SECRET_KEY_FALLBACKS: list[str] = read(env.list, "MEMSVC_SECRET_KEY_FALLBACKS", [])
# API keys are stored as HMACs under this pepper; with another pepper no key is known any more.
KEY_PEPPER = read(env.str, "MEMSVC_KEY_PEPPER", "")

# ── Applications ─────────────────────────────────────────────────────────────────────────────────
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "procrastinate.contrib.django",
    "memsvc",
    "tenants",
    "memsvc.tree",
    "memsvc.recall",
    "memsvc.curation",
    "memsvc.transfer",
]
MIDDLEWARE = [
    "memsvc.health.HealthMiddleware",
    "memsvc.logging.RequestLogMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "memsvc.api.memory_stores.envelope.EnvelopeMiddleware",
    "memsvc.api.gate.UrlGateMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "memsvc.curation.database.AdminRoleMiddleware",
]
ROOT_URLCONF = "memsvc.urls"
WSGI_APPLICATION = "memsvc.wsgi.application"
ASGI_APPLICATION = "memsvc.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
AUTH_USER_MODEL = "tenants.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "UNAUTHENTICATED_USER": None,
    "URL_FORMAT_OVERRIDE": None,
    "DEFAULT_SCHEMA_CLASS": "memsvc.api.openapi.generation.ApiSchema",
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "memsvc",
    "DESCRIPTION": "The memory of hosted agents: trees of markdown files, their entries and their history.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/v1",
    "SERVE_URLCONF": "memsvc.api.urls",
    "GET_MOCK_REQUEST": "memsvc.api.openapi.generation.request_of",
    "POSTPROCESSING_HOOKS": ["memsvc.api.openapi.generation.with_answers"],
}
# What a request may carry, and an import.
MAX_BODY_BYTES = read(env.int, "MEMSVC_MAX_BODY_BYTES", 10 * 1024 * 1024)
MAX_IMPORT_BYTES = read(env.int, "MEMSVC_MAX_IMPORT_BYTES", 50 * 1024 * 1024)

# ── Embeddings ───────────────────────────────────────────────────────────────────────────────────
EMBEDDER = read(env.str, "MEMSVC_EMBEDDER", "minilm")
EMBEDDING_URL = read(env.str, "MEMSVC_EMBEDDING_URL", "")
EMBEDDING_KEY = read(env.str, "MEMSVC_EMBEDDING_KEY", "")
EMBEDDING_MODEL = read(env.str, "MEMSVC_EMBEDDING_MODEL", "")

# ── What is noted about reads ────────────────────────────────────────────────────────────────────
ACCESS_COUNTS = read(env.bool, "MEMSVC_ACCESS_COUNTS", True)

# ── Serving ──────────────────────────────────────────────────────────────────────────────────────
WORKERS = read(env.int, "MEMSVC_WORKERS", 2)
THREADS = read(env.int, "MEMSVC_THREADS", 8)

# ── Database ─────────────────────────────────────────────────────────────────────────────────────
PREPARED_STATEMENTS = read(env.bool, "MEMSVC_PREPARED_STATEMENTS", True)
# The pool is per process. With fewer connections than threads, requests would fail under load instead of queueing.
POOL_SIZE = read(env.int, "MEMSVC_POOL_SIZE", THREADS)
ADMIN_POOL_SIZE = 4
# Whether tenants' rows are on several servers, as `manage.py distribute` puts them.
DISTRIBUTED = read(env.bool, "MEMSVC_DISTRIBUTED", False)
# Milliseconds; empty leaves the server's own setting (a pooler in transaction mode wants ALTER ROLE … SET instead).
TIMEOUTS = {
    "statement_timeout": read(env.str, "MEMSVC_STATEMENT_TIMEOUT", "8000"),
    "lock_timeout": read(env.str, "MEMSVC_LOCK_TIMEOUT", "3000"),
    "idle_in_transaction_session_timeout": read(env.str, "MEMSVC_IDLE_IN_TRANSACTION_TIMEOUT", "15000"),
}


def database(url: str) -> dict[str, Any]:
    """A DATABASES entry. libpq's own reader takes every form of URL: sockets, several hosts, TLS parameters."""
    try:
        options = {name: value for name, value in conninfo_to_dict(url).items() if value is not None}
    except ProgrammingError as error:
        raise ImproperlyConfigured(f"DATABASE_URL: {error}") from None
    timeouts = " ".join(f"-c {name}={value}" for name, value in TIMEOUTS.items() if value)
    options["options"] = f"{timeouts} {options.get('options', '')}".strip()
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": options.pop("dbname", embedded.DATABASE),
        "USER": options.pop("user", ""),
        "PASSWORD": options.pop("password", ""),
        "HOST": options.pop("host", ""),
        "PORT": options.pop("port", ""),
        "CONN_MAX_AGE": 0,  # Django refuses a pool otherwise
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": options
        | {
            # After how many times a connection prepares a statement; only those of `memsvc.database.rows` can be.
            "prepare_threshold": 5 if PREPARED_STATEMENTS else None,
            "pool": {"min_size": 1, "max_size": POOL_SIZE, "timeout": 5},
        },
    }


# Who serves, who shows the admin, and who migrates: memsvc/database/rights.py. A process that serves has no need of the
# owner's.
DATABASE_URL, DATABASE_ADMIN_URL, DATABASE_OWNER_URL = (
    read(env.str, name, "") for name in ("DATABASE_URL", "DATABASE_ADMIN_URL", "DATABASE_OWNER_URL")
)
if LOCAL and not DATABASE_URL:
    DATABASE_URL, DATABASE_ADMIN_URL, DATABASE_OWNER_URL = embedded.cluster().urls()
DATABASES = {"default": database(DATABASE_URL), "admin": database(DATABASE_ADMIN_URL)}
DATABASES["admin"]["OPTIONS"]["pool"] |= {"min_size": 0, "max_size": ADMIN_POOL_SIZE}
if DATABASE_OWNER_URL:
    DATABASES["owner"] = database(DATABASE_OWNER_URL)
    del DATABASES["owner"]["OPTIONS"]["pool"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
MIGRATION_MODULES = {app: f"migrations.{app}" for app in ("tenants", "tree", "recall", "curation")}

# ── Jobs ─────────────────────────────────────────────────────────────────────────────────────────
PROCRASTINATE_AUTODISCOVER_MODULE_NAME = "jobs"

# ── Language and time ────────────────────────────────────────────────────────────────────────────
LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

# ── Static files ─────────────────────────────────────────────────────────────────────────────────
STATIC_URL = "static/"
# A local start serves them from where they are and needs no collectstatic.
STATIC_ROOT = None if LOCAL else read(env.str, "MEMSVC_STATIC_ROOT", str(BASE_DIR / "staticfiles"))
WHITENOISE_USE_FINDERS = LOCAL
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if LOCAL
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}

# ── Security ─────────────────────────────────────────────────────────────────────────────────────
ALLOWED_HOSTS = read(env.list, "MEMSVC_ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"] if LOCAL else [])
CSRF_TRUSTED_ORIGINS: list[str] = read(env.list, "MEMSVC_CSRF_TRUSTED_ORIGINS", [])
# Whom to tell of a hole, as mailto: or https:, and until when that holds: /.well-known/security.txt.
SECURITY_CONTACT: list[str] = read(env.list, "MEMSVC_SECURITY_CONTACT", [])
SECURITY_EXPIRES = read(env.str, "MEMSVC_SECURITY_EXPIRES", "")
SECURE_CSP = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "font-src": [CSP.SELF],
    "connect-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "base-uri": [CSP.NONE],
    "frame-ancestors": [CSP.NONE],
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
# TLS ends at a proxy, which must set this header itself on every request, whatever the client sent.
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if read(env.bool, "MEMSVC_BEHIND_PROXY", False) else None
)
# How many proxies, each of which adds the address that it sees to X-Forwarded-For.
TRUSTED_PROXIES = read(env.int, "MEMSVC_TRUSTED_PROXIES", 0)
SECURE_SSL_REDIRECT = not LOCAL
SECURE_HSTS_SECONDS = 0 if LOCAL else read(env.int, "MEMSVC_HSTS_SECONDS", 365 * 24 * 3600)
SECURE_HSTS_INCLUDE_SUBDOMAINS = not LOCAL
SECURE_HSTS_PRELOAD = not LOCAL
SESSION_COOKIE_SECURE = not LOCAL
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 12 * 3600
CSRF_COOKIE_SECURE = not LOCAL
CSRF_COOKIE_HTTPONLY = True

# ── Logs ─────────────────────────────────────────────────────────────────────────────────────────
LOGGING = logging.configuration(
    level=read(env.str, "MEMSVC_LOG_LEVEL", "INFO"),
    format=read(env.str, "MEMSVC_LOG_FORMAT", "plain" if LOCAL else "json"),
)
