"""Which tenants a person may see in the admin, and in which they may hand out keys."""

from django.db.models import Q, QuerySet

from tenants.models import Role, Tenant, User


def tenants_seen_by(user: User) -> QuerySet[Tenant]:
    """Every tenant for a superuser, for others those that they are members of."""
    return _all_or(user, Q(memberships__user=user.pk))


def tenants_owned_by(user: User) -> QuerySet[Tenant]:
    return _all_or(user, Q(memberships__user=user.pk, memberships__role=Role.OWNER))


def _all_or(user: User, membership: Q) -> QuerySet[Tenant]:
    # Nobody has logged in yet on the login page, which asks too.
    if not (user.is_active and user.is_staff):
        return Tenant.objects.none()
    return Tenant.objects.all() if user.is_superuser else Tenant.objects.filter(membership)
