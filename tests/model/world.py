"""The steps of the service, the merchant, the operators and time. provider.py has the provider's steps."""

from tests.model import provider
from tests.model.books import KNOWN, Break, Chances, Outside, Reading, Refund, Scope, Share, State, sum_cards
from tests.model.provider import Steps, describe, name, put, spend
from tests.model.settle import find_wanted, is_disputed, is_held, settle

SENT_AT_RISK = "A refund was sent while a dispute was open"


def start(scope: Scope) -> State:
    """Return the first state: a captured order, before any other event."""
    word = "paying" if scope.is_paying else "paid"
    shares = (Share(word, word),) * len(scope.shares)
    return settle(scope, State("captured", 0, False, False, shares, scope.left, (0,) * len(shares)))


def list_steps(scope: Scope, state: State) -> Steps:
    """Yield each step that is possible now: a sentence, and the state after it."""
    for index, row in enumerate(state.refunds):
        yield from _operation_steps(scope, state, index, row)
    for card in range(len(scope.shares) + 1):
        yield f"We read the provider's list of {name(card)}.", sync(scope, state, card)
    yield from _late_lists(scope, state)
    yield from _time(scope, state)
    yield from _merchant(scope, state)
    yield from _operator(scope, state)
    yield from provider.list_steps(scope, state)


def _operation_steps(scope: Scope, state: State, index: int, row: Refund) -> Steps:
    """Send a planned refund, or receive the result of a refund that was sent.

    The result can come from the response to any of the refund's calls, or from a look-up.
    """
    if row.known == "planned" and (state.is_due or not row.share):
        yield f"We send {describe(row)}.", _send(state, index)
    elif row.known == "sent" and row.real != "way":
        heard = state._replace(refunds=put(state.refunds, index, row._replace(known=row.real)))
        # A refusal shows that our records are incomplete, so the provider's list is read before the next
        # plan.
        after = sync(scope, state, row.card) if row.real == "failed" else settle(scope, heard)
        yield f"The answer arrives: {describe(row)} is {row.real}.", after


def _send(state: State, index: int) -> State:
    row = state.refunds[index]
    rest = state._replace(refunds=(*state.refunds[:index], *state.refunds[index + 1 :]))
    fault = SENT_AT_RISK if is_disputed(state) else state.fault
    return provider.add(rest, row._replace(known="sent", real="way"))._replace(fault=fault)


def sync(scope: Scope, state: State, card: int) -> State:
    """Record the provider's current list of a card's refunds and disputes, and settle."""
    refunds = tuple(
        row._replace(known=row.real) if row.card == card and row.real not in ("", "way") else row
        for row in state.refunds
    )
    disputes = tuple(row._replace(known=row.real) if row.card == card else row for row in state.disputes)
    shares = tuple(
        row._replace(known=row.real) if share == card else row
        for share, row in enumerate(state.shares, start=1)
    )
    if (refunds, disputes, shares) == (state.refunds, state.disputes, state.shares):
        return state
    return settle(scope, state._replace(refunds=refunds, disputes=disputes, shares=shares))


def _late_lists(scope: Scope, state: State) -> Steps:
    if state.reading:
        yield f"The list of {name(state.reading.card)} arrives late.", _read_late(scope, state, state.reading)
    elif state.left.stale:
        made = tuple(row for row in state.refunds if row.known != "planned")
        after = state._replace(left=spend(state, "stale"))
        for card in range(len(scope.shares) + 1):
            reading = Reading(card, made, state.disputes)
            yield f"We request the provider's list of {name(card)}.", after._replace(reading=reading)


def _read_late(scope: Scope, state: State, reading: Reading) -> State:
    """Record a list that was requested from the provider earlier.

    The list does not overwrite facts that were recorded after the request.
    """
    refunds, disputes = list(state.refunds), list(state.disputes)
    for index, row in enumerate(state.refunds):
        then = reading.refunds[index] if index < len(reading.refunds) else None
        if row.card == reading.card:
            refunds[index] = _read_refund(scope, row, then)
    for index, dispute in enumerate(reading.disputes):
        if dispute.card == reading.card and disputes[index].known == dispute.known:
            disputes[index] = dispute._replace(known=dispute.real, real=disputes[index].real)
    after = state._replace(refunds=tuple(refunds), disputes=tuple(disputes), reading=None)
    return settle(scope, after)


def _read_refund(scope: Scope, row: Refund, then: Refund | None) -> Refund:
    is_listed = then is not None and then.real != "way"
    if scope.without == Break.STALE_LIST and not is_listed and row.known in ("pending", "settled"):
        return row._replace(known="failed")
    if then is None or not is_listed or row.known != then.known:
        return row
    return row._replace(known=then.real)


def _time(scope: Scope, state: State) -> Steps:
    if not state.is_due and state.shares:
        yield "The reimbursement delay passes.", settle(scope, state._replace(is_due=True))
    if not state.is_late and any(row.by_us and row.known == "failed" for row in state.refunds):
        yield "The three days of retries pass.", settle(scope, state._replace(is_late=True))


def can_refund(scope: Scope, state: State) -> bool:
    """Return whether the merchant may refund the order."""
    known = sum_cards(scope, state, KNOWN)
    is_worthwhile = any(card.borne > 0 for card in known) or not any(card.lost for card in known)
    return state.status == "captured" and not is_disputed(state) and is_worthwhile


def _merchant(scope: Scope, state: State) -> Steps:
    if state.left.merchant and can_refund(scope, state):
        after = state._replace(status="refunding", part=state.part + 1, left=spend(state, "merchant"))
        yield "The merchant refunds the order.", settle(scope, after)


def list_held(scope: Scope, state: State) -> list[Refund]:
    """Return the refunds that only an operator may send. They have the form of planned refunds."""
    if is_disputed(state):
        return []
    wanted = find_wanted(scope, state, sum_cards(scope, state, KNOWN))
    return [
        Refund(card, amount, share, part, True, "planned", "")
        for (card, share, part), amount in wanted.items()
        if is_held(state, card, share)
    ]


def _operator(scope: Scope, state: State) -> Steps:
    less: Chances | None = spend(state, "operator") if state.left.operator else None
    for row in list_held(scope, state):
        if less:
            sent = _send(state._replace(refunds=(*state.refunds, row), left=less), len(state.refunds))
            yield f"An operator sends {describe(row)} again.", settle(scope, sent)
        outside = (*state.outside, Outside(row.card, row.amount, row.share, row.part))
        yield f"An operator settles {describe(row)} outside.", settle(scope, state._replace(outside=outside))
    for index, paid in enumerate(state.outside if less else ()):
        rest = (*state.outside[:index], *state.outside[index + 1 :])
        after = state._replace(outside=rest, left=less or state.left)
        yield f"An operator reverses the settlement of £{paid.amount} outside.", settle(scope, after)
