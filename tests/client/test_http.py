"""Every method of the client against the real server."""

import io
import zipfile
from collections.abc import Callable
from datetime import UTC, date, datetime

import httpx
import pytest

from memsvc.client import MemsvcClient, RetryPolicy
from memsvc.client.errors import (
    AlreadySuperseded,
    Conflict,
    EditRefused,
    Forbidden,
    InvalidRequest,
    NotFound,
    OffsetBeyondEnd,
    PreconditionFailed,
    Unauthenticated,
)
from memsvc.client.records import ImportDifference
from memsvc.database.tenancy import tenant_transaction
from memsvc.format import Confidence, MemoryCategory, MemoryKind
from memsvc.format.scaffold import SCAFFOLD
from tenants.models import KeyUsage, Tenant
from tenants.scopes import Scope
from tests.client.conftest import Connect
from tests.people import make_key

pytestmark = pytest.mark.django_db(transaction=True)

FACTS = "/memory/semantic_memory/facts.md"


def add(client: MemsvcClient, body: str = "Water is wet.", **fields: object) -> str:
    return client.add_entry(MemoryCategory.FACTS, body, **fields).entry.entry_id  # type: ignore[arg-type]  # named above


def test_a_key_knows_whose_it_is(client: MemsvcClient, alice: Tenant) -> None:
    me = client.me()

    assert (me.tenant_id, me.tenant_slug) == (str(alice.pk), alice.slug)
    assert (me.scopes, me.tree, me.path_prefix) == (frozenset({"read", "write", "export"}), None, "/")


def test_trees_are_made_and_listed(client: MemsvcClient, connect: Connect) -> None:
    client.scaffold()
    made = client.create_tree("agents of ACME")

    assert {tree.name for tree in client.list_trees()} == {"default", "agents of ACME"}
    assert (made.name, made.revision) == ("agents of ACME", 0)
    assert connect(tree="agents of ACME").list_folder() == []
    with pytest.raises(Conflict):
        client.create_tree("agents of ACME")
    with pytest.raises(NotFound):
        connect(tree="nobody's").list_folder()


def test_usage_is_told_for_days_of_choice(client: MemsvcClient, connect: Connect, alice: Tenant) -> None:
    client.write_file("/a.md", "12345")
    key = make_key(alice, name="night shift")[0]
    days = [date(2026, 3, number) for number in (1, 2, 3)]
    with tenant_transaction(alice.pk):
        for number, day in enumerate(days):
            KeyUsage.objects.create(tenant=alice, key=key, day=day, requests=number)

    usage = connect(Scope.ADMIN).usage(since=days[1], until=days[2])

    assert (usage.trees, usage.files, usage.entries, usage.bytes) == (1, 1, 0, 5)
    assert [(each.day, each.key_name, each.requests) for each in usage.requests] == [
        (days[2], "night shift", 2),
        (days[1], "night shift", 1),
    ]


@pytest.mark.parametrize(
    "name",
    [
        "ann@example.org",
        "org/team/ü",
        "a:archive",
        ":clone",
        "a/files/b.md",
        "..",
        ".",
        "50%",
        "a?b#c",
        "%2F",
        " x ",
    ],
)
def test_any_text_names_a_tree_and_only_that_one(client: MemsvcClient, connect: Connect, name: str) -> None:
    client.create_tree(name)
    own = connect(*Scope, tree=name)

    own.write_file("/a.md", name)
    own.add_entry(MemoryCategory.FACTS, "x")
    own.grep("x")

    assert own.describe().name == name
    assert own.read_text("/a.md") == name
    assert {tree.name: tree.revision for tree in client.list_trees()} == {name: 2}
    own.delete_tree()
    assert client.list_trees() == []


