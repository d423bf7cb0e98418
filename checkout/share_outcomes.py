"""Changes mates' shares after the order has changed or a card operation has ended.

Pay links open and end with the order. Operations on a mate's card change the status of the share. Every function must
be called with the checkout locked.
"""

from datetime import datetime
from uuid import UUID

from django.conf import settings

from checkout import pledges, settling
from checkout.models import Checkout, LeadNotification, PaymentRequest
from checkout.settling import FINISH_OPERATIONS
from checkout.states import PLEDGEABLE, SHARE_PAID, ShareStatus, Status
from config.lib import wakeup
from payments import disputes, open_operations, planning
from payments.cause import PUMP
from payments.discrepancies import kinds, reporting
from payments.models import Operation, Payment

Kind, State = Operation.Kind, Operation.State


def open_links(checkout: Checkout, at: datetime) -> None:
    """Open the links of a captured order, so that every mate can pay. Also capture the pledges."""
    if checkout.has_mates:
        ends_at = at + settings.PAY_LINK_LIFETIME
        checkout.payment_requests.update(expires_at=ends_at)
        checkout.payment_requests.filter(status=ShareStatus.DRAFT).update(status=ShareStatus.OPEN)
        pledges.capture_all(checkout, at)
        LeadNotification.queue_end(checkout, ends_at)


def record_authorization(checkout: Checkout, operation: Operation, now: datetime) -> None:
    """Plan the capture of a share's hold, or the release of a hold that must not be captured.

    If the order is not captured yet, the hold becomes a pledge. If the money was not held, the share opens again.
    """
    share = _share_of(operation.payment)
    if operation.ended_at is None:
        return
    if operation.state != State.SUCCEEDED:
        reopen_share(checkout, share, now)
    elif not _is_decided(operation.payment):
        reason = _reason_unwanted(checkout, share, operation.payment)
        if reason:
            Payment.objects.filter(pk=operation.payment_id, decline_reason="").update(decline_reason=reason)
            give_up_card(checkout, operation.payment, now)
        elif checkout.status in PLEDGEABLE:
            pledges.record_pledge(checkout, share, now)
        else:
            planning.plan_operations([operation.payment_id], Kind.CAPTURE, now=now, cause=PUMP)
            wakeup.wake_after_commit(FINISH_OPERATIONS)


def is_void_a_fence(payment: Payment) -> bool:
    """Return whether a void of this mate's payment is a fence.

    A fence is a void that is sent because a capture seems to have never arrived. The void proves whether the capture
    happened.
    """
    return _share_of(payment).status == ShareStatus.PAYING and _has_lost_capture(payment)


def _has_lost_capture(payment: Payment) -> bool:
    lost = payment.operations.filter(kind=Kind.CAPTURE, state=State.FAILED, reason="never_arrived")
    return lost.exists()


def _is_decided(payment: Payment) -> bool:
    return payment.operations.filter(kind__in=[Kind.CAPTURE, Kind.VOID]).exists()


def can_charge_mates(checkout: Checkout) -> bool:
    """Return whether mates' cards may still be charged for the order.

    They cannot be charged if the order is not captured, if a dispute is open or lost, or if others refunded some of
    the order at the provider.
    """
    if checkout.status != Status.CAPTURED or disputes.blocking_dispute(checkout.pk) is not None:
        return False
    return not settling.is_refunded_by_others(checkout)


def _reason_unwanted(checkout: Checkout, share: PaymentRequest, payment: Payment) -> str:
    """Return the reason why the held money must not be captured, or "" if it can be captured."""
    # The mate might have switched to another card while the bank was deciding.
    if payment.abandoned_at is not None or share.status != ShareStatus.PAYING:
        return "given_up"
    if not (pledges.is_waiting(checkout) or can_charge_mates(checkout)):
        return "order_ended"
    return "same_card" if pledges.is_leads_card(checkout, payment) else ""


def record_capture(checkout: Checkout, operation: Operation, now: datetime) -> None:
    """Mark a captured share as paid, and settle the order.

    If the capture failed, the hold is released and the share opens again. If the share was pledged, a message about
    the failure is queued for the lead.
    """
    share = _share_of(operation.payment)
    if operation.ended_at is None or share.payment_id == operation.payment_id:
        return
    if share.status != ShareStatus.PAYING:
        if operation.state == State.SUCCEEDED:
            reporting.report_operation(
                operation, kinds.CAPTURED_AFTER_THE_END, subject=operation.payment_id, status=share.status
            )
        return
    if operation.state == State.SUCCEEDED:
        share.move(ShareStatus.PAID, payment=operation.payment, paid_at=now)
        _notify_if_all_paid(checkout, now)
        settling.settle(checkout, now)
    else:
        _give_up_lost_capture(checkout, share, operation.payment, now)


