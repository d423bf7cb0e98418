"""If no card can take a refund, an operator can book it as settled outside the service.

The provider must allow it. The refund is booked only once, and the booking can be reversed.
"""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from checkout import captures, refunds
from checkout.models import Checkout
from checkout.proof import ledger_proof
from checkout.remedies import settling_outside, status_check
from checkout.remedies.status_check import NotAllowed
from checkout.restore import repair
from config.lib import clock
from payments import planning
from payments.discrepancies import kinds, reporting
from payments.models import Booking, Discrepancy, Operation
from payments.provider import CARD_CANNOT_TAKE_IT
from payments.providers.sandbox import disputing, fault_injection
from payments.providers.sandbox.models import Charge
from tests import mates, outside
from tests.checkout.remedies.remedy import (
    ACCOUNT_CLOSED,
    NOTE,
    change_bank_record,
    close,
    look_into_disputes,
    refund_in_dashboard,
    refuses,
    send,
)
from tests.factories import CAUSE
from tests.restoring import Backup

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("impatient", "proven")]


class TestSettlingAPartOutside:
    def test_completes_the_refund(self, unpaid: Checkout, stuck: Operation) -> None:
        close(stuck)
        unpaid.refresh_from_db()
        assert (unpaid.status, unpaid.refunded_amount) == ("refunded", 9000)
        assert unpaid.refunds.get().status == "settled"
        booked = Booking.objects.get()
        assert (booked.kind, booked.amount, booked.payment) == ("settled_outside", 2000, stuck.payment)
        assert (booked.operation, booked.note, booked.actor) == (stuck, NOTE, CAUSE.actor)
        assert outside.balances(unpaid) == {"provider": 2000, "outside": -2000}
        assert Discrepancy.objects.get(kind="refund_part_failed").closed_at is not None
        assert unpaid.payment_requests.get().status == "refunded"

    def test_ends_its_retries(self, unpaid: Checkout, stuck: Operation) -> None:
        assert planning.attempts_at_same_part(stuck).filter(state="planned").exists()
        close(stuck)
        mates.pump(unpaid.pk, rounds=2)
        assert not Operation.objects.filter(ended_at=None).exists()
        assert Charge.objects.get(last4="5126").refunded_amount == 0

    def test_lets_the_other_parts_of_the_refund_proceed(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        (share,) = mates.split(unpaid, 2000)
        pay(unpaid)
        captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        mates.pay(share)
        assert mates.settled(share) == "reimbursed"
        refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        fault_injection.set_fault(verb="refund", mode="refund_card_closed", times=1)
        mates.pump(unpaid.pk)
        close(Operation.objects.select_related("payment").get(reason="card_account_closed"))
        unpaid.refresh_from_db()
        assert unpaid.status == "refunding" and ledger_proof.find_breaches() == []
        mates.pump(unpaid.pk)
        unpaid.refresh_from_db()
        assert unpaid.status == "refunded"

    def test_is_refused_while_a_card_of_the_order_is_disputed(self, stuck: Operation) -> None:
        disputing.dispute_payment(payment=stuck.payment_id)
        look_into_disputes(stuck)
        refuses(close, stuck, "disputed, so the money could go back twice")
        refuses(send, stuck, "disputed, so the money could go back twice")

    @pytest.mark.rule("sync.outside")
    def test_books_at_most_the_amount_that_the_card_is_still_owed(
        self, unpaid: Checkout, stuck: Operation
    ) -> None:
        Charge.objects.filter(last4="5126").update(last4="4444")
        refund_in_dashboard(stuck, 500)
        Charge.objects.filter(last4="4444").update(last4="5126")
        close(stuck)
        unpaid.refresh_from_db()
        assert (unpaid.status, unpaid.refunds.get().status) == ("refunded", "settled")
        assert Booking.objects.get().amount == 1500
        assert outside.balances(unpaid) == {"provider": 1500, "outside": -1500}

    @pytest.mark.rule("operator.once")
    def test_twice_books_once(self, stuck: Operation) -> None:
        close(stuck)
        refuses(close, stuck, "No refund is owed to the card")
        assert Booking.objects.count() == 1

    @pytest.mark.rule("operator.once")
    def test_twice_at_once_books_once(self, monkeypatch: pytest.MonkeyPatch, stuck: Operation) -> None:
        look_up, others = status_check.look_up, [stuck]

        def meanwhile(operation: Operation) -> Any:
            outcome = look_up(operation)
            if others:
                close(others.pop())
            return outcome

        monkeypatch.setattr(status_check, "look_up", meanwhile)
        with pytest.raises(NotAllowed):
            close(stuck)
        assert Booking.objects.count() == 1

    @pytest.mark.rule("operator.asks_first")
    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            ({"reason": "try_again_later"}, r"it failed \(try again later\)"),
            ({"verdict": "pending", "reason": "", "settles_at": None}, "accepted, and not settled"),
        ],
    )
    def test_is_refused_if_the_provider_gives_another_outcome(
        self, stuck: Operation, answer: dict[str, Any], words: str
    ) -> None:
        change_bank_record(stuck, **answer)
        refuses(close, stuck, words)

    def test_is_refused_if_the_provider_gives_no_clear_answer(self, stuck: Operation) -> None:
        fault_injection.set_fault(verb="look_up", mode="down", times=1)
        refuses(close, stuck, "nothing clear")

    def test_is_refused_while_another_attempt_is_under_way(self, unpaid: Checkout, stuck: Operation) -> None:
        fault_injection.set_fault(verb="refund", mode="down", times=1)
        mates.pump(unpaid.pk)
        refuses(close, stuck, "under way")

    def test_is_refused_for_a_refund_that_failed_completely(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        paid = pay(unpaid, ACCOUNT_CLOSED)
        captures.capture(paid.merchant, paid.pk, cause=CAUSE)
        refunds.accept(paid.merchant, paid.pk, ref="r-1", cause=CAUSE)
        mates.pump(paid.pk, rounds=2)
        refuses(close, Operation.objects.get(kind="refund"), "The whole refund failed")

    def test_is_refused_for_an_operation_that_is_not_a_failed_refund(
        self, unpaid: Checkout, stuck: Operation
    ) -> None:
        for operation in Operation.objects.exclude(pk=stuck.pk):
            refuses(close, operation, "Only a refund that failed or was returned")

    def test_closes_a_reimbursement(self, unpaid: Checkout, owed: Operation) -> None:
        reporting.report_operation(owed, kinds.SHARE_NOT_REIMBURSED, subject=owed.share_uuid)
        close(owed)
        unpaid.refresh_from_db()
        assert (unpaid.status, unpaid.payment_requests.get().status) == ("captured", "reimbursed")
        assert outside.balances(unpaid) == {"provider": 11_000, "merchant": -9000, "outside": -2000}
        assert Discrepancy.objects.get().closed_at is not None
        assert not Operation.objects.filter(ended_at=None).exists()
        refuses(close, owed, "No refund is owed to the card")

    @pytest.mark.rule("money.proof")
    def test_breaks_no_invariant_if_staff_then_refund_the_whole_card_in_the_dashboard(
        self, unpaid: Checkout, owed: Operation
    ) -> None:
        close(owed)
        Charge.objects.filter(last4="5126").update(last4="4444")
        refund_in_dashboard(owed, 9000)
        look_into_disputes(owed)
        assert outside.balances(unpaid) == {"provider": 2000, "outside": -2000}
        assert ledger_proof.find_breaches() == []

    def test_followed_by_a_dashboard_refund_of_the_same_part_reports_the_excess_once(
        self, unpaid: Checkout, stuck: Operation
    ) -> None:
        close(stuck)
        Charge.objects.filter(last4="5126").update(last4="4444")
        refund_in_dashboard(stuck, 2000)
        look_into_disputes(stuck)
        report = Discrepancy.objects.get(closed_at=None)
        assert (report.kind, report.facts["amount"]) == ("card_got_too_much", 2000)
        assert ledger_proof.find_breaches() == []

    def test_booking_is_append_only(self, stuck: Operation) -> None:
        close(stuck)
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            Booking.objects.update(note="Another")

    def test_knows_the_banks_reason_for_a_closed_account(self, stuck: Operation) -> None:
        assert stuck.reason in CARD_CANNOT_TAKE_IT


@pytest.mark.rule("money.booked")
class TestReversingTheBooking:
    def test_makes_the_amount_due_to_the_card_again(self, unpaid: Checkout, stuck: Operation) -> None:
        close(stuck)
        settling_outside.reverse_booking(Booking.objects.get().pk, note="It never arrived", cause=CAUSE)
        unpaid.refresh_from_db()
        assert outside.balances(unpaid) == {"provider": 2000, "merchant": -2000}
        assert unpaid.status == "refunded" and ledger_proof.find_breaches() == []
        assert Discrepancy.objects.get(kind="refund_returned").closed_at is None
        Charge.objects.filter(last4="5126").update(last4="4444")
        send(stuck)
        outside.settle(unpaid)
        assert outside.balances(unpaid) == {} and unpaid.refunds.get().status == "settled"
        assert not Discrepancy.objects.filter(closed_at=None).exists()

    def test_of_a_share_makes_the_amount_due_to_the_lead_again(
        self, unpaid: Checkout, owed: Operation
    ) -> None:
        close(owed)
        settling_outside.reverse_booking(Booking.objects.get().pk, note="It never arrived", cause=CAUSE)
        assert outside.balances(unpaid) == {"provider": 11_000, "merchant": -9000, "lead": -2000}
        assert ledger_proof.find_breaches() == []

    @pytest.mark.rule("operator.once")
    def test_is_possible_only_once(self, stuck: Operation) -> None:
        close(stuck)
        booking = Booking.objects.get()
        settling_outside.reverse_booking(booking.pk, note="It never arrived", cause=CAUSE)
        for row in Booking.objects.all():
            with pytest.raises(NotAllowed, match="can be taken back, and only once"):
                settling_outside.reverse_booking(row.pk, note="Again", cause=CAUSE)
        assert Booking.objects.count() == 2


@pytest.mark.rule("restore.decisions")
class TestADecisionThatARestoreHasLost:
    def test_ends_the_planned_refund_when_it_is_repeated(self, unpaid: Checkout, stuck: Operation) -> None:
        """The provider does not know that the payer has the money. No worker runs until the decision is repeated."""
        backup, began = Backup(), clock.now()
        close(stuck)
        backup.restore()
        repair.repair(began)
        assert planning.attempts_at_same_part(stuck).filter(state="planned").exists()
        close(stuck)
        mates.pump(unpaid.pk, rounds=2)
        assert not Operation.objects.filter(ended_at=None).exists()
        assert Charge.objects.get(last4="5126").refunded_amount == 0
        unpaid.refresh_from_db()
        assert unpaid.status == "refunded"
