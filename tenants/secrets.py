"""The text of an API key: `msk_<prefix>_<secret><checksum>`, made once and kept only as a keyed hash.

The prefix is public (it is shown in lists and may stand in logs). The secret holds 256 random bits, so a fast
hash is enough; the pepper makes a stolen table useless for checking guesses.
"""

import hmac
import secrets
from dataclasses import dataclass
from hashlib import sha256

from django.conf import settings

from memsvc.format.keys import ALPHABET, PREFIX_LENGTH, SECRET_LENGTH, key_of, prefix_in_key


@dataclass(frozen=True, slots=True)
class KeyText:
    """A whole key and its public part. Never log it: `repr` shows the prefix only."""

    text: str
    prefix: str

    def __repr__(self) -> str:
        return f"KeyText(prefix={self.prefix!r})"

    @property
    def digest(self) -> str:
        return keyed_digest(self.text)

    def matches(self, digest: str) -> bool:
        """Compare in constant time, on bytes: `compare_digest` raises TypeError on text beyond ASCII."""
        return hmac.compare_digest(self.digest.encode(), digest.encode())


def keyed_digest(text: str) -> str:
    """What is kept of a text that must be recognised and never read: whoever has the database can't check guesses."""
    pepper = str(settings.KEY_PEPPER).encode()
    return hmac.new(pepper, text.encode(), sha256).hexdigest()


def new_key_text() -> KeyText:
    prefix = _random_text(PREFIX_LENGTH)
    return KeyText(key_of(prefix, _random_text(SECRET_LENGTH)), prefix)


def parse_key_text(text: str) -> KeyText | None:
    """The key in `text`, or None when it doesn't have the form of one."""
    prefix = prefix_in_key(text)
    return KeyText(text, prefix) if prefix else None


def _random_text(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))
