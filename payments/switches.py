"""The operators' stops, as this process last read them: at most three seconds ago (rule operator.stop)."""

import threading
import time
from uuid import UUID

from django.db import transaction

from payments.models import Merchant, Switch

FRESH_SECONDS = 3.0  # a stop is effective everywhere within five
_reading = threading.Lock()
_stopped: frozenset[UUID | None] = frozenset()
_read_at = float("-inf")


class MerchantSuspended(Exception):
    """An operator has suspended the merchant: it can neither create checkouts, nor be paid, nor capture."""


class AllStopped(Exception):
    """An operator has stopped all merchants: none can create checkouts, be paid or capture."""


def check(merchant: Merchant) -> None:
    """Raise MerchantSuspended or AllStopped if an operator has stopped new business.

    The pumps do not ask: what is in doubt at the provider is finished all the same.
    """
    stopped = _current()
    if merchant.pk in stopped:
        raise MerchantSuspended
    if None in stopped:
        raise AllStopped


def suspend(merchant: Merchant, *, reason: str) -> Switch | None:
    """Stop a merchant's new business; return the switch, None if it was stopped already."""
    return _set(merchant, is_stopped=True, reason=reason)


def resume(merchant: Merchant, *, reason: str) -> Switch | None:
    """Lift a merchant's stop; return the switch, None if there was none. A stop of all merchants stays."""
    return _set(merchant, is_stopped=False, reason=reason)


def _set(merchant: Merchant, *, is_stopped: bool, reason: str) -> Switch | None:
    with transaction.atomic():
        Merchant.objects.select_for_update(no_key=True).get(pk=merchant.pk)
        switch = Switch.objects.filter(merchant=merchant).first() or Switch(
            merchant=merchant, is_stopped=False
        )
        if switch.is_stopped == is_stopped:
            return None
        switch.is_stopped, switch.reason = is_stopped, reason
        switch.save()
    read_anew()
    return switch


def read_anew() -> None:
    """Make the next check read the database."""
    global _read_at
    _read_at = float("-inf")


def _current() -> frozenset[UUID | None]:
    """Return the stopped merchants (None: all). One thread reads them anew; the others use what was read before."""
    global _stopped, _read_at
    if time.monotonic() - _read_at >= FRESH_SECONDS and _reading.acquire(blocking=_read_at < 0):
        try:
            rows = Switch.objects.filter(is_stopped=True).values_list("merchant_id", flat=True)
            _stopped, _read_at = frozenset(rows), time.monotonic()
        finally:
            _reading.release()
    return _stopped
