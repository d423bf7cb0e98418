"""A model of a pledge: a mate's card is held for a share before the lead pays.

The mate can use two cards, one after the other. The statuses of the order and of the share, and their moves,
are those of checkout/states.py. Each authorization, capture and void arrives at the bank in one step. Its
answer is recorded in a later step, by the process that made the call or by the pump. The steps of the lead,
the merchant and time are in pledge_moves.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from checkout.states import PAID, PLEDGEABLE, ShareStatus, Status
from tests.model.protocols import pledge_moves
from tests.model.protocols.pledge_state import (
    Break,
    Moves,
    Payment,
    State,
    give_up,
    is_live,
    is_waiting,
    live_of,
    move_share,
    put,
    reopen,
)
from tests.model.protocols.protocol import Protocol
from tests.model.protocols.replaying.moves import Move, steps_of
from tests.model.variants import Variant

OPEN = ("planned", "sent")
CARDS = {
    "good": "a card",
    "declined": "a card without money",
    "leads": "the card with which the lead pays",
    "challenged": "a card whose bank asks for a confirmation",
}
# Some authorizations do not lead to a hold at once. For their cards: the state of the card at the bank.
AFTER_ARRIVAL = {"declined": "declined", "challenged": "challenged"}


@dataclass(frozen=True)
class Pledge:
    """The model, with at most one rule left out."""

    without: Break | None = None

    def start(self) -> State:
        """Return the first state: an unpaid order whose lead asks the mates to pledge first."""
        return State()

    def problem(self, state: State, is_last: bool) -> str:
        """Return the invariant that the state breaks, or ""."""
        charged = sum(payment.bank == "captured" for payment in state.payments)
        if state.fault:
            return state.fault
        if charged and state.order not in PAID:
            return "The mate is charged, and the order was not captured"
        if charged > 1:
            return "The mate is charged twice"
        if sum(map(is_live, state.payments)) > 1:
            return "Two cards pay for one share"
        if any(not _has_reason(state, payment) for payment in state.payments):
            return "The mate's card is held, without a pledge, a payment in progress or a void on its way"
        if state.share == ShareStatus.PLEDGED and state.order not in PLEDGEABLE:
            return "The share is pledged, and its order no longer waits"
        if state.share == ShareStatus.PLEDGED and not any(map(_is_held, state.payments)):
            return "The share is pledged, and no card is held for it"
        return _problem_at_rest(state, charged) if is_last else ""

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield each step that is possible now."""
        return steps_of(self.moves(state))

    def moves(self, state: State) -> Moves:
        """Yield each step that is possible now, with its name."""
        is_open = is_waiting(state) and state.order == Status.CREATED and state.share == ShareStatus.OPEN
        if is_open and state.cards and (not live_of(state) or self.without == Break.ABANDONED):
            paying = move_share(state._replace(cards=state.cards - 1), ShareStatus.PAYING)
            for card, said in CARDS.items():
                after = paying._replace(payments=(*state.payments, Payment(card)))
                yield Move(("pay", card), f"The mate pays with {said}.", after)
        yield from pledge_moves.list_moves(state, self.without)
        for index, payment in enumerate(state.payments):
            yield from self._authorization(state, index, payment)
            yield from _capture(state, index, payment)
            yield from _void(state, index, payment)

    def _authorization(self, state: State, index: int, payment: Payment) -> Moves:
        card, at = _name(state, index), str(index)
        if not payment.bank and payment.is_asked:
            bank = AFTER_ARRIVAL.get(payment.card, "held")
            arrived = put(state, index, payment._replace(bank=bank))
            yield Move(("arrive", at), f"The authorization arrives: {card} is {bank}.", arrived)
        if payment.bank == "challenged":
            confirmed = put(state, index, payment._replace(bank="held"))
            yield Move(("confirm", at), f"The mate confirms, and {card} is held.", confirmed)
        if payment.bank and payment.bank != "gone":
            said = f"The answer about {card} is recorded{'' if payment.is_asked else ' again'}."
            yield Move(("hear", at), said, self._hear(state, index, payment))
        yield from self._give_up(state, index, payment)

    def _give_up(self, state: State, index: int, payment: Payment) -> Moves:
        """Give up a card if its bank does not answer, or if its payer has not confirmed."""
        card, at = _name(state, index), str(index)
        is_waiting_for = not payment.is_abandoned and state.share == ShareStatus.PAYING
        if payment.is_challenged:
            void = "" if self.without == Break.CONFIRMED else "planned"
            ended = payment._replace(is_asked=False, is_challenged=False, status="declined", void=void)
            said = f"The time to confirm ends, or the mate takes another card: {card} is given up."
            yield Move(("end_challenge", at), said, reopen(put(state, index, ended)))
        elif payment.is_asked and is_waiting_for:
            said = f"The bank is silent for a minute, and {card} is given up."
            mark = payment._replace(is_abandoned=self.without != Break.ABANDONED)
            after = put(state, index, mark)
            opened = move_share(after, ShareStatus.OPEN) if not mark.is_abandoned else reopen(after)
            yield Move(("silent", at), said, opened)
        elif payment.is_asked and not payment.bank:
            said = f"A day later, the bank has no authorization of {card}."
            gone = payment._replace(status="declined", is_asked=False, bank="gone")
            yield Move(("never", at), said, reopen(put(state, index, gone)))

    def _hear(self, state: State, index: int, payment: Payment) -> State:
        """Record the answer to an authorization, after the share and the order are read again.

        If the authorization has already ended, a late answer does not change a row.
        """
        if not payment.is_asked:
            return state
        if payment.bank == "challenged":
            return put(state, index, payment._replace(is_challenged=True))
        status = "authorized" if payment.bank == "held" else "declined"
        ended = payment._replace(is_asked=False, is_challenged=False, status=status)
        after = put(state, index, ended)
        if status == "declined":
            return reopen(after)
        if state.is_deleted:
            return after
        is_unwanted = (
            payment.is_abandoned or state.share != ShareStatus.PAYING or payment.card == state.leads_card
        )
        has_ended = not (is_waiting(state) or state.order == Status.CAPTURED)
        if self.without != Break.SECOND_LOOK and (is_unwanted or has_ended):
            return reopen(give_up(after, index))
        if self.without == Break.SECOND_LOOK or state.order in PLEDGEABLE:
            return move_share(after, ShareStatus.PLEDGED)
        return put(state, index, ended._replace(capture="planned"))


