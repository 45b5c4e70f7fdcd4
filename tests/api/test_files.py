import base64
from typing import Any

import pytest
from rest_framework.test import APIClient

from tenants.models import Tenant
from tests.api.conftest import client_with
from tests.api.support import FILES, patch, paths, post, problem, put, raw, send
from tests.people import make_key

WRITTEN = {"path", "revision", "created", "changed", "size", "warnings"}


def test_a_file_comes_back_as_it_was_written(api: APIClient) -> None:
    content = "one\r\ntwo\n\nÄ👍 without an end".encode()

    made = put(api, "notes/a.md", content)

    assert made.status_code == 201
    assert made.json() == {
        "path": "/notes/a.md", "revision": 1, "created": True, "changed": True, "size": len(content),
        "warnings": [],
    }  # fmt: skip
    assert raw(api, "notes/a.md") == content


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe", b"a\x00b", b"\xef\xbb\xbfbom", b"\r\n\r"])
def test_any_bytes_come_back_as_they_were_written(api: APIClient, content: bytes) -> None:
    put(api, "a.bin", content)

    assert raw(api, "a.bin") == content


@pytest.mark.parametrize(
    "content_type", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "x", ""]
)
def test_content_of_any_type_is_kept_as_it_is(api: APIClient, content_type: str) -> None:
    answer = send(api, "PUT", f"{FILES}/a.md", b"a=1&b=%20", content_type=content_type)

    assert answer.status_code == 201
    assert raw(api, "a.md") == b"a=1&b=%20"


def test_writing_the_same_again_makes_no_revision(api: APIClient) -> None:
    put(api, "a.md", "same")

    again = put(api, "a.md", "same")

    assert again.status_code == 200
    assert (again.json()["revision"], again.json()["created"], again.json()["changed"]) == (1, False, False)


def test_content_may_come_as_json(api: APIClient) -> None:
    text = api.put(f"{FILES}/a.md", {"content": "a\x00b", "message": "why"}, format="json")
    data = base64.b64encode(b"\xff\x00").decode()
    binary = api.put(f"{FILES}/b.bin", {"content": data, "encoding": "base64"}, format="json")

    assert (text.status_code, binary.status_code) == (201, 201)
    assert (raw(api, "a.md"), raw(api, "b.bin")) == (b"a\x00b", b"\xff\x00")


@pytest.mark.parametrize("media_type", ["text/markdown", "text/plain", "application/octet-stream"])
def test_the_bytes_are_sent_for_text_and_octets(api: APIClient, media_type: str) -> None:
    put(api, "a.md", "text")

    answer = api.get(f"{FILES}/a.md", headers={"Accept": media_type})

    assert (answer.content, answer.headers["Content-Type"].partition(";")[0]) == (b"text", media_type)


def test_other_kinds_are_not_to_be_had(api: APIClient) -> None:
    put(api, "a.md")

    assert problem(api.get(f"{FILES}/a.md", headers={"Accept": "image/png"})) == (406, "not_acceptable")


def test_a_window_of_lines(api: APIClient) -> None:
    put(api, "a.md", "1\n2\n3\n4\n")

    window = api.get(f"{FILES}/a.md", {"offset": 1, "limit": 2}).json()

    assert window.pop("created_at")
    assert window.pop("modified_at")
    assert window == {
        "path": "/a.md",
        "content": "2\n3\n",
        "encoding": "utf-8",
        "total_lines": 4,
        "start_line": 2,
        "end_line": 3,
        "next_offset": 3,
        "no_lines_requested": False,
        "size": 8,
        "revision": 1,
    }


def test_a_file_that_is_no_text_comes_as_base64(api: APIClient) -> None:
    put(api, "a.bin", b"\xff\x00")

    window = api.get(f"{FILES}/a.bin").json()

    assert (window["encoding"], base64.b64decode(window["content"])) == ("base64", b"\xff\x00")


def test_lines_after_the_last_are_out_of_range(api: APIClient) -> None:
    put(api, "a.md", "1\n")

    answer = api.get(f"{FILES}/a.md", {"offset": 5})

    assert problem(answer) == (416, "offset_beyond_end")
    assert answer.json()["detail"] == "Line offset 5 exceeds file length (1 lines)"
    assert answer.json()["total_lines"] == 1


