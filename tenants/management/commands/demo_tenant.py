from secrets import token_urlsafe

from django.core.management.base import BaseCommand
from django.db import transaction

from tenants.models import Role, Tenant, User
from tenants.scopes import Scope
from tenants.services import create_key, create_tenant, set_member

SLUG = "demo"
ADMIN = "admin"


class Command(BaseCommand):
    help = (
        "Make the tenant 'demo' with a key, and the admin user 'admin', and print key and password once. "
        "Run again, it makes only what is missing and changes nothing else."
    )

    def handle(self, **options: object) -> None:
        with transaction.atomic():
            tenant = Tenant.objects.filter(slug=SLUG).first()
            lines = _existing(tenant) if tenant else _new_tenant()
            lines += _admin_user()
        self.stdout.write("\n".join(lines))


def _new_tenant() -> list[str]:
    tenant = create_tenant(slug=SLUG, name="Demo")
    _, text = create_key(tenant=tenant, name="demo", scopes=[Scope.READ, Scope.WRITE, Scope.EXPORT])
    return [f"API key of tenant '{SLUG}' (shown this once): {text}"]


def _existing(tenant: Tenant) -> list[str]:
    command = f"manage.py key_create {tenant.slug} --name NAME --scope read --scope write --scope export"
    return [f"Tenant '{tenant.slug}' is there; its key was shown when it was made. A new one: {command}"]


def _admin_user() -> list[str]:
    if User.objects.filter(username=ADMIN).exists():
        return [f"Admin user '{ADMIN}' is there. A new password: manage.py changepassword {ADMIN}"]
    password = token_urlsafe(12)
    user = User.objects.create_superuser(ADMIN, password=password)
    set_member(tenant=Tenant.objects.get(slug=SLUG), user=user, role=Role.OWNER)
    return [f"Admin login (shown this once): user '{ADMIN}', password '{password}'"]
