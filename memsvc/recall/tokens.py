"""How many tokens a text is: by tiktoken's cl100k_base where it can be had without a network, else an estimate."""

import hashlib
import os
import re
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Final

type TokenCounter = Callable[[str], int]

# The name that tiktoken gives the vocabulary in its cache, and what must be in it: anything else it would download.
_CACHED_AS: Final = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
_CONTENT: Final = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"

_PIECE: Final = re.compile(
    r"[A-Z]?[a-z]{1,6}|[A-Z]{1,2}|[0-9]{1,3}|[!-/:-@[-`{-~]|[ \t]{2,}|[\r\n]+|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
)


@lru_cache(maxsize=1)
def token_counter() -> TokenCounter:
    """The counter of this process; which one it is doesn't change while it runs."""
    return _tiktoken() or estimated


def _tiktoken() -> TokenCounter | None:
    if not _vocabulary_is_here():
        return None
    try:
        import tiktoken

        encoding = tiktoken.get_encoding("cl100k_base")
    except Exception:
        # It is no dependency of ours; whatever keeps it from working, there is the estimate.
        return None
    # Stored text may spell a control token. Here it is text as any other.
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def _vocabulary_is_here() -> bool:
    folder = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    cached = Path(folder or Path(tempfile.gettempdir()) / "data-gym-cache") / _CACHED_AS
    try:
        return hashlib.sha256(cached.read_bytes()).hexdigest() == _CONTENT
    except OSError:
        return False


def estimated(text: str) -> int:
    """Rather too many than too few for prose and code; too few for what is no language, as random letters.

    One for six small letters of a word, two capitals, three digits, each sign, each run of blanks or line ends;
    outside ASCII one for two bytes of UTF-8.
    """
    foreign = len(text.encode()) - len(text.encode("ascii", "ignore"))
    return len(_PIECE.findall(text)) + (foreign + 1) // 2
