"""The backend protocol of deepagents, on the backend in this process and on the one over HTTP."""

import asyncio
import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest
from deepagents.backends import CompositeBackend, StateBackend
from deepagents.backends.protocol import BackendProtocol, SandboxBackendProtocol
from deepagents.middleware.filesystem import FilesystemMiddleware
from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage

from memsvc.agents import PostgresBackend, TransactionalMemory
from memsvc.client import RemoteBackend
from memsvc.testing import fresh_tree
from tenants.scopes import Scope
from tenants.services import create_key

pytestmark = pytest.mark.django_db(transaction=True)

# Valid UTF-8 only up to the middle of a character: the whole content decides, not its beginning.
LATIN = b"caf\xe9\n"


@pytest.fixture(params=["postgres", "remote"])
def backend(request: pytest.FixtureRequest) -> Iterator[BackendProtocol]:
    if request.param == "postgres":
        yield PostgresBackend(fresh_tree())
        return
    url = request.getfixturevalue("live_url")
    _, key = create_key(tenant=fresh_tree().tenant, name="test", scopes=(Scope.READ, Scope.WRITE))
    remote = RemoteBackend(url, api_key=key)
    yield remote
    remote.close()


def put(backend: BackendProtocol, **files: str) -> None:
    for name, content in files.items():
        assert backend.write("/" + name.replace("__", "/") + ".md", content).error is None


def stored(backend: BackendProtocol, path: str) -> bytes | None:
    return backend.download_files([path])[0].content


def paths(found: Any) -> list[str]:
    assert found.error is None
    return [item["path"] for item in (found.entries if hasattr(found, "entries") else found.matches)]


def test_it_is_a_hashable_backend_without_a_shell(backend: Any) -> None:
    assert isinstance(backend, BackendProtocol)
    assert not isinstance(backend, SandboxBackendProtocol)
    assert isinstance(backend, TransactionalMemory)
    assert {backend: 1}[backend] == 1


def test_ls_shows_what_lies_right_below_in_order_of_code_points(backend: Any) -> None:
    put(backend, B="1", a="22", a__x="3", a__y__z="4")
    backend.write("/.hidden", "5")

    listed = backend.ls("/")

    assert paths(listed) == ["/.hidden", "/B.md", "/a.md", "/a/"]
    assert [entry["is_dir"] for entry in listed.entries] == [False, False, False, True]
    assert [entry["size"] for entry in listed.entries] == [1, 1, 2, 0]
    assert datetime.fromisoformat(listed.entries[0]["modified_at"]).tzinfo is not None
    assert paths(backend.ls("a/")) == ["/a/x.md", "/a/y/"]
    assert paths(backend.ls("")) == paths(listed)


def test_ls_of_nothing_of_a_missing_folder_and_of_a_file(backend: Any) -> None:
    assert backend.ls("/").entries == []

    put(backend, a="1")

    assert backend.ls("/none").error == "Path '/none': path_not_found"
    assert backend.ls("/a.md").error == "Path '/a.md': not_a_directory"
    assert backend.ls("/none").entries is None


def test_read_gives_windows_that_join_to_the_file(backend: Any) -> None:
    text = "".join(f"line {n}\n" for n in range(1, 139)) + "end without a line end"
    put(backend, a=text)
    parts, offset = [], 0
    while offset is not None:
        page = backend.read("/a.md", offset, 10)
        parts.append(page.file_data["content"])
        offset = page.next_offset

    assert "".join(parts) == text
    page = backend.read("/a.md", 10, 5)
    assert (page.start_line, page.end_line, page.total_lines, page.next_offset) == (11, 15, 139, 15)
    assert backend.read("/a.md", 139).error == "Line offset 139 exceeds file length (139 lines)"


