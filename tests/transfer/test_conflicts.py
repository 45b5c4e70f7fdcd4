"""An older, an edited or a foreign copy comes into a tree that has gone on: what the tree knows stays unless asked."""

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memsvc.contract.imports import ImportReport
from memsvc.contract.requests import EntryDraft, SuccessorRequest
from memsvc.contract.wire import to_json
from memsvc.format import MemoryCategory
from memsvc.transfer.exports import export_directory, export_jsonl
from memsvc.transfer.external import import_jsonl
from memsvc.transfer.imports import import_directory, import_notebooks
from memsvc.transfer.mneme import import_mneme
from memsvc.transfer.names import MANIFEST_NAME
from memsvc.tree import reads, services, statements
from memsvc.tree.access import Access
from memsvc.tree.cloning import clone_tree
from memsvc.tree.commands import OnConflict
from memsvc.tree.errors import EntryNotFound
from memsvc.tree.history.redaction import redact_version
from memsvc.tree.models import Block, File
from memsvc.tree.reads import EntryFilter
from memsvc.tree.retention import prune_to
from tests.transfer.support import bring, everything, exported, outcomes, put, unzipped, zip_of
from tests.transfer.test_jsonl import lines_of, memory_line
from tests.transfer.test_mneme import database, record
from tests.tree.support import of_tenant

FACTS = "/memory/semantic_memory/facts.md"
KEEP, TAKE, BOTH = OnConflict

type Bring = Callable[..., ImportReport]


def add(access: Access, body: str, **fields: Any) -> str:
    draft = EntryDraft(category=MemoryCategory.FACTS, body=body, **fields)
    return services.add_entry(access, draft).entry.entry_id


def bodies(access: Access) -> set[str]:
    return {each.entry.body for each in reads.list_entries(access, EntryFilter(active=None)).items}


def found(report: ImportReport) -> set[tuple[str, str, str]]:
    return {(each.entry_id or each.path, each.differs, each.done) for each in report.differences}


def without_manifest(archive: bytes) -> bytes:
    return zip_of(unzipped(archive))


def edited(archive: bytes, change: Callable[[str], str], path: str = FACTS) -> bytes:
    """An export in which somebody changed a file in an editor; its manifest is as it was."""
    sink = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(sink, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, change(data.decode()).encode() if name == path[1:] else data)
    return sink.getvalue()


def as_jsonl(access: Access) -> bytes:
    return b"".join(export_jsonl(access))


def bring_jsonl(access: Access, data: bytes, **options: Any) -> ImportReport:
    return import_jsonl(access, io.BytesIO(data), **options)


def entries_only(data: bytes) -> bytes:
    lines = [json.loads(line) for line in data.splitlines()]
    return lines_of(*(line for line in lines if line.get("type") == "memory"))


WAYS: dict[str, tuple[Callable[[Access], bytes], Bring]] = {
    "zip": (exported, bring),
    "zip without a manifest": (lambda access: without_manifest(exported(access)), bring),
    "jsonl": (as_jsonl, bring_jsonl),
    "entries by themselves": (lambda access: entries_only(as_jsonl(access)), bring_jsonl),
}


class Older:
    """A tree that went on after a copy of it was made: one entry retired, one superseded, one edited, one added."""

    def __init__(self, access: Access, copy: Callable[[Access], bytes]) -> None:
        self.access = access
        self.retired = add(access, "Lives in Oslo.")
        self.superseded = add(access, "Works at a bank.")
        self.edited = add(access, "Has 2 cats.")
        self.copy = copy(access)
        services.retire_entry(access, self.retired)
        successor = SuccessorRequest(self.superseded, "Works at a school.")
        self.successor = services.supersede_entry(access, successor).entry.entry_id
        services.edit_file(access, FACTS, "Has 2 cats.", "Has 3 cats.")
        self.added = add(access, "Plays chess.")
        self.now = everything(access)
        self.revision = access.tree.revision

    @property
    def number(self) -> int:
        return reads.list_revisions(self.access).items[0].number


