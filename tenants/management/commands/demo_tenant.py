from secrets import token_urlsafe

from django.core.management.base import BaseCommand
from django.db import transaction

from tenants.models import Role, User
from tenants.scopes import Scope
from tenants.services import all_tenants, create_key, create_tenant, set_member

SLUG = "demo"
ADMIN = "admin"


class Command(BaseCommand):
    help = (
        "Make the tenant 'demo' with a key, and the admin user 'admin', and print key and password once. "
        "Run again, it makes only what is missing and changes nothing else."
    )

    def handle(self, **options: object) -> None:
        with transaction.atomic():
            tenant = next((each for each in all_tenants() if each.slug == SLUG), None)
            if tenant is None:
                tenant = create_tenant(slug=SLUG, name="Demo")
                _, text = create_key(
                    tenant=tenant, name="demo", scopes=[Scope.READ, Scope.WRITE, Scope.EXPORT]
                )
                of_tenant = f"API key of tenant '{SLUG}' (shown this once): {text}"
            else:
                command = f"manage.py key_create {SLUG} --name NAME --scope read --scope write --scope export"
                of_tenant = (
                    f"Tenant '{SLUG}' is there; its key was shown when it was made. A new one: {command}"
                )
            if User.objects.filter(username=ADMIN).exists():
                of_user = f"Admin user '{ADMIN}' is there. A new password: manage.py changepassword {ADMIN}"
            else:
                password = token_urlsafe(12)
                user = User.objects.create_superuser(ADMIN, password=password)
                set_member(tenant=tenant, user=user, role=Role.OWNER)
                of_user = f"Admin login (shown this once): user '{ADMIN}', password '{password}'"
        self.stdout.write(f"{of_tenant}\n{of_user}")
