"""A process that was suspended cannot change an outcome that another process has recorded since then."""

import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import transaction

from checkout import cancellations, captures, mate_shares, operation_recovery, refunds, states
from checkout.models import Checkout, PaymentRequest
from checkout.proof import ledger_proof
from config.lib import clock, failpoint
from config.lib.deadline import Deadline
from payments import operation_queue, operations, planning
from payments.models import Operation, Payment
from payments.provider import CardUse, Outcome, Verdict
from payments.providers.sandbox import bank
from payments.providers.sandbox.models import Call, Charge
from tests import factories, mates
from tests.factories import CAUSE, CustomerFactory, make_late
from tests.outages import break_down, leave_in_doubt, pass_time, pump

pytestmark = pytest.mark.django_db
Kind = Operation.Kind
DuringLookUp = Callable[[Callable[[], object]], None]


@pytest.fixture
def during_look_up(monkeypatch: pytest.MonkeyPatch) -> DuringLookUp:
    """Return a function that takes `event`. The next look-up then calls `event` and returns "not found"."""

    def asleep(event: Callable[[], object]) -> None:
        real = operations.look_up

        def look_up(operation: Operation, **rest: Any) -> Outcome:
            monkeypatch.setattr(operations, "look_up", real)
            event()
            return Outcome(Verdict.NOT_FOUND)

        monkeypatch.setattr(operations, "look_up", look_up)

    return asleep


def claimed(operation: Operation) -> Operation:
    """Claim the operation as the pump does, and return it."""
    Operation.objects.filter(pk=operation.pk).update(next_attempt_at="2020-01-01T00:00Z")
    (asleep,) = operation_queue.claim(limit=1, operation_uuid=operation.pk)
    return asleep


@pytest.fixture
def lost_response(unpaid: Checkout, pay: Callable[..., Checkout]) -> Operation:
    """Return an authorization that was sent 61 seconds ago and succeeded, but whose response was lost."""
    break_down("authorize", "done_then_reset")
    pay(unpaid)
    operation = Operation.objects.select_related("payment").get()
    pass_time(operation, seconds=61)
    return operation


