"""What becomes of mates' shares: links open and end with the order, outcomes at mates' cards change their status.

Every function must be called with the checkout locked.
"""

from collections.abc import Sequence
from datetime import datetime

from django.conf import settings

from checkout import refund_parts, reimbursement
from checkout.models import Checkout, LeadTold, PaymentRequest
from checkout.states import SHARE_PAID, ShareStatus, Status
from config.lib import wakeup
from payments import discrepancies, disputes, open_operations, planning
from payments.cause import PUMP
from payments.models import Operation, Payment, Posting
from payments.planning import Details

FINISH_OPERATIONS = "checkout.tasks.finish_operations"
Kind, State = Operation.Kind, Operation.State


def open_links(checkout: Checkout, at: datetime) -> None:
    """Open the links of an order that is captured: every mate may pay now."""
    if checkout.has_mates:
        drafts = checkout.payment_requests.filter(status=ShareStatus.DRAFT)
        ends_at = at + settings.PAY_LINK_LIFETIME
        drafts.update(status=ShareStatus.OPEN, expires_at=ends_at)
        LeadTold.put_end(checkout, ends_at)


def end_drafts(checkouts: Sequence[Checkout], at: datetime) -> None:
    """Cancel the draft shares of orders that have ended without a capture."""
    split = [checkout.pk for checkout in checkouts if checkout.has_mates]
    if split:
        drafts = PaymentRequest.objects.filter(checkout__in=split, status=ShareStatus.DRAFT)
        drafts.update(status=ShareStatus.CANCELLED, ended_at=at)


def record_authorization(checkout: Checkout, operation: Operation, now: datetime) -> None:
    """Plan the capture of a held share that is still wanted, else its release; without a hold, open the share again."""
    share = _share(operation.payment)
    if operation.ended_at is None:
        return
    if operation.state != State.SUCCEEDED:
        free(checkout, share, now)
    elif not _is_decided(operation.payment):
        reason = _unwanted(checkout, share, operation.payment)
        if reason:
            Payment.objects.filter(pk=operation.payment_id, decline_reason="").update(decline_reason=reason)
            let_go(checkout, operation.payment, now)
        else:
            taking = Details(account=Posting.Account.LEAD)
            planning.plan([operation.payment_id], Kind.CAPTURE, now=now, cause=PUMP, details=taking)
            wakeup.after_commit(FINISH_OPERATIONS)


def is_fenced(payment: Payment) -> bool:
    """Whether a void of this mate's payment is a fence: it proves whether a capture that seemed lost has happened."""
    lost = payment.operations.filter(kind=Kind.CAPTURE, state=State.FAILED, reason="never_arrived")
    return _share(payment).status == ShareStatus.PAYING and lost.exists()


def _is_decided(payment: Payment) -> bool:
    return payment.operations.filter(kind__in=[Kind.CAPTURE, Kind.VOID]).exists()


def _unwanted(checkout: Checkout, share: PaymentRequest, payment: Payment) -> str:
    """Return why the held money must not be taken, "" if it may be."""
    # the mate may have gone on with another card while the bank was asked
    if payment.abandoned_at is not None or share.status != ShareStatus.PAYING:
        return "given_up"
    if checkout.status != Status.CAPTURED or disputes.standing(checkout.pk) is not None:
        return "order_ended"
    lead = checkout.payment
    is_same = lead is not None and lead.card_fingerprint == payment.card_fingerprint != ""
    return "same_card" if is_same else ""


def record_capture(checkout: Checkout, operation: Operation, now: datetime) -> None:
    """Mark a captured share as paid and plan its reimbursement; release one whose capture failed, and open it again."""
    share = _share(operation.payment)
    if operation.ended_at is None or share.payment_id == operation.payment_id:
        return
    if share.status != ShareStatus.PAYING:
        if operation.state == State.SUCCEEDED:
            discrepancies.report_operation(operation, "captured_after_the_end", status=share.status)
        return
    if operation.state == State.SUCCEEDED:
        share.move(ShareStatus.PAID, payment=operation.payment, paid_at=now)
        _tell_if_all_have_paid(checkout, now)
        if checkout.status == Status.CAPTURED:
            reimbursement.plan(checkout, share, at=reimbursement.due_at(now), now=now)
            wakeup.after_commit(FINISH_OPERATIONS)
        refund_parts.go_on(checkout, now)
    else:
        let_go(checkout, operation.payment, now)


