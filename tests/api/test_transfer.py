import io
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.api.support import add_entry, paths, post, problem, put, raw, streamed
from tests.transfer.test_mneme import database, record

TREE = "/v1/trees/default"
EXPORT = f"{TREE}/export.zip"
IMPORTS = f"{TREE}/imports"


def zip_of(files: dict[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return sink.getvalue()


def exported(client: APIClient, **params: Any) -> bytes:
    answer = client.get(EXPORT, params)
    assert answer.status_code == 200, answer.content
    return streamed(answer)


def bring(client: APIClient, archive: bytes, query: str = "") -> Any:
    return client.post(IMPORTS + query, archive, content_type="application/zip")


def test_what_is_exported_can_be_imported(api: APIClient, stranger: APIClient) -> None:
    put(api, "memory/notes/a.md", b"a\r\n")
    put(api, "b.bin", b"\x00\xff")

    report = bring(stranger, exported(api))

    assert report.status_code == 200, report.content
    assert report.json()["dry_run"] is False
    assert {"/memory/notes/a.md", "/b.bin"} <= {file["path"] for file in report.json()["files"]}
    assert (raw(stranger, "memory/notes/a.md"), raw(stranger, "b.bin")) == (b"a\r\n", b"\x00\xff")


def test_one_revision_gives_the_same_bytes(api: APIClient) -> None:
    put(api, "a.md", "one")
    first = exported(api)
    put(api, "a.md", "two")

    assert exported(api, revision=1) == first
    assert exported(api) != first
    assert problem(api.get(EXPORT, {"revision": 9})) == (404, "revision_not_found")


def test_an_export_is_a_zip_whatever_is_accepted(api: APIClient) -> None:
    answer = api.get(EXPORT, headers={"Accept": "text/html"})

    assert answer.headers["Content-Type"] == "application/zip"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="export.zip"'
    assert streamed(answer).startswith(b"PK")


def test_a_dry_run_changes_nothing(api: APIClient) -> None:
    report = bring(api, zip_of({"memory/notes.md": b"x"}), "?dry_run=true").json()

    assert (report["dry_run"], [(file["path"], file["outcome"]) for file in report["files"]]) == (
        True,
        [("/memory/notes.md", "created")],
    )
    assert paths(api) == []


def test_a_bad_archive_leaves_nothing_behind(api: APIClient) -> None:
    evil = bring(api, zip_of({"good.md": b"x", "../evil.md": b"x"}))

    assert problem(evil) == (400, "import_refused")
    assert evil.json()["errors"][0]["field"] == "../evil.md"
    assert problem(bring(api, b"no zip")) == (400, "invalid_archive")
    assert problem(bring(api, b"")) == (400, "invalid_request")
    assert problem(api.post(IMPORTS, {"a": 1}, format="json")) == (415, "unsupported_media_type")
    assert paths(api) == []


def test_export_and_import_need_their_scopes(api: APIClient, reader: APIClient) -> None:
    assert problem(reader.get(EXPORT)) == (403, "missing_scope")
    assert problem(bring(reader, zip_of({"a.md": b"x"}))) == (403, "missing_scope")


def test_a_strangers_export_is_empty(api: APIClient, stranger: APIClient) -> None:
    put(api, "secret.md", "canary")

    with zipfile.ZipFile(io.BytesIO(exported(stranger))) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".md")]


def test_the_history_goes_out_as_a_git_bundle(api: APIClient, tmp_path: Path) -> None:
    put(api, "memory/a.md", b"one\r\n")
    put(api, "memory/a.md", b"two\r\n")

    answer = api.get(f"{TREE}/export.bundle")

    assert answer.headers["Content-Type"] == "application/x-git-bundle"
    (tmp_path / "export.bundle").write_bytes(streamed(answer))
    subprocess.run(["git", "clone", "-q", "export.bundle", "clone"], cwd=tmp_path, check=True)
    assert (tmp_path / "clone/memory/a.md").read_bytes() == b"two\r\n"
    assert problem(api.get(f"{TREE}/export.bundle", {"revision": 9})) == (404, "revision_not_found")


def test_there_is_no_bundle_of_an_empty_history(api: APIClient) -> None:
    assert problem(api.get(f"{TREE}/export.bundle")) == (404, "file_not_found")


