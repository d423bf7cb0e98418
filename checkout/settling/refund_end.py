"""Ends refunds. A refund is settled when no card is owed an amount, and fails if no part reached a card.

Rule refund.settled.
"""

from collections.abc import Sequence
from datetime import datetime

from checkout import pauses
from checkout.models import NO_CLAIM, Refund
from checkout.settling import amounts_owed
from checkout.settling.amounts_owed import AmountOwed
from checkout.settling.cards import Accounts
from checkout.states import SHARE_PAID, ShareStatus, Status
from payments import bookings
from payments.cause import PUMP
from payments.discrepancies import kinds, reporting
from payments.models import Payment

REFUNDED_NOTE = "The order was refunded, and its share went back to the mate."


def end_refund(accounts: Accounts, refund: Refund, amounts: Sequence[AmountOwed], now: datetime) -> None:
    """End a pending refund as settled or as failed, if all its parts have ended.

    The refund does not end while a mate's card is being charged, or while a part was sent but is not confirmed.
    `amounts` are the amounts that the cards are still owed.
    """
    if amounts_owed.is_share_being_paid(accounts) or any(
        card.unconfirmed for card in accounts.cards.values()
    ):
        return
    if not amounts:
        _settle_refund(accounts, refund, now)
    elif not amounts_owed.has_refund_begun(accounts, refund) and all(owed.has_failed for owed in amounts):
        _fail_refund(accounts, refund, amounts[0], now)


def resume_refund(accounts: Accounts, now: datetime) -> None:
    """Resume the failed refund of a captured order if a part of it has reached a card after all.

    The provider must have refused this part first. Rule refund.failed.
    """
    reached = {
        key.refund_uuid for key, part in accounts.parts.items() if key.refund_uuid and part.received > 0
    }
    if accounts.checkout.status != Status.CAPTURED or not reached:
        return
    refund = Refund.objects.filter(pk__in=reached, status=Refund.Status.FAILED).last()
    if refund is not None:
        refund.status, refund.failure_reason = Refund.Status.PENDING, None
        refund.save(update_fields=["status", "failure_reason"])
        accounts.checkout.move(Status.REFUNDING, PUMP, now)


def _settle_refund(accounts: Accounts, refund: Refund, now: datetime) -> None:
    """Settle the refund and cancel the open pay links, because each card has received all that it bore.

    If a returned amount is still owed, the refund gets the status `failed`.
    """
    checkout = accounts.checkout
    returned = [part for part in accounts.of_refund(refund.pk).values() if part.outstanding]
    refund.status, refund.settled_at = Refund.Status.SETTLED, now
    if returned:
        reason = returned[0].last.reason if returned[0].last else ""
        refund.status, refund.failure_reason = Refund.Status.FAILED, reason or "refused"
    refund.save(update_fields=["status", "settled_at", "failure_reason"])
    checkout.move(Status.REFUNDED, PUMP, now, refunded_amount=refund.amount, last_refund_at=now)
    captured = Payment.objects.filter(pk__in=accounts.cards, status=Payment.Status.CAPTURED)
    captured.update(status=Payment.Status.REFUNDED)
    if checkout.has_mates:
        _end_shares(accounts, now)


def close_failed_parts(accounts: Accounts, now: datetime) -> None:
    """If a card no longer bears an amount, close the report about its failed part."""
    for card in accounts.cards.values():
        if card.borne <= 0:
            note = "The card is owed nothing any more."
            reporting.close_resolved(kinds.REFUND_PART_FAILED, card.payment.pk, note=note, now=now)


def _end_shares(accounts: Accounts, now: datetime) -> None:
    """End the shares and pay links of a refunded order."""
    close_owed_for_shares(accounts, now)
    for share in accounts.shares:
        if share.status in SHARE_PAID:
            share.move(ShareStatus.REFUNDED, ended_at=now)
        for kind in (kinds.SHARE_NOT_REIMBURSED, kinds.OWED_BEYOND_CARD):
            reporting.close_resolved(kind, share.pk, note=REFUNDED_NOTE, now=now)
    links = accounts.checkout.payment_requests.filter(status=ShareStatus.OPEN)
    links.update(status=ShareStatus.CANCELLED, ended_at=now, **NO_CLAIM)


def close_owed_for_shares(accounts: Accounts, now: datetime) -> None:
    """Close the debts to a refunded order's lead for the shares whose mates were refunded."""
    for share in accounts.shares:
        owed = amounts_owed.uncovered_amount(accounts, share, [])
        card = accounts.cards[share.payment_id] if share.payment_id else None
        if owed > 0 and card is not None:
            closed = bookings.close_owed(
                card.payment, share.pk, owed, note=REFUNDED_NOTE, now=now, cause=PUMP
            )
            accounts.bookings.append(closed)


def _fail_refund(accounts: Accounts, refund: Refund, amount_owed: AmountOwed, now: datetime) -> None:
    """Fail the refund, because no part reached a card, and resume the paused pay links.

    Rules refund.failed, share.pauses.
    """
    last = amount_owed.part.last
    refund.status, refund.failure_reason = Refund.Status.FAILED, (last.reason if last else "") or "refused"
    refund.save(update_fields=["status", "failure_reason"])
    accounts.checkout.move(Status.CAPTURED, PUMP, now)
    pauses.extend_links_after_pause(accounts.checkout, now)
