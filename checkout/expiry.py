"""Deadlines: a held checkout lapses, an unpaid one expires (rules lapse.void, expiry.end)."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from checkout import events, given_up_cards, settling, share_outcomes, states
from checkout.models import Checkout, Own
from checkout.states import Status, VoidReason
from config.lib import clock, wakeup
from config.lib.prepared import Prepared
from payments import due, open_operations, opening, planning
from payments.cause import PUMP, Cause
from payments.models import Merchant, Operation

PAGE = 200  # the longest page of a list
JUST_NOW = timedelta(seconds=1)  # a tick: what ended earlier than that the run before it has seen
Kind = Operation.Kind


def expire_if_due(checkout: Checkout, now: datetime) -> bool:
    """Lapse or expire a checkout whose deadline has passed, unless a card operation is open; return whether it moved.

    Verbs and reads call this first. An authorization that can be given up, since the bank has been silent
    for a minute, does not keep an unpaid checkout alive. Must be called with the checkout locked.
    Rules lapse.whoever, expiry.open_operation.
    """
    if not (checkout.has_lapsed(now) or checkout.has_expired(now)):
        return False
    found = open_operations.open_operation(checkout.pk)
    if found is not None and not given_up_cards.abandon_if_silent(checkout, found, now):
        return False
    _end(checkout.status, [checkout], now)
    return True


def expire_one_if_due(checkout_uuid: UUID) -> None:
    """Lock a checkout and call `expire_if_due` on it; in a closed database it is read as it stands."""
    if opening.is_closed():
        return
    with transaction.atomic(durable=True):
        expire_if_due(Checkout.objects.locked(checkout_uuid), clock.now())


def expire_late_of(merchant: Merchant) -> None:
    """Lapse or expire what is late of a merchant's, as `expire_one_if_due` does, one page of it at most.

    For a list that what ends by it comes into: no row that matches already would lead there.
    """
    for late in _LATE_OF.all(merchant.pk):
        expire_one_if_due(late.pk)


def _late_of(merchant: Any) -> QuerySet[Checkout]:
    held = Q(status=Status.AUTHORIZED, capture_before__lte=Now())
    unpaid = Q(status=Status.CREATED, payable_until__lte=Now())
    rows = Checkout.objects.filter(held | unpaid, merchant=merchant)
    return not_held_up(rows).only("pk")[:PAGE]


_LATE_OF = Prepared(_late_of, UUID)


def not_held_up(rows: QuerySet[Checkout]) -> QuerySet[Checkout]:
    """Leave out what an open card operation holds up; one about which a bank is silent for a minute may not."""
    silent = Q(kind=Kind.AUTHORIZE, created_at__lte=Now() - due.PATIENT_FOR)
    return rows.exclude(Exists(open_operations.open_on(OuterRef("pk")).exclude(silent)))


def oldest(status: Status) -> datetime | None:
    """Return the oldest deadline in this status that has passed and not been acted on, None if there is none.

    Checkouts with an open card operation are left out: they wait for that.
    """
    late = Checkout.objects.late(status).exclude(Exists(open_operations.open_on(OuterRef("pk"))))
    return late.values_list(states.DEADLINES[status], flat=True).first()


def seconds_to_next_lapse() -> float | None:
    """Return in how many seconds the next hold ends, by the database's clock; None where none is held.

    Below 0 if it ended JUST_NOW, so after the last batch had looked, and no card operation holds it up.
    """
    held = Checkout.objects.filter(status=Status.AUTHORIZED, capture_before__gt=Now() - JUST_NOW)
    free = held.exclude(Exists(open_operations.open_on(OuterRef("pk")))).order_by("capture_before")
    left: timedelta | None = free.values_list(F("capture_before") - Now(), flat=True).first()
    return None if left is None else left.total_seconds()


def expire_due(status: Status, limit: int) -> int:
    """Lapse or expire up to `limit` late checkouts of a status in one transaction; return how many moved.

    Locked checkouts, and those with an open card operation, are left out. Rule lapse.together.
    """
    with transaction.atomic(durable=True):
        late = {checkout.pk: checkout for checkout in _late(status, limit).all()}
        if not late:
            return 0  # as nearly always: no further query is built
        # The statement that locked them may not have seen an operation that began while it ran.
        for operation in open_operations.open_on_any(late):
            late.pop(operation.payment.subject, None)
        if late:
            _end(status, list(late.values()), clock.now())
    return len(late)


@cache
def _late(status: Status, limit: int) -> Prepared[Checkout]:
    rows = Checkout.objects.late(status).exclude(Exists(open_operations.open_on(OuterRef("pk"))))
    locked = rows.select_for_update(of=("self",), skip_locked=True).only(*_ENDING)
    return Prepared(lambda: locked[:limit])


# The columns that `_end` needs.
_ENDING = ("status", "merchant", "merchant_order_id", "payment", "people", *states.DEADLINES.values())


def _end(status: str, checkouts: Sequence[Checkout], now: datetime) -> None:
    """Void held checkouts, or expire unpaid ones, each as of its own deadline."""
    deadline = Own(states.DEADLINES[Status(status)])
    if status == Status.AUTHORIZED:
        Checkout.objects.move(
            checkouts, Status.VOIDED, PUMP, deadline, voided_at=deadline, void_reason=VoidReason.AUTH_EXPIRED
        )
        release(checkouts, now, PUMP)
    else:
        Checkout.objects.move(checkouts, Status.EXPIRED, PUMP, deadline, expired_at=deadline)
    share_outcomes.end_drafts(checkouts, now)


def release(checkouts: Sequence[Checkout], now: datetime, cause: Cause) -> None:
    """Plan a void of each checkout's hold, which the pump repeats until it is confirmed, and tell the merchants."""
    payments = [checkout.payment_id for checkout in checkouts if checkout.payment_id]
    planning.plan(payments, Kind.VOID, now=now, cause=cause)
    wakeup.after_commit(settling.FINISH_OPERATIONS)
    events.voided(checkouts)
