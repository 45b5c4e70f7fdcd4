from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError
from django.db import Error, connections

from memsvc.database import distribution, rights


class Command(BaseCommand):
    help = (
        "Spread the rows of tenants, empty or filled, over the servers of Citus, whose coordinator DATABASE_OWNER_URL "
        "names. Stop the service first; afterwards set MEMSVC_DISTRIBUTED=on. All or nothing, and once: a second run "
        "is refused. What it does, and whether you need it, is told in docs/scaling.md."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--shards",
            type=int,
            default=32,
            help="into how many parts, at most as many servers (default: 32)",
        )
        parser.add_argument("--dry-run", action="store_true", help="change nothing, print the statements")
        parser.add_argument(
            "--estimates",
            action="store_true",
            help="only tell the servers' planners again what keeps plans right, after a shard was moved or split",
        )

    def handle(self, *, shards: int, dry_run: bool, estimates: bool, **options: object) -> None:
        if rights.OWNER not in connections:
            raise CommandError("DATABASE_OWNER_URL is not set: it names the role that owns the tables.")
        if shards < 1:
            raise CommandError("--shards must be at least 1.")
        tables = distribution.distributed_tables()
        try:
            if dry_run:
                for statement in distribution.statements(shards):
                    self.stdout.write(f"{statement};")
                return
            if not estimates:
                distribution.distribute(shards, self.stderr.write)
            elif not distribution.is_distributed(rights.OWNER):
                raise CommandError("This database isn't distributed.")
            distribution.set_estimates()
        except distribution.NotDistributable as error:
            raise CommandError(str(error)) from error
        except Error as error:
            raise CommandError(f"The database refused: {error}".strip()) from error
        if estimates:
            return
        local = ", ".join(f"{table} ({why})" for table, why in distribution.LOCAL.items())
        self.stdout.write(f"Distributed by tenant: {', '.join(tables)}.")
        self.stdout.write(f"On the coordinator stay: {local}; and all that is of no tenant.")
        self.stdout.write("Set MEMSVC_DISTRIBUTED=on, and start the service.")
