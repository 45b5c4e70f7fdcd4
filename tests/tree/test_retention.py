"""Letting old history go: what is older can't be read, and all else reads as if nothing had happened."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memsvc.tree import reads, retention, services
from memsvc.tree.access import Access
from memsvc.tree.cloning import clone_tree
from memsvc.tree.errors import EntryNotFound, RevisionNotFound, RevisionPruned, VersionNotFound
from memsvc.tree.history.memory_versions import VersionFilter, list_versions, read_version
from memsvc.tree.models import Block, File, Revision, Tree
from memsvc.tree.reads import RevisionFilter
from memsvc.tree.retention import Pruned, prune, prune_to
from memsvc.tree.scope import unit_of_work
from memsvc.tree.trees import archive_tree, create_tree
from tenants.models import Tenant
from tenants.services import InvalidTenant, keep_history
from tests.tree.support import FACTS, access_to, add, contents, of_tenant, revision, revisions, text

NOTE = "/notes/a.md"


@pytest.fixture
def filled(memory: Access) -> Access:
    """Seven revisions: a note written, edited, moved and edited; a file made and deleted; an entry."""
    services.write_file(memory, "/a.md", "one\ntwo\nthree\n")
    services.edit_file(memory, "/a.md", "two", "zwei")
    services.move(memory, "/a.md", NOTE)
    services.write_file(memory, "/gone.md", "secret\n")
    services.delete(memory, "/gone.md")
    services.edit_file(memory, NOTE, "three", "drei")
    add(memory, "An entry.")
    return memory


def rows_of(access: Access) -> list[object]:
    return [*Block.objects.of(access.tree).values(), *File.objects.of(access.tree).values()]


def everything(access: Access, oldest: int) -> object:
    """All that can be asked of the revisions from one on."""
    newest = revision(access)
    return (
        {n: (contents(access, n), reads.list_files(access, revision=n)) for n in range(oldest, newest + 1)},
        {n: reads.get_revision(access, n) for n in range(oldest + 1, newest + 1)},
        reads.diff(access, oldest),
        reads.list_revisions(access),
        [reads.blame(access, path) for path in contents(access)],
        [reads.blame(access, path, revision=oldest) for path in contents(access, oldest)],
    )


@pytest.mark.parametrize("oldest", range(1, 8))
def test_what_is_kept_reads_as_before(filled: Access, oldest: int) -> None:
    before = everything(filled, oldest)

    pruned = prune_to(filled.tree, oldest)

    assert everything(filled, oldest) == before
    assert pruned.history_from == oldest
    assert all(
        row.removed_in is None or row.removed_in > oldest
        for row in [*Block.objects.of(filled.tree), *File.objects.of(filled.tree)]
    )


ASKED: dict[str, Callable[[Access], object]] = {
    "a file": lambda access: reads.read_file(access, "/a.md", revision=4),
    "lines": lambda access: reads.read_lines(access, "/a.md", revision=4),
    "a listing": lambda access: reads.list_files(access, revision=4),
    "a folder": lambda access: reads.list_folder(access, "/", revision=4),
    "an entry": lambda access: reads.get_entry(access, "mem_x", revision=4),
    "a search": lambda access: reads.search_entries(access, "x", revision=4),
    "grep": lambda access: reads.grep(access, "secret", revision=4),
    "a diff from it": lambda access: reads.diff(access, 4),
    "a diff to it": lambda access: reads.diff(access, 6, 4),
    "blame": lambda access: reads.blame(access, NOTE, revision=4),
    "what the oldest changed": lambda access: reads.get_revision(access, 5),
    "what an earlier one changed": lambda access: reads.get_revision(access, 4),
    "an export": lambda access: contents(access, 4),
    "a clone": lambda access: clone_tree(access, "copy", revision=4),
    "a restored tree": lambda access: services.restore(access, 4),
    "a restored file": lambda access: services.restore(access, 4, path="/gone.md"),
    "a restored entry": lambda access: services.restore_entry(access, "mem_x", 4),
    "an undone revision": lambda access: services.undo(access, revision=5),
    "an undone actor": lambda access: services.undo(access, actor=access.actor.id),
    "an instant": lambda access: reads.list_files(
        access, revision=reads.revision_at(access, datetime(2000, 1, 1, tzinfo=UTC))
    ),
}


@pytest.mark.parametrize("what", ASKED)
def test_what_is_older_is_refused_and_the_oldest_is_named(filled: Access, what: str) -> None:
    prune_to(filled.tree, 5)
    before = contents(filled), revision(filled)

    with pytest.raises(
        RevisionPruned, match="is no longer kept; the oldest that can be read is 5"
    ) as refused:
        ASKED[what](filled)

    assert refused.value.oldest == 5
    assert (contents(filled), revision(filled)) == before


def test_what_was_deleted_before_is_nowhere(filled: Access) -> None:
    prune_to(filled.tree, 5)

    assert not Block.objects.filter(text__contains="secret").exists()
    assert not File.objects.filter(path="/gone.md").exists()


def test_the_list_of_revisions_stays_but_not_what_the_old_ones_touched(filled: Access) -> None:
    prune_to(filled.tree, 5)

    assert [each.number for each in reads.list_revisions(filled).items] == [7, 6, 5, 4, 3, 2, 1]
    found = reads.list_revisions(filled, RevisionFilter(path=NOTE)).items
    assert [each.number for each in found] == [6]


def test_kept_revisions_are_restored_and_undone(filled: Access) -> None:
    prune_to(filled.tree, 5)

    services.undo(filled, actor=filled.actor.id, since=6)

    assert contents(filled) == contents(filled, 5)
    services.restore(filled, 7)
    assert text(filled, NOTE) == text(filled, NOTE, 7)


def test_it_stays_known_when_a_file_last_changed_from_which_something_went(memory: Access) -> None:
    add(memory, "one")
    services.retire_entry(memory, add(memory, "two").entry.entry_id)
    services.write_file(memory, NOTE, "other\n")
    before = reads.list_files(memory, revision=4)

    prune_to(memory.tree, 4)

    assert next(file for file in before.items if file.path == FACTS).revision == 3
    assert reads.list_files(memory, revision=4) == before
    services.move(memory, FACTS, "/memory/moved.md")
    assert reads.list_files(memory, revision=4) == before


def test_a_clone_of_what_is_kept_has_a_history_of_its_own(filled: Access) -> None:
    prune_to(filled.tree, 5)

    copy = replace(filled, tree=clone_tree(filled, "copy", revision=6))

    assert contents(copy) == contents(filled, 6)
    assert contents(copy, 0) == {}


def test_an_entry_begins_with_what_it_was_in_the_oldest_revision(memory: Access) -> None:
    first = add(memory, "one").entry.entry_id
    services.edit_file(memory, FACTS, "one", "uno")
    second = add(memory, "two", supersedes=first).entry.entry_id
    services.edit_file(memory, FACTS, "two", "due")
    prune_to(memory.tree, 3)

    found = reads.entry_history(memory, second)

    assert [(each.revision.number, each.action, each.entry.body) for each in found] == [
        (3, "kept", "uno"),
        (3, "kept", "two"),
        (4, "changed", "due"),
    ]
    assert found[0].entry.superseded_by == second
    prune_to(memory.tree, 4)
    assert [each.action for each in reads.entry_history(memory, second)] == ["kept", "kept"]


def test_an_entry_that_went_before_was_never_there(memory: Access) -> None:
    gone = add(memory, "one").entry.entry_id
    services.retire_entry(memory, gone)
    add(memory, "two")
    prune_to(memory.tree, 2)

    with pytest.raises(EntryNotFound):
        reads.entry_history(memory, gone)


@pytest.mark.parametrize("step", ["horizon", None])
def test_a_files_versions_begin_with_what_it_was_in_the_oldest_revision(
    memory: Access, step: str | None
) -> None:
    services.write_file(memory, "/a.md", "one\n")
    services.write_file(memory, "/a.md", "two\n")
    services.write_file(memory, "/gone.md", "gone\n")
    services.delete(memory, "/gone.md")
    add(memory, "one")
    services.retire_entry(memory, add(memory, "two").entry.entry_id)
    services.write_file(memory, "/a.md", "three\n")
    file_id = File.objects.of(memory.tree).live_at(None).get(path="/a.md").pk

    def stopping(reached: str) -> None:
        if reached == step:
            raise InterruptedError

    def versions() -> list[tuple[int, str | None, str | None]]:
        found = list_versions(memory, VersionFilter(), with_content=True, limit=100).items
        return [
            (each.revision.number, each.path, each.text) for each in found if each.path in ("/a.md", FACTS)
        ]

    before = versions()
    with suppress(InterruptedError):
        prune_to(memory.tree, 7, progress=stopping)

    assert versions() == [each for each in before if each[0] in (8, 7) or each == (2, "/a.md", "two\n")]
    assert read_version(memory, file_id, 2).text == "two\n"
    with pytest.raises(VersionNotFound):
        read_version(memory, file_id, 1)
    assert "/gone.md" not in {each.path for each in list_versions(memory, VersionFilter(), limit=100).items}


def test_a_folders_key_learns_nothing_of_what_was_outside(alice: Tenant) -> None:
    whole = access_to(alice)
    services.write_file(whole, "/secret.md", "one\ntwo\n")
    services.edit_file(whole, "/secret.md", "two", "zwei")
    services.move(whole, "/secret.md", "/open/a.md")
    services.append_file(whole, "/open/a.md", "three\n")
    inside = access_to(alice, prefix="/open")
    before = reads.blame(inside, "/open/a.md")

    prune_to(whole.tree, 4)

    assert reads.blame(inside, "/open/a.md") == before
    assert [line.revision for line in before.lines] == [3, 3, 4]
    assert reads.list_revisions(inside).items == []


# --- how it goes ------------------------------------------------------------------------------------------------


def _older(access: Access, number: int, days: float) -> None:
    with of_tenant(access):
        made = Revision.objects.filter(tree_id=access.tree.pk, number__lte=number)
        made.update(at=datetime.now(tz=UTC) - timedelta(days=days))


def test_the_newest_revision_that_is_old_enough_is_the_oldest_kept(filled: Access) -> None:
    _older(filled, 4, days=10)

    pruned = prune(filled.tree, datetime.now(tz=UTC) - timedelta(days=9))

    # 4 is what the tree was from nine days ago on, until 5.
    assert (pruned.history_from, Tree.objects.get(pk=filled.tree.pk).history_from) == (4, 4)
    assert prune(filled.tree, datetime.now(tz=UTC) - timedelta(days=11)) == Pruned(4, 0, 0)


def test_a_rehearsal_tells_what_would_go_and_changes_nothing(filled: Access) -> None:
    _older(filled, 5, days=10)
    limit = datetime.now(tz=UTC) - timedelta(days=9)
    before = rows_of(filled)

    told = prune(filled.tree, limit, dry_run=True)

    assert rows_of(filled) == before
    assert told == Pruned(5, blocks=2, files=2)
    assert prune(filled.tree, limit) == told


def test_small_pieces_do_the_same(filled: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "_ROWS_AT_ONCE", 1)
    before = everything(filled, 6)

    assert prune_to(filled.tree, 6) == Pruned(6, blocks=3, files=2)

    assert everything(filled, 6) == before


@pytest.mark.parametrize("step", ["lines", "horizon", "blocks", "files"])
def test_when_it_is_cut_short_everything_reads_right_and_the_next_run_ends_it(
    filled: Access, step: str
) -> None:
    before = everything(filled, 6)

    def dying(reached: str) -> None:
        if reached == step:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        prune_to(filled.tree, 6, progress=dying)

    assert everything(filled, 6) == before
    prune_to(filled.tree, 6)
    assert everything(filled, 6) == before
    assert not Block.objects.of(filled.tree).filter(removed_in__lte=6).exists()


def test_an_archived_tree_is_pruned_too(filled: Access) -> None:
    archive_tree(filled)

    assert prune_to(filled.tree, 7).history_from == 7


def test_a_revision_that_never_was_is_no_horizon(filled: Access) -> None:
    with pytest.raises(RevisionNotFound):
        prune_to(filled.tree, 8)


def test_others_are_not_touched(filled: Access, stranger: Access, alice: Tenant) -> None:
    other = replace(filled, tree=create_tree(alice, "other"))
    for access in (stranger, other):
        services.write_file(access, NOTE, "one\n")
        services.write_file(access, NOTE, "two\n")
        services.delete(access, NOTE)
    before = rows_of(stranger), rows_of(other)

    prune_to(filled.tree, 7)

    assert (rows_of(stranger), rows_of(other)) == before
    assert (text(stranger, NOTE, 1), text(other, NOTE, 1)) == ("one\n", "one\n")


@pytest.mark.django_db(transaction=True)
def test_writers_go_on_meanwhile(memory: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "_ROWS_AT_ONCE", 2)
    for n in range(20):
        services.write_file(memory, NOTE, f"first\nline {n}\n")
    written: list[int] = []

    with ThreadPoolExecutor(1) as elsewhere:
        # Between any two steps somebody else writes, and so gets the lock.
        prune_to(
            memory.tree,
            15,
            progress=lambda step: written.append(
                elsewhere.submit(services.append_file, memory, NOTE, f"{step}\n").result(timeout=30).revision
            ),
        )

    assert len(written) > 6
    assert revisions(memory) == list(range(1, 21 + len(written)))
    assert text(memory, NOTE, 15) == "first\nline 14\n"
    assert text(memory, NOTE).startswith("first\nline 19\nlines\nhorizon\nblocks\n")
    assert [line.revision for line in reads.blame(memory, NOTE).lines] == [1, 20, *written]


@pytest.mark.django_db(transaction=True)
def test_a_reader_who_was_there_before_reads_on(memory: Access) -> None:
    for n in range(5):
        services.write_file(memory, NOTE, f"{n}\n")

    with reads.export_source(memory, revision=2) as taken, ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(prune_to, memory.tree, 5).result(timeout=30)

        assert [b"".join(chunks) for _, chunks in taken.files()] == [b"1\n"]
    with pytest.raises(RevisionPruned):
        contents(memory, 2)


# --- the commands -----------------------------------------------------------------------------------------------


def run(command: str, *arguments: object) -> str:
    out = StringIO()
    call_command(command, *map(str, arguments), stdout=out, stderr=StringIO())
    return out.getvalue()


def test_history_is_kept_until_a_tenant_says_otherwise(
    filled: Access, stranger: Access, alice: Tenant
) -> None:
    services.write_file(stranger, NOTE, "one\n")
    _older(filled, 5, days=10)
    _older(stranger, 1, days=10)

    assert "in 0 trees" in run("history_prune")
    assert (
        run("tenant_history", alice.slug, "--days", 7) == f"Tenant '{alice.slug}' keeps 7 days of history.\n"
    )

    told = run("history_prune", "--dry-run")
    assert f"{alice.slug}/default: from revision 5 on, 2 blocks, 2 files" in told
    assert "Would remove 2 blocks and 2 files in 1 trees." in told
    assert contents(filled, 4)
    assert "Removed 2 blocks and 2 files in 1 trees." in run("history_prune")
    with pytest.raises(RevisionPruned):
        contents(filled, 4)
    assert contents(stranger, 0) == {}


def test_one_tenant_is_pruned_by_name(filled: Access, stranger: Access, alice: Tenant) -> None:
    bob = stranger.tree.tenant
    services.write_file(stranger, NOTE, "one\n")
    for access in (filled, stranger):
        keep_history(tenant=access.tree.tenant, days=1)
        _older(access, 1, days=10)

    run("history_prune", bob.slug)

    assert contents(filled, 0) == {}
    with pytest.raises(RevisionPruned):
        contents(stranger, 0)
    run("tenant_history", bob.slug, "--all")
    with pytest.raises(CommandError, match="keeps all of its history"):
        run("history_prune", bob.slug)


def test_where_nothing_is_due_trees_cost_nothing(alice: Tenant, bob: Tenant) -> None:
    trees = [
        access_to(tenant, create_tree(tenant, f"tree {n}").name) for tenant in (alice, bob) for n in range(25)
    ]
    for access in trees:
        services.write_file(access, NOTE, "one\n")
        services.write_file(access, NOTE, "two\n")
    for tenant in (alice, bob):
        keep_history(tenant=tenant, days=1)
    _older(trees[7], 2, days=10)
    _older(trees[40], 1, days=10)

    assert "Removed 1 blocks and 0 files in 2 trees." in run("history_prune")
    # 1 tenants, and for each of them: begin, tenant, trees, end
    with CaptureQueriesContext(connection) as captured:
        assert run("history_prune") == "Removed 0 blocks and 0 files in 0 trees.\n"
    assert len(captured) == 1 + 2 * 4


def test_a_run_that_was_cut_short_is_finished_by_the_next(filled: Access, alice: Tenant) -> None:
    keep_history(tenant=alice, days=1)
    _older(filled, 5, days=10)

    def cut_short(step: str) -> None:
        if step == "horizon":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prune(filled.tree, datetime.now(tz=UTC) - timedelta(days=1), progress=cut_short)

    assert "Removed 2 blocks and 2 files in 1 trees." in run("history_prune")
    assert "in 0 trees" in run("history_prune")


@pytest.mark.django_db(transaction=True)
def test_a_tree_that_is_held_is_left_for_the_next_run(memory: Access) -> None:
    services.write_file(memory, NOTE, "one\n")
    keep_history(tenant=memory.tree.tenant, days=1)
    _older(memory, 1, days=10)

    with ThreadPoolExecutor(1) as elsewhere, unit_of_work(memory, "test"):
        refused = elsewhere.submit(run, "history_prune").exception(timeout=30)

    assert "1 trees could not be finished; run this again" in str(refused)
    assert contents(memory, 0) == {}


@pytest.mark.parametrize("days", [0, -1, 36_501])
def test_days_that_make_no_sense_are_refused(alice: Tenant, days: int) -> None:
    with pytest.raises(InvalidTenant):
        keep_history(tenant=alice, days=days)
