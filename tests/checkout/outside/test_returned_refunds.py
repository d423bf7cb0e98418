"""A refund that was settled fails afterwards: believed when the bank confirms it, booked once, told at once."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.urls import reverse

from checkout import refunds, tasks, transitions
from checkout.models import Checkout, Refund
from checkout.outside import disputing
from checkout.proof import proving
from checkout.remedies import closing, sending
from checkout.remedies.asking import NotAllowed
from config.lib import clock
from config.lib.web import http
from hosted_page.status import of_order
from payments import discrepancies, ledger, operations, reconciliation
from payments.models import Discrepancy, Inquiry, Operation, Payment
from payments.outside import inquiries
from payments.provider import Outcome, Verdict
from payments.providers.sandbox import notifications, settling
from payments.providers.sandbox.models import BankNotification, Call
from payments.tasks import WHAT_TO_DO
from portal.dashboard import needs
from portal.models import Role
from portal.orders import detail, timeline
from tests import mates
from tests.conftest import Api
from tests.factories import CAUSE
from tests.portal import stage
from tests.refusals import nothing_moves

pytestmark = pytest.mark.django_db
RETURNS = "4000000000007726"


@pytest.fixture(autouse=True)
def _proven() -> Iterator[None]:
    """After each tale the ledger agrees with the states."""
    yield
    assert proving.breaches() == []


@pytest.fixture(autouse=True)
def _posted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bank's messages reach us in this process."""

    def post(url: str, body: bytes, headers: dict[str, str], *, seconds: float) -> http.Response:
        signed = {notifications.HEADER: headers[notifications.HEADER]}
        answer = Client().post(urlsplit(url).path, body, content_type=headers["Content-Type"], headers=signed)
        return http.Response(answer.status_code, answer.content)

    monkeypatch.setattr(http, "post", post)


@pytest.fixture
def refunded(unpaid: Checkout, pay: Callable[..., Checkout]) -> Checkout:
    """An order of a card whose refunds come back two seconds after they are settled; they have not yet."""
    transitions.capture(unpaid.merchant, pay(unpaid, RETURNS).pk, cause=CAUSE)
    refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
    settle(unpaid)
    assert unpaid.status == "refunded"
    return unpaid


def settle(checkout: Checkout) -> None:
    """Let the bank settle what it has accepted, and nothing come back yet."""
    mates.pump(checkout.pk)
    Call.objects.filter(verdict=Verdict.PENDING).update(settles_at=clock.now())
    mates.pump(checkout.pk)
    checkout.refresh_from_db()


def come_back(*, is_told: bool = True) -> None:
    """Two seconds pass at the bank; it tells, and we ask."""
    settling.advance(payments=list(Payment.objects.values_list("pk", flat=True)), seconds=3)
    if is_told:
        notifications.send_due()
        tasks.answer_inquiries()
    else:
        settling.settle_due()
        BankNotification.objects.update(due_at=None)


def balances(checkout: Checkout) -> dict[str, int]:
    return {account: amount for account, amount in ledger.balances(checkout.pk).items() if amount}


def returned(checkout: Checkout) -> Operation:
    return Operation.objects.get(payment__checkout_uuid=checkout.pk, returned_as__isnull=False)


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


class TestWhatIsSaid:
    def test_in_the_portal_at_once(self, refunded: Checkout) -> None:
        client = stage.browser(stage.person(refunded.merchant, Role.OWNER))
        address = f"/portal/checkouts/{refunded.pk}"
        assert "came back" not in client.get(address).content.decode()
        come_back()
        page = client.get(address).content.decode()
        assert "The refund came back: £90.00" in page and "The money is with the bank" in page
        assert "place-title" not in page, "it is in none of the places"
        shown = timeline.of(detail.read(refunded.merchant, refunded.pk)).entries[0]
        assert shown.title == "The refund of £90.00 to Visa ending 7726 came back"
        assert shown.text == ("Card account closed. Posted: the bank +£90.00, to be paid back again +£90.00.")
        assert client.get(reverse("portal_timeline", args=[refunded.pk])).status_code == 200

    def test_to_nobody_who_can_do_nothing(self, refunded: Checkout) -> None:
        """The merchant cannot refund again: it is not asked to."""
        come_back()
        assert not needs.failed_refunds(refunded.merchant).exists()

    def test_to_the_payer(self, refunded: Checkout) -> None:
        shown = of_order.tell(refunded, now=clock.now(), is_lead=True)
        assert shown is not None and "went to" in str(shown.paragraphs[0])
        come_back()
        shown = of_order.tell(refunded, now=clock.now(), is_lead=True)
        assert shown is not None and shown.heading == "The refund came back"
        assert "need not do anything" in str(shown.paragraphs[0])


