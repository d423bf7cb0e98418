"""The operators' stops, as this process last read them: at most three seconds ago."""

import threading
import time
from uuid import UUID

from payments.models import Merchant, Switch

FRESH_SECONDS = 3.0  # a stop is effective everywhere within five
_reading = threading.Lock()
_stopped: frozenset[UUID | None] = frozenset()
_read_at = float("-inf")


class MerchantSuspended(Exception):
    """The merchant may neither create nor be paid nor capture."""


class AllStopped(Exception):
    """No merchant may: the operators have stopped the service."""


def check(merchant: Merchant) -> None:
    """Raise MerchantSuspended or AllStopped where an operator has stopped new business.

    What is in doubt at the provider is finished all the same: the pumps ask no switch.
    """
    stopped = _current()
    if merchant.pk in stopped:
        raise MerchantSuspended
    if None in stopped:
        raise AllStopped


def forget() -> None:
    """Let the next check read anew."""
    global _read_at
    _read_at = float("-inf")


def _current() -> frozenset[UUID | None]:
    """One thread reads when it is time; the others go on with what was read before."""
    global _stopped, _read_at
    if time.monotonic() - _read_at >= FRESH_SECONDS and _reading.acquire(blocking=_read_at < 0):
        try:
            rows = Switch.objects.filter(is_stopped=True).values_list("merchant_id", flat=True)
            _stopped, _read_at = frozenset(rows), time.monotonic()
        finally:
            _reading.release()
    return _stopped
