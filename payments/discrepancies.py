"""What should not be, left for a person: a row and, within a minute, a mail to the operators.

Rule money.discrepancy.
"""

from datetime import datetime
from uuid import UUID

import structlog
from django.db import transaction

from config.lib import clock
from payments.models import Discrepancy, Merchant, Operation

log = structlog.get_logger("payments.discrepancies")


def report(
    kind: str, subject: UUID | None, *, merchant: Merchant | UUID | None = None, **facts: object
) -> None:
    """Leave a discrepancy about a subject, once while one of its kind is open."""
    merchant_uuid = merchant.pk if isinstance(merchant, Merchant) else merchant
    _leave(kind, subject, {"merchant_id": merchant_uuid, "facts": facts})


def report_operation(
    operation: Operation, kind: str, *, subject: UUID | None = None, **facts: object
) -> None:
    """Leave a discrepancy about an operation, once while one of its kind is open.

    With `subject`, what is repeated under further operations is told once for all of them.
    """
    merchant_uuid = operation.payment.merchant_id
    _leave(
        kind, subject or operation.pk, {"merchant_id": merchant_uuid, "operation": operation, "facts": facts}
    )


class AlreadyClosed(Exception):
    """Somebody has closed it before."""


def close(discrepancy_uuid: UUID, *, note: str) -> Discrepancy:
    """Close a discrepancy that a person has set right; what comes again is then told again.

    The note goes behind what was noted before. Raises Discrepancy.DoesNotExist, AlreadyClosed.
    """
    with transaction.atomic():
        found = Discrepancy.objects.select_for_update().get(pk=discrepancy_uuid)
        if found.closed_at is not None:
            raise AlreadyClosed
        found.closed_at = clock.now()
        found.note = f"{found.note}\n{note}".strip()
        found.save(update_fields=["closed_at", "note"])
    return found


def settle(kind: str, subject: UUID, *, note: str, now: datetime) -> None:
    """Close what is open of a kind about a subject: what it waited for has come of itself (rule money.settled)."""
    Discrepancy.objects.filter(kind=kind, subject=subject, closed_at=None).update(closed_at=now, note=note)


def _leave(kind: str, subject: UUID | None, fields: dict[str, object]) -> None:
    _, is_new = Discrepancy.objects.get_or_create(kind=kind, subject=subject, closed_at=None, defaults=fields)
    if is_new:
        log.error("discrepancy", kind=kind, subject=str(subject))
