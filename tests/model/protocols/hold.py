"""A model of a capture that has got no response when the order's deadline passes.

The service then sends a void, which is called the fence. Its result proves whether the capture happened.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.model.protocols.protocol import Protocol
from tests.model.variants import Variant

NO_FENCE = "after the deadline, a capture that the provider does not find is believed not to exist"


class State(NamedTuple):
    """The hold at the provider, and the status of the order in our database."""

    hold: str = "held"  # held, captured, voided
    row: str = "unknown"  # unknown, captured, voided
    capture: str = "way"  # way, arrived, lost
    void: str = ""  # "", way, arrived
    is_late: bool = False
    losses: int = 2  # how many calls and responses can still be lost


Steps = Iterator[tuple[str, State]]


@dataclass(frozen=True)
class Capture:
    """The model, with or without the fence."""

    has_fence: bool = True

    def start(self) -> State:
        """Return the state immediately after the capture was sent."""
        return State()

    def problem(self, state: State, is_last: bool) -> str:
        """Return a sentence if the order and the hold disagree or the order never ends, else ""."""
        if state.row == "voided" and state.hold == "captured":
            return "The merchant reads voided, and the card was charged"
        if state.row == "captured" and state.hold != "captured":
            return "The merchant reads captured, and no money was taken"
        return "No step is left, and the order has not ended" if is_last and state.row == "unknown" else ""

    def steps(self, state: State) -> Steps:
        """Yield each step that is possible now."""
        if state.capture == "way":
            yield from _arrive(state)
        if not state.is_late:
            yield "The deadline passes.", state._replace(is_late=True)
        if state.row == "unknown":
            yield from self._decide(state)

    def _decide(self, state: State) -> Steps:
        if state.is_late and state.hold == "captured":
            yield "We look the capture up: the provider has it.", state._replace(row="captured")
        elif state.is_late and not self.has_fence:
            yield (
                "We look the capture up: the provider has none. We void the order.",
                state._replace(row="voided"),
            )
        elif state.is_late and not state.void:
            yield "We look the capture up: the provider has none. We send a void.", state._replace(void="way")
        elif not state.is_late and state.capture == "lost":
            yield "We send the capture again.", state._replace(capture="way")
        if state.void == "way":
            yield from _arrive_void(state)


def _arrive(state: State) -> Steps:
    hold = "captured" if state.hold == "held" else state.hold
    after = state._replace(hold=hold, capture="arrived")
    what = "The capture arrives: " + ("the card is charged" if hold == "captured" else "the hold is gone")
    if state.losses:
        lost = state.losses - 1
        yield f"{what}. The answer is lost.", after._replace(losses=lost)
        yield "The capture is lost on its way.", state._replace(capture="lost", losses=lost)
    if state.row == "unknown" and hold == "captured":
        after = after._replace(row="captured")
    yield f"{what}. The answer says so.", after


def _arrive_void(state: State) -> Steps:
    if state.losses:
        yield "The void is lost on its way.", state._replace(void="", losses=state.losses - 1)
    if state.hold == "captured":
        yield "The void arrives: already captured.", state._replace(row="captured", void="arrived")
    else:
        voided = state._replace(hold="voided", void="")
        if state.losses:
            lost = voided._replace(losses=state.losses - 1)
            yield "The void arrives: the hold is released. The answer is lost.", lost
        yield "The void arrives: the hold is released. The answer says so.", voided._replace(row="voided")


PROTOCOL = Protocol(
    title="A capture without an answer",
    summary="The provider does not answer a capture before the order's deadline. A void, which is called the fence, "
    "then proves whether the capture happened ([decision 0008](decisions/0008-a-fence-after-the-deadline.md)).",
    code=("checkout/operation_recovery.py", "checkout/outcomes.py"),
    drawing="""
  capture sent, no answer
        │
        ├── before the deadline ──► look it up ──► found: captured · not found: send it again, same key
        │
        └── after the deadline ───► look it up ──► found: captured
                                        │
                                        └─ not found ──► void ──► released: voided
                                                           └────► "already captured": captured
""",
    invariants=(
        "An order reads voided only if no money was taken.",
        "An order reads captured only if the money was taken.",
        "The order ends.",
    ),
    design=Capture(),
    variants=(
        Variant(
            Capture(has_fence=False),
            Capture(),
            NO_FENCE,
            "A void goes first. Its success proves that no capture happened, and its refusal proves that one did.",
        ),
    ),
)
