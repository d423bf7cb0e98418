"""Reads Stripe's books about one payment: the current state of its charge, refunds and disputes."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import stripe
from stripe.params import DisputeListParams

from payments.models import Payment
from payments.provider import (
    Books,
    CaptureRecord,
    DisputeLine,
    DisputeRecord,
    DisputeStatus,
    ProviderUnreachable,
    RefundRecord,
    Verdict,
)
from payments.providers.stripe import amounts, client, metadata, refunds

# The dispute statuses in the API version that we use.
_STATUSES = {
    **dict.fromkeys(("warning_needs_response", "warning_under_review"), DisputeStatus.OPEN),
    **dict.fromkeys(("needs_response", "under_review"), DisputeStatus.OPEN),
    **dict.fromkeys(("appeal_needs_response", "appeal_under_review"), DisputeStatus.OPEN),
    "won": DisputeStatus.WON,
    "lost": DisputeStatus.LOST,
}
# If a dispute has one of these statuses, it has ended without a decision. Its balance lines show who has the money.
_UNDECIDED_ENDS = ("warning_closed", "prevented")


def read_books(payment: Payment) -> Books:
    """Return Stripe's books about a payment. Raises ProviderUnreachable.

    The charge is read last, so that a refund or dispute is never listed without its capture.
    """
    if not payment.provider_reference:
        return Books()  # a call that moves money is sent only after the PaymentIntent's id is committed
    stripe_client = client.client_for(payment.provider_account, seconds=client.ASK_SECONDS)
    try:
        disputes = [_dispute_record(row) for row in _disputes_of(payment, stripe_client)]
        returned = [_refund_record(row) for row in refunds.list_refunds(payment, stripe_client)]
        intent = client.intent_of(
            payment, seconds=client.ASK_SECONDS, expand="latest_charge.balance_transaction"
        )
    except stripe.StripeError as error:
        raise ProviderUnreachable from error
    is_held = intent.status == "requires_capture"
    return Books(is_held=is_held, capture=_capture_record(intent), refunds=returned, disputes=disputes)


def _disputes_of(payment: Payment, stripe_client: stripe.StripeClient) -> Iterator[stripe.Dispute]:
    parameters: DisputeListParams = {"payment_intent": payment.provider_reference, "limit": 100}
    yield from stripe_client.v1.disputes.list(parameters).auto_paging_iter()


def _capture_record(intent: stripe.PaymentIntent) -> CaptureRecord | None:
    charge = intent.latest_charge
    if not isinstance(charge, stripe.Charge) or not (charge.paid and charge.captured):
        return None
    line = charge.balance_transaction
    return CaptureRecord(
        reference=charge.id,
        amount=amounts.from_stripe_amount(charge.amount_captured, charge.currency),
        currency=charge.currency.upper(),
        at=_parse_moment(line.created if isinstance(line, stripe.BalanceTransaction) else charge.created),
    )


def _refund_record(refund: stripe.Refund) -> RefundRecord:
    """Return the record of a refund. A refund with an unknown status counts as pending."""
    outcome = refunds.refund_outcome(refund)
    verdict = Verdict.PENDING if outcome.verdict == Verdict.UNKNOWN else outcome.verdict
    return RefundRecord(
        reference=refund.id,
        amount=amounts.from_stripe_amount(refund.amount, refund.currency),
        currency=refund.currency.upper(),
        verdict=verdict,
        at=_parse_moment(refund.created),
        reason=outcome.reason,
        has_returned=getattr(refund, "failure_balance_transaction", None) is not None,
        operation=metadata.read_id(refund, metadata.OPERATION),
        refund=metadata.read_id(refund, metadata.REFUND),
        share=metadata.read_id(refund, metadata.SHARE),
    )


def _dispute_record(dispute: stripe.Dispute) -> DisputeRecord:
    lines = _dispute_lines(dispute)
    due_by = dispute.evidence_details.due_by
    status = _dispute_status(dispute.status, lines)
    return DisputeRecord(
        reference=dispute.id,
        amount=amounts.from_stripe_amount(dispute.amount, dispute.currency),
        currency=dispute.currency.upper(),
        reason=dispute.reason,
        status=status or DisputeStatus.OPEN,
        opened_at=_parse_moment(dispute.created),
        respond_by=_parse_moment(due_by) if due_by else None,
        lines=lines,
        unknown_status="" if status else dispute.status,
    )


def _dispute_status(status: str, lines: Sequence[DisputeLine]) -> DisputeStatus | None:
    """Return the status of a dispute, or None if this adapter does not know the status that Stripe reports."""
    if status not in _UNDECIDED_ENDS:
        return _STATUSES.get(status)
    balance = sum(-1 if line.is_back else 1 for line in lines)
    return DisputeStatus.LOST if balance > 0 else DisputeStatus.WON


def _dispute_lines(dispute: stripe.Dispute) -> list[DisputeLine]:
    """Return the balance lines that moved the disputed money, oldest first. Fees are excluded.

    If lines have the same second, a withdrawal comes before its reversal.
    """
    moved = (row for row in dispute.balance_transactions if row.amount and row.reporting_category != "fee")
    ordered = sorted(moved, key=lambda row: (row.created, row.amount > 0, row.id))
    return [
        DisputeLine(row.id, row.amount > 0, _parse_moment(row.created), _line_amount(row, dispute.currency))
        for row in ordered
    ]


def _line_amount(line: stripe.BalanceTransaction, currency: str) -> int | None:
    """Return the amount of a line in the dispute's currency. Return None if the balance has another currency.

    If a part of the payment was refunded before, a line can be smaller than the dispute.
    """
    return amounts.from_stripe_amount(abs(line.amount), currency) if line.currency == currency else None


def _parse_moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
