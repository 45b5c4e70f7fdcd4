"""Bringing a zip archive or a directory into a tree: every file byte for byte, all or none, one revision.

Names are paths of the tree (`memory/index.md`). An archive of what is *in* a memory folder (`index.md`,
`semantic_memory/…`), without a `memory/` at its top, goes under `/memory/`; so does a directory named `memory`. Files
that the import doesn't bring stay as they are; files that are the same already are not touched.
"""

import os
import stat
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final

from memsvc.format import FormatError
from memsvc.format.paths import ancestors_of, archived_path, canonical_path
from memsvc.transfer.archives import Archive, Limits
from memsvc.transfer.errors import ImportRefused
from memsvc.transfer.manifest import renamed_in
from memsvc.transfer.names import (
    MANIFEST_NAME,
    MEMORY_FOLDER,
    holds_memory_folder_content,
    is_litter,
    stands_for,
)
from memsvc.transfer.notebooks import notebooks_in
from memsvc.transfer.reports import Contents, FileReport, Outcome, Report
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.errors import EntryNotFound, Forbidden, ReadOnly

_MOST_WARNINGS: Final = 200

type Progress = Callable[[str], None]
type _Outcomes = tuple[int, dict[str, tuple[Outcome, str]]]


@dataclass(frozen=True, slots=True)
class _Source:
    """Files to import: their names, how to read one, and whether they are known to be a memory folder's content."""

    names: Sequence[str]
    read: Callable[[str], bytes]
    is_memory_folder: bool = False


def import_zip(
    access: Access,
    archive: BinaryIO,
    *,
    dry_run: bool = False,
    message: str = "",
    limits: Limits = Limits(),  # noqa: B008  frozen
    progress: Progress = lambda path: None,
) -> Report:
    """Import the files of a zip archive, which must be seekable.

    Raises InvalidArchive, ImportRefused (FormatErrors) or ArchiveTooLarge (a TreeError), and stores nothing then. A
    dry run changes nothing and reports the names and files that would be refused.
    """
    with Archive(archive, limits) as opened:
        return _imported(access, _Source(opened.names, opened.read), dry_run, message, progress)


def import_notebooks(
    access: Access,
    archive: BinaryIO,
    *,
    dry_run: bool = False,
    message: str = "",
    limits: Limits = Limits(),  # noqa: B008  frozen
    progress: Progress = lambda path: None,
) -> Report:
    """Import the notebooks of pydantic-deep from a zip archive: to `/agents/<agent>/`, byte for byte.

    Raises as `import_zip` does; other files of the archive are left out and reported.
    """
    with Archive(archive, limits) as opened:
        found = notebooks_in(opened.names)
        if found.refused and not dry_run:
            raise ImportRefused(found.refused)
        source = _Source(list(found.taken), lambda name: opened.read(found.taken[name]))
        report = _imported(access, source, dry_run, message, progress)
    skipped = [FileReport(name, Outcome.SKIPPED, reason) for name, reason in found.skipped.items()]
    refused = [FileReport(name, Outcome.REFUSED, reason) for name, reason in found.refused]
    return replace(report, files=[*report.files, *skipped, *refused])


def import_directory(
    access: Access,
    folder: Path,
    *,
    dry_run: bool = False,
    message: str = "",
    progress: Progress = lambda path: None,
) -> Report:
    """Import the files below a directory; raises ImportRefused for links and for names that a tree doesn't take."""
    names = list(_names_below(folder))
    if links := [
        (name, "is a link or a device, not a file") for name in names if not _is_regular(folder / name)
    ]:
        raise ImportRefused(links)
    source = _Source(
        names,
        lambda name: (folder / name).read_bytes(),
        is_memory_folder=f"{folder.resolve().name}/" == MEMORY_FOLDER,
    )
    return _imported(access, source, dry_run, message, progress)


def _imported(access: Access, source: _Source, dry_run: bool, message: str, progress: Progress) -> Report:
    litter, paths, refused = _sorted_out(source)
    if refused and not dry_run:
        raise ImportRefused(refused)
    contents = Contents()
    holdings = {path: contents.add(path, source.read(name)) for path, name in paths.items()}
    act = _compared if dry_run else _stored
    revision, outcomes = act(access, source, paths, message, progress)
    files = [
        FileReport(path, *outcomes[path], entries=entries, opaque=opaque)
        for path, (entries, opaque) in holdings.items()
    ]
    files += [
        FileReport(name, Outcome.SKIPPED, "left by the system that made it, no memory") for name in litter
    ]
    files += [FileReport(name, Outcome.REFUSED, reason) for name, reason in refused]
    return Report(revision, dry_run, files, _warnings(access, contents))


