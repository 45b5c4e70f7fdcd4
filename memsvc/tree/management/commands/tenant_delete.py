from argparse import ArgumentParser

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from memsvc.database.rights import OWNER, connected_as, require_url
from memsvc.tree.erasure import delete_tenant
from memsvc.tree.errors import Busy, Unavailable
from tenants import audit
from tenants.management.arguments import operator, tenant_named


class Command(BaseCommand):
    help = (
        "Delete a tenant for good, with its trees, keys, members, usage and stored answers. Its keys are shut out "
        "first; what is cut short is finished by the next run. People's accounts stay, and a certificate that it "
        "was deleted. Its audit goes too, which only the owner of the tables may take away (DATABASE_OWNER_URL)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", help="the slug of the tenant")
        parser.add_argument("--confirm", required=True, help="the slug once more")

    def handle(self, *, tenant: str, confirm: str, **options: object) -> None:
        if confirm != tenant:
            raise CommandError("--confirm must be the slug of the tenant, exactly.")
        found = tenant_named(tenant)
        try:
            # Before anything is done.
            require_url(OWNER)
            certificate = delete_tenant(found, operator())
            with connected_as(OWNER):
                events = audit.forget(found)
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from error
        except (Busy, Unavailable) as error:
            raise CommandError(f"{error} Run this again.") from error
        for place, count in certificate.counts.items():
            self.stdout.write(f"{count} {place}")
        self.stdout.write(f"{events} audit_event")
        self.stdout.write(f"Deleted; certificate {certificate.id}.")
