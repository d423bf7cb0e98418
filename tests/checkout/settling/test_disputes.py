"""Orders with disputed cards: planned refunds wait, and a lost dispute can end a debt to the lead."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pytest_django.fixtures import Settings

from checkout import refunds
from checkout.models import Checkout, PaymentRequest, Refund
from checkout.settling import cards, closings
from config.lib import clock
from payments import bookings
from payments.models import Booking, Discrepancy, Operation
from payments.providers.sandbox import client
from tests import mates, outside
from tests.checkout.settling.test_settle import planned, refund, settle_again, settle_all
from tests.factories import CAUSE

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted", "proven")]


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
    def test_that_a_mate_wins_ends_the_debt_for_the_share_to_the_lead(
        self, unpaid: Checkout, shared: PaymentRequest
    ) -> None:
        outside.decide(outside.dispute(shared.payment), is_won=False)
        shared.refresh_from_db()
        assert (shared.status, planned()) == ("refunded", [])
        unpaid.refresh_from_db()
        accounts = cards.read_accounts(unpaid, is_locked=False)
        assert accounts.lead is not None and accounts.target(accounts.lead) == 9000
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
        """The books show the decision first. The line that returns the money appears later."""
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

    @pytest.mark.rule("dispute.lost", "reimburse.lead")
    @pytest.mark.parametrize("amount", [1, 1000])
    def test_that_gave_the_lead_a_part_of_a_share_closes_that_part_once(
        self, unpaid: Checkout, shared: PaymentRequest, amount: int
    ) -> None:
        unpaid.refresh_from_db()
        found = outside.dispute(unpaid.payment, amount)
        outside.decide(found, is_won=False)
        settle_again(unpaid)
        assert (closed_amounts(), planned()) == ([amount], [("4242", 3000 - amount)])
        outside.decide(found, is_won=True)
        settle_again(unpaid)
        assert (closed_amounts(), planned()) == ([amount, -amount], [("4242", 3000)])

    @pytest.mark.rule("dispute.lost")
    def test_that_a_mate_wins_closes_the_share_once(self, unpaid: Checkout, shared: PaymentRequest) -> None:
        outside.decide(outside.dispute(shared.payment), is_won=False)
        settle_again(unpaid)
        shared.refresh_from_db()
        assert (shared.status, closed_amounts()) == ("refunded", [3000])

    @pytest.mark.rule("dispute.lost", "reimburse.lead")
    def test_that_a_mate_wins_closes_the_penny_that_the_lead_is_still_owed(
        self, unpaid: Checkout, shared: PaymentRequest
    ) -> None:
        unpaid.refresh_from_db()
        outside.decide(outside.dispute(unpaid.payment, 2999), is_won=False)
        shared.refresh_from_db()
        assert (shared.status, closed_amounts(), planned()) == ("paid", [2999], [("4242", 1)])
        outside.decide(outside.dispute(shared.payment), is_won=False)
        shared.refresh_from_db()
        assert (shared.status, closed_amounts(), planned()) == ("refunded", [2999, 1], [])

    @pytest.mark.rule("dispute.lost")
    def test_that_a_mate_wins_after_the_lead_got_a_penny_of_the_share_closes_nothing(
        self, unpaid: Checkout, shared: PaymentRequest
    ) -> None:
        """After a refund in the dashboard, only one penny can still be refunded to the lead's card."""
        unpaid.refresh_from_db()
        outside.refund_outside(unpaid.payment, 8999)
        settle_all(unpaid)
        assert mates.borne(unpaid)["4242"] == 0
        outside.decide(outside.dispute(shared.payment), is_won=False)
        shared.refresh_from_db()
        assert (shared.status, closed_amounts()) == ("paid", [])

    @pytest.mark.rule("dispute.lost")
    def test_that_a_mate_wins_while_the_reimbursement_is_pending_closes_nothing(
        self, unpaid: Checkout, shared: PaymentRequest, settings: Settings
    ) -> None:
        """The pending reimbursement will pay the share to the lead, so the merchant bears the loss."""
        settings.SANDBOX_REFUND_SECONDS = 3600
        mates.pump(unpaid.pk)
        assert Operation.objects.get(kind="refund").state == "pending"
        outside.decide(outside.dispute(shared.payment), is_won=False)
        shared.refresh_from_db()
        assert (shared.status, closed_amounts()) == ("paid", [])
        settle_all(unpaid)
        shared.refresh_from_db()
        assert (shared.status, closed_amounts()) == ("reimbursed", [])
        assert outside.balances(unpaid) == {"provider": 6000, "merchant": -6000}

    @pytest.mark.rule("refund.returned")
    def test_of_a_returned_refund_leaves_its_report_open_until_the_decision(self, refunded: Checkout) -> None:
        outside.come_back()
        reports = Discrepancy.objects.filter(kind="refund_returned", closed_at=None)
        found = outside.dispute(refunded.payment)
        assert (reports.count(), Refund.objects.get().status) == (1, "failed")
        outside.decide(found, is_won=False)
        assert (reports.count(), Refund.objects.get().status) == (0, "settled")

    @pytest.mark.rule("dispute.lost")
    def test_that_is_decided_again_reverses_the_newest_closings_of_its_card_first(
        self, unpaid: Checkout, shared: PaymentRequest
    ) -> None:
        unpaid.refresh_from_db()
        assert unpaid.payment is not None and shared.payment is not None
        for payment, amount in ((unpaid.payment, 700), (unpaid.payment, 200), (shared.payment, 50)):
            bookings.close_owed(payment, shared.pk, amount, note="Lost.", now=clock.now(), cause=CAUSE)
        accounts = cards.read_accounts(unpaid)
        assert accounts.lead is not None
        closings._reverse_closings(accounts, accounts.lead, 700, clock.now())
        assert closed_amounts() == [700, 200, 50, -200]


def closed_amounts() -> list[int]:
    """Return the amounts of the closings and of their reversals, oldest first."""
    rows = Booking.objects.filter(kind=Booking.Kind.CLOSING).order_by("created_at")
    return list(rows.values_list("amount", flat=True))
