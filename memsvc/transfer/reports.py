"""The report of an import, and what its files hold."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from memsvc.contract.imports import ImportedEntry, ImportedFile, ImportReport, OpaqueBlock, Outcome
from memsvc.format.blocks import Block, BlockKind
from memsvc.format.paths import is_memory_file
from memsvc.format.problems import Problem, keys_in, problems_in
from memsvc.transfer.names import printable
from memsvc.tree.results import ImportResult

MAX_DIFFERENCES: Final = 1000
MAX_WARNINGS: Final = 200

# Told what is done, as it is: the path of a file, or a revision.
type Progress = Callable[[str], None]


def report_of(
    done: ImportResult,
    *,
    dry_run: bool,
    contents: "Contents",
    refused: Iterable[tuple[str, str]],
    skipped: Mapping[str, str] = MappingProxyType({}),
    warnings: Iterable[str],
    entries: Iterable[ImportedEntry] = (),
) -> ImportReport:
    """The report of what was done, or rehearsed.

    What is `refused` or `skipped`, by name with the reason, never reached the tree, nor did `entries`. Of the warnings
    it has the first, and how many more there are.
    """
    files = [
        ImportedFile(each.path, each.outcome, each.reason, *contents.holdings.get(each.path, (0, ())))
        for each in done.files
    ]
    files += [ImportedFile(printable(name), Outcome.SKIPPED, reason) for name, reason in skipped.items()]
    files += [ImportedFile(printable(name), Outcome.REFUSED, reason) for name, reason in refused]
    every = list(warnings)
    more = len(every) - MAX_WARNINGS
    return ImportReport(
        done.revision,
        dry_run,
        files,
        [*every[:MAX_WARNINGS], f"and {more} more warnings"] if more > 0 else every,
        [*done.entries, *entries],
        done.differences[:MAX_DIFFERENCES],
        len(done.differences[MAX_DIFFERENCES:]),
    )


@dataclass(slots=True)
class Contents:
    """What the files of an import hold: each how many entries and which blocks that only look like one, and what
    concerns more than one of them.
    """

    holdings: dict[str, tuple[int, tuple[OpaqueBlock, ...]]] = field(default_factory=dict)
    path_of: dict[str, str] = field(default_factory=dict)
    duplicates: list[tuple[str, str]] = field(default_factory=list)
    references: list[tuple[str, str]] = field(default_factory=list)
    problems: list[tuple[str, Problem]] = field(default_factory=list)

    def add(self, path: str, blocks: Sequence[Block]) -> None:
        self.problems += [(path, problem) for problem in keys_in(blocks)]
        if not is_memory_file(path):
            return
        entries, line = 0, 1
        opaque: list[OpaqueBlock] = []
        self.problems += [(path, problem) for problem in problems_in(blocks)]
        for block in blocks:
            if block.kind is BlockKind.OPAQUE:
                blank_lines = block.raw[: len(block.raw) - len(block.raw.lstrip())].count(b"\n")
                opaque.append(OpaqueBlock(line + blank_lines, block.reason))
            if (entry := block.entry) is not None:
                entries += 1
                if entry.entry_id in self.path_of:
                    self.duplicates.append((entry.entry_id, path))
                else:
                    self.path_of[entry.entry_id] = path
                self.references += [(id_, path) for id_ in (entry.supersedes, entry.superseded_by) if id_]
            line += block.raw.count(b"\n")
        self.holdings[path] = entries, tuple(opaque)

    def warnings(self) -> Iterator[str]:
        """Entries that can't be found, with their lines, and entries that exist twice."""
        for path, problem in self.problems:
            yield f"{path}, line {problem.line}: {problem.reason}"
        for entry_id, path in self.duplicates:
            yield f"entry {entry_id} of {path} is in {self.path_of[entry_id]} too; the first by path is the one found"

    def dangling(self) -> Iterator[tuple[str, str]]:
        """References, as (id that is referred to, path), to entries that the import doesn't bring."""
        return ((entry_id, path) for entry_id, path in self.references if entry_id not in self.path_of)
