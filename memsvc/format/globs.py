"""Glob patterns as deepagents' backends read them: one matcher for globs and for the file filter of a grep."""

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from pathlib import PurePosixPath

from wcmatch import glob as wcglob

from memsvc.format.refusals import FormatError

MAX_PATTERN_BYTES = 1024
# A matcher is a regular expression underneath: with more wildcards than people write, it can take for ever.
MAX_STARS = 16
# With a third "**" that others follow, a deep path takes seconds.
MAX_CROSSINGS = 2

__all__ = ["InvalidGlob", "compile_glob"]


class InvalidGlob(FormatError):
    """A pattern that is refused as such; one that is merely malformed matches nothing."""

    code = "invalid_glob"


@lru_cache(maxsize=256)
def compile_glob(pattern: str) -> Callable[[str], bool]:
    """Compile a pattern into a test of paths relative to the folder that is searched, without a leading slash.

    Without a slash the pattern is for the base name, at any depth. With one it is for the relative path; a leading
    slash only anchors it. `**` crosses folders but no dot folders; a name with a leading dot has to be asked for
    with one; braces and `[!a]` work. The pattern is brought to NFC, as paths are. Raises `InvalidGlob` for a `..`
    segment and for patterns that are too dear.
    """
    pattern = unicodedata.normalize("NFC", pattern)
    if ".." in pattern.replace("\\", "/").split("/"):
        raise InvalidGlob(f"Path traversal not allowed in glob pattern {pattern!r}")
    if len(pattern.encode(errors="replace")) > MAX_PATTERN_BYTES or pattern.count("*") > MAX_STARS:
        raise InvalidGlob(
            f"The glob pattern is too long or has more than {MAX_STARS} wildcards; use a simpler one."
        )
    if pattern.rstrip("/").removesuffix("**").count("**") > MAX_CROSSINGS:
        raise InvalidGlob(f"The glob pattern crosses folders with more than {MAX_CROSSINGS} '**'; use fewer.")
    try:
        compiled = wcglob.compile(pattern.lstrip("/"), flags=wcglob.BRACE | wcglob.GLOBSTAR)
    except Exception as error:
        # wcmatch raises private types, such as the one for too many brace alternatives.
        raise InvalidGlob(f"Invalid glob pattern {pattern!r}: {error}") from error
    if "/" in pattern:
        return lambda path: bool(compiled.match(path))
    return lambda path: bool(compiled.match(PurePosixPath(path).name))
