#!/usr/bin/env python
"""Django's command line, for this service."""

import os
import sys

from django.core.management import execute_from_command_line

from memsvc import local
from memsvc.embedded import EmbeddedPgError

# Commands that touch no database, so that none is started for them.
WITHOUT_DATABASE = {"help", "version", "--version", "--help", "-h", "check", "collectstatic", "findstatic"}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memsvc.settings")
    try:
        local.prepare(database=needs_database(sys.argv[1:]))
    except EmbeddedPgError as error:
        sys.exit(f"error: {error}")
    execute_from_command_line(sys.argv)


def needs_database(arguments: list[str]) -> bool:
    if not arguments or {"--help", "-h"} & set(arguments):
        return False
    asks_server = any(argument.startswith("--database") for argument in arguments)
    return arguments[0] not in WITHOUT_DATABASE or asks_server


if __name__ == "__main__":
    main()
