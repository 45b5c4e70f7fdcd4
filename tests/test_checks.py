import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.checks import CheckMessage
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from pytest_django import Settings

from memsvc import checks

ROOT = Path(__file__).resolve().parent.parent
GOOD_SECRET = "k3Vq9xZ1-mN7rT5wYb2Lh8Pd4Gf6Js0Ac_EiUoXtQzWvBnMyRl"


def ids(messages: list[CheckMessage]) -> list[str | None]:
    return [message.id for message in messages]


@pytest.fixture
def production(settings: Settings, tmp_path: Path) -> Settings:
    """Settings of a service that is set up rightly, for tests to spoil."""
    (tmp_path / "staticfiles.json").write_text("{}")
    settings.MODE = "production"
    settings.LOCAL = False
    settings.DATABASE_URL = "postgresql://app@db/memsvc"
    settings.ALLOWED_HOSTS = ["memory.example.com"]
    settings.STATIC_ROOT = str(tmp_path)
    return settings


def test_a_right_configuration_has_no_problems(production: Settings) -> None:
    found = [
        checks.check_secret_key(),
        checks.check_key_pepper(),
        checks.check_debug(),
        checks.check_allowed_hosts(),
        checks.check_mode(),
        checks.check_pool(),
        checks.check_embedder(),
        checks.check_static_files(),
        checks.check_unknown_variables(),
    ]

    assert found == [[]] * len(found)


@pytest.mark.parametrize("secret", ["", "short", "a" * 80])
def test_e001_the_secret_key_is_missing_or_weak(production: Settings, secret: str) -> None:
    production.SECRET_KEY = secret

    assert ids(checks.check_secret_key()) == ["memsvc.E001"]


@pytest.mark.parametrize("pepper", ["", "short", "a" * 80])
def test_e002_the_pepper_of_keys_is_missing_or_weak(production: Settings, pepper: str) -> None:
    production.KEY_PEPPER = pepper

    assert ids(checks.check_key_pepper()) == ["memsvc.E002"]


def test_e003_debug_is_for_local_mode_only(production: Settings) -> None:
    production.DEBUG = True
    assert ids(checks.check_debug()) == ["memsvc.E003"]

    production.LOCAL = True
    assert checks.check_debug() == []


@pytest.mark.parametrize("hosts", [[], ["*"], ["memory.example.com", "*"]])
def test_e004_hosts_are_named(production: Settings, hosts: list[str]) -> None:
    production.ALLOWED_HOSTS = hosts

    assert ids(checks.check_allowed_hosts()) == ["memsvc.E004"]


def test_e018_no_fewer_than_no_proxies_stand_in_front(production: Settings) -> None:
    assert checks.check_trusted_proxies() == []
    production.TRUSTED_PROXIES = -1
    assert ids(checks.check_trusted_proxies()) == ["memsvc.E018"]


@pytest.mark.parametrize("host", [".com", ".", ".co.uk", ".com.au", ".dev"])
def test_e030_no_pattern_takes_the_hosts_of_everybody(production: Settings, host: str) -> None:
    production.ALLOWED_HOSTS = ["memory.example.com", host]
    [problem] = checks.check_allowed_hosts()

    assert (problem.id, host in problem.msg, "MEMSVC_ALLOWED_HOSTS=" in (problem.hint or "")) == (
        "memsvc.E030",
        True,
        True,
    )


@pytest.mark.parametrize("host", [".example.com", ".example.co.uk", ".acme.de", "com", "[::1]", "10.0.0.1"])
def test_hosts_of_ones_own_are_taken(production: Settings, host: str) -> None:
    production.ALLOWED_HOSTS = [host]

    assert checks.check_allowed_hosts() == []


@pytest.mark.parametrize(
    ("contact", "expires", "found"),
    [
        ([], "", []),
        (["mailto:security@example.com", "https://example.com/security"], "2999-01-31T00:00:00Z", []),
        (["security@example.com"], "2999-01-31T00:00:00Z", ["memsvc.E031"]),
        (["http://example.com"], "2999-01-31T00:00:00Z", ["memsvc.E031"]),
        (["mailto:a@b.c\nExpires: never"], "2999-01-31T00:00:00Z", ["memsvc.E031"]),
        (["mailto:a@b.c"], "", ["memsvc.E032"]),
        (["mailto:a@b.c"], "2999-01-31", ["memsvc.E032"]),
        (["mailto:a@b.c"], "2001-01-31T00:00:00Z", ["memsvc.E032"]),
    ],
)
def test_e031_e032_who_is_told_of_holes_can_be_reached(
    production: Settings, contact: list[str], expires: str, found: list[str]
) -> None:
    production.SECURITY_CONTACT, production.SECURITY_EXPIRES = contact, expires

    assert ids(checks.check_security_contact()) == found


def test_e005_the_mode_is_one_of_two(production: Settings) -> None:
    production.MODE = "staging"

    assert ids(checks.check_mode()) == ["memsvc.E005"]


def test_e006_production_has_a_database(production: Settings) -> None:
    production.DATABASE_URL = ""

    assert ids(checks.check_mode()) == ["memsvc.E006"]


