"""Records, ends and captures pledges: money that is held on mates' cards before the lead pays (rules pledge.*).

A pledged share has the status `pledged`. The hold is the live payment of the share. Every function must be called
with the checkouts locked.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from checkout.models import NO_CLAIM, Checkout, LeadNotification, PaymentRequest
from checkout.settling import FINISH_OPERATIONS
from checkout.states import PLEDGEABLE, ShareStatus, Status
from config.lib import wakeup
from payments import open_operations, operator_stops, planning
from payments.cause import PUMP
from payments.models import Operation, Payment

# While at least this much time is left, the lead can choose that everyone pledges first.
MIN_TIME_LEFT = timedelta(minutes=10)
# Decline reasons for a hold that is released because its pledge has ended.
NOT_PLEDGED, WITHDRAWN, SAME_CARD, ANOTHER_CARD = "pledge_ended", "withdrawn", "same_card", "another_card"
SHOP_STOPPED = "shop_stopped"  # an operator stopped the merchant
NOT_TAKEN = "not_taken"  # decline reason for a mate's hold that could not be captured
ENDED = (NOT_PLEDGED, WITHDRAWN, SAME_CARD, ANOTHER_CARD, SHOP_STOPPED, NOT_TAKEN)
# Decline reasons of payments whose holds are released, even if the bank reports a hold only later.
RELEASED = (
    *ENDED,
    *("given_up", "never_arrived", "order_ended"),
)


def can_collect(checkout: Checkout, now: datetime) -> bool:
    """Return whether the lead can choose that everyone pledges first: enough time to pay must be left."""
    return checkout.status == Status.CREATED and checkout.payable_until - now >= MIN_TIME_LEFT


def is_waiting(checkout: Checkout) -> bool:
    """Return whether mates can pledge for the order: it is unpaid or held, and its merchant is not stopped."""
    return checkout.status in PLEDGEABLE and not operator_stops.is_stopped(checkout.merchant_id)


def open_links(checkout: Checkout) -> None:
    """Open the links of an unpaid order, so that mates can pledge until the order expires."""
    drafts = checkout.payment_requests.filter(status=ShareStatus.DRAFT)
    drafts.update(status=ShareStatus.OPEN, expires_at=checkout.payable_until)


def record_pledge(checkout: Checkout, share: PaymentRequest, now: datetime) -> None:
    """Mark a share as pledged, because the money is held on the mate's card.

    If all mates have now pledged, queue a message to the lead.
    """
    share.move(ShareStatus.PLEDGED)
    notify_if_all_in(checkout, now)


def notify_if_all_in(checkout: Checkout, now: datetime) -> None:
    """If all mates have pledged, queue a message to the lead, once for each order (rule pledge.lead_told)."""
    shares = checkout.payment_requests.all()
    is_missing = any(share.status in (ShareStatus.OPEN, ShareStatus.PAYING) for share in shares)
    if is_missing or not any(share.status == ShareStatus.PLEDGED for share in shares):
        return
    if not LeadNotification.objects.filter(checkout=checkout, kind=LeadNotification.Kind.ALL_IN).exists():
        LeadNotification.queue(checkout, LeadNotification.Kind.ALL_IN, now)


def end_pledge(share: PaymentRequest, now: datetime, reason: str = NOT_PLEDGED) -> None:
    """End a pledge: release the hold, and open the share again. `reason` is stored in the payment."""
    share.checkout.touch()
    live = open_operations.live_payment(share.pk)
    if live is not None:
        release_holds([live.payment], now, reason)
    # If a mate has withdrawn, the share shows the mate's name until another person takes the share.
    share.move(
        ShareStatus.OPEN, **NO_CLAIM | ({"claim_name": share.claim_name} if reason == WITHDRAWN else {})
    )


def release_holds(payments: Sequence[Payment], now: datetime, reason: str = NOT_PLEDGED) -> None:
    """Give up the cards of pledges that have ended, and plan the release of the holds."""
    ids = [payment.pk for payment in payments]
    Payment.objects.filter(pk__in=ids, decline_reason="").update(decline_reason=reason)
    for payment in payments:
        open_operations.abandon_payment(payment, now)
    if planning.plan_release(ids, now=now):
        wakeup.wake_after_commit(FINISH_OPERATIONS)


def end_with_orders(checkouts: Sequence[Checkout], now: datetime) -> None:
    """Cancel the unpaid shares of orders that have ended without a capture, and release the holds for these shares.

    If the card for a share is being authorized, the share is cancelled only after the bank has answered.
    """
    split = [checkout.pk for checkout in checkouts if checkout.has_mates]
    if not split:
        return
    rows = PaymentRequest.objects.filter(checkout__in=split)
    pledged = list(rows.filter(status=ShareStatus.PLEDGED).values_list("pk", flat=True))
    if pledged:
        release_holds(list(Payment.objects.filter(subject__in=pledged, is_live=True)), now)
        rows.filter(pk__in=pledged).update(status=ShareStatus.OPEN)
    unpaid = rows.filter(status__in=[ShareStatus.DRAFT, ShareStatus.OPEN])
    unpaid.update(status=ShareStatus.CANCELLED, ended_at=now, **NO_CLAIM)


def end_all_of_stopped_merchant(checkout: Checkout, now: datetime) -> None:
    """End all pledges of an order, because an operator has stopped its merchant."""
    for share in checkout.payment_requests.filter(status=ShareStatus.PLEDGED):
        end_pledge(share, now, SHOP_STOPPED)


def end_those_of_lead(checkout: Checkout, now: datetime) -> None:
    """End the pledges of a held order that were made with the lead's own number or card (rule pledge.lead).

    A pledge without a hold, which can exist after a restore, also ends.
    """
    if not checkout.has_mates:
        return
    for share in checkout.payment_requests.filter(status=ShareStatus.PLEDGED):
        live = open_operations.live_payment(share.pk)
        is_theirs = share.mate_id == checkout.lead_id or (live and is_leads_card(checkout, live.payment))
        if live is None or is_theirs:
            end_pledge(share, now, SAME_CARD)


def is_leads_card(checkout: Checkout, payment: Payment) -> bool:
    """Return whether a mate's payment uses the card with which the lead paid."""
    lead = checkout.payment
    return lead is not None and lead.card_fingerprint == payment.card_fingerprint != ""


