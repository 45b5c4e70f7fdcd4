"""Memories from JSON Lines or another system's database, and what became of each of them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import BinaryIO, Final

from memsvc.contract.imports import ImportedEntry, ImportReport, Outcome
from memsvc.format import FormatError, InvalidPath, cut_file
from memsvc.format.paths import ancestors_of
from memsvc.recall.accesses import Accesses, add_accesses
from memsvc.transfer.archives import Limits
from memsvc.transfer.external_memories import ExternalMemory, accesses_in, entry_of
from memsvc.transfer.interchange import document_in, memory_in, parsed_line, require_header
from memsvc.transfer.names import is_hostile, printable
from memsvc.transfer.refusals import ArchiveTooLarge, ImportRefused, InvalidArchive
from memsvc.transfer.reports import MAX_WARNINGS, Contents, Progress, report_of
from memsvc.tree import services
from memsvc.tree.access import Access
from memsvc.tree.arrivals import Arrival, ExternalEntry
from memsvc.tree.commands import OnConflict
from memsvc.tree.visibility import has_expired

# Entries are small: an import takes so many for each file that it takes.
ENTRIES_FOR_A_FILE: Final = 100

WOULD_BE_REFUSED: Final = (
    "as it is, this import would be refused and bring nothing: mend what is refused first"
)


@dataclass(slots=True)
class Gathered:
    """What a source holds: documents, entries to add, and what is to be said of those that are not."""

    documents: int = 0
    entries: list[ExternalEntry] = field(default_factory=list)
    reports: list[ImportedEntry] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    more_warnings: int = 0
    contents: Contents = field(default_factory=Contents)
    accesses: dict[str, Accesses] = field(default_factory=dict)

    def add(self, name: str, memory: ExternalMemory) -> None:
        """Take a memory in; `name` says where it is in the source."""
        if has_expired(memory.expires_at, datetime.now(tz=UTC)):
            self.skip(memory.external_id, "has expired")
            return
        try:
            self.entries.append(entry_of(memory))
        except FormatError as error:
            self.refuse(name, memory.external_id, str(error))
            return
        if accesses := accesses_in(memory):
            self.accesses[memory.external_id] = accesses

    def skip(self, entry_id: str, reason: str) -> None:
        self.reports.append(ImportedEntry(entry_id, "", Outcome.SKIPPED, reason))

    def leave_out(self, name: str, reason: str) -> None:
        """Report what can't be kept for its name alone; the rest comes in."""
        self.left_out.append((name, reason))

    def refuse(self, name: str, entry_id: str, reason: str) -> None:
        self.refused.append((name, reason))
        self.reports.append(ImportedEntry(entry_id or name, "", Outcome.REFUSED, reason))

    def warn(self, warning: str) -> None:
        if len(self.warnings) < MAX_WARNINGS:
            self.warnings.append(warning)
        else:
            self.more_warnings += 1


@dataclass(slots=True)
class _Lines:
    """Where the documents are in the source, by path, and when their entries disappear."""

    gathered: Gathered = field(default_factory=Gathered)
    places: dict[str, int] = field(default_factory=dict)
    expiries: dict[str, dict[tuple[str, int], datetime]] = field(default_factory=dict)
    above: Counter[tuple[str, str]] = field(default_factory=Counter)


def import_jsonl(
    access: Access,
    source: BinaryIO,
    *,
    on_conflict: OnConflict = OnConflict.KEEP,
    dry_run: bool = False,
    message: str = "",
    only: str | None = None,
    limits: Limits = Limits(),  # noqa: B008  frozen
    progress: Progress = lambda path: None,
) -> ImportReport:
    """Import JSON Lines (interchange v1) from a seekable file; `only` names whose lines, where there are several trees.

    Raises ImportRefused with the lines that can't be taken, InvalidArchive (FormatErrors) or ArchiveTooLarge (a
    TreeError), and stores nothing then.
    """
    lines = _gathered(source, only, limits)
    return stored(
        access,
        lines.gathered,
        on_conflict=on_conflict,
        dry_run=dry_run,
        message=message,
        files=_documents(source, lines, progress),
    )