@pytest.mark.parametrize("way", WAYS)
def test_an_older_copy_changes_nothing_and_every_difference_is_told(memory: Access, way: str) -> None:
    copy, bring_in = WAYS[way]
    older = Older(memory, copy)
    number = older.number

    dry_run = bring_in(memory, older.copy, dry_run=True)
    report = bring_in(memory, older.copy)

    assert (everything(memory), older.number) == (older.now, number)
    assert found(report) >= {
        (older.retired, "retired", "kept"),
        (older.superseded, "superseded", "kept"),
        (older.edited, "entry", "kept"),
    }
    if way != "entries by themselves":
        assert (older.added, "added", "kept") in found(report)
    assert replace(report, dry_run=True) == dry_run


@pytest.mark.parametrize("way", WAYS)
def test_an_older_copy_is_taken_where_that_is_asked_for(memory: Access, way: str) -> None:
    copy, bring_in = WAYS[way]
    older = Older(memory, copy)

    dry_run = bring_in(memory, older.copy, on_conflict=TAKE, dry_run=True)
    report = bring_in(memory, older.copy, on_conflict=TAKE)

    assert {"Lives in Oslo.", "Has 2 cats."} <= bodies(memory)
    assert "Has 3 cats." not in bodies(memory)
    assert found(report) >= {(older.retired, "retired", "taken"), (older.edited, "entry", "taken")}
    assert replace(report, dry_run=True) == replace(dry_run, revision=report.revision)
    if way != "entries by themselves":
        assert (older.added, "added", "taken") in found(report)
        assert bring_in(memory, older.copy, on_conflict=TAKE).revision == report.revision


@pytest.mark.parametrize("way", WAYS)
def test_both_statements_are_there_and_twice_is_the_same_as_once(memory: Access, way: str) -> None:
    copy, bring_in = WAYS[way]
    older = Older(memory, copy)

    dry_run = bring_in(memory, older.copy, on_conflict=BOTH, dry_run=True)
    report = bring_in(memory, older.copy, on_conflict=BOTH)
    once = everything(memory)
    again = bring_in(memory, older.copy, on_conflict=BOTH)

    assert {"Lives in Oslo.", "Has 2 cats.", "Has 3 cats.", "Plays chess.", "Works at a school."} <= bodies(
        memory
    )
    assert reads.get_entry(memory, older.edited).entry.body == "Has 3 cats."
    assert reads.get_entry(memory, older.superseded).entry.superseded_by == older.successor
    assert (everything(memory), again.revision) == (once, report.revision)
    assert replace(report, dry_run=True) == replace(dry_run, revision=report.revision)


@pytest.mark.parametrize("on_conflict", OnConflict)
@pytest.mark.parametrize("way", WAYS)
def test_a_fresh_tree_takes_everything(
    memory: Access, other: Access, way: str, on_conflict: OnConflict
) -> None:
    copy, bring_in = WAYS[way]
    older = Older(memory, copy)

    report = bring_in(other, older.copy, on_conflict=on_conflict)

    assert bodies(other) == {"Lives in Oslo.", "Works at a bank.", "Has 2 cats."}
    assert report.differences == []


@pytest.mark.parametrize("way", ["zip", "zip without a manifest", "jsonl"])
def test_a_tree_in_which_nobody_wrote_takes_everything(memory: Access, other: Access, way: str) -> None:
    copy, bring_in = WAYS[way]
    for access in (memory, other):
        services.scaffold(access)
    services.write_file(memory, "/memory/preferences.md", "# Preferences\n\nTea, no coffee.\n")
    index = everything(memory)["/memory/index.md"].replace(b"# ", b"# Our own ", 1)
    services.write_file(memory, "/memory/index.md", index)
    add(memory, "Fact.", summary="A fact")

    bring_in(other, copy(memory))

    assert everything(other) == everything(memory)


@pytest.mark.parametrize("way", ["zip", "zip without a manifest", "jsonl"])
def test_a_file_that_was_emptied_stays_empty(memory: Access, way: str) -> None:
    copy, bring_in = WAYS[way]
    put(memory, {"/notes.md": b"old\n"})
    old = copy(memory)
    put(memory, {"/notes.md": b""})

    bring_in(memory, old)

    assert everything(memory) == {"/notes.md": b""}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_new_in_a_copy_comes_in(memory: Access, other: Access, way: str) -> None:
    copy, bring_in = WAYS[way]
    mine = add(memory, "Mine.")
    bring_in(other, copy(memory))
    theirs = add(other, "Theirs.")
    successor = services.supersede_entry(other, SuccessorRequest(mine, "Better.")).entry.entry_id
    add(memory, "Later.")

    bring_in(memory, copy(other))

    assert bodies(memory) == {"Mine.", "Theirs.", "Better.", "Later."}
    assert reads.get_entry(memory, theirs).path == FACTS
    assert reads.get_entry(memory, mine).entry.superseded_by == successor


