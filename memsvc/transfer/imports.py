"""Bringing a zip archive or a directory into a tree: every file byte for byte, in one revision.

Names are paths of the tree (`memory/index.md`). An archive of what is *in* a memory folder (`index.md`,
`semantic_memory/…`), without a `memory/` at its top, goes under `/memory/`; so does a directory named `memory`. Files
that the import doesn't bring stay as they are; files that are the same already are not touched. A file whose name a
tree doesn't take is left out and reported.
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, Final

from memsvc.contract.imports import ImportReport
from memsvc.format import FormatError, cut_file
from memsvc.format.paths import ancestors_of, archived_path, canonical_path
from memsvc.transfer.archives import Archive, Limits
from memsvc.transfer.manifest import Brought
from memsvc.transfer.names import (
    MANIFEST_NAME,
    MEMORY_FOLDER,
    holds_memory_folder_content,
    is_litter,
    stands_for,
)
from memsvc.transfer.notebooks import notebooks_in
from memsvc.transfer.refusals import ImportRefused
from memsvc.transfer.reports import Contents, Progress, report_of
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.arrivals import Arrival
from memsvc.tree.commands import OnConflict
from memsvc.tree.errors import EntryNotFound

_MOST_LOOKED_UP: Final = 200


@dataclass(frozen=True, slots=True)
class _Source:
    """Files to import: their names, how to read one, and whether they are known to be a memory folder's content.

    `refused` and `skipped` name files that are left out before anything is looked at, and `warnings` tells of the
    others' names.
    """

    names: Sequence[str]
    read: Callable[[str], bytes]
    is_memory_folder: bool = False
    refused: Sequence[tuple[str, str]] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()


def import_zip(
    access: Access,
    archive: BinaryIO,
    *,
    on_conflict: OnConflict = OnConflict.KEEP,
    dry_run: bool = False,
    message: str = "",
    limits: Limits = Limits(),  # noqa: B008  frozen
    progress: Progress = lambda path: None,
) -> ImportReport:
    """Import the files of a zip archive, which must be seekable.

    A file whose name a tree doesn't take is left out and reported. Raises InvalidArchive, ImportRefused (FormatErrors;
    for a hostile archive, and where nothing is left) or ArchiveTooLarge (a TreeError), and stores nothing then. A dry
    run does the same and keeps nothing of it.
    """
    with Archive(archive, limits) as opened:
        source = _Source(opened.names, opened.read, refused=opened.refused, warnings=opened.warnings)
        return _imported(
            access, source, on_conflict=on_conflict, dry_run=dry_run, message=message, progress=progress
        )


def import_notebooks(
    access: Access,
    archive: BinaryIO,
    *,
    on_conflict: OnConflict = OnConflict.KEEP,
    dry_run: bool = False,
    message: str = "",
    limits: Limits = Limits(),  # noqa: B008  frozen
    progress: Progress = lambda path: None,
) -> ImportReport:
    """Import the notebooks of pydantic-deep from a zip archive: to `/agents/<agent>/`, byte for byte.

    Raises as `import_zip` does; other files of the archive are left out and reported.
    """
    with Archive(archive, limits) as opened:
        found = notebooks_in(opened.names)
        source = _Source(
            list(found.taken),
            lambda name: opened.read(found.taken[name]),
            refused=[*opened.refused, *found.refused],
            skipped=found.skipped,
            warnings=opened.warnings,
        )
        return _imported(
            access, source, on_conflict=on_conflict, dry_run=dry_run, message=message, progress=progress
        )


def import_directory(
    access: Access,
    folder: Path,
    *,
    on_conflict: OnConflict = OnConflict.KEEP,
    dry_run: bool = False,
    message: str = "",
    progress: Progress = lambda path: None,
) -> ImportReport:
    """Import the files below a directory; raises ImportRefused for links, and where no name is left to take."""
    # Links are not followed, those to folders are names of their own.
    names = [
        (Path(place) / name).relative_to(folder).as_posix()
        for place, folders, files in os.walk(folder)
        for name in files + [name for name in folders if (Path(place) / name).is_symlink()]
    ]
    if links := [
        (name, "is a link or a device, not a file")
        for name in names
        if not stat.S_ISREG((folder / name).lstat().st_mode)
    ]:
        raise ImportRefused(links)
    source = _Source(
        names,
        lambda name: (folder / name).read_bytes(),
        is_memory_folder=f"{folder.resolve().name}/" == MEMORY_FOLDER,
    )
    return _imported(
        access, source, on_conflict=on_conflict, dry_run=dry_run, message=message, progress=progress
    )


def _imported(
    access: Access,
    source: _Source,
    *,
    on_conflict: OnConflict,
    dry_run: bool,
    message: str,
    progress: Progress,
) -> ImportReport:
    sorted_out = _sorted_out(access, source)
    refused = [*source.refused, *sorted_out.refused]
    if refused and not sorted_out.paths:
        raise ImportRefused(refused)
    contents = Contents()

    def arrivals() -> Iterator[Arrival]:
        for path, name in sorted_out.paths.items():
            data = source.read(name)
            blocks = cut_file(path, data)
            contents.add(path, blocks)
            yield sorted_out.arrival(path, name, data)._replace(blocks=blocks)
            progress(path)

    done = services.import_files(
        access, arrivals(), on_conflict=on_conflict, dry_run=dry_run, message=message
    )
    return report_of(
        done,
        dry_run=dry_run,
        contents=contents,
        refused=refused,
        skipped={**sorted_out.skipped, **source.skipped},
        warnings=chain(
            source.warnings, sorted_out.warnings, contents.warnings(), _dangling(access, contents)
        ),
    )


@dataclass(slots=True)
class _SortedOut:
    """Names by the path that they get, in the order of paths, and those that are left out, each with the reason."""

    paths: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    refused: list[tuple[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    manifest: Brought | None = None
    is_own: bool = False

    def arrival(self, path: str, name: str, data: bytes) -> Arrival:
        """A file with what the manifest says of it."""
        if self.manifest is None:
            return Arrival(path, data)
        base = self.manifest.sha256.get(name, "")
        revision = self.manifest.revision if self.is_own else None
        return Arrival(path, data, self.manifest.expiries_of(name), base, revision)


def _sorted_out(access: Access, source: _Source) -> _SortedOut:
    found = _SortedOut()
    if MANIFEST_NAME in source.names:
        found.manifest = Brought.read(source.read(MANIFEST_NAME))
    original: dict[str, str] = {}
    if found.manifest is not None:
        found.is_own = found.manifest.tree_id == str(access.tree.pk)
        original = {name: path for name, path in found.manifest.renamed.items() if stands_for(name, path)}
        if found.manifest.lost:
            found.warnings.append(
                f"{found.manifest.lost} blocks that are neither entries nor rows of an index disappeared by themselves "
                "in the tree that this was exported from, and stay here"
            )
    found.skipped = {
        name: "left by the system that made it, no memory" for name in source.names if is_litter(name)
    }
    left_out = {*found.skipped, *([] if found.manifest is None else [MANIFEST_NAME])}
    names = [name for name in source.names if name not in left_out]
    in_memory = source.is_memory_folder or holds_memory_folder_content(names)
    prefix = MEMORY_FOLDER if in_memory and found.manifest is None else ""
    for name in names:
        try:
            path = canonical_path(original[name]) if name in original else archived_path(f"/{prefix}{name}")
        except FormatError as error:
            found.refused.append((name, f"has a name that can't be kept: {error}"))
            continue
        if path in found.paths:
            found.refused.append((name, f"is the same file as {found.paths[path]!r}, which counts"))
        found.paths.setdefault(path, name)
    if clashing := sorted(
        {folder for path in found.paths for folder in ancestors_of(path)} & found.paths.keys()
    ):
        raise ImportRefused(
            [(found.paths[folder], "is a file, and a folder of other files too") for folder in clashing]
        )
    found.paths = dict(sorted(found.paths.items()))
    return found


def _dangling(access: Access, contents: Contents) -> Iterator[str]:
    """References to entries that are nowhere; only so many are looked up."""
    for entry_id, path in islice(contents.dangling(), _MOST_LOOKED_UP):
        try:
            reads.get_entry(access, entry_id)
        except EntryNotFound:
            yield f"an entry of {path} refers to {entry_id}, which is nowhere in the tree"
    if more := sum(1 for _ in islice(contents.dangling(), _MOST_LOOKED_UP, None)):
        yield f"{more} more references to entries that the import does not bring were not looked up"