def test_what_goes_out_as_json_lines_can_be_imported(api: APIClient, stranger: APIClient) -> None:
    put(api, "memory/notes/a.md", b"a\r\n")
    put(api, "b.bin", b"\x00\xff")
    answer = api.get(f"{TREE}/export.jsonl")
    assert answer.headers["Content-Type"] == "application/jsonl"
    lines = streamed(answer)

    report = stranger.post(IMPORTS, lines, content_type="application/jsonl; charset=utf-8")
    again = stranger.post(f"{IMPORTS}?format=jsonl", lines, content_type="application/octet-stream")

    assert (report.status_code, again.json()["counts"]["unchanged"]) == (200, 2)
    assert (raw(stranger, "memory/notes/a.md"), raw(stranger, "b.bin")) == (b"a\r\n", b"\x00\xff")
    assert streamed(stranger.get(f"{TREE}/export.jsonl")) == lines


def test_a_line_that_is_refused_is_named(api: APIClient) -> None:
    lines = b'{"format": "memsvc-export", "version": 1}\n{"type": "document"}\n'

    refused = api.post(IMPORTS, lines, content_type="application/x-ndjson")

    assert problem(refused) == (400, "import_refused")
    assert refused.json()["errors"][0]["field"] == "line 2"


def test_memories_of_mneme_are_imported(api: APIClient, tmp_path: Path) -> None:
    data = database(tmp_path, record("m1"), record("m2", agent_id="other")).read_bytes()

    several = api.post(IMPORTS, data, content_type="application/vnd.sqlite3")
    report = api.post(f"{IMPORTS}?only=bot", data, content_type="application/vnd.sqlite3")

    assert problem(several) == (400, "import_refused")
    assert [(entry["entry_id"], entry["outcome"]) for entry in report.json()["entries"]] == [
        ("m1", "created")
    ]
    assert api.get(f"{TREE}/entries/m1").json()["body"] == "What m1 says."


def test_notebooks_of_pydantic_deep_are_imported(api: APIClient) -> None:
    archive = zip_of({".deep/memory/main/MEMORY.md": b"- a note\n"})

    report = bring(api, archive, "?format=pydantic-deep")

    assert report.json()["files"][0]["path"] == "/agents/main/MEMORY.md"
    assert raw(api, "agents/main/MEMORY.md") == b"- a note\n"


def test_a_format_that_there_is_not_is_refused(api: APIClient) -> None:
    assert problem(bring(api, zip_of({"a.md": b"x"}), "?format=tar")) == (400, "invalid_request")
    assert problem(bring(api, zip_of({"a.md": b"x"}), "?only=x")) == (400, "import_refused")
    assert problem(bring(api, b"x" * 10, "?format=mneme")) == (400, "invalid_archive")


def test_an_older_copy_changes_nothing_unless_that_is_asked_for(api: APIClient) -> None:
    kept, gone = (add_entry(api, body=body)["id"] for body in ("Has 2 cats.", "Lives in Oslo."))
    archive = exported(api)
    assert api.delete(f"{TREE}/entries/{gone}").status_code == 200
    assert post(api, f"{TREE}/entries/{kept}:supersede", body="Has 3 cats.").status_code == 201

    for query in ("", "?on_conflict=keep", "?dry_run=true"):
        report = bring(api, archive, query).json()
        told = {(each["entry_id"], each["differs"], each["done"]) for each in report["differences"]}
        assert told >= {(gone, "retired", "kept"), (kept, "superseded", "kept")}
        assert report["more_differences"] == 0
        assert api.get(f"{TREE}/entries/{gone}").status_code == 404
    taken = bring(api, archive, "?on_conflict=take").json()
    assert (gone, "retired", "taken") in {
        (each["entry_id"], each["differs"], each["done"]) for each in taken["differences"]
    }
    assert api.get(f"{TREE}/entries/{gone}").status_code == 200


@pytest.mark.parametrize("value", ["", "newest", "KEEP"])
def test_what_is_no_way_to_settle_a_conflict_is_refused(api: APIClient, value: str) -> None:
    answer = bring(api, zip_of({"a.md": b"x"}), f"?on_conflict={value}")

    assert problem(answer) == (400, "invalid_request")
    assert paths(api) == []


def test_one_bad_name_is_an_item_of_the_report(api: APIClient) -> None:
    report = bring(api, zip_of({"good.md": b"x", "e\u202evil.md": b"x"})).json()

    assert {file["path"]: file["outcome"] for file in report["files"]} == {
        "/good.md": "created",
        "e\\u202evil.md": "refused",
    }
    assert paths(api) == ["/good.md"]
