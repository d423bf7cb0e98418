"""The steps of the mate, the lead, the merchant and time that end a pledge or let it be captured."""

from checkout.states import ALLOWED_MOVES, ALLOWED_SHARE_MOVES, PLEDGEABLE, ShareStatus, Status
from tests.model.protocols.pledge_state import (
    Break,
    Moves,
    State,
    is_waiting,
    live_of,
    move_order,
    move_share,
    put,
    release,
)
from tests.model.protocols.replaying.moves import Move


def list_moves(state: State, without: Break | None) -> Moves:
    """Yield each step that a person or time can take now."""
    yield from _lead(state, without)
    yield from _ends(state, without)
    is_calm = state.order == Status.CREATED and not state.is_lead_asked
    if is_calm and state.share == ShareStatus.PLEDGED:
        yield Move(("withdraw",), "The mate withdraws.", move_share(release(state), ShareStatus.OPEN))
    may_keep = (state.share, ShareStatus.CANCELLED) in ALLOWED_SHARE_MOVES and not state.is_replaced
    if may_keep:
        cancelled = move_share(state, ShareStatus.CANCELLED)
        yield Move(("keep",), "The lead keeps the share.", cancelled)
    elif state.share == ShareStatus.PLEDGED:
        opened = move_share(release(state), ShareStatus.OPEN)
        yield Move(("keep",), "The lead keeps the share.", move_share(opened, ShareStatus.CANCELLED))
    if is_calm and state.changes and not state.is_replaced:
        yield from _split(state._replace(changes=state.changes - 1), without)
    if is_calm and state.share in (ShareStatus.PLEDGED, ShareStatus.PAYING):
        yield Move(("rename",), "The lead corrects the mate's name.", state)
    yield from _operator(state)


def _operator(state: State) -> Moves:
    """Let an operator stop the merchant. Afterwards, the pump ends the pledges."""
    if is_waiting(state):
        yield Move(("stop",), "An operator stops the merchant.", state._replace(is_stopped=True))
    elif state.order in PLEDGEABLE and state.share == ShareStatus.PLEDGED:
        opened = move_share(release(state), ShareStatus.OPEN)
        yield Move(("stopped",), "The pump ends the pledges of the stopped merchant.", opened)


def _lead(state: State, without: Break | None) -> Moves:
    may_pay = (state.order, Status.AUTHORIZED) in ALLOWED_MOVES and is_waiting(state)
    if may_pay and not state.is_lead_asked:
        yield Move(("lead",), "The lead pays with a card.", state._replace(is_lead_asked=True))
    elif state.is_lead_asked:
        answered = state._replace(is_lead_asked=False)
        held = end_those_of_lead(move_order(answered, Status.AUTHORIZED))
        after = capture_pledge(held) if without == Break.WAIT else held
        yield Move(("held",), "The lead's card is held.", after)
        yield Move(("declined",), "The lead's card is declined.", answered)


def _ends(state: State, without: Break | None) -> Moves:
    """Let the merchant capture or cancel the order, or let the order's time end."""
    if state.order == Status.AUTHORIZED and is_waiting(state):
        captured = capture_pledge(end_those_of_lead(move_order(state, Status.CAPTURED)))
        yield Move(("capture",), "The merchant captures the order.", captured)
    if state.is_lead_asked:
        return
    if (state.order, Status.VOIDED) in ALLOWED_MOVES:
        voided = _end_with_order(move_order(state, Status.VOIDED), without)
        yield Move(("cancel",), "The merchant cancels the order.", voided)
    if state.order == Status.AUTHORIZED:
        voided = _end_with_order(move_order(state, Status.VOIDED), without)
        yield Move(("lapse",), "Two minutes pass, and the order lapses.", voided)
    if (state.order, Status.EXPIRED) in ALLOWED_MOVES:
        expired = _end_with_order(move_order(state, Status.EXPIRED), without)
        yield Move(("expire",), "The order expires.", expired)


def _end_with_order(state: State, without: Break | None) -> State:
    """End the pledge of an order that has ended, and cancel an open share.

    If a card is paying the share, the share waits for the bank's answer.
    """
    if state.is_replaced:
        return state
    if state.share == ShareStatus.PLEDGED:
        released = state if without == Break.RELEASE else release(state)
        state = move_share(released, ShareStatus.OPEN)
    return move_share(state, ShareStatus.CANCELLED) if state.share == ShareStatus.OPEN else state


def _split(state: State, without: Break | None) -> Moves:
    """Let the lead change the split. The share ends, or its amount changes."""
    if without == Break.KEPT_ROW:
        deleted = state._replace(share=ShareStatus.CANCELLED, is_replaced=True, is_deleted=True)
        yield Move(("replace",), "The lead replaces the split: the share is deleted.", deleted)
        return
    ended = _end_payment(state)
    is_cancelled = ended.share == ShareStatus.CANCELLED
    replaced = ended if is_cancelled else move_share(ended, ShareStatus.CANCELLED)
    yield Move(("replace",), "The lead replaces the split.", replaced._replace(is_replaced=True))
    opened = move_share(ended, ShareStatus.OPEN) if is_cancelled else ended
    yield Move(("change",), "The lead changes the amount of the share.", opened)


def _end_payment(state: State) -> State:
    """Give up the share's card.

    If its authorization is open, the hold is released only after the bank has answered.
    """
    for index in live_of(state):
        payment = state.payments[index]
        asked = put(state, index, payment._replace(is_abandoned=True))
        state = asked if payment.is_asked else release(state)
    has_card = state.share in (ShareStatus.PLEDGED, ShareStatus.PAYING)
    return move_share(state, ShareStatus.OPEN) if has_card else state


def end_those_of_lead(state: State) -> State:
    """If a pledge was made with the lead's card, end it."""
    is_leads = any(state.payments[index].card == state.leads_card for index in live_of(state))
    if state.share != ShareStatus.PLEDGED or not is_leads:
        return state
    return move_share(release(state), ShareStatus.OPEN)


def capture_pledge(state: State) -> State:
    """Plan the capture of the pledge, if there is one."""
    if state.share != ShareStatus.PLEDGED:
        return state
    for index in live_of(state):
        state = put(state, index, state.payments[index]._replace(capture="planned"))
    return move_share(state, ShareStatus.PAYING)