def _sorted_out(source: _Source) -> tuple[list[str], dict[str, str], list[tuple[str, str]]]:
    """Names that are skipped, names by the path that they get (in the order of paths), and (name, reason) refused."""
    renamed = renamed_in(source.read(MANIFEST_NAME)) if MANIFEST_NAME in source.names else None
    original = {name: path for name, path in (renamed or {}).items() if stands_for(name, path)}
    litter = [name for name in source.names if is_litter(name)]
    skipped = {*litter, *([] if renamed is None else [MANIFEST_NAME])}
    names = [name for name in source.names if name not in skipped]
    in_memory = source.is_memory_folder or holds_memory_folder_content(names)
    prefix = MEMORY_FOLDER if in_memory and renamed is None else ""
    paths: dict[str, str] = {}
    refused: list[tuple[str, str]] = []
    for name in names:
        try:
            path = canonical_path(original[name]) if name in original else archived_path(f"/{prefix}{name}")
        except FormatError as error:
            refused.append((name, f"has a name that can't be kept: {error}"))
            continue
        if path in paths:
            refused.append((name, f"is the same file as {paths[path]!r}"))
        paths.setdefault(path, name)
    refused += [
        (paths[folder], "is a file, and a folder of other files too")
        for folder in sorted({folder for path in paths for folder in ancestors_of(path)} & paths.keys())
    ]
    return litter, dict(sorted(paths.items())), refused


def _stored(
    access: Access, source: _Source, paths: Mapping[str, str], message: str, progress: Progress
) -> _Outcomes:
    def files() -> Iterator[tuple[str, bytes]]:
        for path, name in paths.items():
            yield path, source.read(name)
            progress(path)

    result = services.import_files(access, files(), message=message)
    return result.revision, {file.path: (Outcome(file.outcome), "") for file in result.files}


def _compared(
    access: Access, source: _Source, paths: Mapping[str, str], message: str, progress: Progress
) -> _Outcomes:
    with reads.snapshot(access) as taken:
        revision = taken.revision
        present = {listed.path: _digest(chunks) for listed, chunks in taken.files()}
    folders = {folder for path in present for folder in ancestors_of(path)}
    outcomes = {}
    for path, name in paths.items():
        reason = _conflict(access, path, present, folders)
        digest = _digest([source.read(name)])
        outcomes[path] = (Outcome.REFUSED, reason) if reason else (_would_be(digest, present.get(path)), "")
        progress(path)
    return revision, outcomes


def _digest(chunks: Iterable[bytes]) -> bytes:
    digest = sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.digest()


def _conflict(access: Access, path: str, present: Container[str], folders: Container[str]) -> str:
    """Why the tree would not take a file here; empty if it would."""
    try:
        access.require_write(path)
    except (Forbidden, ReadOnly) as error:
        return str(error)
    if path in folders:
        return "is a folder in the tree"
    above = next((folder for folder in ancestors_of(path) if folder in present), None)
    return f"can't lie under '{above}', which is a file in the tree" if above else ""


def _would_be(digest: bytes, present: bytes | None) -> Outcome:
    if present is None:
        return Outcome.CREATED
    return Outcome.UNCHANGED if present == digest else Outcome.CHANGED


def _warnings(access: Access, contents: Contents) -> list[str]:
    found = list(contents.warnings())[:_MOST_WARNINGS]
    for entry_id, path in contents.dangling():
        if len(found) >= _MOST_WARNINGS:
            break
        if not _exists(access, entry_id):
            found.append(f"an entry of {path} refers to {entry_id}, which is nowhere in the tree")
    return found


def _exists(access: Access, entry_id: str) -> bool:
    try:
        reads.get_entry(access, entry_id)
    except EntryNotFound:
        return False
    return True


def _names_below(folder: Path) -> Iterator[str]:
    """All that is no directory below a directory, with `/` between the parts; links are not followed."""
    for place, folders, files in os.walk(folder):
        for name in files + [name for name in folders if (Path(place) / name).is_symlink()]:
            yield (Path(place) / name).relative_to(folder).as_posix()


def _is_regular(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)
