"""Bookings: a payment's money that moved by no operation of ours, booked by an operator, once.

Every function must be called with the checkout locked.
"""

from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from django.db.models import Sum

from config.lib.prepared import Prepared
from payments import ledger
from payments.cause import Cause
from payments.models import Booking, Operation, Payment, Posting
from payments.provider import Record

Kind: TypeAlias = Booking.Kind
Account: TypeAlias = Posting.Account


class AlreadyBooked(Exception):
    """The provider's record is booked already."""


def settle_otherwise(part: Operation, *, note: str, now: datetime, cause: Cause) -> Booking:
    """Book that a refund part or a reimbursement has reached the payer by another way than the card."""
    booking = Booking(
        kind=Kind.SETTLED_OTHERWISE,
        payment=part.payment,
        operation=part,
        account=Account.RETURNED if part.returned_as else part.account,
        amount=owed(part),
    )
    return _post(booking, note=note, now=now, cause=cause)


def refunded_outside(
    payment: Payment, record: Record, part: Operation | None, *, note: str, now: datetime, cause: Cause
) -> Booking:
    """Book a refund that was made at the provider, at the merchant's expense like any other. Raises AlreadyBooked.

    One that gives again what came back of `part` costs the merchant nothing more: that part was at their expense.
    """
    if Booking.objects.filter(reference=record.key).exists():
        raise AlreadyBooked
    booking = Booking(
        kind=Kind.REFUNDED_OUTSIDE,
        payment=payment,
        operation=part,
        reference=record.key,
        account=Account.RETURNED if part else Account.MERCHANT,
        amount=record.amount,
    )
    return _post(booking, note=note, now=now, cause=cause)


def owed(part: Operation) -> int:
    """Return how much of a part its payer has not got, in minor units: no more than is left of a refund part's card.

    What is owed to the lead for a share, and what came back, stays owed whole, whatever else its card has got.
    """
    is_whole = part.purpose == Operation.Purpose.REIMBURSEMENT or part.returned_as is not None
    if is_whole or part.account == Account.RETURNED:
        return part.amount
    return min(part.amount, left(part.payment))


def given_back(payment: Payment) -> int:
    """Return how much of a payment our refunds and bookings have given back, in minor units."""
    refunds = payment.operations.filter(
        kind=Operation.Kind.REFUND, state=Operation.State.SUCCEEDED, returned_as=None
    )
    return sum(rows.aggregate(sum=Sum("amount"))["sum"] or 0 for rows in (refunds, payment.bookings.all()))


def left(payment: Payment) -> int:
    """Return how much of a payment its card has not got back, in minor units: no refund can give back more."""
    return payment.amount - given_back(payment)


def given_back_outside(payment_uuid: UUID) -> int:
    """Return how much less a refund gives back of a payment, in minor units, as it was given in the dashboard."""
    return sum(booking.amount for booking in _REFUNDED_OUTSIDE.all(payment_uuid) if booking.lessens_refund)


_REFUNDED_OUTSIDE = Prepared(
    lambda payment: Booking.objects.filter(payment=payment, kind=Kind.REFUNDED_OUTSIDE).only(
        "amount", "kind", "account"
    ),
    UUID,
)


def _post(booking: Booking, *, note: str, now: datetime, cause: Cause) -> Booking:
    """Save and post a booking: the money leaves `provider` by `outside`, and its account bears it."""
    booking.checkout_uuid = booking.payment.checkout_uuid
    booking.note, booking.actor, booking.created_at = note, cause.actor, now
    booking.save(force_insert=True)
    account, amount = Account(booking.account), booking.amount
    ledger.post(booking.pk, booking.payment, {Account.PROVIDER: -amount, Account.OUTSIDE: amount})
    ledger.post(booking.borne_as, booking.payment, {Account.OUTSIDE: -amount, account: amount})
    return booking


def is_closed(part: Operation) -> bool:
    """Whether a refund part or a reimbursement has been settled otherwise, by any operation that attempted it."""
    like = {"operation__refund_uuid": part.refund_uuid, "operation__share_uuid": part.share_uuid}
    return Booking.objects.filter(payment=part.payment_id, **like).exists()


def closed(refund_uuid: UUID) -> set[UUID]:
    """Return the payments whose part of this refund has been settled otherwise."""
    rows = Booking.objects.filter(operation__refund_uuid=refund_uuid)
    return set(rows.values_list("payment", flat=True))