def test_a_tree_is_described_cloned_archived_and_deleted(client: MemsvcClient, connect: Connect) -> None:
    client.write_file("/a.md", "one")
    client.write_file("/a.md", "two")

    copied = client.clone_tree("copy", revision=1)
    copy = connect(*Scope, tree=copied.name)
    described = copy.set_description("A copy.")
    detail = copy.describe()
    archived = copy.archive_tree()

    assert copy.read_text("/a.md") == "one"
    assert (described.description, described.revision, described.archived_at) == ("A copy.", 1, None)
    assert (detail.description, detail.files, detail.bytes, detail.entries) == ("A copy.", 1, 3, 0)
    assert archived.archived_at is not None
    with pytest.raises(Conflict, match="archived"):
        copy.write_file("/a.md", "three")
    copy.delete_tree()
    assert [tree.name for tree in client.list_trees()] == ["default"]


def test_keys_are_made_rotated_and_revoked(
    client: MemsvcClient, connect: Connect, live_url: str, stranger: MemsvcClient
) -> None:
    admin = connect(*Scope)

    made = admin.create_key("night shift", ["read"], path_prefix="/a")
    rotated = admin.rotate_key(made.info.id, overlap_hours=0)

    assert made.text is not None
    assert rotated.text is not None
    assert made.text not in repr(made)
    assert (rotated.info.name, rotated.info.scopes) == ("night shift", frozenset({"read"}))
    with MemsvcClient(live_url, rotated.text) as night, MemsvcClient(live_url, made.text) as ended:
        assert night.me().path_prefix == "/a"
        with pytest.raises(Unauthenticated):
            ended.me()
        assert admin.revoke_key(rotated.info.id).revoked_at is not None
        with pytest.raises(Unauthenticated):
            night.me()
    assert admin.get_key(made.info.id).revoked_at is not None
    assert [key.name for key in admin.list_keys()][:2] == ["night shift", "night shift"]
    for other in (client, stranger):
        with pytest.raises(Forbidden):
            other.list_keys()


def test_a_file_is_written_and_read_in_every_way(client: MemsvcClient) -> None:
    written = client.write_file("/memory/a.md", "one\r\ntwo\r\nthree")

    window = client.read_lines("/memory/a.md", offset=1, limit=1)
    whole = client.read_bytes("/memory/a.md")

    assert (written.path, written.revision, written.created, written.changed, written.size) == (
        "/memory/a.md",
        1,
        True,
        True,
        15,
    )
    assert (window.text, window.start_line, window.end_line, window.next_offset, window.total_lines) == (
        "two\n",
        2,
        2,
        2,
        3,
    )
    assert whole.data == b"one\r\ntwo\r\nthree"
    assert client.read_text("/memory/a.md") == "one\r\ntwo\r\nthree"
    assert whole.etag is not None
    assert client.read_bytes_if_changed("/memory/a.md", whole.etag) is None


def test_bytes_that_are_no_text_stay_bytes(client: MemsvcClient) -> None:
    client.write_file("/a.bin", b"\x00\xff", message="a picture")

    assert client.read_bytes("/a.bin").data == client.read_lines("/a.bin").binary == b"\x00\xff"
    with pytest.raises(InvalidRequest, match="no UTF-8"):
        client.read_text("/a.bin")


def test_earlier_revisions_can_be_read(client: MemsvcClient) -> None:
    client.write_file("/a.md", "one")
    client.write_file("/a.md", "two")
    client.write_file("/b.md", "new")

    assert client.read_text("/a.md", revision=1) == "one"
    assert [file.path for file in client.iter_files(revision=2)] == ["/a.md"]
    with pytest.raises(NotFound):
        client.read_text("/a.md", revision=99)


def test_listings_give_every_file_once(client: MemsvcClient) -> None:
    client.upload_files([(f"/notes/{number:02}/a.md", b"x\n") for number in range(7)])

    page = client.list_files(limit=3)

    assert len(page.items) == 3
    assert page.next is not None
    assert [file.path for file in client.iter_files("/notes")] == [f"/notes/{n:02}/a.md" for n in range(7)]
    assert [(item.path, item.is_dir) for item in client.list_folder("/notes")][:1] == [("/notes/00", True)]
    with pytest.raises(NotFound):
        client.list_folder("/nowhere")
    with pytest.raises(Conflict):
        client.list_folder("/notes/00/a.md")


