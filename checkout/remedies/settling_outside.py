"""Remedies that book a refund as settled outside the service, or reverse such a booking.

An operator uses them if the card can no longer take the refund and the payer has got the money in another way.
"""

from uuid import UUID

from django.db import transaction

from checkout import settling
from checkout.models import Checkout
from checkout.remedies import outstanding_refund, status_check
from checkout.remedies.status_check import NotAllowed
from config.lib import clock
from payments import bookings, operations
from payments.cause import Cause
from payments.models import Booking
from payments.provider import CARD_CANNOT_TAKE_IT


def settle_outside(operation_uuid: UUID, *, note: str, cause: Cause) -> UUID:
    """Book that the payer got the amount of a failed or returned refund in another way, and settle the order.

    This is allowed only if the provider reports that the card could not take the refund. Returns the checkout's uuid.
    Raises NotAllowed.
    """
    operation = operations.read_operation(operation_uuid)
    outstanding_refund.check_refused(operation)
    status_check.sync(operation.payment_id)
    outcome = status_check.look_up(operation)
    if outcome.verdict not in status_check.REFUSED or outcome.reason not in CARD_CANNOT_TAKE_IT:
        answer = status_check.describe_answer(outcome)
        raise NotAllowed(
            f"{answer} A refund can be settled outside only if the provider says that the card cannot take it."
        )
    with transaction.atomic(durable=True):
        checkout, now = Checkout.objects.locked(operation.payment.checkout_uuid), clock.now()
        refund = operations.read_operation(operation_uuid)
        due = outstanding_refund.find_amount_due(checkout, refund, now)
        bookings.settle_outside(refund, due.amount, note=note, now=now, cause=cause)
        due.withdraw_planned(now)
        settling.settle(checkout, now, cause)
        checkout.touch()
    return checkout.pk


def reverse_booking(booking_uuid: UUID, *, note: str, cause: Cause) -> UUID:
    """Reverse the booking of a refund that was settled outside. The card is then owed the amount again.

    Returns the checkout's uuid. Raises NotAllowed, Booking.DoesNotExist.
    """
    booking = Booking.objects.get(pk=booking_uuid)
    status_check.sync(booking.payment_id)
    with transaction.atomic(durable=True):
        checkout, now = Checkout.objects.locked(booking.checkout_uuid), clock.now()
        booking = Booking.objects.select_related("payment", "operation__resends").get(pk=booking_uuid)
        is_settled = booking.kind == Booking.Kind.SETTLED_OUTSIDE and booking.reverses_id is None
        if not is_settled or Booking.objects.filter(reverses=booking).exists():
            raise NotAllowed("Only a booking of a refund settled outside can be taken back, and only once.")
        bookings.reverse(booking, note=note, now=now, cause=cause)
        settling.settle(checkout, now, cause)
        checkout.touch()
    return checkout.pk