def _give_up_lost_capture(checkout: Checkout, share: PaymentRequest, payment: Payment, now: datetime) -> None:
    """Store that the payment could not be captured, unless another reason is stored, and reopen its share.

    If the share was pledged, a message about the failure is queued for the lead.
    """
    Payment.objects.filter(pk=payment.pk, decline_reason="").update(decline_reason=pledges.NOT_TAKEN)
    give_up_card(checkout, payment, now)
    if pledges.was_pledged(checkout, payment):
        LeadNotification.queue(checkout, LeadNotification.Kind.NOT_TAKEN, now, share)


def _notify_if_all_paid(checkout: Checkout, now: datetime) -> None:
    """Queue a message to the lead if every share that was not cancelled is paid (rule lead.told)."""
    if not checkout.payment_requests.exclude(status__in=[*SHARE_PAID, ShareStatus.CANCELLED]).exists():
        LeadNotification.queue(checkout, LeadNotification.Kind.ALL_PAID, now)


def give_up_card(checkout: Checkout, payment: Payment, now: datetime) -> None:
    """Give up a mate's card: plan the release of its hold, and open the share again without waiting for the release."""
    open_operations.abandon_payment(payment, now)
    release_payment(payment, now)
    reopen_share(checkout, _share_of(payment), now)


def record_void(checkout: Checkout, operation: Operation, now: datetime) -> None:
    """Reopen a share after its hold was released.

    If a restore has lost the hold of a pledge, end the pledge.
    """
    if operation.state == State.SUCCEEDED:
        share = _share_of(operation.payment)
        if share.status == ShareStatus.PAYING and _has_lost_capture(operation.payment):
            _give_up_lost_capture(checkout, share, operation.payment, now)
            return
        if share.status == ShareStatus.PLEDGED and open_operations.live_payment(share.pk) is None:
            pledges.end_pledge(share, now)
        reopen_share(checkout, share, now)


def mark_refunded(payment: Payment, now: datetime) -> None:
    """Mark a share as refunded, because the refund of this payment has reached the mate's card."""
    share = PaymentRequest.objects.filter(payment=payment, status__in=SHARE_PAID).first()
    if share is not None:
        share.move(ShareStatus.REFUNDED, ended_at=now)


def reopen_share(checkout: Checkout, share: PaymentRequest, now: datetime) -> None:
    """Reopen a share that no card is paying any more, or cancel it if the order's links have ended.

    The links have ended if the order has ended, if a dispute was lost, or if others refunded the order at the
    provider. Rules dispute.lost, sync.links.
    """
    if share.status == ShareStatus.PAYING and open_operations.live_payment(share.pk) is None:
        share.move(ShareStatus.OPEN)
        if _have_links_ended(checkout):
            share.move(ShareStatus.CANCELLED, ended_at=now)
        settling.settle(checkout, now)


def _have_links_ended(checkout: Checkout) -> bool:
    if checkout.status in (Status.VOIDED, Status.EXPIRED):
        return True
    return disputes.has_lost_dispute(checkout.pk) or settling.is_refunded_by_others(checkout)


def resume_paying(share_uuid: UUID, now: datetime) -> None:
    """Move a share to `paying`, because its payment was lost in a restore and will be written again.

    If the share is declined or cancelled in the restored database, it is opened first.
    """
    share = PaymentRequest.every.get(pk=share_uuid)
    if share.status in (ShareStatus.DECLINED, ShareStatus.CANCELLED):
        ends_at = share.expires_at or now + settings.PAY_LINK_LIFETIME
        share.move(ShareStatus.OPEN, ended_at=None, expires_at=ends_at)
    if share.status in (ShareStatus.OPEN, ShareStatus.PLEDGED):
        share.move(ShareStatus.PAYING)


def reopen_share_of(checkout: Checkout, payment: Payment, now: datetime) -> None:
    """Reopen the share to which a payment belongs, as `reopen_share` does."""
    reopen_share(checkout, _share_of(payment), now)


def release_payment(payment: Payment, now: datetime) -> None:
    """Plan a void of a payment, unless the payment already has a void that succeeded or can still succeed."""
    if planning.plan_release([payment.pk], now=now):
        wakeup.wake_after_commit(FINISH_OPERATIONS)


def _share_of(payment: Payment) -> PaymentRequest:
    return PaymentRequest.every.select_related("checkout").get(pk=payment.subject)
