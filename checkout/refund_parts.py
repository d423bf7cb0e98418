"""The parts of a refund: each card gets back exactly what it has borne (rule refund.same_cards).

All of it belongs under the checkout's lock.
"""

from datetime import datetime, timedelta
from typing import TypeAlias
from uuid import UUID

from django.db.models import QuerySet

from checkout import reimbursement
from checkout.models import Checkout, Refund
from checkout.states import ShareStatus, Status
from payments import discrepancies, planning
from payments.cause import PUMP, Cause
from payments.models import Operation, Payment, Posting
from payments.outside import bookings, returns
from payments.planning import Details

RETRY_AFTER = timedelta(hours=1)
TRIED_FOR = timedelta(days=3)  # then a person has to decide
Account: TypeAlias = Posting.Account
Kind, State = Operation.Kind, Operation.State
BORNE = (ShareStatus.PAYING, ShareStatus.PAID, ShareStatus.REIMBURSED, ShareStatus.REFUNDED)


def begin(checkout: Checkout, refund: Refund, *, now: datetime, cause: Cause) -> None:
    """Plan what can go back at once; where all of it has gone back by other ways before, the refund ends here."""
    if checkout.has_mates:
        _plan(checkout, refund.pk, now, cause)
    else:
        _plan_leads(checkout, refund.pk, checkout.amount, now, cause)
    if not _parts(refund.pk).exists():
        go_on(checkout, now)


def go_on(checkout: Checkout, now: datetime) -> None:
    """Bring the refund that is under way as far as it goes now: something that it waited for has ended.

    Rule refund.goes_on.
    """
    if checkout.status != Status.REFUNDING:
        return
    refund = checkout.refunds.get(status=Refund.Status.PENDING)
    is_complete = not checkout.has_mates or _plan(checkout, refund.pk, now, PUMP)
    parts, closed = _latest(refund.pk), bookings.closed(refund.pk)
    refused = [part for part in parts if part.state in (State.FAILED, State.DECLINED)]
    failed = [part for part in refused if part.payment_id not in closed]
    # what has gone back cannot be taken back: the rest must follow
    if closed or any(part.state == State.SUCCEEDED for part in parts):
        _try_again(refund, failed, now)
    if not is_complete or any(part.ended_at is None for part in parts):
        return
    if not failed:
        _succeed(checkout, refund, now)
    elif len(failed) == len(parts):
        _fail(checkout, refund, failed[0].reason, now)


def _plan(checkout: Checkout, refund_uuid: UUID, now: datetime, cause: Cause) -> bool:
    """Plan each part that waits for nothing any more, once; return whether all are planned.

    A share that is on its way to the lead is waited for, and by its own part one that is being paid. What the lead
    has not got goes back to the mate from what is owed to the lead, and the lead's own part stays whole: so that
    part need not wait for a mate's card. Rules refund.waits, refund.unreimbursed, refund.outside.
    """
    accounts = dict(_parts(refund_uuid).values_list("payment_id", "account"))
    returned, is_complete, is_leads_known = 0, True, True
    for share in checkout.payment_requests.filter(status__in=BORNE).order_by("position"):
        account = accounts.get(share.payment_id) if share.payment_id else None
        if account is None:
            is_owed = share.status == ShareStatus.PAID
            if share.payment_id is None:
                is_complete = False
                continue
            if is_owed and not planning.withdraw(share.pk, now=now):
                is_complete = is_leads_known = False
                continue
            account = Account.LEAD if is_owed else Account.MERCHANT
            details = Details(account=account, refund_uuid=refund_uuid)
            planning.plan([share.payment_id], Kind.REFUND, now=now, cause=cause, details=details)
        returned += share.amount if account == Account.MERCHANT else 0
    if is_leads_known and checkout.payment_id not in accounts:
        _plan_leads(checkout, refund_uuid, checkout.amount - returned, now, cause)
    return is_complete


def _plan_leads(checkout: Checkout, refund_uuid: UUID, borne: int, now: datetime, cause: Cause) -> None:
    """Plan the part of the lead's card: what it has borne, less what the provider's own dashboard has given back."""
    if checkout.payment_id is None:
        return
    left = borne - bookings.given_back_outside(checkout.payment_id)
    if left > 0:
        details = Details(amount=left, refund_uuid=refund_uuid)
        planning.plan([checkout.payment_id], Kind.REFUND, now=now, cause=cause, details=details)


def _parts(refund_uuid: UUID) -> QuerySet[Operation]:
    """What came back and is sent again is no part: it has settled once."""
    return Operation.objects.filter(refund_uuid=refund_uuid).exclude(account=Account.RETURNED)


def _latest(refund_uuid: UUID) -> list[Operation]:
    """Return each card's part; of one that was tried again, the last."""
    rows = _parts(refund_uuid).select_related("payment").order_by("created_at", "pk")
    return list({part.payment_id: part for part in rows}.values())


def _try_again(refund: Refund, failed: list[Operation], now: datetime) -> None:
    """Each hour for three days; one discrepancy tells of a card, for as long as it is open."""
    for part in failed:
        discrepancies.report_operation(
            part, "refund_part_failed", subject=part.payment_id, reason=part.reason
        )
        if now - refund.created_at < TRIED_FOR:
            planning.plan_again(part, at=now + RETRY_AFTER, cause=PUMP)


def _succeed(checkout: Checkout, refund: Refund, now: datetime) -> None:
    """Each card has got its part, and no link is open any more (rule refund.settled)."""
    refund.status, refund.settled_at = Refund.Status.SETTLED, now
    back = returns.still_back(refund.pk)
    if back is not None:
        refund.status, refund.failure_reason = Refund.Status.FAILED, back.reason
    refund.save(update_fields=["status", "settled_at", "failure_reason"])
    checkout.move(Status.REFUNDED, PUMP, now, refunded_amount=refund.amount, last_refund_at=now)
    # one that mates have borne whole had no part of its own, another gave less where its card had got some before
    taken = Payment.objects.filter(subject=checkout.pk, status=Payment.Status.CAPTURED)
    taken.update(status=Payment.Status.REFUNDED)
    if checkout.has_mates:
        links = checkout.payment_requests.filter(status=ShareStatus.OPEN)
        links.update(status=ShareStatus.CANCELLED, ended_at=now)


def _fail(checkout: Checkout, refund: Refund, reason: str, now: datetime) -> None:
    """Nothing has gone back. The links, which have paused, go on (rules refund.failed, share.pauses)."""
    refund.status, refund.failure_reason = Refund.Status.FAILED, reason or "refused"
    refund.save(update_fields=["status", "failure_reason"])
    checkout.move(Status.CAPTURED, PUMP, now)
    if checkout.has_mates:
        reimbursement.go_on(checkout, now, paused_for=now - refund.created_at)