def test_no_lines_may_be_asked_for(api: APIClient) -> None:
    put(api, "a.md", "1\n")

    window = api.get(f"{FILES}/a.md", {"limit": 0}).json()

    assert (window["content"], window["no_lines_requested"]) == ("", True)


def test_head_answers_as_get_without_the_content(api: APIClient) -> None:
    put(api, "a.md", "1\n")
    got = api.get(f"{FILES}/a.md")

    head = api.head(f"{FILES}/a.md")

    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["ETag"] == got.headers["ETag"]


@pytest.mark.parametrize("accept", ["application/json", "text/markdown"])
def test_what_is_known_already_is_not_sent_again(api: APIClient, accept: str) -> None:
    put(api, "a.md", "1\n")
    etag = api.get(f"{FILES}/a.md", headers={"Accept": accept}).headers["ETag"]
    ask = {"Accept": accept, "If-None-Match": f'"x", {etag}'}

    known = api.get(f"{FILES}/a.md", headers=ask)
    put(api, "a.md", "2\n")
    changed = api.get(f"{FILES}/a.md", headers=ask)

    assert (known.status_code, known.content, known.headers["ETag"]) == (304, b"", etag)
    assert changed.status_code == 200


def test_earlier_revisions_can_be_read(api: APIClient) -> None:
    put(api, "a.md", "one")
    put(api, "a.md", "two")
    put(api, "b.md", "new")

    assert api.get(f"{FILES}/a.md", {"revision": 1}).json()["content"] == "one"
    assert [item["path"] for item in api.get(FILES, {"revision": 2}).json()["items"]] == ["/a.md"]
    assert problem(api.get(f"{FILES}/a.md", {"revision": 9})) == (404, "revision_not_found")


def test_what_is_not_there_is_not_found(api: APIClient) -> None:
    put(api, "d/a.md")

    assert problem(api.get(f"{FILES}/b.md")) == (404, "file_not_found")
    assert problem(api.get(f"{FILES}/d/b.md", headers={"Accept": "text/plain"})) == (404, "file_not_found")
    assert problem(patch(api, "b.md", old_string="a", new_string="b")) == (404, "file_not_found")
    assert problem(api.delete(f"{FILES}/b.md")) == (404, "file_not_found")


def test_a_folder_is_no_file(api: APIClient) -> None:
    put(api, "d/a.md")

    assert problem(api.get(f"{FILES}/d", headers={"Accept": "text/plain"})) == (409, "is_directory")
    assert problem(api.get(f"{FILES}/d")) == (409, "is_directory")
    assert problem(put(api, "d")) == (409, "is_directory")
    assert problem(put(api, "d/a.md/b.md")) == (409, "path_taken")


# Listing


def test_a_listing_tells_of_every_file_once(api: APIClient) -> None:
    for number in range(5):
        put(api, f"d/{number}.md", "1\n2\n")

    first = api.get(FILES, {"limit": 2}).json()
    second = api.get(FILES, {"limit": 2, "cursor": first["next"]}).json()
    third = api.get(FILES, {"limit": 2, "cursor": second["next"]}).json()

    items = first["items"] + second["items"] + third["items"]
    assert [item["path"] for item in items] == [f"/d/{number}.md" for number in range(5)]
    assert third["next"] is None
    item = items[0]
    assert (item["is_dir"], item["size"], item["lines"], item["revision"]) == (False, 4, 2, 1)
    assert item["created_at"].endswith("Z")


def test_a_folder_lists_its_files_and_folders(api: APIClient) -> None:
    for path in ("d/b.md", "d/a/x.md", "d/a.md", "e.md"):
        put(api, path)

    found = api.get(FILES, {"prefix": "/d/", "depth": "1"}).json()

    assert [(item["path"], item["is_dir"]) for item in found["items"]] == [
        ("/d/a.md", False),
        ("/d/a", True),
        ("/d/b.md", False),
    ]
    assert found["items"][1]["modified_at"] is None
    assert found["next"] is None


def test_what_is_no_folder_does_not_list(api: APIClient) -> None:
    put(api, "a.md")

    assert problem(api.get(FILES, {"prefix": "/d", "depth": "1"})) == (404, "path_not_found")
    assert problem(api.get(FILES, {"prefix": "/a.md", "depth": "1"})) == (409, "not_a_directory")
    assert api.get(FILES, {"depth": "1"}).json()["items"][0]["path"] == "/a.md"


