"""A refund that was settled fails afterwards: believed when the bank confirms it, booked once, told at once."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.urls import reverse

from checkout import captures, refunds
from checkout.models import Checkout, PaymentRequest, Refund
from checkout.proof import proving
from checkout.remedies import closing, sending
from checkout.remedies.asking import NotAllowed
from config.lib import clock
from hosted_page.status import of_order
from payments.models import Discrepancy, Operation
from payments.provider import Verdict
from payments.providers.sandbox.models import Call
from portal.dashboard import needs
from portal.models import Role
from portal.orders import order, timeline
from tests import mates
from tests.conftest import Api
from tests.factories import CAUSE
from tests.outside import RETURNS, balances, come_back, decide, dispute, reimburse, returned, settle
from tests.portal import stage
from tests.refusals import nothing_moves

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted", "proven")]


class TestWhatIsSaid:
    def test_in_the_portal_at_once(self, refunded: Checkout) -> None:
        client = stage.browser(stage.person(refunded.merchant, Role.OWNER))
        address = f"/portal/checkouts/{refunded.pk}"
        assert "came back" not in client.get(address).content.decode()
        come_back()
        page = client.get(address).content.decode()
        assert "The refund came back: £90.00" in page and "The money is with the bank" in page
        assert "place-title" not in page, "it is in none of the places"
        shown = timeline.of(order.read(refunded.merchant, refunded.pk)).entries[0]
        assert shown.title == "The refund of £90.00 to Visa ending 7726 came back"
        assert shown.text == (
            "The card’s account is closed. Posted: £90.00 from the bank to what is to be paid back again."
        )
        assert client.get(reverse("portal_timeline", args=[refunded.pk])).status_code == 200

    def test_to_nobody_who_can_do_nothing(self, refunded: Checkout) -> None:
        """The merchant cannot refund again: it is not asked to."""
        come_back()
        assert not needs.failed_refunds(merchant=refunded.merchant).exists()

    def test_to_the_payer(self, refunded: Checkout) -> None:
        shown = of_order.tell(refunded, now=clock.now(), is_lead=True)
        assert shown is not None and "gave back the whole" in str(shown.paragraphs[0])
        come_back()
        shown = of_order.tell(refunded, now=clock.now(), is_lead=True)
        assert shown is not None and shown.heading == "The refund came back"
        assert "need not do anything" in str(shown.paragraphs[0])


class TestOfASplit:
    def begin(self, order: Checkout, pay: Callable[..., Checkout]) -> PaymentRequest:
        """Begin the refund of an order of which a mate has paid a share by a card that keeps no refund."""
        (share,) = mates.split(order, 3000)
        captures.capture(order.merchant, pay(order).pk, cause=CAUSE)
        mates.pay(share, RETURNS)
        assert mates.settled(share) == "reimbursed"
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        return share

    def test_a_mates_part(self, unpaid: Checkout, pay: Callable[..., Checkout], api: Api) -> None:
        """The mate's card does not keep it; the lead's has got its own."""
        share = self.begin(unpaid, pay)
        settle(unpaid)
        assert unpaid.status == "refunded"
        come_back()
        assert balances(unpaid) == {"provider": 3000, "returned": -3000}
        assert returned(unpaid).payment.subject == share.pk
        assert api.get(f"checkouts/{unpaid.pk}").json()["data"]["refunds"][0]["status"] == "failed"

    @pytest.mark.rule("dispute.no_refund")
    @pytest.mark.parametrize("whose", ["the lead's", "the mate's"])
    def test_a_mates_part_after_a_dispute_was_lost(
        self, unpaid: Checkout, pay: Callable[..., Checkout], whose: str
    ) -> None:
        """Another card's dispute is no reason to keep the money; its own has given it to its payer."""
        self.begin(unpaid, pay)
        settle(unpaid)
        come_back()
        part = returned(unpaid)
        decide(dispute(part.payment if whose == "the mate's" else unpaid.payment), is_won=False)
        if whose == "the mate's":
            with pytest.raises(NotAllowed, match="disputed"):
                sending.send_again(part.pk, cause=CAUSE)
            return
        sending.send_again(part.pk, cause=CAUSE)
        Call.objects.filter(kind="refund").update(returns_at=None)
        settle(unpaid)
        assert "returned" not in balances(unpaid) and Refund.objects.get().status == "settled"

    def test_a_part_while_others_are_under_way(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> None:
        """The others are waited for; the refund reads failed only then."""
        self.begin(unpaid, pay)
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
        share = reimburse(unpaid, pay)
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
        share = reimburse(unpaid, pay)
        come_back()
        closing.close_as_settled_otherwise(returned(unpaid).pk, note="In cash.", cause=CAUSE)
        assert balances(unpaid) == {"provider": 9000, "merchant": -9000}
        share.refresh_from_db()
        assert share.status == "reimbursed"
