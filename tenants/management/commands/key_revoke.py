from argparse import ArgumentParser
from contextlib import suppress
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from memsvc.database.tenancy import tenant_transaction
from tenants.authentication import key_with_prefix
from tenants.management.arguments import add_reason, operator
from tenants.models import ApiKey
from tenants.services import all_tenants, revoke_key


class Command(BaseCommand):
    help = "Revoke an API key: from the next request on it opens nothing, for good."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "key",
            metavar="PREFIX_OR_ID",
            help="the 8 characters after 'msk_', or the key's id; a whole key is taken too",
        )
        add_reason(parser)

    def handle(self, *, key: str, reason: str, **options: object) -> None:
        prefix = key.removeprefix("msk_").partition("_")[0]
        found = key_with_prefix(prefix)
        if found is None:
            with suppress(ValueError):
                found = _key_with_id(UUID(key))
        if found is None:
            # The argument may be a whole key by mistake: never repeat more than its public part.
            raise CommandError(
                f"There is no key '{prefix[:36]}'. The admin lists all keys with their prefixes."
            )
        revoke_key(key=found, actor=operator(reason))
        self.stdout.write(f"Revoked key '{found.name}' ({found.prefix}) of tenant '{found.tenant.slug}'.")


def _key_with_id(key_id: UUID) -> ApiKey | None:
    for tenant in all_tenants():
        with tenant_transaction(tenant.pk):
            found = ApiKey.objects.filter(tenant=tenant, pk=key_id).select_related("tenant").first()
        if found:
            return found
    return None
