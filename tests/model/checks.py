"""The scopes in which the design is checked, and the variants of the design.

Each variant leaves out one rule. In the variant's scope, this breaks an invariant.
"""

from dataclasses import dataclass, replace

from tests.model import invariants, world
from tests.model.books import Break, Chances, Scope, State
from tests.model.keys import KeyRule, Keys
from tests.model.provider import Steps
from tests.model.variants import Variant


@dataclass(frozen=True)
class Money:
    """The model of the money after the capture, with a scope."""

    scope: Scope

    def start(self) -> State:
        """Return the first state: a captured order."""
        return world.start(self.scope)

    def steps(self, state: State) -> Steps:
        """Yield each possible step."""
        return world.list_steps(self.scope, state)

    def problem(self, state: State, is_last: bool) -> str:
        """Return the invariant that the state breaks, or ""."""
        return invariants.find_problem(self.scope, state, is_last)


ALONE = Scope(Chances(), shares=())
WITH_MATE = Scope(Chances())
# Each of these scopes allows only a few events, so that all of them together are checked in seconds.
SMALL = {
    "one card: dashboard refund, returned refund, dispute": replace(
        ALONE, left=Chances(come_back=1, others=1, dispute=1, appeal=1)
    ),
    "a mate: dashboard refund": Scope(Chances(others=1)),
    "a mate: returned refund": Scope(Chances(come_back=1)),
    "a mate: dashboard refund, returned refund, failed refund": Scope(
        Chances(others=1, come_back=1, fail=1, merchant=0, operator=0)
    ),
    "a mate: failed refund, two refunds by the merchant": Scope(Chances(fail=1, merchant=2)),
    "a mate: dispute": Scope(Chances(dispute=1, appeal=1)),
    "a mate: list that arrives late": Scope(Chances(stale=1)),
    "a mate who pays all: dispute of a part": Scope(
        Chances(dispute=1, appeal=1), shares=(3,), disputed=(-1,)
    ),
    "a mate who is paying: dashboard refund": Scope(Chances(others=1), is_paying=True),
    "a mate who is paying: dispute": Scope(Chances(dispute=1, appeal=1), is_paying=True),
}
# Each of these scopes combines several events or has two mates. Checking all of them takes minutes.
LARGE = {
    "one card: an event of every kind": replace(
        ALONE, left=Chances(slow=1, fail=1, come_back=1, others=1, dispute=1, appeal=1)
    ),
    "a mate: dashboard refund and dispute": Scope(Chances(others=1, dispute=1, appeal=1)),
    "a mate: dashboard refund and returned refund": Scope(Chances(others=1, come_back=1)),
    "a mate: dashboard refund and failed refund": Scope(Chances(others=1, fail=1)),
    "a mate: slow dashboard refund": Scope(Chances(others=1, slow=1)),
    "a mate: dashboard refund and late list": Scope(Chances(others=1, stale=1)),
    "a mate: dispute and returned refund": Scope(Chances(dispute=1, come_back=1)),
    "a mate: dispute and failed refund": Scope(Chances(dispute=1, fail=1)),
    "a mate: dispute and late list": Scope(Chances(dispute=1, stale=1)),
    "a mate: dispute of a part, or of more than the charge": Scope(
        Chances(dispute=1, appeal=1), disputed=(-1, 1)
    ),
    "a mate: two failed refunds, two refunds by the merchant": Scope(Chances(fail=2, merchant=2)),
    "a mate with the larger share: dashboard refund": Scope(Chances(others=1), shares=(2,)),
    "a mate with the larger share: dispute of a part": Scope(
        Chances(dispute=1, appeal=1), shares=(2,), disputed=(-1,)
    ),
    "a mate: failed and returned refund": Scope(Chances(fail=1, come_back=1)),
    "a mate: slow refund and late list": Scope(Chances(slow=1, stale=1)),
    "a mate who pays all: failed and returned refund": Scope(Chances(fail=1, come_back=1), shares=(3,)),
    "two mates: dashboard refund": Scope(Chances(others=1, operator=0), shares=(1, 1)),
    "two mates: dispute of a part": Scope(Chances(dispute=1, operator=0), shares=(1, 2), disputed=(-1,)),
}
EVERYTHING = Chances(
    slow=2, fail=2, come_back=2, others=2, dispute=2, appeal=1, merchant=2, operator=2, stale=2
)
QUIET = Chances(merchant=0, operator=0)


def _vary_keys(without: KeyRule, rule: str) -> Variant:
    return Variant(Keys(without), Keys(), without.value, rule)


def _vary_money(without: Break, rule: str, left: Chances, scope: Scope = WITH_MATE) -> Variant:
    design = replace(scope, left=left)
    return Variant(Money(replace(design, without=without)), Money(design), without.value, rule)


VARIANTS = (
    _vary_keys(KeyRule.SILENCE, "A 5xx answer is silence."),
    _vary_keys(
        KeyRule.WAIT,
        "A new key needs a look-up that does not find the call, and a last sending older than the key's life.",
    ),
    _vary_keys(
        KeyRule.LAST_AGE,
        "The last sending decides: a call that arrived late can act for the whole life of its key.",
    ),
    _vary_keys(
        KeyRule.FIRST_AGE,
        "A key is not sent again once its first sending is older than the key's life less an hour.",
    ),
    _vary_keys(
        KeyRule.OTHER_SENDINGS,
        "A refusal that the provider does not store under the key answers one sending. The others count as silence.",
    ),
    _vary_money(
        Break.OPEN_DISPUTE,
        "While a dispute is open, no refund of the order is planned or sent.",
        QUIET._replace(dispute=1),
    ),
    _vary_money(
        Break.STALE_LIST,
        "Only facts that were recorded before the list was requested are compared. Absence from a list is no proof.",
        QUIET._replace(stale=1),
    ),
    _vary_money(
        Break.NO_ROOM,
        "The provider would refuse it. A share that the lead's card cannot take goes back to its mate.",
        QUIET._replace(others=1),
    ),
    _vary_money(
        Break.DELAY_IN_TARGET,
        "A share counts from its payment on. The delay decides only when the reimbursement is sent.",
        QUIET._replace(others=1, dispute=1),
    ),
    _vary_money(
        Break.SENT_COUNTS,
        "A reimbursement that failed or was returned does not count.",
        QUIET._replace(fail=1, dispute=1),
    ),
    _vary_money(
        Break.FINAL_CLOSING,
        "A closing follows the facts in both directions.",
        QUIET._replace(dispute=1, appeal=1),
    ),
    _vary_money(
        Break.FAILED_FIRST,
        "A refund first asks whether any card is owed anything.",
        Chances(others=1),
        ALONE,
    ),
    _vary_money(
        Break.OUTSIDE_IGNORED,
        "A part that was settled outside counts as settled.",
        Chances(fail=2, operator=0),
    ),
    _vary_money(
        Break.NO_VERB,
        "An operator accepts the amount with a note, or reverses the settlement outside.",
        Chances(come_back=1, others=1),
        ALONE,
    ),
)
