"""Names inside an archive and paths in a tree: what is called what on the way out, and back in.

An archive holds a tree's path without its first slash: `memory/index.md` for `/memory/index.md`. A name that an
unpacking program could misread (a backslash, a drive letter, what nobody sees, a name that another one in the archive
differs from in case only) is replaced by a harmless one, and the manifest says which path it stands for.
"""

import re
import unicodedata
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from memsvc.format import FormatError
from memsvc.format.paths import ancestors_of, strict_path

MANIFEST_NAME: Final = "memsvc-manifest.json"
MEMORY_FOLDER: Final = "memory/"

# What tells the content of a memory folder from that of a whole tree: the routers' places and the preferences.
_MEMORY_MARKS: Final = (
    "index.md",
    "preferences.md",
    "episodic_memory/",
    "semantic_memory/",
    "procedural_memory/",
)
_LITTER_FOLDERS: Final = ("__MACOSX/", ".git/")
_LITTER_FILES: Final = frozenset({".DS_Store"})

DRIVE: Final = re.compile(r"[A-Za-z]:")
_DEVICE: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)
# What git takes for its own: its folder, also in the short form that Windows gives it, and files that it acts upon.
_GIT_RESERVED: Final = re.compile(r"\.git|git~\d", re.IGNORECASE)
# A folder of its own, so that no replacement can meet a file or a folder of the tree.
_GIT_RENAMED: Final = "renamed~"
# What file systems hold: of one name, in characters, and of a path.
_LONGEST_NAME: Final = 255
_LONGEST_BYTES: Final = 4096
_PLAIN: Final = re.compile(r"[^A-Za-z0-9._ -]")


class ArchiveNames:
    """Gives each path of a tree a member name of its own, safe to unpack anywhere. Asked in the order of paths."""

    def __init__(self) -> None:
        self.renamed: dict[str, str] = {}
        self._taken = {_folded(MANIFEST_NAME)}

    def name_for(self, path: str) -> str:
        name = path[1:]
        if not _is_safe(path) or _folded(name) in self._taken:
            name = _replacement(path)
            self.renamed[name] = path
        self._taken.add(_folded(name))
        self._taken.update(_folded(folder[1:]) for folder in ancestors_of(f"/{name}"))
        return name


def git_name(path: str) -> str:
    """The name of a path in a git repository: its own, unless git would not check it out or a system misread it."""
    segments = path[1:].split("/")
    if _is_safe(path) and segments[0] != _GIT_RENAMED and not any(map(_GIT_RESERVED.match, segments)):
        return path[1:]
    return f"{_GIT_RENAMED}/{_replacement(path).rpartition('/')[2]}"


def stands_for(name: str, path: str) -> bool:
    """Whether an export could have given this name to this path in place of its own."""
    return name == _replacement(path)


def is_litter(name: str) -> bool:
    """Whether a file was left by the system that made the archive and is nobody's memory."""
    folders, _, file = name.rpartition("/")
    return file in _LITTER_FILES or any(f"/{litter}" in f"/{folders}/" for litter in _LITTER_FOLDERS)


def holds_memory_folder_content(names: Iterable[str]) -> bool:
    """Whether these are the names in a memory folder, rather than those of a tree with a `memory/` in it."""
    found = False
    for name in names:
        if name.startswith(MEMORY_FOLDER):
            return False
        found = found or any(
            name == mark or (mark.endswith("/") and name.startswith(mark)) for mark in _MEMORY_MARKS
        )
    return found


def is_hostile(name: str) -> bool:
    """Whether nobody's system gives such a name: one that leads elsewhere, holds a control character, or is endless.

    An archive or a list of files with one is not taken at all; a name that only a tree doesn't take is left out.
    """
    segments = unicodedata.normalize("NFKC", name).split("/")
    return (
        any(segment in ("", ".", "..") for segment in segments)
        or any(unicodedata.category(sign) == "Cc" for sign in name)
        or len(name.encode(errors="replace")) > _LONGEST_BYTES
        or len(segments) > _LONGEST_NAME
        or any(len(segment) > _LONGEST_NAME for segment in segments)
    )


def printable(name: str) -> str:
    """A name for a report: what can't be seen, and what is no character, is escaped."""
    shown = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in name[:300])
    return shown if len(name) <= 300 else f"{shown}…"


def _is_safe(path: str) -> bool:
    try:
        strict_path(path)
    except FormatError:
        return False
    return not DRIVE.match(path[1:]) and all(_is_safe_segment(segment) for segment in path[1:].split("/"))


def _is_safe_segment(segment: str) -> bool:
    # Windows drops dots and blanks at the end, and opens a device for these names whatever their extension.
    return not (
        "\\" in segment
        or segment != segment.strip()
        or segment.endswith(".")
        or _DEVICE.fullmatch(segment.partition(".")[0])
    )


def _replacement(path: str) -> str:
    """A name that shows what it stands for and that no other path gets."""
    *folders, file = (_plain(segment) for segment in path[1:].split("/"))
    stem, dot, extension = file.rpartition(".")
    digest = sha256(path.encode()).hexdigest()[:12]
    unique = f"{stem[:60]}~{digest}.{extension[:20]}" if dot else f"{file[:60]}~{digest}"
    return "/".join([*folders, unique])


def _plain(segment: str) -> str:
    plain = _PLAIN.sub("_", segment).strip(" .")
    return plain if plain and _is_safe_segment(plain) else f"_{plain}"


def _folded(name: str) -> str:
    """Equal for names that are one file where case or the composition of letters makes no difference."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
