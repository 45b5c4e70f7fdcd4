"""Every error of a tree: what brings it about, its code, and a text that says what to do."""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest
from django.db import transaction

from memsvc.contract.erasures import ErasureKind, ErasureRequest
from memsvc.database.ids import uuid7
from memsvc.tree import errors, reads, services
from memsvc.tree.access import Access
from memsvc.tree.commands import Precondition
from memsvc.tree.erasure import erase
from memsvc.tree.errors import TreeError
from memsvc.tree.history.redaction import redact_version
from memsvc.tree.memories import create_memory, delete_memory
from memsvc.tree.models import File, Tree
from memsvc.tree.operations import DeletePath
from memsvc.tree.retention import prune_to
from memsvc.tree.trees import archive_tree, create_tree, store_with_id, tree_of
from tests.tree.support import access_to, add, entry_text

pytestmark = pytest.mark.django_db

# Kinds of errors, which are not raised themselves.
KINDS = {errors.AtPath, errors.NotFound, errors.Conflict, errors.EditRefused}
# Raised by what needs other connections; see test_concurrency.py and test_connections.py.
ELSEWHERE = {errors.Busy, errors.Unavailable}


def archived(access: Access) -> Access:
    another = replace(access, tree=create_tree(access.tree.tenant, "archived"))
    archive_tree(another)
    return another


def id_of(access: Access, path: str) -> UUID:
    return File.objects.of(access.tree).get(path=path, former_of=None).pk


def redact_moved(access: Access) -> object:
    """The version with which a file left the folder that an access sees."""
    with transaction.atomic():
        services.move(access, "/folder/b.md", "/b.md")
        services.edit_file(access, "/b.md", "mem_old", "mem_older")
        number = Tree.objects.get(pk=access.tree.pk).revision - 1
        return redact_version(replace(access, prefix="/folder"), id_of(access, "/b.md"), number)


def pruned(access: Access) -> Access:
    another = replace(access, tree=create_tree(access.tree.tenant, "pruned"))
    services.write_file(another, "/a.md", "text\n")
    prune_to(another.tree, 1)
    return another


NEVER = Precondition(if_match="0" * 64)

CAUSES: dict[str, Callable[[Access], object]] = {
    "tree_not_found": lambda access: tree_of(access.tree.tenant, "missing"),
    "tree_archived": lambda access: services.write_file(archived(access), "/a.md", "text"),
    "tree_exists": lambda access: create_tree(access.tree.tenant, access.tree.name),
    "file_not_found": lambda access: reads.read_file(access, "/missing.md"),
    "path_not_found": lambda access: reads.list_folder(access, "/missing"),
    "entry_not_found": lambda access: reads.get_entry(access, "mem_missing"),
    "revision_not_found": lambda access: reads.read_file(access, "/a.md", revision=99),
    "revision_pruned": lambda access: reads.read_file(pruned(access), "/a.md", revision=0),
    "is_directory": lambda access: reads.read_file(access, "/folder"),
    "not_a_directory": lambda access: reads.list_folder(access, "/a.md"),
    "path_taken": lambda access: services.write_file(access, "/a.md/below", "text"),
    "already_superseded": lambda access: add(access, supersedes="mem_old"),
    "invalid_supersession": lambda access: add(access, category="rules", supersedes="mem_new"),
    "precondition_failed": lambda access: services.write_file(access, "/a.md", "text", precondition=NEVER),
    "empty_old_string": lambda access: services.edit_file(access, "/a.md", "", "x"),
    "string_not_found": lambda access: services.edit_file(access, "/a.md", "missing", "x"),
    "string_not_unique": lambda access: services.edit_file(access, "/a.md", "e", "x"),
    "not_text": lambda access: services.edit_file(access, "/a.bin", "x", "y"),
    "offset_beyond_end": lambda access: reads.read_lines(access, "/a.md", offset=99),
    "too_large": lambda access: services.write_file(access, "/big", b"x" * (32 * 1024 * 1024 + 1)),
    "root_refused": lambda access: services.delete(access, "/"),
    "folder_not_empty": lambda access: services.delete(access, "/folder", recursive=False),
    "read_only": lambda access: services.delete(access.read_only(), "/a.md"),
    "forbidden": lambda access: services.delete(access_to(access.tree.tenant, prefix="/memory"), "/a.md"),
    "undo_conflict": lambda access: services.undo(access, revision=1),
    "memory_store_not_found": lambda access: store_with_id(access.tree.tenant, uuid7()),
    "memory_not_found": lambda access: reads.read_memory(access, uuid7()),
    "memory_version_not_found": lambda access: reads.read_version(access, uuid7(), 1),
    "memory_path_conflict": lambda access: create_memory(access, "/a.md/below", "text"),
    "memory_precondition_failed": lambda access: delete_memory(
        access, id_of(access, "/a.md"), sha256="0" * 64
    ),
    "nothing_to_erase": lambda access: erase(
        access, ErasureRequest(tree="default", kind=ErasureKind.SOURCE, value="nobody")
    ),
    "current_version": lambda access: redact_version(access, id_of(access, "/a.md"), 1),
    "out_of_sight": lambda access: redact_moved(access),
    "batch_failed": lambda access: services.batch(access, [DeletePath("/missing.md")]),
}


