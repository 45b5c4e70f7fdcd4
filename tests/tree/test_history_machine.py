"""Any sequence of changes, of restoring and of undoing: what history says must agree with what was seen at the time.

MEMSVC_TREE_EXAMPLES and MEMSVC_TREE_STEPS make it longer than the everyday run.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from memsvc.contract.history import FileDiff
from memsvc.format import BlockKind, MemoryEntry, ancestors_of, cut_file, is_memory_file
from memsvc.tree import reads, services
from memsvc.tree.differences import lines_of
from memsvc.tree.errors import FileNotFound, IsFolder, PathTaken, RevisionPruned
from memsvc.tree.models import Block, File
from memsvc.tree.retention import prune_to
from tests.tree import nasty
from tests.tree.model import ROUTERS
from tests.tree.support import contents
from tests.tree.test_machine import STEPS, Tree, ids

EXAMPLES = int(os.environ.get("MEMSVC_TREE_EXAMPLES", "5"))

type Files = dict[str, bytes]


class History(Tree):
    """The tree's machine with another seven kinds of operation."""

    def __init__(self) -> None:
        super().__init__()
        # What was seen of revisions that can't be read any more: lines are still blamed on them.
        self.gone: dict[int, Files] = {}

    def chosen(self, which: int) -> int:
        return sorted(self.past)[-1 - which % len(self.past)]

    def then(self, number: int) -> Files:
        return self.past[number][0] if number in self.past else self.gone[number]

    @rule(at=ids, stop=st.sampled_from([None, "lines", "horizon", "blocks"]))
    def let_history_go(self, at: int, stop: str | None) -> None:
        horizon = self.chosen(at)
        blamed = {path: reads.blame(self.access, path) for path in self.model.files}

        def stopping(step: str) -> None:
            if step == stop:
                raise InterruptedError

        with suppress(InterruptedError):
            prune_to(self.access.tree, horizon, progress=stopping)

        self.access.tree.refresh_from_db()
        oldest = self.access.tree.history_from
        assert oldest == horizon or stop == "lines"
        for number in [number for number in self.past if number < oldest]:
            self.gone[number] = self.past.pop(number)[0]
        for number in self.gone:
            with pytest.raises(RevisionPruned):
                self.seen(number)
        rows = [*Block.objects.of(self.access.tree), *File.objects.of(self.access.tree)]
        assert stop or all(row.removed_in is None or row.removed_in > horizon for row in rows)
        assert {path: reads.blame(self.access, path) for path in self.model.files} == blamed
        self.check(rows_too=False)

    @rule(one=ids, other=ids)
    def diff(self, one: int, other: int) -> None:
        old, new = self.chosen(one), self.chosen(other)

        found = reads.diff(self.access, old, new)

        assert _applied(self.then(old), self.then(new), found) == self.then(new)
        for path in [*self.then(old)][:1]:
            assert [each for each in found if path in (each.path, each.source)] == reads.diff(
                self.access, old, new, path=path
            ) or any(each.action == "moved" for each in found)

    @precondition(lambda self: self.model.files)
    @rule(which=ids)
    def blame(self, which: int) -> None:
        path = sorted(self.model.files)[which % len(self.model.files)]
        newest = max(self.past)
        oldest = min(self.past)
        lines = reads.blame(self.access, path).lines
        data = self.model.files[path]

        text = _decoded(data)
        assert [line.text for line in lines] == ([] if text is None else _shown(text))
        assert [line.line for line in lines] == list(range(1, len(lines) + 1))
        for line in lines:
            made, before = self.then(line.revision), self.then(line.revision - 1)
            assert made != before
            assert any(line.text in _shown(_decoded(held) or "") for held in made.values())
        if newest > oldest and path in self.then(newest - 1):
            self.check_blame_of_what_stayed(path, newest)

    def check_blame_of_what_stayed(self, path: str, newest: int) -> None:
        """Lines above the first one that changed are of the revision that they were of, unless the file is new."""
        pairs = zip(
            reads.blame(self.access, path, revision=newest - 1).lines,
            reads.blame(self.access, path).lines,
            strict=False,
        )
        for was, now in pairs:
            if was.text != now.text:
                break
            assert now.revision in (was.revision, newest)

    @rule(which=ids, at=ids)
    def entry_history(self, which: int, at: int) -> None:
        known = _known(self.then(self.chosen(at)))
        if not known:
            return
        entry_id = known[which % len(known)]

        versions = [
            (
                max(version.revision.number, min(self.past)),
                None if version.action == "removed" else (version.path, version.entry),
            )
            for version in reads.entry_history(self.access, entry_id)
            if version.entry.entry_id == entry_id
        ]

        seen = [(number, _named(self.then(number), entry_id)) for number in sorted(self.past)]
        assert _changes(versions) == _changes(seen)

    @rule(at=ids, which=ids, folder=st.sampled_from([None, *nasty.FOLDERS]))
    def restore_a_path(self, at: int, which: int, folder: str | None) -> None:
        number = self.chosen(at)
        then, now = self.then(number), self.then(max(self.past))
        known = sorted(then.keys() | now.keys())
        path = folder or (known[which % len(known)] if known else "/a")
        wanted = {name: data for name, data in now.items() if not _is_below(name, path)}
        wanted |= {name: data for name, data in then.items() if _is_below(name, path)}
        try:
            services.restore(self.access, number, path=path)
        except FileNotFound:
            assert not any(_is_below(name, path) for name in known)
        except (IsFolder, PathTaken):
            assert any(above in wanted for name in wanted for above in ancestors_of(name))
        else:
            held = contents(self.access)
            assert {**held, **_routers(wanted)} == {**wanted, **_routers(held), **_routers(wanted)}
        self.follow()

    @rule(at=ids, which=ids)
    def restore_an_entry(self, at: int, which: int) -> None:
        number = self.chosen(at)
        then = self.then(number)
        known = _known(then)
        if not known:
            return
        entry_id = known[which % len(known)]
        was, now = _named(then, entry_id), _named(self.model.files, entry_id)
        before = Counter(entry for _, entry in _entries(self.model.files))
        assert was is not None
        try:
            restored = services.restore_entry(self.access, entry_id, number)
        except (IsFolder, PathTaken):
            self.follow()
            return
        if all(is_memory_file(path) for path in restored.paths):
            expected = before - Counter([now[1]] if now else []) + Counter([was[1]])
            assert Counter(entry for _, entry in _entries(contents(self.access))) == expected
        self.follow()

    @precondition(lambda self: max(self.past) > 0 and not self.has_expired)
    @rule(which=ids)
    def undo_any(self, which: int) -> None:
        number = max(1, self.chosen(which))
        if number - 1 not in self.past:
            with pytest.raises(RevisionPruned):
                services.undo(self.access, revision=number)
            return
        old, new, now = self.then(number - 1), self.then(number), self.then(max(self.past))
        changed = reads.get_revision(self.access, number)

        dry_run = services.undo(self.access, revision=number, dry_run=True)
        undone = services.undo(self.access, revision=number, skip_conflicts=True)

        assert (dry_run.undone, dry_run.paths, dry_run.conflicts) == (
            undone.undone,
            undone.paths,
            undone.conflicts,
        )
        held = contents(self.access)
        moved = {
            each.source: each.path
            for each in changed.files
            if each.action == "moved" and each.source is not None
        }
        for path in (old.keys() | new.keys() | now.keys() | held.keys()) - {*ROUTERS}:
            if old.get(path) == new.get(path) and path not in undone.paths:
                assert held.get(path) == now.get(path), path
            elif path in moved and now.get(moved[path]) != new.get(moved[path]):
                # What was written since, where it was moved to, comes back along with it.
                continue
            elif not undone.conflicts and now.get(path) == new.get(path):
                assert held.get(path) == old.get(path), path
            elif not undone.conflicts and path in old.keys() & new.keys() & now.keys() & held.keys():
                _check_merge(old[path], new[path], now[path], held[path])
        self.follow()

    def follow(self) -> None:
        """Let the model hold what the tree does, after a look at what had to hold."""
        held = contents(self.access)
        for path in self.model.files.keys() - held.keys():
            self.model.delete(path, recursive=False)
        for path, data in held.items():
            if data != self.model.files.get(path):
                self.model.write(path, data)
        self.check(rows_too=False)


