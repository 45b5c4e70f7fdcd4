import sys
from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from memsvc.contract.erasures import ErasureKind, ErasureRequest
from memsvc.contract.errors import Refused
from memsvc.format import FormatError
from memsvc.tree.access import Access
from memsvc.tree.erasure import erase
from memsvc.tree.trees import DEFAULT_TREE, tree_of
from tenants.management.arguments import add_reason, operator, tenant_named


class Command(BaseCommand):
    help = (
        "Erase something of a tenant's tree, for good: as it stands, in every revision, and all that was made of it. A "
        "line for each place in which it was found, then the certificate's id. With --dry-run nothing is changed. "
        "Backups, exports and other trees are not touched: see docs/erasure.md."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", help="the slug of the tenant")
        parser.add_argument("kind", choices=[*map(str, ErasureKind)])
        parser.add_argument(
            "value",
            help="the tree's name, a path, or the id of an entry, a run, a source or an actor; - reads it from stdin",
        )
        parser.add_argument("--tree", default=DEFAULT_TREE, help="in which tree (default: %(default)s)")
        parser.add_argument("--dry-run", action="store_true", help="change nothing, list what would go")
        parser.add_argument(
            "--erase-paths",
            action="store_true",
            help="take paths of files that go out of the history too",
        )
        add_reason(parser)

    def handle(
        self,
        *,
        tenant: str,
        kind: str,
        value: str,
        tree: str,
        dry_run: bool,
        erase_paths: bool,
        reason: str,
        **options: object,
    ) -> None:
        named = sys.stdin.readline().rstrip("\n") if value == "-" else value
        wanted = ErasureRequest(
            tree=tree, kind=ErasureKind(kind), value=named, dry_run=dry_run, erase_paths=erase_paths
        )
        try:
            done = erase(Access(tree_of(tenant_named(tenant), tree), operator(reason)), wanted)
        except (Refused, FormatError) as error:
            raise CommandError(str(error)) from error
        for each in done.places:
            self.stdout.write(f"{each.count} {each.place} {each.where}".rstrip())
        if done.certificate is None:
            self.stdout.write("Nothing was changed.")
        else:
            self.stdout.write(f"Erased; certificate {done.certificate.id}.")
