"""However a provider behaves, no operation takes effect twice, is retried without a pause, or stays open forever."""

from collections.abc import Callable

import pytest

from checkout import cancellations, refunds
from checkout.models import Checkout, PaymentRequest
from checkout.proof import ledger_proof
from config.lib import clock
from payments import operation_queue, planning
from payments.discrepancies import kinds, reporting
from payments.models import Discrepancy, Operation, Payment
from payments.provider import Outcome, Verdict
from payments.providers.sandbox import bank
from payments.providers.sandbox.models import Charge
from tests import factories, mates
from tests.factories import CAUSE
from tests.outages import break_down, leave_in_doubt, pass_time, pump

pytestmark = pytest.mark.django_db


class TestAHold:
    def test_in_doubt_is_looked_up_until_the_provider_gives_a_clear_outcome(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        break_down("authorize", "done_then_reset")
        pay(unpaid)
        operation = Operation.objects.select_related("payment").get()
        pass_time(operation, hours=25)
        break_down("look_up", "down", times=3)
        pump()
        operation.refresh_from_db()
        assert operation.ended_at is None
        break_down("look_up", "down", times=0)
        pump()
        pump()
        assert Charge.objects.get().state == "voided" and ledger_proof.find_breaches() == []

    @pytest.mark.parametrize("no", [Verdict.DECLINED, Verdict.FAILED])
    def test_whose_release_is_refused_is_released_later(self, held: Checkout, no: Verdict) -> None:
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        void = Operation.objects.select_related("payment").get(kind="void")
        factories.record(void, Outcome(no, reason="try_later"))
        pump()
        assert (Payment.objects.get().status, Charge.objects.get().state) == ("voided", "voided")

    def test_whose_release_is_refused_waits_for_a_capture_under_an_earlier_key(self, held: Checkout) -> None:
        """The provider vouches that it does not have the capture, and carries out the earlier call later."""
        earlier = leave_in_doubt(held)
        break_down("capture", "down", times=9)
        while not planning.was_replaced(earlier):
            operation_queue.make_due(earlier)
            mates.finish(earlier)
            earlier.refresh_from_db()
        factories.make_late(held)
        break_down("void", "void_refused")
        mates.pump(held.pk)
        held.refresh_from_db()
        assert held.status == "authorized"
        bank.capture(key=earlier.pk, payment=earlier.payment_id)
        mates.pump(held.pk)
        held.refresh_from_db()
        assert (held.status, Charge.objects.get().state) == ("captured", "captured")
        assert ledger_proof.find_breaches() == []

    def test_that_staff_released_in_the_dashboard_counts_as_released(self, held: Checkout) -> None:
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        bank.act_in_dashboard(kind="void", payment=held.payment_id or held.pk)
        break_down("void", "void_refused")
        reporting.report(kinds.VOID_REFUSED, held.payment_id)
        pump()
        assert Payment.objects.get().status == "voided"
        assert not Discrepancy.objects.filter(closed_at=None).exists()

    def test_that_was_given_up_is_looked_up_without_changing_the_order(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        break_down("authorize", "done_then_reset")
        pay(unpaid)
        operation = Operation.objects.select_related("payment").get()
        pass_time(operation, hours=2)
        Payment.objects.update(abandoned_at=clock.now())
        unpaid.refresh_from_db()
        before = unpaid.updated_at
        break_down("look_up", "down")
        pump()
        unpaid.refresh_from_db()
        assert unpaid.updated_at == before


class TestAShare:
    def test_whose_hold_cannot_be_released_accepts_another_card_and_a_refund(
        self, unpaid: Checkout, share: PaymentRequest
    ) -> None:
        break_down("capture", "void_refused")
        break_down("void", "void_refused", times=99)
        mates.pay(share)
        mates.pump(unpaid.pk, rounds=3)
        share.refresh_from_db()
        assert share.status == "open" and Charge.objects.get(amount=2000).state == "held"
        refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        mates.pump(unpaid.pk, rounds=3)
        unpaid.refresh_from_db()
        assert unpaid.status == "refunded" and ledger_proof.find_breaches() == []
