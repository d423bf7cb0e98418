"""Finds the amounts that the cards of an order are owed.

If the order is captured, the lead's card is owed a reimbursement for each paid share. If the order is being refunded
or was refunded, each card is owed its part of the refund.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import Min, Q

from checkout.models import PaymentRequest, Refund
from checkout.settling.cards import NOT_CARRIED_OUT, REFUSED, Accounts, Part, PartKey
from checkout.states import ShareStatus, Status
from payments import planning
from payments.discrepancies import kinds, reporting
from payments.discrepancies.definitions import DiscrepancyKind
from payments.models import Operation

REIMBURSED_AGAIN_AFTER = timedelta(days=1)  # time between a failed reimbursement and the next attempt
REFUNDED_AGAIN_AFTER = timedelta(hours=1)  # time between a failed part of a refund and the next attempt
TRIED_FOR = timedelta(days=3)  # after this time, the service stops trying, and an operator decides


class AmountOwed(NamedTuple):
    """An amount that a card is owed. It is refunded at the time `at`.

    If `at` is None, only an operator can refund it.
    """

    key: PartKey
    amount: int
    at: datetime | None
    part: Part

    def is_met_by(self, planned: Operation) -> bool:
        """Return whether this planned refund covers the amount.

        If `at` is None, an operator must have planned the refund, and its amount can be smaller.
        """
        same = PartKey(planned.payment_id, planned.refund_uuid, planned.share_uuid) == self.key
        fits = planned.amount == self.amount or (self.at is None and planned.amount <= self.amount)
        return same and planned.resends_id is None and fits

    @property
    def has_failed(self) -> bool:
        last = self.part.last
        return last is not None and last.state in REFUSED

    @property
    def has_open_attempt(self) -> bool:
        return any(row.ended_at is None for row in self.part.attempts)


def find_amounts_owed(accounts: Accounts, now: datetime) -> list[AmountOwed]:
    """Return the amounts that the cards of a captured, refunding or refunded order are owed."""
    refund = current_refund(accounts)
    return find_refund_parts(accounts, refund, now) if refund else find_reimbursements(accounts, now)


def current_refund(accounts: Accounts) -> Refund | None:
    """Return the pending or settled refund of an order, or None if the order is captured."""
    if accounts.checkout.status == Status.CAPTURED:
        return None
    is_current = Q(status=Refund.Status.PENDING) | Q(settled_at__isnull=False)
    return Refund.objects.filter(is_current, checkout=accounts.checkout.pk).latest("created_at")


def find_reimbursements(accounts: Accounts, now: datetime) -> list[AmountOwed]:
    """Return the amounts that the lead's card is owed for the shares that mates have paid.

    Rules reimburse.lead, reimburse.retry.
    """
    return list(_iterate_reimbursements(accounts, now))


def _iterate_reimbursements(accounts: Accounts, now: datetime) -> Iterator[AmountOwed]:
    if accounts.lead is None:
        return
    remaining = accounts.lead.owed(accounts.target(accounts.lead))
    for share in accounts.shares:
        key, part = accounts.reimbursement(share)
        owed = accounts.owed_to_lead(share) - part.unconfirmed - part.outstanding
        amount = min(owed, remaining)
        if amount > 0:
            remaining -= amount
            at = _send_time(
                part, max(now, reimbursement_due_at(share.paid_at or now)), REIMBURSED_AGAIN_AFTER, now
            )
            amount_owed = AmountOwed(key, amount, at, part)
            if at is None:
                _report(amount_owed, kinds.SHARE_NOT_REIMBURSED, share.pk)
            yield amount_owed


def reimbursement_due_at(paid_at: datetime) -> datetime:
    """Return when the reimbursement is due for a share that was paid at `paid_at` (rule reimburse.delay)."""
    return paid_at + settings.REIMBURSEMENT_DELAY


def find_refund_parts(accounts: Accounts, refund: Refund, now: datetime) -> list[AmountOwed]:
    """Return the amount that a refund owes to each card: the whole amount that the card still bears.

    If all parts of a refund fail, the whole refund fails. A failed part is therefore tried again only after another
    part has succeeded. Rules refund.same_cards, refund.goes_on, refund.unreimbursed.
    """
    amounts, has_begun = [], refund.settled_at is not None or has_refund_begun(accounts, refund)
    for card in accounts.cards.values():
        amount = card.owed(0)
        if amount <= 0:
            continue
        key = PartKey(card.payment.pk, refund.pk, None)
        part = accounts.part(key)
        at = _send_time(part, now, REFUNDED_AGAIN_AFTER, now) if has_begun or not _is_refused(part) else None
        amount_owed = AmountOwed(key, amount, at, part)
        if amount_owed.has_failed and has_begun:
            _report(amount_owed, kinds.REFUND_PART_FAILED, card.payment.pk)
        amounts.append(amount_owed)
    return amounts


def has_refund_begun(accounts: Accounts, refund: Refund) -> bool:
    """Return whether any part of a refund has reached a card or was settled outside the service."""
    return any(part.refunded or part.settled for part in accounts.of_refund(refund.pk).values())


def is_share_being_paid(accounts: Accounts) -> bool:
    """Return whether a mate's card is being charged now. A refund waits until this has ended (rule refund.waits)."""
    paying = ShareStatus.PAYING
    return accounts.checkout.has_mates and accounts.checkout.payment_requests.filter(status=paying).exists()


def _is_refused(part: Part) -> bool:
    return part.last is not None and part.last.state in REFUSED


def _send_time(part: Part, first: datetime, gap: timedelta, now: datetime) -> datetime | None:
    """Return the time at which to send a part: `first`, or `gap` after the last refused attempt if that is later.

    Returns None if the part has been tried for three days.
    """
    last = part.last
    if last is None or last.state not in REFUSED or last.ended_at is None:
        return first
    began_at = min(row.created_at for row in part.executed)
    return max(first, last.ended_at + gap) if now - began_at < TRIED_FOR else None


def first_tried_at(refund: Operation) -> datetime:
    """Return the time of the first attempt to refund a part. Attempts end three days after this time.

    `refund` is any attempt to refund this part.
    """
    attempts = planning.attempts_at_same_part(refund).exclude(state=Operation.State.PLANNED)
    executed = attempts.exclude(reason__in=NOT_CARRIED_OUT)
    first: datetime | None = executed.aggregate(first=Min("created_at"))["first"]
    return first or refund.created_at


def _report(amount_owed: AmountOwed, kind: DiscrepancyKind, subject: UUID) -> None:
    last = amount_owed.part.last
    if last is not None:
        reporting.report_operation(last, kind, subject=subject, reason=last.reason)


def uncovered_amount(accounts: Accounts, share: PaymentRequest, amounts: list[AmountOwed]) -> int:
    """Return the part of a share that the lead is owed and that no refund covers yet.

    Amounts that are being refunded, that are in `amounts`, or that were returned count as covered.
    """
    key, part = accounts.reimbursement(share)
    planned = sum(owed.amount for owed in amounts if owed.key == key)
    return accounts.owed_to_lead(share) - part.unconfirmed - part.outstanding - planned
