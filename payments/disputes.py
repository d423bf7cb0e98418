"""Disputes: booked when the provider's look-up confirms them, and decided, once each (rule dispute.booked).

Functions that book must be called with the checkout locked.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, Max, OuterRef, QuerySet, Sum
from uuid_utils.compat import uuid7

from config.lib import clock
from config.lib.prepared import Prepared
from payments import discrepancies, ledger, provider, safe_answers
from payments.models import Dispute, Operation, Payment, Posting
from payments.provider import DisputeRecord, DisputeStatus

Status = Dispute.Status
Account = Posting.Account
TAKEN = (Payment.Status.CAPTURED, Payment.Status.REFUNDED)


def ask(payment_uuid: UUID) -> Sequence[DisputeRecord]:
    """Ask the provider for a payment's disputes, with no transaction open. Raises ProviderUnreachable."""
    payment = Payment.objects.get(pk=payment_uuid)
    return list(safe_answers.disputes(provider.current().disputes(payment), now=clock.now()))


def standing(checkout_uuid: UUID) -> Dispute | None:
    """Return a dispute on a card of the checkout that is open, or else lost: either one rules out refunds."""
    return _STANDING.first(checkout_uuid)


def standing_on(checkout_uuid: UUID | OuterRef) -> QuerySet[Dispute]:
    """Return the dispute that `standing` means, as a query."""
    rows = Dispute.objects.filter(checkout_uuid=checkout_uuid, status__in=Dispute.STANDING)
    return rows.order_by("-status", "created_at")[:1]


_STANDING = Prepared(standing_on, UUID)


def with_disputed(rows: QuerySet[Any], *, checkout: str = "pk") -> QuerySet[Any, Any]:
    """Add `is_disputed` to rows: whether a dispute stands on the checkout that a column names."""
    found: QuerySet[Any, Any] = rows.annotate(is_disputed=Exists(standing_on(OuterRef(checkout))))
    return found


def standing_of(row: Any) -> Dispute | None:
    """Return it for a checkout; of one `with_disputed` that had none when it was read, nobody is asked."""
    return standing(row.pk) if getattr(row, "is_disputed", True) else None


def stands_on(payment_uuid: UUID) -> bool:
    """Whether a dispute on this one payment is open or lost."""
    return Dispute.objects.filter(payment=payment_uuid, status__in=Dispute.STANDING).exists()


def open_on(checkout_uuid: UUID | OuterRef) -> QuerySet[Dispute]:
    """Return the open disputes on cards of the checkout."""
    return Dispute.objects.filter(checkout_uuid=checkout_uuid, status=Status.OPEN)


def is_open(checkout_uuid: UUID) -> bool:
    """Whether a dispute on a card of the checkout is open."""
    return open_on(checkout_uuid).exists()


def is_lost(checkout_uuid: UUID) -> bool:
    """Whether a dispute on a card of the checkout is lost: its payer has got the money back."""
    return Dispute.objects.filter(checkout_uuid=checkout_uuid, status=Status.LOST).exists()


def lost_on(payment_uuid: UUID | None) -> int:
    """Return how much of a payment lost disputes have given back to its payer, in minor units."""
    return given_back(payment_uuid)[0]


def given_back(payment_uuid: UUID | None) -> tuple[int, datetime | None]:
    """Return it with when the last of them was lost, None if none was."""
    lost = Dispute.objects.filter(payment=payment_uuid, status=Status.LOST)
    found = lost.aggregate(sum=Sum("amount"), latest=Max("closed_at"))
    return found["sum"] or 0, found["latest"]


def book(payment: Payment, told: DisputeRecord, *, now: datetime) -> tuple[Dispute | None, bool]:
    """Book a dispute that the provider has confirmed; return our row of it, and whether it is new.

    The row is None, and a discrepancy reported, if the money was never taken or amount or currency do not fit.
    """
    found = Dispute.objects.filter(payment=payment, reference=told.reference).first()
    if found is not None:
        return found, False
    if not _fits(payment, told):
        facts = {"reference": told.reference, "amount": told.amount, "currency": told.currency}
        facts["status"] = payment.status
        discrepancies.report("dispute_of_another_amount", payment.pk, merchant=payment.merchant_id, **facts)
        return None, False
    dispute = Dispute.objects.create(
        payment=payment,
        checkout_uuid=payment.checkout_uuid,
        reference=told.reference,
        amount=told.amount,
        reason=told.reason,
        opened_at=told.opened_at,
        respond_by=told.respond_by,
        created_at=now,
    )
    ledger.post(dispute.pk, payment, {Account.PROVIDER: -dispute.amount, Account.DISPUTED: dispute.amount})
    _report(dispute, "disputed")
    return dispute, True


def keep_term(dispute: Dispute, told: DisputeRecord) -> bool:
    """Keep until when evidence may be sent, as the provider says it now; return whether that is another time."""
    if dispute.respond_by == told.respond_by:
        return False
    dispute.respond_by = told.respond_by
    dispute.save(update_fields=["respond_by"])
    return True


def _fits(payment: Payment, told: DisputeRecord) -> bool:
    is_ours = payment.status in TAKEN and told.currency == payment.currency
    return is_ours and 0 < told.amount <= payment.amount


def decide(dispute: Dispute, status: DisputeStatus, *, now: datetime) -> None:
    """Book the decision of an open dispute. Won: the provider owes us the money again. Lost: the merchant bears it."""
    dispute.status, dispute.closed_at, dispute.decided_as = Status(status), now, uuid7()
    dispute.save(update_fields=["status", "closed_at", "decided_as"])
    is_won = dispute.status == Status.WON
    whose = Account.PROVIDER if is_won else Account.MERCHANT
    ledger.post(
        dispute.decided_as, dispute.payment, {Account.DISPUTED: -dispute.amount, whose: dispute.amount}
    )
    discrepancies.close_resolved("disputed", dispute.pk, note=f"It was {status}.", now=now)
    if not is_won:
        _report(dispute, "dispute_lost")


def close_owed(payment_uuid: UUID | None) -> None:
    """Book that what a mate has paid is no longer owed to the lead, but covers the merchant's loss.

    A lost dispute has given the same money to the lead, or to the mate, at the merchant's expense.
    """
    captures = Operation.objects.select_related("payment").filter(payment=payment_uuid)
    capture = captures.get(kind=Operation.Kind.CAPTURE, state=Operation.State.SUCCEEDED)
    capture.closed_as = uuid7()
    capture.save(update_fields=["closed_as"])
    lines = {Account.LEAD: capture.amount, Account.MERCHANT: -capture.amount}
    ledger.post(capture.closed_as, capture.payment, lines)


def contradicts(dispute: Dispute, told: DisputeRecord) -> bool:
    """Whether the provider reverses a decision that we have booked, which is then reported."""
    if dispute.status in (Status.OPEN, told.status):
        return False
    _report(dispute, "dispute_decided_anew", theirs=told.status.value)
    return True


def _report(dispute: Dispute, kind: str, **facts: str) -> None:
    respond_by = dispute.respond_by.isoformat() if dispute.respond_by else None
    discrepancies.report(
        kind,
        dispute.pk,
        merchant=dispute.payment.merchant_id,
        checkout=str(dispute.checkout_uuid),
        reference=dispute.reference,
        amount=dispute.amount,
        currency=dispute.payment.currency,
        respond_by=respond_by,
        **facts,
    )
