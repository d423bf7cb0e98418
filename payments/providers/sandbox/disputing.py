"""Disputes at the bank: a payer takes the money of a charge back, until it is decided who gets it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from config.lib import clock
from payments.provider import DisputeRecord, DisputeStatus
from payments.providers.sandbox.models import BankNotification, Charge, Dispute

TIME_TO_RESPOND = timedelta(days=7)


def begin(charge: Charge, *, seconds: float = 0, reason: str = "fraudulent") -> None:
    """Let the payer dispute the whole of a charge, `seconds` from now."""
    opens_at = clock.now() + timedelta(seconds=seconds)
    respond_by = opens_at + TIME_TO_RESPOND
    Dispute.objects.create(
        charge=charge, amount=charge.amount, reason=reason, opens_at=opens_at, respond_by=respond_by
    )


def dispute(*, payment: UUID, reason: str = "fraudulent") -> None:
    """Let the payer dispute a payment now."""
    begin(Charge.objects.get(payment=payment), reason=reason)


def decide(*, payment: UUID, is_won: bool) -> None:
    """Decide the open dispute of a payment, for the merchant or for the payer, and notify the caller."""
    with transaction.atomic():
        found = Dispute.objects.select_for_update().get(
            charge__payment=payment, status=Dispute.Status.OPEN, opens_at__lte=Now()
        )
        found.status = Dispute.Status.WON if is_won else Dispute.Status.LOST
        found.decided_at = clock.now()
        found.save(update_fields=["status", "decided_at"])
        _notify(found)


def tell_due(payments: Sequence[UUID] | None = None) -> None:
    """Notify the caller of the disputes whose time has come; with `payments`, of theirs, whoever is at it too."""
    due = Dispute.objects.filter(is_told=False, opens_at__lte=Now())
    with transaction.atomic():
        if payments is None:
            found = due.select_for_update(skip_locked=True)
        else:
            found = due.filter(charge__payment__in=payments).select_for_update(of=("self",))
        for dispute in found:
            _notify(dispute)


def holds_back(charge: Charge) -> bool:
    """Whether a dispute of the charge is open or lost, so that nothing more is given back."""
    return _opened(charge.payment).exclude(status=Dispute.Status.WON).exists()


def disputes(*, payment: UUID) -> Sequence[DisputeRecord]:
    """Return a payment's disputes, the oldest first."""
    return [_record(row) for row in _opened(payment).select_related("charge").order_by("opens_at")]


def _opened(payment: UUID) -> QuerySet[Dispute]:
    return Dispute.objects.filter(charge__payment=payment, opens_at__lte=Now())


def _record(row: Dispute) -> DisputeRecord:
    return DisputeRecord(
        reference=str(row.pk),
        amount=row.amount,
        currency=row.charge.currency,
        reason=row.reason,
        status=DisputeStatus(row.status),
        opened_at=row.opens_at,
        respond_by=row.respond_by,
    )


def disputed(*, since: datetime) -> list[UUID]:
    """Return the payments with a dispute that was opened or decided after `since`."""
    rows = Dispute.objects.filter(Q(opens_at__gte=since) | Q(decided_at__gte=since), opens_at__lte=Now())
    return list(rows.values_list("charge__payment", flat=True))


def _notify(found: Dispute) -> None:
    found.is_told = True
    found.save(update_fields=["is_told"])
    BankNotification.objects.create(dispute=found, verdict=found.status, due_at=clock.now())
