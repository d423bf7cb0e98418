"""Sets, lifts and checks operators' stops of new business. Each process caches the stops for at most four seconds.

Rule operator.stop.
"""

from datetime import datetime
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Min, Q

from config.lib import quota
from config.lib.process.cached_reads import CachedRead
from payments import restore_guard
from payments.models import Merchant, Switch

log = structlog.get_logger("payments.operator_stops")
CACHE_SECONDS = 3.0  # with this value, a stop takes effect everywhere within five seconds


class MerchantSuspended(Exception):
    """An operator has suspended the merchant. It cannot create checkouts, take payments or capture them."""


class AllStopped(Exception):
    """An operator has stopped all merchants. They cannot create checkouts, take payments or capture them."""


def check(merchant: Merchant) -> None:
    """Raise MerchantSuspended or AllStopped if an operator has stopped new business.

    Raise restore_guard.ServiceClosed if the database was restored and is not repaired yet. The pumps do not call this
    function, because unresolved operations must always be finished.
    """
    restore_guard.check()
    stopped = stopped_merchants()
    if merchant.pk in stopped:
        raise MerchantSuspended
    if None in stopped:
        raise AllStopped


def is_stopped(merchant_uuid: UUID) -> bool:
    """Return whether an operator has stopped new business for this merchant or for all merchants."""
    return not stopped_merchants().isdisjoint((merchant_uuid, None))


def stopped_since(merchant_uuid: UUID) -> datetime | None:
    """Return when an operator stopped this merchant, or all merchants. Return None if it is not stopped."""
    if not is_stopped(merchant_uuid):
        return None
    of_merchant = Q(merchant=merchant_uuid) | Q(merchant=None)
    since: datetime | None = Switch.objects.filter(of_merchant, is_stopped=True).aggregate(
        at=Min("changed_at")
    )["at"]
    return since


def was_stopped_since(merchant_uuid: UUID, since: datetime) -> bool:
    """Return whether new business is stopped for this merchant, or a stop was lifted at `since` or later."""
    of_merchant = Q(merchant=merchant_uuid) | Q(merchant=None)
    return Switch.objects.filter(of_merchant, Q(is_stopped=True) | Q(changed_at__gte=since)).exists()


def suspend(merchant: Merchant | None, *, reason: str) -> Switch | None:
    """Stop new business for a merchant, or for all merchants if `merchant` is None.

    Return the switch, or None if the switch was already set.
    """
    return _set_switch(merchant, is_stopped=True, reason=reason)


def resume(merchant: Merchant | None, *, reason: str) -> Switch | None:
    """Lift the stop of a merchant, or the stop of all merchants if `merchant` is None.

    These stops are independent: lifting one does not lift the other. Return the switch, or None if it was not set.
    """
    return _set_switch(merchant, is_stopped=False, reason=reason)


def _set_switch(merchant: Merchant | None, *, is_stopped: bool, reason: str) -> Switch | None:
    with transaction.atomic(durable=True):
        quota.lock("switches")
        switch = Switch.objects.filter(merchant=merchant).first() or Switch(
            merchant=merchant, is_stopped=False
        )
        if switch.is_stopped == is_stopped:
            return None
        switch.is_stopped, switch.reason = is_stopped, reason
        switch.save()
    log.info("operator stop", merchant=str(merchant.pk) if merchant else "all", is_stopped=is_stopped)
    reread_stops()
    return switch


# The merchants whose new business an operator has stopped. None among them means all merchants.
stopped_merchants: CachedRead[frozenset[UUID | None]] = CachedRead(
    lambda: frozenset(Switch.objects.filter(is_stopped=True).values_list("merchant_id", flat=True)),
    seconds=CACHE_SECONDS,
)
reread_stops = stopped_merchants.invalidate
