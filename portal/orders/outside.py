"""What somebody did with an order in the bank's own dashboard: what it means, and what the merchant does now."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from checkout.states import Status
from payments import money
from payments.outside import returns
from payments.outside.acts import KINDS
from portal.badges import Badge
from portal.orders.entries import Entry
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
            Status.CAPTURED: "It went back to the customer’s card. We are checking who bears it: if you do, we"
            " take it from your balance when we book it.",
        },
        "The customer has that money. We are looking into it. Do not pay them besides.",
    ),
}
# In the place of a capture that would find the money: one of another amount never counts as ours.
OF_ANOTHER_AMOUNT = (
    "The customer is charged, but not the order’s amount: a capture would not find that money. Do not fulfil the order:"
    " cancel it. We see to it that the customer gets the money back."
)
NOT_YET = "Do not refund this order yet: the bank would refuse that."
NOT_BEFORE = (
    "Money was given back in the bank’s own dashboard. We book that first; then you can refund the rest."
)
OF_A_MATE = "It was a mate’s card: the order stays as it is. We are looking into it; you need do nothing."


class Told(NamedTuple):
    """An act in the words of the order's page: what it means, what to leave and what follows; its badge, if any."""

    title: str
    text: str
    not_yet: str
    then: str
    badge: Badge | None


def told(order: Order) -> list[Told]:
    """Return the acts on an order that are still open, in words (rule portal.outside)."""
    return [_told(order, act["kind"], act["facts"]) for act in order.acts]


def entries(order: Order) -> Iterator[Entry]:
    """Yield the acts that are still open as entries of the timeline, at the times when we learned of them."""
    for act in order.acts:
        yield Entry(
            at=datetime.fromisoformat(act["at"]),
            kind="bank",
            tone="held",
            icon="alert",
            title=_title(act["kind"], act["facts"]),
            text="This is when we learned of it.",
        )


def is_given_back(order: Order) -> bool:
    """Whether the card that paid the order has got money back and nobody has booked it: a refund would be refused."""
    return any(act["kind"] == GIVEN_BACK and not _is_mates(order, act["facts"]) for act in order.acts)


def _told(order: Order, kind: str, facts: Mapping[str, Any]) -> Told:
    of_statuses, otherwise = MEANINGS[kind]
    title, status = _title(kind, facts), order.checkout.status
    if _is_mates(order, facts):
        return Told(title, OF_A_MATE, "", "", None)
    text = of_statuses.get(status, otherwise)
    if kind == TAKEN and status == Status.AUTHORIZED and facts["amount"] != order.checkout.amount:
        text = OF_ANOTHER_AMOUNT
    if kind != GIVEN_BACK:
        return Told(title, text, "", "", None)
    badge = Badge("held", "alert", f"{_amount(facts)} given back elsewhere")
    if status != Status.CAPTURED:
        return Told(title, text, "", "", badge)
    return Told(title, text, NOT_YET, _then(order, facts), badge)


def _title(kind: str, facts: Mapping[str, Any]) -> str:
    return TITLES[kind].format(amount=_amount(facts))


def _amount(facts: Mapping[str, Any]) -> str:
    return money.display(facts["amount"], facts["currency"])


def left(order: Order) -> dict[str, str]:
    """Return what was given back and what of the order is left, in words; nothing unless some of it is to be booked."""
    if not is_given_back(order):
        return {}
    given_back, currency = _given_back(order), order.checkout.currency
    return {
        "given_back": money.display(-given_back, currency),
        "left": money.display(order.checkout.amount - given_back, currency),
    }


def _given_back(order: Order) -> int:
    found = sum(row.amount for row in order.bookings if row.lessens_refund)
    for act in order.acts:
        if act["kind"] == GIVEN_BACK and not _is_mates(order, act["facts"]) and not _is_given_again(act):
            found += int(act["facts"]["amount"])
    return found


def _is_given_again(act: Mapping[str, Any]) -> bool:
    """Whether it will be booked in place of a refund that came back, which lessens no other."""
    told_at, facts = datetime.fromisoformat(act["at"]), act["facts"]
    back = returns.given_again(UUID(facts["payment"]), told_at=told_at)
    return any(part.amount == facts["amount"] for part in back)


def _then(order: Order, facts: Mapping[str, Any]) -> str:
    """Return what can be refunded once all that was given back is booked."""
    rest = order.checkout.amount - _given_back(order)
    left = (
        f" and you can refund the remaining {money.display(rest, order.checkout.currency)}"
        if rest > 0
        else ""
    )
    return f"When the {_amount(facts)} is booked, this notice goes{left}."


def _is_mates(order: Order, facts: Mapping[str, Any]) -> bool:
    return facts["payment"] in {str(share.payment_id) for share in order.shares}
