"""Tenants, their members and their keys."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from memsvc.curation.forms import HistoryForm, KeyForm, MemberForm, TenantForm
from memsvc.curation.permissions import tenants_owned_by
from memsvc.curation.scoping import MissingIsNotFound, ReadOnlyAdmin, TenantFilter, actor_of, user_of
from memsvc.tree.errors import TreeNotFound
from tenants.models import ApiKey, AuditEvent, Membership, Tenant, User
from tenants.services import TenantError, remove_member, resume_tenant, revoke_key, suspend_tenant

admin.site.unregister(Group)


class MadeByServiceAdmin(ReadOnlyAdmin):
    """Rows that are made here, by a form of our own: the service and not the form writes them."""

    def form_for(self, request: HttpRequest) -> Any:
        """The form, filled in when something was sent."""
        raise NotImplementedError

    def make(self, request: HttpRequest, form: Any) -> HttpResponse:
        """Make what the valid form says, and answer. May raise TenantError and TreeNotFound."""
        raise NotImplementedError

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form: Form = self.form_for(request)
        if form.is_bound and form.is_valid():
            try:
                return self.make(request, form)
            except (TenantError, TreeNotFound) as error:
                form.add_error(None, str(error))
        return self.page(request, "curation/add.html", f"Add {self.opts.verbose_name}", form=form)

    def page(self, request: HttpRequest, template: str, title: str, **context: Any) -> HttpResponse:
        common = {**self.admin_site.each_context(request), "opts": self.opts, "title": title}
        return TemplateResponse(request, template, common | context)

    def made(self, request: HttpRequest, obj: Model) -> HttpResponse:
        self.log_addition(request, obj, [{"added": {}}])
        self.message_user(request, f"Made {self.opts.verbose_name} “{obj}”.", messages.SUCCESS)
        return HttpResponseRedirect(reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"))


class SuperuserAdds:
    """Only a superuser adds and manages; whoever may see, sees."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return user_of(request).is_superuser

    def has_manage_permission(self, request: HttpRequest) -> bool:
        return user_of(request).is_superuser


@admin.register(Tenant)
class TenantAdmin(SuperuserAdds, MadeByServiceAdmin):
    tenant_field = "pk"
    list_display = ("slug", "name", "history_days", "created_at", "suspended_at")
    fields = ("id", "slug", "name", "history_days", "created_at", "suspended_at")
    readonly_fields = ("id", "created_at")
    list_filter = ()
    search_fields = ("slug", "name")
    ordering = ("slug",)
    actions = ("suspend", "resume", "keep_history")

    def form_for(self, request: HttpRequest) -> TenantForm:
        return TenantForm(request.POST or None)

    def make(self, request: HttpRequest, form: TenantForm) -> HttpResponse:
        return self.made(request, form.create(actor_of(request)))

    @admin.action(description="Suspend: shut out all keys of the selected tenants", permissions=["manage"])
    def suspend(self, request: HttpRequest, queryset: QuerySet[Tenant]) -> None:
        for tenant in queryset:
            suspend_tenant(tenant=tenant, actor=actor_of(request))
            self.log_change(request, tenant, "Suspended.")

    @admin.action(description="Resume: let the keys of the selected tenants in again", permissions=["manage"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Tenant]) -> None:
        for tenant in queryset:
            resume_tenant(tenant=tenant, actor=actor_of(request))
            self.log_change(request, tenant, "Resumed.")

    @admin.action(
        description="Say for how long history of the selected tenants is kept", permissions=["manage"]
    )
    def keep_history(self, request: HttpRequest, queryset: QuerySet[Tenant]) -> HttpResponse | None:
        """Ask for the days on a page of its own, whose answer comes back here."""
        form = HistoryForm(request.POST if "confirmed" in request.POST else None)
        if not form.is_valid():
            return self.page(
                request,
                "curation/action.html",
                "How long history is kept",
                form=form,
                action="keep_history",
                selected=queryset,
            )
        for tenant in queryset:
            form.apply(tenant, actor_of(request))
            kept = "all" if tenant.history_days is None else f"{tenant.history_days} days"
            self.log_change(request, tenant, f"Keeps {kept} of its history.")
        return None


