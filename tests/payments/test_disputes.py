"""A dispute is believed when the bank confirms it, and booked once, however it was heard of."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from checkout import captures, refunds, tasks
from checkout.models import Checkout
from config.lib import clock
from payments import reconciliation
from payments.models import Discrepancy, Dispute, Inquiry, Merchant, Payment
from payments.outside import inquiries
from payments.provider import ProviderUnreachable
from payments.providers.sandbox import client, disputing, settling
from payments.providers.sandbox.models import Charge
from payments.providers.sandbox.models import Dispute as BankDispute
from payments.tasks import WHAT_TO_DO
from tests import mates
from tests.conftest import Api
from tests.factories import CAUSE
from tests.outside import DISPUTED, balances, decide, dispute, hear
from tests.refusals import nothing_moves

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted", "proven")]


class TestADispute:
    @pytest.mark.rule("read.refunds", "sandbox.cards")
    def test_of_card_0259_is_told_two_seconds_after_the_capture(
        self, unpaid: Checkout, pay: Callable[..., Checkout], api: Api
    ) -> None:
        captures.capture(unpaid.merchant, pay(unpaid, DISPUTED).pk, cause=CAUSE)
        hear()
        assert not Dispute.objects.exists()
        before = api.get(f"checkouts/{unpaid.pk}").json()["data"]
        assert "disputes" not in before and before["available_actions"] == ["refund"]
        settling.advance(payments=list(Payment.objects.values_list("pk", flat=True)), seconds=2)
        hear()
        found = Dispute.objects.get()
        assert (found.amount, found.reason, found.status) == (9000, "fraudulent", "open")
        shown = api.get(f"checkouts/{unpaid.pk}").json()["data"]
        assert shown["disputes"] == [
            {
                "dispute_uuid": str(found.pk),
                "amount": 9000,
                "reason": "fraudulent",
                "status": "open",
                "opened_at": clock.iso(found.opened_at),
                "respond_by": clock.iso(found.respond_by),
            }
        ]
        assert (shown["status"], shown["available_actions"]) == ("captured", [])
        listed = api.get("checkouts").json()["data"]["checkouts"]
        assert listed[0]["disputes"] == shown["disputes"]

    @pytest.mark.rule("dispute.booked")
    def test_takes_the_money_back_until_it_is_won(self, captured: Checkout) -> None:
        found = dispute(captured.payment)
        assert balances(captured) == {"merchant": -9000, "disputed": 9000}
        left = Discrepancy.objects.get()
        assert (left.kind, left.subject, left.merchant) == ("disputed", found.pk, captured.merchant)
        assert left.kind in WHAT_TO_DO and left.facts["amount"] == 9000
        decide(found, is_won=True)
        assert (found.status, balances(captured)) == ("won", {"provider": 9000, "merchant": -9000})
        left.refresh_from_db()
        assert left.closed_at is not None and left.note == "It was won."
        assert refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE).is_new

    def test_that_is_lost_is_the_merchants_loss(self, captured: Checkout) -> None:
        found = dispute(captured.payment)
        decide(found, is_won=False)
        assert (found.status, balances(captured)) == ("lost", {})
        assert [row.kind for row in Discrepancy.objects.filter(closed_at=None)] == ["dispute_lost"]
        captured.refresh_from_db()
        assert captured.status == "captured"
        with pytest.raises(refunds.NotRefundable):
            refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)

    def test_moves_when_the_checkout_was_changed(self, captured: Checkout) -> None:
        for happens in (dispute, lambda _: decide(Dispute.objects.get(), is_won=True)):
            before = Checkout.objects.values_list("updated_at", flat=True).get()
            happens(captured.payment)
            assert Checkout.objects.values_list("updated_at", flat=True).get() > before
        before = Checkout.objects.values_list("updated_at", flat=True).get()
        inquiries.open_about([captured.payment_id] if captured.payment_id else [])
        tasks.answer_inquiries()
        assert Checkout.objects.values_list("updated_at", flat=True).get() == before, "nothing new"

    @pytest.mark.rule("dispute.booked")
    def test_is_booked_once_however_often_it_is_told(self, captured: Checkout) -> None:
        found = dispute(captured.payment)
        with nothing_moves():
            for _ in range(2):
                inquiries.open_about([found.payment_id])
                tasks.answer_inquiries()
        assert Dispute.objects.count() == Discrepancy.objects.count() == 1

    @pytest.mark.rule("dispute.booked")
    def test_is_not_believed_of_a_message_alone(self, captured: Checkout) -> None:
        """The bank signs that there is one, and then has none in its books."""
        assert captured.payment_id is not None
        disputing.begin(Charge.objects.get(), seconds=3600)
        with nothing_moves():
            inquiries.open_about([captured.payment_id])
            tasks.answer_inquiries()
        assert not Dispute.objects.exists() and not Inquiry.objects.exists()

    def test_is_asked_about_again_when_the_bank_is_out(
        self, captured: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert captured.payment_id is not None
        client.ask("dispute", payment=captured.payment_id)
        with monkeypatch.context() as out:
            out.setitem(client.OTHERS, "disputes", _unreachable)
            hear()
        assert not Dispute.objects.exists()
        Inquiry.objects.update(due_at=clock.now())
        tasks.answer_inquiries()
        assert Dispute.objects.get().status == "open"

    def test_that_nobody_told_is_found_at_night_and_its_decision_within_the_hour(
        self, captured: Checkout
    ) -> None:
        assert captured.payment_id is not None
        client.ask("dispute", payment=captured.payment_id)
        reconciliation.compare(clock.now() - timedelta(hours=48))
        tasks.answer_inquiries()
        found = Dispute.objects.get()
        client.ask("decide", payment=captured.payment_id, is_won=True)
        tasks.answer_inquiries()
        found.refresh_from_db()
        assert found.status == "open"
        again_at = Inquiry.objects.get().due_at
        assert clock.now() < again_at <= clock.now() + timedelta(hours=1)
        Inquiry.objects.update(due_at=clock.now())
        tasks.answer_inquiries()
        found.refresh_from_db()
        assert found.status == "won" and not Inquiry.objects.exists()

    def test_of_what_was_never_taken_is_left_for_a_person(self, held: Checkout) -> None:
        assert held.payment_id is not None
        client.ask("dispute", payment=held.payment_id)
        with nothing_moves():
            hear()
        assert Discrepancy.objects.get().kind == "dispute_of_another_amount"

    def test_whose_decision_is_taken_back_is_left_for_a_person(self, captured: Checkout) -> None:
        found = dispute(captured.payment)
        decide(found, is_won=False)
        BankDispute.objects.update(status="won")
        with nothing_moves():
            inquiries.open_about([found.payment_id])
            tasks.answer_inquiries()
        assert Discrepancy.objects.filter(kind="dispute_decided_anew").count() == 1

    def test_after_a_refund_is_the_merchants_loss_too(self, captured: Checkout) -> None:
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        mates.pump(captured.pk, rounds=2)
        found = dispute(captured.payment)
        decide(found, is_won=False)
        captured.refresh_from_db()
        assert captured.status == "refunded"
        assert balances(captured) == {"provider": -9000, "merchant": 9000}


def _unreachable(**_: Any) -> Any:
    raise ProviderUnreachable


def test_a_stranger_sees_nothing_of_it(captured: Checkout, rival: Merchant, rival_api: Api) -> None:
    dispute(captured.payment)
    assert rival_api.get(f"checkouts/{captured.pk}").status_code == 404
    assert rival_api.get("checkouts").json()["data"]["checkouts"] == []