@pytest.mark.parametrize(("offset", "limit"), [(-3, 0), (0, 0), (0, -1), (99, 0)])
def test_reading_no_lines_is_no_error(backend: Any, offset: int, limit: int) -> None:
    put(backend, a="one\n", blank=" \n")

    read = backend.read("/a.md", offset, limit)

    assert (read.error, read.file_data["content"], read.no_lines_requested) == (None, "", True)
    blank = backend.read("/blank.md", offset, limit)
    assert (blank.file_data["content"], blank.no_lines_requested, blank.total_lines) == (" \n", False, None)


def test_read_counts_lines_as_python_does_and_shows_plain_line_ends(backend: Any) -> None:
    backend.upload_files([("/a.md", "a\r\nb\rc\x85d\u2028e\x0cf".encode())])

    read = backend.read("/a.md", 0, 3)

    assert (read.file_data["content"], read.total_lines) == ("a\nb\nc\x85", 6)
    assert stored(backend, "/a.md") == "a\r\nb\rc\x85d\u2028e\x0cf".encode()


def test_read_of_a_missing_file_and_of_a_folder(backend: Any) -> None:
    put(backend, d__a="1")

    for path in ("/none.md", "/d", "/d/", "/d/a.md/b", "/", "/x.png"):
        assert backend.read(path).error == f"File '{path}' not found"


@pytest.mark.parametrize(
    ("path", "content"), [("/p.PNG", b"plain text"), ("/notes.md", LATIN), ("/a.docx", b"PK\xff")]
)
def test_media_and_undecodable_bytes_come_whole_in_base64(backend: Any, path: str, content: Any) -> None:
    backend.upload_files([(path, content)])

    data = backend.read(path, 5, 1).file_data

    assert (data["encoding"], base64.b64decode(data["content"])) == ("base64", content)


def test_write_replaces_byte_for_byte_and_keeps_the_time_of_creation(backend: Any) -> None:
    content = "\ufeffone\r\ntwo\x00\x1b\n\nno line end"
    backend.upload_files([("/a.md", LATIN)])
    created = backend.read("/a.md").file_data["created_at"]

    assert backend.write("/a.md", content).path == "/a.md"

    assert stored(backend, "/a.md") == content.encode()
    assert backend.read("/a.md").file_data["created_at"] == created


def test_a_lone_surrogate_is_refused_and_the_old_content_stays(backend: Any) -> None:
    put(backend, a="old")

    assert backend.write("/a.md", "\ud800").error
    assert backend.edit("/a.md", "old", "\udfff").error
    assert stored(backend, "/a.md") == b"old"


def test_every_spelling_of_a_path_is_one_file(backend: Any) -> None:
    for number, path in enumerate(["/d/a.md", "//d/a.md", "/./d//a.md", "d/a.md", "/d/a.md/"]):
        assert backend.write(path, str(number)).path == "/d/a.md"

    assert paths(backend.glob("**/*")) == ["/d/a.md"]
    assert backend.write("/e\u0301.md", "x").path == backend.write("/\u00e9.md", "y").path


@pytest.mark.parametrize(
    "path", ["/..", "/a/../b", "../x", "/a\0b", "/\ud800", "/" + "x" * 256, "/x" * 2000, "/", ""]
)
def test_what_is_no_file_name_is_refused_as_a_result(backend: Any, path: str) -> None:
    assert backend.write(path, "x").error
    assert backend.edit(path, "a", "b").error
    assert backend.read(path).error
    assert backend.upload_files([(path, b"x")])[0].error == "invalid_path"
    assert backend.download_files([path])[0].error in ("invalid_path", "is_directory")
    assert backend.ls("/").entries == []


@pytest.mark.parametrize(
    "name", ["v1..v2.md", "...md", "..a/b.md", "100%.md", "a_b.md", "*?[{.md", "~x", "日本 語.md", "a\\b.md"]
)
def test_odd_names_are_literal(backend: Any, name: str) -> None:
    assert backend.write("/" + name, "needle").path == "/" + name

    assert stored(backend, "/" + name) == b"needle"
    assert [match["path"] for match in backend.grep("needle").matches] == ["/" + name]
    assert backend.delete("/" + name).error is None


