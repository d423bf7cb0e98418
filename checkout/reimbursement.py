"""Reimbursement: what a mate has paid is refunded to the lead's card from the lead's payment (rule reimburse.lead)."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, Max, Sum

from checkout import pauses
from checkout.models import Checkout, LeadTold, PaymentRequest
from checkout.states import ShareStatus, Status
from payments import discrepancies, disputes, planning
from payments.cause import PUMP
from payments.models import Operation, Posting
from payments.planning import Details

RETRY_AFTER = timedelta(days=1)
TOO_LONG = timedelta(days=3)


def plan(checkout: Checkout, share: PaymentRequest, *, at: datetime, now: datetime) -> None:
    """Plan the reimbursement of a paid share, due from `at` on. Must be called with the checkout locked.

    Nothing is planned while a dispute is open on a card of the order. What a lost one has given back, to the mate or
    to the lead, is no longer owed: the share is closed against it. Rule dispute.lost.
    """
    if disputes.is_open(checkout.pk):
        return
    if disputes.lost_on(share.payment_id) >= share.amount:
        _close(share, ShareStatus.REFUNDED, now, ended_at=now)
    elif lost := disputes.lost_on(checkout.payment_id):
        _close_within(checkout, share, lost, now)
    else:
        details = Details(amount=share.amount, account=Posting.Account.LEAD, share_uuid=share.pk, at=at)
        payments = [checkout.payment_id] if checkout.payment_id else []
        planning.plan(payments, Operation.Kind.REFUND, now=now, cause=PUMP, details=details)


def _close_within(checkout: Checkout, share: PaymentRequest, lost: int, now: datetime) -> None:
    """Close a share against what lost disputes have given the lead; report it if they do not cover it."""
    got = checkout.payment_requests.filter(status=ShareStatus.REIMBURSED)
    closed = got.filter(payment__operations__closed_as__isnull=False).aggregate(sum=Sum("amount"))["sum"] or 0
    if closed + share.amount <= lost:
        _close(share, ShareStatus.REIMBURSED, now)
    else:
        facts = {"checkout": str(checkout.pk), "amount": share.amount, "disputed": lost}
        discrepancies.report("owed_beyond_dispute", share.pk, merchant=checkout.merchant_id, **facts)


def _close(share: PaymentRequest, to: ShareStatus, now: datetime, **facts: datetime) -> None:
    share.move(to, **facts)
    disputes.close_owed(share.payment_id)
    note = "A dispute that was lost has given it back."
    discrepancies.close_resolved("share_not_reimbursed", share.pk, note=note, now=now)


def go_on(checkout: Checkout, now: datetime) -> None:
    """Resume after a failed refund or a decided dispute, unless another of them still pauses the order.

    What is owed to the lead is planned, and open links get the whole pause back, once. Must be called with the
    checkout locked. Rule share.pauses.
    """
    if checkout.status != Status.CAPTURED or disputes.is_open(checkout.pk):
        return
    _extend_links(checkout, now - pauses.began_at(checkout, now))
    for share in checkout.payment_requests.filter(status=ShareStatus.PAID).order_by("position"):
        if not Operation.objects.filter(share_uuid=share.pk, ended_at=None).exists():
            plan(checkout, share, at=max(now, due_at(share.paid_at or now)), now=now)


def _extend_links(checkout: Checkout, paused_for: timedelta) -> None:
    """Let open links end later; the lead is told of that end too, whatever was told of an earlier one."""
    links = checkout.payment_requests.filter(status=ShareStatus.OPEN)
    links.update(expires_at=F("expires_at") + paused_for)
    ends_at = links.aggregate(last=Max("expires_at"))["last"]
    if ends_at is not None:
        LeadTold.put_end(checkout, ends_at)


def due_at(paid_at: datetime) -> datetime:
    """Return when a share that was paid at this time is sent to the lead (rule reimburse.delay)."""
    return paid_at + settings.REIMBURSEMENT_DELAY
