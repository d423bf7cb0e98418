"""The outcome of an operation is recorded from the provider's answer. Without an answer, it is unknown."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from checkout import given_up_cards
from checkout.models import Checkout
from config.lib import clock
from payments import ledger, operations, statements
from payments.models import Discrepancy, Movement, Operation, Payment, Posting
from payments.provider import Outcome, Verdict
from payments.providers.sandbox import bank, fault_injection
from payments.providers.sandbox.models import Charge, Fault
from tests.outages import DONE, KINDS, UNDONE, InDoubt, break_down, pass_time, pump

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("impatient", "proven")]


@pytest.mark.parametrize("kind", KINDS)
class TestSilence:
    @pytest.mark.rule("doubt.unknown")
    @pytest.mark.parametrize("mode", UNDONE + DONE)
    def test_is_unknown_and_never_failed(self, in_doubt: InDoubt, kind: str, mode: str) -> None:
        operation = in_doubt(kind, mode)
        assert (operation.state, operation.ended_at) == ("unknown", None)
        assert operation.reason == ""
        assert operation.payment.status not in ("declined", "refunded", "voided")
        assert Fault.objects.get(verb=kind).times == 0, "the bank has gone wrong indeed"

    @pytest.mark.rule("doubt.day")
    def test_of_a_day_is_reported_once(self, in_doubt: InDoubt, kind: str) -> None:
        operation = in_doubt(kind, times=9)
        break_down("look_up", "down", times=9)
        pass_time(operation, hours=23, minutes=59)
        pump()
        assert not Discrepancy.objects.exists()
        pass_time(operation, minutes=2)
        pump()
        pump()
        found = Discrepancy.objects.get()
        assert (found.kind, found.operation, found.merchant) == (
            "in_doubt_for_a_day",
            operation,
            operation.payment.merchant,
        )
        operation.refresh_from_db()
        assert operation.state == "unknown"


class TestRecording:
    def test_finds_its_operation_by_the_id(self, captured: Checkout) -> None:
        """The statement must find its row by the primary key, and must not search all open operations.

        The planner might choose the search if there were few open operations when PostgreSQL collected
        statistics. During a sale, there are many.
        """
        facts = ("state", "reference", "reason", "action_url", "lease_token", "ended_at", "next_attempt_at")
        operation = Operation.objects.all()[0]
        parameters = dict.fromkeys((*facts, *statements.PAYMENT_OUTCOME_COLUMNS, "held_lease"))
        parameters |= {"id": operation.pk, "status": "captured"}
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(
                f"EXPLAIN {statements.RECORD_OUTCOME}",
                parameters | ledger.posting_parameters(operation, "succeeded", ""),
            )
            plan = " ".join(line for (line,) in cursor.fetchall())
        assert "payments_operation_pkey" in plan and "payments_payment_pkey" in plan

    def test_updates_the_payment_and_posts_in_one_statement(self, in_doubt: InDoubt) -> None:
        capture, now = operations.read_operation(in_doubt("capture").pk), clock.now()
        with transaction.atomic():
            with CaptureQueriesContext(connection) as sent:
                outcome = Outcome(Verdict.SUCCEEDED, reference="ch_1")
                assert operations.save_outcome(capture, outcome, now=now, lease=None)
                assert not operations.save_outcome(capture, Outcome(Verdict.FAILED), now=now, lease=None)
            found = operations.read_operation(capture.pk)
            moved = Movement.objects.get(operation=capture)
            lines = set(Posting.objects.filter(transaction=moved.pk).values_list("account", "amount"))
            # Do not commit the operation, because the test has not changed the order's row to match it.
            transaction.set_rollback(True)
        assert len(sent) == 1
        assert lines == {("provider", capture.amount), ("merchant", -capture.amount)}
        assert (moved.kind, moved.amount, moved.reference) == ("captured", capture.amount, "ch_1")
        for seen in (found, capture):
            assert (seen.state, seen.ended_at, seen.payment.status) == ("succeeded", now, "captured")


class TestAnotherAmount:
    @pytest.mark.rule("doubt.amount")
    @pytest.mark.parametrize("kind", ["capture", "void", "refund"])
    def test_is_not_accepted_as_an_outcome(
        self, in_doubt: InDoubt, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        operation, answer = in_doubt(kind), fault_injection.call_with_faults
        before = operation.payment.status

        def call(verb: str, arguments: dict[str, Any]) -> Outcome:
            outcome = answer(verb, arguments)
            return outcome if outcome.amount is None else replace(outcome, amount=1)

        monkeypatch.setattr(fault_injection, "call_with_faults", call)
        pump()
        pump()
        found = Discrepancy.objects.get()
        assert (found.kind, found.operation, found.facts) == ("another_amount", operation, {"amount": 1})
        operation.refresh_from_db()
        assert (operation.state, operation.payment.status) == ("unknown", before)

    @pytest.mark.rule("pay.held_for_less")
    def test_of_a_hold_that_the_payer_gave_up_does_not_block_its_release(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        break_down("authorize", "partial_hold")
        pay(unpaid, "4000002500003155")
        given_up_cards.allow_another_card(unpaid.pk)
        pump()
        assert Charge.objects.get().state == "voided" and not Discrepancy.objects.exists()
        assert not Operation.objects.filter(ended_at=None).exists()

    @pytest.mark.rule("pay.held_for_less")
    def test_of_a_hold_is_a_refusal_and_the_hold_is_released(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        break_down("authorize", "partial_hold")
        assert pay(unpaid).status == "created"
        payment = Payment.objects.get()
        assert (payment.status, payment.decline_reason) == ("declined", "held_for_less")
        assert (Charge.objects.get().amount, Charge.objects.get().state) == (4500, "held")
        pump()
        assert Charge.objects.get().state == "voided" and not Discrepancy.objects.exists()
        assert pay(unpaid).status == "authorized"

    def test_of_a_challenged_hold_is_checked_once_it_is_held(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        break_down("authorize", "partial_hold")
        pay(unpaid, "4000002500003155")
        operation = Operation.objects.get()
        assert operation.state == "needs_action"
        bank.answer_challenge(key=operation.pk, is_confirmed=True)
        pump()
        pump()
        assert Payment.objects.get().decline_reason == "held_for_less"
        assert Charge.objects.get().state == "voided" and not Discrepancy.objects.exists()
