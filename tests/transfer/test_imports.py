import os
from dataclasses import replace
from pathlib import Path

import pytest

from memsvc.contract.imports import OpaqueBlock, Outcome
from memsvc.transfer.imports import import_directory
from memsvc.transfer.refusals import ImportRefused
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.commands import OnConflict
from memsvc.tree.errors import Forbidden, ReadOnly
from tests.transfer.support import bring, everything, exported, outcomes, put, write_below, zip_of

FACT = b"---\nid: mem_1\ncreated: 2026-05-01\ncategory: facts\n---\n\nWater is wet.\n"


def revision_of(access: Access) -> int:
    with reads.export_source(access) as taken:
        return taken.revision


def test_a_whole_tree_comes_in_as_one_revision(memory: Access) -> None:
    report = bring(memory, zip_of({"memory/semantic_memory/facts.md": FACT, "agents/x.md": b"beside\n"}))

    assert everything(memory) == {"/memory/semantic_memory/facts.md": FACT, "/agents/x.md": b"beside\n"}
    assert (report.revision, revision_of(memory)) == (1, 1)


def test_the_content_of_a_memory_folder_goes_under_memory(memory: Access) -> None:
    bring(memory, zip_of({"semantic_memory/facts.md": FACT, "notes.md": b"n"}))

    assert set(everything(memory)) == {"/memory/semantic_memory/facts.md", "/memory/notes.md"}


def test_other_names_are_paths_of_the_tree(memory: Access) -> None:
    bring(memory, zip_of({"agents/main/MEMORY.md": b"n", "index/a.md": b"i"}))

    assert set(everything(memory)) == {"/agents/main/MEMORY.md", "/index/a.md"}


def test_an_export_of_odd_folders_comes_back_to_the_same_places(memory: Access, other: Access) -> None:
    put(memory, {"/index.md": b"of the tree, not of its memory", "/semantic_memory/x.md": b"x"})

    bring(other, exported(memory))

    assert everything(other) == everything(memory)


def test_the_entries_of_an_import_are_found(memory: Access) -> None:
    report = bring(memory, zip_of({"memory/semantic_memory/facts.md": FACT}))

    assert reads.get_entry(memory, "mem_1").entry.body == "Water is wet."
    assert [file.entries for file in report.files] == [1]


def test_importing_the_same_again_changes_nothing(memory: Access) -> None:
    archive = zip_of({"memory/a.md": b"a", "memory/b.md": b"b"})
    bring(memory, archive)

    report = bring(memory, archive)

    assert set(outcomes(report).values()) == {"unchanged"}
    assert revision_of(memory) == 1


def test_files_that_the_import_does_not_bring_stay(memory: Access) -> None:
    put(memory, {"/mine.md": b"mine", "/both.md": b"old"})

    report = bring(memory, zip_of({"both.md": b"new", "theirs.md": b"t"}), on_conflict=OnConflict.TAKE)

    assert outcomes(report) == {"/both.md": "changed", "/theirs.md": "created"}
    assert everything(memory) == {"/mine.md": b"mine", "/both.md": b"new", "/theirs.md": b"t"}


@pytest.mark.parametrize("on_conflict", OnConflict)
def test_a_dry_run_says_what_would_happen_and_changes_nothing(
    memory: Access, on_conflict: OnConflict
) -> None:
    put(memory, {"/same.md": b"s", "/other.md": b"o", "/taken": b"a file"})
    archive = zip_of(
        {"same.md": b"s", "other.md": b"new", "new.md": b"n", "taken/x.md": b"x", "bad\u202e.md": b"b"}
    )

    dry_run = bring(memory, archive, on_conflict=on_conflict, dry_run=True)

    assert (
        outcomes(dry_run).items()
        >= {
            "/same.md": "unchanged",
            "/other.md": "changed" if on_conflict is OnConflict.TAKE else "skipped",
            "/new.md": "created",
            "/taken/x.md": "refused",
            "bad\\u202e.md": "refused",
        }.items()
    )
    assert set(everything(memory)) == {"/same.md", "/other.md", "/taken"}
    assert dry_run.revision == revision_of(memory) == 3
    assert replace(bring(memory, archive, on_conflict=on_conflict), revision=3, dry_run=True) == dry_run