def test_preconditions_keep_two_writers_apart(client: MemsvcClient) -> None:
    first = client.write_file("/a.md", "one", create_only=True)
    client.write_file("/a.md", "two", if_match=first.etag)

    with pytest.raises(PreconditionFailed) as stale:
        client.write_file("/a.md", "three", if_match=first.etag)
    with pytest.raises(PreconditionFailed):
        client.write_file("/a.md", "three", create_only=True)
    with pytest.raises(PreconditionFailed):
        client.delete("/a.md", if_match=first.etag)

    assert stale.value.revision == 2
    assert client.read_text("/a.md") == "two"


def test_an_edit_replaces_one_text(client: MemsvcClient) -> None:
    client.write_file("/a.md", "a b b\n")

    assert client.edit_file("/a.md", "a", "c").occurrences == 1
    assert client.edit_file("/a.md", "b", "d", replace_all=True).occurrences == 2
    assert client.append_file("/a.md", "e\n").size == 8
    with pytest.raises(EditRefused) as missing:
        client.edit_file("/a.md", "nope", "x")
    with pytest.raises(EditRefused) as twice:
        client.edit_file("/a.md", "d", "x")

    assert str(missing.value) == "Error: String not found in file: 'nope'"
    assert twice.value.occurrences == 2
    assert client.read_text("/a.md") == "c d d\ne\n"


def test_files_are_moved_and_deleted(client: MemsvcClient) -> None:
    client.write_file("/d/a.md", "a")
    client.write_file("/d/b.md", "b")

    moved = client.move("/d", "/e", message="tidied up")
    with pytest.raises(Conflict):
        client.delete("/e")
    deleted = client.delete("/e", recursive=True)

    assert (moved.source, moved.destination, moved.files) == ("/d", "/e", 2)
    assert deleted.files == 2
    assert list(client.iter_files()) == []
    with pytest.raises(NotFound):
        client.delete("/e")


def test_files_are_searched(client: MemsvcClient) -> None:
    client.write_file("/d/a.md", "needle\nhay\nneedle two\n")
    client.write_file("/d/b.txt", "needle\n")

    found = client.grep("needle", path="/d", glob="*.md", max_count=1)

    assert ([(hit.path, hit.line, hit.text) for hit in found.items], found.truncated) == (
        [("/d/a.md", 1, "needle")],
        True,
    )
    assert [file.path for file in client.glob("*.md").items] == ["/d/a.md"]


def test_many_files_have_a_verdict_each(client: MemsvcClient) -> None:
    uploaded = client.upload_files([("/a.bin", b"\x00\xff"), ("/../up", b"x"), ("/b.md", b"b")])
    downloaded = client.download_files(["/b.md", "/none.md", "/a.bin"])

    assert [verdict.error for verdict in uploaded] == [None, "invalid_path", None]
    assert [(answer.content, answer.error) for answer in downloaded] == [
        (b"b", None),
        (None, "file_not_found"),
        (b"\x00\xff", None),
    ]


