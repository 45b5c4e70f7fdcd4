from argparse import ArgumentParser
from datetime import datetime

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError
from django.utils import timezone

from memsvc.tree.errors import Busy, TreeNotFound, Unavailable
from memsvc.tree.models import Tree
from memsvc.tree.retention import Pruned, prune, trees_to_prune
from tenants.management.arguments import Progress, tenant_named
from tenants.models import Tenant
from tenants.services import all_tenants


class Command(BaseCommand):
    help = (
        "Remove what only revisions held that are older than their tenants keep (tenant_history says how long that "
        "is), for good. The newest revision older than that stays, as the first that can be read. Others may write "
        "meanwhile; a run that was cut short is finished by the next one. A line for each tree to stdout, progress "
        "to stderr."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "tenant", nargs="?", help="the slug of the one tenant (default: all that don't keep all history)"
        )
        parser.add_argument("--dry-run", action="store_true", help="change nothing, tell what would go")

    def handle(self, *, tenant: str | None, dry_run: bool, **options: object) -> None:
        progress = Progress(self.stderr, unit="steps")
        done: list[Pruned] = []
        found: list[tuple[str, Tree, datetime]] = []
        failed = 0
        for each in _tenants(tenant):
            try:
                found += [(each.slug, *tree) for tree in trees_to_prune(each, timezone.now())]
            except DatabaseError as error:
                # Whose trees nobody could look for, and how many these are.
                self.stderr.write(f"{each.slug}: {type(error.__cause__ or error).__name__}")
                failed += 1
        for slug, tree, before in found:
            label = f"{slug}/{tree.name}"
            try:
                pruned = prune(tree, before, dry_run=dry_run, progress=progress)
            except TreeNotFound:
                continue
            except (Busy, Unavailable) as error:
                self.stderr.write(f"{label}: {error}")
                failed += 1
                continue
            if pruned.blocks or pruned.files:
                self.stdout.write(
                    f"{label}: from revision {pruned.history_from} on, {pruned.blocks} blocks, {pruned.files} files"
                )
            done.append(pruned)
        blocks, files = sum(each.blocks for each in done), sum(each.files for each in done)
        verb = "Would remove" if dry_run else "Removed"
        self.stdout.write(f"{verb} {blocks} blocks and {files} files in {len(done)} trees.")
        if failed:
            raise CommandError(f"{failed} trees could not be finished; run this again.")


def _tenants(slug: str | None) -> list[Tenant]:
    if slug is None:
        return [each for each in all_tenants() if each.history_days is not None]
    tenant = tenant_named(slug)
    if tenant.history_days is None:
        raise CommandError(
            f"Tenant '{slug}' keeps all of its history. Say how much with: manage.py tenant_history {slug} --days N"
        )
    return [tenant]
