"""What the results take from deepagents: where a release changes it, these tests say so and agents go on working."""

import ast
import mimetypes
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import httpx
import pytest
from deepagents.backends import FilesystemBackend, utils

from memsvc.agents.backends.results import MEDIA_SUFFIXES
from memsvc.client import MemsvcClient, RemoteBackend

ROOT = Path(__file__).resolve().parents[2]
PRIVATE = "_get_backend_read_file_type"
FOREIGN = ("deepagents", "langchain", "langchain_core", "langgraph")
SUFFIXES = sorted(MEDIA_SUFFIXES | set(mimetypes.types_map) | {".md", ".txt", ".docx", ""})


def test_deepagents_still_has_the_private_name() -> None:
    assert hasattr(utils, PRIVATE), (
        f"deepagents {version('deepagents')} has no {PRIVATE}: memsvc.agents.backends.results goes by its own "
        "MEDIA_SUFFIXES. See what takes its place there; if nothing does, keep only the list."
    )


def test_the_own_list_of_media_is_that_of_deepagents(tmp_path: Path) -> None:
    files = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    shown = {}
    for suffix in SUFFIXES:
        (tmp_path / f"a{suffix}").write_text("text")
        data = files.read(f"/a{suffix}").file_data
        assert data is not None
        shown[suffix] = data["encoding"] == "base64"

    assert {suffix for suffix in SUFFIXES if shown[suffix]} == MEDIA_SUFFIXES, (
        f"deepagents {version('deepagents')} shows other files as media: bring MEDIA_SUFFIXES up to date"
    )


def test_without_the_private_name_media_are_the_same() -> None:
    names = [f"/d.png/a{suffix}{tail}" for suffix in SUFFIXES for tail in ("", ".md", ".PNG")]
    names += [f"/A{suffix.upper()}" for suffix in SUFFIXES] + ["/.png", "/png", "/a.png/b", "/a."]
    asked = (
        f"from memsvc.agents.backends.results import is_media; print([is_media(name) for name in {names!r}])"
    )
    dropped = f"import deepagents.backends.utils as utils; del utils.{PRIVATE}"
    with_it, without_it = (
        subprocess.run(
            [sys.executable, "-c", f"{first}\n{asked}"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for first in ("", dropped)
    )

    assert with_it == without_it
    assert "True" in with_it


def test_no_other_private_name_of_deepagents_is_used() -> None:
    used = set()
    for path in [*ROOT.glob("memsvc/**/*.py"), *ROOT.glob("tests/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            used |= {name for name in names if name.startswith(FOREIGN) and "._" in name}

    assert used == {f"deepagents.backends.utils.{PRIVATE}"}


@pytest.mark.parametrize(("truncated", "reason"), [(False, None), (True, "budget")])
def test_a_listing_that_the_service_cut_says_so(truncated: bool, reason: str | None) -> None:
    listed = {"path": "/memory/a.md", "is_dir": False, "size": 1, "lines": 1, "revision": 1}
    answer = {
        "items": [listed | {"created_at": None, "modified_at": None}],
        "next": None,
        "truncated": truncated,
    }
    service = httpx.MockTransport(lambda _: httpx.Response(200, json=answer))
    backend = RemoteBackend(MemsvcClient("http://memory.test", "msk_12345678_secret", transport=service))

    found = backend.glob("*.md")

    assert [match["path"] for match in found.matches or []] == ["/a.md"]
    assert (found.error, found.truncated, found.truncation_reason) == (None, truncated, reason)
