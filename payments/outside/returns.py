"""Refunds that came back after they were settled: booked once, when the provider's look-up confirms it.

The operation stays succeeded; its amount stands on the account `returned` until the payer has it after all.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db.models import QuerySet, Sum
from uuid_utils.compat import uuid7

from config.lib import clock
from config.lib.deadline import Deadline
from payments import discrepancies, ledger, operations, planning
from payments.models import Booking, Operation, Posting
from payments.provider import Outcome, Verdict

Kind, State = Operation.Kind, Operation.State
Account = Posting.Account
A_DAY = timedelta(days=1)
ASK_SECONDS = 40.0  # a lead's card may have had nineteen reimbursements; less than an inquiry is leased for
REFUSED = (Verdict.FAILED, Verdict.DECLINED)


class RefundStatus(NamedTuple):
    """What the provider says now about a settled refund."""

    operation_uuid: UUID
    outcome: Outcome


def is_told(operation: Operation, verdict: Verdict) -> bool:
    """Whether the provider says that a settled refund has failed, and we have not booked that yet."""
    return has_come_back(operation, verdict) and operation.returned_as is None


def has_come_back(operation: Operation, verdict: Verdict) -> bool:
    """Whether the provider says that a settled refund has failed, booked already or not."""
    return operation.kind == Kind.REFUND and operation.state == State.SUCCEEDED and verdict in REFUSED


def ask(payment_uuid: UUID) -> Sequence[RefundStatus]:
    """Look up a payment's settled refunds at the provider, with no transaction open."""
    rows = Operation.objects.filter(payment=payment_uuid, kind=Kind.REFUND, state=State.SUCCEEDED)
    settled = rows.filter(returned_as=None).select_related("payment").order_by("created_at", "pk")
    deadline = Deadline.after(ASK_SECONDS)
    return [RefundStatus(row.pk, operations.look_up(row, deadline=deadline)) for row in settled]


def book(answer: RefundStatus) -> Operation | None:
    """Book, report and return a refund that came back; None if it has not, or is booked already.

    The provider has the money again, and it is owed to the payer. Must be called with the checkout locked.
    """
    refund = operations.current(answer.operation_uuid)
    if not is_told(refund, answer.outcome.verdict):
        return None
    refund.returned_as, refund.reason = uuid7(), answer.outcome.reason or "refused"
    refund.save(update_fields=["returned_as", "reason"])
    back = {Account.PROVIDER: refund.amount, Account.RETURNED: -refund.amount}
    ledger.post(refund.returned_as, refund.payment, back)
    discrepancies.report_operation(
        refund,
        "refund_returned",
        checkout=str(refund.payment.checkout_uuid),
        amount=refund.amount,
        reason=refund.reason,
    )
    return refund


def concerns(part: Operation) -> bool:
    """Whether this refund came back, or sends one again that did."""
    return part.returned_as is not None or part.account == Account.RETURNED


def is_outstanding(part: Operation) -> bool:
    """Whether money that came back of this part has not reached the payer yet, by another refund or a booking."""
    like = planning.parts_like(part)
    again = like.filter(account=Account.RETURNED, state=State.SUCCEEDED).count()
    booked = Booking.objects.filter(operation__in=like, account=Account.RETURNED).count()
    return of_part(part).count() > again + booked


def outstanding_on(payment_uuid: UUID) -> Sequence[Operation]:
    """Return the refunds of a payment that came back and are owed to its card, each part's newest, the oldest first."""
    rows = Operation.objects.filter(payment=payment_uuid, returned_as__isnull=False).order_by("returned_as")
    newest = {(row.refund_uuid, row.share_uuid): row for row in rows}
    return [row for row in newest.values() if is_outstanding(row)]


def given_again(payment_uuid: UUID, *, told_at: datetime) -> Sequence[Operation]:
    """Return those of the outstanding refunds that one made at the provider, and told at this time, may give again.

    We may hear of both in either order, but what was told a day before anything came back is something else.
    """
    rows = outstanding_on(payment_uuid)
    return [row for row in rows if row.returned_as and clock.made_at(row.returned_as) < told_at + A_DAY]


def of_part(part: Operation) -> QuerySet[Operation]:
    """Return all refunds that came back of the same refund part or reimbursement."""
    return planning.parts_like(part).filter(returned_as__isnull=False)


def still_back(**of: UUID | None) -> Operation | None:
    """Return the last part that came back and has not reached the payer yet, None if all have.

    `of` names what is asked about: a `refund_uuid`, a `payment`, or the `share_uuid` of a reimbursement.
    """
    parts = Operation.objects.filter(returned_as__isnull=False, **of)
    return next((part for part in parts.order_by("-returned_as") if is_outstanding(part)), None)


def outstanding(checkout_uuid: UUID) -> int:
    """Return how much of a checkout's refunds came back and has not reached the payers yet, in minor units."""
    lines = Posting.objects.filter(checkout_uuid=checkout_uuid, account=Account.RETURNED)
    return -(lines.aggregate(sum=Sum("amount"))["sum"] or 0)
