from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from memsvc.transfer.consistency import check_tree
from memsvc.transfer.management.arguments import access_to, add_tenant_and_tree


class Command(BaseCommand):
    help = (
        "Look a tree over and change nothing: index rows without a file, index rows that don't say what their files "
        "say, files without a row, blocks that look like an entry and can't be used or found as one, entries that were "
        "stored when other rules held and will be read otherwise, ids that exist twice, references to entries that are "
        "nowhere. One line each; ends with an error when there is any."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_tenant_and_tree(parser)

    def handle(self, *, tenant: str, tree: str, **options: object) -> None:
        findings = check_tree(access_to(tenant, tree))
        for finding in findings:
            self.stdout.write(f"{finding.kind:<19} {finding.path}  {finding.detail}")
        if findings:
            raise CommandError(f"{len(findings)} findings in tree '{tree}' of '{tenant}'.")
        self.stdout.write("Everything agrees.")