@pytest.mark.parametrize("bad", ["x\u202e.md", "\u4e00" * 100 + ".md", "a\uff0fb.md", "x\ue000.md"])
def test_one_bad_name_is_reported_and_the_rest_comes_in(memory: Access, bad: str) -> None:
    report = bring(memory, zip_of({"memory/a.md": b"a", f"memory/{bad}": b"c"}))

    assert everything(memory) == {"/memory/a.md": b"a"}
    [refused] = [file for file in report.files if file.outcome is Outcome.REFUSED]
    assert "name" in refused.reason
    assert (refused.path.isprintable(), refused.path.startswith("memory/")) == (True, True)
    with pytest.raises(ImportRefused):
        bring(memory, zip_of({f"memory/{bad}": b"c"}))


def test_a_hostile_name_refuses_the_whole_import(memory: Access) -> None:
    with pytest.raises(ImportRefused) as caught:
        bring(memory, zip_of({"memory/a.md": b"a", "memory/../../up.md": b"b", "memory/x\u202e.md": b"c"}))

    assert [name for name, _ in caught.value.refused] == ["memory/../../up.md"]
    assert everything(memory) == {}


@pytest.mark.parametrize("on_conflict", OnConflict)
def test_a_file_that_is_a_folder_in_the_tree_is_refused_alone(
    memory: Access, on_conflict: OnConflict
) -> None:
    put(memory, {"/a.md/b.md": b"b"})

    report = bring(memory, zip_of({"0.md": b"first", "a.md": b"a"}), on_conflict=on_conflict)

    assert outcomes(report) == {"/0.md": "created", "/a.md": "refused"}
    assert set(everything(memory)) == {"/0.md", "/a.md/b.md"}


def test_who_may_not_write_may_not_import(memory: Access) -> None:
    below = Access(tree=memory.tree, actor=memory.actor, prefix="/memory")

    with pytest.raises(ReadOnly):
        bring(memory.read_only(), zip_of({"a.md": b"a"}))
    with pytest.raises(Forbidden):
        bring(below, zip_of({"memory/a.md": b"a", "other/a.md": b"a"}))

    assert everything(memory) == {}


def test_what_a_system_left_behind_is_skipped_and_reported(memory: Access) -> None:
    report = bring(
        memory, zip_of({"memory/a.md": b"a", "__MACOSX/memory/._a.md": b"\0", "memory/.DS_Store": b"\0"})
    )

    assert outcomes(report) == {
        "/memory/a.md": "created",
        "__MACOSX/memory/._a.md": "skipped",
        "memory/.DS_Store": "skipped",
    }
    assert set(everything(memory)) == {"/memory/a.md"}


def test_blocks_that_can_not_be_used_are_kept_and_named(memory: Access) -> None:
    broken = FACT.replace(b"2026-05-01", b"2026-02-30")
    text = b"# Facts\n\n" + FACT + b"\n" + broken

    report = bring(memory, zip_of({"memory/semantic_memory/facts.md": text}))

    [file] = report.files
    assert (file.entries, file.opaque) == (1, (OpaqueBlock(11, "unusable created"),))
    assert text.splitlines()[file.opaque[0].line - 1] == b"---"
    assert everything(memory)["/memory/semantic_memory/facts.md"] == text


def test_ids_that_exist_twice_and_loose_references_are_warned_of(memory: Access) -> None:
    loose = FACT.replace(b"mem_1", b"mem_2").replace(b"category", b"supersedes: mem_0\ncategory")

    report = bring(memory, zip_of({"memory/a.md": FACT, "memory/b.md": FACT, "memory/c.md": loose}))

    assert report.warnings == [
        "entry mem_1 of /memory/b.md is in /memory/a.md too; the first by path is the one found",
        "an entry of /memory/c.md refers to mem_0, which is nowhere in the tree",
    ]
    assert reads.get_entry(memory, "mem_1").path == "/memory/a.md"


