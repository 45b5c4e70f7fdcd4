from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.core.management.commands import migrate

from memsvc.database import rights


class Command(migrate.Command):
    """Django's own, as the role that owns the tables; afterwards every table has its policies and grants."""

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with rights.connected_as(rights.OWNER):
                super().handle(*args, **options)
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from error
        rights.grant_rights()
