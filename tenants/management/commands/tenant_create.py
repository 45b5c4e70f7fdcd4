from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from tenants.management.arguments import add_reason, operator
from tenants.services import TenantError, create_tenant


class Command(BaseCommand):
    help = "Make a tenant: a customer with trees, keys and members of its own. Next: key_create."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="its short name: lower-case letters, digits and inner hyphens")
        parser.add_argument("--name", default="", help="its full name, for people (default: the slug)")
        add_reason(parser)

    def handle(self, *, slug: str, name: str, reason: str, **options: object) -> None:
        try:
            tenant = create_tenant(slug=slug, name=name, actor=operator(reason))
        except TenantError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Made tenant '{tenant.slug}' ({tenant.pk}).")
        self.stdout.write(
            f"Make a key for it with: manage.py key_create {tenant.slug} --name NAME --scope read --scope write"
        )
