from collections.abc import Callable
from datetime import timedelta

import pytest
from pytest_django.fixtures import Settings

from checkout import captures, mate_shares, operation_recovery, states
from checkout.models import Checkout, PaymentRequest
from checkout.proof import ledger_proof
from payments.models import Discrepancy, Operation, Payment
from payments.provider import Verdict
from payments.providers.sandbox import fault_injection
from tests import factories, mates
from tests.factories import CAUSE
from tests.mates import CHALLENGED, borne, give_back

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("proven")]


class TestPaying:
    @pytest.mark.rule("reimburse.lead", "share.taken")
    def test_a_share_reimburses_the_lead(self, order: Checkout, shares: list[PaymentRequest]) -> None:
        assert mates.pay(shares[0]).verdict == Verdict.SUCCEEDED
        assert mates.settled(shares[0]) == "reimbursed"
        assert borne(order) == {"4242": 7000, "4444": 2000}
        order.refresh_from_db()
        assert (order.status, order.refunded_amount) == ("captured", 0)
        assert order.payment and Payment.objects.get(pk=order.payment.pk).status == "captured"

    @pytest.mark.rule("reimburse.lead", "split.full_hold")
    def test_is_owed_to_the_lead_until_the_reimbursement(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        mates.pay(shares[0])
        mates.pump(order.pk)
        assert PaymentRequest.objects.get(pk=shares[0].pk).status == "paid"
        assert factories.balances(order.pk) == {"provider": 11000, "merchant": -9000, "lead": -2000}
        assert ledger_proof.find_breaches() == []

    @pytest.mark.rule("reimburse.delay")
    def test_is_reimbursed_after_the_configured_delay(
        self, order: Checkout, shares: list[PaymentRequest], settings: Settings
    ) -> None:
        settings.REIMBURSEMENT_DELAY = timedelta(hours=24)
        mates.pay(shares[0])
        operation_recovery.finish_due_operations(order.pk)
        (planned,) = Operation.objects.filter(share_uuid=shares[0].pk)
        share = PaymentRequest.objects.get(pk=shares[0].pk)
        assert share.paid_at and planned.next_attempt_at == share.paid_at + timedelta(hours=24)

    def test_is_not_in_doubt_after_it_waited_for_the_delay(
        self, order: Checkout, shares: list[PaymentRequest], settings: Settings
    ) -> None:
        settings.REIMBURSEMENT_DELAY, settings.SANDBOX_REFUND_SECONDS = timedelta(hours=24), 60
        mates.pay(shares[0])
        operation_recovery.finish_due_operations(order.pk)
        ago = timedelta(hours=25)
        for operation in Operation.objects.filter(share_uuid=shares[0].pk):
            operation.created_at -= ago
            operation.next_attempt_at = operation.created_at
            operation.save()
        operation_recovery.finish_due_operations(order.pk)
        assert Operation.objects.get(share_uuid=shares[0].pk).state == "pending"
        assert not Discrepancy.objects.exists()

    def test_by_all_mates_leaves_the_lead_with_their_own_part(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        for share, card in zip(shares, (mates.FINNS, mates.AMYS), strict=True):
            mates.pay(share, card)
        assert [mates.settled(share) for share in shares] == ["reimbursed", "reimbursed"]
        assert borne(order) == {"4242": 4000, "4444": 2000, "0005": 3000}

    def test_the_whole_order_reimburses_the_lead_completely(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        (share,) = mates.split(unpaid, 9000)
        pay(unpaid)
        order = captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        mates.pay(share)
        assert mates.settled(share) == "reimbursed"
        assert borne(order) == {"4242": 0, "4444": 9000}
        give_back(order)
        assert order.payment and Payment.objects.get(pk=order.payment.pk).status == "captured"
        assert mates.settled(share) == "refunded" and borne(order) == {"4242": 0, "4444": 0}

    def test_with_a_declined_card_leaves_it_open(self, shares: list[PaymentRequest]) -> None:
        assert mates.pay(shares[0], "4000000000000002").verdict == Verdict.DECLINED
        assert mates.settled(shares[0]) == "open"
        assert mates.pay(shares[0]).verdict == Verdict.SUCCEEDED

    @pytest.mark.rule("share.not_the_lead")
    def test_with_the_leads_own_card_releases_it(self, order: Checkout, shares: list[PaymentRequest]) -> None:
        mates.pay(shares[0], "4242424242424242")
        assert mates.settled(shares[0]) == "open"
        refused = Payment.objects.get(subject=shares[0].pk)
        assert (refused.status, refused.decline_reason) == ("voided", "same_card")

    @pytest.mark.rule("share.not_the_lead")
    def test_with_the_leads_own_number_is_refused(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        with pytest.raises(mate_shares.OwnShare):
            mates.pay(shares[0], mate=order.lead)
        assert (
            mates.settled(shares[0]) == "open" and not Payment.objects.filter(subject=shares[0].pk).exists()
        )

    @pytest.mark.rule("share.one_card")
    def test_a_second_time_while_the_first_is_in_progress_is_refused(
        self, shares: list[PaymentRequest]
    ) -> None:
        mates.pay(shares[0])
        with pytest.raises(states.OperationInProgress):
            mates.pay(shares[0], mates.AMYS)
        assert mates.settled(shares[0]) == "reimbursed"
        with pytest.raises(mate_shares.ShareNotOpen):
            mates.pay(shares[0], mates.AMYS)

    def test_after_an_unanswered_challenge_charges_the_other_card(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        assert mates.pay(shares[0], CHALLENGED).verdict == Verdict.NEEDS_ACTION
        assert mates.pay(shares[0]).verdict == Verdict.SUCCEEDED
        assert mates.settled(shares[0]) == "reimbursed"
        assert borne(order) == {"4242": 7000, "4444": 2000}

    def test_survives_a_lost_answer(self, order: Checkout, shares: list[PaymentRequest]) -> None:
        for verb in ("authorize", "capture", "refund"):
            fault_injection.set_fault(verb=verb, mode="done_then_reset", times=1)
        mates.pay(shares[0])
        assert mates.settled(shares[0]) == "reimbursed"
        assert borne(order) == {"4242": 7000, "4444": 2000}

    @pytest.mark.rule("share.taken")
    def test_during_a_refund_of_the_order_takes_no_money(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        fault_injection.set_fault(verb="authorize", mode="done_then_reset", times=1)
        mates.pay(shares[0])
        give_back(order)
        assert mates.settled(shares[0]) == "cancelled"
        order.refresh_from_db()
        assert order.status == "refunded" and borne(order) == {"4242": 0}
