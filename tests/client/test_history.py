"""The client's view of history, against the real server."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memsvc.client import MemsvcClient
from memsvc.client.errors import InvalidRequest, NotFound, PreconditionFailed, RevisionPruned, UndoRefused
from memsvc.format import MemoryCategory
from memsvc.tree.models import Tree
from memsvc.tree.retention import prune_to
from tests.tree.support import from_outside

pytestmark = pytest.mark.django_db(transaction=True)

FACTS = "/memory/semantic_memory/facts.md"


def test_a_read_is_as_of_a_revision_or_an_instant(client: MemsvcClient) -> None:
    client.write_file("/a.md", "one\n")
    then = client.list_revisions().items[0].at
    entry = client.add_entry(MemoryCategory.FACTS, "Berlin").entry.entry_id
    client.write_file("/a.md", "two\n")

    for moment in (1, then):
        assert client.read_text("/a.md", revision=moment) == "one\n"
        assert client.read_lines("/a.md", revision=moment).text == "one\n"
        assert [file.path for file in client.iter_files(revision=moment)] == ["/a.md"]
        assert client.search("Berlin", revision=moment).items == ()
        assert client.grep("Berlin", revision=moment).items == ()
        with pytest.raises(NotFound):
            client.get_entry(entry, revision=moment)
    assert client.get_entry(entry, revision=2).entry.body == "Berlin"
    assert list(client.iter_files(revision=datetime(2020, 1, 1, tzinfo=UTC))) == []
    with pytest.raises(NotFound):
        client.read_text("/a.md", revision=9)


def test_revisions_say_who_did_what(client: MemsvcClient) -> None:
    client.write_file("/a.md", "one\n", message="because")
    old = client.add_entry(MemoryCategory.FACTS, "Berlin").entry.entry_id
    new = client.supersede_entry(old, "Bonn").entry.entry_id

    newest, *_ = client.list_revisions(limit=1).items
    detail = client.get_revision(newest.number)

    assert (newest.number, newest.action, newest.actor_kind) == (3, "entry.supersede", "key")
    assert {(change.path, change.action) for change in detail.files} >= {(FACTS, "changed")}
    assert {(change.entry_id, change.action) for change in detail.entries} == {
        (old, "superseded"),
        (new, "added"),
    }
    assert [each.number for each in client.list_revisions(path="/a.md").items] == [1]
    assert [each.message for each in client.list_revisions(path="/a.md").items] == ["because"]
    assert client.list_revisions(actor="nobody").items == ()
    assert client.list_revisions(until=datetime(2020, 1, 1, tzinfo=UTC)).items == ()
    assert [(v.action, v.entry.entry_id) for v in client.entry_history(new)] == [
        ("added", old),
        ("added", new),
        ("superseded", old),
    ]


def test_differences_can_be_applied_by_git(client: MemsvcClient, tmp_path: Path) -> None:
    client.upload_files(
        [
            ("/a/keep.md", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"),
            ("/a/gone.md", b"gone"),
            ('/a/empty \xc3\xa4 "x".md'.encode("latin-1").decode(), b""),
        ]
    )
    client.write_file("/a/keep.md", "one\n2\n3\n4\n5\n6\n7\n8\nnine\u2028\rten")
    client.delete("/a/gone.md")
    client.move("/a/keep.md", "/b/kept.md")
    client.write_file("/new.md", "new\r\n")
    client.write_file("/empty.md", "")
    folder = tmp_path / "exported"
    _unpack(client, folder, revision=1)

    unified = "".join(each.unified for each in client.diff(1))
    subprocess.run(["git", "apply", "--whitespace=nowarn"], input=unified.encode(), cwd=folder, check=True)

    assert _files(folder) == {file.path: client.read_bytes(file.path).data for file in client.iter_files()}


def _unpack(client: MemsvcClient, folder: Path, *, revision: int) -> None:
    for file in client.iter_files(revision=revision):
        target = folder / file.path[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(client.read_bytes(file.path, revision=revision).data)
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)


def _files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {f"/{path.relative_to(folder)}": path.read_bytes() for path in found}


def test_lines_are_blamed(client: MemsvcClient) -> None:
    client.write_file("/a.md", "one\ntwo\n")
    client.append_file("/a.md", "three\n")

    blame = client.blame("/a.md")

    assert [(line.line, line.text, line.revision) for line in blame.lines] == [
        (1, "one", 1),
        (2, "two", 1),
        (3, "three", 2),
    ]
    assert blame.revisions[2].action == "file.append"
    assert [line.text for line in client.blame("/a.md", revision=1).lines] == ["one", "two"]


def test_what_was_is_brought_back(client: MemsvcClient) -> None:
    client.write_file("/a.md", "one\n")
    entry = client.add_entry(MemoryCategory.FACTS, "Berlin").entry.entry_id
    client.write_file("/a.md", "two\n")
    client.retire_entry(entry)

    assert client.restore(1, path="/a.md", message="back").paths == ("/a.md",)
    assert client.restore_entry(entry, 2).paths == (FACTS,)
    assert not {"/a.md", FACTS} & set(client.restore(2).paths)
    assert (client.read_text("/a.md"), client.get_entry(entry).entry.body) == ("one\n", "Berlin")
    with pytest.raises(NotFound):
        client.restore(99)


def test_an_undo_keeps_what_others_did(client: MemsvcClient) -> None:
    client.write_file("/a.md", "one\ntwo\n")
    client.edit_file("/a.md", "one", "1")
    client.write_file("/b.md", "b")

    dry = client.undo(revision=2, dry_run=True)
    undone = client.undo(revision=2, message="no")

    assert (dry.revision, dry.undone, dry.paths) == (3, (2,), ("/a.md",))
    assert (undone.revision, undone.conflicts) == (4, ())
    assert client.read_text("/a.md") == "one\ntwo\n"
    client.write_file("/b.md", "changed")
    with pytest.raises(UndoRefused) as refused:
        client.undo(revision=3)
    assert [each["path"] for each in refused.value.conflicts] == ["/b.md"]
    assert client.undo(revision=3, skip_conflicts=True).conflicts[0].path == "/b.md"
    assert client.undo(actor=client.me().key_id, since=5).undone == (5,)
    with pytest.raises(InvalidRequest):
        client.undo()


def test_of_two_writers_one_wins_and_the_other_learns_what_is_there(client: MemsvcClient) -> None:
    etag = client.write_file("/a.md", "one\n").etag
    now = client.write_file("/a.md", "two\n", if_match=etag)

    with pytest.raises(PreconditionFailed) as failed:
        client.write_file("/a.md", "three\n", if_match=etag)

    assert (failed.value.revision, failed.value.etag) == (now.revision, now.etag)
    assert client.write_file("/a.md", "two\n", if_match=etag).changed is False


def test_what_is_no_longer_kept_is_an_error_of_its_own(client: MemsvcClient) -> None:
    client.write_file("/a.md", "one\n")
    client.write_file("/a.md", "two\n")
    with from_outside():
        prune_to(Tree.objects.get(), 2)

    with pytest.raises(RevisionPruned) as refused:
        client.read_text("/a.md", revision=1)

    assert (refused.value.oldest, client.describe().history_from) == (2, 2)
    assert client.read_text("/a.md", revision=2) == "two\n"
