"""Entries into a budget of tokens: whole where they fit, else cut, else left out."""

import re
from collections.abc import Iterable
from typing import Final

from memsvc.recall.templates import Piece, Shape
from memsvc.recall.tokens import TokenCounter

# Fewer characters of an entry than these say nothing.
LEAST_SHOWN: Final = 40
# A text with more characters to a token is no text; it isn't counted to the end.
_CHARACTERS_A_TOKEN: Final = 16
# No word is longer; behind this many characters a text without blanks is cut anywhere.
_LONGEST_WORD: Final = 60
_LAST_BLANK: Final = re.compile(r"\s\S*\Z")


class Packer:
    """Packs one block."""

    def __init__(self, shape: Shape, budget: int, count: TokenCounter) -> None:
        self._shape, self._budget, self._count = shape, budget, count
        self._items: list[tuple[Piece, str]] = []
        self._used = shape.overhead + count(shape.opening) + count(shape.closing)

    @property
    def pieces(self) -> list[Piece]:
        return [piece for piece, _ in self._items]

    @property
    def entries(self) -> list[str]:
        return [piece.entry.entry_id for piece in self.pieces]

    def add(self, pieces: Iterable[Piece], *, share: float = 1.0, least: int = LEAST_SHOWN) -> None:
        """Put in what fits while the block takes no more than a share of the budget.

        Of an entry that is cut at least `least` characters are shown.
        """
        for piece in pieces:
            frame = 0
            if not self._items or self._items[-1][0].part is not piece.part:
                # What a part's first entry needs beside itself.
                frame = self._count(self._shape.begin(piece.part)) + self._count(self._shape.end(piece.part))
            text = self._fitted(piece, int(self._budget * share) - self._used - frame, least)
            if text is not None:
                self._used += frame + self._count(text)
                self._items.append((piece, text))

    def block(self) -> tuple[str, int]:
        """The text and its tokens, those of its message included."""
        while self._items:
            text = self._shape.whole([(piece.part, item) for piece, item in self._items])
            tokens = self._count(text) + self._shape.overhead
            if tokens <= self._budget:
                return text, tokens
            # Two texts may be more tokens together than each by itself.
            self._items.pop()
        return "", 0

    def _fitted(self, piece: Piece, room: int, least: int) -> str | None:
        """An entry whole, else the longest beginning that fits, by halving; None where that is too short."""
        body = piece.entry.body
        if len(body) <= room * _CHARACTERS_A_TOKEN:
            text = self._shape.item(piece, body)
            if self._count(text) <= room:
                return text
        fits, too_many = 0, min(len(body), max(0, room) * _CHARACTERS_A_TOKEN) + 1
        while too_many - fits > 1:
            middle = (fits + too_many) // 2
            if self._count(self._shape.item(piece, cut_at_word(body, middle))) <= room:
                fits = middle
            else:
                too_many = middle
        return self._shape.item(piece, cut_at_word(body, fits)) if fits >= least else None


def cut_at_word(text: str, characters: int) -> str:
    """At most the first `characters`, up to the end of a word, and how many more there are."""
    if characters >= len(text):
        return text
    shown = text[:characters]
    if not text[characters].isspace():
        blank = _LAST_BLANK.search(shown, max(characters // 2, characters - _LONGEST_WORD))
        shown = shown[: blank.start()] if blank and blank.start() else shown
    shown = shown.rstrip()
    return f"{shown} … [cut: {len(text) - len(shown):,} more characters]"
