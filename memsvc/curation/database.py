"""As whom the admin works in the database: a role of its own, inside the tenants of the person who looks."""

from collections.abc import Callable

from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from memsvc.curation.scoping import user_of
from memsvc.database.rights import ADMIN, connected_as
from tenants.models import User

_SEE_ALL = "SET LOCAL memsvc.operator = 'on'"
_TENANTS_OF = "SELECT coalesce(string_agg(tenant_id::text, ','), '') FROM memsvc_memberships(%s)"


class AdminRoleMiddleware:
    """Each request to the admin is one transaction, which policies show the tenants of the person only.

    What its pages choose to show comes on top of that: a page that forgets to choose still shows nothing of others.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(reverse("admin:index")):
            return self.get_response(request)
        with connected_as(ADMIN), transaction.atomic():
            _see_tenants_of(user_of(request))
            response = self.get_response(request)
            # What a view raised is an answer by now.
            if response.status_code >= 500 or connection.needs_rollback:
                transaction.set_rollback(True)
        return response


def _see_tenants_of(user: User) -> None:
    if not (user.is_active and user.is_staff):
        return
    # As `memsvc.database.tenancy` enters a tenant, and why so.
    with connection.cursor() as cursor:
        if user.is_superuser:
            cursor.execute(_SEE_ALL)
        else:
            cursor.execute(_TENANTS_OF, [user.pk])
            (tenants,) = cursor.fetchone()
            cursor.execute(f"SET LOCAL memsvc.tenants = '{tenants}'")
