"""Writes errors that a proof would miss if it only checked that our records agree with each other.

The errors are written into the records of a random test run. Only orders without disputes, bookings and refunds
from outside the service get errors. For other orders, it is not certain how much must still be charged to each
card.
"""

from collections.abc import Iterator

from django.db import transaction
from django.db.models import Q

from checkout.models import Checkout
from checkout.proof import ledger_proof
from checkout.states import Status
from payments.models import Booking, Discrepancy, Dispute, Movement, Operation
from tests.checkout.proof.tampering import BLIND_SPOTS, REFUND, tamper

SENT_TO_THE_LEAD, SHIFTED = (case.sql for case in BLIND_SPOTS[:2])
# If a discrepancy of one of these kinds is open, the proof does not require a planned refund.
OWED = (
    "outside_refund_failed",
    "owed_beyond_card",
    "refund_part_failed",
    "refund_returned",
    "share_not_reimbursed",
)
WITHDRAWN = (
    "UPDATE payments_operation SET state = 'failed', reason = 'withdrawn', ended_at = now()"
    f" WHERE state = 'planned' AND {REFUND}"
)


def missed(checkout: Checkout) -> list[str]:
    """Write each error into the records and undo it. Return the names of the errors that the proof missed."""
    return [name for name, sql in _fitting(checkout) if not _is_found(checkout, sql)]


def _fitting(checkout: Checkout) -> Iterator[tuple[str, str]]:
    """Yield the name and the SQL of each error that can be written into this checkout's records."""
    mine = {"checkout_uuid": checkout.pk}
    others = Operation.objects.filter(payment__checkout_uuid=checkout.pk, purpose=Operation.Purpose.OUTSIDE)
    if Dispute.objects.filter(**mine).exists() or Booking.objects.filter(**mine).exists() or others.exists():
        return
    planned = Operation.objects.filter(payment__checkout_uuid=checkout.pk, kind="refund", state="planned")
    reported = Discrepancy.objects.filter(kind__in=OWED, closed_at=None, subject__isnull=False).values(
        "subject"
    )
    is_reported = Q(payment__in=reported) | Q(payment__operations__in=reported) | Q(share_uuid__in=reported)
    if planned.exclude(is_reported).exists():
        yield f"nothing planned while {checkout.status}", WITHDRAWN
    parts = Movement.objects.filter(**mine, kind="refunded", operation__purpose="refund_part")
    cards = set(parts.values_list("payment", flat=True))
    is_returned = Movement.objects.filter(**mine, kind="refund_returned").exists()
    if checkout.status != Status.REFUNDED or is_returned:
        return
    if cards - {checkout.payment_id}:
        yield "a mate's refund on the lead's card", SENT_TO_THE_LEAD
    if len(cards) == 2 and checkout.payment_id in cards:
        yield "money shifted between cards", SHIFTED


def _is_found(checkout: Checkout, sql: str) -> bool:
    savepoint = transaction.savepoint()
    try:
        tamper(checkout, sql)
        return ledger_proof.find_breaches() != []
    finally:
        transaction.savepoint_rollback(savepoint)
