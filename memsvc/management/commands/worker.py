from argparse import ArgumentParser

from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError

from memsvc import jobs
from memsvc.recall.embedding import EmbeddingError


class Command(BaseCommand):
    help = (
        "Do the work of the background: make the vectors that search by meaning needs. Runs until SIGTERM or Ctrl-C, "
        "and then leaves nothing half done. Any number of workers may run at the same time."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="do all that is due now, and end")

    def handle(self, *, once: bool, **options: object) -> None:
        # As the server does before it serves; other checks have run by now.
        self.check(tags=[Tags.database], databases=["default"])
        try:
            if once:
                jobs.work_off()
            elif not jobs.work():
                raise CommandError("The worker ended by itself: the log says why.")
        except EmbeddingError as error:
            raise CommandError(str(error)) from error
