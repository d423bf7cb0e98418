"""Builds the status page of a share, with texts for its viewer (rules pay.honest_page, page.viewer)."""

from datetime import datetime
from uuid import UUID

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from checkout import pledges, refunds, settling
from checkout.group import pledging
from checkout.models import PaymentRequest
from checkout.settling.cards import Accounts
from checkout.states import ShareStatus, Status
from hosted_page import summary
from hosted_page.payment_target import PaymentTarget, lead_name
from hosted_page.status import receipt, refund
from hosted_page.status.cells import Situation, Viewer, fill
from hosted_page.status.order_status import (
    PageStatus,
    late_sentence,
    page_of,
    requested_amount_sentence,
    show_refund,
    unanswered_situation,
)
from hosted_page.status.paid_cells import GOES_TO_LEAD, IS_WITH_LEAD, SETTLED_UP, TAKEN
from payments import disputes, money, open_operations, operation_queue, operator_stops
from payments.models import Dispute, Operation, Payment

# The kind of viewer for a share that ended unpaid, by the status of the share.
VIEWERS = {ShareStatus.DECLINED: Viewer.REFUSED, ShareStatus.EXPIRED: Viewer.LATE}
# Where the money of an uncaptured order is, by the status of the order.
SITUATIONS = {
    Status.CREATED: Situation.UNPAID,
    Status.AUTHORIZED: Situation.HELD,
    Status.VOIDED: Situation.RELEASED,
    Status.EXPIRED: Situation.EXPIRED,
    Status.REFUNDING: Situation.REFUNDING,
    Status.REFUNDED: Situation.REFUNDED,
}


def share_status_of(target: PaymentTarget, customer_uuid: UUID | None, now: datetime) -> PageStatus | None:
    """Return the current status of a share, or None while it can be paid.

    Only the share's mate sees card details.
    """
    if target.share is None:
        raise ValueError("A pay link leads to a share.")
    is_mate = customer_uuid is not None and customer_uuid == target.share.mate_id
    view = _ShareView(target, target.share, is_mate, now)
    return view.build_page()


