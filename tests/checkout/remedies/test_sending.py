"""An operator can send a refund or a void again, at once and only once, if the provider allows it."""

from collections.abc import Callable
from datetime import UTC, timedelta
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from checkout import authorizations, captures, operation_recovery, refunds, tasks
from checkout.models import Checkout
from checkout.remedies.status_check import NotAllowed
from config.lib import clock
from payments import planning
from payments.models import Discrepancy, Operation, Payment
from payments.provider import CardUse
from payments.providers.sandbox import bank, disputing, fault_injection
from payments.providers.sandbox.models import Call, Charge
from tests import mates, outside
from tests.checkout.remedies.remedy import change_bank_record, close, look_into_disputes, refuses, send
from tests.factories import CAUSE, CustomerFactory
from tests.outages import pass_time

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("impatient", "proven")]


class TestSendingAgain:
    @pytest.mark.rule("money.settled")
    def test_sends_a_failed_refund_at_once_under_a_new_key(self, unpaid: Checkout, stuck: Operation) -> None:
        planning.attempts_at_same_part(stuck).filter(state="planned").update(
            state="failed", ended_at=stuck.ended_at, created_at=stuck.created_at
        )
        send(stuck)
        (new,) = Operation.objects.filter(ended_at=None)
        assert new.pk != stuck.pk and (new.payment, new.amount) == (stuck.payment, 2000)
        Charge.objects.filter(last4="5126").update(last4="4242")
        mates.pump(unpaid.pk, rounds=2)
        unpaid.refresh_from_db()
        assert unpaid.status == "refunded"
        assert Discrepancy.objects.get(kind="refund_part_failed").note == "The card has got it."

    def test_twice_plans_once(self, stuck: Operation) -> None:
        send(stuck)
        send(stuck)
        (planned,) = Operation.objects.filter(ended_at=None)
        assert planned.state == "planned" and planned.next_attempt_at == planned.created_at

    @pytest.mark.rule("reimburse.delay")
    @pytest.mark.usefixtures("posted")
    def test_of_a_withdrawn_reimbursement_is_refused(
        self, unpaid: Checkout, pay: Callable[..., Checkout], settings: Settings
    ) -> None:
        """The service sends it after the usual delay, because the dispute was won."""
        settings.REIMBURSEMENT_DELAY = timedelta(days=1)
        (share,) = mates.split(unpaid, 2000)
        captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
        mates.pay(share)
        tasks.finish_operations()
        outside.decide(outside.dispute(Payment.objects.get(subject=unpaid.pk)), is_won=True)
        withdrawn = Operation.objects.get(reason="withdrawn")
        refuses(send, withdrawn, "Only a refund that failed or was returned")
        (planned,) = Operation.objects.filter(share_uuid=share.pk, state="planned")
        assert planned.next_attempt_at and planned.next_attempt_at > clock.now() + timedelta(hours=23)

    def test_a_void_that_was_refused(self, held: Checkout, void: Operation) -> None:
        Operation.objects.filter(kind="void", ended_at=None).update(state="failed", ended_at=void.ended_at)
        send(void)
        mates.pump(held.pk)
        assert Charge.objects.get().state == "voided"
        refuses(send, void, "it succeeded")

    def test_a_refund_that_never_arrived_keeps_a_key_that_is_still_valid(self, unpaid: Checkout) -> None:
        operation = self._refund_in_doubt(unpaid)
        Operation.objects.filter(pk=operation.pk).update(next_attempt_at="2100-01-01T00:00Z")
        send(operation)
        operation_recovery.finish_due_operations(unpaid.pk)
        assert Call.objects.filter(kind="refund").values_list("reference", flat=True).get() == operation.pk

    def test_a_refund_that_never_arrived_gets_a_new_key_after_the_old_one_expired(
        self, unpaid: Checkout
    ) -> None:
        operation = self._refund_in_doubt(unpaid)
        pass_time(operation, hours=25, minutes=1)
        send(operation)
        operation.refresh_from_db()
        assert operation.reason == "new_key"
        (new,) = Operation.objects.filter(kind="refund", ended_at=None)
        mates.pump(unpaid.pk)
        assert Call.objects.filter(kind="refund").values_list("reference", flat=True).get() == new.pk

    @pytest.mark.rule("doubt.old_key")
    @pytest.mark.parametrize("state", ["unknown", "failed"])
    def test_is_refused_while_an_earlier_call_can_be_carried_out(self, unpaid: Checkout, state: str) -> None:
        """Even if the operation counts as failed, another call under a new key could refund the money twice."""
        operation = self._refund_in_doubt(unpaid)
        pass_time(operation, hours=24, minutes=59)
        ended_at = clock.now() if state == "failed" else None
        Operation.objects.filter(pk=operation.pk).update(state=state, ended_at=ended_at)
        operation.refresh_from_db()
        assert operation.last_sent_at is not None
        at = operation.last_sent_at.astimezone(UTC) + timedelta(hours=25, minutes=1)
        refuses(send, operation, f"after {at:%d %B %Y, %H:%M} UTC")
        pass_time(operation, minutes=2)
        send(operation)
        mates.pump(unpaid.pk, rounds=2)
        unpaid.refresh_from_db()
        assert unpaid.status == "refunded"

    @pytest.mark.rule("dispute.no_refund")
    def test_with_a_new_key_is_refused_while_a_dispute_is_open(self, unpaid: Checkout) -> None:
        operation = self._refund_in_doubt(unpaid)
        pass_time(operation, hours=25, minutes=1)
        disputing.dispute_payment(payment=operation.payment_id)
        look_into_disputes(operation)
        refuses(send, operation, "disputed")
        disputing.decide_dispute(payment=operation.payment_id, is_won=True)
        look_into_disputes(operation)
        send(operation)
        assert Operation.objects.filter(kind="refund", ended_at=None).exclude(pk=operation.pk).exists()

    def test_a_refund_in_doubt_that_has_failed_at_the_provider(
        self, stuck: Operation, unpaid: Checkout
    ) -> None:
        mates.pump(unpaid.pk)
        again = planning.attempts_at_same_part(stuck).exclude(pk=stuck.pk).get(state="pending")
        Operation.objects.filter(pk=again.pk).update(state="unknown")
        send(again)
        again.refresh_from_db()
        assert again.state == "failed"
        (planned,) = Operation.objects.filter(ended_at=None)
        assert planned.next_attempt_at == planned.created_at

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            ({"verdict": "pending", "reason": "", "settles_at": None}, "accepted, and not settled"),
        ],
    )
    def test_is_refused_if_the_provider_gives_another_outcome(
        self, stuck: Operation, answer: dict[str, Any], words: str
    ) -> None:
        change_bank_record(stuck, **answer)
        refuses(send, stuck, words)

    @pytest.mark.rule("operator.asks_first", "sync.books")
    def test_is_refused_if_the_refund_succeeded_and_the_success_is_recorded(
        self, unpaid: Checkout, stuck: Operation
    ) -> None:
        change_bank_record(stuck, verdict="succeeded", reason="")
        with pytest.raises(NotAllowed, match="it succeeded"):
            send(stuck)
        unpaid.refresh_from_db()
        assert unpaid.status == "refunded"
        assert Discrepancy.objects.filter(kind="refund_after_refusal", operation=stuck).count() == 1

    @pytest.mark.parametrize(
        ("mode", "words"), [("down", "nothing clear"), ("not_vouched", "does not vouch")]
    )
    def test_is_refused_if_the_provider_cannot_rule_out_the_first_call(
        self, unpaid: Checkout, mode: str, words: str
    ) -> None:
        operation = self._refund_in_doubt(unpaid)
        fault_injection.set_fault(verb="look_up", mode=mode, times=1)
        refuses(send, operation, words)

    def test_is_refused_for_an_operation_that_succeeded_or_is_still_planned(
        self, unpaid: Checkout, stuck: Operation
    ) -> None:
        refuses(
            send, Operation.objects.get(kind="authorize", payment=stuck.payment), "Only a refund or a void"
        )
        refuses(
            send,
            Operation.objects.get(kind="refund", payment__subject=unpaid.pk, share_uuid=None),
            "succeeded",
        )
        refuses(send, Operation.objects.get(state="planned"), "has not been sent")
        close(stuck)
        refuses(send, stuck, "No refund is owed to the card")

    def _refund_in_doubt(self, unpaid: Checkout) -> Operation:
        token = bank.tokenise(subject=unpaid.pk, number="4242424242424242")
        lead = CustomerFactory.create()
        authorizations.authorize(unpaid.pk, card=CardUse(token), lead=lead, cause=CAUSE)
        captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        fault_injection.set_fault(verb="refund", mode="down", times=1)
        refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        mates.pump(unpaid.pk)
        return Operation.objects.select_related("payment").get(kind="refund", state="unknown")
