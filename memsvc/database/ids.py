"""Primary keys: UUIDs of version 7 (RFC 9562), which sort by the time at which they were made."""

import os
import time
from threading import Lock
from uuid import UUID

_COUNTER_BITS = 42
_TAIL_BITS = 32

_lock = Lock()
_last_milliseconds = 0
_counter = 0


def uuid7() -> UUID:
    """A new UUIDv7: each one from this process sorts after the one before, whatever the clock does."""
    milliseconds, counter = _next_tick()
    tail = int.from_bytes(os.urandom(_TAIL_BITS // 8))
    value = milliseconds << 80
    value |= 0x7 << 76
    value |= (counter >> 30) << 64
    value |= 0b10 << 62
    value |= (counter & 0x3FFF_FFFF) << _TAIL_BITS
    return UUID(int=value | tail)


def _next_tick() -> tuple[int, int]:
    global _last_milliseconds, _counter
    now = time.time_ns() // 1_000_000
    with _lock:
        if now > _last_milliseconds:
            _last_milliseconds, _counter = now, _fresh_counter()
        else:
            _counter += 1
            if _counter >> _COUNTER_BITS:
                _last_milliseconds, _counter = _last_milliseconds + 1, _fresh_counter()
        return _last_milliseconds, _counter


def _fresh_counter() -> int:
    # The top bit stays free, so that a busy millisecond has room to count up.
    return int.from_bytes(os.urandom(6)) >> (48 - _COUNTER_BITS + 1)
