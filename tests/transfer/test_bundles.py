"""What plain git makes of an exported bundle."""

import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memsvc.format import EntryDraft, MemoryCategory
from memsvc.transfer.bundles import export_bundle
from memsvc.transfer.imports import import_directory
from memsvc.transfer.names import git_name
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.errors import FileNotFound, RevisionNotFound, RevisionPruned
from memsvc.tree.retention import prune_to
from tenants.actors import Actor, ActorKind
from tests.transfer.support import everything, put, read_below
from tests.transfer.test_round_trips import trees

ODD_FILES = {
    "/memory/empty.md": b"",
    "/memory/Kyōto 2026.md": "no line end, 日本語 \u2028".encode(),
    "/memory/picture.png": b"\x89PNG\xff\x00",
    "/memory/back\\slash.md": b"x",
    "/memory/.git/config": b"[core]\n\tfsmonitor = touch /nowhere\n",
    "/memory/.GIT/HEAD": b"x",
    "/.gitattributes": b"* text eol=crlf\n",
    "/memory/a.md": b"dot\n",
    "/memory/a/b.md": b"slash\r\n",
    "/memory/a0": b"zero\n",
}


def git(*arguments: str, folder: Path) -> str:
    command = ["git", "-c", "core.autocrlf=false", "-c", "transfer.fsckObjects=true", *arguments]
    run = subprocess.run(command, cwd=folder, capture_output=True, check=True)
    assert b"warning" not in run.stderr, run.stderr
    return run.stdout.decode()


def cloned(access: Access, folder: Path, revision: int | None = None) -> Path:
    bundle = folder / "export.bundle"
    bundle.write_bytes(b"".join(export_bundle(access, revision)))
    git("bundle", "verify", str(bundle), folder=_repository(folder))
    git("clone", "-q", str(bundle), "clone", folder=folder)
    return folder / "clone"


def _repository(folder: Path) -> Path:
    git("init", "-q", "-b", "main", "empty", folder=folder)
    return folder / "empty"


def checked_out(clone: Path) -> dict[str, bytes]:
    files = read_below(clone)
    return {name: data for name, data in files.items() if not name.startswith(".git/")}


def as_git_has_it(files: dict[str, bytes]) -> dict[str, bytes]:
    return {git_name(path): data for path, data in files.items()}


def test_a_clone_holds_the_tree(memory: Access, tmp_path: Path) -> None:
    put(memory, ODD_FILES)

    clone = cloned(memory, tmp_path)

    assert checked_out(clone) == as_git_has_it(everything(memory))
    assert git("status", "--porcelain", folder=clone) == ""
    git("fsck", "--strict", folder=clone)


def test_the_log_is_the_list_of_revisions(memory: Access, tmp_path: Path) -> None:
    agent = replace(memory, actor=Actor(ActorKind.KEY, "0190-ab", "Support <bot>\n"))
    services.write_file(agent, "/memory/a.md", "one", message="First\n\nwith a reason")
    first = services.add_entry(agent, EntryDraft(category=MemoryCategory.FACTS, body="old"))
    services.add_entry(
        memory, EntryDraft(category=MemoryCategory.FACTS, body="new", supersedes=first.entry.entry_id)
    )
    services.move(memory, "/memory/a.md", "/memory/b.md")
    services.delete(memory, "/memory/b.md")
    services.restore(memory, 1)

    log = git("log", "--reverse", "--format=%an|%ae|%at|%s", folder=cloned(memory, tmp_path)).splitlines()

    revisions = reads.list_revisions(memory).items[::-1]
    assert log == [
        f"{'Support bot' if each.actor_kind == 'key' else each.actor_name}"
        f"|{each.actor_kind}-{each.actor_id}@memsvc|{int(each.at.timestamp())}"
        f"|{each.message.splitlines()[0] if each.message else each.action}"
        for each in revisions
    ]


