"""The steps that the provider, the banks, and staff in the provider's dashboard can take."""

from collections.abc import Iterator
from typing import TypeVar

from tests.model.books import REAL, Card, Chances, Dispute, Refund, Scope, State, sum_cards

T = TypeVar("T")
Steps = Iterator[tuple[str, State]]
DECIDED = {"inquiry": ("won", "open"), "open": ("won", "lost"), "lost": ("reinstated",)}
AS_SAID = {
    "won": "is won",
    "open": "becomes a dispute, and the bank takes the money",
    "lost": "is lost",
    "reinstated": "is won after an appeal, and the money comes back",
}


def list_steps(scope: Scope, state: State) -> Steps:
    """Yield each step that is possible now: a sentence, and the state after it."""
    cards = sum_cards(scope, state, REAL)
    for index, row in enumerate(state.refunds):
        yield from _refund_steps(state, index, row, cards[row.card])
    for index, card in enumerate(cards):
        yield from _dashboard_steps(state, index, card)
        yield from _dispute_steps(scope, state, index, card)
    yield from _decisions(state)
    for index, share in enumerate(state.shares):
        for real in ("paid", "declined") if share.real == "paying" else ():
            after = put(state.shares, index, share._replace(real=real))
            yield (
                f"The mate's card is {'charged' if real == 'paid' else 'declined'}.",
                state._replace(shares=after),
            )


def put(rows: tuple[T, ...], index: int, row: T) -> tuple[T, ...]:
    """Return the rows, in which the row at the index is replaced."""
    return (*rows[:index], row, *rows[index + 1 :])


def spend(state: State, chance: str) -> Chances:
    """Return the chances that are left after an event of this kind."""
    return state.left._replace(**{chance: getattr(state.left, chance) - 1})


def name(card: int) -> str:
    """Return how a counterexample names the card."""
    return ("the lead's card", "the mate's card", "the second mate's card")[card]


def describe(row: Refund) -> str:
    """Return how a counterexample names the refund."""
    if row.share:
        return f"the reimbursement of £{row.amount} to the lead's card"
    return f"the {'' if row.by_us else 'dashboard '}refund of £{row.amount} to {name(row.card)}"


def _refund_steps(state: State, index: int, row: Refund, card: Card) -> Steps:
    what, left = describe(row), state.left
    if row.real == "way" and row.amount > card.captured - card.refunded - card.moving:
        yield f"The provider refuses {what}: the card has too little left.", _turn(state, index, "failed")
    elif row.real == "way":
        yield f"The provider carries out {what}.", _turn(state, index, "settled")
        if left.slow:
            yield f"The provider accepts {what}, and it is pending.", _turn(state, index, "pending", "slow")
        if left.fail:
            yield f"The provider refuses {what}.", _turn(state, index, "failed", "fail")
    elif row.real == "pending":
        yield f"At the provider, {what} settles.", _turn(state, index, "settled")
        if left.fail:
            yield f"At the provider, {what} fails.", _turn(state, index, "failed", "fail")
    elif row.real == "settled" and left.come_back:
        yield f"At the provider, {what} is returned.", _turn(state, index, "returned", "come_back")


def _turn(state: State, index: int, real: str, chance: str = "") -> State:
    refunds = put(state.refunds, index, state.refunds[index]._replace(real=real))
    return state._replace(refunds=refunds, left=spend(state, chance) if chance else state.left)


def _dashboard_steps(state: State, index: int, card: Card) -> Steps:
    if not state.left.others:
        return
    after = state._replace(left=spend(state, "others"))
    for amount in range(1, card.captured - card.refunded - card.moving + 1):
        what = f"Somebody refunds £{amount} to {name(index)} in the dashboard"
        yield f"{what}.", add(after, Refund(index, amount, 0, 0, False, "", "settled"))
        if after.left.slow:
            slow = after._replace(left=spend(after, "slow"))
            yield f"{what}; it is pending.", add(slow, Refund(index, amount, 0, 0, False, "", "pending"))


def add(state: State, row: Refund) -> State:
    """Return the state with an additional refund, which comes before the planned refunds."""
    made = tuple(other for other in state.refunds if other.known != "planned")
    return state._replace(refunds=(*made, row, *state.refunds[len(made) :]))


def _dispute_steps(scope: Scope, state: State, index: int, card: Card) -> Steps:
    if not state.left.dispute or not card.captured or any(row.card == index for row in state.disputes):
        return
    after = state._replace(left=spend(state, "dispute"))
    for amount in (card.captured + difference for difference in scope.disputed):
        for real, said in (("inquiry", "inquires about"), ("open", "disputes and takes")):
            rows = (*state.disputes, Dispute(index, amount, "", real))
            yield f"The bank of {name(index)} {said} £{amount}.", after._replace(disputes=rows)


def _decisions(state: State) -> Steps:
    for index, row in enumerate(state.disputes):
        for real in DECIDED.get(row.real, ()):
            if real != "reinstated" or state.left.appeal:
                left = spend(state, "appeal") if real == "reinstated" else state.left
                rows = put(state.disputes, index, row._replace(real=real))
                what = f"The {'inquiry about' if row.real == 'inquiry' else 'dispute of'} {name(row.card)}"
                yield f"{what} {AS_SAID[real]}.", state._replace(disputes=rows, left=left)