# Changing


def test_an_edit_replaces_the_one_place(api: APIClient) -> None:
    put(api, "a.md", "one two")

    answer = patch(api, "a.md", old_string="two", new_string="three")

    assert answer.json() == {"path": "/a.md", "revision": 2, "occurrences": 1, "size": 9, "warnings": []}
    assert raw(api, "a.md") == b"one three"


def test_an_edit_of_every_place(api: APIClient) -> None:
    put(api, "a.md", "a b a")

    answer = patch(api, "a.md", old_string="a", new_string="c", replace_all=True)

    assert answer.json()["occurrences"] == 2
    assert raw(api, "a.md") == b"c b c"


def test_an_edit_that_cannot_be_made_says_why(api: APIClient) -> None:
    put(api, "a.md", "a b a")
    put(api, "b.bin", b"\xff")

    absent = patch(api, "a.md", old_string="x", new_string="y")
    unclear = patch(api, "a.md", old_string="a", new_string="y")

    assert problem(absent) == (409, "string_not_found")
    assert absent.json()["detail"] == "Error: String not found in file: 'x'"
    assert problem(unclear) == (409, "string_not_unique")
    assert unclear.json()["occurrences"] == 2
    assert problem(patch(api, "a.md", old_string="", new_string="y")) == (400, "empty_old_string")
    assert problem(patch(api, "b.bin", old_string="x", new_string="y")) == (409, "not_text")
    assert raw(api, "a.md") == b"a b a"


def test_text_can_be_appended(api: APIClient) -> None:
    patch(api, "a.md", append="one\n")

    answer = patch(api, "a.md", append="two\n")

    assert (answer.status_code, answer.json().keys()) == (200, WRITTEN)
    assert raw(api, "a.md") == b"one\ntwo\n"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"old_string": "a"},
        {"new_string": "a"},
        {"old_string": "a", "new_string": "b", "append": "c"},
        {"append": 7},
    ],
)
def test_a_patch_is_an_edit_or_an_addition(api: APIClient, body: dict[str, Any]) -> None:
    put(api, "a.md", "a")

    assert problem(patch(api, "a.md", **body)) == (400, "invalid_request")


def test_a_file_is_deleted(api: APIClient) -> None:
    put(api, "a.md")

    assert api.delete(f"{FILES}/a.md").json() == {"path": "/a.md", "revision": 2, "files": 1, "warnings": []}
    assert paths(api) == []


def test_a_folder_is_deleted_on_demand(api: APIClient) -> None:
    put(api, "d/a.md")
    put(api, "d/b.md")

    assert problem(api.delete(f"{FILES}/d")) == (409, "folder_not_empty")
    deleted = api.delete(f"{FILES}/d?recursive=true").json()
    assert deleted == {"path": "/d", "revision": 3, "files": 2, "warnings": []}


def test_a_file_moves(api: APIClient) -> None:
    put(api, "a.md", "a")
    put(api, "b.md", "b")

    refused = post(api, f"{FILES}:move", source="/a.md", destination="/b.md")
    moved = post(api, f"{FILES}:move", source="/a.md", destination="/b.md", overwrite=True)

    assert problem(refused) == (409, "path_taken")
    assert moved.json() == {
        "source": "/a.md",
        "destination": "/b.md",
        "revision": 3,
        "files": 1,
        "warnings": [],
    }
    assert raw(api, "b.md") == b"a"


# Preconditions


def test_a_change_of_what_one_knows(api: APIClient) -> None:
    etag = put(api, "a.md", "one").headers["ETag"]

    assert put(api, "a.md", "two", **{"If-Match": etag}).status_code == 200
    refused = put(api, "a.md", "three", **{"If-Match": etag})

    assert problem(refused) == (412, "precondition_failed")
    assert refused.json()["revision"] == 2
    assert f'"{refused.json()["etag"]}"' == api.get(f"{FILES}/a.md").headers["ETag"]
    assert raw(api, "a.md") == b"two"


