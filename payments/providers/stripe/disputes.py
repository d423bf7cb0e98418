"""Disputes at Stripe, which takes their money at once; an inquiry takes none and is not one yet."""

from collections.abc import Iterator
from datetime import UTC, datetime

import stripe
from stripe.params import DisputeListParams

from payments.models import Payment
from payments.provider import DisputeRecord, DisputeStatus, ProviderUnreachable
from payments.providers.stripe import amounts, client

_STATUSES = {
    "needs_response": DisputeStatus.OPEN,
    "under_review": DisputeStatus.OPEN,
    "won": DisputeStatus.WON,
    "lost": DisputeStatus.LOST,
}


def of_payment(payment: Payment) -> Iterator[DisputeRecord]:
    """Yield the disputes about a payment. Raises ProviderUnreachable."""
    if not payment.provider_reference:
        return
    asked: DisputeListParams = {"payment_intent": payment.provider_reference, "limit": 100}
    try:
        found = client.of(payment.provider_account, seconds=client.ASK_SECONDS).v1.disputes.list(asked)
        rows = list(found.auto_paging_iter())
    except stripe.StripeError as error:
        raise ProviderUnreachable from error
    yield from (_record(row) for row in rows if row.status in _STATUSES)


def _record(dispute: stripe.Dispute) -> DisputeRecord:
    due_by = dispute.evidence_details.due_by
    return DisputeRecord(
        reference=dispute.id,
        amount=amounts.ours(dispute.amount, dispute.currency),
        currency=dispute.currency.upper(),
        reason=dispute.reason,
        status=_STATUSES[dispute.status],
        opened_at=datetime.fromtimestamp(dispute.created, UTC),
        respond_by=datetime.fromtimestamp(due_by, UTC) if due_by else None,
    )
