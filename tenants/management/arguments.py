"""What several commands take and print in the same way."""

import getpass
import sys
from argparse import ArgumentParser

from django.core.management.base import CommandError, OutputWrapper

from tenants.actors import Actor, ActorKind
from tenants.models import Tenant
from tenants.services import all_tenants

_STEPS_A_LINE = 100
_BAR_WIDTH = 30


def tenant_named(slug: str) -> Tenant:
    """The tenant with this slug, or an error that says how to find or make one."""
    tenants = {tenant.slug: tenant for tenant in all_tenants()}
    tenant = tenants.get(slug)
    if tenant is None:
        known = ", ".join([*tenants][:20])
        hint = f"Known: {known}." if known else "None exists yet."
        raise CommandError(
            f"There is no tenant '{slug}'. {hint} Make it with: manage.py tenant_create {slug}"
        )
    return tenant


def add_reason(parser: ArgumentParser) -> None:
    parser.add_argument("--reason", default="", help="why you do it: stands in the tenant's audit, for good")


def operator(reason: str = "") -> Actor:
    """Whoever runs a command on this machine, by the account's name."""
    try:
        account = getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as in some containers
        account = "operator"
    return Actor(ActorKind.OPERATOR, account, account, reason=reason)


class Progress:
    """Counts what is done on stderr, with a bar where it is known how much there is to do."""

    def __init__(self, stderr: OutputWrapper, *, unit: str = "files", total: int | None = None) -> None:
        self._stderr = stderr
        self._unit = unit
        self._total = total
        self._count = 0

    def __call__(self, path: str) -> None:
        self._count += 1
        if sys.stderr.isatty() or self._count % _STEPS_A_LINE == 0:
            self._stderr.write(f"  {self._line()}", ending="\r" if sys.stderr.isatty() else "\n")

    def _line(self) -> str:
        if not self._total:
            return f"{self._count} {self._unit}"
        done = min(_BAR_WIDTH, _BAR_WIDTH * self._count // self._total)
        return f"[{'#' * done}{'.' * (_BAR_WIDTH - done)}] {self._count} of {self._total} {self._unit}"
