"""Writes and reverses bookings, which do not move money at the provider (rule money.booked).

Every function must be called with the checkout locked.
"""

from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from payments import ledger
from payments.cause import Cause
from payments.models import Booking, Operation, Payment, Posting

Kind: TypeAlias = Booking.Kind
Account: TypeAlias = Posting.Account


def settle_outside(refund: Operation, amount: int, *, note: str, now: datetime, cause: Cause) -> Booking:
    """Book that a payer received an amount in another way, because the card could not take the refund."""
    booking = Booking(
        kind=Kind.SETTLED_OUTSIDE,
        payment=refund.payment,
        operation=refund,
        share_uuid=(refund.resends or refund).share_uuid,
        amount=amount,
    )
    return _post_booking(booking, note=note, now=now, cause=cause)


def close_owed(
    payment: Payment, share_uuid: UUID, amount: int, *, note: str, now: datetime, cause: Cause
) -> Booking:
    """Book that the lead is no longer owed an amount for a share.

    `payment` is the payment whose card got this amount back through a refund or a dispute.
    """
    booking = Booking(kind=Kind.CLOSING, payment=payment, share_uuid=share_uuid, amount=amount)
    return _post_booking(booking, note=note, now=now, cause=cause)


def reverse(booking: Booking, *, note: str, now: datetime, cause: Cause) -> Booking:
    """Reverse a booking with a second booking. A constraint refuses to reverse the same booking twice."""
    reversal = Booking(
        kind=booking.kind,
        payment=booking.payment,
        operation=booking.operation,
        share_uuid=booking.share_uuid,
        amount=-booking.amount,
        reverses=booking,
    )
    return _post_booking(reversal, note=note, now=now, cause=cause)


def _post_booking(booking: Booking, *, note: str, now: datetime, cause: Cause) -> Booking:
    booking.checkout_uuid = booking.payment.checkout_uuid
    booking.note, booking.actor, booking.created_at = note, cause.actor, now
    booking.save(force_insert=True)
    ledger.post(booking.pk, booking.payment, _lines_of(booking))
    return booking


def _lines_of(booking: Booking) -> dict[Account, int]:
    if booking.kind == Kind.CLOSING:
        return {Account.LEAD: booking.amount, Account.MERCHANT: -booking.amount}
    bearer = Account.LEAD if booking.share_uuid else Account.MERCHANT
    return {Account.OUTSIDE: -booking.amount, bearer: booking.amount}
