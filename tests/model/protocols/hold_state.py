"""The state in the model of a hold: our rows, the provider, and two processes that can sleep."""

from enum import StrEnum
from typing import NamedTuple

from checkout import states
from checkout.states import Status
from tests.model.protocols.protocol import follow_table

OPEN = ("in_flight", "unknown")
UNFINISHED = ("planned", *OPEN)


class HoldRule(StrEnum):
    """The rules that a variant of the model can leave out. Each value describes the model without the rule."""

    FENCE = "after the deadline, a capture that the provider does not find is believed not to exist"
    SILENCE = "a 5xx answer is believed to mean that the call was not carried out"
    SECOND_LOOK = "an outcome is recorded without a second look at the row under the lock"
    SAME_KEY = "an operation is sent again under a new key"
    CLOCK = "the clock is read before the order is locked"
    OTHER_CALLS = "a refusal of one call is taken as a refusal of all calls of the capture"


class Row(NamedTuple):
    """The row of an operation. `lease` is the process that has leased it, or "".

    `sendings` is the number of calls that were sent under the key: 0, 1, or 2 for more. `is_renewed` is true
    if calls were sent under an earlier key.
    """

    state: str = ""  # "" (no row), planned, in_flight, unknown, succeeded, failed
    lease: str = ""
    key: int = 1
    sendings: int = 0
    is_renewed: bool = False


class Process(NamedTuple):
    """A process, which can sleep before each of its steps.

    `at` is its next step:
    - lock: get the order's lock
    - call: send the call
    - look: look up the operation
    - look_again: look it up after a refusal
    - look_key: look it up after many calls
    - renew: lock the order and take a new key
    - fence: lock the order and begin the fence
    - record: lock the order and record `heard`

    `key` is the operation's key.
    """

    at: str = ""
    kind: str = ""
    heard: str = ""
    key: int = 1


IDLE = Process()


class State(NamedTuple):
    """The order, its operations, the hold at the provider, the calls that are under way, and the processes."""

    order: Status = Status.CREATED
    authorize: Row = Row()
    capture: Row = Row()
    void: Row = Row()
    hold: str = ""  # "", held, captured, voided
    keys: tuple[int, ...] = ()  # keys under which the provider has placed a hold
    calls: tuple[tuple[str, int], ...] = ()  # kind and key of each call that will arrive late
    request: Process = IDLE
    pump: Process = IDLE
    is_late: bool = False
    errors: int = 2  # number of answers that can still be a 5xx or be lost
    delays: int = 2  # number of calls that can still arrive late
    refusals: int = 1  # number of calls that the provider can still refuse without storing the refusal
    fault: str = ""

    def row(self, kind: str) -> Row:
        """Return the row of the operation of this kind."""
        row: Row = getattr(self, kind)
        return row

    def process(self, name: str) -> Process:
        """Return the process with this name."""
        process: Process = getattr(self, name)
        return process

    def put(self, **values: object) -> "State":
        """Return the state with new values for these fields."""
        return self._replace(**values)  # type: ignore[arg-type]  # the callers give the fields' own types

    @property
    def has_open_operation(self) -> bool:
        """Return whether an operation is open, which blocks a capture, a cancellation and the lapse."""
        return any(row.state in OPEN for row in (self.authorize, self.capture, self.void))

    @property
    def is_fence(self) -> bool:
        """Return whether a void is a fence. It is a fence if the order still waits for its capture."""
        return self.order == Status.AUTHORIZED

    @property
    def wants_capture(self) -> bool:
        """Return whether a capture may still be sent: the order is held, and its deadline has not passed."""
        return self.order == Status.AUTHORIZED and not self.is_late


def move(state: State, to: Status) -> State:
    """Move the order, if the code's table of states allows the move."""
    moved: State = follow_table(state, "order", to, states.check_move)
    return moved