# --- exports that were edited ------------------------------------------------------------------------------------


def test_an_edit_of_an_export_is_taken_byte_for_byte(memory: Access) -> None:
    add(memory, "Has 2 cats.")
    gone = add(memory, "Lives in Oslo.")
    put(memory, {"/memory/notes.md": b"# Notes\r\n\r\nold\r\n"})
    archive = edited(
        exported(memory), lambda text: text.replace("2 cats", "3 cats").rpartition("---\nid:")[0]
    )
    archive = edited(archive, lambda text: text.replace("old", "new"), "/memory/notes.md")

    report = bring(memory, archive)

    assert bodies(memory) == {"Has 3 cats."}
    assert everything(memory)["/memory/notes.md"] == b"# Notes\r\n\r\nnew\r\n"
    assert (gone, "removed", "taken") in found(report)


def test_where_both_went_on_each_entry_is_what_was_changed(memory: Access) -> None:
    ids = [add(memory, f"Fact {n}.") for n in range(4)]
    archive = exported(memory)
    services.edit_file(memory, FACTS, "Fact 0.", "Fact 0, here.")
    services.edit_file(memory, FACTS, "Fact 2.", "Fact 2, here.")
    services.retire_entry(memory, ids[3])
    later = add(memory, "Later.")
    theirs = "\n---\nid: theirs\ncreated: 2026-05-01\ncategory: facts\n---\n\nTheirs.\n"

    def change(text: str) -> str:
        text = text.replace("Fact 1.", "Fact 1, there.").replace("Fact 2.", "Fact 2, there.")
        return f"Read this first.\n\n{text}{theirs}"

    report = bring(memory, edited(archive, change))

    assert bodies(memory) == {"Fact 0, here.", "Fact 1, there.", "Fact 2, here.", "Later.", "Theirs."}
    assert everything(memory)[FACTS].startswith(b"Read this first.\n")
    assert found(report) >= {
        (ids[1], "entry", "taken"),
        (ids[2], "entry", "kept"),
        (ids[3], "retired", "kept"),
        (later, "added", "kept"),
        (FACTS, "text", "taken"),
    }


def test_an_export_that_was_edited_as_a_directory_comes_back(memory: Access, tmp_path: Path) -> None:
    add(memory, "Has 2 cats.")
    export_directory(memory, tmp_path / "out")
    file = tmp_path / "out" / FACTS[1:]
    file.write_bytes(file.read_bytes().replace(b"2 cats", b"3 cats"))

    import_directory(memory, tmp_path / "out")

    assert bodies(memory) == {"Has 3 cats."}


def test_the_copy_of_another_tree_is_no_base(memory: Access) -> None:
    entry_id = add(memory, "Has 2 cats.")
    clone = Access(clone_tree(memory, "clone"), memory.actor)
    services.edit_file(clone, FACTS, "2 cats", "3 cats")
    add(clone, "New there.")

    report = bring(memory, exported(clone))

    assert bodies(memory) == {"Has 2 cats.", "New there."}
    assert (entry_id, "entry", "kept") in found(report)


# --- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("manifest", [True, False])
@pytest.mark.parametrize("how", ["deleted", "moved"])
def test_a_file_that_is_gone_is_not_brought_back(memory: Access, how: str, manifest: bool) -> None:
    entry_id = add(memory, "Fact.")
    put(memory, {"/memory/notes.md": b"notes\n", "/a.bin": b"\xff\0"})
    archive = exported(memory) if manifest else without_manifest(exported(memory))
    for path in (FACTS, "/memory/notes.md", "/a.bin"):
        if how == "moved":
            services.move(memory, path, f"{path[:-4]}-moved{path[-4:]}")
        else:
            services.delete(memory, path)
    now = everything(memory)

    report = bring(memory, archive)

    assert everything(memory) == now
    assert found(report) >= {(path, "deleted", "kept") for path in (FACTS, "/memory/notes.md", "/a.bin")}
    assert (entry_id, "retired" if how == "deleted" else "elsewhere", "kept") in found(report)
    bring(memory, archive, on_conflict=TAKE)
    assert everything(memory).items() >= {"/memory/notes.md": b"notes\n", "/a.bin": b"\xff\0"}.items()


