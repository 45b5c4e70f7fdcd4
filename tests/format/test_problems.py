"""What the writer of a memory file is told about what can't be found in it."""

import time

import pytest

from memsvc.format import MAX_TEXT_BLOCK, cut_file, problems_in

NOTES = "/memory/notes.md"
KEYS = "id: mem_1\ncreated: 2026-01-01\ncategory: facts\n"
ENTRY = f"---\n{KEYS}---\n\nBody.\n"


def told(text: str, **options: object) -> list[tuple[int, str]]:
    blocks = cut_file(NOTES, text.encode())
    return [(problem.line, problem.code) for problem in problems_in(blocks, **options)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (ENTRY + "\n" + ENTRY.replace("facts", "fact"), [(9, "unusable_entry")]),
        ("# A\n\n\n" + ENTRY.replace("2026-01-01", "2026-02-30"), [(4, "unusable_entry")]),
        (ENTRY.replace("facts", "facts\ntags: [a"), [(1, "unusable_entry")]),
        ("\ufeff" + ENTRY.replace("facts", "fact"), [(1, "unusable_entry")]),
        (ENTRY + ENTRY, [(8, "swallowed_entry")]),
        ("# A\r\n" + ENTRY.replace("\n", "\r\n"), [(2, "swallowed_entry")]),
        (ENTRY.replace("created", "a stray line\ncreated"), [(3, "stray_line")]),
        (ENTRY.replace("---\n\nBody", "\nBody") + "\n" + ENTRY, [(1, "unclosed_frontmatter")]),
        (ENTRY.replace("---\n\nBody.\n", ""), [(1, "unclosed_frontmatter")]),
        (ENTRY.replace("---\n\nBody", "  ---\n\nBody"), [(1, "unclosed_frontmatter")]),
        (ENTRY.replace("---\n\nBody", "\nBody"), [(1, "unclosed_frontmatter")]),
        (ENTRY.replace("id: mem_1\n", ""), [(1, "missing_id")]),
        (ENTRY.replace("id: mem_1", "id:"), [(1, "missing_id")]),
        ("# A\n\n```\nx\n\n" + ENTRY, [(3, "unclosed_code_fence")]),
        (ENTRY + "\n~~~\n\n" + ENTRY + "\n```\n", [(9, "unclosed_code_fence")]),
        ("# A\n\n" + "x\n" * MAX_TEXT_BLOCK + ENTRY, [(MAX_TEXT_BLOCK + 3, "swallowed_entry")]),
        # What is no entry, and isn't meant as one.
        (ENTRY + "\n" + ENTRY, []),
        ("", []),
        ("Title\n---\n\ntext\n\n---\n\ncategory: none\n\n---\n", []),
        ("---\ntitle: a note\ncreated: 2026-01-01\ncategory: travel\n---\n\ntext\n", []),
        (f"# A\n\n```\n{ENTRY}```\n\n{ENTRY}", []),
        ("text\n\n---\n\n```yaml\nid: x\ncategory: facts\n```\n", []),
        ("```\ncode\n", []),
    ],
)
def test_what_looks_like_an_entry_and_is_none_is_told_with_its_line(
    text: str, problems: list[tuple[int, str]]
) -> None:
    assert told(text) == problems


def test_only_what_was_touched_is_told() -> None:
    broken = ENTRY.replace("facts", "fact")
    text = f"{broken}\n{ENTRY}\n{broken}"
    assert told(text, touched=[1]) == []
    assert told(text, touched=[1, 2]) == [(17, "unusable_entry")]
    assert told(text, touched=[]) == []


def test_an_entry_that_stands_as_text_where_it_was_one_is_told() -> None:
    text = ENTRY + "\n```\n" + ENTRY.replace("mem_1", "mem_2") + "```\n"
    assert told(text, gone=["mem_2", "mem_3"]) == [(11, "entry_lost")]
    assert told(text, gone=["mem_1"]) == []


def test_reasons_say_what_to_do() -> None:
    blocks = cut_file(NOTES, ENTRY.replace("facts", "fact").encode())
    [problem] = problems_in(blocks)
    assert "`category` is none of events, feedbacks, errors, facts" in problem.reason


def test_a_thousand_problems_are_told_shortly() -> None:
    found = problems_in(cut_file(NOTES, ("\n" + ENTRY.replace("facts", "fact")).encode() * 1000))
    assert (len(found), found[-1].code) == (51, "more_problems")
    assert "950 more" in found[-1].reason


@pytest.mark.parametrize(
    ("piece", "copies", "options"),
    [
        ("\n---\nid: x\nStray\ncreated: x\n---\n\n", 40_000, {}),
        ("\n---\nid: x\n---\n", 30_000, {"touched": list(range(30_000))}),
        ("some text\n", 10_000, {"gone": {f"mem_{n}" for n in range(4_000)}}),
    ],
)
def test_a_large_file_is_looked_through_in_time_that_grows_with_it(
    piece: str, copies: int, options: dict[str, object]
) -> None:
    def seconds(text: str) -> float:
        blocks = cut_file(NOTES, text.encode())
        begun = time.process_time()
        problems_in(blocks, **options)  # type: ignore[arg-type]
        return time.process_time() - begun

    # What it costs to cut the file grows with it.
    begun = time.process_time()
    cut_file(NOTES, piece.encode() * copies)
    cutting = time.process_time() - begun
    assert seconds(piece * copies) < 4 * cutting + 0.5


def test_an_entry_is_found_as_text_in_each_way_to_write_its_id() -> None:
    for written in ("mem_2", '"mem_2"', "'mem_2'  ", "mem_2 # old", "mem_2\r"):
        text = f"text\n```\n---\nid: {written}\n---\n```\n"
        assert told(text, gone={"mem_2", "mem_3"}) == [(4, "entry_lost")], written
    assert told("```\nid: mem_23\n```\n", gone={"mem_2"}) == []
    assert told("```\nid: my id\n```\n", gone={"my id"}) == [(2, "entry_lost")]
