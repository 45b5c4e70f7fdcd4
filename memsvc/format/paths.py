"""Paths in a tree, in their one spelling.

A path is absolute (`/memory/semantic_memory/facts.md`), in NFC, without empty segments and without a trailing
slash. `canonical_path` brings what agents send to that form. Other doors refuse what isn't in that form already:
`spelt_path` only that, `visible_path` also names that don't show what they are (the rule for new names at every
door), `composed_path` also what isn't in NFC, `archived_path` what an archive may mean otherwise, `strict_path`
also names that other systems can't hold.
"""

import re
import unicodedata

from memsvc.format.invisibles import hides_something
from memsvc.format.layout import KIND_DIRECTORIES, MEMORY_ROOT, ROOT_INDEX_PATH, index_path
from memsvc.format.refusals import InvalidPath

MAX_PATH_BYTES = 1024
MAX_SEGMENT_BYTES = 255
MAX_DEPTH = 64
MAX_MEMORY_DEPTH = 20

_ROUTERS = frozenset({ROOT_INDEX_PATH, *map(index_path, KIND_DIRECTORIES)})
_LINE_BREAK = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def canonical_path(text: str) -> str:
    """Bring a file's path to its one spelling.

    Adds a missing first slash, drops empty and `.` segments and a trailing slash, composes to NFC. Everything else
    is literal: `%2e`, `~`, `\\`, `*` and blanks are characters like others, and nothing is decoded. Raises
    `InvalidPath` for a `..` segment, a NUL, a lone surrogate, a line break, a segment over 255 or a path over 1,024
    bytes, and for the root, which is no file.
    """
    path = _canonical(text)
    if path == "/":
        raise InvalidPath(f"{_shown(text)} is not the path of a file; name a file such as /memory/notes.md")
    return path


def canonical_folder(text: str | None) -> str:
    """Bring a folder's path to its one spelling, as `canonical_path` does; None, "" and "/" are the root, "/"."""
    return "/" if text is None else _canonical(text)


def spelt_path(text: str) -> str:
    """Return a file's path, in NFC, if it is spelt canonically; `canonical_path` would mend other spellings."""
    path = canonical_path(text)
    if path != unicodedata.normalize("NFC", text):
        raise InvalidPath(f"{_shown(text)} is not spelt as a path; write {_shown(path)}")
    return path


def visible_path(text: str) -> str:
    """Return a file's path, in NFC, if it is spelt canonically and nothing in it deceives the eye.

    Refused, besides what `spelt_path` refuses: characters that nobody sees and that spell nothing where they stand
    (see `invisibles`), segments that compatibility readers take for `.`, `..` or several segments (`．．`, `‥`, `／`),
    and more than 64 segments. This is the rule for a new name at every door; names that are there stay in use.
    """
    path = spelt_path(text)
    if path.count("/") > MAX_DEPTH:
        raise InvalidPath(f"{_shown(text)} is too deep; use at most {MAX_DEPTH} segments")
    for segment in path[1:].split("/"):
        if hides_something(segment):
            raise InvalidPath(f"{_shown(text)} holds a character that cannot be seen; take it out")
        compatible = unicodedata.normalize("NFKC", segment)
        if compatible in (".", "..") or "/" in compatible:
            raise InvalidPath(
                f"{_shown(text)} has a name that some readers take for dots or slashes; choose another"
            )
    return path


def composed_path(text: str) -> str:
    """Return a file's path if it is a visible one in NFC already, of at most 20 segments.

    Nothing is mended. This is the rule of memory stores for new names.
    """
    path = visible_path(text)
    if path != text:
        raise InvalidPath(f"{_shown(text)} is not in the Unicode form NFC; compose it before it is sent")
    if path.count("/") > MAX_MEMORY_DEPTH:
        raise InvalidPath(f"{_shown(text)} is too deep; use at most {MAX_MEMORY_DEPTH} segments")
    return path


