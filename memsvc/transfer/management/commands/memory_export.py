import os
from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from memsvc.transfer.exports import Progress as ProgressCall
from memsvc.transfer.exports import export_directory, export_zip
from memsvc.transfer.management.arguments import Progress, access_to, add_tenant_and_tree
from memsvc.tree.access import Access
from memsvc.tree.errors import TreeError


class Command(BaseCommand):
    help = (
        "Write a tree to a zip archive (a target that ends in .zip) or to a new or empty directory, byte for byte. "
        "The memory is under memory/, other folders are beside it, and memsvc-manifest.json lists what is in it. "
        "The same revision always gives the same zip. Progress goes to stderr."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_tenant_and_tree(parser)
        parser.add_argument("target", type=Path, help="a .zip file that isn't there yet, or a directory")
        parser.add_argument("--revision", type=int, help="the tree as of this revision (default: now)")

    def handle(
        self, *, tenant: str, tree: str, target: Path, revision: int | None, **options: object
    ) -> None:
        access, progress = access_to(tenant, tree), Progress(self.stderr)
        try:
            if target.suffix.lower() == ".zip":
                _write_zip(access, target, revision, progress)
            else:
                export_directory(access, target, revision, progress=progress)
        except (TreeError, OSError) as error:
            raise CommandError(f"Not exported: {error}") from error
        self.stdout.write(str(target))


def _write_zip(access: Access, target: Path, revision: int | None, progress: ProgressCall) -> None:
    if target.exists():
        raise FileExistsError(f"{target} is there already")
    part = target.with_name(f"{target.name}.part")
    try:
        with part.open("wb") as file:
            for piece in export_zip(access, revision, progress=progress):
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        part.rename(target)
    finally:
        part.unlink(missing_ok=True)
