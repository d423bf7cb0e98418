"""A refund that comes back is believed when the bank confirms it, and booked once."""

from datetime import timedelta

import pytest

from checkout import tasks
from checkout.models import Checkout
from checkout.outside import disputing
from checkout.proof import proving
from config.lib import clock
from payments import discrepancies, operations, reconciliation
from payments.models import Discrepancy, Inquiry, Operation
from payments.outside import inquiries
from payments.provider import Outcome, Verdict
from payments.providers.sandbox import notifications, settling
from payments.providers.sandbox.models import BankNotification, Call
from payments.tasks import WHAT_TO_DO
from tests.conftest import Api
from tests.outside import balances, come_back, returned
from tests.refusals import nothing_moves

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted", "proven")]


class TestARefundThatComesBack:
    @pytest.mark.rule("refund.returned")
    def test_reads_failed_while_the_order_stays_refunded(self, refunded: Checkout, api: Api) -> None:
        before, changed_at = api.get(f"checkouts/{refunded.pk}").json()["data"], refunded.updated_at
        assert before["refunds"][0]["status"] == "settled"
        come_back()
        shown = api.get(f"checkouts/{refunded.pk}").json()["data"]
        assert (shown["status"], shown["refunded_amount"], shown["available_actions"]) == (
            "refunded",
            9000,
            [],
        )
        (refund,) = shown["refunds"]
        assert (refund["status"], refund["failure_reason"]) == ("failed", "card_account_closed")
        assert refund["settled_at"] == before["refunds"][0]["settled_at"]
        refunded.refresh_from_db()
        assert refunded.updated_at > changed_at, "who lists by the last change sees it"
        again = api.post(f"checkouts/{refunded.pk}/refund", {"merchant_refund_ref": "r-2"})
        assert (again.status_code, again.json()["error"]["code"]) == (409, "not_refundable")

    @pytest.mark.rule("refund.returned")
    def test_is_in_the_ledger_and_told_to_an_operator(self, refunded: Checkout) -> None:
        assert balances(refunded) == {}
        come_back()
        assert balances(refunded) == {"provider": 9000, "returned": -9000}
        left = Discrepancy.objects.get()
        assert (left.kind, left.subject) == ("refund_returned", returned(refunded).pk)
        assert (left.merchant, left.operation) == (refunded.merchant, returned(refunded))
        assert left.facts["reason"] == "card_account_closed" and left.kind in WHAT_TO_DO

    def test_is_booked_once_however_often_it_is_told(self, refunded: Checkout) -> None:
        come_back()
        with nothing_moves():
            for _ in range(2):
                BankNotification.objects.update(due_at=clock.now(), attempts=0)
                come_back()
            Inquiry.objects.create(payment=returned(refunded).payment, due_at=clock.now())
            tasks.answer_inquiries()
            reconciliation.compare(clock.now() - timedelta(hours=48))
        assert Discrepancy.objects.count() == 1 and not Inquiry.objects.exists()

    def test_is_booked_once_when_two_have_asked(self, refunded: Checkout) -> None:
        """The answer of who was slower changes nothing any more."""
        settling.advance(payments=[refunded.payment_id] if refunded.payment_id else [], seconds=3)
        slow: list[Outcome] = []
        real = operations.look_up

        def look_up(operation: Operation, **kwargs: object) -> Outcome:
            outcome = real(operation)
            if not slow:
                slow.append(outcome)
                inquiries.open_about([operation.payment_id])
                claim = inquiries.claim()
                assert claim is not None
                disputing.look_into(claim)
            return outcome

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(operations, "look_up", look_up)
            inquiries.open_about([refunded.payment_id] if refunded.payment_id else [])
            tasks.answer_inquiries()
        assert [outcome.verdict for outcome in slow] == [Verdict.FAILED]
        assert balances(refunded) == {"provider": 9000, "returned": -9000}

    def test_is_not_believed_of_a_message_alone(self, refunded: Checkout) -> None:
        """The bank signs that it failed, and its books say that it is settled."""
        BankNotification.objects.create(
            call=Call.objects.get(kind="refund"), verdict=Verdict.FAILED, due_at=clock.now()
        )
        with nothing_moves():
            notifications.send_due()
            tasks.answer_inquiries()
        assert not Discrepancy.objects.exists() and not Inquiry.objects.exists()

    def test_is_asked_about_again_while_the_bank_is_silent(
        self, refunded: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as out:
            out.setattr(operations, "look_up", lambda *_, **__: Outcome(Verdict.UNKNOWN))
            come_back()
        assert balances(refunded) == {}
        due_at = Inquiry.objects.get().due_at
        assert clock.now() < due_at <= clock.now() + timedelta(minutes=1)
        Inquiry.objects.update(due_at=clock.now())
        tasks.answer_inquiries()
        assert balances(refunded) == {"provider": 9000, "returned": -9000}

    def test_that_nobody_told_is_found_at_night(self, refunded: Checkout) -> None:
        come_back(is_told=False)
        assert balances(refunded) == {}
        Operation.objects.update(ended_at=clock.now() - timedelta(minutes=1))
        assert reconciliation.compare(clock.now() - timedelta(hours=48)).differences == []
        tasks.answer_inquiries()
        assert balances(refunded) == {"provider": 9000, "returned": -9000}
        assert reconciliation.compare(clock.now() - timedelta(hours=48)).differences == []
        assert [row.kind for row in Discrepancy.objects.all()] == ["refund_returned"]

    def test_breaks_the_proof_once_nobody_is_at_it(self, refunded: Checkout) -> None:
        come_back()
        assert proving.breaches() == []
        discrepancies.close(Discrepancy.objects.get().pk, note="Forgotten.")
        assert [breach.kind for breach in proving.breaches()] == ["ledger_returned_untold"]
        Discrepancy.objects.update(closed_at=None)
