import json
from argparse import ArgumentParser
from datetime import timedelta
from secrets import token_hex

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils import timezone

from memsvc.database.tenancy import tenant_transaction
from tenants.models import ApiKey, Tenant
from tenants.scopes import Scope
from tenants.services import create_key, create_tenant, revoke_key, suspend_tenant


class Command(BaseCommand):
    help = (
        "Make throw-away tenants with keys of every kind, for load and safety tests: a writer (read, write, "
        "export), a reader, a revoked one, an expired one, and one of a suspended tenant. All or nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--count", type=int, default=1, help="how many tenants (default: 1)")
        parser.add_argument(
            "--json", action="store_true", dest="as_json", help="print a JSON list (default: a line for each)"
        )

    def handle(self, *, count: int, as_json: bool, **options: object) -> None:
        if count < 1:
            raise CommandError("--count must be at least 1.")
        run = token_hex(4)
        with transaction.atomic():
            fixtures = [_fixture(f"fixture-{run}-{number}") for number in range(1, count + 1)]
        if as_json:
            self.stdout.write(json.dumps(fixtures, indent=2))
        else:
            for fixture in fixtures:
                self.stdout.write(f"{fixture['slug']} {fixture['key']}")


def _fixture(slug: str) -> dict[str, str]:
    tenant = create_tenant(slug=slug)
    _, writer_text = _writer_key(tenant, "writer")
    _, reader_text = create_key(tenant=tenant, name="reader", scopes=[Scope.READ])
    revoked, revoked_text = _writer_key(tenant, "revoked")
    revoke_key(key=revoked)
    expired, expired_text = _writer_key(tenant, "expired")
    # create_key refuses an expiry in the past.
    with tenant_transaction(tenant.pk):
        ApiKey.objects.filter(pk=expired.pk).update(expires_at=timezone.now() - timedelta(days=1))
    suspended = create_tenant(slug=f"{slug}-suspended")
    _, suspended_text = _writer_key(suspended, "writer")
    suspend_tenant(tenant=suspended)
    return {
        "id": str(tenant.pk),
        "slug": slug,
        "key": writer_text,
        "reader_key": reader_text,
        "revoked_key": revoked_text,
        "expired_key": expired_text,
        "suspended_tenant_key": suspended_text,
    }


def _writer_key(tenant: Tenant, name: str) -> tuple[ApiKey, str]:
    return create_key(tenant=tenant, name=name, scopes=[Scope.READ, Scope.WRITE, Scope.EXPORT])
