"""`settle` compares the amount that each card of an order bears with its target, and plans refunds of the difference.

The table of targets is in docs/money.md. Rules settle.targets, refund.same_cards, reimburse.lead.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from checkout.models import Checkout, Refund
from checkout.settling import amounts_owed, cards, closings, refund_end
from checkout.settling.amounts_owed import AmountOwed
from checkout.settling.cards import Accounts
from checkout.states import PAID, Status
from config.lib import wakeup
from payments import disputes, planning
from payments.cause import PUMP, Cause
from payments.discrepancies import kinds, reporting
from payments.models import Operation
from payments.planning import OperationDetails

FINISH_OPERATIONS = "checkout.tasks.finish_operations"
State = Operation.State


def settle(checkout: Checkout, now: datetime, cause: Cause = PUMP) -> None:
    """Plan refunds of the amounts that the cards of an order are owed, and end a refund that is complete.

    Planned refunds that are no longer owed are withdrawn. While a dispute about one of the cards is open, no refund
    is planned. It is safe to call this again. Must be called with the checkout locked.
    """
    if checkout.status not in PAID or checkout.is_settled_later:
        return
    accounts = cards.read_accounts(checkout)
    if disputes.has_open_dispute(checkout.pk):
        _plan_owed_refunds(accounts, [], now, cause)
        closings.report_returned_refunds(accounts, now, is_disputed=True)
        return
    refund_end.resume_refund(accounts, now)
    refund = amounts_owed.current_refund(accounts)
    if refund is not None:
        _settle_refund(accounts, refund, now, cause)
    # If the refund has just failed, the order is `captured` again.
    if checkout.status == Status.CAPTURED:
        _settle_captured(accounts, now, cause)
    closings.report_returned_refunds(accounts, now)
    _report_excess(accounts)


@contextmanager
def defer_settling(checkout: Checkout) -> Iterator[None]:
    """Suspend `settle` for an order while the `with` block runs. The caller must call `settle` afterwards.

    While only a part of the provider's books is recorded, the amounts owed would be wrong.
    """
    checkout.is_settled_later = True
    try:
        yield
    finally:
        checkout.is_settled_later = False


def _settle_captured(accounts: Accounts, now: datetime, cause: Cause) -> None:
    closings.apply_dispute_decisions(accounts, now)
    amounts = amounts_owed.find_reimbursements(accounts, now)
    _plan_owed_refunds(accounts, amounts, now, cause)
    closings.close_against_disputes(accounts, amounts, now)
    closings.mark_reimbursed(accounts, now)


def _settle_refund(accounts: Accounts, refund: Refund, now: datetime, cause: Cause) -> None:
    amounts = amounts_owed.find_refund_parts(accounts, refund, now)
    _plan_owed_refunds(accounts, amounts, now, cause)
    is_pending = refund.status == Refund.Status.PENDING
    if is_pending and not any(owed.has_open_attempt for owed in amounts):
        refund_end.end_refund(accounts, refund, amounts, now)
    if accounts.checkout.status == Status.REFUNDED:
        closings.close_by_lead_disputes(accounts, now)
        refund_end.close_failed_parts(accounts, now)
        refund_end.close_owed_for_shares(accounts, now)


def _report_excess(accounts: Accounts) -> None:
    """Report each card that got back too much. Amounts that disputes took are not counted.

    A refund that was sent is counted only after the provider has accepted it, because it might never arrive.
    """
    checkout = accounts.checkout
    for card in accounts.cards.values():
        excess = accounts.target(card) - card.disputed - card.borne + card.accepted
        if excess > 0:
            facts = {"checkout": str(checkout.pk), "amount": excess, "currency": checkout.currency}
            reporting.report(kinds.CARD_GOT_TOO_MUCH, card.payment.pk, merchant=checkout.merchant_id, **facts)


def _plan_owed_refunds(
    accounts: Accounts, amounts: Sequence[AmountOwed], now: datetime, cause: Cause
) -> None:
    """Plan a refund for each amount that no planned refund covers.

    All other planned refunds are withdrawn. A refund that an operator planned to replace a returned refund stays
    planned.
    """
    planned = {
        row.pk: row for part in accounts.parts.values() for row in part.attempts if row.state == State.PLANNED
    }
    for amount_owed in amounts:
        fitting = next((row for row in planned.values() if amount_owed.is_met_by(row)), None)
        if fitting is not None:
            del planned[fitting.pk]
        elif amount_owed.at is not None:
            details = OperationDetails(
                amount_owed.amount, amount_owed.key.refund_uuid, amount_owed.key.share_uuid, at=amount_owed.at
            )
            planning.plan_operations(
                [amount_owed.key.payment_uuid], Operation.Kind.REFUND, now=now, cause=cause, details=details
            )
            wakeup.wake_after_commit(FINISH_OPERATIONS)
    obsolete = [row.pk for row in planned.values() if not _is_planned_resend(accounts, row)]
    if obsolete:
        planning.withdraw_planned(Operation.objects.filter(pk__in=obsolete), now=now)


def _is_planned_resend(accounts: Accounts, planned: Operation) -> bool:
    """Return whether an operator planned this refund to replace a returned refund that is still owed."""
    if planned.resends_id is None or disputes.has_open_dispute(accounts.checkout.pk):
        return False
    return any(
        planned in part.attempts and part.outstanding >= planned.amount for part in accounts.parts.values()
    )
