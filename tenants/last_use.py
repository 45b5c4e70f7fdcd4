"""When, from where and how often each key is used, written in batches."""

import atexit
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from typing import override
from uuid import UUID

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from memsvc.database.batching import Batch
from memsvc.database.ids import uuid7
from memsvc.database.tenancy import enter_tenant
from tenants.models import ApiKey


@dataclass(frozen=True, slots=True)
class Use:
    """The last use of a key on a day, and how many requests it made then."""

    at: datetime
    ip: str | None
    requests: int = 1


# Requests are counted per key and day; the tenant says where that is.
type _KeyAndDay = tuple[UUID, UUID, date]

_COUNT = """
INSERT INTO tenants_keyusage (id, tenant_id, key_id, day, requests)
SELECT %s, tenant_id, id, %s, %s FROM tenants_apikey WHERE tenant_id = %s AND id = %s
ON CONFLICT (tenant_id, day, key_id) DO UPDATE SET requests = tenants_keyusage.requests + excluded.requests
"""


class LastUses(Batch[_KeyAndDay, Use]):
    """The uses that are not written yet, of one process."""

    noted = "The last use of some keys"

    def note_use(self, key: ApiKey, ip: str | None) -> None:
        now = timezone.now()
        self.note([((key.tenant_id, key.pk, now.date()), Use(now, ip))])

    @override
    def together(self, one: Use, other: Use) -> Use:
        last = max(one, other, key=lambda use: use.at)
        return Use(last.at, last.ip, one.requests + other.requests)

    @override
    def write(self, notes: list[tuple[_KeyAndDay, Use]]) -> None:
        """A later time that another process wrote stays."""
        for tenant_id, of_tenant in groupby(notes, key=lambda note: note[0][0]):
            enter_tenant(tenant_id)
            for (_, key_id, day), use in of_tenant:
                earlier = Q(last_used_at=None) | Q(last_used_at__lt=use.at)
                keys = ApiKey.objects.filter(earlier, tenant_id=tenant_id, pk=key_id)
                keys.update(last_used_at=use.at, last_used_ip=use.ip)
                with connection.cursor() as cursor:
                    cursor.execute(_COUNT, [uuid7(), day, use.requests, tenant_id, key_id])


LAST_USES = LastUses()
atexit.register(LAST_USES.flush_quietly)
