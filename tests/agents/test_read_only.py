"""A backend that refuses writes to memory, under any spelling of the path."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend
from deepagents.backends.protocol import BackendProtocol, GrepMatch, GrepResult, SandboxBackendProtocol

from memsvc.agents.read_only import ReadOnlyBackend, with_read_only_memory

SPELLINGS = [
    *(
        "/memory/a.md",
        "/memory",
        "/memory/",
        "//memory/a.md",
        "/./memory/a.md",
        "memory/a.md",
        "/memory/.x/y.md",
    ),
    *(
        "/MEMORY/a.md",
        "/Memory/a.md",
        "/\uff4demory/a.md",
        "/memory./a.md",
        "/memory /a.md",
        "\\memory\\a.md",
    ),
    *("/other/../memory/a.md", "/", "", "/memory/a\0.md", "/\ud800"),
]
ELSEWHERE = ["/scratch.md", "/memoryx/a.md", "/notes/memory/a.md", "/%6demory/a.md"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "a.md").write_text("kept tea\n")
    return tmp_path


@pytest.fixture
def guarded(folder: Path) -> BackendProtocol:
    return with_read_only_memory(FilesystemBackend(root_dir=folder, virtual_mode=True))


def every_write(backend: BackendProtocol, path: str) -> list[Any]:
    async def in_a_loop() -> list[Any]:
        return [
            await backend.awrite(path, "x"),
            await backend.aedit(path, "kept", "lost"),
            await backend.adelete(path),
            *await backend.aupload_files([(path, b"x")]),
        ]

    return [
        backend.write(path, "x"),
        backend.edit(path, "kept", "lost"),
        backend.delete(path),
        *backend.upload_files([(path, b"x")]),
        *asyncio.run(in_a_loop()),
    ]


@pytest.mark.parametrize("path", SPELLINGS)
def test_no_spelling_of_the_memory_can_be_written(guarded: BackendProtocol, folder: Path, path: str) -> None:
    refused = [answer.error for answer in every_write(guarded, path)]

    assert all(error.startswith("permission denied") or error == "permission_denied" for error in refused)
    assert [file.relative_to(folder).as_posix() for file in folder.rglob("*.md")] == ["memory/a.md"]
    assert (folder / "memory" / "a.md").read_text() == "kept tea\n"


@pytest.mark.parametrize("path", ELSEWHERE)
def test_other_folders_can_be_written(guarded: BackendProtocol, path: str) -> None:
    assert guarded.write(path, "kept").error is None
    assert asyncio.run(guarded.aedit(path, "kept", "changed")).occurrences == 1
    assert guarded.upload_files([(path, b"x"), ("/memory/b.md", b"x")])[1].error == "permission_denied"
    assert guarded.delete(path).error is None


def test_everything_can_be_read(guarded: BackendProtocol) -> None:
    async def in_a_loop() -> list[Any]:
        return [
            await guarded.als("/memory"),
            await guarded.aread("/memory/a.md"),
            await guarded.agrep("tea", "/memory", max_count=5),
            await guarded.aglob("*.md", "/memory"),
            await guarded.adownload_files(["/memory/a.md"]),
        ]

    assert asyncio.run(in_a_loop()) == [
        guarded.ls("/memory"),
        guarded.read("/memory/a.md"),
        guarded.grep("tea", "/memory", max_count=5),
        guarded.glob("*.md", "/memory"),
        guarded.download_files(["/memory/a.md"]),
    ]
    assert guarded.download_files(["/memory/a.md"])[0].content == b"kept tea\n"


def test_every_route_at_or_below_the_memory_is_read_only(folder: Path) -> None:
    disk = FilesystemBackend(root_dir=folder, virtual_mode=True)
    composite = CompositeBackend(
        default=StateBackend(),
        routes={"/memory/": disk, "/memory/shared/": disk, "/notes/": disk},
        artifacts_root="/notes",
    )

    guarded = with_read_only_memory(composite)

    assert isinstance(guarded, CompositeBackend)
    assert guarded.artifacts_root == "/notes"
    assert guarded.default is composite.default
    assert guarded.write("/memory/x.md", "x").error
    assert guarded.write("/memory/shared/x.md", "x").error
    assert guarded.write("/notes/x.md", "x").error is None
    assert composite.write("/memory/shared/x.md", "x").error is None


def test_a_shell_does_not_get_through(folder: Path) -> None:
    from deepagents.backends import LocalShellBackend

    guarded = with_read_only_memory(LocalShellBackend(root_dir=folder, virtual_mode=True))

    assert not isinstance(guarded, SandboxBackendProtocol)


class Older(BackendProtocol):
    """A backend of an earlier release: without `delete`, and without `max_count`."""

    def grep(self, pattern: str, path: str | None = None, glob: str | None = None) -> GrepResult:  # type: ignore[override]
        return GrepResult(matches=[GrepMatch(path="/a.md", line=line, text=pattern) for line in (1, 2, 3)])


def test_a_backend_of_an_earlier_release_can_be_wrapped() -> None:
    guarded = ReadOnlyBackend(Older(), protected=lambda _: False)

    assert len(guarded.grep("x").matches or []) == 3
    capped = guarded.grep("x", max_count=2)
    assert (len(capped.matches or []), capped.truncated) == (2, True)
    assert guarded.delete("/a.md").error == "deletion is not supported for '/a.md'"
