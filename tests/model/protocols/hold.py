"""A model of a hold: from the payer's card to the capture, the cancellation, or the end of the two minutes.

Two processes work on the order: the request of a payer or merchant, and a pump that finishes open operations.
Each process can sleep before any of its steps. Calls can arrive late, and answers can be lost.

The model does not include a second card of the payer.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from checkout.states import Status
from tests.model.protocols import hold_recording
from tests.model.protocols.hold_state import IDLE, UNFINISHED, HoldRule, Process, Row, State
from tests.model.protocols.protocol import Protocol
from tests.model.variants import Variant

Steps = Iterator[tuple[str, State]]
WHO = {"request": "The request", "pump": "The pump"}
WHAT = {"authorize": "authorization", "capture": "capture", "void": "void"}


@dataclass(frozen=True)
class Hold:
    """The model, with at most one rule left out."""

    without: HoldRule | None = None

    def start(self) -> State:
        """Return the first state: an order that has not been paid yet."""
        return State()

    def problem(self, state: State, is_last: bool) -> str:
        """Return the promise that the state breaks, or ""."""
        if state.order == Status.VOIDED and state.hold == "captured":
            return "The merchant reads voided, and the card was charged"
        if state.order == Status.CAPTURED and state.hold != "captured":
            return "The merchant reads captured, and no money was taken"
        if len(state.keys) > 1:
            return "Two holds were placed on the card"
        if state.authorize.state == "failed" and state.hold == "held":
            return "The payer reads that the card was declined, and the money is held"
        is_open = state.order in (Status.CREATED, Status.AUTHORIZED) or state.hold == "held"
        return state.fault or (
            "No step is left, and the order or its hold has not ended" * (is_last and is_open)
        )

    def steps(self, state: State) -> Steps:
        """Yield each step that is possible now."""
        yield from self._others(state)
        for name in ("request", "pump"):
            if state.process(name).at:
                yield from self._go_on(state, name)
        if not state.pump.at:
            yield from self._claim(state)
        for call in state.calls:
            rest = state._replace(calls=tuple(other for other in state.calls if other != call))
            after, _ = carry_out(rest, *call)
            yield f"The {WHAT[call[0]]} that is under way arrives.", after
            yield f"The {WHAT[call[0]]} that is under way is lost.", rest

    def _others(self, state: State) -> Steps:
        """Yield the steps of the payer and the merchant, and of time."""
        if state.order == Status.CREATED and not state.authorize.state:
            paying = Process("call", "authorize")
            began = Row("in_flight", "request", sendings=1)
            yield "The payer pays. The authorization begins.", state._replace(authorize=began, request=paying)
        if state.order == Status.AUTHORIZED and not state.capture.state and state.request == IDLE:
            waiting = Process("lock", "capture", "late" if state.is_late else "in time")
            yield (
                "The merchant captures. The request waits for the order's lock.",
                state._replace(request=waiting),
            )
        yield "The merchant cancels the order.", hold_recording.cancel(state)
        if state.order == Status.AUTHORIZED and not state.is_late:
            yield "The two minutes pass.", state._replace(is_late=True)
        yield "The order lapses.", hold_recording.lapse(state)

    def _claim(self, state: State) -> Steps:
        """Let the pump lease an operation. If a sleeping request had leased it, the request's lease has ended."""
        for kind, what in WHAT.items():
            row = state.row(kind)
            if row.state in UNFINISHED:
                is_sent = kind == "void" or (kind == "capture" and state.wants_capture)
                claimed = row._replace(
                    state="in_flight" if row.state == "planned" else row.state, lease="pump"
                )
                after = state.put(pump=Process("look", kind, key=row.key), **{kind: claimed})
                yield f"The pump leases the {what}.", self._prepare_call(after, kind) if is_sent else after
                if kind == "capture" and is_sent and row.sendings > 1 and not row.is_renewed:
                    stuck = after._replace(pump=after.pump._replace(at="look_key"))
                    yield "The pump leases the capture, which was sent four times.", stuck

    def _go_on(self, state: State, name: str) -> Steps:
        process = state.process(name)
        match process.at:
            case "lock":
                yield "The request gets the lock.", hold_recording.begin_capture(state, self.without)
            case "call":
                yield from self._call(state, name, process.kind)
            case "look" | "look_again" | "look_key":
                yield from self._look(state, name, process)
            case "renew":
                said = "The pump locks the order. It gives the capture a new key, unless it has ended."
                yield said, hold_recording.renew(state)
            case "fence":
                said = "The pump locks the order. It records that the capture never arrived, unless it has ended."
                yield said, hold_recording.begin_fence(state, self.without)
            case "record":
                said = (
                    f"{WHO[name]} records the {WHAT[process.kind]} as {process.heard}, unless it has ended."
                )
                yield said, hold_recording.record(state, name, self.without)

    def _call(self, state: State, name: str, kind: str) -> Steps:
        """Send a call. A request whose lease has ended sends no call, because its deadline has passed too."""
        row, who = state.row(kind), WHO[name]
        if row.lease != name:
            yield f"{who} wakes up too late to call.", _hear(state, name, "record", "unknown")
            return
        said = f"{who} sends the {WHAT[kind]}" + (f" under key {row.key}" if row.key > 1 else "")
        done, result = carry_out(state, kind, row.key)
        yield f"{said}. The answer is: {result}.", _hear(done, name, "record", result)
        silence = "look" if (name, kind) == ("request", "capture") else "record"
        if state.errors:
            at, heard = ("record", "failed") if self.without == HoldRule.SILENCE else (silence, "unknown")
            failed = _hear(done._replace(errors=state.errors - 1), name, at, heard)
            yield f"{said}. It is carried out, and the answer is a 5xx.", failed
            undone = _hear(state._replace(errors=state.errors - 1), name, at, heard)
            yield f"{said}. It is not carried out, and the answer is a 5xx.", undone
        if state.delays and kind != "void":
            late = state._replace(delays=state.delays - 1, calls=(*state.calls, (kind, row.key)))
            yield (
                f"{said}. The call is still under way when the wait ends.",
                _hear(late, name, silence, "unknown"),
            )
        if state.refusals and kind == "capture":
            refused = state._replace(refusals=state.refusals - 1)
            at = "record" if name == "request" else "look_again"
            yield (
                f"{said}. The provider refuses the call, and stores no answer.",
                _hear(refused, name, at, "failed"),
            )

    def _prepare_call(self, state: State, kind: str) -> State:
        """Record that the pump will send a call, unless its lease has ended.

        A request does not need this step, because it records its call when it begins the operation.
        """
        row = state.row(kind)
        if row.lease != "pump":
            return _hear(state, "pump", "record", "unknown")
        is_renewed = self.without == HoldRule.SAME_KEY and row.sendings
        row = row._replace(sendings=min(row.sendings + 1, 2), key=row.key + 1 if is_renewed else row.key)
        return _hear(state.put(**{kind: row}), "pump", "call", "")

    def _look(self, state: State, name: str, process: Process) -> Steps:
        who, kind = WHO[name], process.kind
        if is_done(state, kind):
            yield (
                f"{who} looks the {WHAT[kind]} up: it was carried out.",
                _hear(state, name, "record", "succeeded"),
            )
            return
        said = f"{who} looks the {WHAT[kind]} up: the provider has none."
        if process.at == "look_again" or name == "request":
            yield said, _hear(state, name, "record", process.heard)
        elif kind == "authorize":
            yield said, self._prepare_call(state, kind)
        else:
            yield said, _hear(state, name, "renew" if process.at == "look_key" else "fence", "")


