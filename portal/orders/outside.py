"""What somebody did with an order in the bank's own dashboard: what it means, and what the merchant does now."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from checkout.states import Status
from payments import money
from payments.outside.acts import KINDS
from portal.badges import Badge
from portal.orders.order import Order

RELEASED, TAKEN, GIVEN_BACK = KINDS["void"], KINDS["capture"], KINDS["refund"]
TITLES = {
    RELEASED: "The hold was released in the bank’s own dashboard",
    TAKEN: "{amount} was taken in the bank’s own dashboard",
    GIVEN_BACK: "{amount} was given back in the bank’s own dashboard",
}
# What it means in each status that has words of its own, and in any other.
MEANINGS: dict[str, tuple[Mapping[str, str], str]] = {
    RELEASED: (
        {
            Status.AUTHORIZED: "Nothing can be taken any more, and the customer is charged nothing. Do not fulfil the"
            " order: cancel it. We are looking into it.",
        },
        "Nothing is held on the card any more. We are looking into it; you need do nothing.",
    ),
    TAKEN: (
        {
            Status.AUTHORIZED: "The customer is charged, and the order is still only held. Capture it in time, as"
            " always: that finds the money and takes nothing twice. If it is not captured, we see to it that the"
            " customer gets the money back.",
            Status.CAPTURED: "Your capture found that money, and nothing was taken twice. We are looking into it; you"
            " need do nothing.",
        },
        "The customer is charged, and the order was not captured. Do not fulfil it. We see to it that the customer gets"
        " the money back.",
    ),
    GIVEN_BACK: (
        {
            Status.CAPTURED: "It went back to the customer’s card and is not booked here yet: your balance still counts"
            " it as yours. We see to it; you need do nothing. Do not refund this order until this notice is gone: the"
            " bank would refuse it. After that, a refund gives back the rest.",
        },
        "The customer has that money. We are looking into it. Do not pay them besides.",
    ),
}
NOT_BEFORE = (
    "Money was given back in the bank’s own dashboard. We book that first; then you can refund the rest."
)
OF_A_MATE = "It was a mate’s card: the order stays as it is. We are looking into it; you need do nothing."


class Told(NamedTuple):
    """An act in the words of the order's page, and its badge there, if it has one."""

    title: str
    text: str
    badge: Badge | None


def told(order: Order) -> list[Told]:
    """Return the acts on an order that are still open, in words (rule portal.outside)."""
    return [_told(order, **act) for act in order.acts]


def is_given_back(order: Order) -> bool:
    """Whether the card that paid the order has got money back and nobody has booked it: a refund would be refused."""
    return any(act["kind"] == GIVEN_BACK and not _is_mates(order, act["facts"]) for act in order.acts)


def _told(order: Order, kind: str, facts: Mapping[str, Any]) -> Told:
    amount = money.display(facts["amount"], facts["currency"])
    of_statuses, otherwise = MEANINGS[kind]
    text = of_statuses.get(order.checkout.status, otherwise)
    is_mates = _is_mates(order, facts)
    badge = Badge("held", "alert", f"{amount} given back") if kind == GIVEN_BACK and not is_mates else None
    return Told(TITLES[kind].format(amount=amount), OF_A_MATE if is_mates else text, badge)


def _is_mates(order: Order, facts: Mapping[str, Any]) -> bool:
    return facts["payment"] in {str(share.payment_id) for share in order.shares}
