"""One table of error codes: no code stands anywhere else, and an error goes over the wire without loss."""

import ast
import json
import re
from pathlib import Path

import pytest
from deepagents.backends import protocol

from memsvc.agents.backends.results import edit_refusal, refusal, transfer_refusal
from memsvc.api import problems
from memsvc.client.errors import Conflict, EditRefused, NotFound, Unavailable, error_for
from memsvc.contract import errors as table
from memsvc.contract.errors import ErrorCode, Refused
from memsvc.contract.history import UndoConflict
from memsvc.format import CodedError, InvalidPath
from memsvc.tree import errors
from tenants.keys import KeyEnded

REPOSITORY = Path(__file__).parents[2]
TABLE = Path(str(table.__file__))
SOURCES = [path for room in ("memsvc", "tenants") for path in sorted((REPOSITORY / room).rglob("*.py"))]
FORMAT = REPOSITORY / "memsvc/format"
# Words with other meanings too: a member of JSON objects, and the code of a field.
OTHER_MEANINGS = {"error", "conflict"}
# Of the format, which stands below the table and says them itself.
SPELT_BELOW = {
    "blank_body",
    "body_too_large",
    "invalid_entry",
    "invalid_format",
    "invalid_glob",
    "invalid_metadata",
    "invalid_path",
    "invalid_text",
    "invalid_title",
}
# What DRF finds itself, with codes of its own that are ours as well.
OF_THE_FRAMEWORK = {"method_not_allowed", "not_acceptable", "unsupported_media_type"}

ERRORS = [
    errors.FileNotFound("/memory/a.md"),
    errors.FolderNotFound("/memory/a"),
    errors.EntryNotFound("mem_1"),
    errors.RevisionPruned(1, 5),
    errors.IsFolder("/memory/a"),
    errors.PathTaken("/memory/a", "there is a file already"),
    errors.AlreadySuperseded("mem_1", "mem_2"),
    errors.UndoRefused([UndoConflict(revision=2, path="/a.md", reason="it was changed")]),
    errors.PreconditionFailed("'/a.md'", revision=7, etag=None),
    errors.StringNotUnique("Error: String 'a' appears 2 times in file.", 2),
    errors.NotText(),
    errors.OffsetBeyondEnd(9, 3),
    errors.RootRefused(),
    errors.ReadOnly(),
    errors.Forbidden("/a.md", "/memory"),
    errors.Busy(),
    InvalidPath("a path needs a \ud800 name"),
    KeyEnded(),
    Refused("This needs a key with the scope 'write'.", code=ErrorCode.MISSING_SCOPE),
]


def texts(path: Path) -> list[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def documented() -> list[tuple[str, set[int]]]:
    """The codes that docs/rest.md names, each with the statuses of its line."""
    section = (REPOSITORY / "docs/rest.md").read_text().partition("\n## Errors\n")[2].partition("\n## ")[0]
    found = []
    for statuses, codes in re.findall(r"^\| ([\d, ]+) \| (.*) \|$", section, re.MULTILINE):
        # In parentheses, and behind a comma or colon in a sentence, stand members.
        named = re.findall(r"`([a-z_]+)`", re.sub(r"\(.*?\)|, with .*|: .*", "", codes))
        found += [(code, {int(status) for status in statuses.split(",")}) for code in named]
    return found


def test_no_code_stands_anywhere_but_in_the_table() -> None:
    spelt = [
        (path, text)
        for path in SOURCES
        if path != TABLE
        for text in texts(path)
        if text in ErrorCode and text not in OTHER_MEANINGS
    ]

    assert sorted(text for _, text in spelt) == sorted(SPELT_BELOW)
    assert all(FORMAT in path.parents for path, _ in spelt)


def test_each_code_of_the_table_is_used() -> None:
    used = {
        node.attr
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "ErrorCode"
    }

    assert {code for code in ErrorCode if code.name not in used} <= SPELT_BELOW | OF_THE_FRAMEWORK


def test_the_documented_codes_have_the_documented_statuses() -> None:
    found = documented()

    assert len(found) > 40
    assert [code for code, statuses in found if ErrorCode(code).status not in statuses] == []


def test_verdicts_are_those_of_the_backend_protocol() -> None:
    verdicts = {code.verdict for code in ErrorCode if code.verdict}

    assert verdicts == {
        protocol.FILE_NOT_FOUND,
        protocol.INVALID_PATH,
        protocol.IS_DIRECTORY,
        protocol.PERMISSION_DENIED,
    }


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
def test_an_error_goes_over_the_wire_without_loss(error: CodedError) -> None:
    answer = problems.handle(error)
    assert answer is not None
    there = error_for(answer.status_code, problem=json.loads(answer.content))

    assert (there.code, there.detail) == (error.code, error.detail)
    assert error.members.items() <= there.members.items()
    for told in (refusal, edit_refusal, transfer_refusal):
        assert told(there, "/a.md") == told(error, "/a.md")


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
def test_members_are_those_of_the_table(error: CodedError) -> None:
    kinds = ErrorCode(error.code).members

    assert error.members.keys() <= kinds.keys()
    assert all(isinstance(value, kinds[name]) for name, value in error.members.items())


def test_a_model_hears_of_paths_by_the_names_that_it_has_for_them() -> None:
    assert refusal(errors.FileNotFound("/memory/a.md"), "/a.md") == "File '/a.md' not found"
    assert "/memory" not in refusal(errors.PathTaken("/memory/a", "'/memory' is a file"), "/a")


def test_a_code_that_only_a_later_server_knows_is_an_error_of_its_status() -> None:
    kinds = {404: NotFound, 409: Conflict, 503: Unavailable}

    for status, kind in kinds.items():
        error = error_for(status, problem={"code": "brand_new", "detail": "Something new in '/memory/a.md'."})
        assert (type(error), error.code) == (kind, "brand_new")
        assert refusal(error, "/a.md") == "The memory service could not do this for '/a.md' (brand_new)."


def test_each_way_to_refuse_an_edit_is_one_for_a_client() -> None:
    for code in ErrorCode:
        if code.kind == ErrorCode.EDIT_REFUSED:
            assert type(error_for(code.status, problem={"code": code})) is EditRefused


def test_what_nobody_raised_on_purpose_tells_nothing() -> None:
    assert refusal(ZeroDivisionError("secret"), "/a.md") == (
        "The memory service could not do this for '/a.md' (internal_error)."
    )
