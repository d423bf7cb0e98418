"""Builds the status page of an order, which says where the money is (rules pay.honest_page, page.viewer)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from checkout import given_up_cards, refunds, settling
from checkout.models import Checkout
from checkout.states import Status, VoidReason
from hosted_page import summary
from hosted_page.payment_target import lead_name
from hosted_page.status import receipt, refund
from hosted_page.status.cells import Situation, Viewer
from hosted_page.status.receipt import Receipt
from hosted_page.status.refund import RefundBill
from hosted_page.status.shared_cells import HOLDS_RELEASED
from hosted_page.status.table import cell_of
from payments import disputes, money, open_operations, operator_stops
from payments.models import Merchant, Operation, Payment

COUNTDOWN_DELAY = timedelta(seconds=20)
# The situations in which an unpaid order has no pledges any more.
WITHOUT_PLEDGES = (
    *(Situation.SUSPENDED, Situation.CANCELLED, Situation.EXPIRED),
    *(Situation.RELEASING, Situation.RELEASED),
)


@dataclass
class PageStatus:
    """The contents of the status page. The template uses these field names."""

    state: str
    heading: str
    paragraphs: list[SafeString]
    place: str = ""
    is_on_its_way: bool = False  # the money is on its way to `place`
    title: str = ""
    note: str = ""
    live: bool = False
    countdown: dict[str, Any] | None = None
    auto_return: bool = False
    action_url: str = ""
    may_change_card: bool = False
    may_withdraw: bool | None = None  # None if the page is not about a pledge
    is_own: bool = True  # the viewer owns the card that the page is about
    receipt: Receipt | None = None
    refund: RefundBill | None = None


def page_of(situation: Situation, viewer: Viewer, values: dict[str, str]) -> PageStatus:
    """Return the page for a viewer in a situation: the cell from the table of pages, with the values filled in."""
    cell = cell_of(situation, viewer)
    return PageStatus(
        cell.state,
        str(cell.headline).format(**values),
        cell.paragraphs(values),
        place=cell.place,
        is_on_its_way=cell.is_on_its_way,
        title=str(cell.title),
        note=str(cell.note),
        live=cell.is_live,
        is_own=viewer not in (Viewer.ORDER_LINK, Viewer.PAY_LINK),
    )


def order_status_of(checkout: Checkout, *, now: datetime, is_lead: bool) -> PageStatus | None:
    """Return the current status of a checkout, or None while it can be paid.

    Only the lead sees card details, because anyone can have the link.
    """
    view = _OrderView(checkout, now, Viewer.LEAD if is_lead else Viewer.ORDER_LINK)
    situation = view.find_situation()
    return None if situation == Situation.UNPAID else view.build_page(situation)


class _OrderView:
    """One visit to an order's page, by the lead or by a person who has only the link."""

    def __init__(self, checkout: Checkout, now: datetime, viewer: Viewer) -> None:
        self.checkout, self.now, self.viewer = checkout, now, viewer
        self.is_lead = viewer == Viewer.LEAD
        self.operation: Operation | None = None
        self.receipt: Receipt | None = None

    def find_situation(self) -> Situation:
        """Return the situation of the order's money."""
        # This check comes first, because after the capture an open operation does not concern the payer.
        if self.checkout.status == Status.CAPTURED:
            return self._captured_situation()
        self.operation = open_operations.open_operation_of_row(self.checkout)
        if self.operation is not None and self.operation.kind == Operation.Kind.AUTHORIZE:
            return unanswered_situation(self.operation, self.now)
        match self.checkout.status:
            case Status.CREATED:
                # If the bank has answered since the order was read, the next request shows the answer.
                is_answered = open_operations.had_open_operation(self.checkout)
                return Situation.CHECKING if is_answered else self._unpaid_situation()
            case Status.AUTHORIZED:
                return Situation.HELD if self.operation is None else Situation.ASKED
            case Status.VOIDED:
                return self._voided_situation()
            case Status.EXPIRED:
                return Situation.EXPIRED
            case Status.REFUNDED if self._was_refund_returned():
                return Situation.REFUND_RETURNED
            case Status.REFUNDED:
                return Situation.REFUNDED
        return Situation.REFUNDING

    def _unpaid_situation(self) -> Situation:
        is_stopped = operator_stops.is_stopped(self.checkout.merchant_id)
        return Situation.SUSPENDED if is_stopped else Situation.UNPAID

    def _captured_situation(self) -> Situation:
        self.receipt = self._receipt()
        was_returned = self.receipt is not None and self.receipt.dispute_return is not None
        if was_returned and not self.checkout.has_mates:
            return Situation.BANK_RETURNED  # for a split order, the bill shows the returned money instead
        is_disputed = disputes.blocking_dispute_of_row(self.checkout) is not None
        # People other than the lead must not see whose payment was returned.
        if is_disputed and not self.is_lead and disputes.has_lost_dispute(self.checkout.pk):
            return Situation.BANK_RETURNED
        if is_disputed:
            return Situation.DISPUTED
        return Situation.REFUND_FAILED if refunds.has_failed(self.checkout) else Situation.PAID

    def _voided_situation(self) -> Situation:
        if self.checkout.authorized_at is None:
            return Situation.CANCELLED
        payment = self.checkout.payment
        is_released = payment is None or payment.status == Payment.Status.VOIDED
        return Situation.RELEASED if is_released else Situation.RELEASING

    def _was_refund_returned(self) -> bool:
        """Return whether a card returned the order's refund, so that the card still bears an amount.

        On the lead's page, only the lead's own card counts. On other pages, any card of the order counts.
        """
        accounts = settling.read_accounts_unlocked(self.checkout)
        if accounts is None:
            return False
        cards = accounts.cards.values()
        return any(card.borne > 0 for card in cards if not self.is_lead or card is accounts.lead)

    def build_page(self, situation: Situation) -> PageStatus:
        """Return the contents of the page in this situation."""
        page = page_of(situation, self.viewer, self._values(situation))
        match situation:
            case Situation.CONFIRM:
                page.may_change_card = self.is_lead
                if self.is_lead and self.operation is not None:
                    page.action_url = self.operation.action_url
            case Situation.SILENT:
                page.may_change_card = self.is_lead
            case Situation.HELD:
                page.countdown = _capture_countdown(self.checkout, self.now)
            case Situation.PAID:
                since = self.now - (self.checkout.captured_at or self.now)
                page.auto_return = self.is_lead and since < COUNTDOWN_DELAY and not self.checkout.has_mates
            case Situation.REFUNDING | Situation.REFUNDED | Situation.REFUND_RETURNED if self.is_lead:
                show_refund(page, refund.bill_of_lead(self.checkout))
        if situation in WITHOUT_PLEDGES and self._has_mates_who_tried():
            page.paragraphs.insert(1, self._mates_released())
        page.receipt = self._receipt()
        return page

    def _has_mates_who_tried(self) -> bool:
        """Return whether the viewer is the lead and a mate has tried to pledge a card."""
        shares = self.checkout.payment_requests.filter(mate__isnull=False)
        return self.is_lead and self.checkout.has_mates and shares.exists()

    def _mates_released(self) -> SafeString:
        words = ngettext(
            "Your mate has not been charged. Any hold on their card is released.",
            "Your mates have not been charged. Any hold on their cards is released.",
            self.checkout.payment_requests.count(),
        )
        return SafeString(words)

    def _receipt(self) -> Receipt | None:
        """Return the receipt for the lead of a captured order, or None for anyone else."""
        at = self.checkout.captured_at
        if self.receipt is not None or not self.is_lead or at is None:
            return self.receipt
        return receipt.receipt_of_order(self.checkout, at)

    def _values(self, situation: Situation) -> dict[str, str]:
        checkout = self.checkout
        values = {
            "shop": checkout.merchant.name,
            "amount": money.display_for_payer(checkout.amount, checkout.currency),
            "card": summary.card_in_words(checkout.payment, is_owner=self.is_lead),
            "each": _("Each card gets back its own part.") if checkout.has_mates else "",
        }
        match situation:
            case Situation.CHECKING:
                payment = self.operation.payment if self.operation else checkout.payment
                asked_sentence = requested_amount_sentence(values["amount"], payment, is_owner=self.is_lead)
                return values | {"asked": asked_sentence}
            case Situation.REFUND_RETURNED if self.is_lead:
                return values | {"returned": refund.returned_sentence(checkout, checkout.payment_id)}
            case Situation.SUSPENDED:
                return values | {"until": summary.time_until(checkout.payable_until, self.now, checkout)}
            case Situation.EXPIRED:
                return values | {"unpaid": self._unpaid_sentence(), "until": _open_until(checkout)}
            case Situation.CANCELLED | Situation.RELEASING | Situation.RELEASED:
                unpaid = self._unpaid_sentence() if checkout.authorized_at is None else ""
                return values | _ending_values(checkout, self.now, values) | {"unpaid": unpaid}
            case Situation.BANK_RETURNED if self.receipt and self.receipt.dispute_return:
                return values | {"amount": self.receipt.dispute_return.amount}
        return values

    def _unpaid_sentence(self) -> str:
        """Return the sentence about an order that ended unpaid. If the order is split, the viewer might be a mate."""
        if self.is_lead or not self.checkout.has_mates:
            return unpaid_sentence(self.checkout)
        unpaid = _("<strong>Nothing was paid.</strong>")
        return SafeString(f"{unpaid} {HOLDS_RELEASED}")


