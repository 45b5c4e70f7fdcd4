"""What the memory format refuses. Every error says what was wrong and what to do."""


def sendable(text: str) -> str:
    """Return a text about what somebody sent so that every encoding of Unicode takes it.

    Halves of surrogate pairs, which have no UTF-8, are written as `\\ud800`.
    """
    return text.encode(errors="backslashreplace").decode()


class FormatError(ValueError):
    """Something that the memory format cannot hold. `code` is stable, the text is for people and models."""

    code = "invalid_format"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(sendable(message))
        if code is not None:
            self.code = code


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
