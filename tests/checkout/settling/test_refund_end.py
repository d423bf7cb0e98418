"""A refund ends once all cards' charges are refunded and no mate's card is being charged."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from pytest_django.fixtures import Settings

from checkout import captures, mate_shares
from checkout.models import Checkout, PaymentRequest, Refund
from checkout.proof import ledger_proof
from config.lib import clock
from payments.models import Discrepancy, Operation, Payment
from payments.providers.sandbox import fault_injection
from payments.providers.sandbox.models import Call, Charge
from tests import factories, mates, outside
from tests.factories import CAUSE, CustomerFactory
from tests.mates import ACCOUNT_CLOSED, borne, give_back
from tests.outages import break_down

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("proven")]


class TestRefund:
    @pytest.mark.rule("refund.same_cards")
    def test_returns_to_each_card_the_amount_that_it_bore(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        mates.pay(shares[0])
        mates.settled(shares[0])
        refund = give_back(order)
        assert [mates.settled(share) for share in shares] == ["refunded", "cancelled"]
        assert borne(order) == {"4242": 0, "4444": 0}
        parts = Operation.objects.filter(refund_uuid=refund.pk).values_list("amount", "state")
        assert sorted(parts) == [(2000, "succeeded"), (7000, "succeeded")]
        order.refresh_from_db()
        assert (order.status, order.refunded_amount) == ("refunded", 9000)
        assert set(factories.balances(order.pk).values()) == {0}

    @pytest.mark.rule("refund.same_cards")
    def test_waits_for_a_pending_part_before_it_retries_a_refused_part(
        self, order: Checkout, shares: list[PaymentRequest], settings: Settings
    ) -> None:
        """The whole refund can still fail, so the proof does not require that the refused part is retried."""
        mates.pay(shares[0])
        mates.pump(order.pk)
        refund = give_back(order)
        settings.SANDBOX_REFUND_SECONDS = 3600
        fault_injection.set_fault(verb="refund", mode="refund_card_closed", times=1)
        mates.pump(order.pk)
        parts = Operation.objects.filter(refund_uuid=refund.pk).values_list("state", flat=True)
        assert sorted(parts) == ["failed", "pending"]
        assert ledger_proof.find_breaches() == []

    @pytest.mark.rule("refund.unreimbursed")
    def test_returns_an_unreimbursed_share_to_the_mate_and_the_rest_to_the_lead(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        mates.pay(shares[0])
        mates.pump(order.pk)
        refund = give_back(order)
        assert mates.settled(shares[0]) == "refunded"
        parts = Operation.objects.filter(refund_uuid=refund.pk).values_list("amount", "state")
        assert sorted(parts) == [(2000, "succeeded"), (9000, "succeeded")]
        withdrawn = Operation.objects.get(share_uuid=shares[0].pk)
        assert (withdrawn.state, withdrawn.reason, withdrawn.attempts) == ("failed", "withdrawn", 0)
        assert borne(order) == {"4242": 0, "4444": 0} and set(factories.balances(order.pk).values()) == {0}

    @pytest.mark.rule("refund.unreimbursed")
    @pytest.mark.parametrize(("fails_with", "parts"), [("", [2000, 7000]), ("refused", [2000, 2000, 7000])])
    def test_is_reduced_by_a_pending_reimbursement(
        self,
        order: Checkout,
        shares: list[PaymentRequest],
        settings: Settings,
        fails_with: str,
        parts: list[int],
    ) -> None:
        settings.SANDBOX_REFUND_SECONDS = 3600
        mates.pay(shares[0])
        mates.pump(order.pk, rounds=2)
        on_its_way = Operation.objects.get(share_uuid=shares[0].pk)
        assert on_its_way.state == "pending"
        refund = give_back(order)
        planned = Operation.objects.filter(refund_uuid=refund.pk).values_list("amount", flat=True)
        assert sorted(planned) == [2000, 7000], "nothing waits for it"
        Call.objects.filter(reference=on_its_way.pk).update(fails_with=fails_with)
        settings.SANDBOX_REFUND_SECONDS = 0
        for _ in range(3):
            outside.settle(order)
        assert order.status == "refunded"
        assert (
            sorted(Operation.objects.filter(refund_uuid=refund.pk).values_list("amount", flat=True)) == parts
        )
        assert borne(order) == {"4242": 0, "4444": 0} and outside.balances(order) == {}

    @pytest.mark.rule("refund.failed", "share.pauses")
    def test_that_fails_reopens_the_links_and_extends_them_by_the_lost_time(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        share, _ = mates.split(unpaid, 2000, 3000)
        pay(unpaid, ACCOUNT_CLOSED)
        order = captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        refund = give_back(order)
        paused = timedelta(hours=5)
        Refund.objects.filter(pk=refund.pk).update(created_at=refund.created_at - paused)
        with pytest.raises(mate_shares.ShareNotOpen) as refused:
            mates.pay(share)
        assert refused.value.status == "refunding"
        assert mates.settled(share) == "open"
        order.refresh_from_db()
        assert order.status == "captured" and order.captured_at and share.expires_at
        assert share.expires_at - order.captured_at >= timedelta(days=14) + paused

    @pytest.mark.rule("refund.goes_on")
    def test_with_a_settled_part_continues_until_all_parts_have_settled(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        mates.pay(shares[0], ACCOUNT_CLOSED)
        mates.settled(shares[0])
        give_back(order)
        mates.pump(order.pk, rounds=3)
        order.refresh_from_db()
        assert order.status == "refunding" and ledger_proof.find_breaches() == []
        again = Operation.objects.filter(kind="refund", payment__subject=shares[0].pk).latest("created_at")
        assert again.state in ("planned", "pending")
        assert [row.kind for row in Discrepancy.objects.all()] == ["refund_part_failed"]

    def test_that_fails_completely_resumes_the_reimbursement_of_the_lead(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        (share,) = mates.split(unpaid, 2000)
        pay(unpaid, ACCOUNT_CLOSED)
        order = captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        mates.pay(share, ACCOUNT_CLOSED, CustomerFactory.create())
        mates.pump(order.pk)
        assert Payment.objects.filter(subject=share.pk, decline_reason="same_card").exists()


class TestAMatesPaymentInDoubt:
    def test_delays_the_refund_to_no_other_card(self, unpaid: Checkout, shares: list[PaymentRequest]) -> None:
        break_down("authorize", "done_then_reset")
        break_down("look_up", "down", times=99)
        mates.pay(shares[0])
        refund = give_back(unpaid)
        break_down("look_up", "down", times=1)
        mates.pump(unpaid.pk, rounds=2)
        break_down("look_up", "down", times=0)
        whole = Operation.objects.get(refund_uuid=refund.pk)
        assert (whole.amount, whole.payment.subject) == (9000, unpaid.pk)

    @pytest.mark.rule("refund.waits")
    def test_is_given_up_after_an_hour_and_the_refund_ends(
        self, unpaid: Checkout, shares: list[PaymentRequest]
    ) -> None:
        break_down("authorize", "done_then_reset")
        mates.pay(shares[0])
        give_back(unpaid)
        operation = Operation.objects.get(payment__subject=shares[0].pk)
        self.run_pump_without_answers(unpaid, rounds=4)
        unpaid.refresh_from_db()
        assert unpaid.status == "refunding"
        Operation.objects.filter(pk=operation.pk).update(created_at=clock.now() - timedelta(minutes=61))
        self.run_pump_without_answers(unpaid, rounds=1)
        unpaid.refresh_from_db()
        assert unpaid.status == "refunded"
        mates.pump(unpaid.pk, rounds=3)
        assert Charge.objects.get(amount=2000).state == "voided", "what is found later is let go"
        assert ledger_proof.find_breaches() == []

    def run_pump_without_answers(self, order: Checkout, *, rounds: int) -> None:
        """Run the pump while the bank does not respond to look-ups of the mate's card."""
        for _ in range(rounds):
            mates_card = Operation.objects.filter(kind="authorize", ended_at=None)
            mates_card.update(next_attempt_at="2020-01-01T00:00Z")
            break_down("look_up", "down")
            mates.finish(mates_card.get())
            break_down("look_up", "down", times=0)
            others = Operation.objects.filter(ended_at=None).exclude(kind="authorize")
            others.update(next_attempt_at="2020-01-01T00:00Z")
            for operation in others:
                mates.finish(operation)