def test_each_commit_is_the_tree_as_of_its_revision(memory: Access, tmp_path: Path) -> None:
    put(memory, {"/memory/a.md": b"A", "/memory/notes/b.md": b"B"})
    put(memory, {"/memory/a.md": b"B"})
    services.move(memory, "/memory/notes", "/memory/moved")
    put(memory, {"/memory/a.md": b"A"})
    services.delete(memory, "/memory/moved")

    clone = cloned(memory, tmp_path)

    newest = reads.list_revisions(memory).items[0].number
    for number in range(1, newest + 1):
        git("checkout", "-q", f"main~{newest - number}", folder=clone)
        paths = [file.path for file in reads.list_files(memory, revision=number).items]
        expected = {path: reads.read_file(memory, path, revision=number).data for path in paths}
        assert checked_out(clone) == as_git_has_it(expected), number


def test_a_bundle_ends_at_the_revision_asked_for_and_is_always_the_same(
    memory: Access, tmp_path: Path
) -> None:
    put(memory, {"/memory/a.md": b"one"})
    put(memory, {"/memory/a.md": b"two"})
    first = b"".join(export_bundle(memory, 1))
    put(memory, {"/memory/a.md": b"three"})

    assert b"".join(export_bundle(memory, 1)) == first
    assert checked_out(cloned(memory, tmp_path, 2)) == {"memory/a.md": b"two"}


def test_a_bundle_begins_with_the_oldest_revision_that_is_kept(memory: Access, tmp_path: Path) -> None:
    put(memory, {"/memory/a.md": b"one", "/memory/b.md": b"same"})
    put(memory, {"/memory/a.md": b"two"})
    services.move(memory, "/memory/b.md", "/memory/c.md")
    put(memory, {"/memory/a.md": b"three"})
    prune_to(memory.tree, 4)

    clone = cloned(memory, tmp_path)

    log = git("log", "--reverse", "--format=%b", folder=clone)
    assert [line for line in log.splitlines() if line.startswith("Revision")] == [
        "Revision: 4",
        "Revision: 5",
    ]
    assert checked_out(clone) == {"memory/a.md": b"three", "memory/c.md": b"same"}
    git("checkout", "-q", "main~1", folder=clone)
    assert checked_out(clone) == {"memory/a.md": b"two", "memory/c.md": b"same"}
    with pytest.raises(RevisionPruned):
        export_bundle(memory, 3)


def test_what_has_expired_is_in_no_commit(memory: Access, tmp_path: Path) -> None:
    draft = EntryDraft(
        category=MemoryCategory.FACTS, body="canary", expires_at=datetime.now(tz=UTC) + timedelta(hours=1)
    )
    services.add_entry(memory, draft)
    assert "canary" in git("log", "-p", folder=cloned(memory, tmp_path))
    _expire(memory)
    (tmp_path / "later").mkdir()

    assert "canary" not in git("log", "-p", folder=cloned(memory, tmp_path / "later"))


def _expire(access: Access) -> None:
    from memsvc.tree.models import Block, File

    past = datetime.now(tz=UTC) - timedelta(hours=1)
    Block.objects.of(access.tree).filter(expires_at__isnull=False).update(expires_at=past)
    File.objects.of(access.tree).filter(next_expiry__isnull=False).update(next_expiry=past)


def test_an_access_to_a_folder_gets_only_what_happened_in_it(memory: Access, tmp_path: Path) -> None:
    put(memory, {"/private/secret.md": b"canary"})
    put(memory, {"/memory/a.md": b"one"})
    put(memory, {"/private/secret.md": b"canary 2"})

    clone = cloned(replace(memory, prefix="/memory"), tmp_path)

    assert checked_out(clone) == {"memory/a.md": b"one"}
    assert git("log", "--format=%b", folder=clone).strip() == "Revision: 2\nAction: file.write"


def test_there_is_no_bundle_of_nothing(memory: Access) -> None:
    with pytest.raises(FileNotFound):
        export_bundle(memory)
    with pytest.raises(RevisionNotFound):
        export_bundle(memory, 7)


@pytest.mark.parametrize("folder", trees(), ids=lambda folder: folder.parent.name)
def test_other_peoples_trees_come_out_of_a_clone_as_they_went_in(
    memory: Access, folder: Path, tmp_path: Path
) -> None:
    import_directory(memory, folder)

    expected = {f"memory/{name}": data for name, data in read_below(folder).items()}
    assert checked_out(cloned(memory, tmp_path)) == expected
