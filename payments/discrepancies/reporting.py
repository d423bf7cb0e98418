"""Reports discrepancies, and closes discrepancies that are resolved.

For a new discrepancy, a row is written for the operators, and a mail is sent within a minute.

Rules money.discrepancy, money.discrepancy_kinds.
"""

from datetime import datetime
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Case, TextField, Value, When
from django.db.models.functions import Concat

from config.lib import clock
from payments.discrepancies import kinds
from payments.discrepancies.definitions import DiscrepancyKind
from payments.models import Discrepancy, Merchant, Operation

log = structlog.get_logger("payments.discrepancies")


def report(
    kind: DiscrepancyKind, subject: UUID | None, *, merchant: Merchant | UUID | None = None, **facts: object
) -> None:
    """Report a discrepancy about a subject, unless one of the same kind about this subject is already open."""
    merchant_uuid = merchant.pk if isinstance(merchant, Merchant) else merchant
    _open_discrepancy(kind, subject, {"merchant_id": merchant_uuid, "facts": facts})


def report_operation(
    operation: Operation, kind: DiscrepancyKind, *, subject: UUID | None = None, **facts: object
) -> None:
    """Report a discrepancy about an operation, unless one of the same kind about it is already open.

    If several operations have the same purpose, the caller passes the same `subject` for them, so that only the first
    is reported.
    """
    merchant_uuid = operation.payment.merchant_id
    _open_discrepancy(
        kind, subject or operation.pk, {"merchant_id": merchant_uuid, "operation": operation, "facts": facts}
    )


class AlreadyClosed(Exception):
    """The discrepancy is already closed."""


def close_discrepancy(discrepancy_uuid: UUID, *, note: str, author: str) -> Discrepancy:
    """Close a discrepancy that a person has resolved. If it occurs again, it is reported again.

    The note is added after earlier notes, with its author and the time. Raises Discrepancy.DoesNotExist,
    AlreadyClosed.
    """
    with transaction.atomic(durable=True):
        discrepancy, now = _lock_open(discrepancy_uuid), clock.now()
        discrepancy.closed_at = now
        _append_note(discrepancy, note, author, now)
    return discrepancy


def add_note(discrepancy_uuid: UUID, *, note: str, author: str) -> Discrepancy:
    """Add a person's note to a discrepancy, as `close_discrepancy` does. The discrepancy stays open."""
    with transaction.atomic(durable=True):
        discrepancy = _lock_open(discrepancy_uuid)
        _append_note(discrepancy, note, author, clock.now())
    return discrepancy


def _lock_open(discrepancy_uuid: UUID) -> Discrepancy:
    discrepancy = Discrepancy.objects.select_for_update(no_key=True).get(pk=discrepancy_uuid)
    if discrepancy.closed_at is not None:
        raise AlreadyClosed
    return discrepancy


def _append_note(discrepancy: Discrepancy, note: str, author: str, now: datetime) -> None:
    signed = f"{now.day} {now:%b %Y %H:%M} UTC, {author}: {note}"
    discrepancy.note = f"{discrepancy.note}\n{signed}".strip()
    discrepancy.save(update_fields=["closed_at", "note"])


def close_resolved(kind: DiscrepancyKind, subject: UUID | None, *, note: str, now: datetime) -> bool:
    """Close the open discrepancy of this kind about a subject, because its cause no longer exists (rule money.settled).

    The note is added after the notes that people wrote. Return whether a discrepancy was open.
    """
    gap = Case(When(note="", then=Value("")), default=Value("\n"))
    noted = Concat("note", gap, Value(note), output_field=TextField())
    rows = Discrepancy.objects.filter(kind=kind.name, subject=subject, closed_at=None)
    return bool(rows.update(closed_at=now, note=noted))


def _open_discrepancy(kind: DiscrepancyKind, subject: UUID | None, fields: dict[str, object]) -> None:
    if kinds.TABLE.get(kind.name) is not kind:
        raise ValueError(f"The table of kinds does not have {kind.name}.")
    rows = Discrepancy.objects
    _, is_new = rows.get_or_create(kind=kind.name, subject=subject, closed_at=None, defaults=fields)
    if is_new:
        log.error("discrepancy", kind=kind.name, subject=str(subject))