def _applied(old: Files, new: Files, diffs: list[FileDiff]) -> Files:
    """What the differences make of the old files."""
    result = dict(old)
    for each in diffs:
        if each.action != "created":
            result.pop(each.source or each.path)
    for each in diffs:
        before = b"" if each.action == "created" else old[each.source or each.path]
        assert each.old_sha256 == (None if each.action == "created" else _sha256(before))
        assert each.new_sha256 == (None if each.action == "deleted" else _sha256(new[each.path]))
        if each.action == "deleted":
            continue
        is_text = _decoded(before) is not None and _decoded(new[each.path]) is not None
        result[each.path] = _patched(before, each) if is_text else new[each.path]
    return result


def _patched(data: bytes, found: FileDiff) -> bytes:
    lines = lines_of(data)
    parts: list[bytes] = []
    done = 0
    for hunk in found.hunks:
        old = [line[1:].encode() for line in hunk.lines if line[0] in " -"]
        new = [line[1:].encode() for line in hunk.lines if line[0] in " +"]
        start = hunk.old_start - 1 if hunk.old_lines else hunk.old_start
        assert (len(old), len(new)) == (hunk.old_lines, hunk.new_lines)
        assert lines[start : start + len(old)] == old
        parts += [*lines[done:start], *new]
        assert hunk.new_start == len(parts) - len(new) + bool(new)
        done = start + len(old)
    return b"".join([*parts, *lines[done:]])


def _check_merge(old: bytes, new: bytes, now: bytes, held: bytes) -> None:
    """What undoing put in stood there before the revision, and what it took out came with it."""
    before, after = Counter(lines_of(now)), Counter(lines_of(held))
    assert after - before <= Counter(lines_of(old))
    assert before - after <= Counter(lines_of(new))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _decoded(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _shown(text: str) -> list[str]:
    return text.splitlines()


def _entries(files: Files) -> Iterator[tuple[str, MemoryEntry]]:
    for path in sorted(files):
        for block in cut_file(path, files[path]):
            if block.kind is BlockKind.ENTRY and block.entry is not None:
                yield path, block.entry


def _known(files: Files) -> list[str]:
    """Ids by place: they are random, and what is chosen by a number must be the same in a replay."""
    return list(dict.fromkeys(entry.entry_id for _, entry in _entries(files)))


def _named(files: Files, entry_id: str) -> tuple[str, MemoryEntry] | None:
    return next((found for found in _entries(files) if found[1].entry_id == entry_id), None)


def _changes[State](states: list[tuple[int, State]]) -> list[tuple[int, State]]:
    """Only those in which something is another than before."""
    kept = [
        state
        for before, state in zip([None, *states], states, strict=False)
        if before is None or before[1] != state[1]
    ]
    return [state for state in kept if state[1] is not None or state is not kept[0]]


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def _routers(files: Files) -> Files:
    return {path: data for path, data in files.items() if path in ROUTERS}


@pytest.mark.django_db
def test_whatever_is_done_history_says_what_was_seen() -> None:
    run_state_machine_as_test(
        History,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            # Shrinking takes minutes with a database, and some twenty steps can be read.
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
        ),
    )
