"""The model's memory tool over the real server: what it answers, refuses, and leaves in the tree."""

from typing import Any

import pytest

from memsvc.agents import RemoteBackend
from memsvc.client import MemsvcClient
from memsvc.client.memory_tool import MemoryTool
from tenants.scopes import Scope
from tests.client.conftest import Connect

NOTES = "/memories/notes.md"


@pytest.fixture
def tool(client: MemsvcClient) -> MemoryTool:
    return MemoryTool(client)


def done(tool: MemoryTool, name: str, **fields: Any) -> str:
    answer = tool.run({"command": name, **fields})
    assert not answer.is_error, answer.text
    return answer.text


def refused(tool: MemoryTool, name: str, **fields: Any) -> str:
    answer = tool.run({"command": name, **fields})
    assert answer.is_error, answer.text
    assert answer.text.startswith("Error: ")
    return answer.text


def test_a_file_is_made_and_seen_with_line_numbers(tool: MemoryTool, client: MemsvcClient) -> None:
    assert (
        done(tool, "create", path=NOTES, file_text="one\ntwo\n") == f"File created successfully at: {NOTES}"
    )

    assert done(tool, "view", path=NOTES) == (
        f"Here's the content of {NOTES} with line numbers:\n     1\tone\n     2\ttwo"
    )
    assert client.read_text("/memory/notes.md") == "one\ntwo\n"


def test_a_range_of_lines_is_seen(tool: MemoryTool) -> None:
    done(tool, "create", path=NOTES, file_text="a\nb\nc\nd\n")

    assert done(tool, "view", path=NOTES, view_range=[2, 3]).endswith(":\n     2\tb\n     3\tc")
    assert done(tool, "view", path=NOTES, view_range=[3, -1]).endswith(":\n     3\tc\n     4\td")
    assert "has 4 lines" in refused(tool, "view", path=NOTES, view_range=[5, 9])
    assert "view_range" in refused(tool, "view", path=NOTES, view_range=[1])


def test_a_long_file_is_seen_in_pages(tool: MemoryTool) -> None:
    done(tool, "create", path=NOTES, file_text="".join(f"{n:>90}\n" for n in range(3000)))

    seen = done(tool, "view", path=NOTES)

    assert len(seen) < 101_000
    assert "are not shown. View them with view_range [" in seen


def test_a_folder_shows_two_levels_without_dot_names(tool: MemoryTool) -> None:
    for name in ("b.md", "a/x.md", "a/deep/er/y.md", ".hidden/z.md", "a/.z"):
        done(tool, "create", path=f"/memories/{name}", file_text="12345")

    assert done(tool, "view", path="/memories") == (
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:\n"
        "25B\t/memories/\n"
        "10B\t/memories/a/\n"
        "5B\t/memories/a/deep/\n"
        "5B\t/memories/a/x.md\n"
        "5B\t/memories/b.md"
    )


def test_an_empty_memory_is_an_empty_folder(tool: MemoryTool) -> None:
    assert done(tool, "view", path="/memories").endswith("\n0B\t/memories/")


def test_create_never_overwrites(tool: MemoryTool, client: MemsvcClient) -> None:
    done(tool, "create", path=NOTES, file_text="first")

    assert "already exists" in refused(tool, "create", path=NOTES, file_text="second")
    assert client.read_text("/memory/notes.md") == "first"


def test_the_one_occurrence_is_replaced_and_a_snippet_shown(tool: MemoryTool, client: MemsvcClient) -> None:
    done(tool, "create", path=NOTES, file_text="".join(f"line {n}\n" for n in range(1, 21)))

    answer = done(tool, "str_replace", path=NOTES, old_str="line 10\n", new_str="ten\n")

    assert answer.splitlines()[1:] == [
        *(f"{n:>6}\tline {n}" for n in range(6, 10)),
        "    10\tten",
        *(f"{n:>6}\tline {n}" for n in range(11, 16)),
    ]
    assert "\nten\n" in client.read_text("/memory/notes.md")


