"""The pieces of a text that answer a query, for people and models to see why it was found."""

import re
from collections import defaultdict
from collections.abc import Iterable

from memsvc.contract.entries import Highlight
from memsvc.format.terms import terms
from memsvc.format.text import spelled_with_places

MOST_HIGHLIGHTS = 3
_AROUND = 80
_CHUNK = re.compile(r"\S+")
_WORD = re.compile(r"[^\W_]+")
# What a question is made of, and what it never is about.
_FILLERS = (
    "a an the and or of in on at to for from by with is are was were be been do does did has have had what which "
    "who whom whose when where why how that this these those it its i you he she we they my your his her our me"
)
_TOO_COMMON = frozenset(_FILLERS.split())
# Two words of one stem differ in their ends.
_SHORTEST_STEM = 4
# Enough of a long body to show why.
_LOOKED_AT = 20_000


class Highlighter:
    """Marks in any number of texts what answers one query."""

    def __init__(self, query: str) -> None:
        asked = terms(query, asked=True)
        # By their beginnings, so that each word of a text is compared with few.
        self._words: dict[str, list[str]] = defaultdict(list)
        for word in asked.words.split():
            if word not in _TOO_COMMON:
                self._words[word[:2]].append(word)
        self._exact = [term[1:] for term in asked.exact if term[0] == "="]
        self._grams = [term[1:] for term in asked.exact if term[0] == "~"]

    def __call__(self, body: str) -> list[Highlight]:
        """Up to three pieces of `body` around what the query asks for, in the order of the text."""
        text = body[:_LOOKED_AT]
        # Looked for as words are compared; a letter may be of another length then.
        looked_at, places = spelled_with_places(text)
        found = {*self._of_words(looked_at), *self._of_identifiers(looked_at), *self._of_grams(looked_at)}
        ranges = sorted({_in_text(places, a, b) for a, b in found})
        pieces: list[Highlight] = []
        at = 0
        while at < len(ranges) and len(pieces) < MOST_HIGHLIGHTS:
            start, end = max(0, ranges[at][0] - _AROUND), min(len(text), ranges[at][0] + _AROUND)
            while start > 0 and not text[start - 1].isspace():
                start -= 1
            while end < len(text) and not text[end].isspace():
                end += 1
            inside = [(a, b) for a, b in ranges[at:] if b <= end]
            if not inside:
                end, inside = ranges[at][1], [ranges[at]]
            pieces.append(Highlight(text[start:end], _joined((a - start, b - start) for a, b in inside)))
            at += len(inside)
        return pieces

    def _of_words(self, text: str) -> Iterable[tuple[int, int]]:
        if not self._words:
            return
        for found in _WORD.finditer(text):
            word = found.group()
            if any(word == other or _one_stem(word, other) for other in self._words.get(word[:2], ())):
                yield found.span()

    def _of_identifiers(self, text: str) -> Iterable[tuple[int, int]]:
        if not self._exact:
            return
        for found in _CHUNK.finditer(text):
            for each in self._exact:
                place = found.group().find(each)
                if place >= 0:
                    yield found.start() + place, found.start() + place + len(each)

    def _of_grams(self, text: str) -> Iterable[tuple[int, int]]:
        for gram in self._grams:
            place = text.find(gram)
            while place >= 0:
                yield place, place + len(gram)
                place = text.find(gram, place + 1)


def _in_text(places: list[int], start: int, end: int) -> tuple[int, int]:
    """A range of the spelled text in the text itself, widened to whole letters."""
    last = end - 1
    while end < len(places) - 1 and places[end] == places[last]:
        end += 1
    return places[start], places[end]


def _one_stem(word: str, other: str) -> bool:
    shorter, longer = (word, other) if len(word) <= len(other) else (other, word)
    if len(longer) - len(shorter) > 3 or len(shorter) < _SHORTEST_STEM - 1:
        return False
    return longer.startswith(shorter if len(shorter) < _SHORTEST_STEM + 1 else shorter[:-1])


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
