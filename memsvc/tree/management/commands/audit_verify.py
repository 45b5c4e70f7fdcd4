from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from memsvc.contract.audit import Head, heads_as_text, heads_in
from memsvc.tree.audit import audit_faults
from tenants.management.arguments import Progress, tenant_named
from tenants.services import all_tenants


class Command(BaseCommand):
    help = (
        "Check that no event of the audit was changed, taken away or moved: a line for each fault to stdout, and 1 as "
        "the exit code when there is any. Progress goes to stderr."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", nargs="?", help="the slug of the one tenant (default: all)")
        parser.add_argument(
            "--heads",
            type=Path,
            metavar="FOLDER",
            help="a folder, best on another machine, that keeps where the chains of each tenant ended: what was there "
            "at the last check must be there still. Without it nobody sees that the end of a chain was taken away "
            "together with what the tree's row says of it",
        )

    def handle(self, *, tenant: str | None, heads: Path | None, **options: object) -> None:
        tenants = [tenant_named(tenant)] if tenant else all_tenants()
        progress = Progress(self.stderr, unit="tenants", total=len(tenants))
        events, chains, faulty = 0, 0, 0
        for each in tenants:
            kept = heads / f"{each.pk}.heads" if heads else None
            try:
                known = heads_in(kept.read_text("utf-8")) if kept and kept.exists() else []
            except (OSError, ValueError) as error:
                raise CommandError(f"{kept} can't be read: {error}") from error
            ends: dict[str, Head] = {}
            faults = [*audit_faults(each, ends, known)]
            for fault in faults:
                self.stdout.write(f"{each.slug}: {fault}")
            if kept and not faults:
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_text(heads_as_text(ends), "utf-8")
            events += sum(head.number for head in ends.values())
            chains += len(ends)
            faulty += bool(faults)
            progress(each.slug)
        if faulty:
            raise CommandError(f"The audit of {faulty} tenants is not what was written.")
        self.stdout.write(f"Whole: {events} events in {chains} chains.")