def _gathered(source: BinaryIO, only: str | None, limits: Limits) -> _Lines:
    lines, trees, count = _Lines(), set[str](), 0
    for number, offset, line in _read_lines(source, limits):
        name = f"line {number}"
        try:
            content = parsed_line(line)
            if number == 1:
                require_header(content)
                continue
        except FormatError as error:
            if number == 1:
                raise InvalidArchive(f"This is no memsvc-export: line 1 {error}") from None
            lines.gathered.refuse(name, "", str(error))
            continue
        tree = str(content.get("tree") or "")
        trees.add(tree)
        if only is None or tree == only:
            count += 1
            _take(lines, name, offset, content)
    if only is None and len(trees) > 1:
        raise ImportRefused(
            [("the file", f"holds several trees ({', '.join(sorted(trees))}); name the one to take")]
        )
    if len(lines.places) > limits.members or count > ENTRIES_FOR_A_FILE * limits.members:
        raise ArchiveTooLarge("The file holds more lines than an import takes; import it in parts.")
    folders = {folder for path in lines.places for folder in ancestors_of(path)}
    for folder in sorted(folders & lines.places.keys()):
        lines.gathered.refuse(folder, "", "is a file, and a folder of other files too")
    return lines


def _read_lines(source: BinaryIO, limits: Limits) -> Iterator[tuple[int, int, bytes]]:
    most = 2 * limits.file_bytes
    source.seek(0)
    number, offset = 0, 0
    while line := source.readline(most):
        number += 1
        if len(line) >= most:
            raise ArchiveTooLarge(f"Line {number} is longer than {most:,} bytes.")
        if line.strip() or number == 1:
            yield number, offset, line
        offset += len(line)
    if not number:
        raise InvalidArchive("The file is empty; its first line must be the header of a memsvc-export.")


def _take(lines: _Lines, name: str, offset: int, content: Mapping[str, object]) -> None:
    gathered = lines.gathered
    entry_id = content.get("external_id")
    shown = entry_id if isinstance(entry_id, str) else ""
    try:
        match content.get("type"):
            case "document":
                document = document_in(content)
                if document.path in lines.places:
                    gathered.leave_out(name, f"is a second document at '{document.path}'; the first counts")
                    return
                lines.places[document.path] = offset
                lines.gathered.documents += 1
            case "memory":
                _take_memory(lines, name, memory_in(content))
            case "turn":
                gathered.skip(name, "turns of a conversation are not kept")
            case other:
                gathered.refuse(name, "", f"is of an unknown type: {other!r:.60}")
    except InvalidPath as error:
        path = content.get("path")
        if not isinstance(path, str) or is_hostile(path.removeprefix("/")):
            gathered.refuse(name, shown, str(error))
        elif content.get("type") == "document":
            gathered.leave_out(path, f"has a name that can't be kept: {error}")
        else:
            gathered.reports.append(
                ImportedEntry(shown or name, printable(path), Outcome.REFUSED, str(error))
            )
    except FormatError as error:
        gathered.refuse(name, shown, str(error))


def _take_memory(lines: _Lines, name: str, memory: ExternalMemory) -> None:
    if memory.path is None or memory.path not in lines.places:
        lines.gathered.add(name, memory)
        return
    above = lines.above[memory.path, memory.external_id]
    lines.above[memory.path, memory.external_id] += 1
    if memory.expires_at:
        # The document holds the entry, but not when it disappears.
        lines.expiries.setdefault(memory.path, {})[memory.external_id, above] = memory.expires_at


def _documents(source: BinaryIO, lines: _Lines, progress: Progress) -> Iterator[Arrival]:
    for path, offset in sorted(lines.places.items()):
        source.seek(offset)
        content = document_in(parsed_line(source.readline())).content
        blocks = cut_file(path, content)
        lines.gathered.contents.add(path, blocks)
        yield Arrival(path, content, lines.expiries.get(path, {}), blocks=blocks)
        progress(path)


def stored(
    access: Access,
    gathered: Gathered,
    *,
    on_conflict: OnConflict,
    dry_run: bool,
    message: str,
    files: Iterable[Arrival] = (),
) -> ImportReport:
    """Store what was gathered, or rehearse it, and report. Raises ImportRefused, for bad lines unless rehearsed."""
    if gathered.refused and not dry_run:
        raise ImportRefused(gathered.refused)
    if gathered.left_out and not gathered.documents and not gathered.entries:
        raise ImportRefused(gathered.left_out)
    done = services.import_files(
        access, files, entries=gathered.entries, on_conflict=on_conflict, dry_run=dry_run, message=message
    )
    if not dry_run:
        created = [each.entry_id for each in done.entries if each.outcome == "created"]
        counted = gathered.accesses
        add_accesses(access, {entry_id: counted[entry_id] for entry_id in created if entry_id in counted})
    return report_of(
        done,
        dry_run=dry_run,
        contents=gathered.contents,
        refused=gathered.left_out,
        warnings=chain(
            [WOULD_BE_REFUSED] if gathered.refused else [],
            gathered.contents.warnings(),
            gathered.warnings,
            [f"{more} more warnings like these"] if (more := gathered.more_warnings) else [],
        ),
        entries=gathered.reports,
    )
