from django.core.management.base import BaseCommand, CommandError
from django.db import Error, connections

from memsvc.database import rights


class Command(BaseCommand):
    help = (
        "Make the database roles of DATABASE_URL and DATABASE_ADMIN_URL, with the passwords that stand there, and give "
        "them what they may do. Connects by DATABASE_OWNER_URL, whose role needs CREATEROLE where one is missing, and "
        "no more. Run it before the first migration; a second run changes nothing but passwords."
    )

    def handle(self, **options: object) -> None:
        if rights.OWNER not in connections:
            raise CommandError(
                "DATABASE_OWNER_URL is not set: it names the role that owns the tables and migrates."
            )
        try:
            for line in rights.make_roles():
                self.stdout.write(line)
            rights.grant_rights()
        except Error as error:
            raise CommandError(f"The database refused: {error}".strip()) from error