def unanswered_situation(operation: Operation, now: datetime) -> Situation:
    """Return the situation of an order or share with an open authorization. After a minute, another card is allowed."""
    if operation.state == Operation.State.NEEDS_ACTION:
        return Situation.CONFIRM
    is_silent = given_up_cards.is_another_card_allowed(operation, now)
    return Situation.SILENT if is_silent else Situation.CHECKING


def requested_amount_sentence(amount: str, payment: Payment | None, *, is_owner: bool) -> str:
    """Return the sentence about the amount that the service requested from the bank.

    It names the card only to the card's owner, and only if the bank has reported the card.
    """
    if is_owner and payment and payment.card_last4:
        card = summary.card_in_words(payment, is_owner=True)
        return format_html(
            _("We asked your bank for <strong>{amount}</strong> on {card}."), amount=amount, card=card
        )
    if is_owner:
        return format_html(_("We asked your bank for <strong>{amount}</strong>."), amount=amount)
    return format_html(_("The bank was asked for <strong>{amount}</strong>."), amount=amount)


def unpaid_sentence(checkout: Checkout) -> str:
    """Return the sentence about an order that ended unpaid, for its payer.

    If an abandoned card still has an open operation, the bank might hold money for a while, and the sentence
    says so.
    """
    unfinished = Operation.objects.filter(payment__subject=checkout.pk, ended_at=None)
    if unfinished.exists():
        return SafeString(
            _("<strong>You paid nothing.</strong> If your bank still holds any money, it is released.")
        )
    return SafeString(_("<strong>You paid nothing</strong>, and nothing is held on your card."))