def test_an_entry_is_added_found_superseded_and_retired(client: MemsvcClient) -> None:
    when = datetime(2026, 5, 1, 12, tzinfo=UTC)
    added = client.add_entry(
        MemoryCategory.FACTS,
        "ACME sits in Bonn.",
        summary="seat: of ACME",
        tags=["acme", "#x"],
        source="ticket: 42",
        confidence=Confidence.HIGH,
        when=when,
        metadata={"employees": 40, "listed": False, "offices": ["Bonn", "Rome"]},
        message="heard on the phone",
    )
    successor = client.supersede_entry(added.entry.entry_id, "ACME sits in Berlin.")

    old, new = client.get_entry(added.entry.entry_id), client.get_entry(successor.entry.entry_id)

    assert (added.path, added.file_created, added.entry.created) == (FACTS, True, when)
    assert added.metadata == old.metadata == new.metadata
    assert new.metadata == {"employees": 40, "listed": False, "offices": ["Bonn", "Rome"]}
    assert client.entry_history(new.entry.entry_id)[-1].metadata == new.metadata
    wanted = {"employees": {"gte": 40}, "offices": "Rome"}
    assert [found.metadata for found in client.search("acme", metadata=wanted).items] == [new.metadata]
    assert [found.metadata for found in client.list_entries(metadata=wanted).items] == [new.metadata]
    assert client.list_entries(metadata={"employees": "40"}).items == ()
    assert (old.entry.superseded_by, new.entry.supersedes) == (new.entry.entry_id, old.entry.entry_id)
    assert (new.entry.summary, new.entry.tags, new.entry.category) == (
        "ACME sits in Berlin.",
        ("acme", "#x"),
        "facts",
    )
    assert [found.entry for found in client.search("acme berlin").items] == [new.entry]
    assert len(client.search("ACME sits", mode="substring", include_superseded=True).items) == 2
    with pytest.raises(AlreadySuperseded) as caught:
        client.supersede_entry(old.entry.entry_id, "ACME sits in Rome.")
    assert caught.value.successor == new.entry.entry_id

    retired = client.retire_entry(new.entry.entry_id)

    assert (retired.entry_id, retired.path) == (new.entry.entry_id, FACTS)
    with pytest.raises(NotFound):
        client.get_entry(new.entry.entry_id)


def test_entries_are_listed_by_filters_page_by_page(client: MemsvcClient) -> None:
    ids = [add(client, f"fact {number}", tags=["even"] if number % 2 == 0 else []) for number in range(5)]
    client.add_entry(MemoryCategory.EVENTS, "met ACME")

    first = client.list_entries(category=MemoryCategory.FACTS, limit=3)
    rest = client.list_entries(category=MemoryCategory.FACTS, limit=3, cursor=first.next)

    assert [found.entry.entry_id for found in (*first.items, *rest.items)] == ids[::-1]
    assert rest.next is None
    assert len(client.list_entries(tags=["even"]).items) == 3
    assert len(client.list_entries(kind=MemoryKind.EPISODIC, status="all").items) == 1
    assert [found.entry.body for found in client.recent_episodes(limit=5)] == ["met ACME"]


def test_the_indexes_are_read_as_rows(client: MemsvcClient) -> None:
    assert set(client.scaffold()) == set(SCAFFOLD)
    add(client, summary="about water", tags=["wet"])

    index = client.read_index(MemoryKind.SEMANTIC)

    assert (index.path, index.exists) == ("/memory/semantic_memory/index.md", True)
    assert (index.rows[0].path, index.rows[0].description) == ("facts.md", "about water")
    assert client.read_index().rows


def test_a_batch_is_one_revision(client: MemsvcClient) -> None:
    result = client.batch(
        [
            {"op": "write", "path": "/a.md", "content": "a"},
            {"op": "add_entry", "category": "facts", "body": "b"},
        ],
        message="both",
    )

    assert (result.revision, len(result.results)) == (1, 2)
    with pytest.raises(InvalidRequest):
        client.batch([{"op": "write", "path": "/b.md", "content": "b"}, {"op": "nonsense"}])
    assert [file.path for file in client.iter_files() if file.path == "/b.md"] == []