def test_another_file_at_the_place_of_a_deleted_one_comes_in(memory: Access) -> None:
    put(memory, {"/memory/todo.md": b"buy milk\n"})
    services.delete(memory, "/memory/todo.md")

    bring(memory, zip_of({"memory/todo.md": b"call Ann\n"}))

    assert everything(memory)["/memory/todo.md"] == b"call Ann\n"


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [(b"# Mine\n", b"# Theirs\n"), (b"\xff\0mine", b"\xff\0theirs"), (b"a\r\nb\r\n", b"a\r\nc\r\n")],
)
def test_text_that_differs_stays_is_taken_or_lies_beside(memory: Access, mine: bytes, theirs: bytes) -> None:
    put(memory, {"/notes/a.md": mine})
    archive = zip_of({"notes/a.md": theirs})

    kept = bring(memory, archive)
    assert (everything(memory), found(kept)) == ({"/notes/a.md": mine}, {("/notes/a.md", "text", "kept")})
    both = bring(memory, archive, on_conflict=BOTH)
    [beside] = set(everything(memory)) - {"/notes/a.md"}
    assert "imported" in beside
    assert everything(memory) == {"/notes/a.md": mine, beside: theirs}
    assert outcomes(both)[beside] == "created"
    assert bring(memory, archive, on_conflict=BOTH).revision == both.revision
    bring(memory, archive, on_conflict=TAKE)
    assert everything(memory)["/notes/a.md"] == theirs


def test_an_older_index_does_not_overwrite_newer_rows(memory: Access) -> None:
    add(memory, "Fact.", summary="Old summary")
    archive = exported(memory)
    add(memory, "Fact 2.", summary="New summary")
    put(memory, {"/memory/semantic_memory/team.md": b"# The team\n"})
    now = everything(memory)

    for each in (archive, without_manifest(archive)):
        bring(memory, each)
        assert everything(memory) == now


def test_the_index_tells_of_entries_that_came_into_a_file(memory: Access, other: Access) -> None:
    add(memory, "Fact.", summary="Old summary")
    bring(other, exported(memory))
    add(other, "Fact 2.", summary="New summary", tags=("new",))

    bring(memory, zip_of({FACTS[1:]: everything(other)[FACTS]}))

    index = everything(memory)["/memory/semantic_memory/index.md"].decode()
    assert "New summary" in index
    assert "new" in index


def test_notebooks_follow_the_rule(memory: Access) -> None:
    put(memory, {"/agents/main/MEMORY.md": b"- mine\n"})
    archive = io.BytesIO(zip_of({".deep/memory/main/MEMORY.md": b"- theirs\n"}))

    report = import_notebooks(memory, archive)
    assert everything(memory) == {"/agents/main/MEMORY.md": b"- mine\n"}
    assert found(report) == {("/agents/main/MEMORY.md", "text", "kept")}
    import_notebooks(memory, archive, on_conflict=BOTH)
    assert sorted(everything(memory).values()) == [b"- mine\n", b"- theirs\n"]
    import_notebooks(memory, archive, on_conflict=TAKE)
    assert everything(memory)["/agents/main/MEMORY.md"] == b"- theirs\n"


@pytest.mark.parametrize("on_conflict", OnConflict)
def test_mneme_follows_the_rule(memory: Access, tmp_path: Path, on_conflict: OnConflict) -> None:
    path = database(tmp_path, record("gone"), record("changed"), record("same"))
    import_mneme(memory, path)
    services.retire_entry(memory, "gone")
    file = reads.get_entry(memory, "changed").path
    services.edit_file(memory, file, "What changed says.", "Something else.")

    report = import_mneme(memory, path, on_conflict=on_conflict)

    was = {"What gone says.", "What changed says."}
    expected = {KEEP: {"Something else."}, TAKE: was, BOTH: {"Something else.", *was}}[on_conflict]
    assert bodies(memory) == {"What same says.", *expected}
    done = {KEEP: "kept", TAKE: "taken", BOTH: "both"}[on_conflict]
    assert found(report) == {("gone", "retired", done), ("changed", "entry", done)}
    assert import_mneme(memory, path, on_conflict=on_conflict).revision == report.revision


