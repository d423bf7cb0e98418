"""Books closings, which end a debt to the lead after a lost dispute, and reports returned refunds.

A lost dispute can return the money for a share to the mate or to the lead. The service then does not reimburse the lead
for this share, but books a closing.
"""

from datetime import datetime
from uuid import UUID

from checkout.models import PaymentRequest, Refund
from checkout.settling.amounts_owed import AmountOwed, uncovered_amount
from checkout.settling.cards import Accounts, Card, Part
from checkout.states import ShareStatus
from payments import bookings
from payments.cause import PUMP
from payments.discrepancies import kinds, reporting
from payments.models import Booking

LOST_DISPUTE_NOTE = "A dispute that was lost has given it back."
REVERSAL_NOTE = "The dispute was decided again."


def apply_dispute_decisions(accounts: Accounts, now: datetime) -> None:
    """Close each share whose whole amount the mate got in a lost dispute. Reverse closings after a won appeal.

    Rule dispute.lost.
    """
    for disputed in accounts.cards.values():
        _reverse_closings(accounts, disputed, disputed.disputed, now)
    for share in accounts.shares:
        _reopen_share(accounts, share)
        card = accounts.cards[share.payment_id] if share.payment_id else None
        part = accounts.reimbursement(share)[1]
        owed = accounts.owed_to_lead(share)
        if card is None or card.disputed < share.amount or part.unconfirmed or part.received > 0 or owed <= 0:
            continue
        _close_owed(accounts, card, share.pk, owed, now)
        reporting.close_resolved(kinds.OWED_BEYOND_CARD, share.pk, note=LOST_DISPUTE_NOTE, now=now)
        if share.status == ShareStatus.PAID:
            share.move(ShareStatus.REFUNDED, ended_at=now)


def _reopen_share(accounts: Accounts, share: PaymentRequest) -> None:
    """Move an ended share back to `paid` if the lead is owed some of it again, because a closing was reversed."""
    has_ended = share.status in (ShareStatus.REIMBURSED, ShareStatus.REFUNDED)
    part = accounts.reimbursement(share)[1]
    if has_ended and accounts.owed_to_lead(share) > part.unconfirmed + part.outstanding:
        share.move(ShareStatus.PAID, ended_at=None)


def close_against_disputes(accounts: Accounts, amounts: list[AmountOwed], now: datetime) -> None:
    """Close shares, up to the amount that the lead got in lost disputes.

    If the lead is owed more than that, and the lead's card cannot take it, the rest is reported.
    """
    _close_lost_amounts(accounts, amounts, now)
    for share in accounts.shares:
        rest = uncovered_amount(accounts, share, amounts)
        if rest > 0 and accounts.lead is not None:
            facts = {
                "checkout": str(accounts.checkout.pk),
                "amount": rest,
                "disputed": accounts.lead.disputed,
            }
            merchant = accounts.checkout.merchant_id
            reporting.report(kinds.OWED_BEYOND_CARD, share.pk, merchant=merchant, **facts)


def close_by_lead_disputes(accounts: Accounts, now: datetime) -> None:
    """Close the debt to the lead of a refunded order, up to the amount that the lead got in lost disputes.

    There can be such a debt, because a reimbursement can be returned after the refund. If an appeal reduces the
    amount that disputes took, closings are reversed.
    """
    if accounts.lead is not None:
        _reverse_closings(accounts, accounts.lead, accounts.lead.disputed, now)
        _close_lost_amounts(accounts, [], now)


def _close_lost_amounts(accounts: Accounts, amounts: list[AmountOwed], now: datetime) -> None:
    lead = accounts.lead
    if lead is None:
        return
    for share in accounts.shares:
        closed = min(
            uncovered_amount(accounts, share, amounts), lead.disputed - _closed_amount_on(accounts, lead)
        )
        if closed > 0:
            _close_owed(accounts, lead, share.pk, closed, now)


