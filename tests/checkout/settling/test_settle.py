"""Each card gets the amount that it is owed, and gets it only once.

In the tests, mates, merchants, staff, banks and operators act in different orders.
"""

from collections.abc import Callable

import pytest
from django.db import transaction
from pytest_django.fixtures import Settings

from checkout import captures, mate_shares, refunds, settling
from checkout.models import Checkout, PaymentRequest, Refund
from checkout.remedies import sending, settling_outside
from config.lib import clock
from payments import planning
from payments.models import Booking, Discrepancy, Movement, Operation, Payment
from payments.providers.sandbox import client, fault_injection
from payments.providers.sandbox import settling as bank_settling
from payments.providers.sandbox.models import Call
from tests import mates, outside
from tests.factories import CAUSE

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted", "proven")]


def planned() -> list[tuple[str, int]]:
    """Return the card's last four digits and the amount of each planned refund."""
    rows = Operation.objects.filter(kind="refund", state="planned").select_related("payment").order_by("pk")
    return [(row.payment.card_last4, row.amount) for row in rows]


def settle_all(order: Checkout) -> Checkout:
    for _ in range(3):
        outside.settle(order)
    return Checkout.objects.select_related("payment").get(pk=order.pk)


def settle_again(order: Checkout) -> None:
    """Run `settle` although no fact has changed, so it must not change any row."""
    with transaction.atomic():
        settling.settle(Checkout.objects.locked(order.pk), clock.now())


def refund(order: Checkout, ref: str = "r-1") -> Checkout:
    refunds.accept(order.merchant, order.pk, ref=ref, cause=CAUSE)
    return settle_all(order)


