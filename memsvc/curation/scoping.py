"""What all pages of the admin share: they show only the tenants of the person who looks, and change nothing.

A page that offers a change says so itself, and makes it through a service.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse

from memsvc.curation.permissions import tenants_seen_by
from tenants.actors import Actor
from tenants.addresses import client_address
from tenants.models import Tenant, User

# Django's admin takes type arguments in its stubs only.
if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


def user_of(request: HttpRequest) -> User:
    return cast(User, request.user)


def actor_of(request: HttpRequest) -> Actor:
    """Who changes something here, and from where."""
    return replace(user_of(request).actor, address=client_address(request) or "")


class TenantFilter(admin.SimpleListFilter):
    """Offers only the tenants that the person may see."""

    title = "tenant"
    parameter_name = "tenant"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(tenant.slug, str(tenant)) for tenant in tenants_seen_by(user_of(request)).order_by("slug")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        admin_of_model = cast(ReadOnlyAdmin, admin.site.get_model_admin(queryset.model))
        field = admin_of_model.tenant_field
        slug_field = "slug" if field == "pk" else f"{field}__slug"
        return queryset if self.value() is None else queryset.filter(**{slug_field: self.value()})


class MissingIsNotFound(ModelAdmin):
    """A row that isn't there, or may not be seen, is 404, whichever page of it is asked for."""

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        found = super().get_object(request, object_id, from_field)
        if found is None:
            raise Http404(f"There is no {self.opts.verbose_name} {object_id}.")
        return found

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *args: Any, **options: Any
    ) -> HttpResponse | None:
        for selected in request.POST.getlist(ACTION_CHECKBOX_NAME):
            try:
                self.opts.pk.to_python(selected)
            except ValidationError as error:
                raise Http404(f"There is no {self.opts.verbose_name} {selected}.") from error
        return super().response_action(request, queryset, *args, **options)


class ReadOnlyAdmin(MissingIsNotFound):
    """Rows of the tenants that a person may see, to be looked at."""

    # Where a row says whose it is.
    tenant_field: ClassVar[str] = "tenant"

    list_filter: ClassVar[Any] = (TenantFilter,)
    show_full_result_count = False
    list_per_page = 50
    view_on_site = False
    actions: Any = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        seen = tenants_seen_by(user_of(request))
        return super().get_queryset(request).filter(**{f"{self.tenant_field}__in": seen})

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        seen = tenants_seen_by(user_of(request))
        if obj is not None:
            seen = seen.filter(pk=obj.pk if isinstance(obj, Tenant) else obj.tenant_id)
        return seen.exists()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        # The stock rule lets any column of the model be asked for in the URL, a key's digest letter by letter too.
        return any(lookup == list_filter.parameter_name for list_filter in self.list_filter)
