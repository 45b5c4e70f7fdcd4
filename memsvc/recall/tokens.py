"""How many tokens a text is, as an estimate that needs no vocabulary."""

import re
from collections.abc import Callable
from typing import Final

type TokenCounter = Callable[[str], int]

_PIECE: Final = re.compile(
    r"[A-Z]?[a-z]{1,6}|[A-Z]{1,2}|[0-9]{1,3}|[!-/:-@[-`{-~]|[ \t]{2,}|[\r\n]+|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
)


def estimated(text: str) -> int:
    """Rather too many than too few for prose and code; too few for what is no language, as random letters.

    One for six small letters of a word, two capitals, three digits, each sign, each run of blanks or line ends;
    outside ASCII one for two bytes of UTF-8.
    """
    foreign = len(text.encode()) - len(text.encode("ascii", "ignore"))
    return len(_PIECE.findall(text)) + (foreign + 1) // 2