@pytest.mark.parametrize("on_conflict", OnConflict)
def test_a_key_of_one_folder_changes_and_learns_nothing_of_others(
    memory: Access, on_conflict: OnConflict
) -> None:
    bring_jsonl(memory, lines_of(memory_line("a", path="/private/a.md")))
    limited = Access(tree=memory.tree, actor=memory.actor, prefix="/open")

    report = bring_jsonl(
        limited, lines_of(memory_line("a", path="/open/a.md", content="Else.")), on_conflict=on_conflict
    )

    assert "What a says." in bodies(memory)
    assert "private" not in json.dumps(to_json(report))


def test_of_two_documents_at_one_path_the_first_counts(memory: Access) -> None:
    one, two = ({"type": "document", "path": "/a.md", "content": text} for text in ("one", "two"))

    report = bring_jsonl(memory, lines_of(one, two))

    assert everything(memory) == {"/a.md": b"one"}
    assert [file.outcome for file in report.files] == ["created", "refused"]


def test_one_bad_name_in_json_lines_is_an_item(memory: Access) -> None:
    long = "é" * 200
    bad, good = ({"type": "document", "path": path, "content": "x"} for path in (f"/{long}", "/a.md"))
    lines = lines_of(bad, memory_line("m", path=f"/{long}"), good)

    report = bring_jsonl(memory, lines)

    assert everything(memory) == {"/a.md": b"x"}
    assert sorted(file.outcome for file in report.files) == ["created", "refused"]
    assert [(each.entry_id, each.outcome) for each in report.entries] == [("m", "refused")]


def test_metadata_that_differs_is_a_difference(memory: Access) -> None:
    bring_jsonl(memory, lines_of(memory_line("a", metadata={"project": "apollo"})))

    report = bring_jsonl(memory, lines_of(memory_line("a", metadata={"project": "gemini"})))

    assert found(report) == {("a", "entry", "kept")}
    assert reads.get_entry(memory, "a").metadata == {"project": "apollo"}


def test_one_id_twice_in_an_import_hides_nothing(memory: Access) -> None:
    lines = lines_of(memory_line("a", content="one"), memory_line("a", content="two"))

    assert [each.outcome for each in bring_jsonl(memory, lines).entries] == ["created", "skipped"]
    bring_jsonl(memory, lines, on_conflict=BOTH)
    assert bodies(memory) == {"one", "two"}


# --- what is gone for good ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_what_was_redacted_is_not_brought_back(memory: Access, way: str) -> None:
    copy, bring_in = WAYS[way]
    secret = add(memory, "The secret.")
    add(memory, "Harmless.")
    old = copy(memory)
    services.retire_entry(memory, secret)
    content_id = Block.objects.filter(entry_id=secret).values_list("file_id", flat=True)[0]
    for number in (1, 2):
        redact_version(memory, content_id, number)
    assert not Block.objects.filter(entry_id=secret).exists()

    report = bring_in(memory, old)

    assert bodies(memory) == {"Harmless."}
    assert (secret, "retired", "kept") in found(report)


@pytest.mark.parametrize("way", ["zip", "zip without a manifest", "jsonl"])
@pytest.mark.parametrize("now", [None, b""])
def test_redacted_text_is_not_brought_back(memory: Access, way: str, now: bytes | None) -> None:
    copy, bring_in = WAYS[way]
    put(memory, {"/notes.md": b"The secret.\n"})
    old = copy(memory)
    if now is None:
        services.delete(memory, "/notes.md")
    else:
        put(memory, {"/notes.md": now})
    redact_version(memory, File.objects.get(path="/notes.md").pk, 1)

    bring_in(memory, old)

    assert everything(memory) == ({} if now is None else {"/notes.md": now})


def test_what_retention_forgot_is_not_brought_back_by_an_export_of_the_tree(memory: Access) -> None:
    gone = add(memory, "Gone.")
    add(memory, "Stays.")
    put(memory, {"/memory/notes.md": b"notes\n"})
    archive = exported(memory)
    services.retire_entry(memory, gone)
    services.delete(memory, "/memory/notes.md")
    prune_to(memory.tree, reads.list_revisions(memory).items[0].number)
    now = everything(memory)

    report = bring(memory, archive)

    assert everything(memory) == now
    assert found(report) >= {(gone, "retired", "kept"), ("/memory/notes.md", "deleted", "kept")}


