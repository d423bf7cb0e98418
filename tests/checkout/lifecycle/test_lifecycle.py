"""Random tests of the lifecycle: after any events in any order, each checkout has the correct state."""

import logging
import sys
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from checkout import captures, events, expiry, outcomes, refunds, states, tasks
from checkout.group import unit_claims
from checkout.models import Checkout
from payments import ledger, open_operations, operations, provider
from payments.models import Merchant, Operation
from payments.provider import Outcome, ProviderUnreachable, Verdict
from tests.checkout.lifecycle import ageing, reference
from tests.checkout.lifecycle.machine import Lifecycle
from tests.checkout.lifecycle.scripted import ScriptedProvider
from webhooks.models import Subscription

Live = Callable[[settings], None]
ORDINARY = settings(
    max_examples=12,
    stateful_step_count=30,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
BROKEN = settings(ORDINARY, max_examples=100, derandomize=True, database=None, phases=[Phase.generate])


class LoudLog:
    """A replacement for the pump's log. It fails the test if an exception other than ProviderUnreachable is logged."""

    def exception(self, *_: object, **__: object) -> None:
        error = sys.exception()
        if not isinstance(error, ProviderUnreachable):
            raise error or AssertionError("a row failed")


@pytest.fixture
def live(acme: Merchant, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Live:
    """Return a function that runs the state machine with the given Hypothesis settings."""

    def run_pumps_later() -> None:
        ageing.let_pass(12)  # longer than the lease of the process that sends a call
        tasks.expire_due()
        tasks.finish_operations()

    caplog.set_level(logging.CRITICAL, "payments")  # otherwise thousands of calls would be logged
    bank = ScriptedProvider(run_pumps_later)
    monkeypatch.setattr(provider, "current_provider", lambda: bank)
    monkeypatch.setattr(tasks, "log", LoudLog())
    monkeypatch.setattr(captures, "JOIN_SECONDS", 0.0)  # a capture does not wait for another open capture
    Subscription.objects.create(merchant=acme, url="https://shop.example/hooks", event_types=["*"])

    class Life(Lifecycle):
        def __init__(self) -> None:
            super().__init__(acme, bank)

    return lambda chosen: run_state_machine_as_test(Life, settings=chosen)


class TestTheReference:
    def test_has_exactly_the_state_changes_of_the_table(self) -> None:
        ours = {(str(origin), str(to)) for origin, to in states.ALLOWED_MOVES}
        assert ours == reference.PAIRS


@pytest.mark.django_db
class TestTheLifecycle:
    def test_ends_in_the_one_right_state(self, live: Live) -> None:
        live(ORDINARY)

    @pytest.mark.long
    def test_ends_in_the_one_right_state_in_many_long_runs(self, live: Live) -> None:
        live(settings(ORDINARY, max_examples=200, stateful_step_count=50))


def no_deadline(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Checkout, "has_lapsed", lambda *_: False)
    patch.setattr(expiry, "expire_due", lambda *_: 0)


def events_told_twice(patch: pytest.MonkeyPatch) -> None:
    tell = events.emit_authorized
    patch.setattr(events, "emit_authorized", lambda *facts: (tell(*facts), tell(*facts)))


def a_ledger_that_forgets_refunds(patch: pytest.MonkeyPatch) -> None:
    patch.delitem(ledger.MOVEMENT_KINDS, "refund")


def voids_that_are_never_sent(patch: pytest.MonkeyPatch) -> None:
    perform = operations.perform

    def pretend(operation: Operation, **rest: Any) -> Outcome:
        return Outcome(Verdict.SUCCEEDED) if operation.kind == "void" else perform(operation, **rest)

    patch.setattr(operations, "perform", pretend)


def silence_taken_for_no(patch: pytest.MonkeyPatch) -> None:
    record = outcomes.record_outcome

    def hasty(
        checkout_uuid: UUID, operation_uuid: UUID, outcome: Outcome, **rest: Any
    ) -> outcomes.RecordedOutcome:
        failed = outcome.verdict == Verdict.UNKNOWN
        said = Outcome(Verdict.FAILED) if failed else outcome
        return record(checkout_uuid, operation_uuid, said, **rest)

    patch.setattr(outcomes, "record_outcome", hasty)


def refunds_of_what_is_held(patch: pytest.MonkeyPatch) -> None:
    def careless(checkout: Checkout) -> None:
        if checkout.payment is None:
            raise refunds.NotRefundable(checkout.status)

    patch.setattr(refunds, "_check_refundable", careless)


def an_open_operation_that_hinders_nobody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(open_operations, "open_operation", lambda *_: None)


def units_given_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(unit_claims, "_give", lambda *_: None)


@pytest.mark.long
@pytest.mark.django_db
class TestTheModelFinds:
    @pytest.mark.parametrize(
        "fault",
        [
            no_deadline,
            events_told_twice,
            a_ledger_that_forgets_refunds,
            voids_that_are_never_sent,
            silence_taken_for_no,
            refunds_of_what_is_held,
            an_open_operation_that_hinders_nobody,
            units_given_twice,
        ],
    )
    def test_a_rule_that_is_broken(
        self, live: Live, monkeypatch: pytest.MonkeyPatch, fault: Callable[[pytest.MonkeyPatch], None]
    ) -> None:
        fault(monkeypatch)
        is_constrained = fault in (an_open_operation_that_hinders_nobody, refunds_of_what_is_held)
        by_database = (IntegrityError,) if is_constrained else ()
        with pytest.raises((AssertionError, states.MoveRefused, *by_database)):
            live(BROKEN)
