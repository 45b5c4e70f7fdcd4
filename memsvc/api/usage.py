from datetime import date
from typing import Any

from django.db.models import Q
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api.answers import answer, day_usage, key_info
from memsvc.api.fields import LimitField, TextField, require_text
from memsvc.api.serializers import Query
from memsvc.api.trees import require_every_tree
from memsvc.api.views import TenantView
from memsvc.contract.accounts import UsagePage
from memsvc.contract.requests import MAX_PAGE
from memsvc.database.tenancy import tenant_transaction
from memsvc.tree.cursors import after_day, cursor_of_day
from memsvc.tree.trees import measure_all
from tenants.keys import unused_keys
from tenants.models import KeyUsage
from tenants.scopes import Scope


class DayField(serializers.DateField):
    """A day in ISO 8601."""

    def to_internal_value(self, value: Any) -> date:
        return super().to_internal_value(require_text(value))


class UsageQuery(Query):
    since = DayField(default=None)
    until = DayField(default=None)
    limit = LimitField(default=100, maximum=MAX_PAGE)
    cursor = TextField(default=None)


class UsageView(TenantView):
    """What the tenant stores now, and how many requests each key made on each day (UTC), the newest days first.

    Requests are counted a minute late; those of a process that was killed in that minute are not.
    """

    scopes = {"GET": Scope.ADMIN}
    queries = {"GET": UsageQuery}

    def get(self, request: Request) -> Response:
        require_every_tree(self.caller, "usage")
        rows, following = self._page()
        stored = measure_all(self.caller.tenant)
        unused = [*map(key_info, unused_keys(self.caller.tenant))]
        return answer(UsagePage([*map(day_usage, rows)], following, stored, unused))

    def _page(self) -> tuple[list[KeyUsage], str | None]:
        params = self.params
        usage = KeyUsage.objects.filter(tenant=self.caller.tenant).select_related("key")
        if params["since"] is not None:
            usage = usage.filter(day__gte=params["since"])
        if params["until"] is not None:
            usage = usage.filter(day__lte=params["until"])
        if params["cursor"] is not None:
            day, key_id = after_day(params["cursor"])
            usage = usage.filter(Q(day__lt=day) | Q(day=day, key_id__lt=key_id))
        limit = params["limit"]
        with tenant_transaction(self.caller.tenant.pk):
            rows = list(usage.order_by("-day", "-key_id")[: limit + 1])
        last = rows[limit - 1] if len(rows) > limit else None
        return rows[:limit], cursor_of_day(last.day, last.key_id) if last else None