def test_a_tree_goes_out_as_a_zip_and_comes_into_another(
    client: MemsvcClient, stranger: MemsvcClient
) -> None:
    client.scaffold()
    client.write_file("/agents/x.md", b"\r\n\xff")

    archive = b"".join(client.export_zip())
    tried = stranger.import_zip(archive, dry_run=True)
    assert list(stranger.iter_files()) == []
    report = stranger.import_zip(archive)

    assert (tried.dry_run, report.dry_run) == (True, False)
    assert {file.outcome for file in tried.files} == {file.outcome for file in report.files} == {"created"}
    assert b"".join(stranger.export_zip())[:4] == b"PK\3\4"
    assert {file.path: stranger.read_bytes(file.path).data for file in stranger.iter_files()} == {
        file.path: client.read_bytes(file.path).data for file in client.iter_files()
    }
    assert b"".join(client.export_zip(revision=1)) != archive


def test_lines_and_bundles_are_exported_and_lines_imported(
    client: MemsvcClient, stranger: MemsvcClient
) -> None:
    added = client.add_entry(MemoryCategory.FACTS, "It rains.")
    lines = b"".join(client.export_jsonl())

    report = stranger.import_archive(lines, format="jsonl")

    assert {file.outcome for file in report.files} == {"created"}
    assert stranger.get_entry(added.entry.entry_id).entry.body == "It rains."
    assert b"".join(stranger.export_jsonl()) == lines
    assert b"".join(client.export_bundle()).startswith(b"# v2 git bundle\n")


def test_entries_that_came_by_themselves_are_reported(client: MemsvcClient) -> None:
    lines = (
        b'{"format": "memsvc-export", "version": 1}\n'
        b'{"type": "memory", "external_id": "m1", "kind": "semantic", "content": "It rains.", '
        b'"created_at": "2026-01-01T00:00:00Z", "tree": "one"}\n'
    )

    report = client.import_archive(lines, format="jsonl", only="one", dry_run=True)

    assert [(entry.entry_id, entry.outcome) for entry in report.entries] == [("m1", "created")]
    assert client.import_archive(lines, format="jsonl", only="other").entries == ()


def test_what_differs_is_told_and_taken_where_that_is_asked_for(client: MemsvcClient) -> None:
    client.write_file("/a.md", "old")
    archive = b"".join(client.export_zip())
    client.write_file("/a.md", "new")

    kept = client.import_zip(archive)
    taken = client.import_archive(archive, format="zip", on_conflict="take", dry_run=True)
    both = client.import_zip(archive, on_conflict="both")

    assert kept.differences == (ImportDifference("/a.md", "", "text", "kept"),)
    assert (taken.differences[0].done, both.differences[0].done, both.more_differences) == (
        "taken",
        "both",
        0,
    )
    assert {client.read_bytes(file.path).data for file in client.iter_files()} == {b"old", b"new"}


def test_an_archive_that_is_refused_says_why(client: MemsvcClient) -> None:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("../up.md", b"x")

    with pytest.raises(InvalidRequest) as caught:
        client.import_zip(sink.getvalue())

    assert caught.value.code == "import_refused"


def test_an_export_that_is_refused_gives_an_error_and_no_bytes(
    client: MemsvcClient, connect: Connect
) -> None:
    with pytest.raises(NotFound):
        list(client.export_zip(revision=99))
    with pytest.raises(Forbidden):
        list(connect(Scope.READ).export_zip())


def test_a_key_does_what_its_scopes_allow(connect: Connect, live_url: str) -> None:
    reader = connect(Scope.READ)

    assert reader.search("x").items == ()
    with pytest.raises(Forbidden) as caught:
        reader.write_file("/a.md", "x")
    assert caught.value.code == "missing_scope"
    with MemsvcClient(live_url, "msk_unknown_key") as nobody, pytest.raises(Unauthenticated):
        nobody.me()


def test_a_stranger_sees_nothing(client: MemsvcClient, stranger: MemsvcClient) -> None:
    entry_id = add(client, "the canary")
    client.write_file("/secret.md", "canary")

    assert stranger.search("canary").items == ()
    assert stranger.grep("canary").items == ()
    assert list(stranger.iter_files()) == []
    for look in (lambda: stranger.get_entry(entry_id), lambda: stranger.read_bytes("/secret.md")):
        with pytest.raises(NotFound):
            look()


