import json
from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from memsvc.contract.imports import ImportReport, Outcome
from memsvc.contract.wire import to_json
from memsvc.format import FormatError
from memsvc.transfer.archives import OPERATOR_LIMITS
from memsvc.transfer.external import WOULD_BE_REFUSED
from memsvc.transfer.formats import SUFFIXES, ImportFormat, import_file
from memsvc.transfer.imports import import_directory
from memsvc.transfer.management.arguments import access_to, add_tenant_and_tree
from memsvc.transfer.refusals import ImportRefused
from memsvc.tree.access import Access
from memsvc.tree.commands import OnConflict
from memsvc.tree.errors import TreeError, TreeExists
from memsvc.tree.trees import create_tree
from tenants.management.arguments import Progress, add_reason, operator, tenant_named


class Command(BaseCommand):
    help = (
        "Bring a zip archive or a directory into a tree, byte for byte, as one revision. "
        "What it holds is either a whole tree (with memory/ at the top) or the content of a memory folder (index.md, "
        "semantic_memory/ …), which goes under /memory/. Files that it doesn't hold stay, and so does what the tree "
        "knows better: see --on-conflict. "
        "JSON Lines, a SQLite file of Mneme and a zip of pydantic-deep's notebooks are taken too: see --format. "
        "The report goes to stdout, progress to stderr."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_tenant_and_tree(parser)
        parser.add_argument("path", type=Path, help="a file, or a directory")
        parser.add_argument(
            "--format",
            choices=[form.value for form in ImportFormat],
            dest="form",
            help="what the file is (default: by its ending, else zip)",
        )
        parser.add_argument("--only", help="the one tree (jsonl) or agent (mneme) of several in the file")
        parser.add_argument(
            "--new-tree", action="store_true", help="make the tree first; it must not exist yet"
        )
        parser.add_argument(
            "--on-conflict",
            choices=[each.value for each in OnConflict],
            default=OnConflict.KEEP.value,
            help="what counts where the tree has, or had, something else: the tree's (keep, the default), the import's "
            "(take), or both beside each other (both)",
        )
        parser.add_argument("--dry-run", action="store_true", help="change nothing, tell what would happen")
        parser.add_argument(
            "--json", action="store_true", dest="as_json", help="print the whole report as JSON"
        )
        add_reason(parser)

    def handle(
        self,
        *,
        tenant: str,
        tree: str,
        path: Path,
        new_tree: bool,
        on_conflict: str,
        dry_run: bool,
        as_json: bool,
        form: str | None,
        only: str | None,
        reason: str,
        **options: object,
    ) -> None:
        if not path.exists():
            raise CommandError(f"There is nothing at {path}.")
        if new_tree:
            try:
                create_tree(tenant_named(tenant), tree, actor=operator(reason))
            except (TreeExists, FormatError) as error:
                raise CommandError(str(error)) from error
        try:
            report = self._import(
                access_to(tenant, tree, reason),
                path,
                form,
                OnConflict(on_conflict),
                only=only,
                dry_run=dry_run,
            )
        except ImportRefused as error:
            for name, why in error.refused:
                self.stderr.write(f"refused    {name!r} {why}")
            raise CommandError(str(error)) from error
        except (TreeError, FormatError, OSError) as error:
            raise CommandError(f"Nothing was imported: {error}") from error
        self.stdout.write(
            json.dumps(to_json(report), indent=1, default=str) if as_json else _in_words(report)
        )
        if WOULD_BE_REFUSED in report.warnings:
            raise CommandError("This import would be refused.")

    def _import(
        self,
        access: Access,
        path: Path,
        form: str | None,
        on_conflict: OnConflict,
        *,
        only: str | None,
        dry_run: bool,
    ) -> ImportReport:
        progress = Progress(self.stderr)
        message = f"Imported {path.name}"
        if path.is_dir():
            if form or only:
                raise CommandError(
                    "--format and --only are for files; a directory is a tree or a memory folder."
                )
            return import_directory(
                access, path, on_conflict=on_conflict, dry_run=dry_run, message=message, progress=progress
            )
        return import_file(
            access,
            path,
            ImportFormat(form) if form else SUFFIXES.get(path.suffix.lower(), ImportFormat.ZIP),
            on_conflict=on_conflict,
            dry_run=dry_run,
            message=message,
            only=only,
            limits=OPERATOR_LIMITS,
            progress=progress,
        )


def _in_words(report: ImportReport) -> str:
    lines = []
    for file in report.files:
        if file.outcome is not Outcome.UNCHANGED or file.opaque:
            entries = f"  {file.entries} entries" if file.entries else ""
            reason = f"  {file.reason}" if file.reason else ""
            lines.append(f"{file.outcome:<10} {file.path}{entries}{reason}")
        lines += [f"{'':<10}   line {block.line} is no usable entry: {block.reason}" for block in file.opaque]
    lines += [
        f"{entry.outcome:<10} {entry.entry_id}  {entry.reason}" for entry in report.entries if entry.reason
    ]
    lines += [
        f"{each.done:<10} {each.path}{f'  {each.entry_id}' if each.entry_id else ''}  {each.differs}"
        for each in report.differences
    ]
    if report.more_differences:
        lines.append(f"{'':<10} and {report.more_differences} more differences")
    lines += [f"warning    {warning}" for warning in report.warnings]
    counts = ", ".join(f"{report.count(outcome)} {outcome}" for outcome in Outcome if report.count(outcome))
    stored = sum(file.entries for file in report.files)
    alone = ", ".join(
        f"{report.count_entries(outcome)} {outcome}" for outcome in Outcome if report.count_entries(outcome)
    )
    entries = f"{stored} entries in files; by themselves {alone}" if alone else f"{stored} entries"
    did = "Would import" if report.dry_run else "Imported"
    lines.append(f"{did}: {counts or 'no files'}; {entries}; revision {report.revision}.")
    return "\n".join(lines)