class TestACapturedOrder:
    @pytest.mark.rule("reimburse.lead")
    def test_owes_the_lead_the_share_that_a_mate_has_paid(
        self, unpaid: Checkout, shared: PaymentRequest
    ) -> None:
        assert planned() == [("4242", 3000)]
        settle_all(unpaid)
        shared.refresh_from_db()
        assert shared.status == "reimbursed"
        assert mates.borne(unpaid) == {"4242": 6000, "4444": 3000}
        assert outside.balances(unpaid) == {"provider": 9000, "merchant": -9000}

    def test_is_settled_only_after_all_its_books_are_recorded(
        self, unpaid: Checkout, shared: PaymentRequest
    ) -> None:
        order, now = Checkout.objects.locked(unpaid.pk), clock.now()
        planning.withdraw_planned(Operation.objects.filter(share_uuid=shared.pk), now=now)
        with settling.defer_settling(order):
            settling.settle(order, now)
            assert planned() == []
        settling.settle(order, now)
        assert planned() == [("4242", 3000)]

    @pytest.mark.rule("sync.outside")
    @pytest.mark.parametrize("amount", [4000, 8999])
    def test_refunds_what_a_dashboard_refund_has_left(self, captured: Checkout, amount: int) -> None:
        outside.refund_outside(captured.payment, amount)
        captured.refresh_from_db()
        assert (captured.status, planned()) == ("captured", [])
        assert refund(captured).status == "refunded"
        assert mates.borne(captured) == {"4242": 0}
        assert outside.balances(captured) == {}

    @pytest.mark.rule("sync.outside")
    def test_is_refunded_at_once_if_staff_have_refunded_all_of_it(self, captured: Checkout) -> None:
        outside.refund_outside(captured.payment, captured.amount)
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        captured.refresh_from_db()
        assert captured.status == "refunded"
        assert Operation.objects.filter(purpose="refund_part").count() == 0

    @pytest.mark.rule("sync.outside")
    def test_refunds_again_the_amount_of_a_dashboard_refund_that_failed_later(
        self, captured: Checkout
    ) -> None:
        reference = outside.refund_outside(captured.payment, 4000)
        captured = refund(captured)
        line = Call.objects.get(pk=reference)
        line.returns_at = clock.now()
        line.save()
        outside.come_back()
        assert Discrepancy.objects.filter(kind="outside_refund_failed", closed_at=None).count() == 1
        assert (captured.status, planned()) == ("refunded", [("4242", 4000)])
        assert not Discrepancy.objects.filter(kind="refund_part_failed").exists()
        settle_all(captured)
        assert mates.borne(captured) == {"4242": 0}

    @pytest.mark.rule("sync.outside", "refund.same_cards")
    def test_refunds_the_amount_of_a_failed_dashboard_refund_while_its_own_refund_is_pending(
        self, captured: Checkout, settings: Settings
    ) -> None:
        reference = outside.refund_outside(captured.payment, 4000, is_pending=True)
        settings.SANDBOX_REFUND_SECONDS = 3600
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        mates.pump(captured.pk)
        assert Operation.objects.get(purpose="refund_part").state == "pending"
        assert captured.payment_id is not None
        bank_settling.end_refund(
            payment=captured.payment_id, reference=reference, fails_with=bank_settling.CARD_CLOSED
        )
        outside.hear()
        assert planned() == [("4242", 4000)]

    @pytest.mark.rule("sync.links")
    def test_ends_its_links_when_staff_refund_it(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        (share,) = mates.split(unpaid, 3000)
        order = captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
        outside.refund_outside(order.payment, 4000)
        share.refresh_from_db()
        assert share.status == "cancelled"
        with pytest.raises(mate_shares.ShareNotOpen):
            mates.pay(share)

    @pytest.mark.rule("sync.links")
    @pytest.mark.parametrize("is_confirmed", [False, True])
    def test_ends_the_share_that_is_being_paid_when_staff_refund_it(
        self, unpaid: Checkout, pay: Callable[..., Checkout], is_confirmed: bool
    ) -> None:
        """The mate answers the bank's challenge after the refund. No money is taken, and the share stays ended."""
        (share,) = mates.split(unpaid, 3000)
        order = captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
        mates.pay(share, mates.CHALLENGED)
        outside.refund_outside(order.payment, 4000)
        share.refresh_from_db()
        assert share.status == "paying"
        asked = Operation.objects.get(kind="authorize", state="needs_action")
        client.call_bank("answer_challenge", key=asked.pk, is_confirmed=is_confirmed)
        mates.pump(order.pk, rounds=3)
        share.refresh_from_db()
        assert share.status == "cancelled"
        assert mates.borne(order) == {"4242": 5000}

    @pytest.mark.rule("doubt.unknown", "sync.outside")
    def test_does_not_report_an_excess_refund_while_a_refund_is_in_doubt(self, captured: Checkout) -> None:
        """Refunds count once the provider has accepted them. The refund in doubt might never have arrived there."""
        outside.refund_outside(captured.payment, 4500, is_pending=True)
        fault_injection.set_fault(verb="refund", mode="down", times=1)
        fault_injection.set_fault(verb="look_up", mode="down", times=1)
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        mates.pump(captured.pk)
        assert Operation.objects.get(kind="refund", purpose="refund_part").state == "unknown"
        outside.refund_outside(captured.payment, 4500, is_pending=True)
        assert not Discrepancy.objects.filter(kind="card_got_too_much").exists()

    @pytest.mark.rule("sync.outside")
    @pytest.mark.parametrize(("amount", "taken"), [(9000, []), (8999, [1]), (6001, [2999])])
    def test_reports_an_amount_owed_to_a_lead_whose_card_cannot_take_it(
        self, unpaid: Checkout, shared: PaymentRequest, amount: int, taken: list[int]
    ) -> None:
        unpaid.refresh_from_db()
        outside.refund_outside(unpaid.payment, amount)
        assert [planned_amount for _, planned_amount in planned()] == taken
        report = Discrepancy.objects.get(kind="owed_beyond_card", closed_at=None)
        assert report.facts["amount"] == 3000 - sum(taken)
        assert refund(unpaid).status == "refunded"
        assert mates.borne(unpaid) == {"4242": 0, "4444": 0}
        assert outside.balances(unpaid) == {}
        assert Discrepancy.objects.filter(kind="owed_beyond_card", closed_at=None).count() == 0

    @pytest.mark.rule("sync.outside", "reimburse.lead")
    def test_reimburses_the_lead_after_the_dashboard_refund_that_filled_the_card_is_returned(
        self, unpaid: Checkout, shared: PaymentRequest
    ) -> None:
        unpaid.refresh_from_db()
        reference = outside.refund_outside(unpaid.payment, 9000)
        reports = Discrepancy.objects.filter(kind="owed_beyond_card", closed_at=None)
        assert reports.count() == 1
        Call.objects.filter(pk=reference).update(returns_at=clock.now())
        outside.come_back()
        assert mates.settled(shared) == "reimbursed"
        assert not reports.exists()

    @pytest.mark.rule("reimburse.lead")
    def test_plans_the_reimbursement_of_one_share_while_that_of_another_is_pending(
        self, unpaid: Checkout, links: list[PaymentRequest], settings: Settings
    ) -> None:
        settings.SANDBOX_REFUND_SECONDS = 3600
        mates.pay(links[0])
        mates.pump(unpaid.pk, rounds=2)
        assert Operation.objects.get(kind="refund").state == "pending"
        mates.pay(links[1], mates.AMYS)
        for capture in Operation.objects.filter(payment__subject=links[1].pk, ended_at=None):
            mates.finish(capture)
        reimbursement = Operation.objects.get(kind="refund", state="planned")
        assert (reimbursement.share_uuid, reimbursement.amount) == (links[1].pk, 2000)


class TestARefundedOrder:
    @pytest.mark.rule("doubt.old_key")
    def test_whose_dashboard_refund_failed_can_be_settled_by_an_operator(self, captured: Checkout) -> None:
        assert captured.payment_id is not None
        reference = outside.refund_outside(captured.payment, 4000)
        assert refund(captured).status == "refunded"
        fault_injection.set_fault(verb="refund", mode="refund_card_closed", times=1)
        bank_settling.end_refund(
            payment=captured.payment_id, reference=reference, fails_with=bank_settling.CARD_CLOSED
        )
        outside.hear()
        mates.pump(captured.pk)
        refused = Operation.objects.get(kind="refund", state="failed", amount=4000)
        settling_outside.settle_outside(refused.pk, note="By bank transfer", cause=CAUSE)
        assert outside.balances(captured) == {"provider": 4000, "outside": -4000}


class TestAReturnedRefund:
    @pytest.fixture
    def refunded(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> Checkout:
        captures.capture(unpaid.merchant, pay(unpaid, outside.RETURNS).pk, cause=CAUSE)
        return refund(unpaid)

    @pytest.mark.rule("refund.returned")
    def test_waits_for_an_operator_and_can_be_sent_again(self, refunded: Checkout) -> None:
        assert refunded.status == "refunded"
        outside.come_back()
        back = outside.returned(refunded)
        assert (planned(), Refund.objects.get().status) == ([], "failed")
        Call.objects.update(returns_at=None)
        sending.send_again(back.pk, cause=CAUSE)
        settle_again(refunded)
        assert planned() == [("7726", 9000)], "an operator has planned it"
        settle_all(refunded)
        Call.objects.update(returns_at=None)
        assert (Refund.objects.get().status, mates.borne(refunded)) == ("settled", {"7726": 0})
        assert Discrepancy.objects.filter(closed_at=None).count() == 0

    @pytest.mark.rule("refund.returned")
    @pytest.mark.parametrize("amount", [4000, 8999])
    def test_that_staff_refunded_in_part_is_sent_again_for_the_rest(
        self, refunded: Checkout, amount: int
    ) -> None:
        outside.come_back()
        outside.refund_outside(refunded.payment, amount)
        assert Discrepancy.objects.filter(kind="refund_returned", closed_at=None).count() == 1
        back = outside.returned(refunded)
        Call.objects.update(returns_at=None)
        sending.send_again(back.pk, cause=CAUSE)
        assert planned() == [("7726", 9000 - amount)]

    @pytest.mark.rule("refund.returned", "operator.once")
    def test_can_be_settled_outside_and_the_booking_can_be_reversed(self, refunded: Checkout) -> None:
        outside.come_back()
        back = outside.returned(refunded)
        settling_outside.settle_outside(back.pk, note="By bank transfer", cause=CAUSE)
        booking = Booking.objects.get()
        assert (booking.amount, Refund.objects.get().status) == (9000, "settled")
        settling_outside.reverse_booking(booking.pk, note="It never arrived", cause=CAUSE)
        assert Refund.objects.get().status == "failed"
        assert sum(row.amount for row in Booking.objects.all()) == 0

    @pytest.mark.rule("operator.once")
    @pytest.mark.parametrize("amount", [1, 4000])
    def test_that_was_settled_outside_and_refunded_by_staff_too_is_reported(
        self, refunded: Checkout, amount: int
    ) -> None:
        """The refund by staff counts as soon as the bank has accepted it."""
        outside.come_back()
        settling_outside.settle_outside(outside.returned(refunded).pk, note="In cash", cause=CAUSE)
        outside.refund_outside(refunded.payment, amount, is_pending=True)
        report = Discrepancy.objects.get(kind="card_got_too_much")
        assert (report.subject, report.facts["amount"]) == (refunded.payment_id, amount)
        assert Refund.objects.get().status == "settled"

    @pytest.mark.rule("refund.returned", "sync.outside")
    def test_that_staff_refunded_in_full_is_replaced_by_their_refund(self, refunded: Checkout) -> None:
        outside.come_back()
        outside.refund_outside(refunded.payment, 9000)
        assert Operation.objects.get(purpose="outside").resends_id == outside.returned(refunded).pk
        assert Refund.objects.get().status == "settled"
        assert Discrepancy.objects.filter(closed_at=None).count() == 0

    @pytest.mark.rule("refund.returned", "sync.outside")
    def test_that_is_planned_again_is_withdrawn_if_staff_refund_a_part_of_it(
        self, refunded: Checkout
    ) -> None:
        outside.come_back()
        sending.send_again(outside.returned(refunded).pk, cause=CAUSE)
        outside.refund_outside(refunded.payment, 4000)
        assert (planned(), Refund.objects.get().status) == ([], "failed")
        assert Discrepancy.objects.filter(kind="refund_returned", closed_at=None).count() == 1


@pytest.mark.rule("money.balanced")
def test_every_capture_and_refund_at_the_bank_is_one_movement(
    unpaid: Checkout, shared: PaymentRequest
) -> None:
    settle_all(unpaid)
    unpaid.refresh_from_db()
    refund(unpaid)
    kinds = Movement.objects.values_list("kind", flat=True)
    assert sorted(kinds) == ["captured", "captured", "refunded", "refunded", "refunded"]
    for payment in Payment.objects.filter(checkout_uuid=unpaid.pk):
        outside.ask_about(payment)
    assert Movement.objects.count() == 5, "asked again, the same facts are known"
