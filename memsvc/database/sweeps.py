"""Work that goes through all tenants. What fails of one must not keep the others waiting: one server of several may be
down, or one tenant's rows held by somebody.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import DatabaseError, InterfaceError, close_old_connections, connection

# Tenants that are asked about together, and of which a server that is down makes all wait for the next sweep.
GROUP: Final = 500

logger = logging.getLogger(__name__)


@contextmanager
def failing_alone(work: str) -> Iterator[None]:
    """Let what the database refuses inside be told by the log, and be done by the next sweep.

    Within an outer transaction, which is spoilt then, it is raised.
    """
    try:
        yield
    except (DatabaseError, InterfaceError) as error:
        if connection.in_atomic_block:
            raise
        # The connection may be what has failed.
        close_old_connections()
        logger.warning("%s has to wait for the next time: %s", work, type(error.__cause__ or error).__name__)