def archived_path(text: str) -> str:
    """Return a file's path as `visible_path` does, if it holds no backslash: some archives part folders by it."""
    path = visible_path(text)
    if "\\" in unicodedata.normalize("NFKC", path):
        raise InvalidPath(f"{_shown(text)} holds a backslash; separate folders with /")
    return path


def strict_path(text: str) -> str:
    """Return a file's path, in NFC, if every system can hold it under this very name.

    Refused, besides what `archived_path` refuses: segments that begin or end with white space. Stored as they stand:
    percent signs, wildcards, quotes, braces, `~`, names that Windows reserves, any script and mixtures of scripts,
    either case, other blanks inside a segment, and folders beside /memory/.
    """
    path = archived_path(text)
    for segment in path[1:].split("/"):
        if segment != segment.strip():
            raise InvalidPath(f"{_shown(text)} has a name that begins or ends with a blank; take it out")
    return path


def parent_of(path: str) -> str:
    """Return the folder that holds a canonical path: "/memory" for "/memory/a.md", "/" for "/a.md"."""
    return path.rpartition("/")[0] or "/"


def ancestors_of(path: str) -> list[str]:
    """Return the folders above a canonical path, outermost first, without "/" and the path itself."""
    return [path[: match.start()] for match in re.finditer("/", path) if match.start() > 0]


def is_memory_file(path: str) -> bool:
    """Whether a file may hold entries: it ends in `.md`, is no `index.md` and lies below no dot folder."""
    *folders, name = path[1:].split("/")
    return name.endswith(".md") and name != "index.md" and not any(f.startswith(".") for f in folders)


def is_router(path: str) -> bool:
    """Whether a file is one of the four router indexes."""
    return path in _ROUTERS


def router_of(path: str) -> tuple[str, str] | None:
    """Return the router that has a row for a file, and the file's path in that row; None where none has.

    A file under a kind's folder is in that kind's index, any other file under /memory/ in the root index. No index
    has the routers themselves, dot files, what lies below a dot folder, or what lies outside /memory/.
    """
    if is_router(path) or not path.startswith(MEMORY_ROOT) or "/." in path.removeprefix("/memory"):
        return None
    for kind, directory in KIND_DIRECTORIES.items():
        if path.startswith(directory):
            return index_path(kind), path.removeprefix(directory)
    return ROOT_INDEX_PATH, path.removeprefix(MEMORY_ROOT)


def _canonical(text: object) -> str:
    if not isinstance(text, str):
        raise InvalidPath(f"a path must be text, not {type(text).__name__}")
    # Composing shortens, but never by this much; long input is refused before any work is done on it.
    if len(text) > 4 * MAX_PATH_BYTES:
        raise InvalidPath(f"a path takes at most {MAX_PATH_BYTES} bytes; shorten it")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidPath("a path must not hold half of a surrogate pair; send whole characters") from None
    if "\0" in text:
        raise InvalidPath("a path must not hold a NUL; take it out")
    if _LINE_BREAK.search(text):
        raise InvalidPath(f"{_shown(text)} holds a line break; take it out")
    segments = [s for s in unicodedata.normalize("NFC", text).split("/") if s not in ("", ".")]
    if ".." in segments:
        raise InvalidPath(f"{_shown(text)} has a '..' segment; write the path without it")
    if any(len(segment.encode()) > MAX_SEGMENT_BYTES for segment in segments):
        raise InvalidPath(f"a name in a path takes at most {MAX_SEGMENT_BYTES} bytes; shorten it")
    path = "/" + "/".join(segments)
    if len(path.encode()) > MAX_PATH_BYTES:
        raise InvalidPath(f"a path takes at most {MAX_PATH_BYTES} bytes; shorten it")
    return path


def _shown(text: str) -> str:
    """A path for a message: quoted, with what can't be seen escaped, and short."""
    shown = text if len(text) <= 200 else f"{text[:200]}…"
    return repr(shown)
