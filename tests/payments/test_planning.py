"""An operation gets a new key only if the new key cannot move money twice."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from checkout import operation_recovery, refunds, tasks
from checkout.models import Checkout
from checkout.proof import ledger_proof
from config.lib import clock
from config.lib.deadline import Deadline
from payments import operation_queue, operations, planning, provider
from payments.models import Discrepancy, Operation, Payment
from payments.provider import Outcome, Verdict
from payments.providers.sandbox import bank
from payments.providers.sandbox.models import Charge
from tests import factories
from tests.factories import CAUSE
from tests.outages import break_down, overhear, pass_time, pump

pytestmark = pytest.mark.django_db


class TestAnOldKey:
    """The provider has forgotten the idempotency key, so a second call under this key could move money twice."""

    @pytest.mark.rule("doubt.old_key")
    def test_is_not_sent_again_and_its_success_is_found(
        self, captured: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from_now = refund_in_doubt(captured, "done_then_reset")
        calls = overhear(monkeypatch)
        break_down("refund", "forgets_keys", times=9)
        pump()
        assert {verb for verb, _ in calls} == {"look_up"} and from_now.pk in {key for _, key in calls}
        pump()
        assert Charge.objects.get().refunded_amount == 9000
        assert Operation.objects.filter(kind="refund").count() == 1 and ledger_proof.find_breaches() == []

    @pytest.mark.rule("doubt.old_key")
    def test_is_replaced_if_the_provider_rules_the_call_out(self, captured: Checkout) -> None:
        lost = refund_in_doubt(captured, "down")
        for _ in range(3):
            pump()
        old, new = Operation.objects.filter(kind="refund").order_by("created_at")
        assert (old.pk, old.state, old.reason) == (lost.pk, "failed", "new_key")
        assert (new.state, Charge.objects.get().refunded_amount) == ("succeeded", 9000)
        captured.refresh_from_db()
        assert captured.status == "refunded" and ledger_proof.find_breaches() == []

    def test_is_looked_up_until_the_provider_rules_it_out(
        self, captured: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        refund_in_doubt(captured, "down")
        break_down("look_up", "not_vouched", times=9)
        calls = overhear(monkeypatch)
        pump()
        pump()
        assert {verb for verb, _ in calls} == {"look_up"}
        assert Operation.objects.get(kind="refund").state == "unknown"


def test_an_operation_that_gets_a_new_key_has_no_outcome(captured: Checkout) -> None:
    lost = refund_in_doubt(captured, "down")
    Operation.objects.update(next_attempt_at=clock.now())
    (claimed,) = operation_queue.claim(limit=1, operation_uuid=lost.pk)
    assert operation_recovery._send_or_look_up(claimed, Deadline.after(5)) is None
    outdated = operation_recovery._send_or_look_up(claimed, Deadline.after(5))
    assert outdated is not None and outdated.verdict == Verdict.NOT_FOUND
    assert Operation.objects.filter(kind="refund").count() == 2


def test_a_payment_is_released_once_unless_its_void_fails(held: Checkout) -> None:
    assert held.payment_id is not None
    payments, voids = [held.payment_id], Operation.objects.filter(kind="void")
    assert planning.plan_release(payments, now=clock.now())
    assert not planning.plan_release(payments, now=clock.now())
    voids.update(state="succeeded", ended_at=clock.now())
    assert not planning.plan_release(payments, now=clock.now())
    voids.update(state="failed")
    assert planning.plan_release(payments, now=clock.now())
    assert voids.count() == 2


def refund_in_doubt(captured: Checkout, mode: str) -> Operation:
    """Return a refund that got no answer. The refund was sent so long ago that its key must not be used again."""
    break_down("refund", mode)
    refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
    tasks.finish_operations()
    operation = Operation.objects.get(kind="refund")
    assert operation.state == "unknown"
    pass_time(operation, hours=26)
    return operation


@pytest.mark.usefixtures("held")
def test_an_inserted_operation_can_be_saved_again() -> None:
    now = clock.now()
    void = Operation(
        payment=Payment.objects.get(),
        kind="void",
        state="planned",
        amount=9000,
        actor=CAUSE.actor,
        next_attempt_at=now,
        created_at=now,
    )
    planning.insert_operation(void)
    void.reason = "changed"
    void.save()
    assert Operation.objects.get(kind="void").reason == "changed"


class TestAKey:
    @pytest.fixture
    def refund(self, captured: Checkout) -> Operation:
        break_down("refund", "error")
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        tasks.finish_operations()
        return Operation.objects.get(kind="refund")

    def test_is_kept_while_a_call_under_it_can_still_arrive(self, refund: Operation) -> None:
        """The first call gets an error. The second call gets no answer and can still arrive.

        If another call were sent under a new key, the money would be refunded twice.
        """
        break_down("refund", "down")
        for _ in range(3):
            pump()
        assert Operation.objects.get(kind="refund").state == "succeeded"
        assert Charge.objects.get().refunded_amount == 9000

    def test_is_kept_after_a_call_without_a_recorded_outcome(self, refund: Operation) -> None:
        """The first call gets an error. Then a process dies, which might have sent a second call.

        The second call could still arrive, so the key is kept.
        """
        Operation.objects.filter(pk=refund.pk).update(next_attempt_at=clock.now())
        assert operation_queue.claim(limit=1, operation_uuid=refund.pk)
        break_down("refund", "error", times=99)
        for _ in range(3):
            pump()
        assert Operation.objects.get(kind="refund").pk == refund.pk

    def test_that_is_replaced_repeatedly_waits_longer_each_time(self, refund: Operation) -> None:
        waits, newest = [], refund
        for _ in range(12):
            before = clock.now()
            planning.replace_under_new_key(newest, now=before)
            newest = Operation.objects.select_related("payment").get(kind="refund", ended_at=None)
            assert newest.next_attempt_at is not None
            waits.append((newest.next_attempt_at - before).total_seconds())
        assert waits == [0, *(2**times for times in range(1, 10)), 600, 600]

    def test_that_is_new_does_not_hide_an_old_doubt(self, refund: Operation) -> None:
        planning.replace_under_new_key(refund, now=clock.now())
        new = Operation.objects.get(kind="refund", ended_at=None)
        Operation.objects.filter(kind="refund").update(created_at=F("created_at") - timedelta(hours=25))
        break_down("refund", "error", times=99)
        for _ in range(3):
            pump()
        told = Discrepancy.objects.get(kind="in_doubt_for_a_day")
        assert (told.subject, told.operation_id) == (refund.pk, new.pk)

    def test_is_counted_as_sent_again_if_its_calls_span_more_than_one_lease(self) -> None:
        first = clock.now()
        single = first + operation_queue.LEASE + timedelta(milliseconds=10)
        for last, is_again in ((None, False), (single, False), (single + timedelta(microseconds=1), True)):
            operation = Operation(first_sent_at=first, last_sent_at=last)
            assert planning.was_sent_again(operation) == is_again

    @pytest.mark.rule("doubt.old_key")
    def test_is_replaced_from_an_hour_after_the_end_of_its_life(self) -> None:
        """During this hour, a slow call can still arrive. The hour also allows for differences between the clocks."""
        now, life = clock.now(), provider.current_provider().key_life
        last = now - life - timedelta(hours=1)
        for sent_at, have_ended in ((None, True), (last, True), (last + timedelta(microseconds=1), False)):
            assert planning.calls_have_ended(Operation(last_sent_at=sent_at), now) == have_ended

    def test_that_was_replaced_and_succeeds_is_reported(self, refund: Operation) -> None:
        planning.replace_under_new_key(refund, now=clock.now())
        refund.refresh_from_db()
        assert refund.reason == "new_key"
        bank.refund(key=refund.pk, payment=refund.payment_id, amount=refund.amount)
        factories.record(refund, Outcome(Verdict.SUCCEEDED))
        assert Discrepancy.objects.filter(kind="succeeded_under_an_old_key").exists()


class TestTheFirstSending:
    def first(self, operation: Operation) -> Any:
        return planning.with_first_sending(Operation.objects.filter(pk=operation.pk)).get()

    def test_counts_the_calls_under_all_keys(self, unclear: Operation) -> None:
        Operation.objects.filter(pk=unclear.pk).update(attempts=4)
        newest = factories.replace_key(factories.replace_key(unclear))
        Operation.objects.filter(pk=newest.pk).update(attempts=2)
        counted = self.first(newest)
        assert (counted.first_created_at, counted.all_attempts) == (unclear.created_at, 6)

    def test_is_not_that_of_a_capture_which_has_ended(self, unclear: Operation) -> None:
        """After a refusal, the merchant's next capture is a different request."""
        refused = factories.replace_key(unclear)
        Operation.objects.filter(pk=refused.pk).update(
            state="failed", reason="refused", next_attempt_at=None, ended_at=clock.now()
        )
        now = clock.now()
        again = operations.begin(unclear.payment, Operation.Kind.CAPTURE, now=now, cause=CAUSE)
        counted = self.first(again)
        assert (counted.first_created_at, counted.all_attempts) == (now, 1)

    def test_is_that_of_the_same_refund_only(self, captured: Checkout) -> None:
        first = refund_in_doubt(captured, "down")
        other = factories.replace_key(first)
        another = factories.bare_refund(captured.merchant, captured.pk)
        Operation.objects.filter(pk=first.pk).update(refund_uuid=another)
        counted = self.first(other)
        assert (counted.first_created_at, counted.all_attempts) == (other.created_at, 0)
