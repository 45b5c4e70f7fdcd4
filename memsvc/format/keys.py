"""The form of an API key: `msk_<prefix>_<secret><checksum>`, so that a slip of the pen and a scanner need no database.

The checksum is no secret and proves nothing: it is six characters that follow from those before them. Keys from before
there were checksums end with their secret.
"""

import re
from collections.abc import Iterator
from typing import Final
from zlib import crc32

ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PREFIX_LENGTH: Final = 8
# 43 characters of 62 are 256.03 bits.
SECRET_LENGTH: Final = 43
# 62**6 is more than 2**32.
CHECKSUM_LENGTH: Final = 6

_FORM: Final = re.compile(
    rf"msk_([0-9A-Za-z]{{{PREFIX_LENGTH}}})_[0-9A-Za-z]{{{SECRET_LENGTH}}}(?:[0-9A-Za-z]{{{CHECKSUM_LENGTH}}})?"
)
_LENGTH: Final = len("msk__") + PREFIX_LENGTH + SECRET_LENGTH
_IN_TEXT: Final = re.compile(
    rb"(?<![0-9A-Za-z])msk_[0-9A-Za-z]{%d}_[0-9A-Za-z]{%d}(?![0-9A-Za-z])"
    % (PREFIX_LENGTH, SECRET_LENGTH + CHECKSUM_LENGTH)
)
_LIKE: Final = re.compile("msk_", re.IGNORECASE)


def key_of(prefix: str, secret: str) -> str:
    """The text of a key, with its checksum."""
    return _summed(f"msk_{prefix}_{secret}")


def prefix_in_key(text: str) -> str | None:
    """The public part of a key; None for a text that can't be one, because of its form or its checksum."""
    found = _FORM.fullmatch(text)
    if found is None or (len(text) > _LENGTH and _summed(text[:_LENGTH]) != text):
        return None
    return found[1]


def places_of_keys(raw: bytes) -> Iterator[int]:
    """Where keys with a right checksum begin in a text. The cost grows with the text."""
    for found in _IN_TEXT.finditer(raw) if b"msk_" in raw else ():
        if prefix_in_key(found[0].decode()) is not None:
            yield found.start()


def looks_like_key(text: str) -> bool:
    """Whether a short text, such as a name that a caller gives, may be a key or a part of one."""
    return _LIKE.search(text) is not None


def _summed(text: str) -> str:
    number, checksum = crc32(text.encode()), ""
    for _ in range(CHECKSUM_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        checksum = ALPHABET[digit] + checksum
    return text + checksum
