import pytest

from memsvc.format import InvalidText, checked_text, one_line


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
