"""What several commands take and print in the same way."""

from django.core.management.base import CommandError

from tenants.models import Tenant


def tenant_named(slug: str) -> Tenant:
    """The tenant with this slug, or an error that says how to find or make one."""
    tenant = Tenant.objects.filter(slug=slug).first()
    if tenant is None:
        known = ", ".join(Tenant.objects.order_by("slug").values_list("slug", flat=True)[:20])
        hint = f"Known: {known}." if known else "None exists yet."
        raise CommandError(
            f"There is no tenant '{slug}'. {hint} Make it with: manage.py tenant_create {slug}"
        )
    return tenant
