"""What becomes of a refund whose money came back after it was settled: it has failed, though the order stays refunded.

All of it belongs under the checkout's lock.
"""

from datetime import datetime

from checkout.models import Checkout, Refund
from payments import discrepancies
from payments.models import Operation
from payments.outside import returns
from payments.outside.returns import RefundStatus


def book(checkout: Checkout, answer: RefundStatus) -> None:
    """Book what the provider confirms to have come back, once, and let the refund that it belongs to read `failed`.

    A refund that is under way goes on with its other parts, and reads `failed` when they have ended. Of what goes
    back to the lead for a mate the merchant's refunds know nothing. Rule refund.returned.
    """
    part = returns.book(answer)
    if part is None:
        return
    if part.purpose == Operation.Purpose.REFUND_PART:
        settled = Refund.objects.filter(pk=part.refund_of_part, status=Refund.Status.SETTLED)
        settled.update(status=Refund.Status.FAILED, failure_reason=part.reason)
    checkout.touch()


def make_good(checkout: Checkout, part: Operation, *, note: str, now: datetime) -> None:
    """Let the refund read `settled` once all that came back of it has reached the payers; nobody need look any more."""
    if not returns.is_outstanding(part):
        for back in returns.of_part(part):
            discrepancies.settle("refund_returned", back.pk, note=note, now=now)
    if part.purpose == Operation.Purpose.REFUND_PART and returns.still_back(part.refund_of_part) is None:
        failed = Refund.objects.filter(pk=part.refund_of_part, settled_at__isnull=False)
        failed.update(status=Refund.Status.SETTLED, failure_reason=None)
    checkout.touch()