def test_names_are_composed_to_one_spelling(memory: Access) -> None:
    bring(memory, zip_of({"memory/cafe\u0301.md": b"x"}))
    assert set(everything(memory)) == {"/memory/caf\u00e9.md"}

    both = zip_of({"memory/the\u0301.md": b"x", "memory/th\u00e9.md": b"y"})
    assert outcomes(bring(memory, both)) == {
        "/memory/th\u00e9.md": "created",
        "memory/th\u00e9.md": "refused",
    }
    assert everything(memory)["/memory/th\u00e9.md"] == b"x"


def test_a_manifest_can_not_rename_at_will(memory: Access) -> None:
    manifest = b'{"format": "memsvc-export/1", "renamed": {"memory/a.md": "/memory/\\u202eevil.md"}}'

    bring(memory, zip_of({"memory/a.md": b"a", "memsvc-manifest.json": manifest}))

    assert set(everything(memory)) == {"/memory/a.md"}


def test_a_file_that_is_only_called_like_the_manifest_is_kept(memory: Access) -> None:
    bring(memory, zip_of({"memory/a.md": b"a", "memsvc-manifest.json": b"[1]"}))

    assert everything(memory)["/memsvc-manifest.json"] == b"[1]"


def test_a_directory_comes_in_like_a_zip(memory: Access, tmp_path: Path) -> None:
    write_below(
        tmp_path, {"index.md": b"# Memory\n", "semantic_memory/facts.md": FACT, ".obsidian/app.json": b"{}"}
    )

    report = import_directory(memory, tmp_path)

    assert set(outcomes(report)) == set(everything(memory))
    assert set(everything(memory)) == {
        "/memory/index.md",
        "/memory/semantic_memory/facts.md",
        "/memory/.obsidian/app.json",
    }


def test_a_directory_named_memory_is_a_memory_folder(memory: Access, tmp_path: Path) -> None:
    import_directory(memory, write_below(tmp_path / "memory", {"Trips/a.md": b"a"}))

    assert set(everything(memory)) == {"/memory/Trips/a.md"}


@pytest.mark.parametrize("kind", ["link to a file", "link to a folder", "pipe"])
def test_a_directory_with_links_or_devices_is_refused(memory: Access, tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.md").write_bytes(b"a")
    match kind:
        case "link to a file":
            (tmp_path / "odd").symlink_to("/etc/passwd")
        case "link to a folder":
            (tmp_path / "odd").symlink_to("/etc")
        case _:
            os.mkfifo(tmp_path / "odd")

    with pytest.raises(ImportRefused, match="'odd' is a link or a device"):
        import_directory(memory, tmp_path)

    assert everything(memory) == {}


def test_an_import_can_be_undone_by_its_one_revision(memory: Access) -> None:
    put(memory, {"/memory/a.md": b"before"})
    bring(memory, zip_of({"memory/a.md": b"after", "memory/b.md": b"new"}))

    assert reads.read_file(memory, "/memory/a.md", revision=1).data == b"before"
    assert services.write_file(memory, "/memory/a.md", b"x").revision == 3


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            FACT.replace(b"category", b"a stray line\ncategory"),
            "line 4: 'a stray line' stands between the fences",
        ),
        (b"# Facts\n" + FACT, "line 2: what looks like an entry is read as a part of the text"),
        (FACT.replace(b"facts", b"fact"), "line 1: this entry can't be used: its `category` is none of"),
        (b"```\n\n" + FACT, "line 1: the code block that begins here is never closed"),
    ],
)
@pytest.mark.parametrize("dry_run", [True, False])
def test_what_an_import_brings_and_nobody_can_find_is_warned_of(
    memory: Access, content: bytes, told: str, dry_run: bool
) -> None:
    report = bring(memory, zip_of({"memory/facts.md": content}), dry_run=dry_run)

    assert report.files[0].entries == 0
    [warning] = report.warnings
    assert warning.startswith(f"/memory/facts.md, {told}")
