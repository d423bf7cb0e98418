"""A model of an operation's lease, and of processes that sleep or die between their steps."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tests.model.protocols.constants import read_constants
from tests.model.protocols.protocol import Protocol
from tests.model.variants import Variant

# Time passes in ticks. The length of a lease and that of a deadline are multiples of a tick.
TICK = math.gcd(read_constants().lease, read_constants().deadline)
LEASE, DEADLINE = read_constants().lease // TICK, read_constants().deadline // TICK
NAMES = ("A", "B")


class LeaseRule(StrEnum):
    """The rules that a variant of the model can leave out. Each value describes the model without the rule."""

    DEADLINE = "a process that has slept does not check its deadline before the call"
    HOLDER = "an outcome is recorded without a look at the lease and at the end of the operation"
    LENGTH = "the lease is shorter than the deadline of the call"
    ORDER = "the deadline is counted from the first step after the claim"


class Process(NamedTuple):
    """A process. `left` is the number of ticks until its deadline, and `heard` is the outcome to record.

    The values of `at`, the next step, are wake (set the deadline), send (record the sending), call and
    record.
    """

    at: str = ""
    left: int = 0
    heard: str = ""


class State(NamedTuple):
    """The operation's row and the processes.

    `lease` is the number of ticks until the lease ends. `last` is the number of ticks until `last_sent_at`.
    """

    row: str = ""  # "" (no row), planned, in_flight, unknown, succeeded
    holder: str = ""
    lease: int = 0
    last: int = 0  # ticks until last_sent_at
    A: Process = Process()
    B: Process = Process()
    claims: int = 3  # number of claims that are left
    deaths: int = 1  # number of processes that can still die
    fault: str = ""

    def put(self, name: str, process: Process) -> "State":
        """Return the state with a new state of a process."""
        return self._replace(A=process) if name == "A" else self._replace(B=process)


Steps = Iterator[tuple[str, State]]


@dataclass(frozen=True)
class Lease:
    """The model, with at most one rule left out."""

    without: LeaseRule | None = None

    def start(self) -> State:
        """Return the first state, without an operation."""
        return State()

    def problem(self, state: State, is_last: bool) -> str:
        """Return the promise that the state breaks, or ""."""
        is_stuck = is_last and state.row != "succeeded" and state.claims > 0
        return state.fault or ("No step is left, and the operation has not ended" * is_stuck)

    def steps(self, state: State) -> Steps:
        """Yield each step that is possible now."""
        if not state.row:
            yield from self._begin(state)
            return
        yield f"{TICK} seconds pass.", _tick(state)
        for name, process in zip(NAMES, (state.A, state.B), strict=True):
            if process.at:
                yield from self._go_on(state, name, process)
                if state.deaths:
                    yield f"{name} dies.", state.put(name, Process())._replace(deaths=state.deaths - 1)
            elif state.claims and state.lease == 0 and state.row != "succeeded":
                yield f"{name} claims the operation.", self._claim(state, name)

    def _begin(self, state: State) -> Steps:
        yield "The operation is planned.", state._replace(row="planned")
        begun = state._replace(row="in_flight", holder="A", lease=self._lease(), last=LEASE)
        yield (
            "A begins the operation, leases it, and records the sending.",
            begun.put("A", Process("call", DEADLINE)),
        )

    def _lease(self) -> int:
        return DEADLINE - 1 if self.without == LeaseRule.LENGTH else LEASE

    def _claim(self, state: State, name: str) -> State:
        """Lease the operation. The process has set its deadline before this."""
        row = "in_flight" if state.row == "planned" else state.row
        at = "wake" if self.without == LeaseRule.ORDER else "send"
        claimed = state._replace(row=row, holder=name, lease=self._lease(), claims=state.claims - 1)
        return claimed.put(name, Process(at, DEADLINE))

    def _go_on(self, state: State, name: str, process: Process) -> Steps:
        silent = state.put(name, process._replace(at="record", heard="unknown"))
        is_late = process.left == 0
        match process.at:
            case "wake":
                yield f"{name} sets its deadline.", state.put(name, Process("send", DEADLINE))
            case "send" if state.holder != name or state.lease == 0:
                yield f"{name} sends no call, because its lease has ended.", silent
            case "send" if is_late:
                yield f"{name} sends no call, because its deadline has passed.", silent
            case "send":
                sent = state.put(name, process._replace(at="call"))._replace(last=LEASE)
                yield f"{name} records the sending.", sent
            case "call" if is_late and self.without != LeaseRule.DEADLINE:
                yield f"{name} sends no call, because its deadline has passed.", silent
            case "call":
                yield from _call(state, name, process)
            case "record":
                yield (
                    f"{name} records that the outcome is {process.heard}.",
                    self._record(state, name, process),
                )

    def _record(self, state: State, name: str, process: Process) -> State:
        state = state.put(name, Process())
        if self.without == LeaseRule.HOLDER:
            fault = (
                "A recorded outcome was replaced"
                if state.row not in ("in_flight", "unknown", process.heard)
                else ""
            )
            return state._replace(row=process.heard, holder="", lease=0, fault=fault)
        if state.row == "succeeded" or (process.heard == "unknown" and state.holder != name):
            return state
        return state._replace(row=process.heard, holder="", lease=0)


def _call(state: State, name: str, process: Process) -> Steps:
    fault = ""
    if state.holder not in (name, ""):
        fault = "A process called the provider while another process had the lease"
    elif state.last == 0:
        fault = "A call was sent later than the row records"
    state = state._replace(fault=fault)
    yield (
        f"{name} calls. The answer arrives.",
        state.put(name, process._replace(at="record", heard="succeeded")),
    )
    yield (
        f"{name} calls. The answer is lost.",
        state.put(name, process._replace(at="record", heard="unknown")),
    )


def _tick(state: State) -> State:
    """Let a tick pass, so that leases and deadlines are one tick nearer."""
    one, two = (process._replace(left=max(process.left - 1, 0)) for process in (state.A, state.B))
    return state._replace(lease=max(state.lease - 1, 0), last=max(state.last - 1, 0), A=one, B=two)


def _vary(without: LeaseRule, rule: str) -> Variant:
    return Variant(Lease(without), Lease(), without.value, rule)


PROTOCOL = Protocol(
    title="A lease and a process that sleeps",
    summary="A process leases an operation before it calls the provider. If the process dies, another process claims "
    "the operation when the lease ends ([decision 0005](decisions/0005-commit-call-record.md)). A process can also "
    f"sleep, and wake up after its lease. In this model, a lease lasts {LEASE * TICK} seconds, and a call ends at most "
    f"{DEADLINE * TICK} seconds after the process has set its deadline, as in the code.",
    code=(
        "payments/operation_queue.py",
        "payments/operations.py",
        "payments/statements.py",
        "checkout/operation_recovery.py",
        "checkout/outcomes.py",
        "config/lib/deadline.py",
    ),
    drawing=f"""
  set the deadline: {DEADLINE * TICK} s
        │
  claim: a new lease token, due again in {LEASE * TICK} s        ◄── another process, when the lease has ended
        │
  record the sending ──── the lease has ended, or is another's ──► no call
        │
  call the provider ───── the deadline has passed ───────────────► no call
        │
  lock, read the row again
        ├── the operation has ended ────────────────► no change
        ├── silence, and the lease is another's ────► no change
        └── otherwise ──────────────────────────────► record the outcome, end the lease
""",
    invariants=(
        "No process calls the provider while another process has the lease.",
        "No call is sent later than `last_sent_at`. From this time, the service computes when a new key is safe.",
        "A recorded outcome is never replaced.",
        "If a process dies, another process finishes the operation.",
    ),
    design=Lease(),
    variants=(
        _vary(LeaseRule.DEADLINE, "A process checks its deadline immediately before the call."),
        _vary(
            LeaseRule.HOLDER,
            "An outcome is recorded under the lock. An operation that has ended stays unchanged, and only the process "
            "that has the lease records silence.",
        ),
        _vary(LeaseRule.LENGTH, "The deadline of a call is earlier than the end of its lease."),
        _vary(LeaseRule.ORDER, "A process sets its deadline before it claims the operation."),
    ),
)
