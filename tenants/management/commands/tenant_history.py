from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from tenants.management.arguments import add_reason, operator, tenant_named
from tenants.services import TenantError, keep_history


class Command(BaseCommand):
    help = (
        "Say for how long a tenant's trees can be read as of earlier revisions. What is older is removed by the next "
        "run of history_prune, for good."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", help="the slug of the tenant")
        how_long = parser.add_mutually_exclusive_group(required=True)
        how_long.add_argument("--days", type=int, help="keep so many days of history")
        how_long.add_argument("--all", action="store_true", help="keep all of it, as every new tenant does")
        add_reason(parser)

    def handle(self, *, tenant: str, days: int | None, reason: str, **options: object) -> None:
        found = tenant_named(tenant)
        try:
            keep_history(tenant=found, days=days, actor=operator(reason))
        except TenantError as error:
            raise CommandError(str(error)) from error
        kept = "all of its history" if days is None else f"{days} days of history"
        self.stdout.write(f"Tenant '{found.slug}' keeps {kept}.")