@admin.register(Membership)
class MembershipAdmin(SuperuserAdds, MadeByServiceAdmin):
    list_display = ("user", "tenant", "role")
    fields = ("tenant", "user", "role")
    list_filter = (TenantFilter,)
    list_select_related = ("tenant", "user")
    ordering = ("tenant__slug", "user__username")
    actions = ("remove",)

    def form_for(self, request: HttpRequest) -> MemberForm:
        return MemberForm(request.POST or None)

    def make(self, request: HttpRequest, form: MemberForm) -> HttpResponse:
        return self.made(request, form.create(actor_of(request)))

    @admin.action(description="Remove the selected members from their tenants", permissions=["manage"])
    def remove(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        for membership in queryset:
            self.log_change(request, membership, "Removed.")
            remove_member(membership=membership, actor=actor_of(request))


@admin.register(ApiKey)
class ApiKeyAdmin(MadeByServiceAdmin):
    """Keys, without any trace of their secret part. Owners of a tenant make and revoke its keys."""

    list_display = (
        "name",
        "prefix",
        "tenant",
        "scopes",
        "tree",
        "path_prefix",
        "expires_at",
        "revoked_at",
        "last_used_at",
    )
    fields = (
        *("tenant", "name", "prefix", "scopes", "tree", "path_prefix", "created_at", "created_by"),
        *("expires_at", "revoked_at", "last_used_at", "last_used_ip"),
    )
    readonly_fields = ("prefix", "created_at")
    list_select_related = ("tenant",)
    search_fields = ("name", "prefix")
    ordering = ("-pk",)
    actions = ("revoke",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return tenants_owned_by(user_of(request)).exists()

    def has_manage_permission(self, request: HttpRequest) -> bool:
        return self.has_add_permission(request)

    def form_for(self, request: HttpRequest) -> KeyForm:
        return KeyForm(request.POST or None, tenants=tenants_owned_by(user_of(request)).order_by("slug"))

    def make(self, request: HttpRequest, form: KeyForm) -> HttpResponse:
        key, text = form.create(user_of(request), actor_of(request))
        self.log_addition(request, key, [{"added": {}}])
        # On this very page and nowhere else: a message would put the key into a cookie or a session.
        return self.page(request, "curation/key.html", "The new key", key=key, text=text)

    @admin.action(description="Revoke the selected keys, for good", permissions=["manage"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        for key in queryset.filter(tenant__in=tenants_owned_by(user_of(request))):
            revoke_key(key=key, actor=actor_of(request))
            self.log_change(request, key, "Revoked.")


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """What was done and what was refused, as it stands in the tenant's audit."""

    list_display = (
        "at",
        "tenant",
        "action",
        "outcome",
        "times",
        "actor_kind",
        "actor_id",
        "address",
        "revision",
    )
    list_filter = (TenantFilter,)
    list_select_related = ("tenant",)
    search_fields = ("action", "actor_id", "object_id", "address")
    search_help_text = "A part of the action, of who did it, of what it was about, or of the address."
    ordering = ("-pk",)


class SuperuserOnly(MissingIsNotFound):
    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        return rows if user_of(request).is_superuser else rows.none()

    def has_module_permission(self, request: HttpRequest) -> bool:
        return user_of(request).is_superuser

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return user_of(request).is_superuser

    def has_add_permission(self, request: HttpRequest) -> bool:
        return user_of(request).is_superuser

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return user_of(request).is_superuser

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return user_of(request).is_superuser


@admin.register(User)
class PeopleAdmin(SuperuserOnly, UserAdmin):  # type: ignore[type-arg]  # takes arguments in the stubs only
    """People who log in here. What they may see comes from their memberships, so there are no groups to choose."""

    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Who it is", {"fields": ("first_name", "last_name", "email")}),
        ("What they may", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("When", {"fields": ("last_login", "date_joined")}),
    )
    list_filter = ("is_staff", "is_superuser", "is_active")
    filter_horizontal = ()
