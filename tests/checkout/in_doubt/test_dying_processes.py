"""If a process dies during a call, the operation stays open and the pump finishes it."""

from collections.abc import Callable
from typing import Any

import pytest

from checkout import authorizations, cancellations, captures, tasks
from checkout.models import Checkout
from checkout.proof import ledger_proof
from config.lib.deadline import Deadline
from payments import operation_queue, operations
from payments.models import Operation, Payment
from payments.provider import CardUse, Outcome, Verdict
from payments.providers.sandbox import bank
from payments.providers.sandbox.models import Charge
from tests import factories
from tests.factories import CAUSE, CustomerFactory, make_late
from webhooks.models import Event


class ProcessDied(BaseException):
    """Simulates the death of the process."""


@pytest.fixture
def let_process_die(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that simulates the death of a process before or after its call, and then ends the lease."""

    def die(verb: Callable[[], object], *, after_call: bool) -> None:
        perform = operations.perform

        def interrupted(operation: Operation, **rest: Any) -> object:
            if after_call:
                perform(operation, **rest)
            raise ProcessDied

        with monkeypatch.context() as patched:
            patched.setattr(operations, "perform", interrupted)
            with pytest.raises(ProcessDied):
                verb()
        Operation.objects.filter(state="in_flight").update(next_attempt_at="2020-01-01T00:00Z")

    return die


@pytest.mark.rule("doubt.crash")
@pytest.mark.django_db
@pytest.mark.parametrize("after_call", [False, True])
class TestACrash:
    def test_of_a_payment_is_finished(
        self, unpaid: Checkout, let_process_die: Callable[..., None], after_call: bool
    ) -> None:
        token = bank.tokenise(subject=unpaid.pk, number="4242424242424242")
        lead = CustomerFactory.create()
        let_process_die(
            lambda: authorizations.authorize(unpaid.pk, card=CardUse(token), lead=lead, cause=CAUSE),
            after_call=after_call,
        )
        unpaid.refresh_from_db()
        assert unpaid.status == "created"
        tasks.finish_operations()
        unpaid.refresh_from_db()
        assert unpaid.status == "authorized" and unpaid.lead == lead
        assert Charge.objects.get().state == "held"
        assert Event.objects.filter(type="checkout.authorized").count() == 1

    def test_of_a_capture_is_finished(
        self, held: Checkout, let_process_die: Callable[..., None], after_call: bool
    ) -> None:
        let_process_die(lambda: captures.capture(held.merchant, held.pk, cause=CAUSE), after_call=after_call)
        tasks.finish_operations()
        held.refresh_from_db()
        assert held.status == "captured" and Charge.objects.get().state == "captured"
        assert ledger_proof.find_breaches() == []

    def test_of_a_capture_found_after_the_deadline_ends_in_the_one_right_state(
        self, held: Checkout, let_process_die: Callable[..., None], after_call: bool
    ) -> None:
        let_process_die(lambda: captures.capture(held.merchant, held.pk, cause=CAUSE), after_call=after_call)
        make_late(held)
        tasks.expire_due()
        held.refresh_from_db()
        assert held.status == "authorized", "a capture in doubt is never voided over"
        tasks.finish_operations()
        held.refresh_from_db()
        expected = "captured" if after_call else "voided"
        assert (held.status, Charge.objects.get().state, Payment.objects.get().status) == (expected,) * 3
        assert Event.objects.filter(type="checkout.voided").count() == (not after_call)
        assert ledger_proof.find_breaches() == []

    def test_of_a_void_is_finished(
        self, held: Checkout, let_process_die: Callable[..., None], after_call: bool
    ) -> None:
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)

        def pump() -> None:
            for operation in operation_queue.claim(limit=20):
                factories.record(operation, operations.perform(operation, deadline=Deadline.after(8)))

        let_process_die(pump, after_call=after_call)
        tasks.finish_operations()
        assert (Charge.objects.get().state, Payment.objects.get().status) == ("voided", "voided")


@pytest.mark.rule("doubt.capture_after")
@pytest.mark.django_db
class TestTheFence:
    def test_proves_a_capture_that_a_look_up_did_not_find(
        self, held: Checkout, let_process_die: Callable[..., None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        let_process_die(lambda: captures.capture(held.merchant, held.pk, cause=CAUSE), after_call=True)
        make_late(held)
        monkeypatch.setattr(bank, "look_up", lambda **_: Outcome(Verdict.NOT_FOUND))
        tasks.finish_operations()
        held.refresh_from_db()
        assert (held.status, Payment.objects.get().status) == ("captured", "captured")
        assert not Event.objects.filter(type="checkout.voided").exists()
        assert ledger_proof.find_breaches() == []
