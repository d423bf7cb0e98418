"""At most half of a process's threads wait for the provider: reads and refusals always find a free one."""

import threading
from types import TracebackType

from django.conf import settings

_seats = threading.BoundedSemaphore(settings.PROVIDER_SEATS)


class ProviderBusy(Exception):
    """Too many are waiting for the provider. Nothing was begun."""


class Seat:
    """A place among those who wait for the provider, given back at the end of the `with` block."""

    def __init__(self) -> None:
        self._is_taken = False

    def is_taken(self) -> bool:
        """Take the place if there is one, without waiting; return whether it is ours."""
        self._is_taken = self._is_taken or _seats.acquire(blocking=False)
        return self._is_taken

    def take(self) -> None:
        """Take the place. Raises ProviderBusy."""
        if not self.is_taken():
            raise ProviderBusy

    def __enter__(self) -> "Seat":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_taken:
            self._is_taken = False
            _seats.release()
