"""The status page of an order: where the money is, in words for the payer (rule pay.honest_page)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils.functional import Promise
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from checkout import given_up_cards, settling
from checkout.models import Checkout
from checkout.states import Status, VoidReason
from hosted_page import summary
from hosted_page.status import receipt, refund
from hosted_page.status.receipt import DisputeReturn, Receipt
from hosted_page.status.refund import RefundBill
from payments import disputes, money, open_operations
from payments.models import Merchant, Operation, Payment

SHOWN_RELEASE = gettext_lazy(
    "Your bank may still show it for a few days. It is not a charge, and it disappears on its own."
)
COUNTDOWN_DELAY = timedelta(seconds=20)


@dataclass
class PageStatus:
    """The contents of the status page. The template uses the field names."""

    state: str
    heading: str
    paragraphs: list[str]
    place: str = ""
    is_on_its_way: bool = False  # the money is on its way to `place`
    title: str = ""
    note: str | Promise = ""
    live: bool = False
    countdown: dict[str, Any] | None = None
    auto_return: bool = False
    action_url: str = ""
    may_change_card: bool = False
    receipt: Receipt | None = None
    refund: RefundBill | None = None


def order_status_of(checkout: Checkout, *, now: datetime, is_lead: bool) -> PageStatus | None:
    """Return the current status of a checkout, None while it can be paid.

    Only the lead sees card details, because anyone can have the link.
    """
    # This is checked first, because after the capture an open operation does not concern the payer.
    if checkout.status == Status.CAPTURED:
        return _captured_status(checkout, now, is_lead)
    operation = open_operations.open_operation_of_row(checkout)
    if operation is not None and operation.kind == Operation.Kind.AUTHORIZE:
        return _unanswered_status(checkout, operation, now, is_lead)
    match checkout.status:
        case Status.CREATED:
            had_one = open_operations.had_open_operation(checkout)
            return _just_answered_status(checkout, is_lead) if had_one else None
        case Status.AUTHORIZED if operation is None:
            return _held_status(checkout, now, is_lead)
        case Status.AUTHORIZED:
            return _in_doubt_status(checkout, is_lead)
        case Status.VOIDED:
            return _voided_status(checkout, now, is_lead)
        case Status.EXPIRED:
            return _expired_status(checkout)
        case _:
            shown = _refund_status(checkout, is_lead)
            if is_lead and checkout.captured_at is not None:
                shown.receipt = receipt.of_order(checkout, checkout.captured_at)
            return shown


def _unanswered_status(checkout: Checkout, operation: Operation, now: datetime, is_lead: bool) -> PageStatus:
    """Return the status while the bank is asking the payer to confirm, or has not answered.

    After a minute without an answer, the payer can use another card.
    """
    if operation.state == Operation.State.NEEDS_ACTION:
        shown = _challenge_status(is_lead)
        shown.action_url = operation.action_url if is_lead else ""
    elif given_up_cards.is_another_card_allowed(operation, now):
        return _show_on_the_way(silent_status(is_lead))
    else:
        amount = money.display_for_payer(checkout.amount, checkout.currency)
        return _show_on_the_way(
            checking_status(
                asked_amount_sentence(amount, operation.payment, is_theirs=is_lead), is_theirs=is_lead
            )
        )
    shown.may_change_card = is_lead
    return shown


def _just_answered_status(checkout: Checkout, is_lead: bool) -> PageStatus:
    """Return the status of an order whose bank has answered since the order was read.

    The status still says that the bank is being asked. The page's next request shows the answer.
    """
    amount = money.display_for_payer(checkout.amount, checkout.currency)
    return _show_on_the_way(
        checking_status(asked_amount_sentence(amount, checkout.payment, is_theirs=is_lead), is_theirs=is_lead)
    )


def _show_on_the_way(shown: PageStatus) -> PageStatus:
    shown.place, shown.is_on_its_way = "hold", True
    return shown


def _challenge_status(is_lead: bool) -> PageStatus:
    asked = _("Your bank wants to be sure that this is you.")
    if not is_lead:
        asked = _("The bank is asking the payer to confirm.")
    nothing = _("No money is held or taken until the payment is confirmed.")
    return PageStatus(
        "confirm",
        _("Confirm with your bank") if is_lead else _("Not confirmed yet"),
        [f"{asked} {nothing}"],
        place="card",
        live=True,
    )


def asked_amount_sentence(amount: str, payment: Payment | None, *, is_theirs: bool) -> str:
    """Return the sentence that says which amount the bank was asked for.

    It names the card only to the card's owner, and only if the bank has reported the card.
    """
    if is_theirs and payment and payment.card_last4:
        card = summary.card_in_words(payment, is_theirs=True)
        return format_html(
            _("We asked your bank for <strong>{amount}</strong> on {card}."), amount=amount, card=card
        )
    if is_theirs:
        return format_html(_("We asked your bank for <strong>{amount}</strong>."), amount=amount)
    return format_html(_("The bank was asked for <strong>{amount}</strong>."), amount=amount)


def checking_status(asked: str, *, is_theirs: bool) -> PageStatus:
    """Return the status while the bank has not answered yet, and it is unknown where the money is."""
    return PageStatus(
        "checking",
        _("Checking with your bank") if is_theirs else _("Checking with the bank"),
        [format_html("{} {}", asked, _("No money has been taken yet. This can take up to a minute."))],
        title=_("Please don’t pay again."),
        live=True,
    )


def silent_status(is_theirs: bool) -> PageStatus:
    """Return the status if the bank has not answered for a minute.

    If the bank then reports a hold, the page shows the hold, unless the payer uses another card.
    """
    words = []
    if is_theirs:
        words.append(
            _(
                "You don’t have to wait. If you use another card, any hold on your previous card is"
                " released. Or wait here for your bank’s answer."
            )
        )
    heading = _("Your bank has not answered") if is_theirs else _("The bank has not answered")
    shown = PageStatus("silent", heading, words, title=_("No money has been taken."), live=True)
    shown.may_change_card = is_theirs
    return shown


def _held_status(checkout: Checkout, now: datetime, is_lead: bool) -> PageStatus:
    set_aside = format_html(
        _("<strong>{amount}</strong> is set aside on {card}. {shop} is checking your order."),
        **_sentence_values(checkout, is_lead),
    )
    return PageStatus(
        "held",
        _("Held, not taken yet"),
        [set_aside],
        place="hold",
        live=True,
        countdown=_capture_countdown(checkout, now),
    )


def _in_doubt_status(checkout: Checkout, is_lead: bool) -> PageStatus:
    """Return the status while the outcome of the shop's capture is not known."""
    asked = format_html(
        _(
            "<strong>{amount}</strong> is set aside on {card}."
            " {shop} has asked for it, and the bank has not answered yet."
        ),
        **_sentence_values(checkout, is_lead),
    )
    words = [asked, _("Please don’t pay again.")]
    return PageStatus("asking", _("Waiting for the bank"), words, place="hold", live=True)


