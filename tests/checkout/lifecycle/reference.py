"""Reference model of a checkout's states: for each state, the possible events and the next state.

It describes rules money.states and doubt.*. It does not use the product's code, tables or clock, so that it is
independent of the product. The state machine compares the product with this model.
"""

from dataclasses import dataclass

# (from, event): the next state
MOVES = {
    ("created", "authorize"): "authorized",
    ("created", "cancel"): "voided",
    ("created", "expire"): "expired",
    ("authorized", "capture"): "captured",
    ("authorized", "cancel"): "voided",
    ("authorized", "lapse"): "voided",
    ("captured", "refund"): "refunding",
    ("refunding", "settle"): "refunded",
    ("refunding", "fail"): "captured",
}
PAIRS = {(origin, to) for (origin, _), to in MOVES.items()}
REPEATED = {("captured", "capture"), ("voided", "cancel")}  # repeating these actions changes no state
BY_THEMSELVES = {(origin, to) for (origin, act), to in MOVES.items() if act not in ("cancel", "refund")}
HOLD, PATIENCE, CHALLENGE = 120.0, 60.0, 600.0  # seconds


@dataclass(frozen=True)
class Facts:
    """The facts about a checkout when an action begins. Ages are in seconds."""

    state: str
    age: float  # since the hold; if the checkout is not held, since its creation
    payable_for: float
    open_kind: str = ""  # the kind of the open card operation
    open_age: float = 0.0
    is_asked: bool = False  # the bank has asked the payer to confirm


def is_bound(facts: Facts) -> bool:
    """Return whether an open operation blocks all other operations.

    An authorization blocks for a minute, or for ten minutes if the payer has to confirm it.
    """
    if facts.open_kind == "authorize":
        return facts.open_age < (CHALLENGE if facts.is_asked else PATIENCE)
    return bool(facts.open_kind)


def noticed(facts: Facts) -> str:
    """Return the state that reads and actions see. A checkout whose deadline has passed has already ended."""
    deadlines = {"created": ("expire", facts.payable_for), "authorized": ("lapse", HOLD)}
    act, lasts = deadlines.get(facts.state, ("", 0.0))
    return MOVES[facts.state, act] if act and facts.age >= lasts and not is_bound(facts) else facts.state


def answer(facts: Facts, verb: str) -> tuple[str, bool]:
    """Return the state of the checkout when the action begins, and whether the action is accepted."""
    found = noticed(facts)
    if verb == "read":
        return found, True
    if verb != "authorize" and facts.open_kind and (facts.state, verb) not in REPEATED:
        return found, False
    is_free = verb != "authorize" or facts.is_asked or not is_bound(facts)
    return found, is_free and ((found, verb) in MOVES or (found, verb) in REPEATED)
