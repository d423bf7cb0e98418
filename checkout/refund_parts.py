"""The parts of a refund: each card gets back exactly what it has borne (rule refund.same_cards).

Every function must be called with the checkout locked.
"""

from datetime import datetime, timedelta
from typing import TypeAlias
from uuid import UUID

from django.db.models import QuerySet

from checkout import reimbursement
from checkout.models import NO_CLAIM, Checkout, Refund
from checkout.states import SHARE_PAID, ShareStatus, Status
from config.lib.prepared import Prepared
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
    """Plan the parts that can go back now; end the refund if nothing is left to give back."""
    if checkout.has_mates:
        _plan(checkout, refund.pk, now, cause)
        is_begun = bool(_ANY_PART.first(refund.pk))
    else:
        is_begun = _plan_leads(checkout, refund.pk, checkout.amount, now, cause)
    if not is_begun:
        go_on(checkout, now)


def go_on(checkout: Checkout, now: datetime) -> None:
    """Let a refund that is under way go on, after something that it waited for has ended (rule refund.goes_on)."""
    if checkout.status != Status.REFUNDING:
        return
    refund = checkout.refunds.get(status=Refund.Status.PENDING)
    is_complete = not checkout.has_mates or _plan(checkout, refund.pk, now, PUMP)
    parts = _latest(refund.pk)
    refused = [part for part in parts if part.state in (State.FAILED, State.DECLINED)]
    closed = bookings.closed(refund.pk) if refused else set()
    owed = [part for part in refused if part.payment_id not in closed]
    failed = [part for part in owed if bookings.left(part.payment) > 0]
    # what has been given back stays so: the rest must follow
    if len(failed) < len(refused) or any(part.state == State.SUCCEEDED for part in parts):
        _try_again(refund, failed, now)
    if not is_complete or any(part.ended_at is None for part in parts):
        return
    if not failed:
        _close_told(owed, now)
        _succeed(checkout, refund, now)
    elif len(failed) == len(parts):
        _fail(checkout, refund, failed[0].reason, now)


def _plan(checkout: Checkout, refund_uuid: UUID, now: datetime, cause: Cause) -> bool:
    """Plan each part that no longer waits for anything, once; return whether all are planned.

    A mate's part waits while the share is being paid, and with the lead's part while it is being reimbursed. A share
    that the lead has not got goes back to the mate from what is owed to the lead, so that the lead's part stays whole
    and need not wait for a mate's card. Rules refund.waits, refund.unreimbursed, refund.outside.
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
            left = share.amount - bookings.given_back_outside(share.payment_id)
            if left > 0:
                details = Details(amount=left, account=account, refund_uuid=refund_uuid)
                planning.plan([share.payment_id], Kind.REFUND, now=now, cause=cause, details=details)
        returned += share.amount if account == Account.MERCHANT else 0
    if is_leads_known and checkout.payment_id not in accounts:
        _plan_leads(checkout, refund_uuid, checkout.amount - returned, now, cause)
    return is_complete


def _plan_leads(checkout: Checkout, refund_uuid: UUID, borne: int, now: datetime, cause: Cause) -> bool:
    """Plan the part of the lead's card: what it has borne, less what was given back in the provider's own dashboard.

    Return whether anything is left to give back.
    """
    if checkout.payment_id is None:
        return False
    left = borne - bookings.given_back_outside(checkout.payment_id)
    if left > 0:
        details = Details(amount=left, refund_uuid=refund_uuid)
        planning.plan([checkout.payment_id], Kind.REFUND, now=now, cause=cause, details=details)
    return left > 0


def _parts(refund_uuid: UUID) -> QuerySet[Operation]:
    """Return a refund's parts, without those sent again after they came back: these have settled once."""
    return Operation.objects.filter(refund_uuid=refund_uuid).exclude(account=Account.RETURNED)


_ANY_PART = Prepared(lambda refund: _parts(refund).only("pk")[:1], UUID)


def _close_told(parts: list[Operation], now: datetime) -> None:
    """Close what was reported of refused parts that were given back in the provider's dashboard."""
    for part in parts:
        discrepancies.close_resolved(
            "refund_part_failed", part.payment_id, note="The card has got it otherwise.", now=now
        )


def _latest(refund_uuid: UUID) -> list[Operation]:
    """Return each card's part: the newest, if it was tried again."""
    rows = _parts(refund_uuid).select_related("payment").order_by("created_at", "pk")
    return list({part.payment_id: part for part in rows}.values())


def _try_again(refund: Refund, failed: list[Operation], now: datetime) -> None:
    """Report failed parts, once for each card, and plan them again each hour for three days."""
    for part in failed:
        discrepancies.report_operation(
            part, "refund_part_failed", subject=part.payment_id, reason=part.reason
        )
        if now - refund.created_at < TRIED_FOR:
            planning.plan_again(part, at=now + RETRY_AFTER, cause=PUMP)


def _succeed(checkout: Checkout, refund: Refund, now: datetime) -> None:
    """Settle the refund, since each card has got its part; cancel open links (rule refund.settled)."""
    refund.status, refund.settled_at = Refund.Status.SETTLED, now
    back = returns.still_back(refund_uuid=refund.pk)
    if back is not None:
        refund.status, refund.failure_reason = Refund.Status.FAILED, back.reason
    refund.save(update_fields=["status", "settled_at", "failure_reason"])
    checkout.move(Status.REFUNDED, PUMP, now, refunded_amount=refund.amount, last_refund_at=now)
    # the lead's payment may have had no part of its own, or a smaller one, if others bore it or gave some of it back
    taken = Payment.objects.filter(subject=checkout.pk, status=Payment.Status.CAPTURED)
    taken.update(status=Payment.Status.REFUNDED)
    if checkout.has_mates:
        _close_shares(checkout, now)
        links = checkout.payment_requests.filter(status=ShareStatus.OPEN)
        links.update(status=ShareStatus.CANCELLED, ended_at=now, **NO_CLAIM)


def _close_shares(checkout: Checkout, now: datetime) -> None:
    """Close the shares, and payments, that somebody else than this refund has given back, in part or in all."""
    paid = checkout.payment_requests.filter(status__in=(*SHARE_PAID, ShareStatus.REFUNDED))
    taken = Payment.objects.filter(pk__in=paid.values("payment"), status=Payment.Status.CAPTURED)
    taken.update(status=Payment.Status.REFUNDED)
    for share in paid.exclude(status=ShareStatus.REFUNDED):
        share.move(ShareStatus.REFUNDED, ended_at=now)


def _fail(checkout: Checkout, refund: Refund, reason: str, now: datetime) -> None:
    """Fail the refund, since nothing has gone back; paused links go on (rules refund.failed, share.pauses)."""
    refund.status, refund.failure_reason = Refund.Status.FAILED, reason or "refused"
    refund.save(update_fields=["status", "failure_reason"])
    checkout.move(Status.CAPTURED, PUMP, now)
    if checkout.has_mates:
        reimbursement.go_on(checkout, now)