def _open_until(checkout: Checkout) -> str:
    """Return the sentence that says until when an expired order was open, or "" if the time is not known."""
    if checkout.expired_at is None:
        return ""
    time = summary.day_with_time(checkout.expired_at, checkout)
    return format_html(_("This order was open until {time}."), time=time)


def late_sentence(checkout: Checkout, *, says_expired: bool) -> str:
    """Return the sentence that explains to mates why an unpaid order has expired.

    If the shop was stopped while the order could be paid, the sentence does not blame the lead. If
    `says_expired` is true, it also says that the order has expired.
    """
    if operator_stops.was_stopped_since(checkout.merchant_id, checkout.created_at):
        neutral = _("This order was not paid in time.")
        return _("This order has expired. It was not paid in time.") if says_expired else neutral
    words = _("{name} did not pay in time.")
    if says_expired:
        words = _("{name} did not pay in time, so the order has expired.")
    return words.format(name=lead_name(checkout))


def _capture_countdown(checkout: Checkout, now: datetime) -> dict[str, Any] | None:
    if checkout.capture_before is None:
        return None
    seconds_left = max(0, round((checkout.capture_before - now).total_seconds()))
    return {
        "seconds_left": seconds_left,
        "total_seconds": round(settings.HOLD.total_seconds()),
        "clock": f"{seconds_left // 60}:{seconds_left % 60:02d}",
        "ends_at": summary.clock_time(checkout.capture_before, summary.zone_of(checkout)),
    }


def _ending_values(checkout: Checkout, now: datetime, values: dict[str, str]) -> dict[str, str]:
    """Return the values for the texts about a voided order: why it ended, and what the payer can do."""
    is_cancelled = checkout.void_reason == VoidReason.MERCHANT_CANCEL
    time = summary.time_in_words(checkout.voided_at or now, now, summary.zone_of(checkout))
    again = _("Start again in the shop if you still want it.")
    return {
        "why": format_html(_release_reason(checkout, is_cancelled=is_cancelled), time=time, **values),
        "again": _cancellation_sentence(checkout.merchant) if is_cancelled else again,
    }


def _cancellation_sentence(shop: Merchant) -> str:
    """Return the sentence that says how the payer can find out why the shop cancelled the order.

    It advises the payer to ask the shop only if the page has a link to the shop's support.
    """
    words = _("Ask {shop} if you did not expect this.") if shop.support_url else _("{shop} can explain why.")
    return words.format(shop=shop.name)


def _release_reason(checkout: Checkout, *, is_cancelled: bool) -> str:
    """Return the sentence that says why a hold was released.

    If the shop tried to capture the money, the sentence says that the bank did not provide it in time.
    """
    if is_cancelled:
        return _("{shop} cancelled this order at {time}.")
    if Operation.objects.filter(payment=checkout.payment_id, kind=Operation.Kind.CAPTURE).exists():
        return _("{shop} requested the payment, but the bank did not confirm it in time.")
    return _("{shop} did not confirm by {time}.")


def show_refund(page: PageStatus, bill: RefundBill | None) -> None:
    """Add the refund to one card (`bill`) to the status page. The heading becomes the refunded amount."""
    page.refund = bill
    if bill is not None and bill.goes_back:
        page.heading = _("{amount} goes back to your card").format(amount=bill.goes_back)
