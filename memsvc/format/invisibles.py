"""Characters that nobody sees in a name: where they are its spelling, and where they could only deceive.

A joiner decides how the letters beside it are drawn, a variation selector how the one before it is: the scripts that
use them write different words with and without them, and so do emoji. Everywhere else two names would look alike.
"""

import re
import unicodedata
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_UNSEEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
# Letters, marks and signs that show nothing, although Unicode calls them neither control nor format characters.
_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# Format characters that can be seen: signs above or below the digits behind them.
_SEEN: Final = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
_JOINERS: Final = frozenset("\u200c\u200d")
_VIRAMA: Final = 9  # the combining class of signs that take a letter's vowel away

# Scripts by the first word of their characters' names, for Python doesn't know them otherwise.
_JOINED_SCRIPTS: Final = (
    "ARABIC SYRIAC MANDAIC NKO MONGOLIAN PHAGS-PA MANICHAEAN PSALTER ADLAM HANIFI SOGDIAN CHORASMIAN "
    "DEVANAGARI BENGALI GURMUKHI GUJARATI ORIYA TAMIL TELUGU KANNADA MALAYALAM SINHALA TIBETAN MYANMAR KHMER THAI "
    "LAO TAI BALINESE JAVANESE SUNDANESE BATAK BUGINESE REJANG CHAM LEPCHA LIMBU MEETEI SAURASHTRA SYLOTI KAITHI "
    "CHAKMA SHARADA KHOJKI KHUDAWADI GRANTHA NEWA TIRHUTA SIDDHAM MODI TAKRI BRAHMI NANDINAGARI"
)
_JOINED: Final = frozenset(_JOINED_SCRIPTS.split())
# What may stand between two characters of one script: joiners, Mongolian's vowel separator, and the sign for the end
# of a word in scripts without spaces.
_BETWEEN: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "\u200b": frozenset({"KHMER", "THAI", "LAO", "MYANMAR", "TIBETAN", "TAI", "BALINESE", "JAVANESE"}),
        "\u200c": _JOINED,
        "\u200d": _JOINED,
        "\u180e": frozenset({"MONGOLIAN"}),
    }
)
# Selectors that choose another form of the letter before them.
_SELECTORS: Final = (
    (re.compile("[\ufe00-\ufe02\U000e0100-\U000e01ef]"), frozenset({"CJK"})),
    (re.compile("[\u180b-\u180d\u180f]"), frozenset({"MONGOLIAN"})),
    (re.compile("\ufe00"), frozenset({"MYANMAR", "PHAGS-PA", "MANICHAEAN"})),
)
# Emoji: a picture with its look or skin, several that are joined to one, a digit in a key, and the flags of three
# countries within a country. The ranges hold pictures of Unicode versions to come.
_PICTURE: Final = (
    "(?:[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf\u2934\u2935"
    "\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
    "\U0001fc00-\U0001fffd](?:[\U0001f3fb-\U0001f3ff]|[\ufe0e\ufe0f])?)"
)
_TAGGED: Final = "|".join(
    "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
    for region in ("gbeng", "gbsct", "gbwls")
)
_EMOJI: Final = re.compile(f"{_TAGGED}|[0-9#*]\ufe0f\u20e3|{_PICTURE}(?:\u200d{_PICTURE})*")
# What stands in a text unseen and yet is read by a model, or shows the rest in another order.
_HIDDEN: Final = re.compile(
    "[\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def hides_something(name: str) -> bool:
    """Whether a name, in NFC, holds a character that cannot be seen and that spells nothing where it stands.

    What is unassigned or of private use counts as unseen: nobody can say what it shows.
    """
    if name.isascii():
        return not name.isprintable()
    # A sign of no script, so that nothing beside an emoji is taken for its neighbour.
    plain = _EMOJI.sub("*", name)
    return any(is_unseen(c) and not spells(plain, i) for i, c in enumerate(plain))


def with_unseen_shown(text: str) -> str:
    """A text for a reader, with what it hides made visible: a tag character, a control of direction or a character
    without width that spells nothing where it stands becomes its number, as in ⟨U+202E⟩.

    Line ends, soft hyphens, a byte order mark at the begin, and what is unassigned or of private use stay as they are.
    """
    if text.isascii() or _HIDDEN.search(text) is None:
        return text
    spelling = {0} if text.startswith("\ufeff") else set()
    spelling |= {at for emoji in _EMOJI.finditer(text) for at in range(*emoji.span())}
    return _HIDDEN.sub(
        lambda found: (
            found[0]
            if found.start() in spelling or spells(text, found.start())
            else f"⟨U+{ord(found[0]):04X}⟩"
        ),
        text,
    )


def is_unseen(character: str) -> bool:
    """Whether nobody sees a character, or can say what it shows: it may spell something all the same."""
    if unicodedata.category(character) in _UNSEEN_CATEGORIES:
        return character not in _SEEN
    return _UNSEEN.match(character) is not None


def spells(text: str, at: int) -> bool:
    """Whether the character at a place, which cannot be seen, is spelling there.

    Joiners are behind a virama, and between two letters or marks of one script that uses them; Unicode's own rules
    for identifiers leave out how Persian and Khmer are written.
    """
    character, before, after = text[at], text[at - 1 : at], text[at + 1 : at + 2]
    if not before:
        return False
    if character in _JOINERS and unicodedata.combining(before) == _VIRAMA:
        return True
    script = _script(before)
    if character in _BETWEEN:
        return script in _BETWEEN[character] and script == _script(after)
    is_letter = unicodedata.category(before).startswith("L")
    return is_letter and any(signs.match(character) and script in scripts for signs, scripts in _SELECTORS)


def _script(character: str) -> str:
    """The script of a letter or mark, as the first word of its name; "" for anything else."""
    if not character or unicodedata.category(character)[0] not in "LM":
        return ""
    return unicodedata.name(character, "").partition(" ")[0]
