"""What a writer is told over REST about entries that can't be found."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from tenants.models import Tenant
from tests.api.support import BATCH, ENTRIES, FILES, add_entry, patch, post, put
from tests.people import make_key

FACTS = "memory/semantic_memory/facts.md"
ENTRY = "---\nid: mem_1\ncreated: 2026-01-01\ncategory: facts\nsummary: short\n---\n\nBody.\n"
WARNING = {"path", "line", "code", "reason"}


@pytest.mark.parametrize("summary", ["a: b", "@home", '"half', "[x", "50% off: yes", "*star", "`x`"])
def test_an_entry_is_found_whose_frontmatter_yaml_alone_does_not_take(api: APIClient, summary: str) -> None:
    made = put(api, FACTS, ENTRY.replace("short", summary))
    assert (made.status_code, made.json()["warnings"]) == (201, [])
    assert api.get(f"{ENTRIES}/mem_1").json()["summary"] == summary

    successor = post(api, f"{ENTRIES}/mem_1:supersede", body="New.", summary="new").json()
    text = api.get(f"{FILES}/{FACTS}").json()["content"]
    assert text.startswith(
        ENTRY.replace("short", summary).replace("summary", f"superseded_by: {successor['id']}\nsummary")
    )


@pytest.mark.parametrize(
    ("content", "line", "code"),
    [
        (ENTRY.replace("facts", "fact"), 1, "unusable_entry"),
        (ENTRY.replace("2026-01-01", "yesterday"), 1, "unusable_entry"),
        ("# Facts\n" + ENTRY, 2, "swallowed_entry"),
        (ENTRY.replace("summary", "stray\nsummary"), 5, "stray_line"),
        (ENTRY.replace("short\n---", "short"), 1, "unclosed_frontmatter"),
        (ENTRY.replace("id: mem_1\n", ""), 1, "missing_id"),
        ("```\n\n" + ENTRY, 1, "unclosed_code_fence"),
    ],
)
def test_each_write_says_what_can_not_be_found(api: APIClient, content: str, line: int, code: str) -> None:
    def told(answer: dict) -> list[tuple[str, int, str]]:  # type: ignore[type-arg]
        assert all(each.keys() == WARNING and each["reason"] for each in answer["warnings"])
        return [(each["path"], each["line"], each["code"]) for each in answer["warnings"]]

    expected = [(f"/{FACTS}", line, code)]
    assert told(put(api, FACTS, content).json()) == expected
    put(api, FACTS, "x")
    assert told(patch(api, FACTS, old_string="x", new_string=content).json()) == expected
    put(api, FACTS, "")
    assert told(patch(api, FACTS, append=content).json()) == expected
    put(api, FACTS, "")
    writes = [{"op": "write", "path": f"/{FACTS}", "content": text} for text in ("y", content)]
    first, second = post(api, BATCH, operations=writes).json()["results"]
    assert (told(first), told(second)) == ([], expected)


def test_an_entry_says_that_its_code_was_closed(api: APIClient) -> None:
    [warning] = add_entry(api, "```sh\nmake")["warnings"]
    assert warning["code"] == "code_fence_closed"
    assert api.get(f"{FILES}/{FACTS}").json()["content"].split("\n")[warning["line"] - 1] == "```"


def test_what_is_as_it_should_be_has_no_warnings(api: APIClient) -> None:
    assert add_entry(api)["warnings"] == []
    assert put(api, "notes/a.md", "# A\n\n---\n\nid of a thing: x\n").json()["warnings"] == []
    assert put(api, "notes/a.txt", ENTRY.replace("facts", "fact")).json()["warnings"] == []
    assert put(api, "notes/index.md", ENTRY.replace("facts", "fact")).json()["warnings"] == []


def test_a_key_in_what_is_written_is_told_and_never_repeated(api: APIClient, alice: Tenant) -> None:
    _, key = make_key(alice)
    wrong = key[:-1] + ("A" if key[-1] != "A" else "B")

    def told(answer: Any) -> list[tuple[str, int, str]]:
        assert key not in str(answer["warnings"])
        return [(each["path"], each["line"], each["code"]) for each in answer["warnings"]]

    for path in ("notes/a.txt", "memory/a.md", "memory/index.md"):
        assert told(put(api, path, f"one\ntwo {key}.\nthree {wrong}\n").json()) == [
            (f"/{path}", 2, "holds_key")
        ]
        patch(api, path, append="four\n")
    assert told(patch(api, "notes/a.txt", old_string="four", new_string=key).json())[1:] == [
        ("/notes/a.txt", 4, "holds_key")
    ]
    put(api, FACTS, ENTRY)
    added = add_entry(api, f"The key is\n{key}\nand no other.")
    successor = post(api, f"{ENTRIES}/{added['id']}:supersede", body=f"It is {key}", title="x").json()
    lines = api.get(f"{FILES}/{FACTS}").json()["content"].split("\n")
    for answer in (added, successor):
        [(path, _, code)] = told(answer)
        assert (path, code) == (f"/{FACTS}", "holds_key")
    assert [n for n, line in enumerate(lines, start=1) if key in line] == [
        added["warnings"][0]["line"] + 1,
        successor["warnings"][0]["line"],
    ]
