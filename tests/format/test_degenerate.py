"""What texts that repeat one thing cost to cut and to look through: counted in calls, which no busy machine changes."""

import cProfile
import pstats

import pytest

from memsvc.format.documents import cut_file
from memsvc.format.fences import entry_spans
from memsvc.format.problems import problems_in

NOTES = "/memory/notes.md"
ENTRY = "\n---\nid: mem_1\ncreated: 2026-01-01\ncategory: facts\n---\n\nBody.\n"


def calls(text: str) -> int:
    profile = cProfile.Profile()
    with profile:
        problems_in(cut_file(NOTES, text.encode()))
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "piece", ["---\n", "---\n\n", "---\r\n \t\r\n", "```\n", "~~~\nx\n~~~\n", "- a\n\n\n  ```\n  ```\n"]
)
def test_what_could_be_no_entry_is_passed_over_at_once(piece: str) -> None:
    assert calls(piece * 5_000) < 500


@pytest.mark.parametrize("piece", ["---\n", "---\n\n", "- a\n" + "\n" * 1000])
def test_an_entry_below_it_changes_nothing(piece: str) -> None:
    assert calls(piece * 1000 + "  ```\n  ```\n" + ENTRY) < 1000


@pytest.mark.parametrize(
    "piece",
    [
        "```\n",
        "````\n```\n",
        "---\nx\n",
        " ---\n\n",
        "   x\n   ```\n   ```\n",
        "- a\n\n  ```\n",
        "---\nid: x\n---\ny\n\n",
        "---\nid: x\ncategory: [\n---\ny\n\n",
        "\n---\nid: x\n\n<!-- -->\n",
        ENTRY,
    ],
)
def test_twice_the_text_takes_twice_the_calls(piece: str) -> None:
    assert calls(piece * 1000 + ENTRY) < 2.2 * calls(piece * 500 + ENTRY)


@pytest.mark.parametrize(("between", "found"), [("", 1), ("\n", 2), (" \t\r\n\n", 2)])
def test_of_lines_of_dashes_the_first_closes_and_the_last_opens(between: str, found: int) -> None:
    text = f"---\nid: a\nsummary: x ---\n{between.join(['---\n'] * 8)}id: b\n---\nBody.\n"

    spans = entry_spans(text.encode())

    assert len(spans) == found
    assert text[spans[0].frontmatter_start : spans[0].frontmatter_end] == "id: a\nsummary: x ---\n"
    assert text[spans[-1].meta_end :].endswith("Body.\n")
