"""The model of a lease agrees with the code: the real functions take each run to the same states."""

import math
from collections.abc import Callable, Hashable
from datetime import datetime, timedelta

import pytest
from django.db import transaction
from django.db.models import F

from checkout import operation_recovery
from checkout.models import Checkout
from config.lib import clock
from config.lib.deadline import Deadline
from payments import operation_queue, operations, planning
from payments.models import Operation, Payment
from payments.providers.sandbox.models import Call
from tests import factories
from tests.factories import CAUSE
from tests.model.protocols.lease import PROTOCOL, TICK, State
from tests.model.protocols.replaying.runs import Step, shortest_runs
from tests.model.protocols.replaying.sleepers import Clock, ProcessDied, Sleeper, asleep_at_fail_points
from tests.outages import break_down

TIMES = ("created_at", "first_sent_at", "last_sent_at", "next_attempt_at")
Kind = Operation.Kind


class Replay:
    """The release of a hold. The real functions take the steps of a run on it."""

    def __init__(self, checkout: Checkout, time: Clock) -> None:
        self.payment, self.time = Payment.objects.get(subject=checkout.pk), time
        self.processes: dict[str, Sleeper] = {}
        self.sleepers: list[Sleeper] = []
        self.tokens: dict[object, str] = {None: ""}

    def take(self, step: Step) -> None:
        """Take a step of the model with the real functions."""
        said, name = step.said, step.said[0]
        if said == "The operation is planned.":
            planning.plan_operations([self.payment.pk], Kind.VOID, now=clock.now(), cause=CAUSE)
        elif said.startswith("A begins"):
            self.begin()
        elif said.endswith("seconds pass."):
            self.pass_tick()
        elif said.endswith("claims the operation."):
            self.claim(name, step.before)
        elif said.endswith("dies."):
            self.processes[name].die()
        elif "records that the outcome" in said:
            self.processes[name].go_on_to("")
        else:
            self.go_on(name, step)

    def begin(self) -> None:
        """Begin the operation as a request does, and let the request sleep before its call."""
        deadline = Deadline.after(operations.PATIENCE)
        with transaction.atomic(durable=True):
            Checkout.objects.locked(self.payment.checkout_uuid)
            begun = operations.begin(self.payment, Kind.VOID, now=clock.now(), cause=CAUSE)

        def finish() -> None:
            factories.record(begun, operations.perform(begun, deadline=deadline))

        self.start("A", begun, finish)
        self.processes["A"].go_on_to("before_call")

    def claim(self, name: str, before: State) -> None:
        """Claim the operation as the pump does.

        The operation is due if no process has leased it, or if the lease has ended.
        """
        if not before.holder:
            Operation.objects.filter(payment=self.payment).update(next_attempt_at="2020-01-01T00:00Z")
        Operation.objects.filter(payment=self.payment).update(attempts=0)
        deadline = Deadline.after(operations.PATIENCE)
        (claimed,) = operation_queue.claim(limit=1, operation_uuid=self.operation().pk)
        self.start(name, claimed, lambda: operation_recovery.finish_operation(claimed, deadline))

    def start(self, name: str, operation: Operation, work: Callable[[], object]) -> None:
        self.tokens[operation.lease_token] = name
        self.processes[name] = Sleeper(work, ("before_call", "after_call"))
        self.sleepers.append(self.processes[name])

    def go_on(self, name: str, step: Step) -> None:
        """Let a process take its next step, as far as the next fail point."""
        process, after = self.processes[name], step.after.A if name == "A" else step.after.B
        if "The answer is lost" in step.said:
            break_down("void", "done_then_reset")
        if after.at == "call":
            process.go_on_to("before_call")
        elif process.at != "start":
            calls = self.count_calls()
            process.go_on_to("after_call")
            assert "calls." in step.said or self.count_calls() == calls, "this process must not call"
        # In all other cases, the process does not move yet. A process that sends no call has no fail point
        # before it records, so it takes this step later, together with the recording.

    def pass_tick(self) -> None:
        """Set the operation's times back by one tick, and the clock of the deadlines forward by one tick."""
        past = {name: F(name) - timedelta(seconds=TICK) for name in TIMES}
        Operation.objects.filter(payment=self.payment).update(**past)
        self.time.seconds += TICK

    def count_calls(self) -> int:
        return Call.objects.filter(charge__payment=self.payment.pk, kind="void").count()

    def operation(self) -> Operation:
        return Operation.objects.get(payment=self.payment, kind=Kind.VOID)

    def seen(self) -> tuple[object, ...]:
        """Return the row's state, its holder, and the ticks until its times, in the form that the model uses."""
        row, now = self.operation(), clock.now()
        lease = row.next_attempt_at if row.lease_token else None
        return row.state, self.tokens[row.lease_token], _ticks(lease, now), _ticks(row.last_sent_at, now)

    def end(self) -> None:
        """End the processes. Check that an unexpected exception has not ended a process earlier."""
        for sleeper in self.sleepers:
            sleeper.die()
            assert sleeper.error is None or isinstance(sleeper.error, ProcessDied), repr(sleeper.error)


def _ticks(moment: datetime | None, now: datetime) -> int:
    return max(math.ceil((moment - now).total_seconds() / TICK), 0) if moment else 0


def expected(state: State) -> tuple[object, ...]:
    """Return the value that `Replay.seen` must return in this state of the model."""
    return state.row, state.holder, state.lease if state.holder else 0, state.last


def describe(step: Step) -> Hashable:
    """Return the kind of a step: its sentence, and the row and process that it is about, without their names."""
    before, name = step.before, step.said[0]
    process = before.B if name == "B" else before.A
    holder = before.holder and before.holder == name
    return step.said[1:], before.row, holder, process.at, process.heard, process.left == 0, before.lease == 0


RUNS = shortest_runs(PROTOCOL.design, describe)


@pytest.mark.django_db(transaction=True)
def test_code_takes_each_step_of_the_model(unpaid: Checkout, pay: Callable[..., Checkout]) -> None:
    with asleep_at_fail_points() as time:
        for run in RUNS:
            held = pay(factories.checkout(unpaid.merchant))
            replay, story = Replay(held, time), list[str]()
            for step in run:
                story.append(step.said)
                replay.take(step)
                assert replay.seen() == expected(step.after), "\n".join([*story, str(step.after)])
            replay.end()
