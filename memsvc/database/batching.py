"""Notes of what happens in requests, written together: no request waits for a write of theirs.

A request only notes in memory. A minute after the first note all of them are written in one transaction, in a thread
of its own, and what is left when the process ends is written then.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from threading import Lock, Timer
from typing import Any, ClassVar, Final

from django.db import InterfaceError, OperationalError, close_old_connections, connection, transaction

INTERVAL_SECONDS: Final = 60.0
# Beyond these, which are some tens of MB, new keys are not noted until the next write.
MOST_KEYS: Final = 100_000

logger = logging.getLogger(__name__)


class Batch[Key: tuple[Any, ...], Note](ABC):
    """The notes of one process that are not written yet, one for each key."""

    # What is lost when notes can't be written: the subject of a sentence.
    noted: ClassVar[str]

    def __init__(self, interval: float = INTERVAL_SECONDS) -> None:
        self._interval = interval
        self._lock = Lock()
        self._pending: dict[Key, Note] = {}
        self._timer: Timer | None = None

    def note(self, notes: Iterable[tuple[Key, Note]]) -> None:
        with self._lock:
            for key, note in notes:
                if key in self._pending:
                    self._pending[key] = self.together(self._pending[key], note)
                elif len(self._pending) < MOST_KEYS:
                    self._pending[key] = note
            if self._pending and self._timer is None:
                self._timer = Timer(self._interval, self.flush_quietly)
                self._timer.daemon = True
                self._timer.start()

    def forget(self) -> None:
        """Drop what is not written yet."""
        self._take()

    def flush(self) -> None:
        """Write all that is pending. While the database can't be reached it stays pending, and the error is raised."""
        notes = self._take()
        if not notes:
            return
        try:
            with transaction.atomic():
                # In key order, so that two processes never wait for each other crosswise.
                self.write(sorted(notes.items(), key=lambda item: item[0]))
        except (OperationalError, InterfaceError):
            self.note(notes.items())
            raise

    def flush_quietly(self) -> None:
        """The same in a thread that serves no request, or at the end of the process."""
        try:
            self.flush()
        except Exception:  # A lost note must end neither the thread's cleanup nor the process's exit.
            logger.warning("%s could not be recorded.", self.noted, exc_info=True)
        finally:
            # Nothing else gives back the connection of a thread that serves no request.
            if not connection.in_atomic_block:
                close_old_connections()

    @abstractmethod
    def together(self, one: Note, other: Note) -> Note:
        """What two notes of one key come to, whichever was made first."""

    @abstractmethod
    def write(self, notes: list[tuple[Key, Note]]) -> None:
        """Write notes, in the order of their keys."""

    def _take(self) -> dict[Key, Note]:
        with self._lock:
            notes, self._pending = self._pending, {}
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        return notes
