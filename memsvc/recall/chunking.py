"""A long text as parts that a model takes in whole, cut where it hurts least."""

import re
from collections.abc import Iterator
from itertools import pairwise

from memsvc.recall.wordpiece import word_pieces

# With the two tokens that the local model puts around each text, 256.
MAX_TOKENS = 254
# Beyond it the rest of a text has no vector. Prose reaches the longest body that an entry may have.
MAX_PARTS = 256
# Of text without a blank; short enough to hold fewer than MAX_TOKENS tokens whatever it is.
_SLICE = 60
# The local model takes a very long word for one token, others for many: so many characters count as one at least.
_CHARACTERS_PER_TOKEN = 8

# Where a text may be cut, best first: behind a paragraph, behind a line or a sentence, behind a word.
_CUTS = (
    re.compile(r"\n[ \t\r]*\n\s*"),
    re.compile(r"\n\s*|(?<=[.!?])\s+|(?<=[。！？])"),
    re.compile(r"\s+"),
)


def chunks(text: str) -> list[str]:
    """The text in parts of at most MAX_TOKENS tokens and in its order; the first MAX_PARTS of them."""
    text = text.strip()
    if _size(text) <= MAX_TOKENS:
        return [text] if text else []
    found: list[str] = []
    start, end, size = 0, 0, 0
    for piece_end, piece_size in _pieces(text, 0, len(text), 0):
        if size + piece_size > MAX_TOKENS:
            found.append(text[start:end].strip())
            if len(found) == MAX_PARTS:
                return found
            start, size = end, 0
        end, size = piece_end, size + piece_size
    return [*found, text[start:].strip()]


def _pieces(text: str, start: int, end: int, cut: int) -> Iterator[tuple[int, int]]:
    """Where pieces that fit end, and how large each is: whole paragraphs where they fit, else what the cuts leave."""
    size = _size(text[start:end])
    if size <= MAX_TOKENS:
        yield end, size
    elif cut == len(_CUTS):
        for begin in range(start, end, _SLICE):
            stop = min(begin + _SLICE, end)
            yield stop, _size(text[begin:stop])
    else:
        ends = (match.end() for match in _CUTS[cut].finditer(text, start, end))
        for begin, stop in pairwise([start, *(at for at in ends if start < at < end), end]):
            yield from _pieces(text, begin, stop, cut + 1)


def _size(text: str) -> int:
    return max(word_pieces().count(text), len(text) // _CHARACTERS_PER_TOKEN)