def test_e007_every_thread_can_have_a_connection(production: Settings) -> None:
    production.THREADS, production.POOL_SIZE = 16, 8

    assert ids(checks.check_pool()) == ["memsvc.E007"]


def test_e008_pooled_connections_are_not_kept_by_threads(
    production: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(production.DATABASES["default"], "CONN_MAX_AGE", 60)

    assert ids(checks.check_pool()) == ["memsvc.E008"]


@pytest.mark.django_db
def test_e010_the_pools_of_all_workers_fit_into_the_server(production: Settings) -> None:
    assert checks.check_max_connections(databases=["default"]) == []

    production.WORKERS = 1000

    assert ids(checks.check_max_connections(databases=["default"])) == ["memsvc.E010"]


def test_the_server_is_not_asked_unless_check_is_told_to(production: Settings) -> None:
    production.WORKERS = 1000

    assert checks.check_max_connections(databases=None) == []


@pytest.mark.parametrize("name", ["minlm", "", "tests.nowhere.made", "nowhere.at.all"])
def test_e011_the_embedder_is_one_of_ours_or_there(production: Settings, name: str) -> None:
    production.EMBEDDER = name

    assert ids(checks.check_embedder()) == ["memsvc.E011"]


@pytest.mark.parametrize("name", ["minilm", "none", "tests.recall.langchain.made"])
def test_an_embedder_that_is_there(production: Settings, name: str) -> None:
    production.EMBEDDER = name

    assert checks.check_embedder() == []


def test_e012_an_endpoint_needs_a_url_and_a_model(production: Settings) -> None:
    production.EMBEDDER = "openai"
    assert ids(checks.check_embedder()) == ["memsvc.E012", "memsvc.E012"]

    production.EMBEDDING_URL, production.EMBEDDING_MODEL = "https://models.example.com/v1", "small"
    assert checks.check_embedder() == []


@pytest.mark.parametrize("url", ["models.example.com/v1", "ftp://models.example.com", "https://"])
def test_e013_an_endpoint_has_an_http_url(production: Settings, url: str) -> None:
    production.EMBEDDER, production.EMBEDDING_URL, production.EMBEDDING_MODEL = "openai", url, "small"

    assert ids(checks.check_embedder()) == ["memsvc.E013"]


def test_w001_a_variable_that_nothing_reads_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSVC_ALOWED_HOSTS", "memory.example.com")

    (message,) = checks.check_unknown_variables()

    assert (message.id, message.msg) == ("memsvc.W001", "MEMSVC_ALOWED_HOSTS is set, but nothing reads it.")


def test_w002_static_files_are_collected(production: Settings, tmp_path: Path) -> None:
    production.STATIC_ROOT = str(tmp_path / "elsewhere")

    assert ids(checks.check_static_files()) == ["memsvc.W002"]


def test_w003_an_endpoint_that_nobody_asks(production: Settings) -> None:
    production.EMBEDDING_URL = "https://models.example.com/v1"

    assert ids(checks.check_embedder()) == ["memsvc.W003"]


def test_the_checks_are_registered_and_stop_commands(production: Settings) -> None:
    production.KEY_PEPPER = ""

    with pytest.raises(SystemCheckError, match=r"memsvc\.E002"):
        call_command("check")


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command with none of this run's configuration."""
    clean = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=clean | environment,
        text=True,
        capture_output=True,
        check=False,
    )


def test_production_settings_pass_the_deployment_checks_without_a_warning(tmp_path: Path) -> None:
    environment = {
        "DATABASE_URL": "postgresql://app:secret@db.example.com/memsvc?sslmode=verify-full",
        "MEMSVC_SECRET_KEY": GOOD_SECRET,
        "MEMSVC_KEY_PEPPER": GOOD_SECRET[::-1],
        "MEMSVC_ALLOWED_HOSTS": "memory.example.com",
        "MEMSVC_BEHIND_PROXY": "on",
        "MEMSVC_STATIC_ROOT": str(tmp_path),
    }
    collected = run("manage.py", "collectstatic", "--no-input", "--verbosity=0", **environment)
    assert collected.returncode == 0, collected.stderr

    checked = run("manage.py", "check", "--deploy", "--fail-level=WARNING", **environment)

    assert (checked.returncode, checked.stderr) == (0, "")
    assert "no issues (0 silenced)" in checked.stdout


def test_the_server_does_not_start_without_a_configuration_and_names_what_is_missing() -> None:
    started = run("-m", "gunicorn", MEMSVC_ENV="production", MEMSVC_BIND="127.0.0.1:0")

    assert started.returncode != 0
    for id in ("memsvc.E001", "memsvc.E002", "memsvc.E004", "memsvc.E006"):
        assert id in started.stderr
    assert "memsvc does not start: see the errors above" in started.stderr


@pytest.mark.parametrize(
    ("name", "value"), [("MEMSVC_THREADS", "many"), ("DATABASE_URL", "mysql://app@db/memsvc")]
)
def test_a_malformed_variable_is_named(name: str, value: str) -> None:
    started = run("-m", "gunicorn", **{"MEMSVC_ENV": "production", name: value})

    assert started.returncode != 0
    assert f"error: {name}" in started.stderr
    assert "Traceback" not in started.stderr
