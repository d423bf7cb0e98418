"""Builds receipts, with the shop, the order or share, the time, the card, and the amount. Rule page.receipt."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from checkout import settling
from checkout.models import Checkout
from checkout.states import Status
from hosted_page import summary
from hosted_page.payment_target import PaymentTarget, lead_name
from payments import disputes, money
from payments.models import Payment


@dataclass(frozen=True)
class Row:
    """A line of a receipt. `detail` explains the value in small print below it."""

    label: str
    value: str
    detail: str = ""


@dataclass(frozen=True)
class DisputeReturn:
    """The amount that lost disputes returned to the payer, and the time when the last of these disputes was lost."""

    amount: str
    at: SafeString


@dataclass(frozen=True)
class Receipt:
    """A receipt: its lines, the total, and the amounts that were returned to the payer.

    `dispute_return` is the amount that lost disputes returned. `shop_refund` is the sentence about a refund
    that the shop made directly at the provider.
    """

    rows: list[Row]
    total: str
    dispute_return: DisputeReturn | None
    shop_refund: SafeString


def receipt_of_order(checkout: Checkout, at: datetime) -> Receipt:
    """Return the receipt for a whole order that was paid at this time."""
    number = _("Order {number}").format(number=checkout.merchant_order_id)
    title = summary.title(checkout, shows_quantity=True)
    rows = [Row(_("Paid to"), checkout.merchant.name), Row(_("For"), title, number)]
    return _build_receipt(checkout, rows, at, checkout.payment, checkout.amount)


def receipt_of_share(target: PaymentTarget, at: datetime, payment: Payment | None) -> Receipt:
    """Return the receipt for a mate's share that was paid at this time."""
    checkout = target.checkout
    name = lead_name(checkout)
    recipient = _("{shop}, for {name}").format(shop=checkout.merchant.name, name=name)
    title = _("Your share of {title}").format(title=summary.title(checkout))
    order_label = _("{name}’s order {number}").format(name=name, number=checkout.merchant_order_id)
    rows = [Row(_("Paid to"), recipient), Row(_("For"), title, order_label)]
    return _build_receipt(checkout, rows, at, payment, target.amount)


def _build_receipt(
    checkout: Checkout, first_rows: list[Row], at: datetime, payment: Payment | None, amount: int
) -> Receipt:
    zone = summary.zone_of(checkout)
    rows = [
        *first_rows,
        Row(_("When"), summary.full_date(at, zone), summary.zone_words(at, zone)),
        Row(_("With"), summary.card_name(payment)),
    ]
    total = money.display_for_payer(amount, checkout.currency)
    return Receipt(rows, total, _returned_amount(checkout, payment), _shop_refund_sentence(checkout, payment))


def _returned_amount(checkout: Checkout, payment: Payment | None) -> DisputeReturn | None:
    if payment is None or disputes.blocking_dispute_of_row(checkout) is None:
        return None
    loss = disputes.lost_amounts_by_payment(checkout.pk).get(payment.pk)
    return (
        DisputeReturn(
            money.display_for_payer(loss.amount, checkout.currency), summary.day_with_time(loss.at, checkout)
        )
        if loss
        else None
    )


def _shop_refund_sentence(checkout: Checkout, payment: Payment | None) -> SafeString:
    """Return the sentence about a refund that the shop made directly at the provider, or "" if there is none.

    The sentence is shown only while the order is captured.
    """
    accounts = settling.read_accounts_unlocked(checkout) if checkout.status == Status.CAPTURED else None
    card = accounts.cards.get(payment.pk) if accounts and payment else None
    if card is None or card.outside <= 0:
        return SafeString()
    words = _("{shop} refunded you <strong>{amount}</strong>. Your bank may take a few days to show it.")
    amount = money.display_for_payer(card.outside, checkout.currency)
    return format_html(words, shop=checkout.merchant.name, amount=amount)
