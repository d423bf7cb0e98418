"""What becomes of a refund whose money came back after it was settled: it has failed, though the order stays refunded.

All of it belongs under the checkout's lock.
"""

from checkout.models import Checkout, Refund
from payments import returns
from payments.returns import Answer


def book(checkout: Checkout, answer: Answer) -> None:
    """Book what the provider confirms to have come back, once, and let the refund that it belongs to read `failed`.

    A refund that is under way goes on with its other parts, and reads `failed` when they have ended. Of what goes
    back to the lead for a mate the merchant's refunds know nothing.
    """
    part = returns.book(answer)
    if part is None:
        return
    if part.refund_uuid is not None:
        settled = Refund.objects.filter(pk=part.refund_uuid, status=Refund.Status.SETTLED)
        settled.update(status=Refund.Status.FAILED, failure_reason=part.reason)
    checkout.touch()
