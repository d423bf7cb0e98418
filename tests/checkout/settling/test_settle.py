"""Each card gets the amount that it is owed, and only once.

The tests let mates, merchants, staff, banks and operators act in different orders.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from checkout import captures, mate_shares, refunds
from checkout.models import Checkout, PaymentRequest, Refund
from checkout.remedies import sending, settling_outside
from checkout.settling import cards
from config.lib import clock
from payments.models import Booking, Discrepancy, Movement, Operation, Payment
from payments.providers.sandbox import client, fault_injection
from payments.providers.sandbox import settling as bank_settling
from payments.providers.sandbox.models import Call
from tests import mates, outside
from tests.factories import CAUSE

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted", "proven")]


def planned() -> list[tuple[str, int]]:
    """Return the planned refunds: each card's last four digits and the amount."""
    rows = Operation.objects.filter(kind="refund", state="planned").select_related("payment").order_by("pk")
    return [(row.payment.card_last4, row.amount) for row in rows]


def settle_all(order: Checkout) -> Checkout:
    for _ in range(3):
        outside.settle(order)
    return Checkout.objects.select_related("payment").get(pk=order.pk)


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

    @pytest.mark.rule("sync.outside")
    def test_refunds_what_a_dashboard_refund_has_left(self, captured: Checkout) -> None:
        outside.refund_outside(captured.payment, 4000)
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
        settle_all(captured)
        assert mates.borne(captured) == {"4242": 0}

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
        """The mate answers the bank after the refund. No money is taken, and the share does not reopen."""
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
        """Refunds count once the provider has accepted them. The refund in doubt might never have arrived."""
        outside.refund_outside(captured.payment, 4500, is_pending=True)
        fault_injection.set_fault(verb="refund", mode="down", times=1)
        fault_injection.set_fault(verb="look_up", mode="down", times=1)
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        mates.pump(captured.pk)
        assert Operation.objects.get(kind="refund", purpose="refund_part").state == "unknown"
        outside.refund_outside(captured.payment, 4500, is_pending=True)
        assert not Discrepancy.objects.filter(kind="card_got_too_much").exists()

    @pytest.mark.rule("sync.outside")
    def test_reports_an_amount_owed_to_a_lead_whose_card_is_fully_refunded(
        self, unpaid: Checkout, shared: PaymentRequest
    ) -> None:
        unpaid.refresh_from_db()
        outside.refund_outside(unpaid.payment, 9000)
        assert planned() == []
        assert Discrepancy.objects.filter(kind="owed_beyond_card", closed_at=None).count() == 1
        assert refund(unpaid).status == "refunded"
        assert mates.borne(unpaid) == {"4242": 0, "4444": 0}
        assert outside.balances(unpaid) == {}
        assert Discrepancy.objects.filter(kind="owed_beyond_card", closed_at=None).count() == 0