def unpaid_sentence(checkout: Checkout) -> str:
    """Return the sentence about an order that ended unpaid.

    If the payer gave up a card and its operation is still open, money might be held for a while. The sentence
    then says so.
    """
    given_up = Operation.objects.filter(payment__subject=checkout.pk, ended_at=None)
    if given_up.exists():
        return SafeString(
            _("<strong>You paid nothing.</strong> If your bank still holds any money, it is released.")
        )
    return SafeString(_("<strong>You paid nothing</strong>, and nothing is held on your card."))


def _capture_countdown(checkout: Checkout, now: datetime) -> dict[str, Any] | None:
    if checkout.capture_before is None:
        return None
    left = max(0, round((checkout.capture_before - now).total_seconds()))
    return {
        "seconds_left": left,
        "total_seconds": round(settings.HOLD.total_seconds()),
        "clock": f"{left // 60}:{left % 60:02d}",
        "ends_at": summary.clock_time(checkout.capture_before, summary.zone_of(checkout)),
    }


def _captured_status(checkout: Checkout, now: datetime, is_lead: bool) -> PageStatus:
    at = checkout.captured_at or now
    own = receipt.of_order(checkout, at) if is_lead else None
    if own and own.back and not checkout.has_mates:  # for a split order, the bill shows the returned money
        return _lost_dispute_status(checkout, own, own.back)
    # For anyone but the lead, do not say whose payment was returned.
    if own is None and disputes.blocking_dispute_of_row(checkout) and disputes.has_lost_dispute(checkout.pk):
        words = _("A bank has returned a payment for this order.")
        return PageStatus("given_back", _("Nothing to pay now"), [words])
    took = format_html(
        _("{shop} took <strong>{amount}</strong> from {card}."), **_sentence_values(checkout, is_lead)
    )
    fresh = is_lead and now - at < COUNTDOWN_DELAY and not checkout.has_mates
    return PageStatus(
        "confirmed", _("Confirmed and paid."), [took], place="shop", auto_return=fresh, receipt=own
    )


def _lost_dispute_status(checkout: Checkout, own: Receipt, back: DisputeReturn) -> PageStatus:
    """Return the status after a lost dispute has returned the payer's money. Rule dispute.lost."""
    asks = _("Ask <bdi>%(shop)s</bdi> whether your order is still valid.")
    words = SafeString(f"<strong>{asks % {'shop': escape(checkout.merchant.name)}}</strong>")
    heading = _("Your bank gave you {amount} back").format(amount=back.amount)
    return PageStatus("given_back", heading, [words], receipt=own)


def _expired_status(checkout: Checkout) -> PageStatus:
    words = unpaid_sentence(checkout)
    if checkout.expired_at is not None:
        until = format_html(
            _("This order was open until {time}."),
            time=summary.day_with_time(checkout.expired_at, checkout),
        )
        words = format_html("{} {}", words, until)
    again = _("Prices may have changed. Start again in the shop.")
    return PageStatus("expired", _("This order has expired"), [words, again])


