"""A state as colour, icon and word, never one alone."""

from datetime import datetime
from typing import NamedTuple

from django.utils import timezone
from django.utils.formats import date_format

from checkout.models import Checkout, Refund
from checkout.states import Status, VoidReason
from payments.models import Dispute
from webhooks.models import Delivery


class Pill(NamedTuple):
    """What stands in the pill, and beside it."""

    tone: str
    icon: str
    words: str
    note: str = ""


CHECKOUT: dict[str, Pill] = {
    Status.CREATED: Pill("still", "dashes", "Not paid yet"),
    Status.AUTHORIZED: Pill("held", "pause", "Held"),
    Status.CAPTURED: Pill("done", "check", "Captured"),
    Status.VOIDED: Pill("void", "slash", "Voided"),
    Status.EXPIRED: Pill("void", "clock", "Expired"),
    Status.REFUNDING: Pill("move", "ring", "Refunding"),
    Status.REFUNDED: Pill("still", "back", "Refunded"),
}
VOIDED_BECAUSE = {VoidReason.AUTH_EXPIRED: "hold lapsed", VoidReason.MERCHANT_CANCEL: "you cancelled"}
REFUND: dict[str, Pill] = {
    Refund.Status.PENDING: Pill("move", "ring", "Pending"),
    Refund.Status.SETTLED: Pill("done", "check", "Settled"),
    Refund.Status.FAILED: Pill("stop", "alert", "Failed"),
}
DISPUTE: dict[str, Pill] = {
    Dispute.Status.OPEN: Pill("stop", "alert", "Open"),
    Dispute.Status.WON: Pill("done", "check", "Won"),
    Dispute.Status.LOST: Pill("void", "slash", "Lost"),
}
WAITING = Pill("still", "clock", "Waiting")
DELIVERED = Pill("done", "check", "Delivered")
FAILED = Pill("stop", "alert", "Failed")
PARKED = Pill("stop", "pause", "Parked")
SUPERSEDED = Pill("void", "skip", "Superseded")
UNDER_WAY = Pill("move", "ring", "Being sent")


def of_checkout(checkout: Checkout) -> Pill:
    """Return the state of a checkout; of a voided one, why."""
    pill = CHECKOUT[checkout.status]
    return (
        pill._replace(note=VOIDED_BECAUSE.get(VoidReason(checkout.void_reason), ""))
        if checkout.void_reason
        else pill
    )


def of_refund(refund: Refund) -> Pill:
    return REFUND[refund.status]


def of_dispute(dispute: Dispute) -> Pill:
    return DISPUTE[dispute.status]


def of_delivery(delivery: Delivery) -> Pill:
    """Return where the sending of an event is."""
    if delivery.status == Delivery.Status.DELIVERED:
        return DELIVERED
    if delivery.status == Delivery.Status.PARKED:
        return PARKED
    if delivery.status == Delivery.Status.SUPERSEDED:
        return SUPERSEDED
    if delivery.lease_token is not None:
        return UNDER_WAY
    if delivery.attempt_count and delivery.next_attempt_at:
        return Pill("move", "clock", f"Retries {_time(delivery.next_attempt_at)}")
    return WAITING


def of_attempt(delivery: Delivery, number: int, is_delivered: bool | None) -> Pill:
    """Return how an attempt ended; the latest one says where its delivery stands."""
    if is_delivered is None:
        return UNDER_WAY
    if is_delivered:
        return DELIVERED
    is_latest = number == delivery.attempt_count
    if is_latest and delivery.status in (Delivery.Status.PARKED, Delivery.Status.SUPERSEDED):
        return of_delivery(delivery)
    return FAILED


def _time(moment: datetime) -> str:
    local = timezone.localtime(moment)
    is_today = local.date() == timezone.localdate()
    return date_format(local, "H:i:s" if is_today else "j M, H:i")
