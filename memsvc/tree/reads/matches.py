"""Finding files by name and lines by what stands in them."""

import re
from collections.abc import Callable, Iterator

from django.db.models import F, Q, TextField, Value
from django.db.models.functions import Concat, StrIndex
from django.db.models.lookups import GreaterThan

from memsvc.contract.files import Listed, Match, Matches
from memsvc.format import canonical_folder, count_lines
from memsvc.format.globs import compile_glob
from memsvc.tree.access import Access
from memsvc.tree.blocks import content
from memsvc.tree.files import decodes
from memsvc.tree.models import File
from memsvc.tree.snapshot import Snapshot, snapshot

# Only these part what a search shows, as a person's grep does. A match has the number of the line, as `read_lines`
# counts them, at which it begins.
_LINE_END = re.compile(r"\r\n|\r|\n")


def glob(
    access: Access, pattern: str, *, folder: str | None = None, revision: int | None = None
) -> list[Listed]:
    """The files below a folder whose path matches, in path order; see `compile_glob`. A missing folder has none."""
    folder = canonical_folder(folder)
    matches = compile_glob(pattern)
    with snapshot(access, revision) as now:
        files = now.files().at_or_below(folder).order_by("path")
        return now.listed([file for file in files if matches(_relative(file.path, folder))])


def grep(
    access: Access,
    pattern: str,
    *,
    folder: str | None = None,
    glob: str | None = None,
    max_count: int | None = None,
    revision: int | None = None,
) -> Matches:
    """The lines that hold `pattern` as it stands, by file in path order and by line.

    `folder` may be a file. `glob` filters the files by their path below `folder`. At most `max_count` lines are
    answered; `truncated` says whether there were more. Content that is no text is passed over.
    """
    folder = canonical_folder(folder)
    wanted = compile_glob(glob) if glob else None
    if not _can_match(pattern):
        return Matches([], truncated=False)
    room = None if max_count is None else max(max_count, 0)
    found: list[Match] = []
    with snapshot(access, revision) as now:
        for match in _lines_with(now, pattern, folder, wanted):
            if room is not None and len(found) >= room:
                return Matches(found, truncated=True)
            found.append(match)
    return Matches(found, truncated=False)


def _can_match(pattern: str) -> bool:
    """Lines hold no line break, and files no lone surrogate."""
    try:
        pattern.encode()
    except UnicodeEncodeError:
        return False
    return not _LINE_END.search(pattern)


def _lines_with(
    now: Snapshot, pattern: str, folder: str, wanted: Callable[[str], bool] | None
) -> Iterator[Match]:
    for file in _files_with(now, pattern, folder):
        if wanted is not None and not wanted(_relative(file.path, folder)):
            continue
        data = content(now.blocks_of(file), now.revision)
        if not decodes(data):
            continue
        number = 1
        for line in _lines(data.decode()):
            if pattern in line:
                yield Match(file.path, number, line)
            number += count_lines(line + "\n")


def _lines(text: str) -> list[str]:
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def _files_with(now: Snapshot, pattern: str, folder: str) -> list[File]:
    """The files that may hold the pattern; the database passes over the others without sending them."""
    files = now.files().at_or_below(folder)
    if pattern:
        holding = set(now.blocks().filter(_holds(pattern)).values_list("file_id", flat=True).distinct())
        return [file for file in files.order_by("path") if file.content_id in holding]
    return list(files.order_by("path"))


def _holds(pattern: str) -> Q:
    if "\0" in pattern:
        return Q(raw__isnull=False)
    superseded = Concat(Value("superseded_by: "), F("superseded_by"), output_field=TextField())
    in_spliced_line = Q(superseded_in__isnull=False) & Q(GreaterThan(StrIndex(superseded, Value(pattern)), 0))
    return Q(head__contains=pattern) | Q(text__contains=pattern) | in_spliced_line


def _relative(path: str, folder: str) -> str:
    if path == folder:
        return path.rsplit("/", 1)[1]
    return path.removeprefix(folder.rstrip("/") + "/")
