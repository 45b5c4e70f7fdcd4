import json
import subprocess
import zipfile
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.core.management.base import OutputWrapper
from django.db import transaction

from memsvc.format import EntryDraft, MemoryCategory
from memsvc.tree import services
from memsvc.tree.access import Access
from memsvc.tree.models import Block
from memsvc.tree.trees import create_tree, list_trees
from tenants.management.arguments import Progress
from tests.transfer.support import everything, exported, put, read_below, unzipped, write_below, zip_of
from tests.transfer.test_mneme import database, record


def run(command: str, *arguments: object) -> str:
    out = StringIO()
    call_command(command, *map(str, arguments), stdout=out, stderr=StringIO())
    return out.getvalue()


def slug_of(access: Access) -> str:
    return access.tree.tenant.slug


def test_a_directory_is_imported_and_the_report_names_each_file(memory: Access, tmp_path: Path) -> None:
    write_below(tmp_path, {"memory/a.md": b"a", "agents/b.md": b"b"})

    report = run("memory_import", slug_of(memory), tmp_path)

    assert everything(memory) == {"/memory/a.md": b"a", "/agents/b.md": b"b"}
    assert "created    /memory/a.md" in report
    assert "Imported: 2 created; 0 entries; revision 1." in report


def test_a_zip_is_imported_into_a_new_tree(memory: Access, tmp_path: Path) -> None:
    archive = tmp_path / "in.zip"
    archive.write_bytes(zip_of({"memory/a.md": b"a"}))

    run("memory_import", slug_of(memory), archive, "--tree", "second", "--new-tree")

    trees = {tree.name: Access(tree=tree, actor=memory.actor) for tree in list_trees(memory.tree.tenant)}
    assert everything(trees["second"]) == {"/memory/a.md": b"a"}
    assert everything(memory) == {}
    with pytest.raises(CommandError, match="already"):
        run("memory_import", slug_of(memory), archive, "--tree", "second", "--new-tree")


def test_a_dry_run_changes_nothing(memory: Access, tmp_path: Path) -> None:
    write_below(tmp_path, {"memory/a.md": b"a"})

    report = json.loads(run("memory_import", slug_of(memory), tmp_path, "--dry-run", "--json"))

    assert (report["dry_run"], report["counts"]["created"]) == (True, 1)
    assert everything(memory) == {}


def test_a_dry_run_of_what_would_be_refused_fails(memory: Access, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"format": "memsvc-export", "version": 1}\n{"type": "nonsense"}\n')
    write_below(tmp_path / "bad", {"memory/a\tb.md": b"a"})

    with pytest.raises(CommandError, match="would be refused"):
        run("memory_import", slug_of(memory), tmp_path / "bad.jsonl", "--dry-run")
    with pytest.raises(CommandError, match="Nothing was imported"):
        run("memory_import", slug_of(memory), tmp_path / "bad", "--dry-run")


def test_one_bad_name_is_told_and_the_rest_comes_in(memory: Access, tmp_path: Path) -> None:
    write_below(tmp_path, {"memory/a\tb.md": b"a", "memory/c.md": b"c"})

    said = run("memory_import", slug_of(memory), tmp_path)

    assert "refused    memory/a\\tb.md" in said
    assert everything(memory) == {"/memory/c.md": b"c"}


def test_what_can_not_be_imported_is_said(memory: Access, tmp_path: Path) -> None:
    (tmp_path / "no.zip").write_bytes(b"no zip")
    write_below(tmp_path / "bad", {"memory/a\tb.md": b"a"})

    with pytest.raises(CommandError, match="not a zip archive"):
        run("memory_import", slug_of(memory), tmp_path / "no.zip")
    with pytest.raises(CommandError, match="Nothing was imported"):
        run("memory_import", slug_of(memory), tmp_path / "bad")
    with pytest.raises(CommandError, match="nothing at"):
        run("memory_import", slug_of(memory), tmp_path / "absent")
    with pytest.raises(CommandError, match="no tenant"):
        run("memory_import", "nobody", tmp_path / "bad")
    with pytest.raises(CommandError, match="has: default"):
        run("memory_import", slug_of(memory), tmp_path / "bad", "--tree", "nope")

    assert everything(memory) == {}


def test_a_tree_is_exported_as_a_zip(memory: Access, tmp_path: Path) -> None:
    put(memory, {"/memory/a.md": b"one"})
    put(memory, {"/memory/a.md": b"two"})

    run("memory_export", slug_of(memory), tmp_path / "now.zip")
    run("memory_export", slug_of(memory), tmp_path / "then.zip", "--revision", 1)

    assert (tmp_path / "now.zip").read_bytes() == exported(memory)
    assert unzipped((tmp_path / "then.zip").read_bytes())["memory/a.md"] == b"one"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["now.zip", "then.zip"]


def test_a_tree_is_exported_as_a_directory(memory: Access, tmp_path: Path) -> None:
    put(memory, {"/memory/a.md": b"one"})

    run("memory_export", slug_of(memory), tmp_path / "out")

    assert read_below(tmp_path / "out")["memory/a.md"] == b"one"


def test_an_export_overwrites_nothing(memory: Access, tmp_path: Path) -> None:
    (tmp_path / "mine.zip").write_bytes(b"mine")

    with pytest.raises(CommandError, match="there already"):
        run("memory_export", slug_of(memory), tmp_path / "mine.zip")
    with pytest.raises(CommandError, match="not empty"):
        run("memory_export", slug_of(memory), tmp_path)
    with pytest.raises(CommandError, match="no revision 9"):
        run("memory_export", slug_of(memory), tmp_path / "new.zip", "--revision", 9)

    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("mine.zip", b"mine")]