def test_what_can_not_be_replaced_is_explained(tool: MemoryTool) -> None:
    done(tool, "create", path=NOTES, file_text="x\ny\nx\n")

    assert "in lines: 1, 3" in refused(tool, "str_replace", path=NOTES, old_str="x", new_str="z")
    assert "did not appear verbatim" in refused(tool, "str_replace", path=NOTES, old_str="q", new_str="z")
    assert "`old_str` is empty" in refused(tool, "str_replace", path=NOTES, old_str="", new_str="z")
    done(tool, "create", path="/memories/a/x.md", file_text="x")
    assert "is a directory" in refused(tool, "str_replace", path="/memories/a", old_str="x", new_str="z")


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", "x\r\ny\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "b\r\nc", "x\ny", "a\r\nx\r\ny\r\n"),
        ("a\r\nb\r\nc\r\n", "\n", "", None),
        ("a\nb\nc\r\nd", "b\nc\nd", "x\r\ny", "a\nx\ny"),
        ("a\rb\rc", "a\nb", "x", "x\rc"),
        ("\ufeffa\r\n\r\nb", "a\n\nb", "a\nb", "\ufeffa\r\nb"),
    ],
)
def test_line_ends_match_whatever_their_form(
    tool: MemoryTool, client: MemsvcClient, text: str, old: str, new: str, expected: str | None
) -> None:
    client.write_file("/memory/notes.md", text)
    client.write_file("/memory/edited.md", text)

    tool.run({"command": "str_replace", "path": NOTES, "old_str": old, "new_str": new})
    RemoteBackend(client).edit("/edited.md", old, new)

    wanted = (text if expected is None else expected).encode()
    assert client.read_bytes("/memory/notes.md").data == client.read_bytes("/memory/edited.md").data == wanted


def test_a_line_that_another_editor_ended_counts_as_one(tool: MemoryTool) -> None:
    done(tool, "create", path=NOTES, file_text="a\x0cb\u2028c\nd\rd\n")

    assert done(tool, "view", path=NOTES, view_range=[3, 4]).endswith(":\n     3\tc\n     4\td")
    assert "in lines: 4, 5" in refused(tool, "str_replace", path=NOTES, old_str="d", new_str="z")
    assert "     3\tsee\n" in done(tool, "str_replace", path=NOTES, old_str="c", new_str="see")


@pytest.mark.parametrize(
    ("text", "line", "added", "expected"),
    [
        ("a\nb\n", 0, "top", "top\na\nb\n"),
        ("a\nb\n", 1, "mid\n", "a\nmid\nb\n"),
        ("a\nb\n", 2, "end\n", "a\nb\nend\n"),
        ("a\nb", 2, "end", "a\nb\nend"),
        ("a\r\nb\r\n", 1, "mid", "a\r\nmid\r\nb\r\n"),
        ("a\r\nb\r\n", 1, "one\ntwo\n", "a\r\none\r\ntwo\r\nb\r\n"),
        ("a\nb\nc\r\n", 1, "one\r\ntwo", "a\none\ntwo\nb\nc\r\n"),
        ("a\rb\x0cc", 2, "mid", "a\rb\x0cmid\nc"),
        ("", 0, "only\n", "only\n"),
    ],
)
def test_text_is_inserted_as_lines_of_its_own(
    tool: MemoryTool, client: MemsvcClient, text: str, line: int, added: str, expected: str
) -> None:
    done(tool, "create", path=NOTES, file_text=text)

    done(tool, "insert", path=NOTES, insert_line=line, insert_text=added)

    assert client.read_bytes("/memory/notes.md").data == expected.encode()


def test_a_line_outside_the_file_is_refused_with_the_range(tool: MemoryTool) -> None:
    done(tool, "create", path=NOTES, file_text="a\nb\n")

    assert "[0, 2]" in refused(tool, "insert", path=NOTES, insert_line=3, insert_text="x")
    assert "[0, 2]" in refused(tool, "insert", path=NOTES, insert_line=-1, insert_text="x")


def test_files_and_folders_are_deleted_but_not_the_root(tool: MemoryTool) -> None:
    done(tool, "create", path="/memories/a/x.md", file_text="x")

    assert done(tool, "delete", path="/memories/a") == "Successfully deleted /memories/a"
    assert "does not exist" in refused(tool, "delete", path="/memories/a/x.md")
    assert "can't be changed" in refused(tool, "delete", path="/memories")


