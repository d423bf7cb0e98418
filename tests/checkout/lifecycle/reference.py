"""The states on one page: what may happen to a checkout, and when (rules money.states, doubt.*).

It knows nothing of the product, its tables or its clock; the machine asks it what should have happened.
"""

from dataclasses import dataclass

# (from, what happens): what follows.
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
REPEATED = {("captured", "capture"), ("voided", "cancel")}  # answered as the first time; nothing moves
BY_THEMSELVES = {(origin, to) for (origin, act), to in MOVES.items() if act not in ("cancel", "refund")}
HOLD, PATIENCE, CHALLENGE = 120.0, 60.0, 600.0  # seconds


@dataclass(frozen=True)
class Seen:
    """A checkout as a verb finds it; ages in seconds."""

    state: str
    age: float  # since it was created, once it is held since then
    payable_for: float
    open_kind: str = ""  # the kind of the card operation that is open
    open_age: float = 0.0
    is_asked: bool = False  # its payer is being asked


def is_bound(seen: Seen) -> bool:
    """Whether an open operation holds all up: a silent authorization for a minute, a challenge for ten."""
    if seen.open_kind == "authorize":
        return seen.open_age < (CHALLENGE if seen.is_asked else PATIENCE)
    return bool(seen.open_kind)


def noticed(seen: Seen) -> str:
    """Return the state of which reads and verbs tell: a passed deadline comes first."""
    deadlines = {"created": ("expire", seen.payable_for), "authorized": ("lapse", HOLD)}
    act, lasts = deadlines.get(seen.state, ("", 0.0))
    return MOVES[seen.state, act] if act and seen.age >= lasts and not is_bound(seen) else seen.state


def answer(seen: Seen, verb: str) -> tuple[str, bool]:
    """Return the state in which the verb finds the checkout, and whether it is let in."""
    found = noticed(seen)
    if verb == "read":
        return found, True
    if verb != "authorize" and seen.open_kind and (seen.state, verb) not in REPEATED:
        return found, False
    is_free = verb != "authorize" or seen.is_asked or not is_bound(seen)
    return found, is_free and ((found, verb) in MOVES or (found, verb) in REPEATED)