def test_every_change_takes_a_precondition(api: APIClient) -> None:
    put(api, "a.md", "one")
    stale = {"If-Match": '"0"'}

    refusals = [
        patch(api, "a.md", stale, old_string="one", new_string="two"),
        patch(api, "a.md", stale, append="two"),
        api.delete(f"{FILES}/a.md", headers=stale),
        put(api, "b.md", "new", **stale),
        put(api, "b.md", "new", **{"If-Match": "*"}),
        put(api, "a.md", "new", **{"If-None-Match": "*"}),
    ]

    assert {problem(refused) for refused in refusals} == {(412, "precondition_failed")}
    assert (paths(api), raw(api, "a.md")) == (["/a.md"], b"one")


def test_a_file_is_made_only_once(api: APIClient) -> None:
    assert put(api, "a.md", "one", **{"If-None-Match": "*"}).status_code == 201
    assert put(api, "a.md", "two", **{"If-Match": "*"}).status_code == 200


@pytest.mark.parametrize(
    "headers", [{"If-None-Match": '"abc"'}, {"If-Match": ""}, {"If-Match": '"a", "b"'}, {"If-Match": '"ä"'}]
)
def test_a_precondition_that_makes_no_sense_is_refused(api: APIClient, headers: dict[str, str]) -> None:
    assert problem(put(api, "a.md", "one", **headers)) == (400, "invalid_request")
    assert paths(api) == []


# Finding


def test_grep_finds_text_as_it_stands(api: APIClient) -> None:
    put(api, "a.md", "one\na.c here\n")
    put(api, "b.txt", "abc\na.c\n")

    found = post(api, f"{FILES}:grep", pattern="a.c", glob="*.md").json()
    first = post(api, f"{FILES}:grep", pattern="a.c", max_count=1).json()

    assert found == {"items": [{"path": "/a.md", "line": 2, "text": "a.c here"}], "truncated": False}
    assert (len(first["items"]), first["truncated"]) == (1, True)


def test_glob_finds_files_by_name(api: APIClient) -> None:
    put(api, "d/a.md")
    put(api, "b.txt")

    found = post(api, f"{FILES}:glob", pattern="**/*.md").json()

    assert [item["path"] for item in found["items"]] == ["/d/a.md"]
    assert found["truncated"] is False
    assert {"is_dir", "size", "modified_at"} <= found["items"][0].keys()


def test_a_glob_that_is_none_is_refused(api: APIClient) -> None:
    assert problem(post(api, f"{FILES}:glob", pattern="../*")) == (400, "invalid_glob")


# Transfer


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_an_upload_has_a_verdict_for_each_file(api: APIClient) -> None:
    put(api, "d/a.md")
    files = [("/new.md", b"\xff"), ("/../up.md", b"x"), ("/a\u202eb.md", b"x"), ("/d", b"x"), ("/\x00", b"x")]

    answer = post(
        api, f"{FILES}:upload", files=[{"path": path, "content": base64_of(data)} for path, data in files]
    )

    assert [(item["path"], item["error"]) for item in answer.json()["items"]] == [
        ("/new.md", None),
        ("/../up.md", "invalid_path"),
        ("/a\u202eb.md", "invalid_path"),
        ("/d", "is_directory"),
        ("/\x00", "invalid_path"),
    ]
    assert paths(api) == ["/d/a.md", "/new.md"]


def test_a_download_has_a_verdict_for_each_file(api: APIClient) -> None:
    put(api, "d/a.md", b"\xff")

    answer = post(api, f"{FILES}:download", paths=["/d/a.md", "/no.md", "/d", "/../x"])

    assert answer.json()["items"] == [
        {"path": "/d/a.md", "content": base64_of(b"\xff"), "error": None},
        {"path": "/no.md", "content": None, "error": "file_not_found"},
        {"path": "/d", "content": None, "error": "is_directory"},
        {"path": "/../x", "content": None, "error": "invalid_path"},
    ]


# Names


@pytest.mark.parametrize(
    ("quoted", "path"),
    [
        ("a%20b%25.md", "/a b%.md"),
        ("%2520.md", "/%20.md"),
        ("caf%C3%A9.md", "/café.md"),
        ("cafe%CC%81.md", "/café.md"),
        ("back%5Cslash.md", "/back\\slash.md"),
        ("%20leading.md", "/ leading.md"),
        ("a%3Fb%23c.md", "/a?b#c.md"),
        ("d:move", "/d:move"),
    ],
)
def test_a_name_is_what_was_meant(api: APIClient, quoted: str, path: str) -> None:
    answer = put(api, quoted, "x")
    assert answer.json().get("path") == path, answer.content
    assert paths(api) == [path]
    assert raw(api, quoted) == b"x"


