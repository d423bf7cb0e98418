"""Refunds that came back after they were settled: the refund reads `failed`, while the order stays refunded.

Every function must be called with the checkout locked.
"""

from datetime import datetime

from checkout.models import Checkout, Refund
from payments import discrepancies
from payments.cause import Cause
from payments.models import Operation, Payment
from payments.outside import bookings, returns
from payments.outside.returns import RefundStatus
from payments.provider import Record


def book(checkout: Checkout, answer: RefundStatus) -> None:
    """Book a refund part that came back, once, if the provider confirms it; its refund then reads `failed`.

    A refund that is under way goes on with its other parts, and reads `failed` when they have ended. A reimbursement
    belongs to no refund of the merchant. Rule refund.returned.
    """
    part = returns.book(answer)
    if part is None:
        return
    if part.purpose == Operation.Purpose.REFUND_PART:
        settled = Refund.objects.filter(pk=part.refund_of_part, status=Refund.Status.SETTLED)
        settled.update(status=Refund.Status.FAILED, failure_reason=part.reason)
    checkout.touch()


def book_outside(
    checkout: Checkout, record: Record, part: Operation | None, *, note: str, now: datetime, cause: Cause
) -> None:
    """Book a refund that was made at the provider; `part`, if it gives that again, came back and is made good by it.

    Raises AlreadyBooked.
    """
    payment = Payment.objects.get(pk=record.payment)
    bookings.refunded_outside(payment, record, part, note=note, now=now, cause=cause)
    if part is not None:
        make_good(checkout, part, note=note, now=now)


def make_good(checkout: Checkout, part: Operation, *, note: str, now: datetime) -> None:
    """Once all that came back has reached the payers, let the refund read `settled` and close its discrepancies."""
    if not returns.is_outstanding(part):
        for back in returns.of_part(part):
            discrepancies.close_resolved("refund_returned", back.pk, note=note, now=now)
    if (
        part.purpose == Operation.Purpose.REFUND_PART
        and returns.still_back(refund_uuid=part.refund_of_part) is None
    ):
        failed = Refund.objects.filter(pk=part.refund_of_part, settled_at__isnull=False)
        failed.update(status=Refund.Status.SETTLED, failure_reason=None)
    checkout.touch()
