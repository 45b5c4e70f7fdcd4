"""What the memory format refuses. Every error says what was wrong and what to do."""

from collections.abc import Mapping
from typing import Final

BODY_TOO_LARGE: Final = "body_too_large"


def sendable(text: str) -> str:
    """Return a text about what somebody sent so that every encoding of Unicode takes it.

    Halves of surrogate pairs, which have no UTF-8, are written as `\\ud800`.
    """
    return text.encode(errors="backslashreplace").decode()


class CodedError(Exception):
    """Base of every error that memsvc raises on purpose, here, in the database's process or at a client.

    `code` is stable, for programs; memsvc/contract/errors.py has them all.
    """

    code: str

    def __init__(self, detail: str, *, code: str | None = None) -> None:
        super().__init__(sendable(detail))
        if code is not None:
            self.code = code

    @property
    def detail(self) -> str:
        """What was wrong, for people and models."""
        return str(self)

    @property
    def members(self) -> Mapping[str, object]:
        """Further facts for programs, as a problem document has them."""
        return {}


class FormatError(CodedError, ValueError):
    """Something that the memory format cannot hold."""

    code = "invalid_format"


class InvalidPath(FormatError):
    code = "invalid_path"


class InvalidText(FormatError):
    code = "invalid_text"


class InvalidEntry(FormatError):
    code = "invalid_entry"


class BlankBody(InvalidEntry):
    code = "blank_body"

    def __init__(
        self, message: str = "an entry needs a body that says something: there is nothing to be seen"
    ) -> None:
        super().__init__(message)


class InvalidTitle(FormatError):
    code = "invalid_title"
