from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.recall.chunking import MAX_PARTS, MAX_TOKENS, chunks
from memsvc.recall.wordpiece import word_pieces

SENTENCE = "The harbour of Lisbon was rebuilt with stone from the northern quarries."


def tokens(text: str) -> int:
    return word_pieces().count(text)


def squeezed(text: str) -> str:
    return "".join(text.split())


def test_a_short_text_is_one_part() -> None:
    assert chunks(f"\n{SENTENCE}\n") == [SENTENCE]


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_an_empty_text_has_no_part(text: str) -> None:
    assert chunks(text) == []


def test_paragraphs_stay_whole_where_they_fit() -> None:
    paragraphs = [" ".join([SENTENCE] * 6) + f" Number {number}." for number in range(9)]

    found = chunks("\n\n".join(paragraphs))

    assert len(found) > 2
    assert "\n\n".join(found) == "\n\n".join(paragraphs)
    for part in found:
        assert all(paragraph in paragraphs for paragraph in part.split("\n\n"))


def test_a_long_paragraph_is_cut_behind_sentences() -> None:
    found = chunks(" ".join([SENTENCE] * 60))

    assert len(found) > 2
    assert all(part.endswith("quarries.") for part in found)


def test_a_sentence_without_end_is_cut_behind_words() -> None:
    found = chunks("quarry " * 1000)

    assert {word for part in found for word in part.split()} == {"quarry"}


@pytest.mark.parametrize("text", ["x!" * 3000, "漢字" * 3000, "a" * 50_000, "각" * 3000])
def test_text_without_a_blank_is_cut_all_the_same(text: str) -> None:
    found = chunks(text)

    assert "".join(found) == text
    assert max(map(tokens, found)) <= MAX_TOKENS


def test_neighbours_would_not_fit_into_one() -> None:
    """No more parts than are needed: every two of them are together too long."""
    found = chunks("\n".join([SENTENCE] * 200))

    assert all(tokens(one) + tokens(other) > MAX_TOKENS for one, other in pairwise(found))


def test_what_goes_beyond_the_last_part_is_left_out() -> None:
    assert len(chunks("! " * (MAX_TOKENS * MAX_PARTS + 5000))) == MAX_PARTS


@given(st.text(alphabet=st.sampled_from("ab é漢.!?。\n\t-"), max_size=3000))
def test_nothing_is_lost_and_every_part_fits(text: str) -> None:
    found = chunks(text)

    assert squeezed("".join(found)) == squeezed(text)
    assert all(len(part) > 0 and tokens(part) <= MAX_TOKENS for part in found)
