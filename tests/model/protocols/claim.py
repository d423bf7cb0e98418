"""A model of the claim of deliveries, with two workers, two deliveries, and an endpoint that allows one request.

Time passes in ticks of 15 s. A worker that is awake ends its attempt within ATTEMPT ticks. The worker might
record the outcome later, because PostgreSQL can be down. The number of an attempt is also the token of its
lease.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tests.model.protocols.protocol import Protocol
from tests.model.protocols.replaying.moves import Move, steps_of
from tests.model.variants import Variant
from webhooks import retries
from webhooks.retries import EventSchedule

TICK = 15  # seconds
LEASE, ATTEMPT = 2, 1  # ticks
CAP = 1  # requests in flight at the endpoint
SCHEDULE = EventSchedule(starts=(5,), pause=3)  # only two attempts; otherwise as for checkout.authorized
ANSWERS = (200, 500, 400)
NAMES = ("Worker A", "Worker B")
ROWS = ("delivery 1", "delivery 2")


class Break(StrEnum):
    """The rules that a variant of the model can leave out. Each value describes the model without the rule."""

    TOKEN = "an outcome is recorded without a look at the lease token"
    LOCK = "a worker claims without a lock on the endpoint"
    SECOND_STATEMENT = "the statement that locks the endpoint also counts the requests in flight"
    LONG_LEASE = "the lease is shorter than the attempt"
    SUPERSEDED = "a failed attempt is repeated although its event was superseded"
    SWEEP = "a lease that has run out is not closed"


class Row(NamedTuple):
    """A delivery. If it is leased, `left` is the number of ticks until the lease ends.

    The values of `status` are pending, delivered, parked and superseded.
    """

    status: str = "pending"
    attempts: int = 0
    left: int | None = None
    is_marked: bool = False  # its event was superseded during an attempt


class Worker(NamedTuple):
    """A worker and its attempt. The values of `phase` are "", counted, locked, sending and answered."""

    phase: str = ""
    seen: int = 0  # number of requests in flight, as counted by an earlier statement
    row: int = 0
    number: int = 0  # the attempt's number
    age: int = 0
    answer: int = 0
    is_asleep: bool = False
    has_overslept: bool = False  # its lease ran out while it slept


class State(NamedTuple):
    """The state of the model.

    `event` is the event of delivery 1: current, superseded, or late (its hold is over).
    """

    rows: tuple[Row, ...] = (Row(), Row())
    workers: tuple[Worker, ...] = (Worker(), Worker())
    event: str = "current"
    lost: tuple[int, int] | None = None  # delivery and attempt whose lease has ended, as the sweep has found
    sleeps: int = 1
    deaths: int = 1
    fault: str = ""


Moves = Iterator[Move[State]]


@dataclass(frozen=True)
class Claim:
    """The model, with at most one rule left out."""

    without: Break | None = None

    def start(self) -> State:
        """Return the first state: two deliveries are due, and no worker has claimed one."""
        return State()

    def problem(self, state: State, is_last: bool) -> str:
        """Return the invariant that the state breaks, or ""."""
        if state.fault:
            return state.fault
        if sum(row.left is not None for row in state.rows) > CAP:
            return f"More than {CAP} request is in flight at the endpoint"
        for index, name in enumerate(ROWS):
            sending = [each for each in state.workers if each.phase == "sending" and each.row == index]
            if len(sending) > 1 and not any(each.has_overslept for each in sending):
                return f"Two attempts of {name} are in flight, and no worker has slept"
            if is_last and state.rows[index].status == "pending":
                return f"At the end, {name} is neither delivered nor parked"
        return ""

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield each step that is possible now."""
        return steps_of(self.moves(state))

    def moves(self, state: State) -> Moves:
        """Yield each step that is possible now, with its name."""
        for index, worker in enumerate(state.workers):
            if worker.is_asleep:
                awake = worker._replace(is_asleep=False)
                yield Move(("wake", str(index)), f"{NAMES[index]} wakes up.", _put(state, index, awake))
                continue
            yield from self._claim(state, index, worker)
            yield from self._attempt(state, index, worker)
            if worker.phase:
                yield from _trouble(state, index, worker)
        yield from self._sweep(state)
        yield from _end_event(state)
        yield from self._tick(state)

    def _claim(self, state: State, index: int, worker: Worker) -> Moves:
        """Carry out the two statements of a claim: lock the endpoint; then count and lease under the lock."""
        name, busy = NAMES[index], sum(row.left is not None for row in state.rows)
        is_free = all(each.phase != "locked" for each in state.workers)
        is_stale = self.without in (Break.LOCK, Break.SECOND_STATEMENT)
        if worker.phase == "" and is_stale and busy < CAP and self._due(state):
            counted = worker._replace(phase="counted", seen=busy)
            said = f"{name} counts the requests in flight: {busy}."
            yield Move(("count", str(index)), said, _put(state, index, counted))
        may_lock = self.without != Break.LOCK and is_free and (is_stale or busy < CAP)
        if worker.phase == ("counted" if is_stale else "") and may_lock and self._due(state):
            locked = worker._replace(phase="locked")
            yield Move(("lock", str(index)), f"{name} locks the endpoint.", _put(state, index, locked))
        if worker.phase == ("counted" if self.without == Break.LOCK else "locked"):
            yield from self._lease(state, index, worker.seen if is_stale else busy)

    def _due(self, state: State) -> list[int]:
        """Return the deliveries that can be claimed."""
        is_over = state.event == "late" or (state.event != "current" and self.without != Break.SUPERSEDED)
        free = [index for index, row in enumerate(state.rows) if row.status == "pending" and row.left is None]
        return [index for index in free if not (is_over and index == 0)]

    def _lease(self, state: State, index: int, busy: int) -> Moves:
        due = self._due(state) if busy < CAP else []
        for row in due:
            number = state.rows[row].attempts + 1
            leased = state.rows[row]._replace(attempts=number, left=self._times[0])
            after = _put(state, index, Worker("sending", row=row, number=number))
            is_late_start = row == 0 and state.event != "current"
            fault = "An attempt starts although the event is over" if is_late_start else ""
            said = f"{NAMES[index]} claims {ROWS[row]}: attempt {number}."
            yield Move(("lease", str(index), str(row)), said, _set(after, row, leased)._replace(fault=fault))
        if not due:
            said = f"{NAMES[index]} finds no delivery that it may send."
            yield Move(("leave", str(index)), said, _put(state, index, Worker()))

    @property
    def _times(self) -> tuple[int, int]:
        """Return the length of a lease and of an attempt, in ticks."""
        return (ATTEMPT, LEASE) if self.without == Break.LONG_LEASE else (LEASE, ATTEMPT)

    def _attempt(self, state: State, index: int, worker: Worker) -> Moves:
        name, row = NAMES[index], ROWS[worker.row]
        if worker.phase == "sending":
            for answer in ANSWERS:
                answered = Worker("answered", row=worker.row, number=worker.number, answer=answer)
                said = f"{name} sends {row}. The endpoint answers {answer}."
                yield Move(("answer", str(index)), said, _put(state, index, answered))
        elif worker.phase == "answered":
            after = self._record(state, worker.row, worker.number, worker.answer)
            said = f"{name} records the outcome of attempt {worker.number} of {row}."
            act = ("record", str(index), str(worker.row), str(worker.number), str(worker.answer))
            yield Move(act, said, _put(after, index, Worker()))

    def _record(self, state: State, index: int, number: int, answer: int | None) -> State:
        """Record the outcome of an attempt if the attempt still has the delivery's lease."""
        row = state.rows[index]
        is_ours = row.left is not None and row.attempts == number
        if not is_ours and self.without != Break.TOKEN:
            return state
        fault = (
            "" if row.attempts == number else f"The outcome of attempt {number} is recorded over a newer one"
        )
        ended = row._replace(status=self._status_after(state, index, row, answer), left=None, is_marked=False)
        return _set(state, index, ended)._replace(fault=fault)

    def _status_after(self, state: State, index: int, row: Row, answer: int | None) -> str:
        if retries.is_delivered(answer):
            return "delivered"
        if row.is_marked and self.without != Break.SUPERSEDED:
            return "superseded"
        is_late = index == 0 and state.event == "late"
        is_last = row.attempts >= SCHEDULE.attempts or not SCHEDULE.retries(answer)
        return "parked" if is_late or is_last else "pending"

    def _sweep(self, state: State) -> Moves:
        """Find a lease that has ended. In another statement, close its attempt."""
        if state.lost is not None:
            row, number = state.lost
            after = self._record(state, row, number, None)._replace(lost=None)
            said = f"The sweep closes attempt {number} of {ROWS[row]}, if no one has recorded it."
            yield Move(("close", str(row), str(number)), said, after)
            return
        for index, row_ in enumerate(state.rows):
            if row_.left == 0 and self.without != Break.SWEEP:
                said = f"The sweep finds that the lease of {ROWS[index]} has run out."
                yield Move(("find",), said, state._replace(lost=(index, row_.attempts)))
        if state.event == "late" and state.rows[0].status == "pending" and state.rows[0].left is None:
            parked = state.rows[0]._replace(status="parked")
            yield Move(("obsolete",), "The sweep parks delivery 1: its hold is over.", _set(state, 0, parked))

    def _tick(self, state: State) -> Moves:
        """Let a tick pass, but not if a worker that is awake has to end its claim or its attempt first."""
        longest = self._times[1]
        awake = [each for each in state.workers if not each.is_asleep]
        if any(each.phase in ("counted", "locked") for each in awake):
            return
        if any(each.phase == "sending" and each.age >= longest for each in awake):
            return
        if not any(row.left for row in state.rows):
            return
        rows = tuple(row._replace(left=row.left - 1) if row.left else row for row in state.rows)
        workers = tuple(_older(each, rows[each.row]) for each in state.workers)
        yield Move(("tick",), f"{TICK} s pass.", state._replace(rows=rows, workers=workers))