def test_a_file_and_a_folder_exclude_each_other(backend: Any) -> None:
    put(backend, a="1", d__b="2")

    assert backend.write("/a.md/child", "x").error
    assert backend.write("/d", "x").error
    assert paths(backend.glob("**/*")) == ["/a.md", "/d/b.md"]


def test_of_a_file_and_a_folder_that_race_one_wins(backend: Any) -> None:
    with ThreadPoolExecutor(2) as pool:
        for number in range(5):
            answers = list(
                pool.map(lambda path: backend.write(path, "x").error, [f"/r{number}", f"/r{number}/c"])
            )
            assert answers.count(None) == 1


def test_edit_is_exact_and_says_why_not(backend: Any) -> None:
    put(backend, a="tea and tea\n", end="no line end")

    assert backend.edit("/a.md", "tea", "milk").error.startswith(
        "Error: String 'tea' appears 2 times in file."
    )
    assert backend.edit("/a.md", "Tea", "milk").error == "Error: String not found in file: 'Tea'"
    assert backend.edit("/a.md", "", "milk").error.startswith("Error: old_string cannot be empty.")
    assert backend.edit("/none.md", "a", "b").error == "Error: File '/none.md' not found"
    assert "ends with a newline, but the file does" in backend.edit("/end.md", "line end\n", "x").error
    assert stored(backend, "/a.md") == b"tea and tea\n"
    edited = backend.edit("/a.md", "tea", "milk", replace_all=True)
    assert (edited.path, edited.occurrences) == ("/a.md", 2)
    assert backend.edit("/a.md", "milk and milk\n", "").occurrences == 1
    assert stored(backend, "/a.md") == b""


@pytest.mark.parametrize("needle", ["one\ntwo", "one\r\ntwo"])
def test_edit_matches_crlf_text_in_either_form(backend: Any, needle: str) -> None:
    backend.upload_files([("/a.md", b"one\r\ntwo\r\nthree\r\n")])

    assert backend.edit("/a.md", needle, "1\n2").occurrences == 1

    content = stored(backend, "/a.md") or b""
    assert content.replace(b"\r\n", b"\n") == b"1\n2\nthree\n"
    assert content.count(b"\r\n") in (0, 3)


def test_edit_looks_at_the_bytes_and_not_at_the_name(backend: Any) -> None:
    backend.upload_files([("/p.png", b"text"), ("/a.md", LATIN)])

    assert backend.edit("/p.png", "text", "words").occurrences == 1
    assert (
        backend.edit("/a.md", "caf", "x").error == "Error: Cannot edit binary files with text replacements."
    )


def test_concurrent_edits_of_different_places_all_survive(backend: Any) -> None:
    put(backend, a="".join(f"<{n}>\n" for n in range(12)))
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda n: backend.edit("/a.md", f"<{n}>", f"[{n}]"), range(12)))

    assert [result.error for result in results] == [None] * 12
    assert stored(backend, "/a.md") == "".join(f"[{n}]\n" for n in range(12)).encode()


def test_of_rival_edits_one_wins(backend: Any) -> None:
    put(backend, a="old")
    with ThreadPoolExecutor(4) as pool:
        errors = list(pool.map(lambda n: backend.edit("/a.md", "old", f"new {n}").error, range(4)))

    assert errors.count(None) == 1
    assert errors.count("Error: String not found in file: 'old'") == 3


def test_delete_takes_what_lies_below_and_nothing_beside(backend: Any) -> None:
    put(backend, note__a="1", note__deep__b="2", notebook="3", note="4")

    assert backend.delete("/note/").path == "/note"
    assert paths(backend.glob("**/*")) == ["/note.md", "/notebook.md"]
    assert "not found" in backend.delete("/note").error
    assert "not found" in backend.delete("/note.md/below").error
    assert backend.delete("/note%").error


def test_delete_of_the_root_is_refused_and_nothing_goes(backend: Any) -> None:
    put(backend, a="1")

    refused = backend.delete("/")

    assert (refused.path, "root" in refused.error) == (None, True)
    assert paths(backend.ls("/")) == ["/a.md"]


