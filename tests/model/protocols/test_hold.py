"""The model of a hold agrees with the code: the real functions take each run to the same states."""

import contextlib
from collections.abc import Callable, Hashable

import pytest

from checkout import authorizations, cancellations, captures, expiry, operation_recovery
from checkout.models import Checkout
from checkout.states import OperationInProgress, StateConflict, Status
from config.lib.deadline import Deadline
from payments import operation_queue, operations, provider
from payments.models import Merchant, Operation
from payments.provider import CardUse
from payments.providers.sandbox import bank
from payments.providers.sandbox.models import Charge
from tests import factories
from tests.factories import CAUSE, CustomerFactory, make_late
from tests.model.protocols.hold import PROTOCOL, WHAT
from tests.model.protocols.hold_state import State
from tests.model.protocols.replaying.runs import Run, Step, shortest_runs
from tests.model.protocols.replaying.sleepers import Clock, ProcessDied, Sleeper, asleep_at_fail_points
from tests.outages import break_down, pass_time

POINTS = ("before_call", "after_call", "before_look_up", "after_look_up")
PLACES = {"call": "before_call", "look": "before_look_up", "look_again": "before_look_up", "": ""}
FAULTS = {
    "It is carried out, and the answer is a 5xx.": "done_then_error",
    "It is not carried out, and the answer is a 5xx.": "error",
    "The call is still under way when the wait ends.": "down",
    "The provider refuses the call, and stores no answer.": "not_accepted",
}
EXPECTED_ERRORS = (
    captures.ProviderRefused,
    captures.OutcomeUnknown,
    StateConflict,
    OperationInProgress,
    ProcessDied,
)