def _older(worker: Worker, row: Row) -> Worker:
    """Return the worker one tick later. If its lease has ended while it slept, it has overslept."""
    if worker.phase != "sending":
        return worker
    is_over = row.attempts != worker.number or not row.left
    age = min(worker.age + 1, LEASE)
    return worker._replace(age=age, has_overslept=worker.has_overslept or (is_over and worker.is_asleep))


def _trouble(state: State, index: int, worker: Worker) -> Moves:
    """Let a worker die or fall asleep."""
    if state.deaths:
        died = _put(state, index, Worker())._replace(deaths=state.deaths - 1)
        yield Move(("die", str(index)), f"{NAMES[index]} dies. Another takes its place.", died)
    if state.sleeps and worker.phase in ("locked", "sending"):
        asleep = _put(state, index, worker._replace(is_asleep=True))._replace(sleeps=state.sleeps - 1)
        yield Move(("sleep", str(index)), f"{NAMES[index]} falls asleep.", asleep)


def _end_event(state: State) -> Moves:
    """Let the hold of delivery 1 end, or let the merchant capture the order, which supersedes the event."""
    row = state.rows[0]
    if state.event != "current" or row.status != "pending":
        return
    yield Move(("late",), "The hold of delivery 1 is over.", state._replace(event="late"))
    ended = row._replace(status="superseded") if row.left is None else row._replace(is_marked=True)
    said = "The merchant captures the order of delivery 1, and its event is superseded."
    yield Move(("supersede",), said, _set(state._replace(event="superseded"), 0, ended))


