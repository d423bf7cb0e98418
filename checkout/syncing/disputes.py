"""Records the disputes of a payment as they are in the provider's books."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkout.models import NO_CLAIM
from checkout.states import ShareStatus, Status
from payments import disputes
from payments.discrepancies import kinds, reporting
from payments.models import Dispute
from payments.provider import DisputeRecord

if TYPE_CHECKING:
    from checkout.syncing.sync import Reading


def sync_dispute(reading: Reading, record: DisputeRecord) -> bool:
    """Record the current state of a dispute; return whether anything has changed.

    If the dispute is lost, the order's open pay links end. Rules dispute.booked, dispute.lost.
    """
    recorded = disputes.record_dispute(reading.payment, record, now=reading.now)
    if recorded is None:
        return False
    status, checkout = recorded.dispute.status, reading.checkout
    if status == Dispute.Status.OPEN != recorded.previous_status and checkout.status == Status.REFUNDING:
        reporting.report(kinds.DISPUTED_WHILE_REFUNDING, checkout.pk, merchant=checkout.merchant_id)
    if status == Dispute.Status.LOST != recorded.previous_status:
        links = checkout.payment_requests.filter(status=ShareStatus.OPEN)
        links.update(status=ShareStatus.CANCELLED, ended_at=reading.now, **NO_CLAIM)
    return recorded.has_changed
