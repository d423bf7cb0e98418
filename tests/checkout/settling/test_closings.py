"""After a lost dispute, amounts that are not owed to the lead are closed. Returned refunds are reported."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import transaction
from django.urls import reverse
from pytest_django.fixtures import Settings

from checkout import captures, mate_shares, refunds, settling, tasks
from checkout.models import Checkout, PaymentRequest, Refund
from checkout.proof import ledger_proof
from checkout.remedies import sending, settling_outside
from checkout.remedies.status_check import NotAllowed
from config.lib import clock
from hosted_page.status import order_status
from payments.discrepancies import kinds, reporting
from payments.models import Booking, Discrepancy, Dispute, Operation, Payment
from payments.provider import CardUse, Verdict
from payments.providers.sandbox import bank, client, fault_injection
from payments.providers.sandbox import settling as bank_settling
from payments.providers.sandbox.models import Call
from portal.dashboard import merchant_tasks
from portal.models import Role
from portal.orders import order, timeline
from tests import mates, outside
from tests.conftest import Api
from tests.factories import CAUSE, CustomerFactory
from tests.mates import borne
from tests.outside import RETURNS, balances, come_back, decide, dispute, hear, reimburse, returned, settle
from tests.portal import stage
from tests.refusals import nothing_moves

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted", "proven")]


class TestReturnedRefundIsReported:
    def test_in_the_portal_at_once(self, refunded: Checkout) -> None:
        client = stage.browser(stage.person(refunded.merchant, Role.OWNER))
        address = f"/portal/checkouts/{refunded.pk}"
        assert "was returned" not in client.get(address).content.decode()
        come_back()
        page = client.get(address).content.decode()
        assert "The refund was returned: £90.00" in page and "The customer does not have the money" in page
        assert "place-title" not in page, "it is in none of the places"
        shown = timeline.timeline_page(order.read_order(refunded.merchant, refunded.pk)).entries[0]
        assert shown.title == "The refund of £90.00 to Visa ending 7726 was returned"
        assert shown.text == ("The card’s account is closed. Posted: £90.00 from the bank to you.")
        assert client.get(reverse("portal_timeline", args=[refunded.pk])).status_code == 200

    @pytest.mark.rule("refund.returned")
    def test_even_while_a_dispute_is_open(self, refunded: Checkout) -> None:
        dispute(refunded.payment, 4000)
        come_back()
        assert Refund.objects.get().status == "failed"
        assert Discrepancy.objects.filter(kind=kinds.REFUND_RETURNED.name, closed_at=None).exists()

    def test_not_as_a_merchants_task(self, refunded: Checkout) -> None:
        """The merchant cannot refund again, so the portal lists no task."""
        come_back()
        assert not merchant_tasks.failed_refunds(merchant=refunded.merchant).exists()

    def test_to_the_payer(self, refunded: Checkout) -> None:
        shown = order_status.order_status_of(refunded, now=clock.now(), is_lead=True)
        assert shown is not None and "refunded the whole" in str(shown.paragraphs[0])
        come_back()
        shown = order_status.order_status_of(refunded, now=clock.now(), is_lead=True)
        assert shown is not None and shown.heading == "The refund was returned"
        assert "don’t need to do anything" in str(shown.paragraphs[0])


class TestReturnedRefundOfASplit:
    def begin(self, order: Checkout, pay: Callable[..., Checkout]) -> PaymentRequest:
        """Begin to refund an order in which a mate paid a share.

        The bank returns every refund that is sent to the mate's card.
        """
        (share,) = mates.split(order, 3000)
        captures.capture(order.merchant, pay(order).pk, cause=CAUSE)
        mates.pay(share, RETURNS)
        assert mates.settled(share) == "reimbursed"
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        return share

    def test_a_mates_part(self, unpaid: Checkout, pay: Callable[..., Checkout], api: Api) -> None:
        """The refund to the mate's card is returned, but the refund to the lead's card is not."""
        share = self.begin(unpaid, pay)
        settle(unpaid)
        assert unpaid.status == "refunded"
        come_back()
        assert balances(unpaid) == {"provider": 3000, "merchant": -3000}
        assert returned(unpaid).payment.subject == share.pk
        assert api.get(f"checkouts/{unpaid.pk}").json()["data"]["refunds"][0]["status"] == "failed"

    @pytest.mark.rule("dispute.no_refund")
    @pytest.mark.parametrize("whose", ["the lead's", "the mate's"])
    def test_a_mates_part_after_a_dispute_was_lost(
        self, unpaid: Checkout, pay: Callable[..., Checkout], whose: str
    ) -> None:
        """If the merchant lost a dispute with the lead, the returned refund is still owed to the mate's card.

        If the merchant lost a dispute with the mate, the mate has the money and is owed no refund.
        """
        self.begin(unpaid, pay)
        settle(unpaid)
        come_back()
        part = returned(unpaid)
        decide(dispute(part.payment if whose == "the mate's" else unpaid.payment), is_won=False)
        if whose == "the mate's":
            with pytest.raises(NotAllowed, match="No refund is owed to the card"):
                sending.send_again(part.pk, cause=CAUSE)
            assert Refund.objects.get().status == "settled", "the dispute has given it back"
            assert not Discrepancy.objects.filter(kind="refund_returned", closed_at=None).exists()
            return
        sending.send_again(part.pk, cause=CAUSE)
        Call.objects.filter(kind="refund").update(returns_at=None)
        settle(unpaid)
        assert borne(unpaid)["7726"] == 0 and Refund.objects.get().status == "settled"

    @pytest.mark.rule("refund.returned", "dispute.waits")
    def test_a_mates_part_that_is_planned_again_is_withdrawn_while_the_lead_disputes(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        self.begin(unpaid, pay)
        settle(unpaid)
        come_back()
        sending.send_again(returned(unpaid).pk, cause=CAUSE)
        planned = Operation.objects.get(state="planned")
        dispute(unpaid.payment)
        planned.refresh_from_db()
        assert (planned.state, planned.reason) == ("failed", "withdrawn")

    def test_a_part_while_other_parts_are_pending(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        """The refund ends only when all its parts have ended. Then its status is `failed`."""
        self.begin(unpaid, pay)
        mates.pump(unpaid.pk)
        lead = Operation.objects.get(kind="refund", ended_at=None, payment__subject=unpaid.pk)
        Call.objects.filter(reference=lead.pk).update(settles_at=clock.now() + timedelta(hours=1))
        Call.objects.filter(verdict=Verdict.PENDING).exclude(reference=lead.pk).update(settles_at=clock.now())
        mates.pump(unpaid.pk)
        come_back()
        unpaid.refresh_from_db()
        assert unpaid.status == "refunding" and Refund.objects.get().status == "pending"
        assert borne(unpaid)["7726"] == 3000 and ledger_proof.find_breaches() == []
        settle(unpaid)
        refund = Refund.objects.get()
        assert (unpaid.status, refund.status) == ("refunded", "failed")
        assert refund.failure_reason == "card_account_closed" and refund.settled_at is not None

    def test_a_returned_reimbursement_is_owed_to_the_lead_again(
        self, unpaid: Checkout, pay: Callable[..., Checkout], api: Api
    ) -> None:
        share = reimburse(unpaid, pay)
        changed_at = unpaid.updated_at
        come_back()
        unpaid.refresh_from_db()
        assert unpaid.updated_at > changed_at
        share.refresh_from_db()
        assert (share.status, returned(unpaid).share_uuid) == ("reimbursed", share.pk)
        assert balances(unpaid) == {"provider": 9000 + 3000, "merchant": -9000, "lead": -3000}
        shown = api.get(f"checkouts/{unpaid.pk}").json()["data"]
        assert shown["status"] == "captured" and "refunds" not in shown
        client = stage.browser(stage.person(unpaid.merchant, Role.OWNER))
        assert "was returned: £30.00" in client.get(f"/portal/checkouts/{unpaid.pk}").content.decode()


class TestWhatAnOperatorDoes:
    @pytest.mark.rule("refund.returned")
    def test_is_unfinished_while_the_bank_has_only_accepted_the_refund(self, refunded: Checkout) -> None:
        come_back()
        sending.send_again(returned(refunded).pk, cause=CAUSE)
        mates.pump(refunded.pk)
        with transaction.atomic():
            settling.settle(Checkout.objects.locked(refunded.pk), clock.now())
        refund = Refund.objects.get()
        assert (refund.status, refund.failure_reason) == ("failed", "refused")
        assert Discrepancy.objects.filter(kind="refund_returned", closed_at=None).count() == 1

    def test_sends_a_returned_refund_again_once(self, refunded: Checkout, api: Api) -> None:
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

    def test_sends_a_refund_that_returns_again_and_is_reported_again(self, refunded: Checkout) -> None:
        come_back()
        sending.send_again(returned(refunded).pk, cause=CAUSE)
        settle(refunded)
        come_back()
        assert balances(refunded) == {"provider": 9000, "merchant": -9000}
        assert Refund.objects.get().status == "failed"
        newest = Operation.objects.get(resends__isnull=False)
        assert Discrepancy.objects.get(kind="refund_returned", closed_at=None).subject == newest.pk

    def test_books_a_returned_refund_as_settled_outside(self, refunded: Checkout) -> None:
        come_back()
        settling_outside.settle_outside(returned(refunded).pk, note="By bank transfer.", cause=CAUSE)
        assert balances(refunded) == {"provider": 9000, "outside": -9000}
        assert Refund.objects.get().status == "settled" and Booking.objects.get().note == "By bank transfer."
        assert not Discrepancy.objects.filter(closed_at=None).exists()
        with pytest.raises(NotAllowed), nothing_moves():
            settling_outside.settle_outside(returned(refunded).pk, note="Twice.", cause=CAUSE)

    def test_books_a_returned_reimbursement_as_settled_outside(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        share = reimburse(unpaid, pay)
        come_back()
        settling_outside.settle_outside(returned(unpaid).pk, note="In cash.", cause=CAUSE)
        assert balances(unpaid) == {"provider": 9000 + 3000, "merchant": -9000, "outside": -3000}
        share.refresh_from_db()
        assert share.status == "reimbursed"


class TestAmountOwedToTheLead:
    @pytest.fixture(autouse=True)
    def _delay(self, settings: Settings) -> None:
        settings.REIMBURSEMENT_DELAY = timedelta(hours=24)

    def paid(self, unpaid: Checkout, links: list[PaymentRequest]) -> None:
        mates.pay(links[0])
        mates.pay(links[1], mates.AMYS)
        for _ in range(3):
            tasks.finish_operations()
        assert {row.status for row in PaymentRequest.objects.all()} == {"paid"}
        unpaid.refresh_from_db()
        assert balances(unpaid)["lead"] == -5000

    @pytest.mark.rule("dispute.waits")
    def test_waits_while_a_dispute_is_open_and_is_sent_when_it_is_won(
        self, unpaid: Checkout, links: list[PaymentRequest]
    ) -> None:
        self.paid(unpaid, links)
        found = dispute(unpaid.payment)
        mates.pump(unpaid.pk, rounds=3)
        assert not Operation.objects.filter(kind="refund").exclude(reason="withdrawn").exists()
        decide(found, is_won=True)
        mates.pump(unpaid.pk, rounds=3)
        assert {row.status for row in PaymentRequest.objects.all()} == {"reimbursed"}
        assert balances(unpaid) == {"provider": 9000, "merchant": -9000}

    @pytest.mark.rule("dispute.lost")
    def test_is_closed_when_the_lead_wins_the_dispute(
        self, unpaid: Checkout, links: list[PaymentRequest]
    ) -> None:
        self.paid(unpaid, links)
        decide(dispute(unpaid.payment), is_won=False)
        mates.pump(unpaid.pk, rounds=3)
        assert {row.status for row in PaymentRequest.objects.all()} == {"reimbursed"}
        assert balances(unpaid) == {"provider": 5000, "merchant": -5000}, "what the mates have borne is left"

    @pytest.mark.parametrize(
        ("disputed", "expected"), [(0, ["refunded", "reimbursed"]), (1, ["reimbursed", "refunded"])]
    )
    def test_is_reduced_by_a_share_that_the_mate_won_in_a_dispute(
        self, unpaid: Checkout, links: list[PaymentRequest], disputed: int, expected: list[str]
    ) -> None:
        self.paid(unpaid, links)
        links[disputed].refresh_from_db()
        decide(dispute(links[disputed].payment), is_won=False)
        mates.pump(unpaid.pk, rounds=3)
        assert statuses() == expected
        assert balances(unpaid) == {"provider": 9000, "merchant": -9000}

    @pytest.mark.rule("dispute.lost")
    def test_is_closed_when_a_mates_capture_succeeds_after_the_lost_dispute(
        self, unpaid: Checkout, links: list[PaymentRequest]
    ) -> None:
        fault_injection.set_fault(verb="capture", mode="pending", times=1)
        mates.pay(links[0])
        mates.pump(unpaid.pk)
        unpaid.refresh_from_db()
        decide(dispute(unpaid.payment), is_won=False)
        assert statuses() == ["paying", "cancelled"]
        bank_settling.advance(payments=list(Payment.objects.values_list("pk", flat=True)), seconds=3)
        before = Checkout.objects.values_list("updated_at", flat=True).get()
        mates.pump(unpaid.pk)
        assert statuses() == ["reimbursed", "cancelled"]
        assert balances(unpaid) == {"provider": 3000, "merchant": -3000}
        assert Checkout.objects.values_list("updated_at", flat=True).get() > before
        shown = [
            entry.title
            for entry in timeline.timeline_page(order.read_order(unpaid.merchant, unpaid.pk)).entries
        ]
        assert "£30.00 of a mate’s payment is not owed to the lead any more" in shown
        client = stage.browser(stage.person(unpaid.merchant, Role.OWNER))
        assert "Not owed to a lead any more" in client.get("/portal/balance").content.decode()

    @pytest.mark.rule("dispute.lost")
    def test_is_closed_when_its_transfer_fails_after_the_lost_dispute(
        self, unpaid: Checkout, links: list[PaymentRequest], settings: Settings
    ) -> None:
        settings.REIMBURSEMENT_DELAY = timedelta(0)
        settings.SANDBOX_REFUND_SECONDS = 60
        mates.pay(links[0])
        mates.pump(unpaid.pk, rounds=2)
        unpaid.refresh_from_db()
        decide(dispute(unpaid.payment), is_won=False)
        assert statuses() == ["paid", "cancelled"], "it may arrive yet"
        reporting.report(kinds.SHARE_NOT_REIMBURSED, links[0].pk)
        PaymentRequest.objects.filter(status="paid").update(paid_at=clock.now() - timedelta(days=4))
        Call.objects.filter(kind="refund").update(fails_with="refused", settles_at=clock.now())
        mates.pump(unpaid.pk)
        assert statuses() == ["reimbursed", "cancelled"]
        assert not Discrepancy.objects.filter(kind="share_not_reimbursed", closed_at=None).exists()
        assert balances(unpaid) == {"provider": 3000, "merchant": -3000}

    @pytest.mark.rule("dispute.lost")
    def test_is_sent_as_far_as_it_exceeds_the_lost_dispute(
        self, unpaid: Checkout, links: list[PaymentRequest]
    ) -> None:
        self.paid(unpaid, links)
        client.call_bank("dispute", payment=unpaid.payment_id, amount=4000)
        hear()
        decide(Dispute.objects.get(), is_won=False)
        closed = sum(row.amount for row in Booking.objects.filter(kind="closing"))
        planned = Operation.objects.get(kind="refund", state="planned")
        assert (closed, planned.amount, planned.payment) == (4000, 1000, unpaid.payment)
        mates.pump(unpaid.pk)  # this bank refuses refunds to a card with a lost dispute
        assert statuses() == ["paid", "reimbursed"]
        assert balances(unpaid) == {"provider": 10_000, "merchant": -9000, "lead": -1000}

    @pytest.mark.rule("dispute.lost")
    def test_is_closed_only_up_to_the_lost_dispute(
        self, unpaid: Checkout, links: list[PaymentRequest]
    ) -> None:
        self.paid(unpaid, links)
        outside.refund_outside(Checkout.objects.get(pk=unpaid.pk).payment, 6000)
        client.call_bank("dispute", payment=unpaid.payment_id, amount=1000)
        hear()
        decide(Dispute.objects.get(), is_won=False)
        assert [row.amount for row in Booking.objects.filter(kind="closing")] == [1000]
        report = Discrepancy.objects.get(kind="owed_beyond_card", closed_at=None)
        assert (report.subject, report.facts["amount"]) == (links[1].pk, 2000)

    @pytest.mark.rule("dispute.lost")
    @pytest.mark.parametrize("amount", [5000, 9000])
    def test_is_closed_after_a_returned_reimbursement_and_a_lost_dispute(
        self, unpaid: Checkout, pay: Callable[..., Checkout], amount: int
    ) -> None:
        reimburse(unpaid, pay)
        come_back()
        client.call_bank("dispute", payment=unpaid.payment_id, amount=amount)
        hear()
        found = Dispute.objects.get()
        decide(found, is_won=False)
        assert Discrepancy.objects.get(kind="refund_returned").closed_at is not None
        assert balances(unpaid) == {"provider": 12_000 - amount, "merchant": amount - 12_000}
        with pytest.raises(NotAllowed, match="No refund is owed to the card"):
            sending.send_again(returned(unpaid).pk, cause=CAUSE)
        decide(found, is_won=True)
        assert Discrepancy.objects.filter(kind="refund_returned", closed_at=None).count() == 1
        assert balances(unpaid) == {"provider": 12_000, "merchant": -9000, "lead": -3000}

    def test_is_refunded_to_the_mate_by_a_refund_in_progress(
        self, unpaid: Checkout, links: list[PaymentRequest], settings: Settings
    ) -> None:
        self.paid(unpaid, links)
        settings.SANDBOX_REFUND_SECONDS = 60
        refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        mates.pump(unpaid.pk)
        decide(dispute(unpaid.payment), is_won=False)
        assert statuses() == ["paid", "paid"]
        Call.objects.filter(kind="refund").update(settles_at=clock.now())
        mates.pump(unpaid.pk)
        assert statuses() == ["refunded", "refunded"]

    @pytest.mark.rule("dispute.lost")
    def test_excludes_a_card_that_refuses_after_the_lost_dispute(
        self, unpaid: Checkout, links: list[PaymentRequest]
    ) -> None:
        token = bank.tokenise(subject=links[0].pk, number="4000002500003155")
        mate_shares.pay(links[0].pk, card=CardUse(token), mate=CustomerFactory.create(), cause=CAUSE)
        unpaid.refresh_from_db()
        decide(dispute(unpaid.payment), is_won=False)
        asked = Operation.objects.get(payment__subject=links[0].pk)
        client.call_bank("answer_challenge", key=asked.pk, is_confirmed=False)
        assert mates.settled(links[0]) == "cancelled", "the links have ended"


def statuses() -> list[str]:
    return list(PaymentRequest.objects.order_by("position").values_list("status", flat=True))