def test_a_window_past_the_end_is_an_error(client: MemsvcClient) -> None:
    client.write_file("/a.md", "one\n")

    with pytest.raises(OffsetBeyondEnd, match=r"Line offset 9 exceeds file length \(1 lines\)"):
        client.read_lines("/a.md", offset=9)


def test_a_server_that_is_not_there_can_not_be_reached() -> None:
    from memsvc.client import RetryPolicy
    from memsvc.client.errors import ConnectionFailed

    with (
        MemsvcClient("http://127.0.0.1:9", "msk_x", retries=RetryPolicy(attempts=2, first_wait=0)) as client,
        pytest.raises(ConnectionFailed) as caught,
    ):
        client.me()

    assert caught.value.sent is False


class LosesTheFirstAnswer(httpx.HTTPTransport):
    """The request arrives, its answer does not; the next one does."""

    lost = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if self.lost:
            return response
        self.lost = True
        response.read()
        response.close()
        raise httpx.ReadError("reset")


@pytest.mark.parametrize(
    "write",
    [
        lambda client: add(client),
        lambda client: client.append_file("/a.md", "more"),
        lambda client: client.write_file("/b.md", "new", create_only=True),
        lambda client: client.delete("/a.md"),
    ],
)
def test_a_write_whose_answer_was_lost_is_done_once(
    live_url: str, alice: Tenant, write: Callable[[MemsvcClient], object]
) -> None:
    key = make_key(alice)[1]
    with MemsvcClient(live_url, key) as sure:
        before = sure.write_file("/a.md", "text").revision
        transport = LosesTheFirstAnswer()
        with MemsvcClient(live_url, key, transport=transport, retries=RetryPolicy(first_wait=0)) as unlucky:
            write(unlucky)

        assert transport.lost
        assert [tree.revision for tree in sure.list_trees()] == [before + 1]


def test_equal_entries_are_named_by_the_one_that_is_shown(client: MemsvcClient) -> None:
    older, newer = (add(client, "The lighthouse is red.") for _ in range(2))

    (hit,) = client.search("lighthouse").items
    block = client.context("lighthouse")

    assert (hit.entry.entry_id, hit.duplicates) == (newer, (older,))
    assert (block.entries, block.duplicates) == ((newer,), {newer: (older,)})


def test_a_context_is_made_for_a_prompt(client: MemsvcClient, stranger: MemsvcClient) -> None:
    rule = client.add_entry(MemoryCategory.RULES, "Answer in verse.").entry.entry_id
    fact = add(client, "The lighthouse is red.")
    client.write_file("/agents/main/MEMORY.md", "a\nbread\nc\n")

    found = client.context("lighthouse", token_budget=400)
    early = client.context(revision=1)
    messages = client.context_for("lighthouse")
    notebook = client.notebook_context(max_lines=1, keep="head")

    assert (found.entries, found.format, found.budget) == ((rule, fact), "markdown", 400)
    assert (early.entries, early.revision) == ((rule,), 1)
    assert messages[0]["content"].startswith("Relevant memories (cite by id when grounding answers):")
    assert [message["role"] for message in messages] == ["system"]
    harness = client.context("bread", format="harness", agent="main", max_lines=1)
    assert [message["role"] for message in harness.messages] == ["user"]
    assert harness.messages[0]["content"].endswith("\nbread\n</memory>")
    assert harness.etag
    assert client.context_if_changed(harness.etag, "bread", format="harness", max_lines=1) is None
    assert notebook.content == "## Agent Memory (main)\n\na\n\n... [2 more lines in memory] ..."
    assert found.etag is not None
    assert client.context_if_changed(found.etag, "lighthouse", token_budget=400) is None
    assert client.context_if_changed("other", "lighthouse", token_budget=400) == found
    assert stranger.context_for("lighthouse") == []
    assert stranger.notebook_context().content == ""