def test_a_tree_that_agrees_passes_the_check(memory: Access) -> None:
    services.scaffold(memory)
    services.add_entry(
        memory, EntryDraft(category=MemoryCategory.FACTS, body="Water is wet.", summary="water")
    )

    assert run("memory_check", slug_of(memory)) == "Everything agrees.\n"


def test_a_tree_that_does_not_agree_is_described(memory: Access, tmp_path: Path) -> None:
    tree = create_tree(memory.tree.tenant, "dirty")
    index = (
        "| File | Description | Tags | Updated |\n| --- | --- | --- | --- |\n| gone.md | was here |  |  |\n"
    )
    fact = "---\nid: mem_1\ncreated: 2026-05-01\ncategory: facts\nsupersedes: mem_0\n---\n\nWater.\n"
    write_below(
        tmp_path,
        {
            "semantic_memory/index.md": index.encode(),
            "semantic_memory/facts.md": fact.encode(),
            "semantic_memory/copy.md": fact.replace("2026-05-01", "2026-02-30").encode(),
            "semantic_memory/other.md": fact.encode(),
        },
    )
    run("memory_import", slug_of(memory), tmp_path, "--tree", tree.name)
    out = StringIO()

    with pytest.raises(CommandError, match="findings in tree 'dirty'"):
        call_command("memory_check", slug_of(memory), "--tree", "dirty", stdout=out)

    kinds = {tuple(line.split()[:2]) for line in out.getvalue().splitlines()}
    assert {
        ("row_without_file", "/memory/semantic_memory/index.md"),
        ("file_without_row", "/memory/semantic_memory/facts.md"),
        ("opaque_block", "/memory/semantic_memory/copy.md"),
        ("duplicate_id", "/memory/semantic_memory/other.md"),
        ("dangling_reference", "/memory/semantic_memory/facts.md"),
    } <= kinds


def test_the_archive_is_one_that_every_zip_program_opens(memory: Access, tmp_path: Path) -> None:
    put(memory, {f"/memory/{number}.md": b"text\n" * number for number in range(20)})

    run("memory_export", slug_of(memory), tmp_path / "out.zip")

    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        archive.extractall(tmp_path / "unzipped")
    assert read_below(tmp_path / "unzipped") == {path[1:]: data for path, data in everything(memory).items()}


def test_lines_and_history_are_exported_and_lines_come_back(
    memory: Access, other: Access, tmp_path: Path
) -> None:
    put(memory, {"/memory/a.md": b"one"})
    put(memory, {"/memory/a.md": b"two"})

    run("memory_export", slug_of(memory), tmp_path / "out.jsonl")
    run("memory_export", slug_of(memory), tmp_path / "out.bundle")
    run("memory_import", slug_of(other), tmp_path / "out.jsonl")

    assert everything(other) == {"/memory/a.md": b"two"}
    subprocess.run(["git", "clone", "-q", "out.bundle", "clone"], cwd=tmp_path, check=True)
    assert (tmp_path / "clone/memory/a.md").read_bytes() == b"two"


def test_other_systems_files_are_imported(memory: Access, tmp_path: Path) -> None:
    archive = tmp_path / "notebooks.zip"
    archive.write_bytes(zip_of({".deep/memory/main/MEMORY.md": b"m"}))
    mneme = database(tmp_path, record("m1"), record("m2", agent_id="other"))

    run("memory_import", slug_of(memory), archive, "--format", "pydantic-deep")
    with pytest.raises(CommandError, match="several agents"):
        run("memory_import", slug_of(memory), mneme)
    report = run("memory_import", slug_of(memory), mneme, "--only", "bot")

    assert everything(memory)["/agents/main/MEMORY.md"] == b"m"
    assert "by themselves 1 created" in report


def test_progress_is_a_bar_where_the_end_is_known() -> None:
    out = StringIO()
    progress = Progress(OutputWrapper(out), unit="revisions", total=200)

    for _ in range(100):
        progress("revision")

    assert out.getvalue() == "  [###############...............] 100 of 200 revisions\n"


def test_entries_that_were_stored_by_older_rules_are_listed(memory: Access) -> None:
    services.scaffold(memory)
    entry = "---\nid: mem_1\ncreated: 2026-05-01\ncategory: facts\n---\n\nWater.\n"
    services.write_file(memory, "/memory/a.md", f"# A\n\n```\n\n{entry}")
    services.write_file(
        memory, "/memory/b.md", entry.replace("mem_1", "mem_2").replace("facts\n", "facts\nsummary: a: b\n")
    )
    # As the rows stood before code blocks and such summaries were told apart.
    blocks = Block.objects.of(memory.tree)
    out = StringIO()
    with transaction.atomic():
        blocks.filter(file__path="/memory/a.md").update(
            kind="entry", entry_id="mem_1", created=datetime(2026, 5, 1, tzinfo=UTC)
        )
        blocks.filter(file__path="/memory/b.md").update(kind="opaque", entry_id="")

        with pytest.raises(CommandError, match="findings"):
            call_command("memory_check", slug_of(memory), stdout=out)

        transaction.set_rollback(True)
    found = [line for line in out.getvalue().splitlines() if line.startswith("read_otherwise")]
    later = "from the next change of the file on"
    assert [line.split(maxsplit=1)[1] for line in found] == [
        f"/memory/a.md  line 6: mem_1 is read as text, no entry {later}",
        f"/memory/b.md  line 2: mem_2 is read as an entry {later}",
    ]
