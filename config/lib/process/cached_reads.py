"""Caches values that are needed often. A process reads each value from the database only every few seconds."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from config.lib.database import replica

Read = TypeVar("Read")
GRACE = 1.0  # for this many seconds, other threads use the old value while one thread reads the new one


class CachedRead(Generic[Read]):
    """A function without arguments whose value is cached, and is at most `seconds` plus GRACE old.

    When a value is older than `seconds`, one thread reads it again. When it is older than `seconds` plus
    GRACE, each caller reads it. No caller waits for another thread's read, because that thread might be
    waiting for a connection.
    """

    def __init__(self, read: Callable[[], Read], *, seconds: float) -> None:
        self._read, self._seconds = read, seconds
        self._reading = threading.Lock()
        self._read_at = self._wanted_at = float("-inf")
        self._value: Read

    def __call__(self) -> Read:
        age = time.monotonic() - self._read_at
        if age >= self._seconds + GRACE:
            return self._read_again()
        if age >= self._seconds and self._reading.acquire(blocking=False):
            try:
                return self._read_again()
            finally:
                self._reading.release()
        return self._value

    def _read_again(self) -> Read:
        began = time.monotonic()
        # All threads share the value, so it must not be an old value from the replica.
        with replica.use_primary():
            value = self._read()
        # Do not store the value if another thread has stored a newer one, or if `invalidate` was called
        # during the read.
        if began >= max(self._read_at, self._wanted_at):
            self._value, self._read_at = value, began
        return value

    def invalidate(self) -> None:
        """Make the next call read the value again."""
        self._wanted_at, self._read_at = time.monotonic(), float("-inf")