class Replay:
    """An order on which the real functions take the steps of a run."""

    def __init__(self, merchant: Merchant, clock: Clock) -> None:
        self.order, self.clock = factories.checkout(merchant), clock
        self.processes: dict[str, Sleeper] = {}
        self.sleepers: list[Sleeper] = []

    def take(self, step: Step) -> None:
        """Take a step of the model with the real functions."""
        said, before = step.said, step.before
        if said.startswith("The payer pays."):
            self.begin("request", self.pay())
        elif said == "The request gets the lock.":
            self.begin("request", lambda: captures.capture(self.order.merchant, self.order.pk, cause=CAUSE))
        elif said == "The merchant cancels the order.":
            with contextlib.suppress(StateConflict, OperationInProgress):
                cancellations.cancel(self.order.merchant, self.order.pk, cause=CAUSE)
        elif said == "The two minutes pass.":
            make_late(self.read())
        elif said == "The order lapses.":
            expiry.expire_due(Status.AUTHORIZED, 500)
        elif said.startswith("The pump leases"):
            self.lease(step.after.pump.kind, before, attempts=4 if "four times" in said else 0)
        elif "that is under way arrives" in said:
            self.deliver(*next(call for call in before.calls if call not in step.after.calls))
        else:
            self.go_on(step)

    def pay(self) -> Callable[[], object]:
        token = bank.tokenise(subject=self.order.pk, number="4242424242424242")
        lead = CustomerFactory.create()
        return lambda: authorizations.authorize(self.order.pk, card=CardUse(token), lead=lead, cause=CAUSE)

    def begin(self, name: str, work: Callable[[], object]) -> None:
        self.processes[name] = sleeper = Sleeper(work, POINTS)
        self.sleepers.append(sleeper)
        sleeper.go_on()

    def lease(self, kind: str, before: State, attempts: int) -> None:
        """Lease the operation as the pump does. If a request has leased it, end this lease and the deadline first."""
        operation = self.operation(kind)
        if before.row(kind).lease:
            self.clock.seconds += operation_queue.LEASE.total_seconds()
        pass_time(operation, seconds=1)
        Operation.objects.filter(pk=operation.pk).update(
            next_attempt_at="2020-01-01T00:00Z", attempts=attempts
        )
        deadline = Deadline.after(operations.PATIENCE)
        (claimed,) = operation_queue.claim(limit=1, operation_uuid=operation.pk)
        self.begin("pump", lambda: operation_recovery.finish_operation(claimed, deadline))

    def deliver(self, kind: str, key: int) -> None:
        """Let a call that was sent earlier arrive at the bank."""
        operation = self.operations(kind)[key - 1]
        if kind == "authorize":
            provider.current_provider().authorize(operation, CardUse(operation.payment.card_token), 1)
        else:
            provider.current_provider().capture(operation, 1)

    def go_on(self, step: Step) -> None:
        """Let a process take its next step. If the step's sentence names a fault, cause the fault."""
        names = [
            name for name in ("request", "pump") if step.before.process(name) != step.after.process(name)
        ]
        if not names or step.before.process(names[0]).at == "":
            return  # a call is lost, or a request begins to wait for the lock
        sleeper, (name,) = self.processes[names[0]], names
        kind, at = step.before.process(name).kind, step.after.process(name).at
        fault = next((mode for said, mode in FAULTS.items() if step.said.endswith(said)), None)
        if fault:
            break_down(kind, fault)
        if at in PLACES:
            sleeper.go_on()
            sleeper.go_on_to(PLACES[at])
        else:
            assert sleeper.go_on().startswith("after_")

    def operation(self, kind: str) -> Operation:
        return self.operations(kind)[-1]

    def operations(self, kind: str) -> list[Operation]:
        """Return the operations of this kind, one for each key."""
        rows = Operation.objects.filter(payment__subject=self.order.pk, kind=kind).select_related("payment")
        return list(rows.order_by("created_at"))

    def read(self) -> Checkout:
        return Checkout.objects.get(pk=self.order.pk)

    def seen(self) -> tuple[str, ...]:
        """Return the order's status, the state of each operation, and the state of the hold at the bank."""
        found = Operation.objects.filter(payment__subject=self.order.pk).order_by("created_at")
        rows = dict(found.values_list("kind", "state"))
        charge = Charge.objects.filter(subject=self.order.pk).first()
        return self.read().status, *(rows.get(kind, "") for kind in WHAT), charge.state if charge else ""

    def end(self) -> None:
        """End the processes. Check that an unexpected exception has not ended a process earlier."""
        for sleeper in self.sleepers:
            if sleeper.at:
                sleeper.die()
            assert sleeper.error is None or isinstance(sleeper.error, EXPECTED_ERRORS), repr(sleeper.error)


def expected(state: State) -> tuple[str, ...]:
    """Return the value that `Replay.seen` must return in this state of the model."""
    return str(state.order), *(state.row(kind).state for kind in WHAT), state.hold


def describe(step: Step) -> Hashable:
    """Return the kind of a step: its sentence, the order, and the operations that the step is about."""
    before, after = step.before, step.after
    kinds = [kind for kind in WHAT if WHAT[kind] in step.said]
    if not kinds:
        return step.said, before.is_late, before.order, before.has_open_operation, after.order
    row = before.row(kinds[0])
    is_refused = step.said.startswith("The pump records the capture as failed")
    kind = row.state, row.lease, row.is_renewed and is_refused
    return step.said, before.order, kind, after.order, after.row(kinds[0]).state


RUNS = shortest_runs(PROTOCOL.design, describe)


@pytest.mark.django_db(transaction=True)
def test_code_takes_each_step_of_the_model(acme: Merchant) -> None:
    with asleep_at_fail_points() as clock:
        for run in RUNS:
            repeat(Replay(acme, clock), run)


def repeat(replay: Replay, run: Run) -> None:
    """Take each step of a run. After each step, compare the code's rows with the model's rows."""
    story = []
    for step in run:
        story.append(step.said)
        replay.take(step)
        assert replay.seen() == expected(step.after), "\n".join([*story, str(step.after)])
    replay.end()
