import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.format import InvalidText, checked_text, one_line, places_of, plain_line_ends
from memsvc.format.text import case_folded, folded, spelled, spelled_with_places


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "must be text, not NoneType"),
        (b"bytes", "must be text, not bytes"),
        (7, "must be text, not int"),
        ("a\ud800b", "surrogate pair at character 1"),
        ("a\0b", "NUL at character 1"),
        ("x" * 11, "at most 10 bytes"),
        ("é" * 6, "at most 10 bytes"),
    ],
)
def test_what_cannot_be_stored_is_refused_naming_the_field(value: object, problem: str) -> None:
    with pytest.raises(InvalidText, match=problem) as refusal:
        checked_text(value, field="summary", max_bytes=10)
    assert str(refusal.value).startswith("summary ")
    assert refusal.value.code == "invalid_text"


def test_text_comes_back_as_it_is() -> None:
    assert checked_text("é\r\n\u2028", field="body", max_bytes=10) == "é\r\n\u2028"
    assert checked_text("a\0b", field="content", max_bytes=10, nul_allowed=True) == "a\0b"


@pytest.mark.parametrize("text", ["a b", " a\nb ", "a\u2028 b", "\x85a\x0b\x1c\r\nb", "a\t\t b"])
def test_white_space_collapses_to_one_blank(text: str) -> None:
    assert one_line(text) == "a b"


LETTERS = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from("ıİiI\u0307\u0301\u0345ßẞﬁΣςσǅ\u200c\u200d\ufe0f\u00adｶﾞ㍿ᄒㅏ한\u11abো\u1160"),
    ),
    max_size=30,
)


@given(LETTERS)
def test_folding_again_changes_nothing(text: str) -> None:
    assert case_folded(case_folded(text)) == case_folded(text)
    assert folded(folded(text)) == folded(text)


@given(LETTERS)
def test_upper_and_lower_case_are_one(text: str) -> None:
    assert folded(text.lower()) == folded(text)


@given(LETTERS)
def test_each_letter_has_its_place(text: str) -> None:
    spelt, places = spelled_with_places(text)

    assert spelt == spelled(text)
    assert len(places) == len(spelt) + 1
    assert places == sorted(places)
    assert places[-1] == len(text)


@given(st.text("ab\r\n", max_size=20), st.text("ab\r\n", min_size=1, max_size=4))
def test_a_piece_stands_where_it_does_whatever_the_line_ends(text: str, wanted: str) -> None:
    places = places_of(text, wanted)

    assert len(places) == plain_line_ends(text).count(plain_line_ends(wanted))
    assert all(plain_line_ends(text[start:end]) == plain_line_ends(wanted) for start, end in places)