def _voided_status(checkout: Checkout, now: datetime, is_lead: bool) -> PageStatus:
    is_cancelled = checkout.void_reason == VoidReason.MERCHANT_CANCEL
    why = _release_reason(checkout, is_cancelled=is_cancelled)
    facts = _sentence_values(checkout, is_lead)
    facts["time"] = summary.time_in_words(checkout.voided_at or now, now, summary.zone_of(checkout))
    over, again = _("This order has ended."), _("Start again in the shop if you still want it.")
    if checkout.authorized_at is None:
        told = format_html("{} {}", unpaid_sentence(checkout), format_html(why, **facts))
        return PageStatus("cancelled", _("This order was cancelled"), [told, again])
    if checkout.payment is not None and checkout.payment.status != Payment.Status.VOIDED:
        hold = _("<strong>{amount}</strong> on {card} is being released.")
        words: list[str] = [format_html(f"{why} {hold}", **facts)]
        words.append(_("The bank has not ended the hold yet. We keep trying. This can take a few minutes."))
        return PageStatus("releasing", _("Releasing. Nothing was taken."), words, "hold", live=True)
    hold = _("<strong>{amount}</strong> is no longer held on {card}.")
    words = [format_html(f"{why} {hold}", **facts)]
    if is_cancelled:
        again = _cancellation_sentence(checkout.merchant)
    words.append(format_html("<strong>{}</strong> {}", over, again))
    return PageStatus("released", _("Released. Nothing was taken."), words, place="card", note=SHOWN_RELEASE)


def _cancellation_sentence(shop: Merchant) -> str:
    """Return the sentence that says how the payer can learn why the shop cancelled the order.

    The sentence tells the payer to ask the shop only if the page has a link to the shop's support.
    """
    words = _("Ask {shop} if you did not expect this.") if shop.support_url else _("{shop} can explain why.")
    return words.format(shop=shop.name)


def _release_reason(checkout: Checkout, *, is_cancelled: bool) -> str:
    """Return the sentence that says why a hold was released.

    If the shop tried to capture the money, the sentence says that the bank did not take it in time.
    """
    if is_cancelled:
        return _("{shop} cancelled this order at {time}.")
    if Operation.objects.filter(payment=checkout.payment_id, kind=Operation.Kind.CAPTURE).exists():
        return _("{shop} asked for the money, but the bank did not take it in time.")
    return _("{shop} did not confirm by {time}.")


def _refund_status(checkout: Checkout, is_lead: bool) -> PageStatus:
    is_settled, facts = checkout.status == Status.REFUNDED, _sentence_values(checkout, is_lead)
    if is_settled and _was_refund_returned(checkout, is_lead):
        return returned_refund_status(facts)
    words = format_html(_refund_sentence(checkout, is_settled), **facts)
    state = "refunded" if is_settled else "refunding"
    shown = PageStatus(state, _("Your money is going back"), [words], live=not is_settled)
    if is_settled:
        shown.heading = _("Refunded")
    if is_lead:
        show_refund(shown, refund.bill_of_lead(checkout))
    return shown


def _was_refund_returned(checkout: Checkout, is_lead: bool) -> bool:
    """Return whether a card returned the order's refund, so that the card still bears an amount.

    For the lead, only the lead's own card counts. For anyone else, any card of the order counts.
    """
    accounts = settling.read_accounts_unlocked(checkout)
    if accounts is None:
        return False
    cards = accounts.cards.values()
    return any(card.borne > 0 for card in cards if not is_lead or card is accounts.lead)


def returned_refund_status(facts: dict[str, str]) -> PageStatus:
    """Return the status for a payer whose card returned the refund. `facts` has the shop and the amount."""
    back = _(
        "{shop} refunded {amount}, but the bank returned some or all of it. You don’t need to do"
        " anything. It is sent again, or paid another way."
    )
    return PageStatus("refunded", _("The refund was returned"), [back.format(**facts)])


def _refund_sentence(checkout: Checkout, is_settled: bool) -> str:
    """Return the sentence about a refund.

    For a split order, it says that each card gets its own part back.
    """
    if not is_settled:
        if checkout.has_mates:
            return _(
                "{shop} is refunding the whole <strong>{amount}</strong>. Each card gets back its own"
                " part. Your bank may take a few days to show it."
            )
        return _(
            "{shop} is refunding the whole <strong>{amount}</strong>. Your bank may take a few days to"
            " show it."
        )
    if checkout.has_mates:
        return _(
            "{shop} refunded the whole <strong>{amount}</strong>. Each card gets back its own part. Your"
            " bank may take a few days to show it."
        )
    return _("{shop} refunded the whole <strong>{amount}</strong>. Your bank may take a few days to show it.")


def show_refund(shown: PageStatus, bill: RefundBill | None) -> None:
    """Add the refund to one card (`bill`) to the status page. The refunded amount becomes the heading."""
    shown.refund = bill
    if bill is not None and bill.goes_back:
        shown.heading = _("{amount} goes back to your card").format(amount=bill.goes_back)


def _sentence_values(checkout: Checkout, is_lead: bool) -> dict[str, str]:
    """Return the values for the sentences about an order."""
    return {
        "shop": checkout.merchant.name,
        "amount": money.display_for_payer(checkout.amount, checkout.currency),
        "card": summary.card_in_words(checkout.payment, is_theirs=is_lead),
    }
