"""Badges. They show the state of a checkout, refund, dispute, delivery or attempt by colour, icon and words."""

from datetime import datetime
from typing import NamedTuple

from django.utils import timezone
from django.utils.formats import date_format

from checkout.models import Checkout, Refund
from checkout.states import Status, VoidReason
from payments.models import Dispute
from webhooks.models import PERSONAL, Attempt, Delivery


class Badge(NamedTuple):
    """A badge's colour (`tone`), icon and words, and a note next to it."""

    tone: str
    icon: str
    words: str
    note: str = ""


CHECKOUT: dict[str, Badge] = {
    Status.CREATED: Badge("still", "dashes", str(Status.CREATED.label)),
    Status.AUTHORIZED: Badge("held", "pause", str(Status.AUTHORIZED.label)),
    Status.CAPTURED: Badge("done", "check", str(Status.CAPTURED.label)),
    Status.VOIDED: Badge("void", "slash", str(Status.VOIDED.label)),
    Status.EXPIRED: Badge("void", "clock", str(Status.EXPIRED.label)),
    Status.REFUNDING: Badge("move", "ring", str(Status.REFUNDING.label)),
    Status.REFUNDED: Badge("still", "back", str(Status.REFUNDED.label)),
}
VOIDED_BECAUSE: dict[str, str] = {
    VoidReason.AUTH_EXPIRED: "hold lapsed",
    VoidReason.MERCHANT_CANCEL: "you cancelled",
}
REFUND: dict[str, Badge] = {
    Refund.Status.PENDING: Badge("move", "ring", str(Refund.Status.PENDING.label)),
    Refund.Status.SETTLED: Badge("done", "check", str(Refund.Status.SETTLED.label)),
    Refund.Status.FAILED: Badge("stop", "alert", str(Refund.Status.FAILED.label)),
}
REFUND_FAILED = Badge("stop", "alert", "Refund failed")  # shown next to the order's badge
REFUND_RETURNED = Badge("stop", "alert", "Refund returned")  # shown next to the order's badge
DISPUTE: dict[str, Badge] = {
    Dispute.Status.OPEN: Badge("held", "clock", str(Dispute.Status.OPEN.label)),
    Dispute.Status.WON: Badge("done", "check", str(Dispute.Status.WON.label)),
    Dispute.Status.LOST: Badge("void", "slash", str(Dispute.Status.LOST.label)),
}
ACCEPTED = Badge("done", "check", "Accepted")
REFUSED = Badge("stop", "cross", "Refused")
WAITING = Badge("still", "clock", "Waiting")
DELIVERED = Badge("done", "check", "Delivered")
FAILED = Badge("stop", "alert", "Failed")
UNDER_WAY = Badge("move", "ring", "Being sent")
CLOSED = Badge("void", "slash", "Closed")
ENDED: dict[str, Badge] = {
    Delivery.Status.DELIVERED: DELIVERED,
    Delivery.Status.PARKED: Badge("stop", "pause", "Parked"),
    Delivery.Status.SUPERSEDED: Badge("void", "skip", "Superseded"),
}


def of_checkout(checkout: Checkout) -> Badge:
    """Return a checkout's badge. If the checkout is voided, the badge's note gives the reason."""
    return CHECKOUT[checkout.status]._replace(note=VOIDED_BECAUSE.get(checkout.void_reason or "", ""))


def of_delivery(delivery: Delivery) -> Badge:
    """Return a delivery's badge."""
    if delivery.closed_at is not None:
        return CLOSED
    if delivery.status in ENDED:
        return ENDED[delivery.status]
    if delivery.lease_token is not None:
        return UNDER_WAY
    if delivery.attempt_count and delivery.next_attempt_at:
        return Badge("move", "clock", f"Retries {_format_time(delivery.next_attempt_at)}")
    return WAITING


def of_attempt(delivery: Delivery, attempt: Attempt) -> Badge:
    """Return an attempt's badge. The latest attempt of a parked delivery gets the delivery's badge."""
    if attempt.is_delivered is not False:
        return DELIVERED if attempt.is_delivered else UNDER_WAY
    is_latest = attempt.number == delivery.attempt_count
    if is_latest and delivery.status == Delivery.Status.PARKED:
        return of_delivery(delivery)
    if is_latest and delivery.status == Delivery.Status.SUPERSEDED:
        why = "its data is deleted" if delivery.event_type in PERSONAL else "the hold ended"
        return FAILED._replace(note=f"not tried again: {why}")
    if is_latest and delivery.status == Delivery.Status.PENDING and delivery.next_attempt_at:
        return FAILED._replace(note=f"next try {_format_time(delivery.next_attempt_at)}")
    return FAILED


def _format_time(moment: datetime) -> str:
    local = timezone.localtime(moment)
    is_today = local.date() == timezone.localdate()
    return date_format(local, "H:i:s" if is_today else "j M, H:i")
