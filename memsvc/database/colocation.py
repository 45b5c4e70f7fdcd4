"""Models whose rows are found by their tenant and their id together, whatever Django makes of them.

Django takes `id` for the whole key, and names nothing else where it saves, reads again or joins. Where rows are on
several servers by their tenant, that would be asked of all of them.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.lookups import Exact


class OfTenant(models.Model):
    """A row that is saved, and read again, by its tenant and its id."""

    class Meta:
        abstract = True

    def _do_update(self, base_qs: models.QuerySet[Any], *args: Any, **options: Any) -> Any:
        own = base_qs.filter(tenant_id=self.tenant_id)  # type: ignore[attr-defined]
        return super()._do_update(own, *args, **options)

    def refresh_from_db(
        self,
        using: str | None = None,
        fields: Iterable[str] | None = None,
        from_queryset: models.QuerySet[Any] | None = None,
    ) -> None:
        rows = type(self)._base_manager.all() if from_queryset is None else from_queryset
        # A deferred field is read by this too, of which the tenant may be one.
        if "tenant_id" not in self.get_deferred_fields():
            rows = rows.filter(tenant_id=self.tenant_id)  # type: ignore[attr-defined, misc]
        super().refresh_from_db(using=using, fields=fields, from_queryset=rows)


if TYPE_CHECKING:
    TenantForeignKey = models.ForeignKey
else:

    class TenantForeignKey(models.ForeignKey):
        """A reference within a tenant: what is joined or looked up by it names the tenant too."""

        def get_extra_restriction(self, alias: str, related_alias: str) -> Exact:
            theirs = self.remote_field.model._meta.get_field("tenant").get_col(alias)
            ours = self.model._meta.get_field("tenant").get_col(related_alias)
            return Exact(theirs, ours)

        def get_extra_descriptor_filter(self, instance: models.Model) -> dict[str, Any]:
            return {"tenant_id": instance.tenant_id}

        def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
            # The column is that of any reference, so migrations know of no other.
            name, _, args, options = super().deconstruct()
            return name, "django.db.models.ForeignKey", args, options
