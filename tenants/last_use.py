"""When, from where and how often each key is used, written in batches.

A request only notes its key in memory. A minute after the first note one statement writes all of them, in a
thread of its own: no request waits for it, and no key is written more than once a minute per process.
"""

import atexit
import logging
from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime
from threading import Lock, Timer
from uuid import UUID

from django.db import close_old_connections, connection, transaction
from django.db.models import Q
from django.utils import timezone

from tenants.ids import uuid7
from tenants.models import ApiKey

INTERVAL_SECONDS = 60.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Use:
    at: datetime
    ip: str | None


# Requests are counted per key and day.
type _Counts = Counter[tuple[UUID, date]]

_COUNT = """
INSERT INTO tenants_keyusage (id, tenant_id, key_id, day, requests)
SELECT %s, tenant_id, id, %s, %s FROM tenants_apikey WHERE id = %s
ON CONFLICT (tenant_id, day, key_id) DO UPDATE SET requests = tenants_keyusage.requests + excluded.requests
"""


class LastUses:
    """The uses that are not written yet, of one process."""

    def __init__(self, interval: float = INTERVAL_SECONDS) -> None:
        self._interval = interval
        self._lock = Lock()
        self._pending: dict[UUID, Use] = {}
        self._counts: _Counts = Counter()
        self._timer: Timer | None = None

    def note(self, key: ApiKey, ip: str | None) -> None:
        now = timezone.now()
        with self._lock:
            self._pending[key.pk] = Use(now, ip)
            self._counts[key.pk, now.date()] += 1
            if self._timer is None:
                self._timer = Timer(self._interval, self._flush_in_own_thread)
                self._timer.daemon = True
                self._timer.start()

    def forget(self) -> None:
        """Drop what is not written yet."""
        with self._lock:
            self._take()

    def flush(self) -> None:
        """Write all that is pending, in one transaction; a later time that another process wrote stays."""
        with self._lock:
            uses, counts = self._take()
        if not uses:
            return
        with transaction.atomic():
            # In key order, so that two processes never wait for each other crosswise.
            for key_id, use in sorted(uses.items()):
                earlier = Q(last_used_at=None) | Q(last_used_at__lt=use.at)
                ApiKey.objects.filter(earlier, pk=key_id).update(last_used_at=use.at, last_used_ip=use.ip)
            with connection.cursor() as cursor:
                for (key_id, day), requests in sorted(counts.items()):
                    cursor.execute(_COUNT, [uuid7(), day, requests, key_id])

    def _take(self) -> tuple[dict[UUID, Use], _Counts]:
        uses, self._pending = self._pending, {}
        counts, self._counts = self._counts, Counter()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return uses, counts

    def _flush_in_own_thread(self) -> None:
        try:
            self.flush()
        except Exception:  # A lost note must end neither the thread's cleanup nor the process's exit.
            logger.warning("The last use of some keys could not be recorded.", exc_info=True)
        finally:
            # Nothing else gives back the connection of a thread that serves no request.
            if not connection.in_atomic_block:
                close_old_connections()


LAST_USES = LastUses()


@atexit.register
def _flush_at_exit() -> None:
    LAST_USES._flush_in_own_thread()
