"""At most half of a process's threads wait for the provider: reads and refusals always find a free one."""

import threading
from types import TracebackType

from django.conf import settings

_seats = threading.BoundedSemaphore(settings.PROVIDER_SEATS)
# Who only waits for another's call leaves half of the seats to those who have calls to make.
_joining = threading.BoundedSemaphore(max(1, settings.PROVIDER_SEATS // 2))


class ProviderBusy(Exception):
    """Too many are waiting for the provider. Nothing was begun."""


class Seat:
    """A place among those who wait for the provider, given back at the end of the `with` block."""

    def __init__(self, *, is_joining: bool = False) -> None:
        self._missing = [_seats, _joining] if is_joining else [_seats]
        self._taken: list[threading.BoundedSemaphore] = []

    def is_taken(self) -> bool:
        """Take the place if there is one, without waiting; return whether it is ours."""
        while self._missing and self._missing[-1].acquire(blocking=False):
            self._taken.append(self._missing.pop())
        return not self._missing

    def take(self) -> None:
        """Take the place. Raises ProviderBusy."""
        if not self.is_taken():
            raise ProviderBusy

    def __enter__(self) -> "Seat":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._taken:
            self._taken.pop().release()
