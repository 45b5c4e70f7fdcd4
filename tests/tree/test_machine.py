"""Any sequence of changes, against a dict: after each, all that a reader sees must agree with it.

MEMSVC_TREE_EXAMPLES and MEMSVC_TREE_STEPS make it longer than the everyday run.
"""

import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from django.db import connection
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memsvc.contract.files import Listed
from memsvc.contract.requests import EntryDraft
from memsvc.format import (
    BlockKind,
    FormatError,
    MemoryEntry,
    cut_index,
    parent_of,
    parse_row,
    router_of,
)
from memsvc.tree import reads, services
from memsvc.tree.commands import OnConflict
from memsvc.tree.errors import BatchFailed, IsFolder, PathTaken, TreeError
from memsvc.tree.models import Block
from memsvc.tree.operations import (
    AddEntry,
    AppendFile,
    DeletePath,
    EditFile,
    MovePath,
    Operation,
    RetireEntry,
    WriteFile,
)
from memsvc.tree.reads import EntryFilter
from tests.people import make_tenant
from tests.tree import nasty
from tests.tree.model import ROUTERS, Model
from tests.tree.support import access_to, contents, days_pass, draft, in_days, revision, revisions

BOM = b"\xef\xbb\xbf"
EXAMPLES = int(os.environ.get("MEMSVC_TREE_EXAMPLES", "4"))
STEPS = int(os.environ.get("MEMSVC_TREE_STEPS", "15"))

paths = st.sampled_from(nasty.PATHS)
places = st.sampled_from([*nasty.PATHS, *nasty.FOLDERS])
ids = st.integers(0, 20)
drafts = st.builds(
    draft,
    st.sampled_from(["A body.", "Title\n---", "a\n\n---\n\nb", "é\u2028ü", "two\r\nlines", "  indented"]),
    st.sampled_from(["facts", "facts", "rules", "preferences", "events", "procedure"]),
    summary=st.sampled_from(["", "A summary", "with | pipe", "#1: yes"]),
    tags=st.sampled_from([(), ("a",), ("a,b", "#c")]),
    title=st.sampled_from(["Deploy", "Roll back"]),
)


def operations(known: list[str]) -> st.SearchStrategy[Operation]:
    """Operations as a batch has them, more often than not on files that are there."""
    path = st.one_of(st.sampled_from(known), st.sampled_from(known), paths) if known else paths
    place = st.one_of(
        path,
        st.sampled_from(nasty.FOLDERS),
        st.sampled_from([parent_of(each) for each in known] or ["/"]),
    )
    return st.one_of(
        st.builds(WriteFile, path, nasty.files),
        st.builds(
            AppendFile, path, nasty.additions.filter(lambda data: b"\xff" not in data).map(bytes.decode)
        ),
        st.builds(DeletePath, place, st.booleans()),
        st.builds(MovePath, place, st.one_of(path, places), st.booleans()),
        st.builds(MovePath, place, places, st.booleans()),
        st.builds(AddEntry, drafts),
    )


