"""What a process reads from the database anew every few seconds, for callers that ask far more often."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from config.lib.database import replica

Read = TypeVar("Read")
GRACE = 1.0  # in seconds: for so long others use the old value while one reads it anew


class Fresh(Generic[Read]):
    """A function without arguments whose value is at most `seconds` and GRACE old.

    From `seconds` on one thread reads it anew. Once it is too old each caller reads it: nobody waits for another's
    reading, which may itself wait for a connection.
    """

    def __init__(self, read: Callable[[], Read], *, seconds: float) -> None:
        self._read, self._seconds = read, seconds
        self._reading = threading.Lock()
        self._read_at = self._wanted_at = float("-inf")
        self._value: Read

    def __call__(self) -> Read:
        age = time.monotonic() - self._read_at
        if age >= self._seconds + GRACE:
            return self._anew()
        if age >= self._seconds and self._reading.acquire(blocking=False):
            try:
                return self._anew()
            finally:
                self._reading.release()
        return self._value

    def _anew(self) -> Read:
        began = time.monotonic()
        with replica.primary():  # what all threads go by
            value = self._read()
        # Else another's is newer, or `read_anew` came meanwhile.
        if began >= max(self._read_at, self._wanted_at):
            self._value, self._read_at = value, began
        return value

    def read_anew(self) -> None:
        """Make the next call read."""
        self._wanted_at, self._read_at = time.monotonic(), float("-inf")
