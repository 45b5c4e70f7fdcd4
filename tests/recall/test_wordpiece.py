from concurrent.futures import ThreadPoolExecutor

import pytest

from memsvc.recall import wordpiece
from memsvc.recall.wordpiece import WordPiece, word_pieces, words

CLS, SEP, UNKNOWN = 101, 102, 100


def ids(text: str, limit: int = 256) -> list[int]:
    return word_pieces().encode(text, limit=limit)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # As the reference implementation splits them.
        ("hello world", [7592, 2088]),
        ("Hello, World!", [7592, 1010, 2088, 999]),
        ("unaffable", [14477, 20961, 3468]),
        ("Müller Café", [12304, 7668]),
        ("$5", [1002, 1019]),
        ("", []),
        (" \t\n", []),
    ],
)
def test_texts_have_the_ids_of_the_reference(text: str, expected: list[int]) -> None:
    assert ids(text) == [CLS, *expected, SEP]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("foo_bar", ["foo", "_", "bar"]),
        ("a.b-c", ["a", ".", "b", "-", "c"]),
        ("日本語", ["日", "本", "語"]),
        ("a日b", ["a", "日", "b"]),
        ("ÉCOLE", ["ecole"]),
        ("zero\u200bwidth", ["zerowidth"]),
        ("a\N{NO-BREAK SPACE}b", ["a", "b"]),
        ("nul\0 and \ufffd", ["nul", "and"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert list(words(text)) == expected


def test_special_tokens_in_a_text_are_text() -> None:
    assert CLS not in ids("[CLS] [SEP]")[1:-1]
    assert SEP not in ids("[CLS] [SEP]")[1:-1]


def test_a_word_that_is_in_pieces_nowhere_is_unknown() -> None:
    assert ids("\N{CUNEIFORM SIGN A}") == [CLS, UNKNOWN, SEP]
    assert ids("a" * 101) == [CLS, UNKNOWN, SEP]


def test_a_long_text_is_cut_and_closed() -> None:
    encoded = ids("word " * 1000, limit=16)

    assert len(encoded) == 16
    assert (encoded[0], encoded[-1]) == (CLS, SEP)


def test_count_is_what_encode_gives_without_its_frame() -> None:
    text = "Counting unaffable words, 3.5 of them."

    assert word_pieces().count(text) == len(ids(text)) - 2


def test_threads_share_one_while_it_forgets_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordpiece, "_CACHED_WORDS", 2)
    pieces = WordPiece()
    texts = [f"word{number} other{number % 7} more{number % 3}" for number in range(400)]

    with ThreadPoolExecutor(4) as pool:
        encoded = list(pool.map(lambda text: pieces.encode(text, limit=64), texts))

    assert encoded == [ids(text) for text in texts]
