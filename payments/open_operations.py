"""Open operations: the card operation that holds up any other on the same checkout or share."""

from collections.abc import Iterable
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import CharField, F, FilteredRelation, Func, OuterRef, Q, QuerySet

from config.lib.prepared import Prepared
from payments import due
from payments.models import Operation, Payment


def open_on(subject: UUID | OuterRef) -> QuerySet[Operation]:
    """Return the open card operation of a subject's live payment, if there is one.

    Operations on a card that was given up and reimbursements do not count: they hold nobody up.
    """
    return _open(payment__subject=subject)


def open_on_any(subjects: Iterable[UUID]) -> QuerySet[Operation]:
    """Return the open card operations of all these subjects, with their payments."""
    return _open(payment__subject__in=list(subjects)).select_related("payment")


def _open(**of: Any) -> QuerySet[Operation]:
    return Operation.objects.filter(
        due.is_open(),
        ~Q(purpose=Operation.Purpose.REIMBURSEMENT),
        payment__status__in=Payment.LIVE,
        payment__abandoned_at=None,
        **of,
    )


_OPEN_KIND = """(
    SELECT o.kind FROM payments_operation o JOIN payments_payment p ON p.id = o.payment_id
    WHERE p.subject = {subject} AND p.status IN ({live}) AND p.abandoned_at IS NULL
      AND {open} AND o.purpose <> 'reimbursement' LIMIT 1)"""


def open_kind_of(subject: str) -> Func:
    """The kind of what `open_on` finds for a column's subject, as SQL that needs no building for each query."""
    live = ", ".join(f"'{status}'" for status in Payment.LIVE)
    template = _OPEN_KIND.replace("{subject}", subject).replace("{live}", live)
    template = template.replace("{open}", due.is_open_sql("o"))
    return Func(template=template, output_field=CharField())


class Live(NamedTuple):
    """A subject's live payment, with the id and kind of the operation that is open on it, if any."""

    payment: Payment
    open_uuid: UUID | None
    open_kind: str | None


def live_payment(subject: UUID) -> Live | None:
    """Return the subject's live payment and its open operation, in one statement."""
    found: Any = _LIVE_PAYMENT.first(subject)
    return Live(found, found.open_uuid, found.open_kind) if found else None


def _live_payment(subject: UUID) -> QuerySet[Payment, Any]:
    is_open = due.is_open("operations__") & ~Q(operations__purpose=Operation.Purpose.REIMBURSEMENT)
    rows = Payment.objects.filter(subject=subject, status__in=Payment.LIVE, abandoned_at=None)
    with_open = rows.annotate(open=FilteredRelation("operations", condition=is_open))
    return with_open.annotate(open_uuid=F("open__id"), open_kind=F("open__kind"))


_LIVE_PAYMENT = Prepared(_live_payment, UUID)


def open_operation(subject: UUID) -> Operation | None:
    """Return the card operation that is open on a subject, with its payment; None if there is none."""
    return _OPEN_OPERATION.first(subject)


_OPEN_OPERATION = Prepared(lambda subject: open_on(subject).select_related("payment"), UUID)


def open_beside(operation: Operation) -> bool:
    """Whether another operation is open on the same payment, so that this one must wait."""
    return _open(payment=operation.payment_id).exclude(pk=operation.pk).exists()