def test_grep_is_literal_by_line(backend: Any) -> None:
    put(backend, a="tea\r\nx\rTEA tea\n", d__b="t.a (y\u2028tea")
    backend.upload_files([("/c.md", LATIN + b"tea")])

    hits = [(match["path"], match["line"], match["text"]) for match in backend.grep("tea").matches]

    assert hits == [("/a.md", 1, "tea"), ("/a.md", 3, "TEA tea"), ("/d/b.md", 1, "t.a (y\u2028tea")]
    assert len(backend.grep("t.a (y").matches) == 1
    assert len(backend.grep("").matches) == 4
    assert backend.grep("tea\n").matches == []
    assert not backend.grep("\ud800").matches
    assert backend.grep("tea", "/none").matches == []
    assert [match["path"] for match in backend.grep("tea", "/d/b.md").matches] == ["/d/b.md"]
    assert [match["path"] for match in backend.grep("tea", "/d", "*.md").matches] == ["/d/b.md"]
    assert backend.grep("tea", "/", "../*").error
    assert backend.grep("tea", "/", "../*").matches is None


@pytest.mark.parametrize(
    ("count", "found", "truncated"), [(3, 3, False), (2, 2, True), (0, 0, True), (-1, 0, True)]
)
def test_grep_counts_over_all_files(backend: Any, count: int, found: int, truncated: bool) -> None:
    put(backend, a="tea\ntea\n", b="tea\n")

    result = backend.grep("tea", max_count=count)

    assert (len(result.matches), result.truncated) == (found, truncated)


def test_glob_follows_the_rules_of_the_protocol(backend: Any) -> None:
    put(backend, top="1", d__b="2", d__e__c="3")
    backend.write("/.git/x.md", "4")

    assert paths(backend.glob("*.md")) == ["/.git/x.md", "/d/b.md", "/d/e/c.md", "/top.md"]
    assert paths(backend.glob("**/*.md")) == ["/d/b.md", "/d/e/c.md", "/top.md"]
    assert paths(backend.glob("/*.md")) == ["/top.md"]
    assert paths(backend.glob("e/*.md", "/d")) == ["/d/e/c.md"]
    assert paths(backend.glob("{b,c}.md", "/d")) == ["/d/b.md", "/d/e/c.md"]
    assert paths(backend.glob("*.md", "/d/b.md")) == ["/d/b.md"]
    assert paths(backend.glob("*", "/none")) == []
    assert paths(backend.glob("[a-")) == []
    assert backend.glob("../*").error
    assert backend.glob("../*").matches is None


def test_transfers_keep_every_byte_and_judge_item_by_item(backend: Any) -> None:
    blobs = [b"\x00\xff\xfe", b"", "text\r\n".encode("utf-16"), b"aGVsbG8=", b"a\r\nb"]
    names = [f"/d/{n}.bin" for n in range(len(blobs))]
    put(backend, folder__a="1")

    up = backend.upload_files(
        [*zip(names, blobs, strict=True), ("/..", b"x"), ("/folder", b"x"), (names[0], b"last")]
    )
    down = backend.download_files([*names, "/none", "/folder", "/../x", "/d/0.bin/below"])

    assert [answer.error for answer in up] == [None] * 5 + ["invalid_path", "is_directory", None]
    assert [answer.content for answer in down[:5]] == [b"last", *blobs[1:]]
    assert [answer.error for answer in down[5:]] == [
        "file_not_found",
        "is_directory",
        "invalid_path",
        "file_not_found",
    ]
    assert [answer.path for answer in down] == [*names, "/none", "/folder", "/../x", "/d/0.bin/below"]