# --- expiry ------------------------------------------------------------------------------------------------------


def test_expiry_travels_with_a_zip_and_a_directory(memory: Access, other: Access, tmp_path: Path) -> None:
    soon = datetime.now(tz=UTC) + timedelta(hours=1)
    entry_id = add(memory, "For an hour.", expires_at=soon)
    add(memory, "For good.")

    bring(other, exported(memory))

    assert reads.get_entry(other, entry_id).expires_at == soon
    rows = Block.objects.filter(tree_id=other.tree.pk, expires_at__isnull=False)
    mine = Block.objects.filter(tree_id=memory.tree.pk, expires_at__isnull=False, removed_in=None)
    with of_tenant(other):
        copied = rows.count()
    with of_tenant(memory):
        assert mine.count() == copied
    export_directory(memory, tmp_path / "out")
    clone = Access(clone_tree(other, "empty", revision=0), other.actor)
    import_directory(clone, tmp_path / "out")
    assert reads.get_entry(clone, entry_id).expires_at == soon


@pytest.mark.parametrize("way", ["zip", "jsonl"])
def test_of_two_entries_with_one_id_the_right_one_expires(memory: Access, other: Access, way: str) -> None:
    copy, bring_in = WAYS[way]
    text = "---\nid: twice\ncreated: 2026-05-01\ncategory: facts\n---\n\n{}\n"
    put(memory, {FACTS: f"{text.format('one')}\n{text.format('two')}".encode()})
    soon = datetime.now(tz=UTC) + timedelta(hours=1)
    Block.objects.filter(tree_id=memory.tree.pk, text__contains="two").update(expires_at=soon)
    statements.count_entries(memory.tree)

    bring_in(other, copy(memory))

    expiring = Block.objects.filter(tree_id=other.tree.pk, expires_at=soon, kind="entry")
    assert [row.text.strip() for row in expiring] == ["two"]


def test_an_expiry_that_can_not_travel_is_a_warning(memory: Access, other: Access) -> None:
    add(memory, "For an hour.", expires_at=datetime.now(tz=UTC) + timedelta(hours=1))
    services.move(memory, FACTS, "/notes.txt")

    report = bring(other, exported(memory))

    assert ["stay here" in warning for warning in report.warnings] == [True]


def test_an_expired_entry_is_not_brought_back(memory: Access) -> None:
    entry_id = add(memory, "For a moment.", expires_at=datetime.now(tz=UTC) + timedelta(hours=1))
    add(memory, "For good.")
    archive = exported(memory)
    Block.objects.filter(tree_id=memory.tree.pk, entry_id=entry_id).update(
        expires_at=datetime.now(tz=UTC) - timedelta(hours=1)
    )

    for each in (archive, without_manifest(archive)):
        report = bring(memory, each)
        assert (entry_id, "retired", "kept") in found(report)
    with pytest.raises(EntryNotFound):
        reads.get_entry(memory, entry_id)


def test_a_forged_manifest_does_no_harm(memory: Access) -> None:
    add(memory, "Fact.")
    now = everything(memory)
    manifest: dict[str, Any] = {"format": "memsvc-export/1", "renamed": {}, "tree_id": str(memory.tree.pk)}
    for more in (
        {"revision": "x", "sha256": [], "expires": []},
        {"revision": 10**30, "sha256": {FACTS[1:]: 7}, "expires": {FACTS[1:]: [[1], ["a", "b", "c"], None]}},
        {"revision": -1, "expires": {FACTS[1:]: "x"}, "expiries_lost": "many"},
    ):
        data = json.dumps({**manifest, **more}).encode()
        bring(memory, zip_of({FACTS[1:]: now[FACTS], "memory/n.md": b"n", MANIFEST_NAME: data}))
    assert everything(memory)[FACTS] == now[FACTS]


def test_differences_are_counted_where_they_are_too_many_to_list(memory: Access) -> None:
    lines = [memory_line(f"m{n}") for n in range(1005)]
    bring_jsonl(memory, lines_of(*lines))

    report = bring_jsonl(memory, lines_of(*({**line, "content": "Else."} for line in lines)))

    assert (len(report.differences), report.more_differences) == (1000, 5)