class _ShareView:
    """A visit to a share's page, by its mate or by a person who has only the link."""

    def __init__(self, target: PaymentTarget, share: PaymentRequest, is_mate: bool, now: datetime) -> None:
        self.target, self.share, self.is_mate, self.now = target, share, is_mate, now
        self.checkout = target.checkout
        self.operation: Operation | None = None
        self.accounts: Accounts | None = None
        self.returned_amount = 0  # amount that lost disputes returned to the mate, in minor units

    def build_page(self) -> PageStatus | None:
        """Return the contents of the page, or None while the share can be paid."""
        match self.share.status:
            case ShareStatus.DRAFT:
                return self._page_for(SITUATIONS[Status(self.checkout.status)], Viewer.HOLDER)
            case ShareStatus.OPEN if self.target.is_payable:
                return self._open_page()
            case ShareStatus.OPEN:
                return self._unpaid_page(SITUATIONS[Status(self.checkout.status)], Viewer.HOLDER)
            case ShareStatus.PLEDGED:
                return self._pledged_page()
            case ShareStatus.PAYING:
                return self._paying_page()
            case ShareStatus.PAID | ShareStatus.REIMBURSED | ShareStatus.REFUNDED:
                return self._paid_page()
        viewer = VIEWERS.get(ShareStatus(self.share.status), Viewer.FORMER)
        return self._unpaid_page(self._situation_of_order(), viewer)

    def _open_page(self) -> PageStatus | None:
        """Return the page for an open share that cannot be paid now, or None if the share can be paid."""
        if disputes.blocking_dispute(self.checkout.pk) is not None:
            return self._unpaid_page(Situation.DISPUTED, Viewer.HOLDER)
        if operator_stops.is_stopped(self.checkout.merchant_id):
            is_paid = self.checkout.status == Status.CAPTURED
            return self._unpaid_page(Situation.SUSPENDED if is_paid else Situation.STOPPED, Viewer.HOLDER)
        return None

    def _unpaid_page(self, situation: Situation, viewer: Viewer) -> PageStatus:
        """Return the page for a mate who did not pay, with the sentences about a released hold."""
        page = self._page_for(situation, viewer)
        page.paragraphs += self._released_hold()
        return page

    def _page_for(self, situation: Situation, viewer: Viewer) -> PageStatus:
        return page_of(situation, viewer, self._values(situation))

    def _situation_of_order(self) -> Situation:
        """Return where the order's money is, for a mate who is not asked to pay any more."""
        if self.checkout.status != Status.CAPTURED:
            has_lost = disputes.has_lost_dispute(self.checkout.pk)
            return Situation.BANK_RETURNED if has_lost else SITUATIONS[Status(self.checkout.status)]
        if settling.is_refunded_by_others(self.checkout):
            return Situation.REFUNDED_OUTSIDE
        dispute = disputes.blocking_dispute(self.checkout.pk)
        if dispute is None:
            return Situation.PAID
        is_lost = dispute.status == Dispute.Status.LOST or disputes.has_lost_dispute(self.checkout.pk)
        return Situation.BANK_RETURNED if is_lost else Situation.DISPUTED

    def _pledged_page(self) -> PageStatus:
        is_held = self.checkout.status == Status.AUTHORIZED
        situation = Situation.PLEDGE_CHECKED if is_held else Situation.PLEDGED
        if not self.is_mate:
            return self._page_for(situation, Viewer.PAY_LINK)
        live_payment = open_operations.live_payment(self.share.pk)
        card = summary.card_in_words(live_payment.payment if live_payment else None, is_owner=True)
        page = page_of(situation, Viewer.HOLDER, self._values(situation) | {"card": card})
        page.may_withdraw = None if is_held else pledging.may_withdraw(self.checkout)
        return page

    def _paying_page(self) -> PageStatus:
        if self.checkout.status in (Status.VOIDED, Status.EXPIRED):
            return self._unpaid_page(self._situation_of_order(), Viewer.FORMER)
        viewer = Viewer.HOLDER if self.is_mate else Viewer.PAY_LINK
        self.operation = open_operations.open_operation(self.share.pk)
        if self.operation is None or self.operation.kind != Operation.Kind.AUTHORIZE:
            return self._page_for(self._taking_situation(), viewer)
        situation = unanswered_situation(self.operation, self.now)
        page = self._page_for(situation, viewer)
        if self.is_mate and situation == Situation.CONFIRM:
            page.action_url = self.operation.action_url
        page.may_change_card = self.is_mate and situation != Situation.CHECKING
        return page

    def _taking_situation(self) -> Situation:
        """Return the situation of a share whose hold is being captured.

        The waiting time counts from the first capture request, even if the bank is now only asked whether that request
        arrived.
        """
        captures = Operation.objects.filter(
            payment__subject=self.share.pk, payment__is_live=True, kind=Operation.Kind.CAPTURE
        )
        is_late = captures.filter(created_at__lte=self.now - operation_queue.MAX_PAYER_WAIT).exists()
        return Situation.TAKING_SILENT if is_late else Situation.TAKING

    def _paid_page(self) -> PageStatus:
        """Return the page for a share that was paid. Its money is taken, being refunded, or refunded."""
        situation = self._paid_situation()
        page = self._page_for(situation, Viewer.PAID if self.is_mate else Viewer.PAY_LINK)
        if page.state == "share_paid" and self._is_kept_by_shop(situation):
            words = (TAKEN, SETTLED_UP) if self.is_mate else TAKEN
            page.paragraphs, page.place = [fill(words, self._values(situation))], ""
        if not self.is_mate:
            return page
        if situation in (Situation.REFUNDING, Situation.REFUNDED, Situation.REFUND_RETURNED):
            show_refund(page, refund.bill_of_mate(self.checkout, self.share))
        paid_at = self.share.paid_at or self.share.created_at
        if page.state == "share_paid":
            page.paragraphs = (
                self._reviewed_payment() or self._taken_after_pledge(situation) or page.paragraphs
            )
        page.receipt = receipt.receipt_of_share(self.target, paid_at, self.share.payment)
        return page

    def _paid_situation(self) -> Situation:
        self.accounts = settling.read_accounts_unlocked(self.checkout)
        is_refunded = self.share.status == ShareStatus.REFUNDED
        if self._was_returned_by_bank() and (self.is_mate or is_refunded):
            return Situation.BANK_RETURNED
        if not is_refunded and self.checkout.status != Status.REFUNDING:
            return self._captured_situation()
        payment, accounts = self.share.payment_id, self.accounts
        card = accounts.cards.get(payment) if accounts and payment else None
        if is_refunded and card is not None and card.borne > 0:
            return Situation.REFUND_RETURNED
        return Situation.REFUNDED if is_refunded else Situation.REFUNDING

    def _was_returned_by_bank(self) -> bool:
        """Return whether a lost dispute has returned the mate's money, and store the amount."""
        amounts = disputes.lost_amounts_by_payment(self.checkout.pk) if self.accounts else {}
        self.returned_amount = (
            amounts[self.share.payment_id].amount if self.share.payment_id in amounts else 0
        )
        is_captured = self.checkout.status == Status.CAPTURED
        return self.returned_amount > 0 and (is_captured or self.returned_amount >= self.share.amount)

    def _captured_situation(self) -> Situation:
        """Return where the money of a paid share is: on its way to the lead's card, or on that card."""
        if refunds.has_failed(self.checkout):
            return Situation.REFUND_FAILED
        is_owed = self.accounts is not None and self.accounts.owed_to_lead(self.share) > 0
        is_there = self.share.status == ShareStatus.REIMBURSED and not is_owed
        return Situation.REIMBURSED if is_there else Situation.PAID

    def _is_kept_by_shop(self, situation: Situation) -> bool:
        """Return whether a dispute keeps the mate's money with the shop, for now or permanently."""
        if self.accounts is not None and self.accounts.closed(self.share) > 0:
            return True
        return situation == Situation.PAID and disputes.blocking_dispute_of_row(self.checkout) is not None

    def _reviewed_payment(self) -> list[SafeString]:
        """Return the sentences about an open dispute of this mate's payment, or [] if there is none."""
        if disputes.blocking_dispute_of_row(self.checkout) is None or self.share.payment_id is None:
            return []
        if not disputes.open_disputes_of(self.checkout.pk).filter(payment=self.share.payment_id).exists():
            return []
        words = _("Your bank is reviewing your payment of {amount}. You don’t need to do anything.")
        amount = money.display_for_payer(self.share.amount, self.checkout.currency)
        return [SafeString(words.format(amount=amount))]

    def _taken_after_pledge(self, situation: Situation) -> list[SafeString]:
        """Return the text that says when the lead paid, if the mate's card was held before, otherwise []."""
        payment, paid_at = self.share.payment, self.checkout.authorized_at
        if payment is None or paid_at is None or not pledges.was_pledged(self.checkout, payment):
            return []
        taken = _("{name} paid at {time}, and <strong>{amount}</strong> was taken from {card}.")
        is_back = IS_WITH_LEAD if situation == Situation.REIMBURSED else GOES_TO_LEAD
        where = () if self._is_kept_by_shop(situation) else (is_back,)
        values = self._values(situation) | {
            "time": summary.short_time(paid_at, summary.zone_of(self.checkout))
        }
        return [fill((taken, *where, SETTLED_UP), values)]

    def _released_hold(self) -> list[SafeString]:
        """Return the sentences about the release of this mate's hold, or [] if no hold is released.

        Until the bank answers, it is not known whether there is a hold.
        """
        hold = pledges.released_hold(self.share, self.share.mate_id) if self.is_mate else None
        if hold is None:
            return []
        amount = money.display_for_payer(hold.amount, self.checkout.currency)
        if hold.status == Payment.Status.AUTHORIZING:
            words = _(
                "Your bank has not answered yet. If it holds {amount} on your card, we release the hold."
            )
            return [SafeString(words.format(amount=amount))]
        words = _("The hold of {amount} on {card} is released. Your bank shows this within a few days.")
        released = format_html(words, amount=amount, card=summary.card_in_words(hold, is_owner=True))
        if hold.decline_reason != pledges.SAME_CARD:
            return [released]
        explanation = _("{name} paid with the same card, so it cannot pay for your share too.")
        return [format_html(explanation, name=lead_name(self.checkout)), released]

    def _values(self, situation: Situation) -> dict[str, str]:
        currency = self.checkout.currency
        amount = money.display_for_payer(self.share.amount, currency)
        values = {
            "shop": self.checkout.merchant.name,
            "name": lead_name(self.checkout),
            "amount": amount,
            "card": summary.card_in_words(self.share.payment, is_owner=self.is_mate),
        }
        if self.share.expires_at is not None:
            values["until"] = summary.time_until(self.share.expires_at, self.now, self.checkout)
        if situation == Situation.REFUND_RETURNED and self.is_mate:
            values["returned"] = refund.returned_sentence(self.checkout, self.share.payment_id)
        if situation == Situation.EXPIRED:
            values["late"] = late_sentence(self.checkout, says_expired=True)
        if situation == Situation.BANK_RETURNED and self.returned_amount:
            values["amount"] = money.display_for_payer(self.returned_amount, currency)
        if situation == Situation.CHECKING and self.operation is not None:
            asked_sentence = requested_amount_sentence(amount, self.operation.payment, is_owner=self.is_mate)
            return values | {"asked": asked_sentence}
        return values