def _closed_amount_on(accounts: Accounts, card: Card) -> int:
    rows = (row for row in accounts.bookings if row.kind == Booking.Kind.CLOSING)
    return sum(row.amount for row in rows if row.payment_id == card.payment.pk)


def _close_owed(accounts: Accounts, card: Card, share_uuid: UUID, amount: int, now: datetime) -> None:
    booking = bookings.close_owed(
        card.payment, share_uuid, amount, note=LOST_DISPUTE_NOTE, now=now, cause=PUMP
    )
    accounts.bookings.append(booking)
    reporting.close_resolved(kinds.SHARE_NOT_REIMBURSED, booking.share_uuid, note=LOST_DISPUTE_NOTE, now=now)


def _reverse_closings(accounts: Accounts, card: Card, limit: int, now: datetime) -> None:
    """Reverse the closings on a card, newest first, until their sum is at most `limit`."""
    reversed_ones = {row.reverses_id for row in accounts.bookings}
    closings = [
        row
        for row in accounts.bookings
        if row.kind == Booking.Kind.CLOSING and row.payment_id == card.payment.pk and row.reverses_id is None
    ]
    for row in sorted(closings, key=lambda row: row.created_at, reverse=True):
        if row.pk not in reversed_ones and _closed_amount_on(accounts, card) > limit:
            reversal = bookings.reverse(row, note=REVERSAL_NOTE, now=now, cause=PUMP)
            accounts.bookings.append(reversal)


def mark_reimbursed(accounts: Accounts, now: datetime) -> None:
    """Mark each paid share as reimbursed if the lead is no longer owed an amount for it."""
    for share in accounts.shares:
        if share.status == ShareStatus.PAID and accounts.owed_to_lead(share) <= 0:
            share.move(ShareStatus.REIMBURSED)
            for kind in (kinds.SHARE_NOT_REIMBURSED, kinds.OWED_BEYOND_CARD):
                reporting.close_resolved(kind, share.pk, note="The lead has got it.", now=now)


def report_returned_refunds(accounts: Accounts, now: datetime, *, is_disputed: bool = False) -> None:
    """Report each returned refund while its amount is owed. Close the report when the payer has the amount.

    While an amount is owed, the order's refund has the status `failed`. While a dispute is open, reports are not
    closed, because it is not known whether the payer will get the amount. Rule refund.returned.
    """
    returned = {
        key: part
        for key, part in accounts.parts.items()
        if part.returned_uuids and (part.outstanding or not is_disputed)
    }
    for part in returned.values():
        _report_returned(part, now)
    for refund_uuid in {key.refund_uuid for key in returned if key.refund_uuid}:
        parts = accounts.of_refund(refund_uuid).values()
        unresolved = [part.last for part in parts if part.outstanding or part.is_sent_again]
        ended = Refund.objects.filter(pk=refund_uuid, settled_at__isnull=False)
        if unresolved:
            reason = next((last.reason for last in unresolved if last and last.reason), "refused")
            ended.update(status=Refund.Status.FAILED, failure_reason=reason)
        else:
            ended.update(status=Refund.Status.SETTLED, failure_reason=None)


def _report_returned(part: Part, now: datetime) -> None:
    """Report the newest returned refunds, up to the amount that is owed. Close the reports about the others."""
    remaining = part.outstanding
    attempts = [row for row in part.attempts if row.pk in part.returned_uuids]
    for row in sorted(attempts, key=lambda row: row.created_at, reverse=True):
        if remaining > 0:
            checkout = str(row.payment.checkout_uuid)
            reporting.report_operation(
                row, kinds.REFUND_RETURNED, checkout=checkout, amount=row.amount, reason=row.reason
            )
            remaining -= row.amount
        elif not part.is_sent_again:
            reporting.close_resolved(kinds.REFUND_RETURNED, row.pk, note="The payer has got it.", now=now)