def test_the_async_twins_do_the_same(backend: Any) -> None:
    async def use_it() -> list[Any]:
        written = await asyncio.gather(*(backend.awrite(f"/{n}.md", f"tea {n}") for n in range(6)))
        return [
            [result.error for result in written],
            paths(await backend.als("/")),
            (await backend.aedit("/1.md", "tea", "milk")).occurrences,
            (await backend.aread("/1.md")).file_data["content"],
            len((await backend.agrep("tea", max_count=3)).matches),
            len((await backend.aglob("*.md")).matches),
            (await backend.adelete("/1.md")).path,
            (await backend.aupload_files([("/u", b"x")]))[0].error,
            (await backend.adownload_files(["/u"]))[0].content,
        ]

    assert asyncio.run(use_it()) == [
        [None] * 6,
        [f"/{n}.md" for n in range(6)],
        1,
        "milk 1",
        3,
        6,
        "/1.md",
        None,
        b"x",
    ]


def test_behind_a_route_the_paths_are_the_mount_s(backend: Any) -> None:
    mounted = CompositeBackend(default=StateBackend(), routes={"/memory/": backend})
    put(backend, d__a="tea\n")

    assert mounted.write("/memory/b.md", "tea").path == "/memory/b.md"
    assert paths(mounted.ls("/memory")) == ["/memory/b.md", "/memory/d/"]
    assert [match["path"] for match in mounted.grep("tea", "/memory").matches or []] == [
        "/memory/b.md",
        "/memory/d/a.md",
    ]
    assert paths(mounted.glob("*.md", "/memory/")) == ["/memory/b.md", "/memory/d/a.md"]
    assert mounted.delete("/memory").error
    assert [answer.error for answer in mounted.download_files(["/memory/b.md", "/memory/none"])] == [
        None,
        "file_not_found",
    ]


BROKEN = "# Notes\n---\nid: mem_1\ncreated: 2026-01-01\ncategory: facts\n---\n\nBody.\n"


@pytest.mark.parametrize("runs_async", [False, True])
def test_a_model_reads_what_can_not_be_found_in_what_it_wrote(backend: Any, runs_async: bool) -> None:
    mounted = CompositeBackend(default=StateBackend(), routes={"/memory/": backend})
    middleware = FilesystemMiddleware(backend=mounted)
    tools = {tool.name: tool for tool in middleware.tools}

    def call(name: str, **arguments: Any) -> ToolMessage:
        runtime: Any = ToolRuntime({}, None, {}, lambda _: None, "1", None)
        tool: Any = tools[name]
        if runs_async:
            answer = asyncio.run(tool.coroutine(**arguments, runtime=runtime))
        else:
            answer = tool.func(**arguments, runtime=runtime)
        assert isinstance(answer, ToolMessage)
        return answer

    written = call("write_file", file_path="/memory/notes.md", content=BROKEN)
    assert written.status == "success"
    assert written.text.startswith("Updated file /memory/notes.md, but take care:\n- line 2: ")
    assert "put a blank line above" in written.text

    edited = call(
        "edit_file",
        file_path="/memory/notes.md",
        old_string="# Notes",
        new_string="# My notes",
        replace_all=False,
    )
    assert edited.text.startswith(
        "Successfully replaced 1 instance(s) of the string in '/memory/notes.md', but take care:\n- line 2: "
    )
    assert edited.text.endswith("Mend it in '/memory/notes.md'")


def test_a_result_that_warns_is_one_of_the_protocol(backend: Any) -> None:
    written, plain = backend.write("/a.md", BROKEN), backend.write("/b.md", "x")
    assert (written.error, written.path) == (None, "/a.md")
    assert [(each.line, each.code) for each in written.warnings] == [(2, "swallowed_entry")]
    assert not hasattr(plain, "warnings")
    edited = backend.edit("/a.md", "Body", "Text")
    assert (edited.error, edited.path, edited.occurrences) == (None, "/a.md", 1)
    assert "swallowed_entry" in repr(edited)
    good, bad = backend.upload_files([("/c.md", b"x"), ("/d.md", BROKEN.encode())])
    assert (good.error, bad.error, bad.path) == (None, None, "/d.md")
    assert [each.code for each in bad.warnings] == ["swallowed_entry"]