@pytest.mark.parametrize(
    "quoted",
    [
        *("a/../b.md", "./b.md", "a//b.md", "/b.md", "b.md/"),
        *("a%0Ab.md", "a%09b.md", "a%E2%80%AEb.md", "%EF%BC%8E%EF%BC%8E/a.md"),
        *("d/" * 70 + "a", "n" * 256),
    ],
)
def test_a_name_that_deceives_or_has_two_spellings_is_refused(api: APIClient, quoted: str) -> None:
    assert problem(put(api, quoted)) == (400, "invalid_path")
    assert paths(api) == []


# Whose it is


def test_a_stranger_sees_and_changes_nothing(api: APIClient, stranger: APIClient) -> None:
    put(api, "secret.md", "canary")
    before = raw(api, "secret.md")

    assert paths(stranger) == []
    for answer in (
        stranger.get(f"{FILES}/secret.md"),
        stranger.get(f"{FILES}/secret.md", headers={"Accept": "text/plain"}),
        patch(stranger, "secret.md", old_string="canary", new_string="gone"),
        stranger.delete(f"{FILES}/secret.md"),
        post(stranger, f"{FILES}:move", source="/secret.md", destination="/mine.md"),
    ):
        assert problem(answer) == (404, "file_not_found")
    assert post(stranger, f"{FILES}:grep", pattern="canary").json()["items"] == []
    assert post(stranger, f"{FILES}:glob", pattern="**").json()["items"] == []
    assert (
        post(stranger, f"{FILES}:download", paths=["/secret.md"]).json()["items"][0]["error"]
        == "file_not_found"
    )
    put(stranger, "secret.md", "other")
    assert raw(api, "secret.md") == before


def test_a_reader_changes_nothing(api: APIClient, reader: APIClient) -> None:
    put(api, "a.md", "one")

    for answer in (
        put(reader, "b.md"),
        patch(reader, "a.md", old_string="one", new_string="two"),
        reader.delete(f"{FILES}/a.md"),
        post(reader, f"{FILES}:move", source="/a.md", destination="/b.md"),
        post(reader, f"{FILES}:upload", files=[]),
    ):
        assert problem(answer) == (403, "missing_scope")
    assert raw(reader, "a.md") == b"one"
    assert paths(reader) == ["/a.md"]


def test_a_key_for_a_folder_sees_and_changes_only_that(api: APIClient, alice: Tenant) -> None:
    for path in ("a/in.md", "ab/out.md", "out.md"):
        put(api, path, path)
    inside = client_with(make_key(alice, path_prefix="/a")[1])

    assert paths(inside) == ["/a/in.md"]
    assert problem(inside.get(f"{FILES}/ab/out.md")) == (404, "file_not_found")
    assert post(inside, f"{FILES}:grep", pattern="out").json()["items"] == []
    for answer in (
        put(inside, "ab/new.md"),
        put(inside, "out.md"),
        patch(inside, "out.md", old_string="out", new_string="x"),
        inside.delete(f"{FILES}/out.md"),
        post(inside, f"{FILES}:move", source="/a/in.md", destination="/new.md"),
        post(inside, f"{FILES}:move", source="/out.md", destination="/a/mine.md"),
    ):
        assert problem(answer) == (403, "forbidden")
    assert problem(inside.delete(f"{FILES}/a?recursive=true")) == (409, "root_refused")
    assert put(inside, "a/new.md").status_code == 201
    assert paths(api) == ["/a/in.md", "/a/new.md", "/ab/out.md", "/out.md"]


@pytest.mark.parametrize("accepted", ["text/markdown", "text/plain", "application/octet-stream"])
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_a_change_whose_answer_could_not_be_taken_is_not_made(
    api: APIClient, method: str, accepted: str
) -> None:
    put(api, "a.md", "text\n")
    body = '{"content": "other", "old_string": "text", "new_string": "other"}'

    answer = api.generic(
        method,
        f"{FILES}/a.md",
        "" if method == "DELETE" else body,
        content_type="application/json",
        headers={"Accept": accepted},
    )

    assert problem(answer) == (406, "not_acceptable")
    assert raw(api, "a.md") == b"text\n"
