"""The state in the model of a pledge, and changes to it under the checkout's lock."""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from checkout import states
from checkout.states import ShareStatus, Status
from tests.model.protocols.protocol import follow_table
from tests.model.protocols.replaying.moves import Move


class Break(StrEnum):
    """The rules that a variant of the model can leave out. Each value describes the model without the rule."""

    SECOND_LOOK = (
        "the answer to an authorization is recorded without a second look at the order and the share"
    )
    RELEASE = "the end of the order releases no hold"
    KEPT_ROW = "a share that a newer split replaces is deleted"
    WAIT = "a pledge is captured as soon as the lead's card is held"
    ABANDONED = "a card that was given up for another card is not marked"
    CONFIRMED = "a card that the mate has not confirmed in time gets no void"


class Payment(NamedTuple):
    """A card that pays for the share. `is_asked` is true until the outcome of its authorization is recorded.

    - status: as in our database
    - bank: "", challenged (waits for the mate's confirmation), held, declined, captured, released, or gone
      (the authorization never arrived)
    - capture and void: "", planned, sent, ended
    """

    card: str  # good, declined, leads, challenged
    status: str = "authorizing"
    is_asked: bool = True
    is_challenged: bool = False  # the service knows that the bank waits for the mate
    is_abandoned: bool = False
    bank: str = ""
    capture: str = ""
    void: str = ""


class State(NamedTuple):
    """The order, the lead's card, the share, and the mate's cards."""

    order: Status = Status.CREATED
    is_lead_asked: bool = False  # the lead's card is being authorized
    share: ShareStatus = ShareStatus.OPEN
    is_replaced: bool = False
    is_deleted: bool = False  # only in the variant without KEPT_ROW
    payments: tuple[Payment, ...] = ()
    cards: int = 2  # number of cards that the mate can still enter
    changes: int = 1  # number of times that the lead can still change the split
    is_stopped: bool = False  # an operator has stopped the merchant
    fault: str = ""

    @property
    def leads_card(self) -> str:
        """Return the name of the lead's card, or "" while the card is not known."""
        return "leads" if self.order in (Status.AUTHORIZED, Status.CAPTURED) else ""


Moves = Iterator[Move[State]]


def move_share(state: State, to: ShareStatus) -> State:
    """Move the share if the table of moves allows it. Otherwise, add a fault to the model's state."""
    moved: State = follow_table(state, "share", to, states.check_share_move)
    return moved


def move_order(state: State, to: Status) -> State:
    """Move the order if the table of states allows it. Otherwise, record a fault in the state."""
    moved: State = follow_table(state, "order", to, states.check_move)
    return moved


def is_waiting(state: State) -> bool:
    """Return whether the order can have pledges."""
    return state.order in states.PLEDGEABLE and not state.is_stopped


def is_live(payment: Payment) -> bool:
    """Return whether a payment can still hold or take money for the share."""
    return payment.status in ("authorizing", "authorized", "captured") and not payment.is_abandoned


def live_of(state: State) -> list[int]:
    """Return the indexes of the live payments."""
    return [index for index, payment in enumerate(state.payments) if is_live(payment)]


def put(state: State, index: int, payment: Payment) -> State:
    """Return the state in which the payment at this index is replaced."""
    return state._replace(payments=(*state.payments[:index], payment, *state.payments[index + 1 :]))


def give_up(state: State, index: int) -> State:
    """Give up a card, and plan the release of its hold unless a void is already planned."""
    payment = state.payments[index]
    return put(state, index, payment._replace(is_abandoned=True, void=payment.void or "planned"))


def release(state: State) -> State:
    """Give up the live payment of a pledge."""
    for index in live_of(state):
        state = give_up(state, index)
    return state


def reopen(state: State) -> State:
    """Open a share if no card is paying it any more. If the order has ended, cancel the share."""
    if state.share != ShareStatus.PAYING or live_of(state):
        return state
    opened = move_share(state, ShareStatus.OPEN)
    has_ended = state.order in (Status.VOIDED, Status.EXPIRED)
    return move_share(opened, ShareStatus.CANCELLED) if has_ended else opened
