"""BERT's uncased WordPiece in plain Python: the ids of the `tokenizers` package without what it brings along.

One difference is meant: `[CLS]` or `[MASK]` written in a text is text, and no special token.
"""

import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

VOCAB = Path(__file__).with_name("vocab.txt")

_CJK = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
_ASCII_PUNCTUATION = ((33, 47), (58, 64), (91, 96), (123, 126))
_LONGEST_WORD = 100
_CACHED_WORDS = 50_000


def words(text: str) -> Iterator[str]:
    """Words and single punctuation signs, lower case, without accents."""
    for chunk in _normalised(text).split():
        start = 0
        for i, ch in enumerate(chunk):
            if _is_punctuation(ch):
                if start < i:
                    yield chunk[start:i]
                yield ch
                start = i + 1
        if start < len(chunk):
            yield chunk[start:]


def _normalised(text: str) -> str:
    text = "".join(map(_cleaned, text))
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(ch for ch in decomposed if unicodedata.category(ch) != "Mn").lower()


@lru_cache(maxsize=4096)
def _cleaned(ch: str) -> str:
    if ch in "\t\n\r" or unicodedata.category(ch) == "Zs":
        return " "
    if ch in "\x00\ufffd" or unicodedata.category(ch).startswith("C"):
        return ""
    return f" {ch} " if _within(ch, _CJK) else ch


@lru_cache(maxsize=4096)
def _is_punctuation(ch: str) -> bool:
    # BERT counts every non-alphanumeric ASCII sign as punctuation, also $ + < = > ^ ` | ~, which Unicode does not.
    return _within(ch, _ASCII_PUNCTUATION) or unicodedata.category(ch).startswith("P")


def _within(ch: str, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= ord(ch) <= high for low, high in ranges)


class WordPiece:
    """Splits words into the pieces of a word list. Threads may share one."""

    def __init__(self, vocab: Path = VOCAB) -> None:
        with vocab.open(encoding="utf-8") as lines:
            self._ids = {line.rstrip("\n"): number for number, line in enumerate(lines)}
        self._cls, self._sep, self._unknown = self._ids["[CLS]"], self._ids["[SEP]"], self._ids["[UNK]"]
        self._cache: dict[str, list[int]] = {}

    def encode(self, text: str, *, limit: int) -> list[int]:
        """Ids from [CLS] to [SEP], at most `limit` of them; what goes beyond is cut off."""
        ids = [self._cls]
        for word in words(text):
            ids += self._pieces(word)
            if len(ids) >= limit:
                break
        return [*ids[: limit - 1], self._sep]

    def count(self, text: str) -> int:
        """How many pieces a text has, [CLS] and [SEP] left out."""
        return sum(len(self._pieces(word)) for word in words(text))

    def _pieces(self, word: str) -> list[int]:
        pieces = self._cache.get(word)
        if pieces is None:
            if len(self._cache) >= _CACHED_WORDS:
                self._cache = {}
            pieces = self._cache[word] = self._split(word)
        return pieces

    def _split(self, word: str) -> list[int]:
        if len(word) > _LONGEST_WORD:
            return [self._unknown]
        ids: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = self._ids.get(prefix + word[start:end])
                if piece is not None:
                    break
            else:
                return [self._unknown]
            ids.append(piece)
            start = end
        return ids


@cache
def word_pieces() -> WordPiece:
    """The one of this process, loaded at its first use."""
    return WordPiece()
