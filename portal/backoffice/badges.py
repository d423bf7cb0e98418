"""Badges for operators: payments, operations, shares, merchants, discrepancies."""

from typing import Any

from checkout.models import Checkout
from checkout.remedies import outstanding_refund
from checkout.states import ShareStatus, VoidReason
from payments import operation_queue, planning
from payments.models import Discrepancy, Operation, Payment
from portal import badges
from portal.badges import Badge
from portal.models import OutboundEmail

State = Operation.State
VOIDED_BECAUSE: dict[str, str] = {
    VoidReason.AUTH_EXPIRED: "hold lapsed",
    VoidReason.MERCHANT_CANCEL: "cancelled",
}
PAYMENT: dict[str, Badge] = {
    Payment.Status.AUTHORIZING: Badge("move", "ring", str(Payment.Status.AUTHORIZING.label)),
    Payment.Status.AUTHORIZED: Badge("held", "pause", str(Payment.Status.AUTHORIZED.label)),
    Payment.Status.CAPTURED: Badge("done", "check", str(Payment.Status.CAPTURED.label)),
    Payment.Status.VOIDED: Badge("void", "slash", str(Payment.Status.VOIDED.label)),
    Payment.Status.DECLINED: Badge("stop", "cross", str(Payment.Status.DECLINED.label)),
    Payment.Status.REFUNDED: Badge("still", "back", str(Payment.Status.REFUNDED.label)),
}
OPERATION: dict[str, Badge] = {
    State.PLANNED: Badge("still", "clock", str(State.PLANNED.label)),
    State.IN_FLIGHT: Badge("move", "ring", str(State.IN_FLIGHT.label)),
    State.NEEDS_ACTION: Badge("held", "clock", str(State.NEEDS_ACTION.label)),
    State.PENDING: Badge("move", "clock", str(State.PENDING.label)),
    State.UNKNOWN: Badge("held", "alert", str(State.UNKNOWN.label)),
    State.SUCCEEDED: Badge("done", "check", str(State.SUCCEEDED.label)),
    State.DECLINED: Badge("stop", "cross", str(State.DECLINED.label)),
    State.FAILED: Badge("stop", "alert", str(State.FAILED.label)),
}
DISPUTED = Badge("held", "clock", "Disputed")
REPLACED = Badge("void", "slash", "Replaced")
WITHDRAWN = Badge("void", "slash", "Not sent")
RETURNED = Badge("stop", "back", "Returned")
SHARE: dict[str, Badge] = {
    ShareStatus.DRAFT: Badge("still", "dashes", str(ShareStatus.DRAFT.label)),
    ShareStatus.OPEN: Badge("held", "clock", str(ShareStatus.OPEN.label)),
    ShareStatus.PLEDGED: Badge("move", "card", str(ShareStatus.PLEDGED.label)),
    ShareStatus.PAYING: Badge("move", "ring", str(ShareStatus.PAYING.label)),
    ShareStatus.PAID: Badge("done", "check", str(ShareStatus.PAID.label)),
    ShareStatus.REIMBURSED: Badge("done", "check", str(ShareStatus.REIMBURSED.label)),
    ShareStatus.DECLINED: Badge("void", "cross", str(ShareStatus.DECLINED.label)),
    ShareStatus.EXPIRED: Badge("void", "clock", str(ShareStatus.EXPIRED.label)),
    ShareStatus.CANCELLED: Badge("void", "slash", str(ShareStatus.CANCELLED.label)),
    ShareStatus.REFUNDED: Badge("still", "back", str(ShareStatus.REFUNDED.label)),
}
OPEN = Badge("done", "check", "Open")
STOPPED = Badge("stop", "slash", "Stopped")
STOPPED_WITH_ALL = Badge("stop", "slash", "All stopped")
STOP_ENDED = Badge("void", "check", "Ended")
CLOSED = Badge("void", "check", "Closed")
ACTIVE = Badge("done", "check", "Active")
DISABLED = Badge("void", "slash", "Disabled")
VALID = Badge("done", "check", "Valid")
REVOKED = Badge("void", "slash", "Revoked")
EMAIL_WAITING = Badge("still", "clock", "Waiting")
EMAIL_SENT = Badge("done", "check", "Sent")
EMAIL_DROPPED = Badge("stop", "alert", "Dropped")
EMAIL_NOT_NEEDED = Badge("void", "slash", "Not needed")


def of_checkout(checkout: Checkout) -> Badge:
    """Return the portal's badge for a checkout. Its note explains a void in words for operators."""
    note = VOIDED_BECAUSE.get(checkout.void_reason or "", "")
    return badges.of_checkout(checkout)._replace(note=note)


def of_operation(operation: Operation) -> Badge:
    """Return the badge for an operation's state.

    A settled refund that was returned has a different badge. Operations that were replaced under a new key or
    withdrawn have one too, because no bank refused them.
    """
    if planning.was_replaced(operation):
        return REPLACED
    if operation.state == State.FAILED and operation.reason == planning.WITHDRAWN:
        return WITHDRAWN
    return RETURNED if outstanding_refund.was_returned(operation) else OPERATION[operation.state]


def of_email(email: OutboundEmail) -> Badge:
    """Return the badge of an e-mail in the outbox."""
    if email.sent_at is not None:
        return EMAIL_SENT
    if email.dropped_at is not None:
        return EMAIL_DROPPED
    return EMAIL_WAITING if email.next_try_at is not None else EMAIL_NOT_NEEDED


def of_merchant(merchant: Any) -> Badge:
    """Return the badge for a merchant: open or stopped.

    The merchant must have been read with the annotations that MerchantAdmin adds.
    """
    if merchant.is_suspended:
        return STOPPED
    return STOPPED_WITH_ALL if merchant.are_all_stopped else OPEN


def of_discrepancy(discrepancy: Discrepancy, age: str, *, is_old: bool) -> Badge:
    """Return a badge with the age of an open discrepancy, or the badge for a closed one."""
    if discrepancy.closed_at is not None:
        return CLOSED
    return Badge("stop", "alert", age) if is_old else Badge("held", "clock", age)


def is_unresolved(operation: Operation) -> bool:
    """Return whether an operation's outcome is still unknown."""
    return operation.state in Operation.OPEN or operation_queue.is_in_doubt(operation)


def operation_title(row: Operation) -> str:
    """Return the name of an operation, such as "Capture". A refund that pays a lead back is a reimbursement."""
    is_reimbursement = row.purpose == Operation.Purpose.REIMBURSEMENT
    return "Reimbursement" if is_reimbursement else str(row.get_kind_display())