class TestAMatesCapture:
    """A mate's capture whose outcome is unknown when the order is refunded.

    The capture is not sent again. A void, called a fence, proves whether it happened.
    """

    @pytest.mark.parametrize(("mode", "end"), [("down", "cancelled"), ("done_then_reset", "refunded")])
    def test_in_doubt_is_resolved_before_the_refund_ends(
        self, unpaid: Checkout, shares: list[PaymentRequest], mode: str, end: str
    ) -> None:
        break_down("capture", mode)
        mates.pay(shares[0])
        mates.pump(unpaid.pk)
        assert Operation.objects.get(payment__subject=shares[0].pk, kind="capture").state == "unknown"
        give_back(unpaid)
        assert mates.settled(shares[0]) == end
        captures = Operation.objects.filter(payment__subject=shares[0].pk, kind="capture")
        assert captures.get().attempts == 2
        unpaid.refresh_from_db()
        assert unpaid.status == "refunded" and ledger_proof.find_breaches() == []
        assert sum(row.amount - row.refunded_amount for row in Charge.objects.filter(state="captured")) == 0

    @pytest.mark.rule("refund.waits")
    def test_delays_only_the_end_of_the_refund(self, unpaid: Checkout, shares: list[PaymentRequest]) -> None:
        mates.pay(shares[0])
        mates_charge = Charge.objects.filter(amount=shares[0].amount)
        mates_charge.update(silent_until=clock.now() + timedelta(days=1))
        mates.pump(unpaid.pk)
        give_back(unpaid)
        mates.pump(unpaid.pk, rounds=3)
        Operation.objects.filter(kind="capture", ended_at=None).update(
            created_at=clock.now() - timedelta(hours=3)
        )
        mates.pump(unpaid.pk, rounds=3)
        unpaid.refresh_from_db()
        assert borne(unpaid)["4242"] == 0 and unpaid.status == "refunding"
        mates_charge.update(silent_until=clock.now())
        assert mates.settled(shares[0]) == "cancelled"
        unpaid.refresh_from_db()
        assert unpaid.status == "refunded"