@pytest.mark.rule("doubt.sleeper")
class TestAnOrder:
    def test_that_was_captured_while_a_process_slept_keeps_its_payment(
        self, lost_response: Operation, unpaid: Checkout, during_look_up: DuringLookUp
    ) -> None:
        def others() -> None:
            pump()
            captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)

        asleep = claimed(lost_response)
        during_look_up(others)
        operation_recovery.finish_operation(asleep)
        payment = Payment.objects.get()
        assert (payment.status, payment.abandoned_at, payment.decline_reason) == ("captured", None, "")
        accepted = refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        assert accepted.is_new and ledger_proof.find_breaches() == []

    def test_whose_payment_is_given_up_by_mistake_is_a_ledger_breach(self, captured: Checkout) -> None:
        Payment.objects.update(abandoned_at=captured.captured_at)
        assert [breach.kind.name for breach in ledger_proof.find_breaches()] == ["ledger_payment_not_live"]

    def test_that_was_confirmed_while_a_process_slept_does_not_lose_its_challenge(
        self, unpaid: Checkout, pay: Callable[..., Checkout], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pay(unpaid, "4000002500003155")
        asked = Operation.objects.select_related("payment").get()
        pass_time(asked, minutes=11)
        asleep, real = claimed(asked), operations.look_up

        def look_up(operation: Operation, **rest: Any) -> Outcome:
            monkeypatch.setattr(operations, "look_up", real)
            bank.answer_challenge(key=operation.pk, is_confirmed=True)
            pump()
            return Outcome(Verdict.NEEDS_ACTION)

        monkeypatch.setattr(operations, "look_up", look_up)
        operation_recovery.finish_operation(asleep)
        unpaid.refresh_from_db()
        assert (unpaid.status, Charge.objects.get().state) == ("authorized", "held")
        assert not Operation.objects.filter(kind="void").exists()

    def test_whose_capture_continues_under_another_key_is_reported_as_unknown(
        self, held: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """While the merchant's call was suspended, the pump found that the capture had never arrived.

        The pump therefore sent the capture again under another key.
        """

        def slept(operation: Operation, _: Deadline) -> Outcome:
            planning.replace_under_new_key(operation, now=clock.now())
            return Outcome(Verdict.UNKNOWN)

        monkeypatch.setattr(captures, "_send_capture", slept)
        with pytest.raises(captures.OutcomeUnknown):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        pump()
        held.refresh_from_db()
        assert held.status == "captured"

    @pytest.mark.rule("doubt.pending")
    def test_whose_capture_was_accepted_while_a_process_slept_is_not_fenced(
        self, held: Checkout, during_look_up: DuringLookUp
    ) -> None:
        capture = leave_in_doubt(held)
        make_late(held)
        asleep = claimed(capture)
        during_look_up(partial(factories.record, asleep, Outcome(Verdict.PENDING)))
        operation_recovery.finish_operation(asleep)
        assert Operation.objects.get(kind="capture").state == "pending"
        assert not Operation.objects.filter(kind="void").exists()

    @pytest.mark.rule("doubt.refusal")
    def test_whose_capture_is_sent_again_while_a_process_slept_is_not_voided_over_it(
        self, held: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The provider refused the merchant's call, and then the process was suspended.

        In the meantime, the pump sent the capture again under the same key.
        """
        send_capture, sent = captures._send_capture, list[Operation]()

        def slept(operation: Operation, deadline: Deadline) -> Outcome:
            refusal = send_capture(operation, deadline)
            pass_time(operation, seconds=10)
            sent.append(claimed(operation))
            assert operations.perform(sent[0], deadline=Deadline.after(8)).verdict == Verdict.SUCCEEDED
            return refusal

        break_down("capture", "not_accepted")
        monkeypatch.setattr(captures, "_send_capture", slept)
        with pytest.raises(captures.OutcomeUnknown):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        with pytest.raises(states.OperationInProgress):
            cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        factories.record(sent[0], Outcome(Verdict.SUCCEEDED))
        held.refresh_from_db()
        assert (held.status, Charge.objects.get().state) == ("captured", "captured")
        assert ledger_proof.find_breaches() == []

    def test_gets_no_call_from_a_process_that_slept_past_its_lease(self, lost_response: Operation) -> None:
        asleep = claimed(lost_response)
        operation_recovery.finish_operation(asleep, Deadline.after(-1))
        assert Operation.objects.get().state == "unknown" and Charge.objects.count() == 1


class TestAShare:
    def test_that_was_paid_while_a_process_slept_is_not_charged_to_a_second_card(
        self, share: PaymentRequest, during_look_up: DuringLookUp
    ) -> None:
        break_down("authorize", "done_then_reset")
        mates.pay(share)
        lost_response = Operation.objects.select_related("payment").get(payment__subject=share.pk)
        pass_time(lost_response, seconds=61)
        asleep = claimed(lost_response)
        during_look_up(pump_once)
        operation_recovery.finish_operation(asleep)
        share.refresh_from_db()
        assert share.status in ("paying", "paid")
        token = bank.tokenise(subject=share.pk, number="378282246310005")
        with pytest.raises((mate_shares.ShareNotOpen, states.OperationInProgress)):
            mate_shares.pay(share.pk, card=CardUse(token), mate=CustomerFactory.create(), cause=CAUSE)
        pump()
        pump()
        share.refresh_from_db()
        assert share.status in ("paid", "reimbursed")
        assert Charge.objects.filter(amount=2000).count() == 1 and ledger_proof.find_breaches() == []


def pump_once() -> None:
    """Record that every open authorization has succeeded."""
    Operation.objects.filter(ended_at=None).update(next_attempt_at="2020-01-01T00:00Z")
    for operation in Operation.objects.filter(ended_at=None, kind="authorize").select_related("payment"):
        factories.record(operation, Outcome(Verdict.SUCCEEDED))


@pytest.mark.rule("doubt.old_key", "doubt.sleeper")
class TestASenderThatSlept:
    """A process that was suspended after it claimed an operation and before it called the provider.

    The process must not call later than the recorded `last_sent_at`, because the time at which a new key is allowed
    is computed from it.
    """

    @pytest.fixture
    def refund(self, captured: Checkout) -> Operation:
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        return Operation.objects.select_related("payment").get(kind="refund")

    def test_past_its_lease_sends_nothing(self, refund: Operation) -> None:
        asleep = claimed(refund)
        Operation.objects.filter(pk=refund.pk).update(next_attempt_at=clock.now())
        operation_recovery.finish_operation(asleep, Deadline.after(8))
        assert not Call.objects.filter(kind="refund").exists()
        assert Operation.objects.get(pk=refund.pk).last_sent_at is None

    def test_while_another_process_took_over_sends_nothing(self, refund: Operation) -> None:
        asleep = claimed(refund)
        claimed(refund)
        operation_recovery.finish_operation(asleep, Deadline.after(8))
        assert not Call.objects.filter(kind="refund").exists()

    @pytest.mark.rule("doubt.refusal")
    def test_after_a_refusal_does_not_end_a_refund_that_was_sent_again(self, refund: Operation) -> None:
        """While the process was suspended, another process sent the refund, and the bank accepted it."""
        break_down("refund", "not_accepted")
        asleep = claimed(refund)
        refusal = operations.perform(asleep, deadline=Deadline.after(8))
        pass_time(refund, seconds=10)
        other = claimed(refund)
        accepted = operations.perform(other, deadline=Deadline.after(8))
        assert (refusal.verdict, accepted.verdict) == (Verdict.FAILED, Verdict.PENDING)
        factories.record(asleep, refusal)
        factories.record(other, accepted)
        refund.refresh_from_db()
        assert refund.state == "pending"

    @pytest.mark.parametrize("is_recorded_by_begin", [False, True])
    def test_after_its_sending_was_recorded_sends_no_call_later_than_recorded(
        self, held: Checkout, monkeypatch: pytest.MonkeyPatch, is_recorded_by_begin: bool
    ) -> None:
        """The sender is suspended immediately before the call."""
        with transaction.atomic():
            capture = operations.begin(Payment.objects.get(), Kind.CAPTURE, now=clock.now(), cause=CAUSE)
        asleep = capture if is_recorded_by_begin else claimed(capture)
        monkeypatch.setattr(failpoint, "reach", lambda *_: time.sleep(0.3))
        deadline = Deadline.after(0.2)
        assert operations.perform(asleep, deadline=deadline).verdict == Verdict.UNKNOWN
        assert not Call.objects.filter(kind="capture").exists()
        recorded = Operation.objects.get(pk=capture.pk).last_sent_at
        assert recorded is not None and recorded > clock.now(), "the record is later than any call can be"

    def test_sends_no_call_under_a_key_that_the_provider_might_have_forgotten(
        self, refund: Operation
    ) -> None:
        break_down("refund", "down")
        pump()
        asleep = claimed(refund)
        day = timedelta(hours=24)
        Operation.objects.filter(pk=refund.pk).update(first_sent_at=clock.now() - day)
        assert operations.perform(asleep, deadline=Deadline.after(8)).verdict == Verdict.UNKNOWN
        assert not Call.objects.filter(kind="refund").exists()
