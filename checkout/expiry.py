"""Ends late checkouts: a held checkout lapses, and an unpaid one expires (rules lapse.void, expiry.end)."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from checkout import events, given_up_cards, pledges, settling, states
from checkout.models import Checkout, ColumnValue
from checkout.states import Status, VoidReason
from config.lib import clock, wakeup
from payments import open_operations, operation_queue, planning, restore_guard
from payments.cause import PUMP, Cause
from payments.models import Merchant, Operation

PAGE = 200  # maximum number of checkouts on a page of a list
# The pump runs every second. Its previous run has handled the holds that ended longer ago than this.
JUST_NOW = timedelta(seconds=1)
Kind = Operation.Kind


def expire_if_due(checkout: Checkout, now: datetime) -> bool:
    """Lapse or expire a checkout if its deadline has passed; return whether this call ended it.

    Actions and reads call this function first. A checkout with an open card operation is not changed. There is one
    exception: an authorization that the bank has not answered for a minute is given up, and the checkout ends. Must be
    called with the checkout locked. Rules lapse.whoever, expiry.open_operation.
    """
    if not (checkout.has_lapsed(now) or checkout.has_expired(now)):
        return False
    operation = open_operations.open_operation(checkout.pk)
    if operation is not None and not given_up_cards.abandon_if_silent(checkout, operation, now):
        return False
    _end_late(checkout.status, [checkout], now)
    return True


def expire_one_if_due(checkout_uuid: UUID) -> None:
    """Lock a checkout and call `expire_if_due`. While the service is closed for a repair, do not change it."""
    if restore_guard.is_closed():
        return
    with transaction.atomic(durable=True):
        expire_if_due(Checkout.objects.locked(checkout_uuid), clock.now())


def expire_late_of(merchant: Merchant) -> None:
    """Lapse or expire the merchant's checkouts whose deadline has passed, at most PAGE of them.

    Code that lists checkouts calls this first if the list is filtered by status or by the time of a change. Otherwise,
    the list would miss checkouts that match the filter only after they have ended.
    """
    for late in _late_checkouts_of(merchant):
        expire_one_if_due(late.pk)


def _late_checkouts_of(merchant: Merchant) -> QuerySet[Checkout]:
    held = Q(status=Status.AUTHORIZED, capture_before__lte=Now())
    unpaid = Q(status=Status.CREATED, payable_until__lte=Now())
    rows = Checkout.objects.filter(held | unpaid, merchant=merchant)
    return exclude_blocked(rows).only("pk")[:PAGE]


def exclude_blocked(rows: QuerySet[Checkout]) -> QuerySet[Checkout]:
    """Exclude the checkouts that cannot end yet because a card operation is open.

    A checkout whose bank has not answered an authorization for a minute is not excluded, because the authorization can
    be given up.
    """
    silent = Q(kind=Kind.AUTHORIZE, created_at__lte=Now() - operation_queue.MAX_PAYER_WAIT)
    return rows.exclude(Exists(open_operations.query_open_operation(OuterRef("pk")).exclude(silent)))


def oldest_deadline(status: Status) -> datetime | None:
    """Return the earliest deadline that a checkout with this status has missed, or None if there is no such checkout.

    Checkouts with an open card operation are excluded, because they wait for its outcome.
    """
    late = Checkout.objects.late(status).exclude(Exists(open_operations.query_open_operation(OuterRef("pk"))))
    return late.values_list(states.DEADLINES[status], flat=True).first()


def seconds_to_next_lapse() -> float | None:
    """Return the seconds until the next hold ends, by the database's clock, or None if no card is held.

    The value is negative if the hold ended less than JUST_NOW ago, because the last batch might have missed it.
    Holds with an open card operation are excluded.
    """
    held = Checkout.objects.filter(status=Status.AUTHORIZED, capture_before__gt=Now() - JUST_NOW)
    unblocked = held.exclude(Exists(open_operations.query_open_operation(OuterRef("pk")))).order_by(
        "capture_before"
    )
    remaining: timedelta | None = unblocked.values_list(F("capture_before") - Now(), flat=True).first()
    return None if remaining is None else remaining.total_seconds()


def expire_due(status: Status, limit: int) -> int:
    """End the checkouts with this status whose deadline has passed, at most `limit`; return their number.

    All these checkouts lapse or expire in one transaction. Checkouts that are locked or have an open card
    operation are excluded. Rule lapse.together.
    """
    with transaction.atomic(durable=True):
        late = {checkout.pk: checkout for checkout in _late_checkouts(status)[:limit]}
        if not late:
            # Usually no deadline has passed, and no further query is needed.
            return 0
        # The statement that locked the rows might have missed an operation that began at the same time.
        for operation in open_operations.query_open_operations(late):
            late.pop(operation.payment.subject, None)
        if late:
            _end_late(status, list(late.values()), clock.now())
    return len(late)


def _late_checkouts(status: Status) -> QuerySet[Checkout]:
    rows = Checkout.objects.late(status).exclude(Exists(open_operations.query_open_operation(OuterRef("pk"))))
    return rows.select_for_update(of=("self",), no_key=True, skip_locked=True).only(*_COLUMNS_TO_END)


# The columns that `_end_late` needs.
_COLUMNS_TO_END = ("status", "merchant", "merchant_order_id", "payment", "people", *states.DEADLINES.values())


def _end_late(status: str, checkouts: Sequence[Checkout], now: datetime) -> None:
    """Void held checkouts, or expire unpaid ones. Their deadline is recorded as the time at which they ended."""
    deadline = ColumnValue(states.DEADLINES[Status(status)])
    if status == Status.AUTHORIZED:
        Checkout.objects.move(
            checkouts, Status.VOIDED, PUMP, deadline, voided_at=deadline, void_reason=VoidReason.AUTH_EXPIRED
        )
        release_holds(checkouts, now, PUMP)
    else:
        Checkout.objects.move(checkouts, Status.EXPIRED, PUMP, deadline, expired_at=deadline)
    pledges.end_with_orders(checkouts, now)


def release_holds(checkouts: Sequence[Checkout], now: datetime, cause: Cause) -> None:
    """Plan a void of each checkout's hold, and emit `checkout.voided`.

    The pump repeats the void until the provider confirms it.
    """
    payments = [checkout.payment_id for checkout in checkouts if checkout.payment_id]
    planning.plan_operations(payments, Kind.VOID, now=now, cause=cause)
    wakeup.wake_after_commit(settling.FINISH_OPERATIONS)
    events.emit_voided(checkouts)
