"""What can be said about the image and the compose file without a container engine."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from memsvc.checks import KNOWN_VARIABLES
from memsvc.embedded import URLS

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    return loaded


@pytest.fixture(scope="module")
def dockerfile() -> str:
    return (ROOT / "Dockerfile").read_text()


def test_every_variable_that_the_image_and_compose_set_is_read_by_the_service(
    compose: dict[str, Any], dockerfile: str
) -> None:
    named = set(re.findall(r"MEMSVC_[A-Z_]+(?==)", dockerfile))
    for service in ("web", "worker", "migrate"):
        named |= {name for name in compose["services"][service]["environment"] if name.startswith("MEMSVC_")}

    assert named
    assert named <= KNOWN_VARIABLES


def test_every_file_that_the_service_needs_reaches_the_image(dockerfile: str) -> None:
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}

    assert {name for name in let_in if not (ROOT / name).exists()} == set()
    assert {"manage.py", "gunicorn.conf.py", "memsvc", "tenants", "migrations", "LICENSE"} <= let_in
    for line in re.findall(r"^COPY ([^-\n]+) \./$", dockerfile, re.MULTILINE):
        assert set(line.split()) <= let_in


def test_the_licence_that_is_declared_is_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["license"] == "Apache-2.0"
    assert (
        "Apache License\n                           Version 2.0, January 2004"
        in (ROOT / "LICENSE").read_text()
    )
    assert all((ROOT / name).is_file() for name in project["license-files"])


def test_the_image_runs_without_rights_and_tells_its_health(dockerfile: str) -> None:
    final = dockerfile.split("\nFROM ")[-1]

    assert "\nUSER memsvc\n" in final
    assert "/healthz" in final[final.index("HEALTHCHECK") :]
    assert final.index("USER memsvc") < final.index("CMD")


def test_the_image_has_the_python_of_the_project_and_the_uv_of_the_makefile(dockerfile: str) -> None:
    python = (ROOT / ".python-version").read_text().strip()
    uv = re.search(r"^UV_VERSION := (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert uv is not None

    assert re.findall(r"^FROM python:([\d.]+)", dockerfile, re.MULTILINE) == [python, python]
    assert f"uv=={uv[1]}\n" in dockerfile


def test_the_service_starts_after_its_migrations_with_no_secret_in_the_file(compose: dict[str, Any]) -> None:
    services = compose["services"]

    for name in ("web", "worker"):
        assert services[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert services["migrate"]["depends_on"]["database"] == {"condition": "service_healthy"}
    assert "ports" not in services["database"]
    for name in ("MEMSVC_SECRET_KEY", "MEMSVC_KEY_PEPPER"):
        assert re.fullmatch(r"\$\{\w+:\?.+\}", services["web"]["environment"][name])


def test_only_who_migrates_knows_the_owner_of_the_tables(compose: dict[str, Any]) -> None:
    services = compose["services"]
    urls = {name: value for name, value in services["migrate"]["environment"].items() if "DATABASE" in name}

    assert set(urls) == set(URLS)
    assert len({re.match(r"postgresql://(\w+):\$\{\w+:\?", url)[1] for url in urls.values()}) == 3  # type: ignore[index]
    for name in ("web", "worker"):
        assert set(services[name]["environment"]) & set(URLS) == set(URLS[:2])
        assert services[name]["environment"]["DATABASE_URL"] == urls["DATABASE_URL"]


def test_the_worker_is_a_service_of_its_own_with_the_same_model(compose: dict[str, Any]) -> None:
    web, worker = compose["services"]["web"], compose["services"]["worker"]

    assert worker["command"] == ["python", "manage.py", "worker"]
    assert worker["environment"] == web["environment"]
    assert worker["healthcheck"] == {"disable": True}
