"""Actions on an order that were taken outside this service, with advice for the merchant."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from checkout.states import Status
from payments import money
from payments.discrepancies import kinds
from portal.badges import Badge
from portal.orders.entries import Entry
from portal.orders.order import Order

REFUND_PENDING = Badge("move", "ring", "Refund pending")  # shown next to the order's badge
VOIDED_OUTSIDE, CAPTURED_OUTSIDE = kinds.OUTSIDE_VOID.name, kinds.OUTSIDE_CAPTURE.name
CAPTURED_OTHER_AMOUNT = kinds.CAPTURED_ANOTHER_AMOUNT.name
# For each kind of action: the texts for some statuses of the order, and the text for all other statuses.
MEANINGS: dict[str, tuple[Mapping[str, str], str]] = {
    VOIDED_OUTSIDE: (
        {
            Status.AUTHORIZED: "The money cannot be taken any more, and the customer is not charged. Do not fulfil the"
            " order. Cancel it. We are looking into it.",
        },
        "The card has no hold any more. We are looking into it. You don’t need to do anything.",
    ),
    CAPTURED_OUTSIDE: (
        {
            Status.AUTHORIZED: "The customer has been charged, but the order is still held. Capture it in time as"
            " usual: the capture uses the money that was already taken. If you do not capture the order, we make"
            " sure that the customer gets the money back.",
            Status.CAPTURED: "Your capture used the money that was already taken, so the customer was not charged"
            " twice. We are looking into it. You don’t need to do anything.",
        },
        "The customer is charged, and the order was not captured. Do not fulfil it. We make sure that the customer"
        " gets the money back.",
    ),
}
# The text after a capture of a different amount outside the service. The service does not count this as the
# order's capture, so a capture by the merchant would not find the money.
OTHER_AMOUNT_TEXT = (
    "The customer has been charged, but not the order’s amount. A capture would not use that money. Do not fulfil the"
    " order. Cancel it. We make sure that the customer gets the money back."
)
MATES_CARD_TEXT = (
    "It was a mate’s card, so the order does not change. We are looking into it. You don’t need to do"
    " anything."
)


class DescribedAction(NamedTuple):
    """An action as the order's page shows it: its title, and the text that explains it."""

    title: str
    text: str


def open_actions(order: Order) -> list[DescribedAction]:
    """Return the title and the text for each open action on an order that was taken outside the service.

    Rule portal.outside.
    """
    return [_describe_action(order, action["kind"], action["facts"]) for action in order.outside_actions]


def action_entries(order: Order) -> Iterator[Entry]:
    """Yield timeline entries for the open actions. Their times are when the service learned of the actions."""
    for action in order.outside_actions:
        yield Entry(
            at=datetime.fromisoformat(action["at"]),
            kind="bank",
            tone="held",
            icon="alert",
            title=_action_title(action["kind"], action["facts"]),
            text="This entry has the time at which we learned of it.",
        )


def _describe_action(order: Order, kind: str, facts: Mapping[str, Any]) -> DescribedAction:
    title, status = _action_title(kind, facts), order.checkout.status
    if facts["payment"] in {str(share.payment_id) for share in order.shares}:
        return DescribedAction(title, MATES_CARD_TEXT)
    if kind == CAPTURED_OTHER_AMOUNT and status == Status.AUTHORIZED:
        return DescribedAction(title, OTHER_AMOUNT_TEXT)
    of_statuses, otherwise = MEANINGS[CAPTURED_OUTSIDE if kind == CAPTURED_OTHER_AMOUNT else kind]
    return DescribedAction(title, of_statuses.get(status, otherwise))


def _action_title(kind: str, facts: Mapping[str, Any]) -> str:
    sentence = kinds.kind_named(kind).sentence
    return (
        sentence
        if kind == VOIDED_OUTSIDE
        else f"{sentence}: {money.display(facts['amount'], facts['currency'])}"
    )


def outside_refund_sums(order: Order) -> dict[str, str]:
    """Return how much of a captured order was refunded in the bank's dashboard, and the remaining amount.

    Refunds that have not settled yet are under `on_its_way`, the others under `given_back`. Both are "" for zero.
    The result is empty for other orders, and if no money was refunded there.
    """
    if order.accounts is None or order.checkout.status != Status.CAPTURED:
        return {}
    cards, currency = order.accounts.cards.values(), order.checkout.currency
    refunded, on_its_way = (
        sum(card.outside for card in cards),
        sum(card.outside_unconfirmed for card in cards),
    )
    if not refunded:
        return {}
    settled = refunded - on_its_way
    return {
        "on_its_way": money.display(-on_its_way, currency) if on_its_way else "",
        "given_back": money.display(-settled, currency) if settled else "",
        "left": money.display(refundable_amount(order), currency),
    }


def refundable_amount(order: Order) -> int:
    """Return how much a refund of a captured order would pay back, in minor units.

    A mate's money that is still owed to the lead is not included, because a refund returns it to the mate.
    """
    accounts = order.accounts
    if accounts is None:
        return order.checkout.amount
    parts = {share: accounts.reimbursement(share)[1] for share in accounts.shares}
    owed = sum(
        accounts.owed_to_lead(share) - part.unconfirmed - part.outstanding for share, part in parts.items()
    )
    return sum(max(0, card.owed(0)) for card in accounts.cards.values()) - owed
