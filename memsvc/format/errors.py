"""What the memory format refuses. Every error says what was wrong and what to do."""


class FormatError(ValueError):
    """Something that the memory format cannot hold. `code` is stable, the text is for people and models."""

    code = "invalid_format"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code


class InvalidPath(FormatError):
    code = "invalid_path"


class InvalidText(FormatError):
    code = "invalid_text"


class InvalidEntry(FormatError):
    code = "invalid_entry"


class InvalidTitle(FormatError):
    code = "invalid_title"