def _put(state: State, index: int, worker: Worker) -> State:
    workers = (*state.workers[:index], worker, *state.workers[index + 1 :])
    return state._replace(workers=workers)


def _set(state: State, index: int, row: Row) -> State:
    return state._replace(rows=(*state.rows[:index], row, *state.rows[index + 1 :]))


def _variant(without: Break, rule: str) -> Variant:
    return Variant(Claim(without), Claim(), without, rule)


PROTOCOL = Protocol(
    title="The claim of a delivery",
    summary="Several workers send the deliveries of one queue "
    "([decision 0038](decisions/0038-a-claim-is-two-statements.md)). A worker can die, or sleep for longer than its "
    "lease, and an event can become outdated during an attempt.",
    code=(
        "webhooks/delivery.py",
        "webhooks/statements.py",
        "webhooks/retries.py",
        "webhooks/delivery_sender.py",
    ),
    drawing="""
  pending ── lock the endpoint ── count, lease for 30 s, new token ──► in flight, at most 15 s
     ▲                                                                 │
     │                                                 an answer, or the lease has run out
     │                                                                 │
     │                                       does the delivery still have this token?
     │                                       no: ignored │         yes │
     │                                                                 ├── 2xx ─────────► delivered
     │                                                                 ├── superseded ──► superseded
     └──── another attempt is left, and the answer is not the last ────┤
                                                                       └── else ────────► parked
""",
    invariants=(
        "At the end, each delivery is delivered or parked, or its event was superseded.",
        "An outcome of an attempt is never recorded over a newer attempt.",
        "At most one attempt of a delivery is in flight, unless a worker has slept for longer than its lease.",
        "No more requests are leased at an endpoint than its cap allows.",
        "No attempt starts once the event is superseded or its hold is over.",
    ),
    design=Claim(),
    variants=(
        _variant(
            Break.TOKEN, "An outcome counts only if the delivery still has the lease token of its attempt."
        ),
        _variant(Break.LOCK, "A worker claims at an endpoint only under the endpoint's advisory lock."),
        _variant(
            Break.SECOND_STATEMENT,
            "A second statement counts, and sees every lease that was committed before the lock.",
        ),
        _variant(
            Break.LONG_LEASE, "A lease takes 30 s, and an attempt takes at most 15 s, counted from the claim."
        ),
        _variant(Break.SUPERSEDED, "A claim and an outcome both check whether the event was superseded."),
        _variant(Break.SWEEP, "A lease that has run out is closed as a failed attempt."),
    ),
)
