"""Opens and decides disputes at the bank. A payer takes back the money of a charge until the dispute is decided."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from config.lib import clock
from payments.provider import DisputeLine, DisputeRecord, DisputeStatus
from payments.providers.sandbox.models import BankNotification, Charge, Dispute

TIME_TO_RESPOND = timedelta(days=7)


def open_dispute(charge: Charge, *, seconds: float = 0, amount: int | None = None, **facts: Any) -> Dispute:
    """Create a dispute that the payer opens `seconds` from now. If `amount` is None, it is about the whole charge."""
    opens_at = clock.now() + timedelta(seconds=seconds)
    facts = {"reason": "fraudulent", "respond_by": opens_at + TIME_TO_RESPOND} | facts
    return Dispute.objects.create(charge=charge, amount=amount or charge.amount, opens_at=opens_at, **facts)


def dispute_payment(
    *, payment: UUID, reason: str = "fraudulent", amount: int | None = None, is_inquiry: bool = False
) -> str:
    """Open a dispute or an inquiry about a payment now. Return its reference."""
    charge = Charge.objects.get(payment=payment)
    return str(open_dispute(charge, amount=amount, reason=reason, is_inquiry=is_inquiry).pk)


def decide_dispute(*, payment: UUID, is_won: bool, reference: str = "") -> None:
    """Decide a dispute for the merchant or for the payer, move its money, and notify the caller.

    Without a reference, the payment's open dispute is decided, or else the newest one. If the dispute was already
    decided, this is the decision on an appeal.
    """
    with transaction.atomic(durable=True):
        rows = _disputes_of(payment).select_for_update(of=("self",), no_key=True)
        named = [row for row in rows if reference in ("", str(row.pk))]
        found = max(named, key=lambda row: (row.status == Dispute.Status.OPEN, row.opens_at))
        found.status = Dispute.Status.WON if is_won else Dispute.Status.LOST
        found.decided_at = clock.now()
        if found.has_taken == is_won:
            found.moved_at.append(found.decided_at)
        found.save(update_fields=["status", "decided_at", "moved_at"])
        _queue_notification(found)


def notify_of_opened(payments: Sequence[UUID] | None = None) -> None:
    """Notify the caller of each dispute that has just been opened.

    If `payments` is not None, only disputes about these payments are included. The function then also waits for other
    processes that notify the caller at the same time.
    """
    due = Dispute.objects.filter(is_reported=False, opens_at__lte=Now())
    with transaction.atomic(durable=True):
        if payments is None:
            found = due.select_for_update(no_key=True, skip_locked=True)
        else:
            found = due.filter(charge__payment__in=payments).select_for_update(of=("self",), no_key=True)
        for dispute in found:
            _queue_notification(dispute)


def disputed_amount(charge: Charge) -> int:
    """Return how much of a charge cannot be refunded because of disputes, in minor units.

    This is the whole charge while a dispute is open and its money is withdrawn.
    """
    found = [row for row in _disputes_of(charge.payment) if row.has_taken]
    is_open = any(row.status == Dispute.Status.OPEN for row in found)
    return charge.amount if is_open else sum(row.amount for row in found)


def dispute_records(*, payment: UUID) -> Sequence[DisputeRecord]:
    """Return a payment's disputes, oldest first."""
    return [
        _dispute_record(row) for row in _disputes_of(payment).select_related("charge").order_by("opens_at")
    ]


def _disputes_of(payment: UUID) -> QuerySet[Dispute]:
    return Dispute.objects.filter(charge__payment=payment, opens_at__lte=Now())


def _dispute_record(row: Dispute) -> DisputeRecord:
    return DisputeRecord(
        reference=str(row.pk),
        amount=row.amount,
        currency=row.charge.currency,
        reason=row.reason,
        status=DisputeStatus(row.status),
        opened_at=row.opens_at,
        respond_by=row.respond_by,
        lines=[
            DisputeLine(f"{row.pk}:{number}", is_back=number % 2 == 0, at=at)
            for number, at in enumerate(row.moves, start=1)
        ],
    )


def disputed_payments(*, since: datetime) -> list[UUID]:
    """Return the payments for which a dispute was opened or decided since `since`."""
    rows = Dispute.objects.filter(Q(opens_at__gte=since) | Q(decided_at__gte=since), opens_at__lte=Now())
    return list(rows.values_list("charge__payment", flat=True))


def _queue_notification(dispute: Dispute) -> None:
    dispute.is_reported = True
    dispute.save(update_fields=["is_reported"])
    BankNotification.objects.create(dispute=dispute, verdict=dispute.status, due_at=clock.now())
