"""Shows a refund to the owner of one card: the amounts that were taken from the card and returned to it.

Rule page.refund.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from checkout.models import Checkout, PaymentRequest
from checkout.settling import cards
from checkout.settling.cards import Accounts, Card, Part
from checkout.states import ShareStatus, Status
from hosted_page import summary
from payments import money
from payments.models import Payment


class CardMovement(NamedTuple):
    """An amount in minor units that was taken from a card, or was returned to it if the amount is negative."""

    label: str
    amount: int
    at: datetime | None


@dataclass(frozen=True)
class Row:
    """A line of the refund's bill, as the page shows it."""

    label: str
    amount: str
    at: SafeString


@dataclass(frozen=True)
class RefundBill:
    """The amounts that were taken from a card, and the amounts that are returned to it.

    The rows add up to `remaining`, the amount that is not returned. With `is_sent_back`, the card returned money of
    the refund, and `remaining` is still owed to the payer.
    """

    card: str
    goes_back: str
    rows: list[Row]
    remaining: str
    is_settled: bool
    when: str  # when the refund was settled, with the name of the time zone; "" while it is in progress
    others: str = ""
    is_sent_back: bool = False


def returned_sentence(checkout: Checkout, payment_uuid: UUID | None) -> str:
    """Return the sentence about the refund of a card whose bank has sent back all or part of the refund."""
    accounts = cards.read_accounts(checkout, is_locked=False)
    card = accounts.cards.get(payment_uuid) if payment_uuid else None
    owed = card.borne if card else 0
    received = sum(part.received for part in _refund_parts(accounts, payment_uuid))
    words = _("{shop} refunded {amount}, but your bank sent it back.")
    if received:
        words = _("{shop} refunded {amount}, but your bank sent part of it back.")
    amount = money.display_for_payer(received + owed, checkout.currency)
    return words.format(shop=checkout.merchant.name, amount=amount)


def bill_of_lead(checkout: Checkout) -> RefundBill | None:
    """Return the refund's bill for the lead's card.

    Return None while the money of a mate's share is on its way to the card, because the amount is not known yet.
    """
    is_settled = checkout.status == Status.REFUNDED
    accounts = cards.read_accounts(checkout, is_locked=False)
    card, reimbursements = accounts.lead, [accounts.reimbursement(share)[1] for share in accounts.shares]
    if card is None or (not is_settled and any(part.unconfirmed for part in reimbursements)):
        return None
    movements = [CardMovement(_("Taken"), checkout.amount, checkout.captured_at)]
    for share, part in zip(accounts.shares, reimbursements, strict=True):
        if part.received > 0:
            name = share.name
            label = _("Back when {name} paid").format(name=name) if name else _("Back when a mate paid")
            at = part.last.ended_at if part.last else None
            movements.append(CardMovement(label, -part.received, at))
    movements += _returned_amounts(accounts, card, checkout.last_refund_at, is_settled=is_settled)
    others = _other_cards_sentence(accounts) if checkout.has_mates else ""
    return _refund_bill(checkout, card.payment, movements, is_settled=is_settled, others=others)


def bill_of_mate(checkout: Checkout, share: PaymentRequest) -> RefundBill | None:
    """Return the refund's bill for the card with which a mate paid a share."""
    is_settled = share.status == ShareStatus.REFUNDED
    accounts = cards.read_accounts(checkout, is_locked=False)
    card = accounts.cards.get(share.payment_id) if share.payment_id else None
    if card is None:
        return None
    parts = [
        part for key, part in accounts.parts.items() if key.payment_uuid == card.payment.pk and part.received
    ]
    end_times = [part.last.ended_at for part in parts if part.last]
    movements = [CardMovement(_("Taken"), share.amount, share.paid_at)]
    movements += _returned_amounts(
        accounts, card, end_times[-1] if end_times else None, is_settled=is_settled
    )
    return _refund_bill(checkout, card.payment, movements, is_settled=is_settled)


def _returned_amounts(
    accounts: Accounts, card: Card, at: datetime | None, *, is_settled: bool
) -> list[CardMovement]:
    """Return the amounts that were or will be returned to a card.

    They come in this order: refunds made directly at the provider, amounts that lost disputes returned,
    amounts settled outside the service, the refund itself, and the part of the refund that the bank sent back.
    """
    parts = _refund_parts(accounts, card.payment.pk)
    sent_back = max(0, card.borne) if is_settled else 0
    settled = sum(part.settled for part in parts)
    refunded = sum(part.received for part in parts) - settled + sent_back
    if not is_settled:
        refunded += sum(part.unconfirmed for part in parts) + max(0, card.owed(0))
    movements = [
        CardMovement(_("Refunded earlier"), -card.outside, None),
        CardMovement(_("Returned by your bank"), -card.disputed, None),
        CardMovement(_("Paid back another way"), -settled, None),
        CardMovement(_refund_label(is_settled), -refunded, at),
        CardMovement(_("Sent back by your bank"), sent_back, None),
    ]
    return [movement for movement in movements if movement.amount]


def _refund_parts(accounts: Accounts, payment_uuid: UUID | None) -> list[Part]:
    return [
        part for key, part in accounts.parts.items() if key.payment_uuid == payment_uuid and key.refund_uuid
    ]


def _refund_label(is_settled: bool) -> str:
    return _("Refunded") if is_settled else _("On its way back")


def _refund_bill(
    checkout: Checkout,
    payment: Payment | None,
    movements: Sequence[CardMovement],
    *,
    is_settled: bool,
    others: str = "",
) -> RefundBill:
    zone, currency = summary.zone_of(checkout), checkout.currency
    rows = [
        Row(
            label,
            money.display_for_payer(amount, currency),
            summary.full_time(at, zone) if at else SafeString(),
        )
        for label, amount, at in movements
    ]
    label, last_amount, at = movements[-1]
    goes_back = money.display_for_payer(-last_amount, currency) if label == _refund_label(is_settled) else ""
    when = summary.full_date_with_zone(at, zone) if at and is_settled else ""
    remaining = sum(amount for _label, amount, _at in movements)
    is_sent_back = is_settled and remaining > 0
    card = _("Your {card}").format(card=summary.card_name(payment))
    left = money.display_for_payer(remaining, currency)
    return RefundBill(card, goes_back, rows, left, is_settled, when, others, is_sent_back)


def _other_cards_sentence(accounts: Accounts) -> str:
    """Return the sentence about the amounts that are returned to the mates' cards."""
    checkout = accounts.checkout
    links_ended = ""
    if checkout.status == Status.REFUNDED:
        count = checkout.payment_requests.count()
        links_ended = ngettext("Your mate’s link has ended.", "Your mates’ links have ended.", count)
    mates = [(share, accounts.cards[share.payment_id]) for share in accounts.shares if share.payment_id]
    amounts = {share: card.payment.amount - card.outside - card.disputed for share, card in mates}
    paid = [share for share, amount in amounts.items() if amount > 0]
    amount = money.display_for_payer(sum(amounts[share] for share in paid), checkout.currency)
    if not paid:
        return links_ended
    if len(paid) == 1 and paid[0].name:
        words = _("{name}’s card gets its {amount} back too.").format(name=paid[0].name, amount=amount)
    else:
        words = ngettext(
            "{count} mate’s card gets its {amount} back too.",
            "{count} mates’ cards get their {amount} back too.",
            len(paid),
        ).format(count=len(paid), amount=amount)
    return f"{words} {links_ended}".strip()