def concrete(kind: type[TreeError] = TreeError) -> set[type[TreeError]]:
    """The tree's own errors; other rooms make kinds of them."""
    found = set()
    for each in kind.__subclasses__():
        found |= {each} | concrete(each)
    return {each for each in found - KINDS if each.__module__ == errors.__name__}


@pytest.fixture
def filled(memory: Access) -> Access:
    services.upload_files(
        memory,
        [
            ("/a.md", b"some text here\n"),
            ("/a.bin", b"\xfe"),
            ("/folder/b.md", entry_text("mem_old", more="superseded_by: mem_new\n").encode()),
            ("/folder/c.md", entry_text("mem_new").encode()),
        ],
    )
    services.write_file(memory, "/a.bin", b"\xff")
    return memory


@pytest.mark.parametrize("code", CAUSES)
def test_each_error_has_its_code_and_a_sentence(filled: Access, code: str) -> None:
    with pytest.raises(TreeError) as raised:
        CAUSES[code](filled)

    said = str(raised.value)
    assert raised.value.code == code
    assert len(said) > 10
    assert not any(secret in said for secret in (str(filled.tree.pk), "SELECT", "tree_", "Traceback"))


@pytest.mark.parametrize("code", CAUSES)
def test_what_is_refused_changes_nothing(filled: Access, code: str) -> None:
    before = (Tree.objects.get(pk=filled.tree.pk).revision, reads.list_files(filled).items)

    with pytest.raises(TreeError):
        CAUSES[code](filled)

    assert (Tree.objects.get(pk=filled.tree.pk).revision, reads.list_files(filled).items) == before


def test_no_error_is_left_out() -> None:
    codes = {each.code for each in concrete() - ELSEWHERE}

    assert codes == CAUSES.keys()
    assert len({each.code for each in concrete()}) == len(concrete())


def test_errors_carry_what_a_program_needs(filled: Access) -> None:
    def raised(code: str) -> TreeError:
        with pytest.raises(TreeError) as caught:
            CAUSES[code](filled)
        return caught.value

    facts: dict[str, dict[str, object]] = {
        "file_not_found": {"path": "/missing.md"},
        "entry_not_found": {"entry_id": "mem_missing"},
        "revision_not_found": {"number": 99, "newest": 2},
        "revision_pruned": {"number": 0, "oldest": 1},
        "already_superseded": {"entry_id": "mem_old", "successor": "mem_new"},
        "precondition_failed": {"revision": 2, "etag": reads.read_file(filled, "/a.md").etag},
        "string_not_unique": {"occurrences": 4},
        "offset_beyond_end": {"offset": 99, "total_lines": 1},
        "batch_failed": {"index": 0},
    }
    for code, expected in facts.items():
        error = raised(code)
        assert {name: getattr(error, name) for name in expected} == expected
