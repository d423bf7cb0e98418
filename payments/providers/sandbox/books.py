"""The bank's books: the current state of the money of one payment, and the payments that have changed."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from payments.provider import Books, CaptureRecord, RefundRecord, Verdict
from payments.providers.sandbox import disputing, fault_injection, journal, settling
from payments.providers.sandbox.models import Call, Charge


def read_books(*, payment: UUID) -> Books:
    """Settle the due calls of a payment, then return its books. Raises fault_injection.CallFailed."""
    lacks_after = fault_injection.read_books_cutoff(payment)
    settling.settle_due([payment])
    charge = Charge.objects.filter(payment=payment).first()
    if charge is None:
        return Books()
    lines, disputes = journal.lines_about(charge), disputing.dispute_records(payment=payment)
    if lacks_after is not None:
        lines = [line for line in lines if line.created_at <= lacks_after]
        disputes = [row for row in disputes if row.opened_at <= lacks_after]
    capture = _capture_record(lines)
    refunds = [_refund_record(line) for line in lines if _is_refund(line)]
    is_held = capture is None and charge.state == Charge.State.HELD
    return Books(is_held=is_held, capture=capture, refunds=refunds, disputes=disputes)


def _capture_record(lines: Sequence[Call]) -> CaptureRecord | None:
    for line in lines:
        if line.kind == "capture" and line.verdict == Verdict.SUCCEEDED:
            return CaptureRecord(str(line.key), line.amount, line.charge.currency, line.changed_at)
    return None


def _is_refund(line: Call) -> bool:
    """Return whether a line is an accepted refund. Refused calls are not in the books."""
    return line.kind == "refund" and (line.verdict != Verdict.FAILED or line.settles_at is not None)


def _refund_record(line: Call) -> RefundRecord:
    return RefundRecord(
        reference=str(line.key),
        amount=line.amount,
        currency=line.charge.currency,
        verdict=Verdict(line.verdict),
        at=line.created_at,
        reason=line.reason,
        has_returned=line.has_returned,
        operation=line.reference,
        refund=line.refund,
        share=line.share,
    )


def changed_payments(*, since: datetime) -> Iterable[UUID]:
    """Return the payments for which a call or a dispute is new or has changed since `since`."""
    calls = Call.objects.filter(changed_at__gte=since).values_list("charge__payment", flat=True)
    return list({*calls, *disputing.disputed_payments(since=since)})
