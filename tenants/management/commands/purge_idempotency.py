from django.core.management.base import BaseCommand

from tenants.idempotency import purge


class Command(BaseCommand):
    help = "Delete the answers that were stored for repeats of writes and are older than a week."

    def handle(self, **options: object) -> None:
        self.stdout.write(f"Deleted {purge()} stored answers.")
