"""Finds the outcomes of our refunds at Stripe. The metadata of a refund contains the id of its operation."""

from collections.abc import Iterator

import stripe
from stripe.params import RefundListParams

from payments.models import Operation, Payment
from payments.provider import Outcome, Verdict
from payments.providers.stripe import amounts, client, metadata

_VERDICTS = {
    "succeeded": Verdict.SUCCEEDED,
    "pending": Verdict.PENDING,
    "requires_action": Verdict.PENDING,
    "failed": Verdict.FAILED,
    "canceled": Verdict.FAILED,
}
FAILED_VERDICTS = (Verdict.FAILED,)


def refund_outcome(refund: stripe.Refund) -> Outcome:
    """Return the outcome of a refund. If it failed, Stripe's reason is returned unchanged."""
    verdict = _VERDICTS.get(refund.status or "", Verdict.UNKNOWN)
    reason = getattr(refund, "failure_reason", None) or "refused" if verdict == Verdict.FAILED else ""
    money = amounts.from_stripe_amount(refund.amount, refund.currency)
    return Outcome(verdict, reference=refund.id, reason=reason, amount=money)


def look_up(operation: Operation, *, seconds: float) -> Outcome:
    """Return the outcome of a refund. It is found by its id, or in the list of the payment's refunds.

    Raises stripe.StripeError.
    """
    payment = operation.payment
    stripe_client = client.client_for(payment.provider_account, seconds=seconds)
    if operation.reference:
        return refund_outcome(stripe_client.v1.refunds.retrieve(operation.reference))
    listed = list(list_refunds(payment, stripe_client))
    for refund in listed:
        if metadata.read_id(refund, metadata.OPERATION) == operation.pk:
            return refund_outcome(refund)
    return Outcome(Verdict.NOT_FOUND, is_vouched=_is_complete(listed, payment, seconds))


def list_refunds(payment: Payment, stripe_client: stripe.StripeClient) -> Iterator[stripe.Refund]:
    """Yield all refunds of a payment, including those that others made."""
    parameters: RefundListParams = {"payment_intent": payment.provider_reference, "limit": 100}
    yield from stripe_client.v1.refunds.list(parameters).auto_paging_iter()


def _is_complete(listed: list[stripe.Refund], payment: Payment, seconds: float) -> bool:
    """Return whether the list is complete: its sum must be the refunded amount that the charge reports."""
    charge = client.intent_of(payment, seconds=seconds).latest_charge
    refunded = sum(
        refund.amount for refund in listed if refund_outcome(refund).verdict not in FAILED_VERDICTS
    )
    return isinstance(charge, stripe.Charge) and charge.amount_refunded == refunded
