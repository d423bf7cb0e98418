"""Sends deliveries again because a person asks for it (rules resend.*).

The event keeps its id and its bytes, the numbers of the attempts go on, and the endpoint's caps and pace apply.
If the resent attempt fails it schedules nothing: the delivery goes back to where it stood.
"""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, When
from django.db.models.functions import Now

from config.lib import clock, wakeup
from payments.cause import Cause
from payments.models import Merchant
from webhooks import subscriptions
from webhooks.models import Delivery, EventType
from webhooks.outbox import DELIVER_DUE

MAXIMUM = 10_000  # deliveries at one time

UNDER_WAY = Q(status=Delivery.Status.PENDING) & (Q(lease_token__isnull=False) | ~Q(resent_by=""))
BODY_DELETED = Q(event__body_deleted_at__isnull=False)
HOLD_IS_OVER = Q(event__type=EventType.AUTHORIZED) & (
    Q(event__superseded_at__isnull=False) | Q(event__valid_until__lte=Now())
)


class DeliveryNotFound(Exception):
    """The merchant has no such delivery."""


class CannotResend(Exception):
    """The delivery cannot be sent again; `words` is a sentence for people."""

    words: str

    def __str__(self) -> str:
        return self.words


class AlreadyDelivered(CannotResend):
    words = "It has been delivered."


class UnderWay(CannotResend):
    words = "It is being sent right now. Look again in a moment."


class BodyDeleted(CannotResend):
    words = "Its personal data has been deleted, so there is nothing left to send."


class HoldIsOver(CannotResend):
    words = "The hold is over: your server cannot capture any more. Confirm to send it all the same."


class Resent(NamedTuple):
    """How many deliveries are on their way again, and how many were left out because they cannot be sent."""

    sent: int
    left_out: int


def resend(
    merchant: Merchant,
    delivery_uuid: UUID,
    *,
    cause: Cause,
    although_over: bool = False,
    although_delivered: bool = False,
) -> Delivery:
    """Send one delivery again now, to the merchant's present subscription.

    `although_over` also sends a `checkout.authorized` whose hold is over, `although_delivered` one that was
    delivered. Raises DeliveryNotFound, subscriptions.SubscriptionNotFound, CannotResend.
    """
    confirmed = {HoldIsOver: although_over, AlreadyDelivered: although_delivered}
    with transaction.atomic():
        rows = Delivery.objects.filter(merchant=merchant, pk=delivery_uuid)
        delivery = rows.select_for_update().first()
        if delivery is None:
            raise DeliveryNotFound
        for why, kind in _REFUSALS.items():
            if not confirmed.get(kind) and rows.filter(why).exists():
                raise kind
        _send_again(merchant, [delivery.pk], cause, although_over)
    delivery.refresh_from_db()
    return delivery


def resend_selected(
    merchant: Merchant, delivery_uuids: Collection[UUID], *, cause: Cause, although_over: bool = False
) -> Resent:
    """Send again those of the deliveries that can be, 10,000 at most. Raises SubscriptionNotFound."""
    chosen = Delivery.objects.filter(merchant=merchant, pk__in=delivery_uuids)
    return _resend_all(merchant, chosen, cause, although_over)


def resend_parked(
    merchant: Merchant, since: datetime, *, cause: Cause, although_over: bool = False
) -> Resent:
    """Send again what was parked at `since` or later, 10,000 at most. Raises SubscriptionNotFound."""
    parked = Delivery.objects.filter(merchant=merchant, status=Delivery.Status.PARKED, ended_at__gte=since)
    return _resend_all(merchant, parked.order_by("ended_at"), cause, although_over)


_REFUSALS: dict[Q, type[CannotResend]] = {
    Q(status=Delivery.Status.DELIVERED): AlreadyDelivered,
    UNDER_WAY: UnderWay,
    BODY_DELETED: BodyDeleted,
    HOLD_IS_OVER: HoldIsOver,
}


def _resend_all(merchant: Merchant, chosen: QuerySet[Delivery], cause: Cause, although_over: bool) -> Resent:
    possible = chosen
    for why, kind in _REFUSALS.items():
        if not (although_over and kind is HoldIsOver):
            possible = possible.exclude(why)
    left_out = chosen.count() - possible.count()
    with transaction.atomic():
        wanted = list(possible.values_list("pk", flat=True)[:MAXIMUM])
        # Checked again under the lock: another click may have been quicker.
        rows = (
            Delivery.objects.filter(pk__in=wanted)
            .exclude(UNDER_WAY)
            .exclude(status=Delivery.Status.DELIVERED)
        )
        locked = rows.order_by("pk").select_for_update(of=("self",), skip_locked=True)
        sent = _send_again(merchant, list(locked.values_list("pk", flat=True)), cause, although_over)
    return Resent(sent, left_out + len(wanted) - sent)


def _send_again(
    merchant: Merchant, delivery_uuids: Collection[UUID], cause: Cause, although_over: bool
) -> int:
    """Make locked deliveries due now; return how many. What was scheduled before comes back if the attempt fails.

    A hold stays urgent, and so is not sent once it is over, unless that was confirmed.
    """
    rows = Delivery.objects.filter(pk__in=delivery_uuids)
    holds = rows.filter(event__type=EventType.AUTHORIZED)
    if although_over:
        holds = holds.exclude(HOLD_IS_OVER)
    urgent = list(holds.values_list("pk", flat=True))
    sent = rows.update(
        subscription=subscriptions.read(merchant),
        returns_at=Case(When(status=Delivery.Status.PENDING, then=F("next_attempt_at")), default=None),
        status=Delivery.Status.PENDING,
        is_urgent=Case(When(pk__in=urgent, then=True), default=False),
        next_attempt_at=clock.now(),
        ended_at=None,
        resent_by=cause.actor,
    )
    wakeup.after_commit(DELIVER_DUE)
    return sent
