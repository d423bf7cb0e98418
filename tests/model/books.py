"""The state of the model: one order, as recorded in our database and in the provider's books.

Each row has two fields for its state: `known` is the state in our database, and `real` is the state at the
provider. Card 0 is the lead's card, card 1 is the card of the mate with share 1, and so on.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

LEAD = 0
KNOWN, REAL = "known", "real"
MOVING = ("sent", "pending")
NOT_FAILED = ("sent", "pending", "settled")
OPEN = ("inquiry", "open")  # an inquiry has not withdrawn money yet


class Break(StrEnum):
    """The rules that a variant of the model can leave out. Each value describes the model without the rule."""

    OPEN_DISPUTE = "refunds are planned and sent while a dispute is open"
    STALE_LIST = "a list is compared with facts that were recorded after it was requested"
    NO_ROOM = "a share is reimbursed although the lead's card cannot take it"
    FINAL_CLOSING = "a closing is never reversed"
    FAILED_FIRST = "a refund whose parts all failed reads failed, although no card is owed anything"
    OUTSIDE_IGNORED = "a part that was settled outside does not count as settled"
    SENT_COUNTS = "a share counts as due once its reimbursement was sent, although that failed"
    DELAY_IN_TARGET = "a share counts only after the reimbursement delay"
    NO_VERB = "an operator has no verb for a card that has got too much"


class Refund(NamedTuple):
    """A refund to a card.

    For a reimbursement, `share` is the number of the share. For a part of a merchant's refund, `part` is the
    number of that refund. Otherwise, these numbers are 0.

    The values of `known` are planned, sent (no response yet), pending, settled, failed, returned, or "" (not
    recorded). The values of `real` are way (the call can still arrive), pending, settled, failed, returned,
    or "" (not sent).
    """

    card: int
    amount: int
    share: int
    part: int
    by_us: bool
    known: str
    real: str


class Dispute(NamedTuple):
    """A dispute about a card's payment.

    The values of `known` and `real` are "", inquiry, open, won, lost, and reinstated (won after an appeal).
    """

    card: int
    amount: int
    known: str
    real: str


class Share(NamedTuple):
    """A mate's share. The states are paying (its capture can still arrive), paid and declined."""

    known: str
    real: str


class Outside(NamedTuple):
    """An amount that an operator has settled outside the service.

    The amount replaces the reimbursement of share number `share`, or a part of the merchant's refund number `part`.
    """

    card: int
    amount: int
    share: int
    part: int


class Chances(NamedTuple):
    """How many times each event can still happen. These limits make the number of states finite."""

    slow: int = 0  # a refund is accepted and stays pending
    fail: int = 0  # the provider refuses or fails a refund
    come_back: int = 0  # a settled refund is returned
    others: int = 0  # staff refund a card in the provider's dashboard
    dispute: int = 0
    appeal: int = 0  # a lost dispute is won on appeal
    merchant: int = 1  # the merchant refunds the order
    operator: int = 1  # an operator resends a refund, or reverses a settlement outside the service
    stale: int = 0  # a list that was requested from the provider arrives late


class Reading(NamedTuple):
    """A list of a card's refunds and disputes that was requested from the provider but has not arrived yet.

    The list shows the state at the time of the request.
    """

    card: int
    refunds: tuple[Refund, ...]
    disputes: tuple[Dispute, ...]


class State(NamedTuple):
    """The whole state of the order. If a forbidden step was taken, `fault` describes it."""

    status: str  # captured, refunding, refunded
    part: int  # the number of the merchant's last refund
    is_due: bool  # the reimbursement delay has passed
    is_late: bool  # the days of automatic retries have passed
    shares: tuple[Share, ...]
    left: Chances
    closed: tuple[int, ...]  # for each share: the amount that closings moved from the lead to the merchant
    refunds: tuple[Refund, ...] = ()  # the planned refunds are last
    disputes: tuple[Dispute, ...] = ()
    outside: tuple[Outside, ...] = ()
    reading: Reading | None = None
    fault: str = ""


@dataclass(frozen=True)
class Scope:
    """The scope of one check: the amounts, the events that can happen, and the rule that is left out."""

    left: Chances
    amount: int = 3
    shares: tuple[int, ...] = (1,)
    is_paying: bool = False  # at the start, the shares are being paid
    disputed: tuple[int, ...] = (0,)  # differences between a dispute's amount and the captured amount
    without: Break | None = None


class Card(NamedTuple):
    """The sums for one card, either as our database or as the provider has recorded them."""

    captured: int
    refunded: int
    moving: int  # all refunds that are sent or pending
    others: int  # refunds from outside the service, pending or settled
    withdrawn: int  # amount that open and lost disputes have withdrawn
    lost: int  # amount that lost disputes have withdrawn
    outside: int

    @property
    def borne(self) -> int:
        """Return the net amount that is charged to the card."""
        return self.captured - self.refunded - self.withdrawn - self.outside


def sum_cards(scope: Scope, state: State, view: str) -> list[Card]:
    """Return the sums for each card. The lead's card is first. `view` is KNOWN or REAL."""
    column = -2 if view == KNOWN else -1
    paid = (share[column] == "paid" for share in state.shares)
    captured = [scope.amount, *(amount * is_paid for amount, is_paid in zip(scope.shares, paid, strict=True))]
    rows = [[amount, 0, 0, 0, 0, 0, 0] for amount in captured]
    for refund in state.refunds:
        row, found = rows[refund.card], refund[column]
        row[1] += refund.amount if found == "settled" else 0
        row[2] += refund.amount if found in MOVING else 0
        row[3] += refund.amount if found in NOT_FAILED and not refund.by_us else 0
    for dispute in state.disputes:
        row, found = rows[dispute.card], dispute[column]
        row[4] += dispute.amount if found in ("open", "lost") else 0
        row[5] += dispute.amount if found == "lost" else 0
    for settled in state.outside:
        rows[settled.card][6] += settled.amount
    return [Card(*row) for row in rows]


def sum_reimbursed(state: State, share: int, states: tuple[str, ...] = NOT_FAILED) -> int:
    """Return the amount of a share that has been or can still be reimbursed, by refunds or outside the service.

    Of the refunds, only those whose known state is in `states` count.
    """
    sent = sum(row.amount for row in state.refunds if row.share == share and row.known in states)
    return sent + sum(row.amount for row in state.outside if row.share == share)
