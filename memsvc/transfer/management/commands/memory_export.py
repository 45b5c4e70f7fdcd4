import os
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from memsvc.transfer.bundles import export_bundle
from memsvc.transfer.exports import expiring, export_directory, export_jsonl, export_zip, record_export
from memsvc.transfer.management.arguments import access_to, add_tenant_and_tree
from memsvc.tree.errors import TreeError
from tenants.management.arguments import Progress, add_reason


class Command(BaseCommand):
    help = (
        "Write a tree to a zip archive (a target that ends in .zip) or to a new or empty directory, byte for byte: "
        "the memory is under memory/, other folders are beside it, and memsvc-manifest.json lists what is in it. "
        "A target that ends in .jsonl gets the files and entries as JSON Lines, one that ends in .bundle the whole "
        "history for git clone. The same revision always gives the same bytes. Progress goes to stderr."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_tenant_and_tree(parser)
        parser.add_argument(
            "target", type=Path, help="a .zip, .jsonl or .bundle that isn't there yet, or a directory"
        )
        parser.add_argument("--revision", type=int, help="the tree as of this revision (default: now)")
        add_reason(parser)

    def handle(
        self,
        *,
        tenant: str,
        tree: str,
        target: Path,
        revision: int | None,
        reason: str,
        **options: object,
    ) -> None:
        access, progress = access_to(tenant, tree, reason), Progress(self.stderr)
        try:
            record_export(access, revision)
            match target.suffix.lower():
                case ".zip":
                    _write(target, lambda: export_zip(access, revision, progress=progress))
                case ".jsonl":
                    _write(target, lambda: export_jsonl(access, revision, progress=progress))
                case ".bundle":
                    newest = access.tree.revision if revision is None else revision
                    total = newest - max(access.tree.history_from - 1, 0)
                    progress = Progress(self.stderr, unit="revisions", total=total)
                    _write(target, lambda: export_bundle(access, revision, progress=progress))
                case _:
                    export_directory(access, target, revision, progress=progress)
        except (TreeError, OSError) as error:
            raise CommandError(f"Not exported: {error}") from error
        if target.suffix.lower() == ".bundle" and (lost := expiring(access)):
            self.stderr.write(
                f"A bundle doesn't say when {lost} entries and rows disappear; they would stay."
            )
        self.stdout.write(str(target))


def _write(target: Path, export: Callable[[], Iterator[bytes]]) -> None:
    if target.exists():
        raise FileExistsError(f"{target} is there already")
    part = target.with_name(f"{target.name}.part")
    try:
        with part.open("wb") as file:
            for piece in export():
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        part.rename(target)
    finally:
        part.unlink(missing_ok=True)