def _tell_if_all_have_paid(checkout: Checkout, now: datetime) -> None:
    """Have the lead told when every share that is asked for is paid (rule lead.told)."""
    if not checkout.payment_requests.exclude(status__in=[*SHARE_PAID, ShareStatus.CANCELLED]).exists():
        LeadTold.put(checkout, LeadTold.Kind.ALL_PAID, now)


def let_go(checkout: Checkout, payment: Payment, now: datetime) -> None:
    """Give up a mate's hold: plan its release, and let another card be tried at once."""
    open_operations.abandon(payment, now)
    release(payment, now)
    free(checkout, _share(payment), now)


def record_void(checkout: Checkout, operation: Operation, now: datetime) -> None:
    """Open a share again once its hold is released."""
    if operation.state == State.SUCCEEDED:
        free(checkout, _share(operation.payment), now)


def record_reimbursement(checkout: Checkout, operation: Operation, now: datetime) -> None:
    """Mark a share as reimbursed once the lead has got it; a reimbursement that failed is tried again each day."""
    share = PaymentRequest.objects.get(pk=operation.reimbursed_share)
    if operation.ended_at is None or share.status != ShareStatus.PAID:
        return
    if operation.state == State.SUCCEEDED:
        share.move(ShareStatus.REIMBURSED)
        discrepancies.close_resolved("share_not_reimbursed", share.pk, note="The lead has got it.", now=now)
    elif checkout.status == Status.CAPTURED:
        _try_again(checkout, share, operation, now)
    refund_parts.go_on(checkout, now)


def _try_again(checkout: Checkout, share: PaymentRequest, failed: Operation, now: datetime) -> None:
    """Plan a failed reimbursement again for a day later; report it after three days (rule reimburse.retry)."""
    if Operation.objects.filter(share_uuid=share.pk, ended_at=None).exists():
        return  # it is planned again already
    reimbursement.plan(checkout, share, at=now + reimbursement.RETRY_AFTER, now=now)
    is_owed = share.status == ShareStatus.PAID
    if is_owed and share.paid_at is not None and now - share.paid_at >= reimbursement.TOO_LONG:
        discrepancies.report_operation(failed, "share_not_reimbursed", subject=share.pk, reason=failed.reason)


def record_refund_part(checkout: Checkout, part: Operation, now: datetime) -> None:
    """Close a refund part once the card has got it; let the refund go on if the part failed."""
    if part.ended_at is None:
        return
    if part.state == State.SUCCEEDED:
        discrepancies.close_resolved(
            "refund_part_failed", part.payment_id, note="The card has got it.", now=now
        )
        close_refund_part(checkout, part, now)
    else:
        refund_parts.go_on(checkout, now)


def close_refund_part(checkout: Checkout, part: Operation, now: datetime) -> None:
    """Let the refund go on after a payer has got their part, to the card or otherwise; a mate's share is refunded."""
    if part.payment.kind == Payment.Kind.SHARE:
        share = _share(part.payment)
        if share.status != ShareStatus.REFUNDED:
            share.move(ShareStatus.REFUNDED, ended_at=now)
    refund_parts.go_on(checkout, now)


def free(checkout: Checkout, share: PaymentRequest, now: datetime) -> None:
    """Open a share again that no card is paying any more; cancel it if a lost dispute has ended the links meanwhile.

    Rule dispute.lost.
    """
    if share.status == ShareStatus.PAYING and open_operations.live_payment(share.pk) is None:
        share.move(ShareStatus.OPEN)
        if disputes.is_lost(checkout.pk):
            share.move(ShareStatus.CANCELLED, ended_at=now)
        refund_parts.go_on(checkout, now)


def free_of(checkout: Checkout, payment: Payment, now: datetime) -> None:
    """Open the share again that a payment was for, as `free` does, since its card was given up."""
    free(checkout, _share(payment), now)


def release(payment: Payment, now: datetime) -> None:
    """Plan a void of a payment that is no longer wanted, unless it has one that has not failed."""
    if not payment.operations.filter(kind=Kind.VOID).exclude(state=State.FAILED).exists():
        planning.plan([payment.pk], Kind.VOID, now=now, cause=PUMP)
        wakeup.after_commit(FINISH_OPERATIONS)


def _share(payment: Payment) -> PaymentRequest:
    return PaymentRequest.objects.get(pk=payment.subject)
