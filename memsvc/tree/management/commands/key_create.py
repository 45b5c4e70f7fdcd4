from argparse import ArgumentParser
from datetime import timedelta

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from memsvc.tree.errors import TreeNotFound
from memsvc.tree.trees import tree_for_key
from tenants.management.arguments import add_reason, operator, tenant_named
from tenants.scopes import Scope
from tenants.services import TenantError, create_key


class Command(BaseCommand):
    help = (
        "Make an API key and print it. This is the only time that it can be seen: only a hash of it is kept. "
        "The key goes to stdout, everything else to stderr."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", help="the slug of the tenant it belongs to")
        parser.add_argument(
            "--name", required=True, help="who will use it; shown in lists and in the history"
        )
        parser.add_argument(
            "--scope",
            action="append",
            required=True,
            choices=[scope.value for scope in Scope],
            dest="scopes",
            help="what it may do; repeat for several",
        )
        parser.add_argument(
            "--tree",
            default="",
            help="the one tree that it opens, which has to be there (default: every tree)",
        )
        parser.add_argument("--path-prefix", default="/", help="the folder that it opens (default: /, all)")
        parser.add_argument("--expires-in-days", type=int, help="when it ends by itself (default: never)")
        add_reason(parser)

    def handle(
        self,
        *,
        tenant: str,
        name: str,
        scopes: list[str],
        tree: str,
        path_prefix: str,
        expires_in_days: int | None,
        reason: str,
        **options: object,
    ) -> None:
        try:
            found = tenant_named(tenant)
            key, text = create_key(
                tenant=found,
                name=name,
                scopes=[Scope(scope) for scope in scopes],
                tree=tree_for_key(found, tree),
                path_prefix=path_prefix,
                expires_at=None
                if expires_in_days is None
                else timezone.now() + timedelta(days=expires_in_days),
                actor=operator(reason),
            )
        except (TenantError, TreeNotFound) as error:
            raise CommandError(str(error)) from error
        except OverflowError:
            raise CommandError(
                "--expires-in-days is too large; leave it out for a key without end."
            ) from None
        self.stderr.write(f"Made key '{key.name}' of tenant '{tenant}'. It is shown this once; keep it safe:")
        self.stdout.write(text)
        self.stderr.write(f"Revoke it with: manage.py key_revoke {key.prefix}")