def capture_all(checkout: Checkout, now: datetime) -> None:
    """Plan a capture for each pledge of an order that has just been captured."""
    end_those_of_lead(checkout, now)
    pledged = list(checkout.payment_requests.filter(status=ShareStatus.PLEDGED))
    for share in pledged:
        share.move(ShareStatus.PAYING)
    if pledged:
        holds = Payment.objects.filter(subject__in=[share.pk for share in pledged], is_live=True)
        planning.plan_operations(
            sorted(holds.values_list("pk", flat=True)), Operation.Kind.CAPTURE, now=now, cause=PUMP
        )
        wakeup.wake_after_commit(FINISH_OPERATIONS)


def shares_being_taken(checkout: Checkout, shares: Sequence[PaymentRequest]) -> set[UUID]:
    """Return the ids of the shares whose pledges are being captured."""
    paying = [share.pk for share in shares if share.status == ShareStatus.PAYING]
    if not paying or checkout.captured_at is None:
        return set()
    holds = Payment.objects.filter(subject__in=paying, is_live=True, status=Payment.Status.AUTHORIZED)
    return set(holds.filter(created_at__lt=checkout.captured_at).values_list("subject", flat=True))


def ended_hold(share: PaymentRequest, mate_uuid: UUID | None) -> Payment | None:
    """Return the last payment for this mate's share if it was a pledge and has ended, otherwise None."""
    last = last_payment(share, mate_uuid)
    is_hold = last is not None and last.status != Payment.Status.DECLINED
    return last if last is not None and is_hold and last.decline_reason in ENDED else None


def released_hold(share: PaymentRequest, mate_uuid: UUID | None) -> Payment | None:
    """Return the last payment for this mate's share if its hold is being released or was released, otherwise None.

    The payment has the status `authorizing` if the bank has not answered yet. If the bank then reports a hold, the
    hold is released. Call this only if no card is paying the share, or if the order has ended.
    """
    last = last_payment(share, mate_uuid)
    if last is None or last.status == Payment.Status.AUTHORIZING:
        return last
    is_hold = last.status in (Payment.Status.AUTHORIZED, Payment.Status.VOIDED)
    return last if is_hold and last.decline_reason in RELEASED else None


def last_payment(share: PaymentRequest, mate_uuid: UUID | None) -> Payment | None:
    """Return the last payment for a share, or None if another person made it."""
    if mate_uuid is None or share.mate_id != mate_uuid:
        return None
    return Payment.objects.filter(subject=share.pk).order_by("-created_at").first()


def was_pledged(checkout: Checkout, payment: Payment) -> bool:
    """Return whether a share's payment began before the order was captured."""
    return checkout.captured_at is not None and payment.created_at < checkout.captured_at


def replace_share(share: PaymentRequest, now: datetime) -> None:
    """Remove a share from the current split, because a newer split replaces it.

    A share whose link was never active is deleted. Any other share is cancelled, and its hold is released.
    """
    if share.status == ShareStatus.DRAFT:
        share.delete()
        return
    _end_payment(share, now)
    if share.status != ShareStatus.CANCELLED:
        share.move(ShareStatus.CANCELLED, ended_at=now)
    share.replaced_at = now
    share.save(update_fields=["replaced_at"])


def change_share(share: PaymentRequest, amount: int, units: Sequence[int], now: datetime) -> None:
    """Change the amount and the units of a share. Its link stays the same.

    An existing hold is released and a claim ends, because no mate has agreed to the new amount yet.
    """
    _end_payment(share, now)
    share.amount, share.units = amount, list(units)
    share.save(update_fields=["amount", "units"])
    if share.claim_digest:
        share.end_claim()


def _end_payment(share: PaymentRequest, now: datetime) -> None:
    """End the pledge of a share, or the unfinished payment of a mate who wants to pledge."""
    live = open_operations.live_payment(share.pk)
    if live is not None:
        _give_up(live.payment, live.open_uuid is not None, now)
    if share.status in (ShareStatus.PLEDGED, ShareStatus.PAYING):
        # The mate's name is kept, because the lead's page names the mate whose pledge has ended.
        kept = {"claim_name": share.claim_name} if share.status == ShareStatus.PLEDGED else {}
        share.move(ShareStatus.OPEN, **NO_CLAIM | kept)


def _give_up(payment: Payment, is_asked: bool, now: datetime) -> None:
    """Give up a card. If its authorization is still open, the hold is released after the bank has answered."""
    if is_asked:
        open_operations.abandon_payment(payment, now)
    else:
        release_holds([payment], now)