class TestOfASplit:
    def test_a_mates_part(self, unpaid: Checkout, pay: Callable[..., Checkout], api: Api) -> None:
        """The mate's card does not keep it; the lead's has got its own."""
        (share,) = mates.split(unpaid, 3000)
        transitions.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
        mates.pay(share, RETURNS)
        assert mates.settled(share) == "reimbursed"
        refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        settle(unpaid)
        assert unpaid.status == "refunded"
        come_back()
        assert balances(unpaid) == {"provider": 3000, "returned": -3000}
        assert returned(unpaid).payment.subject == share.pk
        assert api.get(f"checkouts/{unpaid.pk}").json()["data"]["refunds"][0]["status"] == "failed"

    def test_a_part_while_others_are_under_way(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> None:
        """The others are waited for; the refund reads failed only then."""
        (share,) = mates.split(unpaid, 3000)
        transitions.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
        mates.pay(share, RETURNS)
        assert mates.settled(share) == "reimbursed"
        refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        mates.pump(unpaid.pk)
        lead = Operation.objects.get(kind="refund", ended_at=None, payment__subject=unpaid.pk)
        Call.objects.filter(reference=lead.pk).update(settles_at=clock.now() + timedelta(hours=1))
        Call.objects.filter(verdict=Verdict.PENDING).exclude(reference=lead.pk).update(settles_at=clock.now())
        mates.pump(unpaid.pk)
        come_back()
        unpaid.refresh_from_db()
        assert unpaid.status == "refunding" and Refund.objects.get().status == "pending"
        assert balances(unpaid)["returned"] == -3000 and proving.breaches() == []
        settle(unpaid)
        refund = Refund.objects.get()
        assert (unpaid.status, refund.status) == ("refunded", "failed")
        assert refund.failure_reason == "card_account_closed" and refund.settled_at is not None

    def test_what_went_back_to_the_lead_for_a_mate(
        self, unpaid: Checkout, pay: Callable[..., Checkout], api: Api
    ) -> None:
        (share,) = mates.split(unpaid, 3000)
        transitions.capture(unpaid.merchant, pay(unpaid, RETURNS).pk, cause=CAUSE)
        mates.pay(share)
        mates.pump(unpaid.pk, rounds=3)
        settle(unpaid)
        changed_at = unpaid.updated_at
        come_back()
        unpaid.refresh_from_db()
        assert unpaid.updated_at > changed_at
        share.refresh_from_db()
        assert (share.status, returned(unpaid).share_uuid) == ("reimbursed", share.pk)
        assert balances(unpaid) == {"provider": 9000 + 3000, "merchant": -9000, "returned": -3000}
        shown = api.get(f"checkouts/{unpaid.pk}").json()["data"]
        assert shown["status"] == "captured" and "refunds" not in shown
        client = stage.browser(stage.person(unpaid.merchant, Role.OWNER))
        assert "came back: £30.00" in client.get(f"/portal/checkouts/{unpaid.pk}").content.decode()


class TestWhatAnOperatorDoes:
    def test_sends_it_again(self, refunded: Checkout, api: Api) -> None:
        come_back()
        sending.send_again(returned(refunded).pk, cause=CAUSE)
        with pytest.raises(NotAllowed), nothing_moves():
            mates.pump(refunded.pk)
            sending.send_again(returned(refunded).pk, cause=CAUSE)
        Call.objects.filter(kind="refund").update(returns_at=None)
        settle(refunded)
        Call.objects.filter(kind="refund").update(returns_at=None)
        assert balances(refunded) == {}
        assert not Discrepancy.objects.filter(closed_at=None).exists()
        refund = api.get(f"checkouts/{refunded.pk}").json()["data"]["refunds"][0]
        assert (refund["status"], refund["failure_reason"], refunded.status) == ("settled", None, "refunded")
        with pytest.raises(NotAllowed), nothing_moves():
            sending.send_again(returned(refunded).pk, cause=CAUSE)

    def test_sends_what_comes_back_again_and_is_told_again(self, refunded: Checkout) -> None:
        come_back()
        sending.send_again(returned(refunded).pk, cause=CAUSE)
        settle(refunded)
        come_back()
        assert balances(refunded) == {"provider": 9000, "returned": -9000}
        assert Refund.objects.get().status == "failed"
        assert Discrepancy.objects.filter(kind="refund_returned", closed_at=None).count() == 1

    def test_books_it_as_settled_otherwise(self, refunded: Checkout) -> None:
        come_back()
        closing.close_as_settled_otherwise(returned(refunded).pk, note="By bank transfer.", cause=CAUSE)
        assert balances(refunded) == {} and Refund.objects.get().status == "settled"
        assert Discrepancy.objects.get().note == "By bank transfer."
        with pytest.raises(NotAllowed), nothing_moves():
            closing.close_as_settled_otherwise(returned(refunded).pk, note="Twice.", cause=CAUSE)

    def test_of_a_reimbursement_too(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> None:
        (share,) = mates.split(unpaid, 3000)
        transitions.capture(unpaid.merchant, pay(unpaid, RETURNS).pk, cause=CAUSE)
        mates.pay(share)
        mates.pump(unpaid.pk, rounds=3)
        settle(unpaid)
        come_back()
        closing.close_as_settled_otherwise(returned(unpaid).pk, note="In cash.", cause=CAUSE)
        assert balances(unpaid) == {"provider": 9000, "merchant": -9000}
        share.refresh_from_db()
        assert share.status == "reimbursed"