def _hear(state: State, name: str, at: str, heard: str) -> State:
    return state.put(**{name: state.process(name)._replace(at=at, heard=heard)})


def is_done(state: State, kind: str) -> bool:
    """Return whether the provider finds an operation of this kind that it has carried out."""
    return bool(state.keys) if kind == "authorize" else state.hold == "captured"


def carry_out(state: State, kind: str, key: int) -> tuple[State, str]:
    """Let the provider carry out a call. Return the state after it, and the answer.

    A second call under the same key has no effect. Under any key, a hold can be captured or released only
    once.
    """
    if kind == "authorize":
        keys = state.keys if key in state.keys else (*state.keys, key)
        return (state if key in state.keys else state._replace(hold="held", keys=keys)), "succeeded"
    if state.hold == "held":
        return state._replace(hold="captured" if kind == "capture" else "voided"), "succeeded"
    if kind == "capture":
        return state, "succeeded" if state.hold == "captured" else "failed"
    return state, "succeeded" if state.hold == "voided" else "already captured"


def _vary(without: HoldRule, rule: str) -> Variant:
    return Variant(Hold(without), Hold(), without.value, rule)


PROTOCOL = Protocol(
    title="A hold and its capture",
    summary="The card of a payer is held, and the merchant captures the money within two minutes, or cancels. The "
    "moves of the order come from `checkout/states.py`. If the provider does not answer a capture before the deadline, "
    "a void, which is called the fence, proves whether the capture happened "
    "([decision 0008](decisions/0008-a-fence-after-the-deadline.md)). A request and a pump work on the order. Each can "
    "sleep before each of its steps.",
    code=(
        "checkout/states.py",
        "checkout/authorizations.py",
        "checkout/captures.py",
        "checkout/cancellations.py",
        "checkout/expiry.py",
        "checkout/operation_recovery.py",
        "checkout/outcomes.py",
    ),
    drawing="""
  created ────► authorize ──► no answer ──► look it up ──► found: authorized
                    │                           └────────► not found: send it again, same key
                    │
  authorized ──┬── the merchant cancels ───┬──► voided, and a void of the hold is planned
               │   the two minutes pass ───┘
               │
            capture ──► no answer
                           ├── before the deadline ──► send it again, same key
                           │                           after four calls: look it up, then a new key
                           │
                           └── after the deadline ──► look it up ──► found: captured
                                                          └────────► not found: second look, void
                                                                           │
                                         captured ◄── captured earlier ────┴── released ──► voided
""",
    invariants=(
        "An order reads voided only if no money was taken.",
        "An order reads captured only if the money was taken.",
        "The card has at most one hold, and a card that reads declined has none.",
        "A capture begins only before the deadline.",
        "The outcome of an operation is recorded once.",
        "The order ends, and its hold is captured or released.",
    ),
    design=Hold(),
    variants=(
        _vary(
            HoldRule.FENCE,
            "A void goes first. Its success proves that no capture happened, and its refusal proves that one did.",
        ),
        _vary(
            HoldRule.SILENCE, "A 5xx answer is silence. The operation stays in doubt until it is looked up."
        ),
        _vary(
            HoldRule.SECOND_LOOK,
            "A process locks the order and reads the operation again. It records no outcome if the operation has "
            "ended, and no silence if another process has the lease.",
        ),
        _vary(HoldRule.SAME_KEY, "An operation is sent again under its own id, which is its key."),
        _vary(HoldRule.CLOCK, "The clock is read while the process holds the order's lock."),
        _vary(
            HoldRule.OTHER_CALLS,
            "A refusal that the provider does not store answers one call. If a capture was sent more than once, the "
            "refusal counts as silence.",
        ),
    ),
)
