"""Text: the one gate for what comes from outside, and what counts as a line, as the same text and the same letter.

Every door compares and counts with these: searches, edits, the numbers of lines, patterns of names.
"""

import re
import unicodedata
from bisect import bisect_left
from functools import lru_cache
from typing import Final

from memsvc.format.refusals import InvalidText

# Unicode's "default ignorable" characters, which are drawn as nothing, and the dot that a Turkish capital leaves
# above its small letter. (The dot that belongs to a letter, as in "ż", is one character with it.)
_UNREAD: Final = re.compile(
    "[\u00ad\u0307\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_ACCENTS: Final = dict.fromkeys(range(0x300, 0x370))
_ACCENT: Final = re.compile("[\u0300-\u036f]")


def checked_text(value: object, *, field: str, max_bytes: int, nul_allowed: bool = False) -> str:
    """Return `value` if it is text that can be stored, in at most `max_bytes` bytes of UTF-8.

    Raises `InvalidText`, naming the field, for anything that is no string, for a lone surrogate (it has no UTF-8
    form), for a NUL (Postgres text holds none) unless `nul_allowed`, and for too much.
    """
    if not isinstance(value, str):
        raise InvalidText(f"{field} must be text, not {type(value).__name__}")
    if len(value) > max_bytes:
        raise _too_long(field, max_bytes)
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise InvalidText(
            f"{field} holds half of a surrogate pair at character {error.start}; send whole characters"
        ) from None
    if size > max_bytes:
        raise _too_long(field, max_bytes)
    if not nul_allowed and "\0" in value:
        raise InvalidText(f"{field} holds a NUL at character {value.index('\0')}; take it out")
    return value


def one_line(value: str) -> str:
    """Collapse every run of white space, line breaks included, to one blank, and trim."""
    return " ".join(value.split())


# --- lines -------------------------------------------------------------------------------------------------------


def text_lines(text: str, *, ends: bool = False) -> list[str]:
    """The lines of a text as readers page through them and as every number of a line counts, with `ends` or without.

    They are those of `str.splitlines`, as deepagents reads them: besides `\\n`, `\\r\\n` and `\\r`, a form feed,
    U+0085, U+2028 and others end a line. (An entry's structure knows `\\n` only, and so does a unified diff.)
    """
    return text.splitlines(keepends=ends)


def count_lines(text: str) -> int:
    return len(text_lines(text))


def plain_line_ends(text: str) -> str:
    """Text with `\\n` for each `\\r\\n` and `\\r`, as readers are shown it."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def places_of(text: str, wanted: str) -> list[tuple[int, int]]:
    """Where `wanted` stands in `text`, as (start, end), without overlaps; line ends match whatever their form."""
    plain, wanted = plain_line_ends(text), plain_line_ends(wanted)
    # Each "\r\n" before a place in the plain form makes the text one character longer there.
    pairs = [found.start() - n for n, found in enumerate(re.finditer("\r\n", text))]
    places = []
    start = plain.find(wanted) if wanted else -1
    while start >= 0:
        end = start + len(wanted)
        places.append((start + bisect_left(pairs, start), end + bisect_left(pairs, end)))
        start = plain.find(wanted, end)
    return places


# --- letters -----------------------------------------------------------------------------------------------------


def composed_text(text: str) -> str:
    """Text in one form (NFKC) for all that read alike, without characters that are drawn as nothing."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text)
    return unicodedata.normalize("NFKC", _UNREAD.sub("", text)) if _UNREAD.search(text) else text


def case_folded(text: str) -> str:
    """Text without case, for comparing: `STRASSE` is `Straße`, `İstanbul`, `ISTANBUL` and `ıstanbul` are `istanbul`."""
    if text.isascii():
        return text.lower()
    # A Turkish "I" is the capital of another letter than elsewhere; a text in capitals doesn't say which it was.
    return composed_text(composed_text(text).casefold().replace("ı", "i"))


def folded(text: str) -> str:
    """Text without case and with single blanks: `Straße  X` and `STRASSE x` are one, and so are both forms of `é`."""
    return " ".join(case_folded(text).split())


def unaccented(text: str) -> str:
    """Text without the accents of Latin, Greek and Cyrillic letters; the marks of other scripts are letters."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).translate(_ACCENTS))


def spelled(text: str) -> str:
    """One spelling for all that differ in case and accents only."""
    return unaccented(case_folded(text))


def spelled_with_places(text: str) -> tuple[str, list[int]]:
    """`spelled`, and for each of its characters, and its end, where that begins in `text`.

    Characters that came of one (`ß`), or of several that are one together, have the same place.
    """
    spelt = spelled(text)
    # Where nothing can go on a letter, each has one at least: as many as before are the same ones.
    if len(spelt) == len(text) and composed_text(text) == text and not _ACCENT.search(text):
        return spelt, list(range(len(text) + 1))
    starts = [i for i, character in enumerate(text) if i == 0 or not _goes_on(character)]
    parts: list[str] = []
    places: list[int] = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = _spelled_letter(text[start:end])
        parts.append(part)
        places += [start] * len(part)
    return "".join(parts), [*places, len(text)]


@lru_cache(maxsize=8192)
def _spelled_letter(letter: str) -> str:
    return spelled(letter)


@lru_cache(maxsize=8192)
def _goes_on(character: str) -> bool:
    """Whether a character may become one with what stands before it: a mark, a part of a Korean syllable."""
    if character.isascii():
        return False
    first = unicodedata.normalize("NFKD", character)[0]
    return (
        unicodedata.category(first)[0] == "M"
        or "\u1160" <= first <= "\u11ff"
        or _UNREAD.match(first) is not None
    )


# Letters and symbols that look like a blank: fillers of Hangul, the empty cell of Braille, joiners of graphemes.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_UNSEEN = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Mn", "Mc", "Me"})


def says_something(text: str) -> bool:
    """Whether there is anything to be seen in a text: neither blanks, nor controls, nor marks that nothing carries."""
    return any(
        character not in _BLANK and unicodedata.category(character) not in _UNSEEN for character in text
    )


def _too_long(field: str, max_bytes: int) -> InvalidText:
    return InvalidText(f"{field} is too long: at most {max_bytes:,} bytes of UTF-8; shorten it")
