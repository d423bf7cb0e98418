"""The remedy that closes a refund part or reimbursement which its card cannot take: it was settled otherwise."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from checkout import share_outcomes
from checkout.models import Checkout, PaymentRequest
from checkout.outside import returned_refunds
from checkout.remedies import asking, parts
from checkout.remedies.asking import NotAllowed
from checkout.states import ShareStatus
from config.lib import clock
from payments import discrepancies, operations, planning
from payments.cause import Cause
from payments.models import Operation, Payment
from payments.outside import bookings, returns
from payments.provider import CARD_CANNOT_TAKE_IT

Kind, State = Operation.Kind, Operation.State


def close_as_settled_otherwise(operation_uuid: UUID, *, note: str, cause: Cause) -> UUID:
    """Close the part that a refund operation has failed to give back, and let its refund go on without it.

    Only if the provider, asked first, says that the card cannot take it. Returns the checkout's uuid.
    Raises NotAllowed.
    """
    part = operations.current(operation_uuid)
    _check(part)
    outcome = asking.look_up(part)
    if outcome.verdict not in asking.REFUSED or outcome.reason not in CARD_CANNOT_TAKE_IT:
        raise NotAllowed(
            f"{asking.words(outcome)} It is closed only when the provider says that the card can't take it."
        )
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(part.payment.checkout_uuid)
        part, now = operations.current(operation_uuid), clock.now()
        _check(part)
        parts.check_wanted(checkout, part)
        if not planning.withdraw_planned(planning.parts_like(part), now=now):
            raise NotAllowed(parts.UNDER_WAY)
        bookings.settle_otherwise(part, note=note, now=now, cause=cause)
        follow(checkout, part, note=note, now=now)
    return checkout.pk


def follow(checkout: Checkout, part: Operation, *, note: str, now: datetime) -> None:
    """Let the order follow a part that is booked: its share counts as given back, its refund goes on.

    Must be called with the checkout locked.
    """
    if returns.concerns(part):
        returned_refunds.make_good(checkout, part, note=note, now=now)
        return
    if part.purpose == Operation.Purpose.REIMBURSEMENT:
        PaymentRequest.objects.get(pk=part.reimbursed_share).move(ShareStatus.REIMBURSED)
        discrepancies.close_resolved("share_not_reimbursed", part.reimbursed_share, note=note, now=now)
    else:
        Payment.objects.filter(pk=part.payment_id).update(status=Payment.Status.REFUNDED)
        share_outcomes.close_refund_part(checkout, part, now)
        discrepancies.close_resolved("refund_part_failed", part.payment_id, note=note, now=now)
    checkout.touch()


def _check(part: Operation) -> None:
    is_refused = part.state in (State.FAILED, State.DECLINED) or part.returned_as is not None
    if part.kind != Kind.REFUND or not is_refused:
        raise NotAllowed("Only a refund that has failed, or came back, can be closed.")
    if parts.newest(part) != part:
        raise NotAllowed("It was tried again since: close the newest attempt.")
