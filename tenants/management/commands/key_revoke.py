from argparse import ArgumentParser
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from tenants.models import ApiKey
from tenants.services import revoke_key


class Command(BaseCommand):
    help = "Revoke an API key: from the next request on it opens nothing, for good."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "key",
            metavar="PREFIX_OR_ID",
            help="the 8 characters after 'msk_', or the key's id; a whole key is taken too",
        )

    def handle(self, *, key: str, **options: object) -> None:
        found = _find(key)
        revoke_key(key=found)
        self.stdout.write(f"Revoked key '{found.name}' ({found.prefix}) of tenant '{found.tenant.slug}'.")


def _find(text: str) -> ApiKey:
    keys = ApiKey.objects.select_related("tenant")
    prefix = text.removeprefix("msk_").partition("_")[0]
    found = keys.filter(prefix=prefix).first()
    if found is None and _is_uuid(text):
        found = keys.filter(pk=text).first()
    if found is None:
        # The argument may be a whole key by mistake: never repeat more than its public part.
        raise CommandError(f"There is no key '{prefix[:36]}'. The admin lists all keys with their prefixes.")
    return found


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