class Tree(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.access = access_to(make_tenant())
        self.model = Model()
        self.index_behind = self.has_expired = False
        self.past: dict[int, tuple[dict[str, bytes], list[Listed]]] = {}
        self.past[0] = self.seen()

    @initialize(files=st.dictionaries(paths, nasty.files, max_size=8))
    def what_was_there_before(self, files: dict[str, bytes]) -> None:
        services.upload_files(self.access, list(files.items()))
        for path, data in files.items():
            with suppress(IsFolder, PathTaken):
                self.model.write(path, data)
        self.check()

    @rule(data=st.data())
    def one_operation(self, data: st.DataObject) -> None:
        self.act(data.draw(operations(sorted(self.model.files))))

    @precondition(lambda self: self.model.files)
    @rule(which=ids, middle=nasty.additions, at=st.floats(0, 1), cut=st.integers(0, 200))
    def write_with_another_middle(self, which: int, middle: bytes, at: float, cut: int) -> None:
        path = sorted(self.model.files)[which % len(self.model.files)]
        data = self.model.files[path]
        start = int(at * len(data))
        self.act(WriteFile(path, data[:start] + middle + data[start + cut :]))

    @precondition(lambda self: self.model.files)
    @rule(
        which=ids,
        at=st.floats(0, 1),
        length=st.integers(1, 40),
        new=st.sampled_from(["", "x", "\n---\n", "\r\n"]),
    )
    def edit(self, which: int, at: float, length: int, new: str) -> None:
        path = sorted(self.model.files)[which % len(self.model.files)]
        text = _text(self.model.files[path])
        if text is None or not text:
            return
        start = int(at * (len(text) - 1))
        old = text[start : start + length]
        services.edit_file(self.access, path, old, new, replace_all=True)

        data = reads.read_file(self.access, path).data
        if path not in ROUTERS:
            assert _plain(data.decode()) == _plain(text).replace(_plain(old), _plain(new))
        self.model.write(path, data)
        self.check()

    @rule(which=ids, new=drafts, kept=st.booleans())
    def supersede(self, which: int, new: EntryDraft, kept: bool) -> None:
        known = [entry for _, entry in self.model.entries()]
        target = known[which % len(known)] if known else None
        self.act(AddEntry(_superseding(new, target, kept=kept)))

    @rule(which=ids)
    def retire(self, which: int) -> None:
        known = [entry.entry_id for _, entry in self.model.entries()]
        self.act(RetireEntry(known[which % len(known)] if known else "mem_none"))

    @rule()
    def scaffold(self) -> None:
        self.expecting(lambda: services.scaffold(self.access), lambda model, _: model.scaffold())

    @rule(uploads=st.lists(st.tuples(paths, nasty.files), max_size=4))
    def upload(self, uploads: list[tuple[str, bytes]]) -> None:
        verdicts = services.upload_files(self.access, uploads)

        assert [verdict.path for verdict in verdicts] == [path for path, _ in uploads]
        for (path, data), verdict in zip(uploads, verdicts, strict=True):
            try:
                self.model.write(path, data)
            except IsFolder:
                assert verdict.error == "is_directory"
            except PathTaken:
                assert verdict.error is not None
                assert "can't be made" in verdict.error
            else:
                assert verdict.error is None
        self.check()

    @rule(data=st.data())
    def batch(self, data: st.DataObject) -> None:
        many = data.draw(st.lists(operations(sorted(self.model.files)), max_size=5))
        trial = self.model.copy()
        try:
            answer = services.batch(self.access, many)
        except BatchFailed as error:
            refused = error
            for operation in many[: refused.index]:
                # What is refused without a look at the tree is refused before the others are tried.
                with suppress(TreeError, FormatError):
                    trial.apply(operation)
            expected = _refusal(lambda: trial.apply(many[refused.index]))
            if type(refused.cause) is not expected:
                raise AssertionError(f"{expected} was expected") from refused
        else:
            for operation, result in zip(many, answer.results, strict=True):
                self.model.apply(operation, result)
        self.check()

    @rule(files=st.lists(st.tuples(paths, nasty.files), max_size=4, unique_by=lambda pair: pair[0]))
    def import_files(self, files: list[tuple[str, bytes]]) -> None:
        before = revision(self.access)

        def imported(model: Model, _: object) -> None:
            for path, data in files:
                with suppress(IsFolder, PathTaken):
                    model.write(path, data)

        self.expecting(
            lambda: services.import_files(self.access, files, on_conflict=OnConflict.TAKE),
            imported,
            check=False,
        )
        self.check(literal=revision(self.access) > before)

    @rule(back=st.integers(1, 6))
    def restore(self, back: int) -> None:
        number = sorted(self.past)[-1 - back % len(self.past)]
        services.restore(self.access, number)
        self.is_again(self.past[number][0])

    @precondition(lambda self: max(self.past) > 0 and not self.has_expired)
    @rule()
    def undo_the_newest(self) -> None:
        newest = max(self.past)
        if newest - 1 not in self.past:
            return
        services.undo(self.access, revision=newest)
        # What is undone of an index that changed with other files is no more than its rows.
        indexes = {path: data for path, data in contents(self.access).items() if path in ROUTERS}
        self.is_again(self.past[newest - 1][0] | indexes)

    def is_again(self, then: dict[str, bytes]) -> None:
        """Everything is what it was, but that each index has a row for every file."""
        for path in self.model.files.keys() - then.keys():
            self.model.delete(path, recursive=False)
        for path, data in then.items():
            if data != self.model.files.get(path):
                self.model.write(path, data)
        self.check(rows_too=False)

    @rule(new=drafts, days=st.integers(1, 2))
    def add_what_expires(self, new: EntryDraft, days: int) -> None:
        self.act(AddEntry(replace(new, expires_at=in_days(days - 0.5))))

    @rule()
    def a_day_passes(self) -> None:
        expiring = Block.objects.of(self.access.tree).filter(expires_at__range=(in_days(0), in_days(1)))
        something_expires = expiring.exists()
        expiring = expiring.live_at(None)
        for entry_id in expiring.entries().values_list("entry_id", flat=True):
            self.model.retire(entry_id)
        # Of a file that was moved to where none is read as markdown, what were entries.
        for path, text in expiring.filter(kind="text").values_list("file__path", "text"):
            self.model.files[path] = self.model.files[path].replace(text.encode(), b"", 1)
        days_pass(self.access)
        if something_expires:
            self.has_expired = True
            # What is hidden now is hidden in every earlier revision too.
            self.past = {number: self.seen(number) for number in self.past}
            indexes = {path: data for path, data in contents(self.access).items() if path in ROUTERS}
            self.model.files |= indexes
        self.check(rows_too=False)

    # --- what must hold -----------------------------------------------------------------------------------------

    def act(self, operation: Operation) -> None:
        self.expecting(lambda: _call(self, operation), lambda model, result: model.apply(operation, result))

    def expecting(
        self, call: Callable[[], object], modelled: Callable[[Model, object], object], *, check: bool = True
    ) -> None:
        """Call a service: it answers where the model does, and refuses for the reason that the model has."""
        expected = _refusal(lambda: modelled(self.model.copy(), None))
        try:
            result = call()
        except (TreeError, FormatError) as error:
            if type(error) is not expected:
                raise
        else:
            assert expected is None, result
            modelled(self.model, result)
        if check:
            self.check()

    def check(self, *, literal: bool = False, rows_too: bool = True) -> None:
        made = revision(self.access) > max(self.past)
        if made:
            self.index_behind = literal
        held, listed = self.seen()
        as_they_came = self.model.touched if literal else set[str]()
        exact = as_they_came if made else set(ROUTERS)
        self.check_contents(held, exact=exact, rows_too=rows_too and not self.index_behind)
        self.check_listing(listed)
        self.check_rows_of_the_database()
        if rows_too and not self.index_behind:
            wrong = reads.misstatements(self.access)
            # A row of which an edit took tags away may go without them.
            told = [each for each in wrong if each.path in self.model.touched]
            assert not [each for each in told if not each.reason.startswith("lacks")]
        self.check_entries()
        self.check_paging()
        numbers = revisions(self.access)
        assert numbers == list(range(1, revision(self.access) + 1))
        if not made:
            assert self.past[max(self.past)] == (held, listed)
        self.past[revision(self.access)] = held, listed
        if made and len(self.past) > 1:
            number = list(self.past)[-2]
            assert self.seen(number) == self.past[number]
        self.model.touched.clear()
        self.model.former_routers.clear()
        self.model.thinned.clear()

    def teardown(self) -> None:
        for number, seen in self.past.items():
            assert self.seen(number) == seen, f"revision {number} is not what it was"

    def seen(self, number: int | None = None) -> tuple[dict[str, bytes], list[Listed]]:
        return contents(self.access, number), [*reads.list_files(self.access, revision=number).items]

    def check_contents(self, held: dict[str, bytes], *, exact: set[str], rows_too: bool) -> None:
        assert held.keys() == self.model.files.keys()
        for path, data in held.items():
            if path in ROUTERS and path not in exact:
                _check_router(path, self.model.files[path], data, self.model)
                if rows_too:
                    _check_rows(path, data, self.model)
                self.model.files[path] = data
            elif path in self.model.former_routers:
                self.model.files[path] = data
            elif path in self.model.thinned:
                assert _words(data) == _words(self.model.files[path]), path
                self.model.files[path] = data
            else:
                assert data == self.model.files[path], path

    def check_listing(self, listed: list[Listed]) -> None:
        assert [each.path for each in listed] == sorted(self.model.files)
        for each in listed:
            data = self.model.files[each.path]
            lines = len(data.decode(errors="replace").splitlines())
            assert (each.size, each.lines) == (len(data), lines) or data == BOM, each.path

    def check_rows_of_the_database(self) -> None:
        live = Block.objects.of(self.access.tree).live_at(None)
        places = Counter(live.values_list("file_id", "position"))
        assert max(places.values(), default=1) == 1, "two live blocks stand in one place"
        with connection.cursor() as cursor:
            cursor.execute(
                """
                SELECT count(*) FROM tree_file f
                WHERE tree_id = %s AND removed_in IS NULL AND (next_expiry IS NULL OR next_expiry > now()) AND size != (
                    SELECT coalesce(sum(size + CASE WHEN superseded_in IS NULL THEN 0 ELSE spliced END), 0)
                    FROM tree_block b
                    WHERE b.file_id = f.id AND removed_in IS NULL AND (expires_at IS NULL OR expires_at > now())
                )
                """,
                [self.access.tree.pk],
            )
            assert cursor.fetchone() == (0,), "a file's size is not that of its blocks"

    def check_entries(self) -> None:
        expected = list(self.model.entries())
        found = reads.list_entries(self.access, EntryFilter(active=None), limit=1000).items
        assert Counter((each.path, each.entry) for each in found) == Counter(expected)
        first: dict[str, tuple[str, MemoryEntry]] = {}
        for path, entry in expected:
            first.setdefault(entry.entry_id, (path, entry))
        for entry_id, (path, entry) in first.items():
            read = reads.get_entry(self.access, entry_id)
            assert (read.path, read.entry) == (path, entry)
        having = Block.objects.of(self.access.tree).live_at(None).entries().visible().filter(duplicate=False)
        assert Counter(having.values_list("entry_id", "file__path")) == Counter(
            (entry_id, path) for entry_id, (path, _) in first.items()
        )

    def check_paging(self) -> None:
        for path in sorted(self.model.touched & self.model.files.keys()):
            data = self.model.files[path]
            page = reads.read_lines(self.access, path, limit=3)
            text = _text(data)
            if text is None:
                assert page.binary == data
            elif text.removeprefix("\ufeff").strip() and len(text) < 5000:
                parts = [page.text]
                while page.next_offset is not None:
                    page = reads.read_lines(self.access, path, offset=page.next_offset, limit=3)
                    parts.append(page.text)
                assert "".join(parts) == _plain(text)


def _call(machine: Tree, operation: Operation) -> object:
    access = machine.access
    match operation:
        case WriteFile(path, content):
            return services.write_file(access, path, content)
        case AppendFile(path, text):
            return services.append_file(access, path, text)
        case DeletePath(path, recursive):
            return services.delete(access, path, recursive=recursive)
        case MovePath(source, destination, overwrite):
            return services.move(access, source, destination, overwrite=overwrite)
        case AddEntry(new):
            return services.add_entry(access, new)
        case RetireEntry(entry_id):
            return services.retire_entry(access, entry_id)
        case EditFile():
            raise NotImplementedError


def _refusal(act: Callable[[], object]) -> type[Exception] | None:
    try:
        act()
    except (TreeError, FormatError) as error:
        return type(error)
    return None


def _superseding(new: EntryDraft, target: MemoryEntry | None, *, kept: bool) -> EntryDraft:
    if target is None:
        return replace(new, supersedes="mem_none")
    category = target.category if kept else new.category
    return replace(new, supersedes=target.entry_id, category=category, title=None if kept else new.title)


def _words(data: bytes) -> list[bytes]:
    return data.replace(b"<!-- -->", b"").split()


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


HEAD = ["| File | Description | Tags | Updated |", "| --- | --- | --- | --- |"]


def _check_router(path: str, before: bytes, after: bytes, model: Model) -> None:
    """What people wrote around the table stays, and so do the rows of files that nobody touched."""
    old_text, new_text = _text_lines(before), _text_lines(after)
    assert new_text[: len(old_text)] == old_text
    assert set(new_text[len(old_text) :]) <= {"", *HEAD}
    old_rows, new_rows = _row_lines(before), _row_lines(after)
    touched = {place[1] for each in model.touched if (place := _place_of(each)) and place[0] == path}
    for row_path, lines in old_rows.items():
        if row_path not in touched:
            assert new_rows.get(row_path) == lines


def _check_rows(path: str, data: bytes, model: Model) -> None:
    present = _row_lines(data).keys()
    for each in model.files:
        place = _place_of(each)
        assert place is None or place[0] != path or place[1] in present, f"{each} has no row in {path}"
    for each in model.touched - model.files.keys():
        place = _place_of(each)
        assert place is None or place[0] != path or place[1] not in present, (
            f"{path} still has a row of {each}"
        )


def _place_of(path: str) -> tuple[str, str] | None:
    """The router with a row for a file, and the row: the root's has one for each other router, too."""
    if path in ROUTERS[1:]:
        return ROUTERS[0], path.removeprefix("/memory/")
    return router_of(path)


def _text_lines(data: bytes) -> list[str]:
    text = b"".join(block.raw for block in cut_index(data) if block.kind is not BlockKind.ROW)
    lines = text.decode(errors="surrogateescape").split("\n")
    return [line.rstrip("\r") for line in (lines if lines[-1] else lines[:-1])]


def _row_lines(data: bytes) -> dict[str, list[bytes]]:
    """The lines about each file; an empty date may get its other form."""
    found: dict[str, list[bytes]] = {}
    for block in cut_index(data):
        row = parse_row(block.raw) if block.kind is BlockKind.ROW else None
        if row is not None:
            found.setdefault(row.path, []).append(block.raw.rstrip(b"\r\n").replace(b"|  |", b"| |"))
    return found


@pytest.mark.django_db
def test_whatever_is_done_readers_see_what_the_model_says() -> None:
    run_state_machine_as_test(
        Tree,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            # Shrinking takes minutes with a database, and some twenty steps can be read.
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
        ),
    )