def test_files_and_folders_are_renamed_onto_free_paths_only(tool: MemoryTool, client: MemsvcClient) -> None:
    done(tool, "create", path="/memories/a/x.md", file_text="x")
    done(tool, "create", path=NOTES, file_text="n")

    assert "already exists" in refused(tool, "rename", old_path=NOTES, new_path="/memories/a/x.md")
    assert "does not exist" in refused(tool, "rename", old_path="/memories/no", new_path="/memories/b")
    done(tool, "rename", old_path="/memories/a", new_path="/memories/b/c")
    assert client.read_text("/memory/b/c/x.md") == "x"


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/memories_backup/x",
            "/etc/passwd",
            "memories/x",
            "/memories/../x",
            "/memories//x",
            "/memories/./x",
        ),
        *("/memories/e\u0301.md", "/memories/a\u200b.md", "/memories/a\n.md", "/memories/" + "a" * 1025),
        *("", "/"),
    ],
)
def test_nothing_outside_can_be_named(tool: MemoryTool, client: MemsvcClient, path: str) -> None:
    for name, fields in {
        "view": {"path": path},
        "create": {"path": path, "file_text": "x"},
        "delete": {"path": path},
        "rename": {"old_path": path, "new_path": NOTES},
    }.items():
        refused(tool, name, **fields)
    assert list(client.iter_files()) == []


@pytest.mark.parametrize(
    "command",
    [
        *(
            {},
            {"command": "format"},
            {"command": 7},
            {"command": "view"},
            {"command": "create", "path": NOTES},
        ),
        {"command": "insert", "path": NOTES, "insert_line": "1", "insert_text": "x"},
    ],
)
def test_a_command_that_makes_no_sense_is_explained(tool: MemoryTool, command: dict[str, Any]) -> None:
    answer = tool.run(command)

    assert answer.is_error


def test_a_file_that_is_no_text_is_left_alone(tool: MemoryTool, client: MemsvcClient) -> None:
    client.write_file("/memory/image.png", b"\x89PNG\xff")

    assert "is no text" in refused(tool, "view", path="/memories/image.png")
    assert "is no text" in refused(tool, "insert", path="/memories/image.png", insert_line=0, insert_text="x")


def test_a_change_that_others_make_meanwhile_is_kept(client: MemsvcClient, monkeypatch: Any) -> None:
    """The text is changed as it is when it is written, not as it was when it was read."""
    client.write_file("/memory/notes.md", "one\n")
    read = client.read_bytes

    def read_and_be_overtaken(path: str) -> Any:
        found = read(path)
        if b"other" not in found.data:
            client.append_file(path, "other\n")
        return found

    monkeypatch.setattr(client, "read_bytes", read_and_be_overtaken)
    done(MemoryTool(client), "str_replace", path=NOTES, old_str="one", new_str="two")

    assert read("/memory/notes.md").data == b"two\nother\n"


def test_a_key_that_may_only_read_is_told_so(connect: Connect) -> None:
    assert "scope" in refused(MemoryTool(connect(Scope.READ)), "create", path=NOTES, file_text="x")


def test_what_can_not_be_found_as_an_entry_is_told(tool: MemoryTool) -> None:
    entry = "---\nid: mem_1\ncreated: 2026-01-01\ncategory: facts\n---\n\nBody.\n"
    told = "\nTake care:\n- line 2: what looks like an entry"
    assert told in done(tool, "create", path=NOTES, file_text=f"# A\n{entry}")
    assert told in done(tool, "str_replace", path=NOTES, old_str="Body", new_str="Text")
    assert told in done(tool, "insert", path=NOTES, insert_line=8, insert_text="More.")
    assert "Take care" not in done(tool, "str_replace", path=NOTES, old_str="# A\n", new_str="# A\n\n")
    done(tool, "create", path="/memories/a.txt", file_text=f"# A\n{entry}")
    assert told in done(tool, "rename", old_path="/memories/a.txt", new_path="/memories/a.md")