class TestADispute:
    @pytest.mark.rule("dispute.waits")
    def test_withdraws_planned_refunds_and_plans_them_again_when_it_is_won(
        self, unpaid: Checkout, shared: PaymentRequest
    ) -> None:
        unpaid.refresh_from_db()
        found = outside.dispute(unpaid.payment)
        assert planned() == []
        outside.decide(found, is_won=True)
        assert planned() == [("4242", 3000)]

    @pytest.mark.rule("dispute.lost")
    def test_that_the_lead_wins_covers_the_shares_that_mates_have_paid(
        self, unpaid: Checkout, shared: PaymentRequest
    ) -> None:
        unpaid.refresh_from_db()
        outside.decide(outside.dispute(unpaid.payment), is_won=False)
        shared.refresh_from_db()
        assert (shared.status, planned()) == ("reimbursed", [])
        assert outside.balances(unpaid) == {"provider": 3000, "merchant": -3000}
        assert refund(unpaid).status == "refunded", "a refund gives each card what it still bears"
        assert mates.borne(unpaid)["4444"] == 0

    @pytest.mark.rule("dispute.lost")
    def test_that_is_won_on_appeal_makes_the_share_due_to_the_lead_again(
        self, unpaid: Checkout, shared: PaymentRequest
    ) -> None:
        unpaid.refresh_from_db()
        found = outside.dispute(unpaid.payment)
        outside.decide(found, is_won=False)
        outside.decide(found, is_won=True)
        shared.refresh_from_db()
        assert (shared.status, planned()) == ("paid", [("4242", 3000)])
        settle_all(unpaid)
        shared.refresh_from_db()
        assert shared.status == "reimbursed"
        assert outside.balances(unpaid) == {"provider": 9000, "merchant": -9000}

    @pytest.mark.rule("dispute.lost")
    def test_of_a_mate_that_is_won_on_appeal_makes_the_share_paid_again(
        self, unpaid: Checkout, shared: PaymentRequest
    ) -> None:
        found = outside.dispute(shared.payment)
        outside.decide(found, is_won=False)
        outside.decide(found, is_won=True)
        shared.refresh_from_db()
        assert (shared.status, shared.ended_at, planned()) == ("paid", None, [("4242", 3000)])
        settle_all(unpaid)
        shared.refresh_from_db()
        assert shared.status == "reimbursed"
        assert outside.balances(unpaid) == {"provider": 9000, "merchant": -9000}

    @pytest.mark.rule("dispute.lost")
    def test_that_a_mate_wins_leaves_nothing_of_the_share_for_the_lead(
        self, unpaid: Checkout, shared: PaymentRequest
    ) -> None:
        outside.decide(outside.dispute(shared.payment), is_won=False)
        shared.refresh_from_db()
        assert (shared.status, planned()) == ("refunded", [])
        unpaid.refresh_from_db()
        assert cards.read_accounts(unpaid, is_locked=False).leads_target == 9000
        assert outside.balances(unpaid) == {"provider": 9000, "merchant": -9000}

    @pytest.mark.rule("dispute.lost")
    def test_that_the_lead_wins_closes_the_debt_of_returned_refunds(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        outside.reimburse(unpaid, pay)
        assert refund(unpaid).status == "refunded"
        outside.come_back()
        assert outside.balances(unpaid)["lead"] == -3000
        found = outside.dispute(unpaid.payment)
        outside.decide(found, is_won=False)
        assert outside.balances(unpaid) == {}
        assert not Discrepancy.objects.filter(kind="refund_returned", closed_at=None).exists()
        outside.decide(found, is_won=True)
        assert outside.balances(unpaid)["lead"] == -3000

    @pytest.mark.rule("dispute.lost")
    def test_that_a_mate_wins_closes_the_report_of_an_amount_owed_beyond_the_card(
        self, unpaid: Checkout, shared: PaymentRequest
    ) -> None:
        unpaid.refresh_from_db()
        outside.refund_outside(unpaid.payment, 9000)
        reports = Discrepancy.objects.filter(kind="owed_beyond_card", closed_at=None)
        assert reports.count() == 1
        outside.decide(outside.dispute(shared.payment), is_won=False)
        assert not reports.exists()

    @pytest.mark.rule("dispute.booked")
    def test_whose_money_moves_after_its_decision_settles_the_order_at_that_time(
        self, captured: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The books show the decision first, and later the line that returns the money."""
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        found = outside.dispute(captured.payment)
        client.call_bank("decide", payment=captured.payment_id, is_won=True)
        books = client.call_bank("movements", payment=captured.payment_id)
        early = replace(books, disputes=[replace(books.disputes[0], lines=books.disputes[0].lines[:1])])
        with monkeypatch.context() as before:
            before.setitem(client.BANK_CALLS, "movements", lambda **_: early)
            outside.ask_about(captured.payment)
        found.refresh_from_db()
        assert (found.status, planned()) == ("won", [])
        outside.ask_about(captured.payment)
        assert planned() == [("4242", 9000)]

    @pytest.mark.rule("dispute.lost")
    def test_that_the_lead_loses_on_appeal_after_the_refund_owes_the_lead_no_share(
        self, unpaid: Checkout, shared: PaymentRequest
    ) -> None:
        unpaid.refresh_from_db()
        found = outside.dispute(unpaid.payment)
        outside.decide(found, is_won=False)
        assert refund(unpaid).status == "refunded"
        outside.decide(found, is_won=True)
        settle_all(unpaid)
        assert outside.balances(unpaid) == {}
        assert not Discrepancy.objects.filter(kind="owed_beyond_card", closed_at=None).exists()

    @pytest.mark.rule("dispute.lost")
    def test_that_is_lost_during_a_refund_completes_the_refund(self, captured: Checkout) -> None:
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        found = outside.dispute(captured.payment)
        captured.refresh_from_db()
        assert (captured.status, planned()) == ("refunding", [])
        outside.decide(found, is_won=False)
        assert settle_all(captured).status == "refunded"
        assert outside.balances(captured) == {}

    @pytest.mark.rule("dispute.no_refund")
    def test_that_took_the_whole_amount_prevents_a_refund(self, captured: Checkout) -> None:
        outside.decide(outside.dispute(captured.payment), is_won=False)
        with pytest.raises(refunds.NotRefundable):
            refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)

    @pytest.mark.rule("dispute.lost")
    def test_of_a_part_of_the_amount_allows_a_refund_of_the_rest(self, captured: Checkout) -> None:
        assert captured.payment_id is not None
        client.call_bank("dispute", payment=captured.payment_id, amount=2000)
        outside.hear()
        client.call_bank("decide", payment=captured.payment_id, is_won=False)
        outside.hear()
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        assert planned() == [("4242", 7000)]


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
        assert planned() == [("7726", 9000)]
        settle_all(refunded)
        Call.objects.update(returns_at=None)
        assert (Refund.objects.get().status, mates.borne(refunded)) == ("settled", {"7726": 0})
        assert Discrepancy.objects.filter(closed_at=None).count() == 0

    @pytest.mark.rule("refund.returned")
    def test_that_staff_refunded_in_part_is_sent_again_for_the_rest(self, refunded: Checkout) -> None:
        outside.come_back()
        outside.refund_outside(refunded.payment, 4000)
        back = outside.returned(refunded)
        Call.objects.update(returns_at=None)
        sending.send_again(back.pk, cause=CAUSE)
        assert planned() == [("7726", 5000)]

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