def _capture(state: State, index: int, payment: Payment) -> Moves:
    card = _name(state, index)
    if payment.capture == "planned" and payment.bank == "held":
        taken = put(state, index, payment._replace(capture="sent", bank="captured"))
        yield Move(("take", str(index)), f"The capture arrives: {card} is charged.", taken)
        gone = put(state, index, payment._replace(capture="sent", bank="released"))
        yield Move(("refuse", str(index)), f"The bank releases {card}, and refuses the capture.", gone)
    elif payment.capture == "sent":
        ended = payment._replace(capture="ended")
        said = f"The answer to the capture of {card} is recorded."
        if payment.bank == "captured":
            captured = put(state, index, ended._replace(status="captured"))
            after = move_share(captured, ShareStatus.PAID) if state.share == ShareStatus.PAYING else captured
        else:
            after = put(state, index, ended)
            after = reopen(give_up(after, index)) if state.share == ShareStatus.PAYING else after
        yield Move(("taken", str(index)), said, after)


def _void(state: State, index: int, payment: Payment) -> Moves:
    card = _name(state, index)
    if payment.void == "planned" and not payment.is_asked:
        gone = put(state, index, payment._replace(void="sent", bank="released"))
        yield Move(("void", str(index)), f"The void of {card} arrives.", gone)
    elif payment.void == "sent":
        ended = put(state, index, payment._replace(void="ended", status="voided"))
        said = f"The answer to the void of {card} is recorded."
        if state.share == ShareStatus.PLEDGED and not live_of(ended):
            ended = move_share(ended, ShareStatus.OPEN)
        yield Move(("voided", str(index)), said, reopen(ended))


def _name(state: State, index: int) -> str:
    return ("the card", "the second card")[index]


def _is_held(payment: Payment) -> bool:
    return payment.status == "authorized" and not payment.is_abandoned


def _has_reason(state: State, payment: Payment) -> bool:
    """Return whether a card is not held, or is held for a reason."""
    is_pledge = state.share == ShareStatus.PLEDGED and _is_held(payment)
    is_moving = payment.is_asked or payment.capture in OPEN or payment.void in OPEN
    return payment.bank != "held" or is_pledge or is_moving


def _problem_at_rest(state: State, charged: int) -> str:
    """Return the invariant that the state breaks if no step is left, or ""."""
    if state.order in PLEDGEABLE or state.share in (ShareStatus.PLEDGED, ShareStatus.PAYING):
        return "No step is left, and the order or the share waits"
    if any(payment.bank == "held" for payment in state.payments):
        return "No step is left, and the mate's card is held"
    return "The share and the bank disagree" if bool(charged) != (state.share == ShareStatus.PAID) else ""


def _variant(without: Break, rule: str) -> Variant:
    return Variant(Pledge(without), Pledge(), without, rule)


PROTOCOL = Protocol(
    title="A pledge",
    summary="A mate's card is held for a share before the lead pays "
    "([decision 0060](decisions/0060-a-pledge-is-a-share-whose-card-is-held.md)). The mate, the lead, the merchant and "
    "time can end the pledge, also while the bank has not answered yet.",
    code=(
        "checkout/pledges.py",
        "checkout/share_outcomes.py",
        "checkout/mate_shares.py",
        "checkout/given_up_cards.py",
        "checkout/expiry.py",
        "checkout/states.py",
    ),
    drawing="""
  open ── a card is asked ──► paying ── held ──► pledged ── order captured ──► paying ──► paid
   ▲                            │                  │                             │
   ├───── declined, given up ───┘                  │                             │
   ├───── void ◄─────────────── withdrawn, changed ┤           capture refused ──┤
   │                                               │                             │
   └───────────────────────────────────────────────│───────── void ◄─────────────┘
                                                   │
  cancelled ◄── void ◄── kept by the lead, replaced, or the order has ended

  If the order or the share ends while a card is asked, the hold is voided once the bank answers.
""",
    invariants=(
        "A mate's card is held only for a pledge or a payment in progress, or while a void is on its way.",
        "A pledged share has a card that is held, and an order that waits.",
        "A mate is charged at most once, and only after the order was captured.",
        "At rest, no card is held, and a share is paid exactly if its mate was charged.",
        "The order and the share make only moves that the tables of states allow.",
    ),
    design=Pledge(),
    variants=(
        _variant(Break.SECOND_LOOK, "The answer is recorded after a second look at the order and the share."),
        _variant(Break.RELEASE, "The end of the order plans a void of each pledge's hold."),
        _variant(Break.KEPT_ROW, "A replaced share is cancelled, and its card is given up."),
        _variant(Break.WAIT, "A pledge is captured only after the order's own capture."),
        _variant(
            Break.ABANDONED,
            "A card that was given up is marked, and its hold is released if the bank reports it.",
        ),
        _variant(
            Break.CONFIRMED,
            "A void ends the authorization at the bank, so that the mate can no longer confirm it.",
        ),
    ),
)
