"""Sends deliveries again at a person's request, and closes deliveries that cannot be sent (rules resend.*).

The event keeps its id and its bytes. The numbers of the attempts continue, and the endpoint's limits apply. If the
requested attempt fails, it is not retried, and the delivery returns to its previous state.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from config.lib import clock, wakeup
from config.lib.database import queries
from payments.cause import Cause
from payments.models import Merchant
from webhooks import retries, statements, subscriptions
from webhooks.models import Delivery, Event, EventType
from webhooks.subscriptions import DELIVER_DUE

MAX_RESENT = 10_000  # maximum number of deliveries that one call can send again or close
MAX_CHECKED = 1000  # `count_unsendable` checks only this many parked deliveries, starting with the newest

BODY_DELETED = Q(event__body_deleted_at__isnull=False)
HOLD_IS_OVER = Q(event_type=EventType.AUTHORIZED) & (
    Q(event__superseded_at__isnull=False) | Q(event__valid_until__lte=Now())
)
AWAITS_APPROVAL = Q(status=Delivery.Status.PENDING, next_attempt_at=None, lease_token=None)
UNDER_WAY = Q(status=Delivery.Status.PENDING) & (Q(lease_token__isnull=False) | ~Q(resent_by=""))


def is_hold_over(delivery: Delivery) -> bool:
    """Return whether the delivery announces a hold that has ended.

    Pages use this function. HOLD_IS_OVER decides whether a delivery can be sent.
    """
    event = delivery.event
    is_late = event.valid_until is not None and event.valid_until <= timezone.now()
    return event.type == EventType.AUTHORIZED and (is_late or event.superseded_at is not None)


class DeliveryNotFound(Exception):
    """The merchant has no such delivery."""


class CannotResend(Exception):
    """The delivery cannot be sent again. `words` is a sentence that says why."""

    words: str

    def __str__(self) -> str:
        return self.words


class AlreadyDelivered(CannotResend):
    words = "The event has been delivered."


class UnderWay(CannotResend):
    words = "The event is being sent right now. Look again in a moment."


class AwaitsApproval(CannotResend):
    words = "The event is sent as soon as an owner or an admin approves the address of your endpoint, under Webhooks."


class BodyDeleted(CannotResend):
    words = "The event’s personal data has been deleted, so the event cannot be sent."


class TooOld(CannotResend):
    words = "The event is too old to be sent again. Its record is deleted soon."


class HoldIsOver(CannotResend):
    words = "The hold has ended, so your server cannot capture any more. Confirm to send it anyway."


class ResendResult(NamedTuple):
    """How many deliveries are sent again, and how many cannot be sent."""

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
    """Send one delivery again now, to the merchant's current subscription.

    With `although_over`, a `checkout.authorized` delivery is also sent if its hold has ended. With
    `although_delivered`, a delivery is also sent if it was already delivered. Raises DeliveryNotFound,
    subscriptions.SubscriptionNotFound, CannotResend.
    """
    confirmed = {HoldIsOver: although_over, AlreadyDelivered: although_delivered}
    rows = Delivery.objects.filter(merchant=merchant, pk=delivery_uuid)
    with transaction.atomic(savepoint=True):
        events = list(rows.values_list("event", flat=True))
        holds = _lock_holds(events)
        delivery = rows.select_for_update(no_key=True).first()
        if delivery is None:
            # If the delivery existed a moment ago, an attempt has just ended and has moved its row to another
            # partition.
            raise UnderWay if events else DeliveryNotFound
        for why, kind in _refusals().items():
            if not confirmed.get(kind) and rows.filter(why).exists():
                raise kind
        _send_again(merchant, [delivery.pk], holds, cause, although_over)
    return rows.get()


def resend_selected(
    merchant: Merchant, delivery_uuids: Collection[UUID], *, cause: Cause, although_over: bool = False
) -> ResendResult:
    """Send the given deliveries again, except those that cannot be sent. At most 10,000 are sent.

    Raises SubscriptionNotFound.
    """
    chosen = Delivery.objects.filter(merchant=merchant, pk__in=delivery_uuids)
    return _resend_all(merchant, chosen, cause, although_over)


def resend_parked(
    merchant: Merchant,
    since: datetime,
    until: datetime | None = None,
    *,
    cause: Cause,
    although_over: bool = False,
) -> ResendResult:
    """Send again the deliveries that were parked from `since` to `until` and are not closed, at most 10,000.

    Raises SubscriptionNotFound.
    """
    return _resend_all(
        merchant, parked_deliveries(merchant, since, until).order_by("ended_at"), cause, although_over
    )


def parked_deliveries(
    merchant: Merchant, since: datetime | None = None, until: datetime | None = None
) -> QuerySet[Delivery]:
    """Return the merchant's parked deliveries that are not closed, without test events.

    Test events are excluded, because the person who sends a test event sees the answer. With `since` or `until`, only
    deliveries that were parked in this period are returned.
    """
    rows = Delivery.objects.filter(merchant=merchant, status=Delivery.Status.PARKED, closed_at=None)
    rows = rows.exclude(event_type=EventType.TEST)
    rows = rows.filter(ended_at__gte=since) if since else rows
    return rows.filter(ended_at__lte=until) if until else rows


def count_unsendable(merchant: Merchant) -> int:
    """Return how many of the newest 1,000 parked deliveries cannot be sent again."""
    newest = parked_deliveries(merchant).order_by("-ended_at").values_list("pk", flat=True)[:MAX_CHECKED]
    return Delivery.objects.filter(_is_unsendable(), pk__in=list(newest)).count()


def sendable_deliveries(parked: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """Return the given parked deliveries that can be sent again."""
    return Delivery.objects.exclude(_is_unsendable()).filter(pk__in=list(parked.values_list("pk", flat=True)))


def close_unsendable(merchant: Merchant) -> int:
    """Close the parked deliveries that cannot be sent again, at most 10,000; return how many.

    If a person sends a closed delivery anyway, it is no longer closed.
    """
    keys = (
        parked_deliveries(merchant)
        .filter(_is_unsendable())
        .order_by("-ended_at")
        .values_list("pk", flat=True)[:MAX_RESENT]
    )
    # The update must check again that they are parked, because a person might have sent one of them in the meantime.
    return parked_deliveries(merchant).filter(pk__in=list(keys)).update(closed_at=Now())


def _is_unsendable() -> Q:
    """Return the condition for deliveries that cannot be sent.

    Either the hold has ended, or the personal data is deleted, or the delivery is too old.
    """
    return Q(pk__lt=_first_id_kept()) | BODY_DELETED | HOLD_IS_OVER


def _first_id_kept() -> UUID:
    return clock.first_id(clock.now() - settings.WEBHOOK_RETENTION + retries.MAX_SCHEDULE_LENGTH)


def _refusals() -> dict[Q, type[CannotResend]]:
    return {
        Q(status=Delivery.Status.DELIVERED): AlreadyDelivered,
        AWAITS_APPROVAL: AwaitsApproval,
        UNDER_WAY: UnderWay,
        Q(pk__lt=_first_id_kept()): TooOld,
        BODY_DELETED: BodyDeleted,
        HOLD_IS_OVER: HoldIsOver,
    }


def _resend_all(
    merchant: Merchant, chosen: QuerySet[Delivery], cause: Cause, although_over: bool
) -> ResendResult:
    possible = chosen
    for why, kind in _refusals().items():
        if not (although_over and kind is HoldIsOver):
            possible = possible.exclude(why)
    left_out = chosen.count() - possible.count()
    with transaction.atomic(savepoint=True):
        selected = dict(possible.values_list("pk", "event")[:MAX_RESENT])
        holds = _lock_holds(selected.values())
        # The conditions must be checked again under the lock, because another request or the end of a hold might have
        # come first.
        over = [] if although_over else [event.pk for event in holds.values() if _is_over(event, clock.now())]
        rows = (
            Delivery.objects.filter(pk__in=selected)
            .exclude(event__in=over)
            .exclude(UNDER_WAY)
            .exclude(AWAITS_APPROVAL)
            .exclude(status=Delivery.Status.DELIVERED)
        )
        locked = rows.order_by("pk").select_for_update(of=("self",), no_key=True, skip_locked=True)
        sent = _send_again(merchant, list(locked.values_list("pk", flat=True)), holds, cause, although_over)
    return ResendResult(sent, left_out + len(selected) - sent)


def _lock_holds(event_uuids: Iterable[UUID]) -> dict[UUID, Event]:
    """Lock and return the `checkout.authorized` events among the given events, sorted by id.

    A process that supersedes one of these events then waits until their deliveries are queued again. As in
    `outbox.supersede_all`, events are locked before deliveries.
    """
    rows = Event.objects.filter(pk__in=event_uuids, type=EventType.AUTHORIZED).order_by("pk")
    return {event.pk: event for event in rows.defer("body").select_for_update(no_key=True)}


def _send_again(
    merchant: Merchant,
    delivery_uuids: Sequence[UUID],
    holds: Mapping[UUID, Event],
    cause: Cause,
    although_over: bool,
) -> int:
    """Make locked deliveries due now; return how many. If the attempt fails, the previous schedule continues.

    A `checkout.authorized` delivery stays urgent, so it is not sent after its hold has ended. If the hold has already
    ended and the person still wants to send it (`although_over`), it is no longer urgent.
    """
    now, subscription = clock.now(), subscriptions.read_subscription(merchant)
    urgent = [event for event in holds.values() if not (although_over and _is_over(event, now))]
    parameters: dict[str, Any] = {
        "ids": list(delivery_uuids),
        "urgent": [event.pk for event in urgent],
        "windows": [event.valid_until for event in urgent],
        "subscription": subscription.pk,
        "is_approved": subscription.is_approved,
        "now": now,
        "actor": cause.actor,
    }
    queries.execute(statements.SEND_AGAIN, parameters)
    subscriptions.mark_having_deliveries([] if subscription.has_deliveries else [subscription.pk])
    wakeup.wake_after_commit(DELIVER_DUE)
    return len(delivery_uuids)


def _is_over(event: Event, now: datetime) -> bool:
    return event.superseded_at is not None or (event.valid_until is not None and event.valid_until <= now)
