"""The state of the model: one order, as recorded in our database and in the provider's books.

Each row has two columns for its state: `known` is the state in our database, and `real` is the state at the
provider. Card 0 is the lead's card. Card 1 is the card of the mate with share 1, and so on.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

LEAD = 0
KNOWN, REAL = "known", "real"
MOVING = ("sent", "pending")
NOT_FAILED = ("sent", "pending", "settled")
OPEN = ("inquiry", "open")  # an inquiry has withdrawn no money yet


class Break(StrEnum):
    """A rule that a variant of the model leaves out. The value describes the model without the rule."""

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
    number of that refund. Otherwise they are 0.

    known: planned, sent (no response yet), pending, settled, failed, returned, or "" if it is not recorded.
    real: way (the call can still arrive), pending, settled, failed, returned, or "" if it was not sent.
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

    known and real: "", inquiry, open, won, lost, reinstated (won after an appeal).
    """

    card: int
    amount: int
    known: str
    real: str


class Share(NamedTuple):
    """A mate's share. known and real: paying (its capture can still arrive), paid, declined."""

    known: str
    real: str


class Outside(NamedTuple):
    """An amount that an operator has settled outside the service.

    It replaces the reimbursement of `share`, or a part of the merchant's refund with the number `part`.
    """

    card: int
    amount: int
    share: int
    part: int


class Chances(NamedTuple):
    """The number of times that each event can still happen. These limits make the number of states finite."""

    slow: int = 0  # a refund is accepted and stays pending
    fail: int = 0  # the provider refuses or fails a refund
    come_back: int = 0  # a settled refund is returned
    others: int = 0  # staff refund in the provider's dashboard
    dispute: int = 0
    appeal: int = 0  # a lost dispute is won after all
    merchant: int = 1  # the merchant refunds the order
    operator: int = 1  # an operator resends a refund, or reverses a settlement made outside the service
    stale: int = 0  # a list that was requested from the provider arrives late


class Reading(NamedTuple):
    """The provider's list of a card's refunds and disputes, which was requested but has not arrived yet.

    It shows the state at the time of the request.
    """

    card: int
    refunds: tuple[Refund, ...]
    disputes: tuple[Dispute, ...]


class State(NamedTuple):
    """The whole state of the order. `fault` describes a forbidden step that was taken."""

    status: str  # captured, refunding, refunded
    part: int  # the number of the merchant's last refund
    is_due: bool  # the reimbursement delay has passed
    is_late: bool  # the days of automatic retries have passed
    shares: tuple[Share, ...]
    left: Chances
    closed: tuple[int, ...]  # for each share: the amount that closings moved from the lead to the merchant
    refunds: tuple[Refund, ...] = ()  # planned refunds last
    disputes: tuple[Dispute, ...] = ()
    outside: tuple[Outside, ...] = ()
    reading: Reading | None = None
    fault: str = ""


@dataclass(frozen=True)
class Scope:
    """What one run of the check covers: the amounts, the events that can happen, and the rule left out."""

    left: Chances
    amount: int = 3
    shares: tuple[int, ...] = (1,)
    is_paying: bool = False  # the shares are being paid at the start
    disputed: tuple[int, ...] = (0,)  # possible amounts of a dispute, each minus the captured amount
    without: Break | None = None


class Card(NamedTuple):
    """The sums of a card, either as recorded in our database or as they are at the provider."""

    captured: int
    refunded: int
    moving: int  # all refunds that are sent or pending
    others: int  # refunds that the service did not make, pending or settled
    withdrawn: int  # withdrawn by open and lost disputes
    lost: int  # withdrawn by lost disputes
    outside: int

    @property
    def borne(self) -> int:
        """Return the net amount that was taken from the card."""
        return self.captured - self.refunded - self.withdrawn - self.outside


def sum_cards(scope: Scope, state: State, view: str) -> list[Card]:
    """Return the sums of all cards, the lead's card first. `view` is KNOWN or REAL."""
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
    """Return the amount of a share that was or can still be reimbursed, by refunds or outside the service.

    Only refunds whose known state is in `states` are counted.
    """
    sent = sum(row.amount for row in state.refunds if row.share == share and row.known in states)
    return sent + sum(row.amount for row in state.outside if row.share == share)
