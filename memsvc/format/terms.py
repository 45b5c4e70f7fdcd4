"""How text is compared when it is searched: folded for substrings, and as terms for ranking."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from memsvc.format.entries import MemoryEntry
from memsvc.format.text import composed_text, folded, spelled, unaccented

# A tsvector holds 1 MiB: no entry's body comes near it, but some characters fold into many.
MAX_WORDS_BYTES = 256 * 1024
MAX_EXACT_BYTES = 256 * 1024
_LONGEST_EXACT = 200

# Scripts that are written without spaces, and Korean, whose words carry their particles: Thai, Lao, Tibetan, Burmese,
# Khmer, Kana, Hangul and Han.
_UNSPACED = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
)
_UNSPACED += "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BRACKETS = "\"'`()[]{}<>,;!?*|…“”„‘’«»‹›。、，；！？（）「」『』【】"
# Both the languages' own stop lists and the models pass over these, which turn a sentence round.
_NEGATIONS = frozenset(
    [
        "not",
        "no",
        "never",
        "none",
        "nor",
        "without",
        "cannot",
        "nicht",
        "nie",
        "niemals",
        "ohne",
        "kein",
        "keine",
        "keinen",
        "keiner",
    ]
)
_NEGATION = "!not"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a text is found by: `words` for the stemmer of a language, `exact` as they stand."""

    words: str
    exact: list[str]


def search_text(entry: MemoryEntry) -> str:
    """All that a query is looked for in; a line break keeps a phrase from matching across two fields."""
    fields = (entry.summary, entry.body, *entry.tags, entry.entry_id, entry.source)
    return "\n".join(folded(field) for field in fields if field)


def tag_keys(tags: Iterable[str]) -> list[str]:
    return [folded(tag) for tag in tags]


def terms(text: str, *, asked: bool = False) -> Terms:
    """The terms of a text. A query (`asked`) has only the pairs of an unspaced run, where a text has its characters
    too, so that a query of one character finds something.
    """
    # An accent that is a character of its own would cut its word in two.
    text = unaccented(composed_text(text))
    exact = dict.fromkeys(_exact(text, asked))
    words = " ".join(word for word in _words(text))
    return Terms(_within(words, MAX_WORDS_BYTES), list(_first(exact, MAX_EXACT_BYTES)))


def entry_terms(summary: str, body: str, tags: Iterable[str], source: str, entry_id: str) -> Terms:
    """The terms of an entry. A summary that only repeats how the body begins is not counted twice."""
    repeated = folded(body).startswith(folded(summary).rstrip("…. "))
    parts = [*tags, "" if repeated else summary, body, source, entry_id]
    return terms("\n".join(part for part in parts if part))


def _words(text: str) -> Iterator[str]:
    for found in _WORD.finditer(_UNSPACED_RUN.sub(" ", text)):
        word = found.group()
        yield spelled(word)
        humps = _HUMP.split(word)
        if len(humps) > 1:
            yield from map(spelled, humps)


def _exact(text: str, asked: bool) -> Iterator[str]:
    for chunk in text.split():
        chunk = chunk.strip(_BRACKETS).rstrip(".:").removesuffix("'s").removesuffix("’s")
        if _is_identifier(chunk):
            yield "=" + spelled(chunk)
        if chunk.lower() in _NEGATIONS or chunk.lower().endswith(("n't", "n’t")):
            yield _NEGATION
    for run in _UNSPACED_RUN.findall(text):
        yield from _grams(spelled(run), asked)


def _is_identifier(chunk: str) -> bool:
    """What is not only letters and digits, as `ADR-016`, `foo_bar`, `v1.2`, `C:\\repo\\main.py`, `a@b.org` or `C++`."""
    return 2 <= len(chunk) <= _LONGEST_EXACT and not chunk.isalnum() and any(map(str.isalnum, chunk))


def _grams(run: str, asked: bool) -> Iterator[str]:
    if not asked or len(run) == 1:
        yield from ("~" + character for character in run)
    yield from ("~" + run[i : i + 2] for i in range(len(run) - 1))


def _within(text: str, max_bytes: int) -> str:
    return text if len(text) * 4 <= max_bytes else text.encode()[:max_bytes].decode(errors="ignore")


def _first(found: Iterable[str], max_bytes: int) -> Iterator[str]:
    for each in found:
        max_bytes -= len(each.encode()) + 4
        if max_bytes < 0:
            return
        yield each
