"""The one gate for text that comes from outside."""

import unicodedata

from memsvc.format.errors import InvalidText


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
