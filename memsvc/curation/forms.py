"""Forms of what is made in the admin. Each makes it by a service, whose refusals are shown in the form."""

from typing import Any

from django import forms

from memsvc.tree.trees import tree_for_key
from tenants.actors import Actor
from tenants.models import ApiKey, Membership, Role, Tenant, User
from tenants.scopes import Scope
from tenants.services import MAX_HISTORY_DAYS, create_key, create_tenant, keep_history, set_member


class TenantForm(forms.Form):
    slug = forms.CharField(
        max_length=63, help_text="Lower-case letters, digits and inner hyphens; it stays for good."
    )
    name = forms.CharField(max_length=200, required=False)

    def create(self, actor: Actor) -> Tenant:
        return create_tenant(**self.cleaned_data, actor=actor)


class HistoryForm(forms.Form):
    days = forms.IntegerField(
        min_value=1,
        max_value=MAX_HISTORY_DAYS,
        required=False,
        help_text="Empty keeps all history. What is older is removed for good by the next history_prune.",
    )

    def apply(self, tenant: Tenant, actor: Actor) -> None:
        keep_history(tenant=tenant, days=self.cleaned_data["days"], actor=actor)


class MemberForm(forms.Form):
    tenant = forms.ModelChoiceField(Tenant.objects.order_by("slug"))
    user = forms.ModelChoiceField(User.objects.order_by("username"))
    role = forms.ChoiceField(choices=Role.choices)

    def create(self, actor: Actor) -> Membership:
        data = self.cleaned_data
        return set_member(tenant=data["tenant"], user=data["user"], role=Role(data["role"]), actor=actor)


class KeyForm(forms.Form):
    tenant = forms.ModelChoiceField(Tenant.objects.none())
    name = forms.CharField(
        max_length=100, help_text="Who will use it: shown in the history of everything it writes."
    )
    scopes = forms.MultipleChoiceField(
        choices=[(scope.value, scope.value) for scope in Scope], widget=forms.CheckboxSelectMultiple
    )
    tree = forms.CharField(
        max_length=255,
        required=False,
        help_text="The one tree that it opens, which has to be there; empty for all.",
    )
    path_prefix = forms.CharField(
        max_length=1024, initial="/", help_text="The folder that it opens; / for all."
    )
    expires_at = forms.DateTimeField(
        required=False, help_text="In UTC, such as 2030-01-31 12:00; empty for never."
    )

    def __init__(self, *args: Any, tenants: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choice = self.fields["tenant"]
        assert isinstance(choice, forms.ModelChoiceField)
        choice.queryset = tenants

    def create(self, created_by: User, actor: Actor) -> tuple[ApiKey, str]:
        data = self.cleaned_data | {"scopes": [Scope(scope) for scope in self.cleaned_data["scopes"]]}
        data["tree"] = tree_for_key(data["tenant"], data["tree"])
        return create_key(**data, created_by=created_by, actor=actor)
