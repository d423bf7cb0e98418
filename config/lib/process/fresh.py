"""What a process reads from the database anew every few seconds, for callers that ask far more often."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from config.lib.database import replica

Read = TypeVar("Read")


class Fresh(Generic[Read]):
    """A function without arguments whose value is at most `seconds` old.

    One thread reads it anew, while the others use what was read before; the first read is waited for.
    """

    def __init__(self, read: Callable[[], Read], *, seconds: float) -> None:
        self._read, self._seconds = read, seconds
        self._reading = threading.Lock()
        self._read_at = float("-inf")
        self._value: Read

    def __call__(self) -> Read:
        is_stale = time.monotonic() - self._read_at >= self._seconds
        if is_stale and self._reading.acquire(blocking=self._read_at < 0):
            try:
                with replica.primary():  # what all threads go by
                    self._value, self._read_at = self._read(), time.monotonic()
            finally:
                self._reading.release()
        return self._value

    def read_anew(self) -> None:
        """Make the next call read."""
        self._read_at = float("-inf")
