"""Checks the invariants of the money after the capture.

Some must hold in every state. Others must hold only when no work is left and the order is at rest.
"""

from tests.model import world
from tests.model.books import (
    KNOWN,
    LEAD,
    MOVING,
    OPEN,
    REAL,
    Break,
    Card,
    Dispute,
    Refund,
    Scope,
    Share,
    State,
    sum_cards,
    sum_reimbursed,
)
from tests.model.provider import name
from tests.model.settle import (
    FAILED_IN_VAIN,
    find_targets,
    is_disputed,
    is_held,
    sum_merchant,
    sum_owed_to_lead,
)


def find_problem(scope: Scope, state: State, is_last: bool) -> str:
    """Return the first invariant that the state breaks, or ""."""
    real, known = sum_cards(scope, state, REAL), sum_cards(scope, state, KNOWN)
    found = _find_overpaid(scope, state, real) or _find_rash_plan(state, known) or _find_account(state, known)
    if not found and is_last and state.status == "refunding":
        found = "No step is left, and the order stays in refunding"
    if not found and _is_at_rest(state):
        found = _find_at_rest(scope, state, known) or _find_uneven(scope, state, known)
    return found or (state.fault if state.fault == FAILED_IN_VAIN else "")


def _find_overpaid(scope: Scope, state: State, real: list[Card]) -> str:
    """Return a sentence if too much money was paid out, else "".

    The merchant may lose only refunds that are due, refunds from outside the service, and money that disputes
    withdraw.
    """
    due = scope.amount if state.status == "captured" else 0
    explained = sum(card.others + card.withdrawn for card in real)
    if sum(card.borne - card.moving for card in real) < due - explained:
        return "The merchant has paid out more than the order, other people and banks explain"
    is_double = any(card.refunded and card.refunded + card.withdrawn > card.captured for card in real)
    if is_double and state.fault == world.SENT_AT_RISK:
        return "A card has got more than it paid, by a refund that we sent while its dispute was open"
    return ""


def _find_rash_plan(state: State, known: list[Card]) -> str:
    """Return a sentence if a refund is planned that should not be planned, else "".

    Only the facts in our database count here. The facts at the provider do not.
    """
    planned = [0] * len(known)
    for row in state.refunds:
        if row.known == "planned":
            planned[row.card] += row.amount
            mate = known[row.share]
            if is_held(state, row.card, row.share):
                return "A refund is planned that only an operator may send"
            if row.share and mate.lost >= mate.captured and not sum_reimbursed(state, row.share):
                return "A share is to be reimbursed that a lost dispute has taken from its mate's payment"
    if any(amount > max(card.borne - card.moving, 0) for amount, card in zip(planned, known, strict=True)):
        return "A refund is planned that the card cannot take"
    return ""


def _find_account(state: State, known: list[Card]) -> str:
    owed = sum_owed_to_lead(state, known)
    if min((*owed, *state.closed), default=0) < 0:
        return "The account of what we owe the lead is negative"
    if is_terminal(state, known) and any(owed):
        return "The order is terminal, but the account of what we owe the lead is not zero"
    if state.status == "refunded" and any(share.known == "paying" for share in state.shares):
        return "The order is refunded while a share is being paid"
    return ""


def is_terminal(state: State, known: list[Card]) -> bool:
    """Return whether the order has ended.

    An order has ended if it is refunded, or if no amount is still charged to any card. An order with an open
    refund, dispute or payment has not ended.
    """
    is_open = is_disputed(state) or any(card.moving for card in known)
    if is_open or any(share.known == "paying" for share in state.shares):
        return False
    return state.status == "refunded" or all(card.borne <= 0 for card in known)


def _is_at_rest(state: State) -> bool:
    """Return whether no refund, dispute or payment is open and our database agrees with the provider."""
    rows: list[Refund | Dispute | Share] = [*state.refunds, *state.disputes, *state.shares]
    is_open = any(row.known in (*MOVING, *OPEN, "planned", "paying") for row in rows)
    is_open |= state.reading is not None or not (state.is_due or not state.shares)
    return not is_open and all(row.known == row.real for row in rows)


def _find_at_rest(scope: Scope, state: State, known: list[Card]) -> str:
    """Return a sentence if an order at rest has a problem that no one can solve, else "".

    Either no one can act on the order, or the amount charged to a card differs from its target and no
    operator can correct it.
    """
    held = {row.card for row in world.list_held(scope, state)}
    if not is_terminal(state, known) and not held and not world.can_refund(scope, state):
        return "The order is at rest, and neither the merchant nor an operator can do anything"
    for index, (card, target) in enumerate(zip(known, find_targets(scope, state, known), strict=True)):
        if card.borne > target and index not in held:
            return f"{name(index)} is owed £{card.borne - target}, and no operator learns of it".capitalize()
        # A card can get too much even without a dispute: an operator settles its refund outside the service,
        # and staff refund it in the dashboard.
        is_explained = card.outside and scope.without != Break.NO_VERB
        if target - card.borne > card.withdrawn and not is_explained:
            return f"{name(index)} has got £{target - card.borne} too much, and there is no verb for it".capitalize()
    return ""


def _find_uneven(scope: Scope, state: State, known: list[Card]) -> str:
    """Return a sentence if the accounts of a captured order at rest do not add up to the price, else "".

    Unlike the other checks, this check does not use the targets of the cards. If a refund of the order waits
    for an operator, the order is not checked.
    """
    if state.status != "captured" or world.list_held(scope, state):
        return ""
    if any(sum_owed_to_lead(state, known)):
        return "The order is at rest, but the account of what we owe the lead is not zero"
    closed = sum(amount for amount, card in zip(state.closed, known[1:], strict=True) if card.borne > 0)
    if closed > known[LEAD].lost:
        return "A mate bears a share that neither we nor a bank have given to the lead"
    to_lead = [share for share in range(1, len(known)) if sum_reimbursed(state, share)]
    price = scope.amount - known[LEAD].others - sum(known[share].others for share in to_lead)
    merchant = sum_merchant(state, known)
    is_plain = not state.outside and not any(card.withdrawn for card in known)
    if merchant > price or (merchant < price and is_plain):
        return f"The merchant has £{merchant}, but £{price} is left of the price"
    return ""
