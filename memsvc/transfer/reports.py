"""The report of an import, and what its files hold."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from memsvc.contract.imports import ImportedEntry, ImportedFile, ImportReport, OpaqueBlock
from memsvc.format.blocks import Block, BlockKind
from memsvc.format.paths import is_memory_file
from memsvc.format.problems import Problem, problems_in
from memsvc.tree.results import ImportResult

MAX_DIFFERENCES: Final = 1000
MAX_WARNINGS: Final = 200


def report_of(
    done: ImportResult,
    *,
    dry_run: bool,
    files: Sequence[ImportedFile],
    warnings: Iterable[str],
    entries: Iterable[ImportedEntry] = (),
) -> ImportReport:
    """The report of what was done, or rehearsed; `entries` are those that never reached the tree."""
    return ImportReport(
        done.revision,
        dry_run,
        files,
        bounded(warnings),
        [*done.entries, *entries],
        done.differences[:MAX_DIFFERENCES],
        len(done.differences[MAX_DIFFERENCES:]),
    )


def bounded(warnings: Iterable[str]) -> list[str]:
    """The first warnings, and how many more there are."""
    every = list(warnings)
    more = len(every) - MAX_WARNINGS
    return [*every[:MAX_WARNINGS], f"and {more} more warnings"] if more > 0 else every


@dataclass(slots=True)
class Contents:
    """What the files of an import hold, as far as it concerns more than one of them."""

    path_of: dict[str, str] = field(default_factory=dict)
    duplicates: list[tuple[str, str]] = field(default_factory=list)
    references: list[tuple[str, str]] = field(default_factory=list)
    problems: list[tuple[str, Problem]] = field(default_factory=list)

    def add(self, path: str, blocks: Sequence[Block]) -> tuple[int, tuple[OpaqueBlock, ...]]:
        """Take in the blocks of a file; answers how many are entries, and which look like one and are none."""
        if not is_memory_file(path):
            return 0, ()
        entries, line = 0, 1
        opaque: list[OpaqueBlock] = []
        self.problems += [(path, problem) for problem in problems_in(blocks)]
        for block in blocks:
            if block.kind is BlockKind.OPAQUE:
                opaque.append(OpaqueBlock(line + _blank_lines_above(block.raw), block.reason))
            if block.entry is not None:
                entries += 1
                self._note(path, block.entry.entry_id, (block.entry.supersedes, block.entry.superseded_by))
            line += block.raw.count(b"\n")
        return entries, tuple(opaque)

    def warnings(self) -> Iterator[str]:
        """Entries that can't be found, with their lines, and entries that exist twice."""
        for path, problem in self.problems:
            yield f"{path}, line {problem.line}: {problem.reason}"
        for entry_id, path in self.duplicates:
            yield f"entry {entry_id} of {path} is in {self.path_of[entry_id]} too; the first by path is the one found"

    def dangling(self) -> Iterator[tuple[str, str]]:
        """References, as (id that is referred to, path), to entries that the import doesn't bring."""
        return ((entry_id, path) for entry_id, path in self.references if entry_id not in self.path_of)

    def _note(self, path: str, entry_id: str, references: tuple[str | None, ...]) -> None:
        if entry_id in self.path_of:
            self.duplicates.append((entry_id, path))
        else:
            self.path_of[entry_id] = path
        self.references += [(reference, path) for reference in references if reference]


def _blank_lines_above(raw: bytes) -> int:
    return raw[: len(raw) - len(raw.lstrip())].count(b"\n")
